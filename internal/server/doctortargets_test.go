package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// examinedSet generates a target of each folder, and examinedPipeline names it.
const (
	examinedSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - git: {repoURL: FORGE/acme/fleet.git, revision: main, directories: [{path: apps/*/*}]}
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: FORGE/acme/fleet.git, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: default}
`
	examinedPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  mode: observe
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["*"]}]
  environments: [{name: dev}, {name: prod, after: [dev]}]
`
	examinedFile = `
dataDir: DATA
forges: [{name: hub, type: github, url: ADDRESS, auth: {token: bot-token-0123456789}, webhookSecrets: [a-webhook-secret]}]
repositories: [{forge: hub, name: acme/fleet}, {forge: hub, name: acme/settings}]
argocd: [{name: hub, version: v2.14.21, kubernetes: {kubeconfig: KUBECONFIG, namespaces: [argocd]}}]
`
)

// TestDoctorResolvesTargets: doctor resolves the pipelines as the server would, and says what can't
// be, and whose fault that is.
func TestDoctorResolvesTargets(t *testing.T) {
	live := []string{"{path: argocd/*.yaml}", "{live: {argocd: hub, namespace: argocd, name: running}}"}
	for name, c := range map[string]struct {
		pipeline, set []string // replacements
		away          bool     // Argo CD doesn't answer
		want          doctor.Code
		says          string
	}{
		"all is resolved":            {want: doctor.CodeTargets, says: "2 targets of 1 component"},
		"a parameter with a typo":    {set: []string{".path.basename }}'}\n", ".path.basname }}'}\n"}, want: "targets-unresolved", says: "basname"},
		"files of another one":       {set: []string{"{repoURL: FORGE/acme/fleet.git, revision: main, directories: [{path: apps/*/*}]}", "{repoURL: FORGE/acme/settings.git, revision: main, directories: [{path: apps/*/*}]}"}, want: doctor.CodeTargets, says: "2 targets of 1 component"},
		"files of one that's not in": {set: []string{"{repoURL: FORGE/acme/fleet.git, revision: main, d", "{repoURL: https://git.example/acme/else.git, revision: main, d"}, want: "targets-unresolved", says: "add it to repositories"},
		"folders that aren't there":  {set: []string{"apps/*/*", "services/*/*"}, want: "targets-none", says: "nothing"},
		"a set that runs":            {pipeline: live, want: doctor.CodeTargets, says: "1 target of 1 component"},
		"a set that doesn't run":     {pipeline: slices.Concat(live, []string{"name: running", "name: gone"}), want: "targets-unresolved", says: "gone"},
		"an Argo CD that is away":    {pipeline: live, away: true, want: "targets-unread", says: "argocd hub"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = em.Close() })
			argo, err := argoemulator.New(argoemulator.Options{Repos: em})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = argo.Close() })
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			address := strings.TrimSuffix(em.CloneURL("acme/fleet"), "/acme/fleet.git")
			access := map[string]emulator.Permission{"liftlock-bot": emulator.Admin}
			set := strings.ReplaceAll(strings.NewReplacer(c.set...).Replace(examinedSet), "FORGE", address)
			overlays := map[string]string{"apps/web/dev/kustomization.yaml": "", "apps/web/prod/kustomization.yaml": ""}
			files := map[string]string{".liftlock.yaml": examinedPipeline, "argocd/shop.yaml": set}
			for i := 0; i < len(c.pipeline); i += 2 {
				files[".liftlock.yaml"] = strings.ReplaceAll(files[".liftlock.yaml"], c.pipeline[i], c.pipeline[i+1])
			}
			for name, text := range overlays {
				files[name] = text
			}
			must(em.AddUser("liftlock-bot", "bot-token-0123456789", emulator.UserOptions{}))
			must(em.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "liftlock-bot", Files: files, Access: access}))
			must(em.CreateRepo("acme/settings", emulator.RepoOptions{Author: "liftlock-bot", Files: overlays, Access: access}))
			must(argo.AddObject("applicationsets", map[string]any{"metadata": map[string]any{"name": "running", "namespace": "argocd"}, "spec": map[string]any{
				"goTemplate": true,
				"generators": []any{map[string]any{"git": map[string]any{"repoURL": address + "/acme/fleet.git", "revision": "main", "directories": []any{map[string]any{"path": "apps/*/dev"}}}}},
				"template": map[string]any{"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"project": "default",
					"source":      map[string]any{"repoURL": address + "/acme/fleet.git", "targetRevision": "main", "path": "{{ .path.path }}"},
					"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": "default"}}},
			}}))
			dir := t.TempDir()
			kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "liftlock.yaml")
			must(argo.WriteKubeconfig(kubeconfig))
			must(os.WriteFile(file, []byte(strings.NewReplacer("ADDRESS", em.APIURL(), "DATA", filepath.Join(dir, "data"), "KUBECONFIG", kubeconfig).Replace(examinedFile)), 0o600))
			cfg, err := config.Load(file, os.LookupEnv)
			must(err)
			if c.away {
				must(argo.Close())
			}
			report, err := server.Doctor(context.Background(), server.Options{Config: cfg, Version: "test"}, false)
			must(err)
			var got []doctor.Finding
			for _, f := range report.Findings {
				if strings.HasPrefix(string(f.Code), "targets") {
					got = append(got, f)
				}
			}
			if len(got) != 1 || got[0].Code != c.want || !strings.Contains(got[0].Message, c.says) || (got[0].Cure == "") != (c.want == doctor.CodeTargets) {
				t.Errorf("found %+v, want %s that says %q", got, c.want, c.says)
			}
		})
	}
}
