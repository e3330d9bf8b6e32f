package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// readTroubles are what the API says keeps Liftlock from its work.
func (ha *harness) readTroubles() (string, error) {
	var list api.Pipelines
	_, err := ha.getJSON("/api/v1/pipelines", &list)
	return fmt.Sprintf("%+v", list.Troubles), err
}

// injectFault makes calls to the forge fail.
func (ha *harness) injectFault(f emulator.Fault) {
	ha.t.Helper()
	ha.must("inject a fault", ha.Forge.InjectFault(f))
}

// TestForgeIsDownAtStart serves and says so until the forge is there.
func TestForgeIsDownAtStart(t *testing.T) {
	s := newHarness(t, harnessOptions{})
	s.injectFault(emulator.Fault{Status: http.StatusBadGateway, Times: -1})
	s.start()
	s.waitFor("/readyz names the repository", func() (bool, string) {
		status, text := s.getText("/readyz")
		return status == http.StatusOK && strings.Contains(text, "engine: not started") && strings.Contains(text, repoName), text
	})
	if status, _ := s.getText("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: HTTP %d", status)
	}
	if seen, err := s.readTroubles(); err != nil || !strings.Contains(seen, repoName) {
		t.Errorf("the API's troubles are %s (%v)", seen, err)
	}
	// A delivery that comes meanwhile is taken.
	if status, _ := s.postDelivery(testDelivery{event: "push", id: "early", key: secret, body: s.pushPayload(repoName)}); status != http.StatusOK {
		t.Errorf("a delivery before the forge was reached: HTTP %d", status)
	}
	s.Forge.ClearFaults()
	s.awaitJudged()
	if status, text := s.getText("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: HTTP %d: %s", status, text)
	}
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
}

// TestKubeconfigIsMissingAtStart serves and says so until the file is there.
func TestKubeconfigIsMissingAtStart(t *testing.T) {
	s := newHarness(t, harnessOptions{})
	file := filepath.Join(s.dir, "kubeconfig")
	s.must("take the kubeconfig away", os.Rename(file, file+".later"))
	s.start()
	says := func(wanted string) {
		t.Helper()
		s.waitFor("/readyz says "+wanted, func() (bool, string) {
			status, text := s.getText("/readyz")
			return status == http.StatusOK && strings.Contains(text, "argocd hub") && strings.Contains(text, wanted), text
		})
	}
	says(file + ": no such file or directory")
	s.must("bring it back", os.Rename(file+".later", file))
	says("argocd hub: ok")
	s.awaitJudged()
}

// TestOneRepositoryIsOutOfReach works for those that are reached, says which isn't, and
// takes it up when it comes, without a restart.
func TestOneRepositoryIsOutOfReach(t *testing.T) {
	const lost = "acme/lost"
	s := newHarness(t, harnessOptions{repositoryLines: "  - {forge: hub, name: " + lost + "}\n"})
	s.start()
	s.awaitJudged()
	s.waitFor("/readyz and the console name the repository", func() (bool, string) {
		status, text := s.getText("/readyz")
		seen, err := s.readTroubles()
		return status == http.StatusOK && strings.Contains(text, "repository "+lost) && err == nil && strings.Contains(seen, lost), text + seen
	})
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.must("make the repository", s.Forge.CreateRepo(lost, emulator.RepoOptions{Author: "linus", Message: "A pipeline", Files: map[string]string{".liftlock.yaml": "broken"},
		Access: map[string]emulator.Permission{s.bot: emulator.Admin, "linus": emulator.Write}}))
	s.waitFor("the repository is looked at", func() (bool, string) {
		_, text := s.getText("/readyz")
		seen, err := s.readTroubles()
		return !strings.Contains(text, lost) && err == nil && strings.Contains(seen, "pipeline file of hub:"+lost), text + seen
	})
}

// TestMissingScope says which permission the token lacks, and goes on when it
// has it.
func TestMissingScope(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	said, needs, body := "not accessible by personal access token", "needs one of [repo]", `{"message":"Resource not accessible by personal access token"}`
	header := http.Header{"X-Accepted-Oauth-Scopes": {"repo"}, "X-Oauth-Scopes": {"read:org"}}
	switch {
	case s.isApp():
		said, needs, body = "not accessible by integration", "needs the permission pull_requests=write", `{"message":"Resource not accessible by integration"}`
		header = http.Header{"X-Accepted-Github-Permissions": {"pull_requests=write"}}
	case s.Forge.Face() == emulator.GitLab:
		said, needs, body = "higher privileges", "needs the scope api", `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`
	}
	s.injectFault(emulator.Fault{Method: "POST", Path: s.paths().pulls + "$", Times: -1, Status: http.StatusForbidden, Header: header, Body: body})
	s.commitRelease("web", "1.1.0")
	s.waitFor("the log names the scope", func() (bool, string) { return s.countLogged(needs) > 0 && s.countLogged(said) > 0, "" })
	logged := func() (bool, string) {
		seen, err := s.readTroubles()
		return err == nil && strings.Contains(seen, "component hub:acme/fleet shop web") && strings.Contains(seen, needs), seen
	}
	s.waitFor("the console says which", logged)
	s.Forge.ClearFaults()
	s.awaitPromotion("web", "qa", "1.1.0")
	s.waitFor("the console says it no more", func() (bool, string) { ok, seen := logged(); return !ok, seen })
}

// TestArgoCDIsOutOfReach starts without an Argo CD, finds it, loses it and finds
// it again: no verdict is made up meanwhile.
func TestArgoCDIsOutOfReach(t *testing.T) {
	clock := newSteppedClock()
	s := newHarness(t, harnessOptions{clock: clock})
	s.ArgoCD.FailRequests("", "", -1, http.StatusServiceUnavailable)
	s.start()
	s.awaitJudged()
	unclear := func() {
		s.t.Helper()
		s.waitFor("/readyz and the console say so", func() (bool, string) {
			_, text := s.getText("/readyz")
			seen, err := s.readTroubles()
			_, page := s.getText("/")
			return err == nil && strings.Contains(text, "argocd hub: ") && !strings.Contains(text, "argocd hub: ok") && strings.Contains(seen, "argocd hub") && strings.Contains(page, "argocd hub"), text + seen
		})
	}
	unclear()
	if status, _ := s.getText("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: HTTP %d; deliveries must still come", status)
	}
	s.commitRelease("web", "1.1.0")
	s.awaitEnvironment("web", "dev", "is being verified, unclear", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Name, "1.1.0") && e.State == promotion.Verifying && len(e.Targets) == 1 && e.Targets[0].State != "verified"
	})
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Fatalf("%d promotions of a release that nobody could verify", n)
	}
	back := func() {
		s.t.Helper()
		s.ArgoCD.FailRequests("", "", 0, 0)
		s.waitFor("/readyz says that it is back", func() (bool, string) {
			_, text := s.getText("/readyz")
			return strings.Contains(text, "argocd hub: ok"), text
		})
	}
	back()
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.ArgoCD.FailRequests("", "", -1, http.StatusServiceUnavailable)
	s.ArgoCD.CutWatches()
	unclear()
	// Approved now, but how qa is can't be told.
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitPull(p.Number, "waits for Argo CD", func(p *emulator.PullRequest) bool {
		st := liftlockStatus(p.Statuses)
		return st.State == "pending" && !strings.Contains(st.Description, " of 2)")
	})
	if s.readPull(p.Number).Merged || len(s.listReverts("web", "qa"))+len(s.listReverts("web", "prod")) != 0 {
		t.Fatal("something was merged or reverted on doubt")
	}
	back()
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "prod", "1.1.0")
}

// TestPushFails refuses the pushes of our branches: a clear message, retries, and
// nothing lost.
func TestPushFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault emulator.Fault
	}{
		{"the server breaks", emulator.Fault{Method: "POST", Path: "git-receive-pack$", Times: 1, Status: http.StatusInternalServerError}},
		{"the connection breaks", emulator.Fault{Method: "POST", Path: "git-receive-pack$", Times: 1, Cut: true}},
		{"the answer is lost", emulator.Fault{Method: "POST", Path: "git-receive-pack$", Times: 1, After: true, Cut: true}},
		{"not allowed for a while", emulator.Fault{Path: "service=git-receive-pack|git-receive-pack$", Times: 2, Status: http.StatusForbidden}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{})
			s.awaitJudged()
			s.injectFault(c.fault)
			s.commitRelease("web", "1.1.0")
			s.waitFor("the log says what failed", func() (bool, string) {
				return s.countLogged("liftlock/shop/qa/web") > 0 && s.countLogged("a run failed") > 0, ""
			})
			s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
			s.awaitVerified("web", "qa", "1.1.0")
			if n := len(s.listPulls("web", "qa")); n != 1 {
				t.Errorf("%d pull requests, want 1", n)
			}
		})
	}
}

// TestRetryAfter waits as long as the forge asks for.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"429", http.StatusTooManyRequests, `{"message":"Too many requests"}`},
		{"503", http.StatusServiceUnavailable, `{"message":"Come back later"}`},
		{"a secondary limit", http.StatusForbidden, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newSteppedClock()
			s := startHarness(t, harnessOptions{clock: clock})
			s.awaitJudged()
			s.injectFault(emulator.Fault{Method: "POST", Path: s.paths().pulls + "$", Times: 1, Status: c.status, Header: http.Header{"Retry-After": {"120"}}, Body: c.body})
			s.commitRelease("web", "1.1.0")
			s.waitFor("the call was refused", func() (bool, string) { return s.countOpenings() == 1, "" })
			began := clock.Now()
			s.awaitIdle()
			for clock.Now().Sub(began) < 110*time.Second {
				clock.Step(10 * time.Second)
				s.awaitIdle()
			}
			if n := s.countOpenings(); n != 1 {
				t.Errorf("the call was made %d times within the 120 s that the forge asked for", n)
			}
			clock.Step(15 * time.Second)
			s.awaitPromotion("web", "qa", "1.1.0")
		})
	}
}

// TestFlakyForge fails calls to the forge by chance, before or after they had
// their effect; the story ends the same.
func TestFlakyForge(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if *runLong {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			s := startHarness(t, harnessOptions{})
			s.awaitJudged()
			for range 6 {
				s.injectFault(emulator.Fault{Path: "^" + s.paths().repositories + "|git-", Skip: chance.IntN(50), Times: 1, After: chance.IntN(2) == 0, Cut: chance.IntN(3) == 0,
					Status: []int{http.StatusBadGateway, http.StatusInternalServerError, http.StatusGatewayTimeout}[chance.IntN(3)]})
			}
			s.runStory()
		})
	}
}

// TestProxyPages tells the story while a proxy before GitLab answers now and then with a page of
// its own. No undone work is taken for done, nor anything that is there for gone.
func TestProxyPages(t *testing.T) {
	s := startHarness(t, harnessOptions{face: emulator.GitLab})
	s.awaitJudged()
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for path, method := range map[string]string{"/merge_requests$": "POST", "/merge_requests/[0-9]+$": "PUT", "/merge$": "PUT", "/notes$": "POST", "/statuses/": "POST"} {
		s.injectFault(emulator.Fault{Method: method, Path: path, Status: http.StatusOK, Header: html, Body: "<html><head><title>Sign in</title></head></html>"})
	}
	for _, path := range []string{"/merge_requests$", "/merge_requests/[0-9]+$", "/approvals$", "/members/"} {
		s.injectFault(emulator.Fault{Method: "GET", Path: path, Status: http.StatusNotFound, Header: html, Body: "<html><head><title>404 Not Found</title></head></html>"})
	}
	p := s.runStory()
	s.awaitPull(p.Number, "has our status and one comment", func(p *emulator.PullRequest) bool {
		own := 0
		for _, c := range p.Comments {
			if c.User == s.bot {
				own++
			}
		}
		return liftlockStatus(p.Statuses).State == "success" && own == 1
	})
}

// TestBaseBranchWasModified takes GitHub's answer right after another merge for
// what it is.
func TestBaseBranchWasModified(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	s.injectFault(emulator.Fault{Method: "PUT", Path: "/merge$", Times: 2, Status: http.StatusMethodNotAllowed,
		Body: `{"message":"Base branch was modified. Review and try the merge again.","documentation_url":"https://docs.github.com/rest"}`})
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	if n := s.countMerges(); n != 3 {
		t.Errorf("%d merges were asked for, want 3", n)
	}
}

// TestBlockedMerge says what the forge's own rules ask for and doesn't try again
// and again.
func TestBlockedMerge(t *testing.T) {
	s := startHarness(t, harnessOptions{sweep: time.Second})
	s.must("protect main", s.Forge.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock", "ci/build"}}))
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitEnvironment("web", "qa", "says that the forge blocks it", func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Text, "the forge blocks the merge") })
	// Our own status passes, or the two would wait for each other.
	s.awaitPull(p.Number, "has our status", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "success" })
	s.Forge.ResetCalls()
	s.waitFor("a few sweeps pass", func() (bool, string) { return s.countCalls("GET", s.paths().pulls) >= 4, "" })
	if n := s.countMerges(); n > 1 {
		t.Errorf("a blocked merge was tried %d times", n)
	}
	s.must("build", s.Forge.SetStatus(repoName, "linus", p.Head, emulator.Status{Context: "ci/build", State: "success"}))
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
}
