package emulator_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/emulator"
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

// world is a forge with a repository and three people: ada administers, grace
// writes, mallory is nobody here.
type world struct {
	*emulator.Forge
	t     *testing.T
	ctx   context.Context
	clock *clock
}

func newWorld(t *testing.T, o emulator.RepoOptions) *world {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Now: c.Now, WholeSeconds: true})
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
	w := &world{Forge: f, t: t, ctx: ctx, clock: c}
	for _, login := range []string{"ada", "grace", "linus", "mallory"} {
		w.ok(f.AddUser(login, login+"-token", emulator.UserOptions{}))
	}
	w.ok(f.AddUser("liftlock", "liftlock-token", emulator.UserOptions{Bot: true}))
	if o.Files == nil {
		o.Files = map[string]string{"web/dev.yaml": "tag: 1\n", "web/qa.yaml": "tag: 1\n"}
	}
	o.Author = "ada"
	o.Access = map[string]emulator.Permission{
		"ada": emulator.Admin, "liftlock": emulator.Admin, "grace": emulator.Write, "linus": emulator.Write,
	}
	w.ok(f.CreateRepo(repo, o))
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// as is go-github's own client, signed in as a person.
func (w *world) as(login string) *github.Client {
	w.t.Helper()
	c, err := github.NewClient(nil).WithAuthToken(login+"-token").WithEnterpriseURLs(w.URL(), w.URL())
	w.ok(err)
	return c
}

func (w *world) commit(branch string, files map[string]string) string {
	w.t.Helper()
	sha, err := w.CommitAs(repo, "grace", branch, "Change "+branch, files)
	w.ok(err)
	return sha
}

// pull opens a pull request of liftlock's that changes one file.
func (w *world) pull(branch string) int {
	w.t.Helper()
	w.commit(branch, map[string]string{"web/qa.yaml": "tag: " + branch + "\n"})
	n, err := w.OpenPull(repo, "liftlock", branch, "main", "Promote "+branch, "")
	w.ok(err)
	return n
}

// refused checks status and words of a refusal as go-github understood it.
func refused(t *testing.T, err error, status int, words string) {
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
	w := newWorld(t, emulator.RepoOptions{})
	me, res, err := w.as("liftlock").Users.Get(w.ctx, "")
	w.ok(err)
	if me.GetLogin() != "liftlock" || me.GetType() != "Bot" {
		t.Errorf("me is %s, a %s", me.GetLogin(), me.GetType())
	}
	if res.Header.Get("X-GitHub-Request-Id") == "" || res.Rate.Limit != emulator.DefaultRateLimit || res.Rate.Remaining != emulator.DefaultRateLimit-1 {
		t.Errorf("headers of a call: %v", res.Header)
	}
	if _, _, err = w.as("nobody").Users.Get(w.ctx, ""); err != nil {
		refused(t, err, 401, "Bad credentials")
	}
	r, _, err := w.as("grace").Repositories.Get(w.ctx, "acme", "fleet")
	w.ok(err)
	if r.GetFullName() != repo || r.GetDefaultBranch() != "main" || !strings.HasSuffix(r.GetCloneURL(), "/acme/fleet.git") || !r.GetPermissions()["push"] {
		t.Errorf("repository: %v", r)
	}
	_, _, err = w.as("mallory").Repositories.Get(w.ctx, "acme", "fleet")
	refused(t, err, 404, "Not Found")

	for login, want := range map[string]string{"ada": "admin", "grace": "write", "mallory": "none"} {
		p, _, err := w.as("liftlock").Repositories.GetPermissionLevel(w.ctx, "acme", "fleet", login)
		w.ok(err)
		if p.GetPermission() != want {
			t.Errorf("%s has %s, want %s", login, p.GetPermission(), want)
		}
	}
	_, _, err = w.as("liftlock").Repositories.GetPermissionLevel(w.ctx, "acme", "fleet", "stranger")
	refused(t, err, 404, "Not Found")

	w.ok(w.SetToken("grace", "grace-token", "read:user"))
	_, _, err = w.as("grace").Issues.CreateComment(w.ctx, "acme", "fleet", 1, &github.IssueComment{Body: github.String("hello")})
	refused(t, err, 403, "Resource not accessible")
}

func TestRest_withoutCredentials(t *testing.T) {
	w := newWorld(t, emulator.RepoOptions{})
	c, err := github.NewClient(nil).WithEnterpriseURLs(w.URL(), w.URL())
	w.ok(err)
	_, _, err = c.Users.Get(w.ctx, "")
	refused(t, err, 401, "Requires authentication")
}

func TestRest_unchangedAnswersAre304AndFree(t *testing.T) {
	w := newWorld(t, emulator.RepoOptions{})
	n := w.pull("one")
	c := w.as("liftlock")
	get := func(tag string) *github.Response {
		req, err := c.NewRequest("GET", "repos/acme/fleet/pulls?state=all", nil)
		w.ok(err)
		req.Header.Set("If-None-Match", tag)
		res, err := c.BareDo(w.ctx, req)
		if res == nil {
			t.Fatal(err)
		}
		w.ok(res.Body.Close())
		return res
	}
	first := get("")
	again := get(first.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || again.Rate.Remaining != first.Rate.Remaining {
		t.Errorf("again: %d with %d calls left, want 304 with %d", again.StatusCode, again.Rate.Remaining, first.Rate.Remaining)
	}
	w.ok(w.Label(repo, n, "ada", "liftlock"))
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
	w := &world{Forge: f, t: t, ctx: context.Background(), clock: c}
	w.ok(f.AddUser("ada", "ada-token", emulator.UserOptions{}))
	_, _, err = w.as("ada").Users.Get(w.ctx, "")
	w.ok(err)
	_, _, err = w.as("ada").Users.Get(w.ctx, "")
	var limit *github.RateLimitError
	if !errors.As(err, &limit) || limit.Rate.Reset.Before(c.Now()) {
		t.Fatalf("got %v, want a rate limit with a reset in the future", err)
	}
	c.Add(time.Hour)
	_, _, err = w.as("ada").Users.Get(w.ctx, "")
	w.ok(err)
}
