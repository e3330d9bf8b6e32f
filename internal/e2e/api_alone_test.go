//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
)

// breakingProxy passes on calls of Argo CD's API, and breaks every stream after ten seconds.
type breakingProxy struct {
	*httptest.Server
	streams, lists, renderings atomic.Int64
}

func newBreakingProxy(s *scenario) *breakingProxy {
	to, err := url.Parse("http://" + s.cluster.argocd.server)
	s.must(err)
	p := &breakingProxy{}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/stream/applications":
			p.streams.Add(1)
			ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
			defer cancel()
			r = r.WithContext(ctx)
		case "/api/v1/applications":
			p.lists.Add(1)
		}
		if strings.HasSuffix(r.URL.Path, "/manifests") {
			p.renderings.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	s.Cleanup(p.Close)
	return p
}

// checkNothingDiffers compares what the repository says with what runs, by the command and
// without a kubeconfig.
func (s *scenario) checkNothingDiffers(args ...string) {
	s.Helper()
	s.runGit("fetch", "-q", "origin")
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"resolve", "--repo", s.clone.dir, "--rev", "origin/main", "--diff"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "ARGOCD_AUTH_TOKEN=lab")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("resolve --diff: %v\n%s", err, out)
	}
	s.Logf("        resolve --diff: %s", strings.TrimSpace(string(out)))
}

// TestByArgoCDsOwnAPIAlone tells the story of every release to a server that has no kubeconfig and
// knows Argo CD by its own API, whose every stream breaks after ten seconds. A release goes from
// dev to prod, with Argo CD's rendering of it. A broken one is reverted, with the words of its
// pods.
func TestByArgoCDsOwnAPIAlone(t *testing.T) {
	t.Parallel()
	s := newScenario(t, normalCluster, "api", singleComponent())
	s.applySets(singleComponent(), nil)
	s.awaitSettled()
	proxy := newBreakingProxy(s)
	s.server.apiAlone = proxy.URL
	s.checkNothingDiffers("--argocd-url", proxy.URL)
	begun, listedBefore := time.Now(), proxy.lists.Load()
	s.startServer()
	if config, err := os.ReadFile(filepath.Join(s.server.dir, "liftlock.yaml")); err != nil || strings.Contains(string(config), "kube") {
		t.Fatalf("the server's file knows of Kubernetes, or can't be read: %v\n%s", err, config)
	}

	s.pushRelease("web", "dev", "1.1.0")
	qa := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, "web", "qa", 1)
	s.awaitOpen("web", "prod", "1.1.0", 0)
	prod := s.awaitPull(promotionBranch("web", "prod"), "prod's pull request shows what Argo CD renders", 0, func(p *gitea.PullRequest) error {
		if strings.Contains(p.Body, "not rendered") || !strings.Contains(p.Body, "image: registry.example/web:1.1.0") {
			return fmt.Errorf("the body is\n%s", p.Body)
		}
		return nil
	})
	if proxy.renderings.Load() == 0 {
		t.Error("Argo CD was not asked to render anything")
	}
	s.approve(ada, prod)
	s.approve(grace, prod)
	s.awaitMerged("web", "prod", "1.1.0", 0)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "prod", "1.1.0")
	s.recordByAPI("api-verified", "web", "qa", nil)

	s.pushRelease("web", "dev", "1.2.0-broken-in-qa")
	broken := s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", qa.Index)
	before, _ := s.checkOneEnvironment(broken, "web", "qa", 1)
	s.recordByAPI("api-degraded", "web", "qa", isDegraded)
	revert := s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	if !strings.Contains(revert.Body, "pods ready: ImagePullBackOff") {
		t.Errorf("the revert doesn't say what the pods do:\n%s", revert.Body)
	}
	s.Logf("the revert says:\n%s", revert.Body)
	_, after := s.checkOneEnvironment(revert, "web", "qa", 1)
	s.checkRestored(before, after, "web", "qa")
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	if got := s.readTag("web", "prod"); got != "1.1.0" {
		t.Errorf("prod has %s", got)
	}
	took, lists := time.Since(begun), proxy.lists.Load()-listedBefore
	t.Logf("in %s there were %d streams and %d lists", took.Round(time.Second), proxy.streams.Load(), lists)
	if most := int64(took/(10*time.Second)) + 2; lists > most {
		t.Errorf("%d lists in %s", lists, took)
	}
}
