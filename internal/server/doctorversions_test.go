package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/imageregistry"
)

// TestDoctorTriesRegistries: doctor lists the tags of what a pipeline's discover is about as the server would, tries its rules
// on them, and says of each registry and rule what keeps versions out.
func TestDoctorTriesRegistries(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	images, err := imageregistry.Start()
	must(err)
	t.Cleanup(func() { _ = images.Close() })
	must(images.Push(t.Context(), "web", "1.1.0", imageregistry.Source{}))
	must(images.Push(t.Context(), "api", "main", imageregistry.Source{}))
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Limit", "100;w=21600")
		w.Header().Set("RateLimit-Remaining", "3;w=21600")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(closed.Close)
	closedHost := strings.TrimPrefix(closed.URL, "http://")

	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir()})
	must(err)
	t.Cleanup(func() { _ = em.Close() })
	argo, err := argoemulator.New(argoemulator.Options{Repos: em})
	must(err)
	t.Cleanup(func() { _ = argo.Close() })
	address := strings.TrimSuffix(em.CloneURL("acme/fleet"), "/acme/fleet.git")
	here := strings.NewReplacer("IMAGES", images.Host, "CLOSED", closedHost, "FORGE", address).Replace
	overlay := here("images:\n- {name: IMAGES/web, newTag: 1.0.0}\n- {name: IMAGES/api, newTag: 1.0.0}\n- {name: IMAGES/gone, newTag: 1.0.0}\n" +
		"- {name: CLOSED/web, newTag: 1.0.0}\n- {name: other.example/web, newTag: 1.0.0}\n- {name: IMAGES/pinned, digest: 'sha256:a'}\n")
	files := map[string]string{"argocd/shop.yaml": here(examinedSet), "apps/web/dev/kustomization.yaml": overlay, "apps/web/prod/kustomization.yaml": overlay,
		".liftlock.yaml": here(strings.Replace(strings.Replace(examinedPipeline, `["*"]`, `["**"]`, 1), "{name: dev}", `{name: dev, discover: [
    {image: "IMAGES/*", choose: {semver: ">=1.0.0"}}, {image: "CLOSED/*", choose: {semver: "*"}}, {image: "other.example/*", choose: {semver: "*"}},
    {image: nobody.example/web, choose: {semver: "*"}}]}`, 1))}
	must(em.AddUser("liftlock-bot", "bot-token-0123456789", emulator.UserOptions{}))
	access := map[string]emulator.Permission{"liftlock-bot": emulator.Admin}
	must(em.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "liftlock-bot", Files: files, Access: access}))
	must(em.CreateRepo("acme/settings", emulator.RepoOptions{Author: "liftlock-bot", Files: map[string]string{"a": "b"}, Access: access}))
	dir := t.TempDir()
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "liftlock.yaml")
	must(argo.WriteKubeconfig(kubeconfig))
	must(os.WriteFile(file, []byte(strings.NewReplacer("ADDRESS", em.APIURL(), "DATA", filepath.Join(dir, "data"), "KUBECONFIG", kubeconfig).Replace(examinedFile)+
		here("registries: [{host: \"IMAGES\", plainHTTP: true}, {host: \"CLOSED\", plainHTTP: true, username: liftlock, password: a-registry-password}]\n")), 0o600))
	cfg, err := config.Load(file, os.LookupEnv)
	must(err)
	report, err := server.Doctor(context.Background(), server.Options{Config: cfg, Version: "test"}, false)
	must(err)
	found := map[doctor.Code]string{}
	for _, f := range report.Findings {
		if strings.HasPrefix(string(f.Code), "registry") || strings.HasPrefix(string(f.Code), "discover") {
			found[f.Code] += f.Where + ": " + f.Message + "\n"
		}
		if strings.Contains(f.Message+f.Cure, "a-registry-password") {
			t.Errorf("%s says a password", f.Code)
		}
	}
	for code, want := range map[doctor.Code]string{
		"registry-missing":   "registry " + images.Host + ": " + images.Host + "/gone: the registry has no such image",
		"registry-refused":   "registry " + closedHost + ": " + closedHost + "/web: the registry refuses to show it; check its credentials in the server's file; 3 of 100 requests are left",
		"registry-limited":   "registry " + closedHost + ": its limit is nearly used up; 3 of 100 requests are left",
		"registry-unlisted":  "registry other.example: other.example/web: ",
		"discover-refused":   "discover of shop in acme/fleet: " + images.Host + "/pinned of web in dev: the rule writes a tag, and no carried field has one",
		"discover-nothing":   images.Host + "/api of web in dev: none of 1 tags can be the highest version in >=1.0.0",
		"discover-unmatched": "discover[3] of dev is about nobody.example/web, which no carried field names",
	} {
		if !strings.Contains(found[code], want) {
			t.Errorf("%s says %q, not %q", code, found[code], want)
		}
		delete(found, code)
	}
	if len(found) > 0 {
		t.Errorf("besides, %v", found)
	}
}
