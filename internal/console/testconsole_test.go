package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// now is the tests' time.
var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

const testRepo = "hub:acme/fleet"

// testConsole is a console over a real store with a fleet in it.
type testConsole struct {
	t       testing.TB
	store   *store.Store
	options Options
	url     string

	holds map[string][]promotion.Hold // by component, of those that are put
	teams map[string]string           // likewise: whose label its Applications have

	mu       sync.Mutex
	commands []Command
	refuse   error
	troubles []api.Trouble
	compared func(repo, pipeline string) (*api.Differences, error)
	rendered func(store.Promotion) (*api.RenderedDiff, error)
}

// newTestConsole fills a store and serves it; change may be nil.
func newTestConsole(t testing.TB, change func(*Options)) *testConsole {
	t.Helper()
	w := openTestConsole(t)
	if change != nil {
		change(&w.options)
	}
	w.serve(func(h http.Handler) http.Handler { return h })
	return w
}

// serve serves it behind what wrap makes of it.
func (tc *testConsole) serve(wrap func(http.Handler) http.Handler) {
	tc.t.Helper()
	h, err := New(tc.options)
	tc.must(err)
	srv := httptest.NewServer(wrap(WithSecurityHeaders(h)))
	tc.t.Cleanup(srv.Close)
	tc.url = srv.URL
}

// openTestConsole is one that isn't served yet.
func openTestConsole(t testing.TB) *testConsole {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &testConsole{t: t, store: s}
	w.options = Options{
		Store: s, Health: w.health, Command: w.command, Differences: w.differences, Diff: w.diff, Version: "1.2.3", Now: func() time.Time { return now }, Log: zaptest.NewLogger(t),
		Tokens: []Token{{Name: "reader", Role: command.RoleViewer, Secret: "see"}, {Name: "ci", Role: command.RoleOperator, Secret: "do"}, {Name: "oncall", Role: command.RoleBreakGlass, Secret: "break"}},
	}
	return w
}

func (tc *testConsole) health(context.Context) []api.Trouble {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	return append([]api.Trouble(nil), tc.troubles...)
}

func (tc *testConsole) command(_ context.Context, o Command) (string, error) {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	if tc.refuse != nil {
		return "", tc.refuse
	}
	tc.commands = append(tc.commands, o)
	return string(o.Verb) + " noted", nil
}

func (tc *testConsole) differences(_ context.Context, repo, pipeline string) (*api.Differences, error) {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	return tc.compared(repo, pipeline)
}

func (tc *testConsole) diff(_ context.Context, p store.Promotion) (*api.RenderedDiff, error) {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	return tc.rendered(p)
}

func (tc *testConsole) must(err error) {
	tc.t.Helper()
	if err != nil {
		tc.t.Fatal(err)
	}
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// releaseID makes a release's identity of its name.
func releaseID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// unit puts a judged unit into the store, whose environments come one after the other.
func (tc *testConsole) unit(repo, pipeline, component, broken string, envs ...promotion.EnvState) {
	tc.t.Helper()
	after := map[string][]string{}
	for i := 1; i < len(envs); i++ {
		after[envs[i].Environment] = []string{envs[i-1].Environment}
	}
	tc.unitInGraph(repo, pipeline, component, broken, after, envs...)
}

// unitInGraph is unit for environments that come after others.
func (tc *testConsole) unitInGraph(repo, pipeline, component, broken string, after map[string][]string, envs ...promotion.EnvState) {
	tc.t.Helper()
	row := tc.unitRow(repo, pipeline, component, broken, after, envs...)
	tc.putRecord(func(tx *store.Tx) error { return tx.PutUnit(tc.t.Context(), row) })
}

func (tc *testConsole) unitRow(repo, pipeline, component, broken string, after map[string][]string, envs ...promotion.EnvState) store.Unit {
	var shape []map[string]any
	for _, e := range envs {
		targets := map[string]any{}
		for name := range e.Targets {
			targets[name] = map[string]any{"id": "hub/argocd/" + component + "-" + name, "cluster": "cluster-of-" + name, "applicationSet": pipeline}
			if team := tc.teams[component]; team != "" {
				targets[name].(map[string]any)["labels"] = map[string]string{"team": team, "app": component, "tier": strings.TrimSuffix(name[:min(4, len(name))], "-")}
			}
		}
		shape = append(shape, map[string]any{"name": e.Environment, "after": after[e.Environment], "targets": targets})
	}
	v := map[string]any{"environments": shape, "holds": tc.holds[component], "unit": promotion.Unit{Repo: repo, Pipeline: pipeline, Component: component}, "at": before(40 * time.Second),
		"tip": releaseID("tip")[:40], "broken": broken, "decision": map[string]any{"envs": envs}}
	raw := mustJSON(v)
	return store.Unit{Key: repo + "|" + pipeline + "|" + component, Repo: repo, Pipeline: pipeline, Component: component,
		Digest: releaseID(string(raw)), UpdatedAt: now, Data: raw}
}

// env makes an environment's state with healthy targets.
func env(name, state, release string, since time.Duration, targets int) promotion.EnvState {
	e := promotion.EnvState{Environment: name, State: state, Promotion: promotion.Idle, Release: releaseID(release), Name: release,
		Since: before(since), Commit: releaseID(name + release)[:40], Targets: map[string]promotion.TargetView{}}
	for i := range targets {
		e.Targets[fmt.Sprintf("%s-%c", name, 'a'+i)] = promotion.TargetView{State: "verified", Reason: "synced and healthy", Since: before(since / 2)}
	}
	e.Reason = fmt.Sprintf("synced and healthy on %d targets", targets)
	if state == promotion.Baseline {
		e.Reason = "was there before the pipeline came in; it is not moved by itself"
	}
	return e
}

// gates sets an environment's gates from their JSON.
func gates(e *promotion.EnvState, raw string) {
	if err := json.Unmarshal([]byte(raw), &e.Gates); err != nil {
		panic(err)
	}
}

// pullRequest puts a pull request into the store.
func (tc *testConsole) pullRequest(number int, title string) {
	tc.t.Helper()
	tc.must(tc.store.PutPulls(tc.t.Context(), store.Pull{Repo: testRepo, Number: number, Branch: fmt.Sprintf("liftlock/x/%d", number), State: "open", UpdatedAt: now,
		Data: mustJSON(map[string]any{"pr": map[string]any{"Number": number, "Title": title, "URL": fmt.Sprintf("https://git.example/acme/fleet/pulls/%d", number)}})}))
}

func (tc *testConsole) promotion(component, environment, kind, release, state string, pull int, age time.Duration) int64 {
	tc.t.Helper()
	var n int64
	tc.putRecord(func(tx *store.Tx) (err error) {
		n, err = tx.PutPromotion(tc.t.Context(), store.Promotion{Unit: testRepo + "|shop|" + component, Repo: testRepo, Pipeline: "shop", Component: component,
			Environment: environment, Kind: kind, Release: releaseID(release), Pull: pull, State: state, CreatedAt: before(age), UpdatedAt: before(age / 2)})
		return err
	})
	return n
}

func (tc *testConsole) event(component, environment, kind string, pull int, age time.Duration, message string) {
	tc.t.Helper()
	_, err := tc.store.AddEvents(tc.t.Context(), store.Event{At: before(age), Repo: testRepo, Pipeline: "shop", Component: component, Environment: environment, Pull: pull, Kind: event.Kind(kind), Message: message})
	tc.must(err)
}

// cartEvidence is why cart's promotion is taken back from qa.
func cartEvidence() promotion.Evidence {
	yes, no := true, false
	return promotion.Evidence{
		Component: "cart", Environment: "qa", Pull: 16, Commit: releaseID("qa2.3.0")[:40], Release: releaseID("2.3.0"), Name: "2.3.0", AllTargets: 2, Confidence: promotion.Guilty,
		Targets: []promotion.TargetEvidence{{
			Target: "qa-b", ArgoCD: "hub", Cluster: "eu-1", Reason: "Degraded for 31 s: Deployment cart: 0 of 3 replicas are available", Since: before(4 * time.Minute),
			Operation: &promotion.SyncInfo{StartedAt: before(12 * time.Minute), FinishedAt: before(11 * time.Minute), Phase: "Succeeded", InitiatedBy: "ada"},
			Resources: []promotion.ResourceEvidence{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "cart", Health: "Degraded", Message: "0 of 3 pods ready: Back-off restarting failed container", ChangedByPromotion: &yes},
				{Kind: "Service", Namespace: "shop", Name: "cart", Health: "Progressing", ChangedByPromotion: &no}},
			OtherTargets: []promotion.OtherTarget{{Application: "hub/argocd/stock-qa", Cluster: "eu-1", Health: "Degraded", Since: before(3 * time.Minute), RevisionChanged: &no}},
		}},
		RuledOut: []promotion.RuledOut{{Check: promotion.CheckOtherCommit, Answer: "no other commit has changed what the degraded targets read since"}},
	}
}

// webRuns is what web ran in qa when it was verified there.
func webRuns() *promotion.Runs {
	return &promotion.Runs{At: before(70 * time.Minute), OfPods: true, Images: []promotion.RunningImage{
		{Image: "registry.example/web:1.5.0", Digest: "sha256:" + releaseID("web"), Pods: 3, Since: before(79 * time.Minute), Landed: true},
		{Image: "registry.example/proxy:3", Pods: 3, Since: before(79 * time.Minute)}}}
}

func withRuns(t promotion.TargetView, runs *promotion.Runs) promotion.TargetView {
	t.Runs = runs
	return t
}

// seed puts the story into the store. It has a promotion that waits for approvals, one that
// degraded and is being reverted, a held one, a diverged prod, and a first day.
func (tc *testConsole) seed() {
	tc.t.Helper()
	ctx := tc.t.Context()
	for n, title := range map[int]string{12: "Promote web 1.5.0 to qa", 14: "Promote web 1.5.0 to prod", 16: "Promote cart 2.3.0 to qa", 17: "Revert cart 2.3.0 in qa", 19: "Promote mail v9 to qa"} {
		tc.pullRequest(n, title)
	}
	web := []promotion.EnvState{env("dev", promotion.Verified, "1.5.0", 3*time.Hour, 1), env("qa", promotion.Verified, "1.5.0", 80*time.Minute, 2), env("prod", promotion.Verified, "1.4.2", 9*24*time.Hour, 3)}
	web[1].LandedPull, web[1].LandedBy, web[1].VerifiedAt = 12, promotion.ByPromotion, before(70*time.Minute)
	drifted := web[1].Targets["qa-b"]
	drifted.Drift = &promotion.Drift{Since: before(25 * time.Minute), Total: 1}
	tc.must(json.Unmarshal([]byte(`[{"group":"apps","kind":"Deployment","namespace":"shop","name":"web","how":"missing"}]`), &drifted.Drift.Resources))
	drifted.Reason = "verified and healthy; it " + drifted.Drift.Describe()
	drifted.Runs = &promotion.Runs{At: before(70 * time.Minute), Images: []promotion.RunningImage{{Image: "registry.example/web:1.5.0", Landed: true}}}
	web[1].Targets["qa-b"] = drifted
	web[1].Targets["qa-a"] = withRuns(web[1].Targets["qa-a"], webRuns())
	p := &web[2]
	p.Promotion, p.Candidate, p.CandidateName, p.Pull, p.ReadySince = promotion.Opened, releaseID("1.5.0"), "1.5.0", 14, before(70*time.Minute)
	gates(p, `[{"gate":"approvals","outcome":"wait","reason":"1 of 2 approvals: grace","brief":"ada, edsger (1 of 2)","who":["ada","edsger"]}]`)
	tc.unit(testRepo, "shop", "web", "", web...)

	cart := []promotion.EnvState{env("dev", promotion.Verified, "2.3.0", 26*time.Minute, 1), env("qa", promotion.Degraded, "2.3.0", 12*time.Minute, 2), env("prod", promotion.Verified, "2.2.7", 30*24*time.Hour, 3)}
	cart[1].LandedPull, cart[1].LandedBy, cart[1].Revert = 16, promotion.ByPromotion, 17
	cart[1].Reason = "qa-b: Degraded for 31 s: Deployment cart: 0 of 3 replicas are available"
	cart[1].Targets["qa-b"] = promotion.TargetView{State: "degraded", Reason: "Degraded for 31 s: Deployment cart: 0 of 3 replicas are available", Since: before(4 * time.Minute)}
	cart[2].Why = []promotion.Reason{{Code: "quarantined", Text: "2.3.0 is being reverted from qa by #17"}}
	if err := json.Unmarshal([]byte(`[{"gate":"manual","outcome":"wait","reason":"onDegraded: revert leaves the merge to a person"}]`), &cart[1].RevertGates); err != nil {
		tc.t.Fatal(err)
	}
	tc.unit(testRepo, "shop", "cart", "", cart...)

	mail := []promotion.EnvState{env("dev", promotion.Verified, "v9", 5*time.Hour, 1), env("qa", promotion.Verified, "v8", 40*24*time.Hour, 2), env("prod", promotion.Diverged, "v8-hotfix", 6*time.Hour, 3)}
	mail[1].Promotion, mail[1].Candidate, mail[1].CandidateName, mail[1].Pull = promotion.Held, releaseID("v9"), "v9", 19
	gates(&mail[1], `[{"gate":"hold","outcome":"wait","brief":"by ada: waits for the new certificate","reason":"component mail is on hold by ada since 2026-03-02T08:10:00Z: waits for the new certificate; /liftlock unhold component lifts it"}]`)
	mail[2].Reason = "grace changed it by hand in 0c1f5be91d02; Liftlock leaves it alone until /liftlock promote prod"
	mail[2].Why = []promotion.Reason{{Code: "diverged", Text: mail[2].Reason}}
	tc.unit(testRepo, "shop", "mail", "", mail...)

	search := []promotion.EnvState{env("dev", promotion.Verifying, "0.31.0", 50*time.Second, 1), env("qa", promotion.Verified, "0.30.4", 2*24*time.Hour, 2), env("prod", promotion.Verified, "0.30.4", 26*time.Hour, 3)}
	search[0].Reason = "dev-a: waits for Argo CD to take 8b0d1f27a9c4"
	search[0].Targets["dev-a"] = promotion.TargetView{State: "arriving", Reason: "waits for Argo CD to take 8b0d1f27a9c4", Since: before(50 * time.Second)}
	search[1].Why = []promotion.Reason{{Code: "unverified", Text: "dev has not verified 0.31.0: dev-a: waits for Argo CD to take 8b0d1f27a9c4"}}
	tc.unit(testRepo, "shop", "search", "", search...)

	for i, name := range []string{"billing", "checkout", "images", "stock"} {
		v := fmt.Sprintf("4.%d.1", i)
		tc.unit(testRepo, "shop", name, "", env("dev", promotion.Baseline, v, 200*24*time.Hour, 1), env("qa", promotion.Baseline, v, 190*24*time.Hour, 2), env("prod", promotion.Baseline, fmt.Sprintf("4.%d.0", i), 220*24*time.Hour, 3))
	}
	tc.unit("hub:acme/data", "lake", "ingest", "", env("staging", promotion.Verified, "2026.9", 8*time.Hour, 1), env("live", promotion.Verified, "2026.9", 4*time.Hour, 4))

	tc.available("web", "dev", stored.AvailableVersion{Name: "registry.example/web", Version: "2.0.0", Since: before(4 * time.Minute), Reason: "held by rule: it is not in >=1.0.0 <2.0.0"},
		stored.AvailableVersion{Name: "registry.example/proxy", Version: "sha256:" + releaseID("proxy"), Since: before(3 * time.Hour), Reason: "it was reverted from qa by #17"})
	tc.available("billing", "dev", stored.AvailableVersion{Name: "registry.example/billing", Since: before(58 * time.Minute), Reason: "the registry can't answer now; it is asked again"})

	tc.promotion("web", "qa", "promotion", "1.5.0", "verified", 12, 2*time.Hour)
	tc.promotion("web", "prod", "promotion", "1.5.0", "open", 14, 70*time.Minute)
	tc.promotion("cart", "qa", "promotion", "2.3.0", "reverting", 16, 20*time.Minute)
	tc.promotion("cart", "qa", "revert", "2.3.0", "open", 17, 4*time.Minute)
	tc.promotion("mail", "qa", "promotion", "v9", "open", 19, 4*time.Hour)
	tc.must(tc.store.PutRecord(ctx, stored.RevertReasons.Key(record.OfPull(testRepo, 17)), mustJSON(stored.RevertReason{Evidence: []promotion.Evidence{cartEvidence()}})))
	tc.event("web", "dev", "landed", 0, 3*time.Hour, "1.5.0 is in dev (person, 5f0c2d41a7b3)")
	tc.event("web", "dev", "verified", 0, 3*time.Hour-2*time.Minute, "1.5.0 is verified in dev")
	tc.event("web", "qa", "opened", 12, 2*time.Hour, "#12 opened: 1.5.0 to qa")
	tc.event("web", "qa", "merged", 12, 80*time.Minute, "#12 merged into main as 9e107d9d372b")
	tc.event("web", "qa", "verified", 12, 70*time.Minute, "1.5.0 is verified in qa")
	tc.event("web", "prod", "opened", 14, 70*time.Minute, "#14 opened: 1.5.0 to prod")
	tc.event("cart", "qa", "opened", 16, 20*time.Minute, "#16 opened: 2.3.0 to qa")
	tc.event("cart", "qa", "merged", 16, 12*time.Minute, "#16 merged into main as 71b38f0a5be2")
	tc.event("cart", "qa", "degraded", 16, 4*time.Minute, "2.3.0 is degraded in qa")
	tc.event("cart", "qa", "revert-opened", 17, 4*time.Minute, "#17 opened: takes #16 back from qa")
	for _, a := range []struct {
		env, version, by, who string
		pull                  int
		at, verified          time.Duration
		commit                string
	}{
		{"prod", "1.4.2", promotion.ByBaseline, "", 0, 9 * 24 * time.Hour, 9 * 24 * time.Hour, web[2].Commit},
		{"dev", "1.4.2", promotion.ByPerson, "ada", 0, 8 * 24 * time.Hour, 8 * 24 * time.Hour, releaseID("dev1.4.2")[:40]},
		{"dev", "1.4.3", promotion.ByPerson, "edsger", 0, 26 * time.Hour, 0, releaseID("dev1.4.3")[:40]},
		{"dev", "1.5.0", promotion.ByPerson, "grace", 0, 3 * time.Hour, 2 * time.Hour, web[0].Commit},
		{"qa", "1.5.0", promotion.ByPromotion, "", 12, 80 * time.Minute, 70 * time.Minute, web[1].Commit},
	} {
		row := store.Arrival{Unit: testRepo + "|shop|web", Environment: a.env, Release: releaseID(a.version), Commit: a.commit, At: before(a.at)}
		if a.verified > 0 {
			row.VerifiedAt = before(a.verified)
		}
		row.Data = mustJSON(map[string]any{"by": a.by, "author": a.who, "pull": a.pull, "content": map[string]any{"fields": []fieldedit.Field{{Kind: "image", File: "kustomization.yaml", Path: "images[registry.example/web].newTag", Value: a.version}}}})
		tc.putRecord(func(tx *store.Tx) error {
			_, err := tx.PutArrival(ctx, row)
			return err
		})
	}
	observed := store.Observation{Unit: testRepo + "|shop|cart", Environment: "qa", Target: "qa-b", Data: mustJSON(map[string]any{
		"Commit": cart[1].Commit, "Timeline": []map[string]any{
			{"At": before(12 * time.Minute), "State": "arriving", "Note": "waits for Argo CD to take 71b38f0a5be2"},
			{"At": before(11 * time.Minute), "State": "progressing", "Note": "Progressing"},
			{"At": before(9 * time.Minute), "State": "soaking", "Note": "Healthy"},
			{"At": before(4 * time.Minute), "State": "degraded", "Note": "Deployment cart: 0 of 3 replicas are available"},
		}})}
	tc.putRecord(func(tx *store.Tx) error { return tx.PutObservations(ctx, observed) })
}

// available puts on record what registries have besides what a component has in an environment.
func (tc *testConsole) available(component, environment string, all ...stored.AvailableVersion) {
	tc.t.Helper()
	about := record.InUnit{Unit: record.Unit{Repo: testRepo, Pipeline: "shop", Component: component}, Name: environment}
	tc.must(stored.AvailableVersions.Put(tc.t.Context(), tc.store, about, stored.Available{Versions: all}))
}

func (tc *testConsole) putRecord(put func(tx *store.Tx) error) {
	tc.t.Helper()
	tc.must(tc.store.Tx(tc.t.Context(), "record", put))
}

// get asks for an address and returns the answer's status, headers and body.
func (tc *testConsole) get(path string) (int, http.Header, string) {
	tc.t.Helper()
	return tc.request(http.MethodGet, path, "", nil)
}
