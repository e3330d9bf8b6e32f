package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

const (
	hiddenRepo = "hub:Acme/vault"
	// marker is in all that is of the hidden repository, but for the names that a request has to give.
	marker = "hushhush"
)

// vaultRules: the token oncall alone, and the group vault, read the hidden repository.
func vaultRules() *Readers {
	return &Readers{Rules: []ReaderRule{{Repositories: []string{"acme/vault"}, Groups: []string{"vault"}, Tokens: []string{"oncall"}}}}
}

// seedHidden puts a repository into the store, with something of every kind, and returns the ID of
// its promotion.
func (tc *testConsole) seedHidden() (id int64) {
	tc.t.Helper()
	ctx := tc.t.Context()
	tc.holds = map[string][]promotion.Hold{"safe": {{Scope: "component", By: marker, Reason: marker, At: before(time.Hour)}}}
	tc.teams = map[string]string{"safe": marker}
	dev, prod := env("dev", promotion.Verified, marker+"-2", time.Hour, 1), env("prod", promotion.Degraded, marker+"-1", 2*time.Hour, 1)
	prod.Reason, prod.LandedPull = marker, 77
	prod.Why = []promotion.Reason{{Code: "unverified", Text: marker}}
	tc.unit(hiddenRepo, "vaulted", "safe", marker+" is broken", dev, prod)
	tc.unit(hiddenRepo, "shop", "safe", "", dev, prod) // of the same name as one that everybody sees
	tc.must(tc.store.PutPulls(ctx, store.Pull{Repo: hiddenRepo, Number: 77, Branch: "liftlock/x/77", State: "open", UpdatedAt: now,
		Data: mustJSON(map[string]any{"pr": map[string]any{"Number": 77, "Title": marker, "URL": "https://git.example/" + marker + "/pulls/77"}})}))
	unit := hiddenRepo + "|vaulted|safe"
	for _, kind := range []string{"promotion", "revert"} {
		tc.putRecord(func(tx *store.Tx) (err error) {
			id, err = tx.PutPromotion(ctx, store.Promotion{Unit: unit, Repo: hiddenRepo, Pipeline: "vaulted", Component: "safe", Environment: "prod", Kind: kind,
				Release: releaseID(marker + "-1"), Pull: 77, State: "open", CreatedAt: before(time.Hour), UpdatedAt: before(time.Hour)})
			return err
		})
	}
	tc.putRecord(func(tx *store.Tx) error {
		_, err := tx.PutArrival(ctx, store.Arrival{Unit: unit, Environment: "prod", Release: releaseID(marker + "-1"), Commit: prod.Commit, At: before(time.Hour),
			Data: mustJSON(map[string]any{"by": promotion.ByPerson, "author": marker, "content": map[string]any{"fields": []fieldedit.Field{{Kind: "image", File: marker, Path: marker, Value: marker}}}})})
		return err
	})
	tc.must(tc.store.PutRecord(ctx, stored.RevertReasons.Key(record.OfPull(hiddenRepo, 77)), mustJSON(stored.RevertReason{By: marker, Reason: marker})))
	tc.hiddenEvent()
	for i, verb := range []string{string(command.Skip), string(command.Hold)} {
		tc.must(tc.store.AddAudit(ctx, store.Audit{Actor: marker, Via: "comment", Verb: verb, Subject: unit + " #77 " + verb, Environment: "prod", Reason: marker, Outcome: carriedOut, Source: fmt.Sprint("s", i), At: before(time.Minute)}))
	}
	tc.must(tc.store.AddAudit(ctx, store.Audit{Actor: marker, Via: "comment", Verb: string(command.Hold), Subject: marker + " of no known form", Outcome: carriedOut, Source: "odd", At: before(time.Minute)}))
	tc.troubles = []api.Trouble{{Part: "fetching " + marker, Message: marker, Repository: hiddenRepo}, {Part: "key " + marker, Message: marker}, {Part: "argocd hub", Message: "is away", General: true}}
	tc.compared = func(repo, _ string) (*api.Differences, error) {
		none := []api.Difference{}
		if repo != hiddenRepo {
			return &api.Differences{Missing: none, Extra: none, Different: none}, nil
		}
		return &api.Differences{Missing: []api.Difference{{Name: marker}}, Extra: none, Different: none}, nil
	}
	tc.rendered = func(p store.Promotion) (*api.RenderedDiff, error) {
		d := &api.RenderedDiff{Targets: []api.TargetsDiff{}}
		if p.Repo == hiddenRepo {
			d.Files = []string{marker}
		}
		return d, nil
	}
	return id
}

func (tc *testConsole) hiddenEvent() {
	tc.t.Helper()
	_, err := tc.store.AddEvents(tc.t.Context(), store.Event{At: now, Repo: hiddenRepo, Pipeline: "vaulted", Component: "safe", Environment: "prod", Pull: 77, Kind: "opened", Message: marker})
	tc.must(err)
}

// TestHiddenRepositoryIsAbsent walks every route, as a user who may not read a repository. Nothing
// of it is in any answer, and a request that names it is answered as for a missing one.
func TestHiddenRepositoryIsAbsent(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken, o.Readers = true, vaultRules() })
	w.seed()
	id := w.seedHidden()
	c, err := New(w.options)
	w.must(err)
	const absent = 987654
	addresses := func(path string) map[string]string { // what names the hidden one, by what names nothing
		out := map[string]string{}
		for _, query := range []string{"", "?repository=" + url.QueryEscape(hiddenRepo), "?repository=" + url.QueryEscape(hiddenRepo) + "&pipeline=vaulted&component=safe",
			"?pipeline=vaulted&component=safe&environment=prod", "?component=safe&from=dev&to=prod", "?format=jsonl", "?q=safe", "?pull=77",
			"?repository=" + url.QueryEscape(hiddenRepo) + "&pipeline=vaulted&component=safe&environment=prod&release=" + releaseID(marker+"-1")} {
			for _, pipeline := range []string{"vaulted", "shop"} {
				fill := func(pipeline, component string, id int64) string {
					return strings.NewReplacer("{$}", "", "{pipeline}", pipeline, "{component}", component, "{id}", fmt.Sprint(id), "{name}", "console.js", "{verb}", "hold").Replace(path)
				}
				named := fill(pipeline, "safe", id) + query
				nothing := strings.NewReplacer("vaulted", "vaultex", "safe", "safx", "vault&", "vaulx&", "pull=77", "pull=78").Replace(fill(pipeline, "safe", absent) + query + "&")
				out[named] = strings.TrimSuffix(nothing, "&")
			}
		}
		return out
	}
	normalise := func(body string) string {
		body = strings.NewReplacer("vaultex", "vaulted", "safx", "safe", "vaulx", "vault", fmt.Sprint(absent), fmt.Sprint(id)).Replace(body)
		return body
	}
	shown := 0
	for _, r := range c.Routes() {
		if r.Path == "/api/v1/events" || r.Path == "/live" {
			continue // see TestStreamsOfHiddenRepositories
		}
		for named, nothing := range addresses(r.Path) {
			body := ""
			if r.Method == http.MethodPost {
				body = `{"reason":"because"}`
				if strings.Contains(r.Path, "/pipelines/") {
					body = `{"scope":"pipeline","repository":"` + hiddenRepo + `","reason":"because"}`
				}
			}
			for _, token := range []string{"see", "do"} {
				status, _, got := w.request(r.Method, named, body, bearer(token))
				if strings.Contains(got, marker) {
					t.Errorf("%s %s with the token %q tells of the hidden repository: %d\n%s", r.Method, named, token, status, got)
				}
				if !strings.Contains(r.Path, "{id}") && !strings.Contains(named, "vaulted") {
					continue
				}
				wantStatus, _, want := w.request(r.Method, nothing, strings.Replace(body, hiddenRepo, "hub:Acme/vaulx", 1), bearer(token))
				// Which of several unknown parameters is named first is chance.
				if status != wantStatus || strings.HasPrefix(r.Path, "/api/") && status != http.StatusBadRequest && got != normalise(want) {
					t.Errorf("%s %s with the token %q: %d\n%s\nwhat isn't there (%s): %d\n%s", r.Method, named, token, status, got, nothing, wantStatus, want)
				}
			}
			if r.Method != http.MethodPost {
				if _, _, got := w.request(r.Method, named, "", bearer("break")); strings.Contains(got, marker) {
					shown++
				}
			}
		}
	}
	if len(w.commands) != 0 {
		t.Errorf("commands on the hidden repository were taken: %+v", w.commands)
	}
	if shown < 30 {
		t.Errorf("who may read it sees it at %d addresses only; what does this test ask?", shown)
	}
	// A repository that everybody reads is there all the same.
	for path, want := range map[string]string{"/": "cart", "/api/v1/pipelines": "lake", "/api/v1/promotions": "hub:acme/fleet", "/overview": "cart"} {
		if status, _, body := w.request("GET", path, "", bearer("see")); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %s", path, status, want)
		}
	}
	if _, _, body := w.request("GET", "/api/v1/pipelines", "", bearer("see")); !strings.Contains(body, "argocd hub") {
		t.Error("a trouble of no repository isn't told")
	}
}

func TestOpenConsoleHidesNamedRepositories(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Readers = vaultRules() })
	w.seed()
	w.seedHidden()
	for _, path := range []string{"/", "/api/v1/pipelines", "/api/v1/promotions", "/audit", "/overview"} {
		if status, _, body := w.get(path); status != 200 || strings.Contains(body, marker) || strings.Contains(body, "vaulted") {
			t.Errorf("%s, for anybody: %d\n%s", path, status, body)
		}
		if _, _, body := w.request("GET", path, "", bearer("break")); !strings.Contains(body, marker) && !strings.Contains(body, "vaulted") {
			t.Errorf("%s, for whom the rule names, lacks it", path)
		}
	}
}

func TestMetricsNeedAllRepositories(t *testing.T) {
	w := openTestConsole(t)
	w.options.ReadToken, w.options.Readers = true, vaultRules()
	c, err := New(w.options)
	w.must(err)
	h := c.ReadersOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, marker) }))
	for token, want := range map[string]int{"": http.StatusUnauthorized, "see": http.StatusForbidden, "do": http.StatusForbidden, "break": http.StatusOK} {
		r, err := http.NewRequest(http.MethodGet, "/metrics", nil)
		w.must(err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		rec := serve(h, r)
		if rec.Code != want || want != 200 && strings.Contains(rec.Body.String(), marker) || c.MayRead(r) != (want == 200) {
			t.Errorf("with the token %q: %d, may read all: %t", token, rec.Code, c.MayRead(r))
		}
	}
}

// follow reads a stream until a line has a text; it returns all that came until then.
func (tc *testConsole) follow(t *testing.T, path, token string) (until func(text string) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, tc.url+path, nil)
	tc.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	tc.must(err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewReader(resp.Body)
	return func(text string) string {
		t.Helper()
		var all strings.Builder
		for !strings.Contains(all.String(), text) {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%s ends without %q: %v\n%s", path, text, err, all.String())
			}
			all.WriteString(line)
		}
		return all.String()
	}
}

func TestStreamsOfHiddenRepositories(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken, o.Readers, o.Poll = true, vaultRules(), 10*time.Millisecond })
	w.seed()
	w.seedHidden()
	for i := range 2 * eventsAtOnce { // more than are read at once
		_, err := w.store.AddEvents(t.Context(), store.Event{At: now, Repo: hiddenRepo, Pipeline: "vaulted", Component: "safe", Kind: "opened", Message: fmt.Sprint(marker, i)})
		w.must(err)
	}
	w.event("web", "prod", "merged", 14, 0, "the last one so far")
	events := w.follow(t, "/api/v1/events?after=0", "see")
	if got := events("the last one so far"); strings.Contains(got, marker) || !strings.Contains(got, "takes #16 back") {
		t.Errorf("what happened: %s", got)
	}
	w.hiddenEvent()
	w.event("web", "prod", "verified", 14, 0, "news for everybody")
	if got := events("news for everybody"); strings.Contains(got, marker) {
		t.Errorf("what happens: %s", got)
	}
}

// forgeRights is what a forge says, and how often it was asked.
type forgeRights struct {
	mu    sync.Mutex
	may   map[string]bool // by account
	err   error
	calls int
}

func (f *forgeRights) mayRead(_ context.Context, repo, account string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.may[account] && repo == hiddenRepo, f.err
}

func (f *forgeRights) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func TestForgeDecidesReading(t *testing.T) {
	f := &forgeRights{may: map[string]bool{"ada-l": true}}
	w := newLoginConsole(t, func(o *Options) {
		o.ReadToken = true
		o.Readers = &Readers{Rules: []ReaderRule{{Repositories: []string{"hub:acme/v*"}, Groups: []string{"vault"}, Forge: true}}, OnForge: f.mayRead}
	})
	w.seed()
	w.seedHidden()
	as := func(name, account string, groups ...string) *webBrowser {
		w.idp.With(func(p *logintest.Provider) {
			p.Change = func(m map[string]any) {
				if account != "" {
					m["nickname"] = account
				}
			}
		})
		return w.loggedIn(t, name, groups...)
	}
	sees := func(b *webBrowser) bool {
		status, body := b.open("/api/v1/pipelines/vaulted")
		if status != http.StatusOK && status != http.StatusNotFound {
			t.Fatalf("%d\n%s", status, body)
		}
		return status == http.StatusOK
	}
	ada, eve, guest, grace := as("ada", "ada-l"), as("eve", "eve-l"), as("guest", ""), as("grace", "grace-l", "vault")
	for name, c := range map[string]struct {
		b    *webBrowser
		want bool
	}{"who may on the forge": {ada, true}, "who may not": {eve, false}, "whose account isn't known": {guest, false}, "whose group is named": {grace, true}} {
		if got := sees(c.b); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	f.with(func() { f.calls = 0 })
	for range 10 {
		sees(ada)
		sees(eve)
	}
	if f.calls != 0 {
		t.Errorf("the forge was asked again %d times at once", f.calls)
	}
	// A right that was withdrawn is one no longer after five minutes, and what can't be asked isn't one.
	f.with(func() { f.may = map[string]bool{"eve-l": true} })
	w.advance(rightsKept)
	if sees(ada) || !sees(eve) {
		t.Error("rights go on that were withdrawn, or new ones aren't there")
	}
	f.with(func() { f.err = errors.New("the forge is away") })
	w.advance(rightsKept)
	if sees(eve) || !sees(grace) {
		t.Error("with the forge away it is shown, or isn't to the group")
	}
	f.with(func() { f.err = nil })
	w.advance(unknownKept)
	if !sees(eve) {
		t.Error("with the forge back it isn't shown")
	}
	// A page of theirs is followed with their rights.
	if _, body := eve.open("/pipelines/vaulted"); !strings.Contains(body, marker) {
		t.Error("the page isn't shown")
	}
	if status, body := ada.open("/act/pipelines/vaulted/hold"); status != http.StatusNotFound || strings.Contains(body, marker) {
		t.Errorf("a form about what isn't read: %d", status)
	}
}

func TestReaderRuleNames(t *testing.T) {
	for name, c := range map[string]struct {
		glob, repository string
		want             bool
	}{
		"by name":                 {"acme/vault", "hub:acme/vault", true},
		"in another case":         {"Acme/vault", "hub:acme/Vault", true},
		"with the forge":          {"hub:acme/vault", "hub:acme/vault", true},
		"with another forge":      {"lab:acme/vault", "hub:acme/vault", false},
		"of an owner":             {"acme/*", "hub:acme/vault", true},
		"not of an owner's group": {"acme/*", "lab:acme/team/vault", false},
		"of all below":            {"acme/**", "lab:acme/team/vault", true},
		"of a longer name":        {"acme/vault", "hub:acme/vault2", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&ReaderRule{Repositories: []string{c.glob}}).names(c.repository); got != c.want {
				t.Errorf("%s names %s: %t", c.glob, c.repository, got)
			}
		})
	}
}

// TestReadersUseTheReadableStore holds that readers see only what they may read. The store as a
// whole is used for sessions, for writing, and for reads that serve all readers at once.
func TestReadersUseTheReadableStore(t *testing.T) {
	whole := regexp.MustCompile(`(?:opts\.Store|store\.all|records\.all|, r\.store\.all)\b\.?(\w*)`)
	may := map[string][]string{
		"sessions.go":   {"BrowserSession", "SeeBrowserSession", "RotateBrowserSession", "BrowserSessions", "Tx"},
		"loginaudit.go": {"AddAudit", "Tx"}, "loginpages.go": {"BrowserSessions"},
		"events.go":    {"Subscribe", "SubscribeShown", "Events"}, // where a stream begins, and what all views are refreshed for
		"snapshot.go":  {"Events", ""},                            // the snapshot of all, which readable takes apart
		"available.go": {""},                                      // a part of it
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range whole.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(may[file], m[1]) {
				t.Errorf("%s: %s reads past readableStore", file, m[0])
			}
		}
	}
}

// serve has a handler answer a request.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}
