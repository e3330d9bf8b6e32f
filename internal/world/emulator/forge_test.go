package emulator_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
	"github.com/liftlock/liftlock/internal/world/emulator/githubshape"
)

const repo = "acme/fleet"

// clock is a clock that only moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// forgeHarness is a forge with a repository and three people: ada administers, grace
// writes, mallory is nobody here.
type forgeHarness struct {
	*emulator.Forge
	t     *testing.T
	ctx   context.Context
	clock *clock
}

// checkShape holds what is answered against GitHub's own description.
func checkShape(t *testing.T) func(emulator.Exchange) {
	t.Helper()
	described, err := githubshape.Describe(githubshape.Public)
	if err != nil {
		t.Fatal(err)
	}
	graphQL, err := githubshape.DescribeGraphQL()
	if err != nil {
		t.Fatal(err)
	}
	return func(x emulator.Exchange) {
		if x.Route == "/graphql" {
			for _, wrong := range graphQL.Check(x.Body, x.Answer) {
				t.Error(wrong)
			}
			return
		}
		for _, wrong := range described.Check(apishape.Call(x)) {
			t.Error(wrong)
		}
	}
}

func newForgeHarness(t *testing.T, o emulator.RepoOptions) *forgeHarness {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Now: c.Now, WholeSeconds: true, Record: checkShape(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w := &forgeHarness{Forge: f, t: t, ctx: ctx, clock: c}
	for _, login := range []string{"ada", "grace", "linus", "mallory"} {
		w.must(f.AddUser(login, login+"-token", emulator.UserOptions{}))
	}
	w.must(f.AddUser("liftlock", "liftlock-token", emulator.UserOptions{Bot: true}))
	if o.Files == nil {
		o.Files = map[string]string{"web/dev.yaml": "tag: 1\n", "web/qa.yaml": "tag: 1\n"}
	}
	o.Author = "ada"
	o.Access = map[string]emulator.Permission{
		"ada": emulator.Admin, "liftlock": emulator.Admin, "grace": emulator.Write, "linus": emulator.Write,
	}
	w.must(f.CreateRepo(repo, o))
	return w
}

func (f *forgeHarness) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// clientOf is go-github's own client, signed in as a person.
func (f *forgeHarness) clientOf(login string) *github.Client {
	f.t.Helper()
	c, err := github.NewClient(nil).WithAuthToken(login+"-token").WithEnterpriseURLs(f.URL(), f.URL())
	f.must(err)
	return c
}

func (f *forgeHarness) commitFiles(branch string, files map[string]string) string {
	f.t.Helper()
	sha, err := f.CommitAs(repo, "grace", branch, "Change "+branch, files)
	f.must(err)
	return sha
}

// openPullRequest opens a pull request of liftlock's that changes one file.
func (f *forgeHarness) openPullRequest(branch string) int {
	f.t.Helper()
	f.commitFiles(branch, map[string]string{"web/qa.yaml": "tag: " + branch + "\n"})
	n, err := f.OpenPull(repo, "liftlock", branch, "main", "Promote "+branch, "")
	f.must(err)
	return n
}

// wantRefused checks status and words of a refusal as go-github understood it.
func wantRefused(t *testing.T, err error, status int, words string) {
	t.Helper()
	var e *github.ErrorResponse
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal with %d", err, status)
	}
	all := e.Message
	for _, d := range e.Errors {
		all += " | " + d.Resource + " " + d.Field + " " + d.Code + " " + d.Message
	}
	if e.Response.StatusCode != status || !strings.Contains(all, words) {
		t.Fatalf("got %d %q, want %d with %q", e.Response.StatusCode, all, status, words)
	}
}

func TestRest_identityAndPermissions(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	me, res, err := w.clientOf("liftlock").Users.Get(w.ctx, "")
	w.must(err)
	if me.GetLogin() != "liftlock" || me.GetType() != "Bot" {
		t.Errorf("me is %s, a %s", me.GetLogin(), me.GetType())
	}
	if res.Header.Get("X-GitHub-Request-Id") == "" || res.Rate.Limit != emulator.DefaultRateLimit || res.Rate.Remaining != emulator.DefaultRateLimit-1 {
		t.Errorf("headers of a call: %v", res.Header)
	}
	if _, _, err = w.clientOf("nobody").Users.Get(w.ctx, ""); err != nil {
		wantRefused(t, err, 401, "Bad credentials")
	}
	r, _, err := w.clientOf("grace").Repositories.Get(w.ctx, "acme", "fleet")
	w.must(err)
	if r.GetFullName() != repo || r.GetDefaultBranch() != "main" || !strings.HasSuffix(r.GetCloneURL(), "/acme/fleet.git") || !r.GetPermissions()["push"] {
		t.Errorf("repository: %v", r)
	}
	_, _, err = w.clientOf("mallory").Repositories.Get(w.ctx, "acme", "fleet")
	wantRefused(t, err, 404, "Not Found")

	for login, want := range map[string]string{"ada": "admin", "grace": "write", "mallory": "none"} {
		p, _, err := w.clientOf("liftlock").Repositories.GetPermissionLevel(w.ctx, "acme", "fleet", login)
		w.must(err)
		if p.GetPermission() != want {
			t.Errorf("%s has %s, want %s", login, p.GetPermission(), want)
		}
	}
	_, _, err = w.clientOf("liftlock").Repositories.GetPermissionLevel(w.ctx, "acme", "fleet", "stranger")
	wantRefused(t, err, 404, "Not Found")

	w.must(w.SetToken("grace", "grace-token", "read:user"))
	_, _, err = w.clientOf("grace").Issues.CreateComment(w.ctx, "acme", "fleet", 1, &github.IssueComment{Body: github.String("hello")})
	wantRefused(t, err, 403, "Resource not accessible")
}

func TestRest_withoutCredentials(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	c, err := github.NewClient(nil).WithEnterpriseURLs(w.URL(), w.URL())
	w.must(err)
	_, _, err = c.Users.Get(w.ctx, "")
	wantRefused(t, err, 401, "Requires authentication")
}

func TestRest_unchangedAnswersAre304AndFree(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("one")
	c := w.clientOf("liftlock")
	get := func(tag string) *github.Response {
		req, err := c.NewRequest("GET", "repos/acme/fleet/pulls?state=all", nil)
		w.must(err)
		req.Header.Set("If-None-Match", tag)
		res, err := c.BareDo(w.ctx, req)
		if res == nil {
			t.Fatal(err)
		}
		w.must(res.Body.Close())
		return res
	}
	first := get("")
	again := get(first.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || again.Rate.Remaining != first.Rate.Remaining {
		t.Errorf("again: %d with %d calls left, want 304 with %d", again.StatusCode, again.Rate.Remaining, first.Rate.Remaining)
	}
	w.must(w.AddLabel(repo, n, "ada", "liftlock"))
	if changed := get(first.Header.Get("ETag")); changed.StatusCode != http.StatusOK {
		t.Errorf("after a change: %d, want 200", changed.StatusCode)
	}
	if got := w.Calls()["GET /repos/{owner}/{repo}/pulls"]; got != 3 {
		t.Errorf("%d calls were counted, want 3: %v", got, w.Calls())
	}
}

func TestRest_rateLimit(t *testing.T) {
	c := &clock{now: time.Now()}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Now: c.Now, RateLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &forgeHarness{Forge: f, t: t, ctx: context.Background(), clock: c}
	w.must(f.AddUser("ada", "ada-token", emulator.UserOptions{}))
	_, _, err = w.clientOf("ada").Users.Get(w.ctx, "")
	w.must(err)
	_, _, err = w.clientOf("ada").Users.Get(w.ctx, "")
	var limit *github.RateLimitError
	if !errors.As(err, &limit) || limit.Rate.Reset.Before(c.Now()) {
		t.Fatalf("got %v, want a rate limit with a reset in the future", err)
	}
	c.Add(time.Hour)
	_, _, err = w.clientOf("ada").Users.Get(w.ctx, "")
	w.must(err)
}

// TestCloseAwaitsRequests holds that nothing is written any more once a forge is closed: who
// started it removes its folder then.
func TestCloseAwaitsRequests(t *testing.T) {
	serving, goOn, served := make(chan struct{}), make(chan struct{}), false
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Record: func(emulator.Exchange) {
		close(serving)
		<-goOn
		served = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if resp, err := http.Get(f.APIURL() + "/user"); err == nil { // its connection is broken, most likely
			_ = resp.Body.Close()
		}
	}()
	<-serving
	go func() {
		for { // until the server is closed
			c, err := net.Dial("tcp", strings.TrimPrefix(f.URL(), "http://"))
			if err != nil {
				break
			}
			_ = c.Close()
		}
		close(goOn)
	}()
	if err := f.Close(); err != nil || !served {
		t.Errorf("it is closed (%v) before what it serves is over", err)
	}
}
