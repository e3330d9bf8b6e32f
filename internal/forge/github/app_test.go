package github_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// appWorld is a forge with the App liftlock, and a clock for both of them.
type appWorld struct {
	*emulator.Forge
	t   *testing.T
	app registeredApp

	mu  sync.Mutex
	now time.Time
}

// newAppWorld makes a world where the App is installed in each of the organisations, which
// have a repository fleet.
func newAppWorld(t *testing.T, organisations ...string) *appWorld {
	t.Helper()
	return newAppWorldWith(t, emulator.ForgeOptions{}, organisations...)
}

// newAppWorldWith is newAppWorld over a forge with other options.
func newAppWorldWith(t *testing.T, options emulator.ForgeOptions, organisations ...string) *appWorld {
	t.Helper()
	w := &appWorld{t: t, now: time.Now().Truncate(time.Second)}
	options.Dir, options.Now = t.TempDir(), w.clock
	em, err := emulator.NewForge(options)
	w.must(err)
	w.Forge = em
	t.Cleanup(func() { w.must(em.Close()) })
	w.must(em.AddUser("linus", "linus-token", emulator.UserOptions{}))
	w.app = registerApp(t, em)
	w.app.now = w.clock
	for _, o := range organisations {
		w.addRepository(o + "/fleet")
		install(t, em, o)
	}
	return w
}

func (a *appWorld) addRepository(name string) {
	a.t.Helper()
	a.must(a.CreateRepo(name, emulator.RepoOptions{Author: "linus", Files: map[string]string{"README.md": "x\n"}, Access: map[string]emulator.Permission{"linus": emulator.Write}}))
}

func (a *appWorld) clock() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *appWorld) step(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.now.Add(d)
}

func (a *appWorld) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// driver is a driver for repositories, acme/fleet where none are named.
func (a *appWorld) driver(repos ...forge.Repo) *github.App {
	a.t.Helper()
	if len(repos) == 0 {
		repos = []forge.Repo{testRepoName}
	}
	return newApp(a.t, a.Forge, a.app, github.AppOptions{Repositories: repos})
}

// list makes a call for a repository.
func (a *appWorld) list(d *github.App, r forge.Repo) error {
	_, err := d.PullRequests(a.t.Context(), r, time.Time{})
	return err
}

const (
	tokenCall = "POST /app/installations/{id}/access_tokens"
	listCall  = "GET /app/installations"
	pullsCall = "GET /repos/{owner}/{repo}/pulls"
)

func (a *appWorld) wantCalls(what string, want map[string]int) {
	a.t.Helper()
	got := a.Calls()
	for call, n := range want {
		if got[call] != n {
			a.t.Errorf("%s: %d times %s, want %d", what, got[call], call, n)
		}
	}
	a.ResetCalls()
}

// TestAppTokens holds when tokens are exchanged: once for all callers, before their end, and
// when the forge takes one no more; nothing is done twice for it.
func TestAppTokens(t *testing.T) {
	w := newAppWorld(t, "acme")
	d := w.driver()
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := w.list(d, testRepoName); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.wantCalls("at first", map[string]int{tokenCall: 1, listCall: 1, pullsCall: 5})

	w.step(50 * time.Minute) // less than ten minutes: not enough for a long fetch
	_, token, err := d.GitAuth(t.Context(), testRepoName)
	w.must(err)
	w.wantCalls("before its end", map[string]int{tokenCall: 1})
	w.step(50 * time.Minute)
	if _, next, err := d.GitAuth(t.Context(), testRepoName); err != nil || next == token {
		t.Errorf("%v, or the same token", err)
	}
	w.ResetCalls()

	w.step(46 * time.Minute) // it can still be used: nobody waits for the next one
	w.must(w.list(d, testRepoName))
	tick, deadline := time.NewTicker(time.Millisecond), time.Now().Add(20*time.Second)
	defer tick.Stop()
	for w.Calls()[tokenCall] == 0 && time.Now().Before(deadline) {
		<-tick.C
	}
	w.wantCalls("in the background", map[string]int{tokenCall: 1, pullsCall: 1})

	// Git's own calls are seen by Git alone.
	w.step(time.Hour)
	_, token, err = d.GitAuth(t.Context(), testRepoName)
	w.must(err)
	for what, of := range map[string]string{"a token that isn't the present one": "ghs_other", "one that is hardly there": token} {
		if d.GitRefused(testRepoName, of) {
			t.Errorf("%s is given up", what)
		}
	}
	w.step(2 * time.Minute)
	if !d.GitRefused(testRepoName, token) {
		t.Error("what Git refuses is kept")
	}
	_, next, err := d.GitAuth(t.Context(), testRepoName)
	if err != nil || next == token {
		t.Errorf("%v, or the token that Git refuses", err)
	}
	if !d.GitRefused(testRepoName, token) || d.GitRefused(testRepoName, next) {
		t.Error("a second command that ran with it isn't tried again, or the next token is given up")
	}

	w.must(w.RevokeAppTokens("liftlock"))
	if _, err := w.CommitAs("acme/fleet", "linus", "topic", "Change", map[string]string{"a": "b\n"}); err != nil {
		t.Fatal(err)
	}
	w.ResetCalls()
	pr, created, err := d.CreatePullRequest(t.Context(), testRepoName, forge.NewPullRequest{Title: "T", Branch: "topic", Base: "main"})
	if err != nil || !created || pr.Author != "liftlock[bot]" {
		t.Fatalf("%+v, %v, %v", pr, created, err)
	}
	w.wantCalls("revoked", map[string]int{tokenCall: 1, "POST /repos/{owner}/{repo}/pulls": 2})
}

// TestAppScopes: a token is good for one repository of ours, and for no more than the
// permissions that are needed; others are only read.
func TestAppScopes(t *testing.T) {
	w := newAppWorld(t, "acme")
	w.addRepository("acme/web")
	d := w.driver()
	web := forge.Repo{Owner: "acme", Name: "web"}
	w.must(w.list(d, testRepoName))
	w.must(w.list(d, web))
	if _, err := w.CommitAs("acme/web", "linus", "topic", "Change", map[string]string{"a": "b\n"}); err != nil {
		t.Fatal(err)
	}
	_, _, err := d.CreatePullRequest(t.Context(), web, forge.NewPullRequest{Title: "T", Branch: "topic", Base: "main"})
	if !errors.Is(err, forge.ErrForbidden) || !strings.Contains(err.Error(), "pull_requests=write") {
		t.Errorf("writing to another repository: %v", err)
	}
	// A repository's own token doesn't even read another one.
	_, token, err := d.GitAuth(t.Context(), testRepoName)
	w.must(err)
	other, err := github.New(github.Options{URL: w.URL(), Token: token})
	w.must(err)
	if _, err := other.PullRequests(t.Context(), web, time.Time{}); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("with acme/fleet's token acme/web says %v", err)
	}
}

// TestAppClocks: a clock that is wrong is no reason to be refused twice.
func TestAppClocks(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Minute, 5 * time.Minute, -3 * time.Hour, 3 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			w := newAppWorld(t, "acme")
			w.app.now = func() time.Time { return w.clock().Add(skew) }
			d := w.driver()
			w.must(w.list(d, testRepoName))
			if refused := w.Calls()["GET /app"] - 1; refused > 1 {
				t.Errorf("refused %d times", refused)
			}
			w.ResetCalls()
			w.step(40 * time.Minute) // by either clock there are 20 minutes left
			w.must(w.list(d, testRepoName))
			w.wantCalls("later", map[string]int{tokenCall: 0, pullsCall: 1, listCall: 1})
		})
	}
}

// TestAppKeys: keys can be exchanged while Liftlock runs, in either order.
func TestAppKeys(t *testing.T) {
	w := newAppWorld(t, "acme")
	file := writeKey(t, w.app.PrivateKey)
	d := newApp(t, w.Forge, w.app, github.AppOptions{PrivateKeyFile: file, Repositories: []forge.Repo{testRepoName}})
	renew := func(what string) {
		t.Helper()
		w.step(2 * time.Hour)
		if err := w.list(d, testRepoName); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	renew("with the first key")
	second, err := w.AddAppKey("liftlock")
	w.must(err)
	w.must(os.WriteFile(file, slices.Concat(w.app.PrivateKey, second), 0o600))
	renew("with two")
	w.must(w.DropOldestAppKey("liftlock"))
	renew("with the first one deleted")

	third, err := w.AddAppKey("liftlock")
	w.must(err)
	block, _ := pem.Decode(third)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	w.must(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	w.must(err)
	w.must(w.DropOldestAppKey("liftlock"))
	w.must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	renew("with another file, of PKCS#8")

	w.must(os.WriteFile(file, []byte("half a fi"), 0o600))
	renew("with a file that is being written")
	w.must(os.WriteFile(file, second, 0o600))
	w.step(2 * time.Hour)
	err = w.list(d, testRepoName)
	if !errors.Is(err, forge.ErrUnauthorized) || !strings.Contains(err.Error(), "auth.app") {
		t.Errorf("with a key that is deleted: %v", err)
	}
	nobody := newApp(t, w.Forge, w.app, github.AppOptions{ID: "4711", Repositories: []forge.Repo{testRepoName}})
	if err := w.list(nobody, testRepoName); !errors.Is(err, forge.ErrUnauthorized) || !strings.Contains(err.Error(), "auth.app") {
		t.Errorf("with an ID that is no App's: %v", err)
	}
	for _, k := range [][]byte{nil, []byte("nonsense"), bytes.Repeat([]byte("x"), 1<<20)} {
		if err := github.ValidateKeys(k); err == nil || strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%.20q: %v", k, err)
		}
	}
	w.must(github.ValidateKeys(second))
}

// TestAppRests holds that where the App isn't installed, is suspended or isn't given the
// repository, nothing is called but the list, once a minute. It comes back by itself, or at once
// when it is told.
func TestAppRests(t *testing.T) {
	w := newAppWorld(t, "acme", "globex")
	globex := forge.Repo{Owner: "globex", Name: "fleet"}
	d := w.driver(testRepoName, globex)
	w.must(w.list(d, testRepoName))
	rests := func(what, words string) {
		t.Helper()
		err := w.list(d, testRepoName)
		if !errors.Is(err, forge.ErrNotInstalled) || !strings.Contains(err.Error(), words) || !forge.RetryAfter(err).After(w.clock()) {
			t.Errorf("%s: %v, again at %v", what, err, forge.RetryAfter(err))
		}
		w.ResetCalls()
		if _, _, err := d.GitAuth(t.Context(), testRepoName); !errors.Is(err, forge.ErrNotInstalled) {
			t.Errorf("%s: Git: %v", what, err)
		}
		if err := w.list(d, globex); err != nil {
			t.Errorf("%s: the other organisation: %v", what, err)
		}
	}
	works := func(what string) {
		t.Helper()
		if err := w.list(d, testRepoName); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if p := d.Problems(); len(p) != 0 {
			t.Errorf("%s: %v", what, p)
		}
	}
	w.must(w.SuspendApp("liftlock", "acme", true))
	rests("suspended", "suspended")
	w.wantCalls("suspended", map[string]int{listCall: 0, tokenCall: 1}) // globex's
	if p := d.Problems(); len(p) != 1 || p[0].Where != "acme" || !strings.Contains(p[0].Err.Error(), "suspended") {
		t.Errorf("problems: %v", p)
	}
	w.must(w.SuspendApp("liftlock", "acme", false))
	rests("nobody knows that it works again", "suspended")
	w.step(time.Minute)
	works("a minute later")

	w.must(w.UninstallApp("liftlock", "acme"))
	rests("taken away", "isn't installed in acme")
	install(t, w.Forge, "acme")
	d.InstallationChanged(0, "acme")
	works("installed again")
	w.must(w.UninstallApp("liftlock", "acme"))
	rests("taken away again", "isn't installed in acme")
	install(t, w.Forge, "acme")
	w.step(time.Minute)
	works("installed again, and nobody said so")

	w.must(w.GiveApp("liftlock", "acme", "fleet", false))
	d.InstallationChanged(0, "acme")
	rests("the repository is taken away", "isn't given acme/fleet")
	w.wantCalls("the repository is taken away", map[string]int{tokenCall: 0}) // globex keeps its own
	if p := d.Problems(); len(p) != 1 || p[0].Where != "acme/fleet" {
		t.Errorf("problems: %v", p)
	}
	w.must(w.GiveApp("liftlock", "acme", "fleet", true))
	d.InstallationChanged(0, "acme")
	works("given again")

	w.must(w.SetAppPermissions("liftlock", "acme", map[string]string{"metadata": "read", "contents": "read"}))
	d.InstallationChanged(0, "acme")
	w.must(w.list(d, globex))
	if p := d.Problems(); len(p) != 1 || !strings.Contains(p[0].Err.Error(), "pull_requests: write") || strings.Contains(p[0].Err.Error(), "members") {
		t.Errorf("without a permission: %v", p)
	}
}

// TestAppInstallationChanged holds that a change of one installation has nothing asked again of the
// others, and a stranger's change nothing at all. An installation is known by its owner, by the
// owner's former name and by its number.
func TestAppInstallationChanged(t *testing.T) {
	w := newAppWorld(t, "acme", "globex")
	install(t, w.Forge, "mallory")
	globex := forge.Repo{Owner: "globex", Name: "fleet"}
	d := w.driver(testRepoName, globex)
	callAll := func() {
		t.Helper()
		w.must(w.list(d, testRepoName))
		w.must(w.list(d, globex))
	}
	numberIn := func(owner string) int64 {
		t.Helper()
		id, err := w.AppInstallationID("liftlock", owner)
		w.must(err)
		return id
	}
	callAll()
	w.ResetCalls()
	for what, c := range map[string]struct {
		id     int64
		owner  string
		want   []forge.Repo
		tokens int
	}{
		"a stranger's":               {numberIn("mallory"), "mallory", nil, 0},
		"nobody's":                   {0, "", nil, 0},
		"ours, by the owner":         {0, "Acme", []forge.Repo{testRepoName}, 1},
		"ours, renamed to elsewhere": {numberIn("globex"), "globex-corp", []forge.Repo{globex}, 1},
	} {
		if got := d.InstallationChanged(c.id, c.owner); !slices.Equal(got, c.want) {
			t.Errorf("%s: it concerns %v, not %v", what, got, c.want)
		}
		callAll()
		w.wantCalls(what, map[string]int{tokenCall: c.tokens, listCall: c.tokens})
	}
}

// TestAppOfManyOrganisations: ten repositories in each of three.
func TestAppOfManyOrganisations(t *testing.T) {
	w := newAppWorld(t)
	var repos []forge.Repo
	for _, o := range []string{"acme", "globex", "initech"} {
		for n := range 10 {
			r := forge.Repo{Owner: o, Name: fmt.Sprintf("fleet-%d", n)}
			w.must(w.CreateRepo(r.String(), emulator.RepoOptions{}))
			repos = append(repos, r)
		}
		install(t, w.Forge, o)
	}
	w.must(w.SuspendApp("liftlock", "globex", true))
	d := w.driver(repos...)
	me, err := d.Me(t.Context())
	if want := fmt.Sprintf("%d+liftlock[bot]@users.noreply.127.0.0.1", me.ID); err != nil || me.Login != "liftlock[bot]" || !me.Bot || me.Email != want {
		t.Errorf("%+v, %v", me, err)
	}
	w.ResetCalls()
	for _, r := range repos {
		if err := w.list(d, r); errors.Is(err, forge.ErrNotInstalled) != (r.Owner == "globex") || err != nil && r.Owner != "globex" {
			t.Errorf("%s: %v", r, err)
		}
	}
	w.wantCalls("once around", map[string]int{tokenCall: 20, pullsCall: 20, listCall: 0})

	only := newApp(t, w.Forge, w.app, github.AppOptions{Owners: []string{"acme"}, Repositories: repos})
	if err := w.list(only, repos[29]); !errors.Is(err, forge.ErrNotInstalled) || !strings.Contains(err.Error(), "auth.app.installations") {
		t.Errorf("an owner who isn't in the list: %v", err)
	}
}

// TestAppTeams holds that members of a team count, directly or in one below it, and that invited
// people don't. Some teams have another name by now, the App may not see them, or their
// organisation hasn't installed the App. Then the answer is an error that says what to do, never
// "not a member".
func TestAppTeams(t *testing.T) {
	w := newAppWorld(t, "acme")
	for _, login := range []string{"ada", "grace", "rita"} {
		w.must(w.AddUser(login, login+"-token", emulator.UserOptions{}))
	}
	w.must(w.SetTeam("acme/sre", "", "ada"))
	w.must(w.SetTeam("acme/on-call", "acme/sre", "grace"))
	w.must(w.InviteToTeam("acme/sre", "rita"))
	w.must(w.SetTeam("globex/sre", "", "ada"))
	d := w.driver()
	sre, globex := forge.Team{Organisation: "acme", Name: "sre"}, forge.Team{Organisation: "globex", Name: "sre"}
	in := func(what string, team forge.Team, login string, want bool) {
		t.Helper()
		if got, err := d.IsTeamMember(t.Context(), team, login); err != nil || got != want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	unseen := func(what string, team forge.Team, words string) {
		t.Helper()
		got, err := d.IsTeamMember(t.Context(), team, "ada")
		if got || !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrForbidden) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	in("in it", sre, "ada", true)
	in("in one below it", sre, "grace", true)
	in("invited", sre, "rita", false)
	in("somebody else", sre, "linus", false)

	unseen("another organisation's, without the App", globex, "isn't installed in globex")
	install(t, w.Forge, "globex")
	w.step(time.Minute)
	in("another organisation's, with the App", globex, "ada", true)

	w.must(w.RenameTeam("acme/sre", "platform"))
	unseen("renamed", sre, "there is no team acme/sre")
	in("by its new name", forge.Team{Organisation: "acme", Name: "platform"}, "grace", true)
	w.must(w.RenameTeam("acme/platform", "sre"))

	granted := map[string]string{}
	for _, p := range github.Permissions() {
		if p.Name != "members" {
			granted[p.Name] = p.Level
		}
	}
	w.must(w.SetAppPermissions("liftlock", "acme", granted))
	d.InstallationChanged(0, "acme")
	unseen("without the permission", sre, "members")
	if err := w.list(d, testRepoName); err != nil {
		t.Errorf("everything else: %v", err)
	}
}

// TestAppOutage: while GitHub doesn't list installations, those that are known work on.
func TestAppOutage(t *testing.T) {
	w := newAppWorld(t, "acme")
	d := w.driver()
	w.must(w.list(d, testRepoName))
	w.must(w.InjectFault(emulator.Fault{Method: "GET", Path: "/app/installations", Status: 503, Times: 2}))
	w.step(11 * time.Minute)
	w.must(w.list(d, testRepoName))
	w.wantCalls("without the list", map[string]int{tokenCall: 1, listCall: 3, pullsCall: 2})
}

// TestAppManifest holds that the manifest asks for the driver's needs, and no more.
func TestAppManifest(t *testing.T) {
	m := github.NewManifest("Liftlock at Acme", "https://liftlock.example.com/", "hub", "", false)
	if m.HookAttributes.URL != "https://liftlock.example.com/webhooks/hub" || m.Public || len(m.Permissions) != len(github.Permissions()) {
		t.Errorf("%+v", m)
	}
	for _, p := range github.Permissions() {
		if p.Why == "" || m.Permissions[p.Name] != p.Level || p.Level != "read" && p.Level != "write" {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(m.Events, append(slices.Clone(github.DefaultEvents), "repository")) {
		t.Errorf("it is subscribed to %v", m.Events)
	}
	// The documentation has it too.
	docs, err := os.ReadFile("../../../docs/github-app.md")
	if err != nil {
		t.Fatal(err)
	}
	m.URL = "https://liftlock.example.com"
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range github.Permissions() {
		optional := ""
		if p.Optional {
			optional = " (may be left out)"
		}
		if row := fmt.Sprintf("| %s | %s | %s%s |", p.Name, p.Level, p.Why, optional); !strings.Contains(string(docs), row) {
			t.Errorf("docs/github-app.md has no row %s", row)
		}
	}
	if !strings.Contains(string(docs), string(text)) {
		t.Errorf("docs/github-app.md has not this manifest:\n%s", text)
	}
}
