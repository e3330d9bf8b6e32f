//go:build e2e

package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/liftlock/liftlock/internal/promotion"
)

// umbrella is a story's chart of charts, as Helm makes one release of it after the other.
type umbrella struct {
	repository *httptest.Server // of the chart that runs
	authority  string           // a file: whom its certificate is of
	releases   map[string]map[string]string
}

// An environment's chart is made of the charts that run, by a lock. A release moves the version and the
// lock together, or Argo CD's `helm dependency build` refuses the chart; what it deploys is the new one.
func TestUmbrellaChartIsPromotedWithItsLock(t *testing.T) {
	t.Parallel()
	t.Run("FromRepository", runUmbrellaOfRepository)
	t.Run("Packed", runUmbrellaOfArchives)
}

// The chart that runs is in a repository, of which Argo CD and the server both fetch it.
func runUmbrellaOfRepository(t *testing.T) {
	t.Parallel()
	u := newUmbrella(t, "1.0.0", "1.1.0")
	for _, files := range u.releases {
		for file := range files {
			if strings.HasPrefix(file, "charts/") {
				delete(files, file)
			}
		}
	}
	s := u.newScenario(t, "umbrella", "")
	s.addChartRepository(u.repository.URL)
	s.applySets(repoFixture{sets: umbrellaSets}, nil)
	s.awaitSettled()
	s.server.further = fmt.Sprintf("charts: [{url: %q, tls: {caFile: %q}}]\n", u.repository.URL, u.authority)
	s.startServer()
	u.release(s, "1.1.0")
	merged := u.awaitPromoted(s, "1.0.0", "1.1.0")
	if !strings.Contains(merged, "registry.example/web:1.1.0") {
		t.Errorf("the pull request doesn't say what comes of the chart's new version:\n%s", merged)
	}
}

// The chart that runs lies in the umbrella, and its repository is away.
func runUmbrellaOfArchives(t *testing.T) {
	t.Parallel()
	u := newUmbrella(t, "1.0.0", "1.1.0")
	u.repository.Close()
	s := u.newScenario(t, "packed", "    - {files: {include: [\"charts/*.tgz\"]}, whenAbsent: add}\n")
	s.applySets(repoFixture{sets: umbrellaSets}, nil)
	s.awaitSettled()
	s.startServer()
	u.release(s, "1.1.0")
	u.awaitPromoted(s, "1.0.0", "1.1.0")
}

// newUmbrella has Helm make a repository with these versions of a chart, and an umbrella over each.
func newUmbrella(t *testing.T, versions ...string) *umbrella {
	t.Helper()
	dir := t.TempDir()
	for _, version := range versions {
		writeFolder(t, filepath.Join(dir, "web"), map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n",
			"templates/deployment.yaml": strings.Replace(deploymentYAML("web", []string{"web"}),
				"image: registry.example/web", "image: registry.example/web:{{ .Chart.Version }}", 1),
		})
		runHelm(t, dir, nil, "package", "web", "--destination", "served")
	}
	runHelm(t, dir, nil, "repo", "index", "served")
	u := &umbrella{releases: map[string]map[string]string{}, authority: filepath.Join(dir, "authority.pem")}
	u.repository = httptest.NewTLSServer(http.FileServer(http.Dir(filepath.Join(dir, "served")))) // Argo CD builds of https alone
	t.Cleanup(u.repository.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.repository.Certificate().Raw})
	writeFolder(t, dir, map[string]string{filepath.Base(u.authority): string(certificate)})
	for _, version := range versions {
		at := filepath.Join(dir, "umbrella-"+version)
		writeFolder(t, at, map[string]string{
			"Chart.yaml": fmt.Sprintf("# what runs\napiVersion: v2\nname: stack\nversion: 0.1.0\n"+
				"dependencies:\n  - name: web\n    repository: %s\n    version: %s   # the release\n", u.repository.URL, version),
		})
		runHelm(t, at, []string{"SSL_CERT_FILE=" + u.authority}, "dependency", "update")
		u.releases[version] = map[string]string{}
		for _, file := range []string{"Chart.yaml", "Chart.lock", "charts/web-" + version + ".tgz"} {
			data, err := os.ReadFile(filepath.Join(at, file))
			if err != nil {
				t.Fatal(err)
			}
			u.releases[version][file] = string(data)
		}
	}
	return u
}

// newScenario has the first release everywhere; further are lines of the pipeline's carry.
func (u *umbrella) newScenario(t *testing.T, name, further string) *scenario {
	t.Helper()
	carry := "  carry:\n    - yaml: {files: [Chart.yaml], paths: [\"dependencies[name=web].version\"]}\n" +
		"    - files: {include: [Chart.lock]}\n"
	plain := map[string]string{".liftlock.yaml": listPipeline + carry + further + "  environments:\n" + threeSteps}
	for _, env := range environmentNames(threeSteps) {
		for file, text := range u.releases["1.0.0"] {
			plain["apps/web/"+env+"/"+file] = text
		}
		plain["apps/web/"+env+"/values.yaml"] = "# " + env + "'s own\nweb: {}\n"
	}
	return newScenario(t, normalCluster, name, repoFixture{plain: plain, sets: umbrellaSets})
}

// umbrellaSets make an Application of each environment's chart.
var umbrellaSets = map[string]string{
	"shop.yaml": strings.NewReplacer("DEV", "main", "QA", "main", "path: apps/web}", "path: 'apps/web/{{ .env }}'}").Replace(byList)}

// addChartRepository makes a repository known to Argo CD, which takes its certificate as it is.
func (s *scenario) addChartRepository(url string) {
	s.Helper()
	name := s.prefix + "-charts"
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": name, "namespace": "argocd",
			"labels": map[string]any{"argocd.argoproj.io/secret-type": "repository"}},
		"stringData": map[string]any{"type": "helm", "name": name, "url": url, "insecure": "true"},
	}}
	_, err := s.cluster.kube.Resource(secrets).Namespace("argocd").Create(s.ctx, secret, metav1.CreateOptions{})
	s.must(err)
	s.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := s.cluster.kube.Resource(secrets).Namespace("argocd").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
}

// release brings a release into dev, as `helm dependency update` leaves it.
func (u *umbrella) release(s *scenario, version string) {
	s.Helper()
	const dir = "apps/web/dev"
	edits := map[string]edit{}
	for file, text := range u.releases[version] {
		edits[dir+"/"+file] = func(string) string { return text }
	}
	s.runGit("fetch", "-q", "origin")
	s.runGit("checkout", "-q", "--detach", "origin/main")
	s.runGit("rm", "-r", "-q", "--ignore-unmatch", dir+"/charts")
	_, err := s.clone.commitAndPush(s.ctx, s.cluster.accounts[dev], "origin", "main", "Release web "+version, edits)
	s.must(err)
}

// awaitPromoted waits until qa has and runs dev's release, and is offered to prod; it returns the pull
// request's body.
func (u *umbrella) awaitPromoted(s *scenario, before, version string) (body string) {
	s.Helper()
	p := s.awaitMergedInto("main", "qa", 0)
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", version)
	s.awaitRunning("web", "prod", before)

	var want []string
	for file := range u.releases[version] {
		const at = "apps/web/qa/"
		s.runGit("fetch", "-q", "origin")
		if got := s.runGit("show", *p.MergedCommitID+":"+at+file); got != u.releases[version][file] {
			s.Errorf("%s isn't dev's:\n%.500q", at+file, got)
		}
		want = append(want, at+file)
	}
	for file := range u.releases[before] {
		if _, stays := u.releases[version][file]; !stays {
			want = append(want, "apps/web/qa/"+file)
		}
	}
	changed := strings.Fields(s.runGit("diff", "--no-renames", "--name-only", *p.MergedCommitID+"^1", *p.MergedCommitID))
	slices.Sort(want)
	if !slices.Equal(changed, want) { // Git's are sorted
		s.Errorf("#%d changed %q, wanted %q", p.Index, changed, want)
	}
	s.awaitPull(promotionBranch("web", "prod"), "prod's pull request is open", 0, isOpenOnto("main"))
	return p.Body
}

// writeFolder writes files below a folder.
func writeFolder(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// runHelm runs the Helm that the lab's Argo CD runs, in a folder and with further variables.
func runHelm(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, normalCluster.helm, args...)
	cmd.Dir = dir
	home := t.TempDir()
	cmd.Env = append(append(os.Environ(), env...), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
