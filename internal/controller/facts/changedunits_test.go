package facts

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

func (sto *story) snapshot() *branch.Snapshot {
	sto.t.Helper()
	s, err := sto.o.Targets.Snapshot(sto.ctx(), sto.repo)
	sto.must(err)
	return s
}

// TestChangedUnits says whom a push concerns: whose targets read what it changed, or did
// before, and who shares files with them since.
func TestChangedUnits(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "api", "job", "web")
	last := w.snapshot()
	set, err := w.repo.Mirror.Tree(w.head("main")).ReadFile("argocd/shop.yaml")
	w.must(err)
	all := []string{"api", "job", "web"}
	for _, step := range []struct {
		what  string
		files map[string]string
		want  []string
		all   bool
	}{
		{"docs", map[string]string{"README.md": "x"}, nil, false},
		{"a release", map[string]string{overlayFile("web", "dev"): overlayText("web", "1.1.0")}, []string{"web"}, false},
		{"a base", map[string]string{"base/api/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\n"}, []string{"api"}, false},
		{"it begins to read another's", map[string]string{overlayFile("job", "qa"): overlayText("job", "1.0.0") + "components: [../../../base/web]\n"}, []string{"job", "web"}, false},
		{"what both read", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web2}\n"}, []string{"job", "web"}, false},
		{"it ceases to read that", map[string]string{overlayFile("job", "qa"): overlayText("job", "1.0.0")}, []string{"job", "web"}, false},
		{"a folder stops being one", map[string]string{overlayFile("job", "dev"): "", overlayFile("job", "qa"): "", "apps/job": "x"}, []string{"job"}, false},
		{"and is one again", map[string]string{"apps/job": "", overlayFile("job", "dev"): overlayText("job", "1.0.0"), overlayFile("job", "qa"): overlayText("job", "1.0.0")}, all, false},
		{"a component comes", map[string]string{overlayFile("new", "dev"): overlayText("new", "1.0.0")}, []string{"new"}, false},
		{"a component goes", map[string]string{overlayFile("new", "dev"): ""}, []string{"new"}, false},
		{"other rules", map[string]string{".liftlock.yaml": storyPipeline("  limits: {mergesPerHour: 3}\n" + twoEnvs)}, all, false},
		{"broken rules", map[string]string{".liftlock.yaml": "spec: ["}, nil, true},
		{"mended rules", map[string]string{".liftlock.yaml": storyPipeline("  limits: {mergesPerHour: 3}\n" + twoEnvs)}, nil, true},
		{"a broken set", map[string]string{"argocd/shop.yaml": "spec: ["}, all, false},
		{"a mended set", map[string]string{"argocd/shop.yaml": string(set)}, all, false},
		{"another pipeline", map[string]string{".liftlock/more.yaml": strings.Replace(storyPipeline(twoEnvs), "{name: shop}", "{name: more}", 1), ".liftlock.yaml": "", ".liftlock/shop.yaml": storyPipeline(twoEnvs)}, nil, true},
	} {
		w.commit("ada", step.what, step.files)
		now := w.snapshot()
		units, whole, err := w.o.Targets.ChangedUnits(w.ctx(), last, now)
		w.must(err)
		var got []string
		for u := range units {
			if u.Repo != w.repo.ID || u.Pipeline != "shop" {
				t.Errorf("%s: %v", step.what, u)
			}
			got = append(got, u.Component)
		}
		slices.Sort(got)
		if !slices.Equal(got, step.want) || whole != step.all {
			t.Errorf("%s concerns %q (%v), want %q (%v)", step.what, got, whole, step.want, step.all)
		}
		last = now
	}
	w.commitTo("ada", "main", w.head("main"), "Once more", map[string]string{"README.md": "y"})
	gone := w.snapshot()
	w.commitTo("ada", "main", last.Commit, "Instead", map[string]string{"README.md": "z"})
	if units, whole, err := w.o.Targets.ChangedUnits(w.ctx(), gone, w.snapshot()); err != nil || !whole || units != nil {
		t.Errorf("the branch was rewritten: %v, %v, %v", units, whole, err)
	}
	units, whole, err := w.o.Targets.ChangedUnits(w.ctx(), last, last)
	if err != nil || whole || len(units) > 0 {
		t.Errorf("nothing changed: %v, %v, %v", units, whole, err)
	}
}

// TestChangedUnitsOnBranches says whom a push to an environment's own branch concerns.
func TestChangedUnitsOnBranches(t *testing.T) {
	c := newBranchRepo(t, nil)
	o := newTestGatherer(c)
	last := takeSnapshot(t, o, c)
	expect := func(what string, all bool, want ...string) {
		t.Helper()
		now := takeSnapshot(t, o, c)
		units, whole, err := o.Targets.ChangedUnits(t.Context(), last, now)
		var got []string
		for u := range units {
			got = append(got, u.Component)
		}
		slices.Sort(got)
		if err != nil || whole != all || !slices.Equal(got, want) {
			t.Errorf("%s concerns %q (%v), %v; want %q (%v)", what, got, whole, err, want, all)
		}
		last = now
	}
	c.checkoutBranch("env/qa")
	c.commit("env/qa", map[string]string{"apps/web/kustomization.yaml": "resources: [../../base]\nimages: [{name: x, newTag: '2'}]\n"})
	expect("a change on qa's branch", false, "web")
	c.remote.SetRef("refs/heads/env/qa", "")
	fetchMirror(t, c)
	expect("qa's branch is gone", true)
	expect("nothing", false)
	c.push("env/qa")
	expect("it is back", true)
}

// TestFindOrigins finds in one walk what each look would find for itself.
func TestFindOrigins(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	for i := range branch.LineChunk + 10 { // longer than one chunk
		if i%100 == 99 {
			w.release("ada", "dev", "0."+strings.Repeat("1", 1+i/100), "api")
		}
		w.commit("ada", "Docs", map[string]string{"docs": strings.Repeat("x", i)})
	}
	w.promote("1.1.0")
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment"})
	ev, d := w.evaluate("web", false)
	w.merge(w.openRevert(ev, d), "grace")
	w.release("ada", "dev", "1.2.0", "web")

	found := New(w.options)
	s, err := found.Targets.Snapshot(w.ctx(), w.repo)
	w.must(err)
	order, err := found.History.FindOrigins(w.ctx(), s)
	w.must(err)
	count := 0
	for component, u := range s.Pipeline("shop").Units {
		for env, at := range u.Envs {
			key := "hub:acme/fleet|shop|" + component + "|" + env
			now, err := found.Releases.ReadCurrent(w.repo, s.Commit, s.Pipeline("shop"), at)
			w.must(err)
			walked, err := New(w.options).History.FindOrigin(w.ctx(), w.repo, s.Commit, key, s.Pipeline("shop"), at, now)
			w.must(err)
			memo, ok := found.History.Origins.Get(key + "|" + s.Pipeline("shop").LocationOf(at).Key)
			want := walked.Origin
			if want.First { // what came with the pipeline is as old as that, whatever brought it
				want = history.Origin{}
			}
			if diff := cmp.Diff(want, memo.Origin); !ok || diff != "" || memo.Tip != s.Commit {
				t.Errorf("%s in %s (-walked +found):\n%s", component, env, diff)
			}
			if n := order[memo.Origin.Commit.SHA]; memo.Origin.Found && n == 0 {
				t.Errorf("%s, which brought %s to %s, has no number", memo.Origin.Commit.Subject, component, env)
			}
			reverted, ok := found.History.Reverted.Get(key + "|" + memo.Origin.Commit.SHA)
			if want := map[string]int{"web qa": 1}[component+" "+env]; !ok || len(reverted) != want {
				t.Errorf("reverted of %s in %s are %q", component, env, reverted)
			}
			count++
		}
	}
	if count != 4 || order[w.head("main")] <= order[ev.Snapshot.Commit] || order[ev.Snapshot.Commit] == 0 {
		t.Errorf("%d were found, and the newer has not the larger number: %d, %d", count, order[w.head("main")], order[ev.Snapshot.Commit])
	}
	ev, _ = w.evaluate("web", false)
	var past []string
	for _, most := range []int{5, 1} {
		list, err := w.o.History.FindPast(w.ctx(), &ev.Components[0].ComponentBasis, ev.Components[0].Env("dev"), most)
		w.must(err)
		for _, p := range list {
			past = append(past, p.Release.Name+" by "+p.Commit.Subject)
		}
	}
	if diff := cmp.Diff([]string{"1.1.0 by Release web 1.1.0 to dev", "1.1.0 by Release web 1.1.0 to dev"}, past); diff != "" {
		t.Errorf("what dev had (-want +got):\n%s", diff)
	}
}

// TestDifference compares the manifests of our pull requests, and says why it can't.
func TestDifference(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	refused := func(what string, pull int, env, component, want string) {
		t.Helper()
		var no *effects.NoDifferenceError
		if _, err := w.o.Effects.Difference(w.ctx(), w.repo, w.unit(component), env, pull); !errors.As(err, &no) || !strings.Contains(no.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	show := func(what string, pull int, landed bool) {
		t.Helper()
		d, err := w.o.Effects.Difference(w.ctx(), w.repo, w.unit("web"), "qa", pull)
		w.must(err)
		var effects []string
		for _, e := range d.Effects {
			effects = append(effects, e.Target.Name+" "+e.Why)
			if e.Changes == nil || len(e.Changes.Objects) != 1 || e.Changes.Objects[0].Kind != "Deployment" {
				t.Errorf("%s: %+v", what, e.Changes)
			}
		}
		info, err := w.repo.Mirror.Commit(w.ctx(), d.After)
		w.must(err)
		if !slices.Equal(effects, []string{"web-qa "}) || !slices.Equal(d.Files, []string{overlayFile("web", "qa")}) || d.Landed != landed || d.Before != info.Parents[0] || len(d.Problems) > 0 {
			t.Errorf("%s: %+v, %q", what, d, effects)
		}
	}
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	refused("not looked at", n, "qa", "web", "has not been looked at yet")
	refused("no such pull request", 99, "qa", "web", "nothing is known")
	refused("no such component", n, "qa", "nobody", "has no component nobody")
	refused("no such environment", n, "prod", "web", "in prod any more")
	w.evaluate("web", false)
	show("open", n, false)
	branch, ours := promotion.Branch("shop", "qa", "web"), w.refreshPull(n).Head
	w.commitTo("mallory", branch, w.head("main"), "Mine", map[string]string{overlayFile("web", "qa"): "resources: []\n"})
	w.refreshPull(n)
	refused("another head", n, "qa", "web", "has not been looked at yet")
	w.evaluate("web", false)
	refused("somebody else's head", n, "qa", "web", "What somebody else wrote is not rendered here")
	w.must(w.forge.Push(storyRepo, "ada", branch, ours, true))
	w.fetch()
	w.refreshPull(n)
	w.evaluate("web", false)
	landed := w.merge(n, "linus")
	show("merged", n, true)
	other, err := w.forge.OpenPull(storyRepo, "mallory", branch, "main", "Mine", "")
	if err == nil {
		w.refreshPull(other)
		refused("somebody else's", other, "qa", "web", "nothing is known")
	}
	row, _, err := w.store.Pull(w.ctx(), w.repo.ID, n)
	w.must(err)
	put := func(change func(*forge.PullRequest)) {
		t.Helper()
		known, err := w.o.PullCache.decodePull(row)
		w.must(err)
		pr := known.PR
		change(&pr)
		pr.UpdatedAt = pr.UpdatedAt.Add(time.Second)
		w.must(w.store.Tx(w.ctx(), "put", func(tx *store.Tx) error { return tx.PutPulls(w.ctx(), w.o.PullCache.pullRow(w.repo, pr, nil, true)) }))
		row.UpdatedAt = pr.UpdatedAt
	}
	put(func(pr *forge.PullRequest) { pr.MergeCommit = "" })
	refused("the forge doesn't name it", n, "qa", "web", "a commit that the forge doesn't name")
	put(func(pr *forge.PullRequest) { pr.MergeCommit = strings.Repeat("1", 40) })
	refused("not fetched", n, "qa", "web", "was merged as 111111111111, which is not on main")
	put(func(pr *forge.PullRequest) { pr.State, pr.MergeCommit = forge.Closed, landed })
	refused("closed", n, "qa", "web", "closed without a merge")
}

// TestLandedPastGates keeps what was merged past its gates for as long as it is there.
func TestLandedPastGates(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	put := func(pulls ...int) {
		t.Helper()
		for _, n := range pulls {
			w.must(UngatedMerges.Put(w.ctx(), w.store, record.OfPull(w.repo.ID, n), UngatedMerge{Pull: n, By: "ada", Gates: []string{"hold", "soak"}}))
			if got, err := ReadUngated(w.ctx(), w.store, w.repo.ID, n); got != "merged by ada without gates: hold, soak" || err != nil {
				t.Errorf("it says %q, %v", got, err)
			}
		}
	}
	kept := func() (out []int) {
		t.Helper()
		all, err := UngatedMerges.List(w.ctx(), w.store, record.Within{Repo: w.repo.ID})
		w.must(err)
		for _, e := range all {
			out = append(out, e.About.Number)
		}
		return out
	}
	for _, raw := range []string{"", "{", `{"pull": 1}`} {
		w.must(w.store.PutRecord(w.ctx(), UngatedMerges.Key(record.OfPull(w.repo.ID, 1)), []byte(raw)))
		if got, err := ReadUngated(w.ctx(), w.store, w.repo.ID, 1); got != "" || err != nil {
			t.Errorf("%q says %q, %v", raw, got, err)
		}
	}
	w.must(UngatedMerges.Drop(w.ctx(), w.store, record.OfPull(w.repo.ID, 1)))
	history := []promotion.Arrival{{Pull: 3}, {Pull: 2}, {Pull: 1}, {}}
	c := componentOf(&Evaluation{}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: w.unit("web"), Envs: []promotion.Env{{Name: "qa", History: history, PastPulls: []promotion.PastPull{{Number: 8, Merged: true}, {Number: 9}}, Landed: promotion.Sure(promotion.Landed{Pull: 2})}}}})
	unread := componentOf(c.Evaluation, branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: w.unit("api"), Envs: []promotion.Env{{Name: "qa", History: history}}}})
	c.Evaluation.Components = []*ComponentEvaluation{c}
	forget := func() {
		t.Helper()
		w.failUntilDone("forget", nil, w.inTx(func(ctx context.Context, tx *store.Tx) error { return ForgetUngated(ctx, tx, c) }))
	}
	forget() // nothing is there
	put(1, 2, 4, 8, 9)
	c.Evaluation.Components = []*ComponentEvaluation{c, unread}
	forget()
	if got := kept(); !slices.Equal(got, []int{1, 2, 4, 8, 9}) {
		t.Errorf("of what can't be told %v is kept", got)
	}
	c.Evaluation.Components = []*ComponentEvaluation{c}
	forget()
	if got := kept(); !slices.Equal(got, []int{2, 4, 9}) { // #8 landed as a person's
		t.Errorf("%v is kept", got)
	}
	w.must(UngatedMerges.Drop(w.ctx(), w.store, record.OfPull(w.repo.ID, 9)))
	gone := w.unit("web")
	forgetOf := func() {
		t.Helper()
		w.failUntilDone("forget of", nil, w.inTx(func(ctx context.Context, tx *store.Tx) error { return ForgetUngatedOf(ctx, tx, gone) }))
	}
	put(5, 6, 7)
	w.must(w.store.Tx(w.ctx(), "rows", func(tx *store.Tx) error {
		for _, p := range []store.Promotion{{Component: "web", Pull: 2}, {Component: "web", Pull: 5}, {Component: "api", Pull: 5}, {Component: "web", Pull: 6}, {Component: "job", Pull: 6}, {Component: "api", Pull: 7}} {
			p.Unit, p.Repo, p.Pipeline, p.Environment, p.Kind = "hub:acme/fleet|shop|"+p.Component, w.repo.ID, "shop", "qa", promotion.KindPromotion
			if _, err := tx.PutPromotion(w.ctx(), p); err != nil {
				return err
			}
		}
		return tx.PutUnit(w.ctx(), store.Unit{Key: "hub:acme/fleet|shop|api", Repo: w.repo.ID, Pipeline: "shop", Component: "api", Data: []byte("{}")})
	}))
	forgetOf()
	// #5 moved api too, which is there; job, which #6 moved, is gone.
	if got := kept(); !slices.Equal(got, []int{4, 5, 7}) {
		t.Errorf("of a component that is gone %v is kept", got)
	}
}

// TestReviewRequestsAreKept remembers whose reviews were requested, and asks those again
// that were refused when a person wants that.
func TestReviewRequestsAreKept(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	read := func() policies.ReviewRequests {
		t.Helper()
		r, err := people.ReadReviewRequests(w.ctx(), w.store, w.repo.ID, 7)
		w.must(err)
		return r
	}
	request := func(release string, refused []forge.RefusedReviewer, users ...string) {
		t.Helper()
		w.must(people.PutReviewRequests(w.ctx(), w.store, w.repo.ID, promotion.RequestReviewers{Pull: 7, Release: release, Reviewers: policies.Reviewers{Users: users}}, refused))
	}
	request("one", []forge.RefusedReviewer{{Name: "zed", Reason: "who?"}}, "ada", "zed")
	request("two", nil, "ada", "grace")
	want := policies.ReviewRequests{Release: "two", Names: []string{"ada", "zed", "grace"}, Refused: []policies.RefusedReviewer{{Name: "zed", Reason: "who?"}}}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.must(people.ForgetRefusedReviewers(w.ctx(), w.store, w.repo.ID, 7))
	want.Names, want.Refused = []string{"ada", "grace"}, nil
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("without who was refused (-want +got):\n%s", diff)
	}
	request("three", []forge.RefusedReviewer{{Name: "zed", Reason: "no access"}}, "zed")
	request("three", nil, "zed")
	want = policies.ReviewRequests{Release: "three", Names: []string{"ada", "grace", "zed"}}
	if diff := cmp.Diff(want, read(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("taken at last (-want +got):\n%s", diff)
	}
	w.must(people.ForgetRefusedReviewers(w.ctx(), w.store, w.repo.ID, 7))
	if diff := cmp.Diff(want, read(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("nobody was refused (-want +got):\n%s", diff)
	}
	w.must(w.store.PutRecord(w.ctx(), people.ReviewRequestRecords.Key(record.OfPull(w.repo.ID, 7)), []byte(`{"release": "x", "names": 7}`)))
	if diff := cmp.Diff(policies.ReviewRequests{}, read()); diff != "" {
		t.Errorf("what can't be understood is something:\n%s", diff)
	}
	from, err := people.ReviewersToRequest(promotion.RequestReviewers{Reviewers: policies.Reviewers{Users: []string{"ada"}, Teams: []string{"acme/ops"}}})
	if diff := cmp.Diff(forge.Reviewers{Users: []string{"ada"}, Teams: []forge.Team{{Organisation: "acme", Name: "ops"}}}, from); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := people.ReviewersToRequest(promotion.RequestReviewers{Reviewers: policies.Reviewers{Teams: []string{"ops"}}}); err == nil {
		t.Error("a team without an organisation is requested")
	}
}

// TestStoredDeployments keeps of deployments what is there and what may still change.
func TestStoredDeployments(t *testing.T) {
	var d StoredDeployments
	here := func(commit string) bool { return commit == "here" }
	put := func(commit string, state promotion.DeploymentState, refused string) {
		d.Put("qa", StoredDeployment{DeploymentRecord: promotion.DeploymentRecord{Commit: commit, State: state, Refused: refused}, ID: int64(len(d["qa"]) + 1)}, here)
	}
	put("going on", promotion.DeploymentInProgress, "")
	put("failed", promotion.DeploymentFailure, "")
	put("erred", promotion.DeploymentError, "")
	put("over", promotion.DeploymentInactive, "")
	put("refused", "", "no access")
	put("here", promotion.DeploymentFailure, "")
	put("well", promotion.DeploymentInProgress, "")
	put("well", promotion.DeploymentSuccess, "")
	var got []string
	for _, k := range d["qa"] {
		got = append(got, k.Commit+" "+string(k.State))
	}
	if diff := cmp.Diff([]string{"going on in_progress", "here failure", "well success"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if k, ok := d.Find("qa", "here"); !ok || k.State != promotion.DeploymentFailure {
		t.Errorf("here is %+v, %v", k, ok)
	}
	if k, ok := d.Find("qa", "failed"); ok || k.ID != 0 {
		t.Errorf("failed is %+v", k)
	}
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	raw, err := json.Marshal(d)
	w.must(err)
	u := w.unit("web")
	for _, step := range []struct {
		raw  []byte
		want StoredDeployments
	}{{nil, nil}, {raw, d}, {[]byte(`{"qa": 7}`), nil}} {
		if step.raw != nil {
			w.must(w.store.PutRecord(w.ctx(), Deployments.Key(record.Unit(u)), step.raw))
		}
		if got, err := ReadDeployments(w.ctx(), w.store, u); err != nil || cmp.Diff(step.want, got) != "" {
			t.Errorf("%s reads as %+v, %v", step.raw, got, err)
		}
	}
}

// TestCallbacksAreAccepted takes an endpoint's later answer in where somebody waits for it,
// and wakes them.
func TestCallbacksAreAccepted(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	answer := policies.EndpointAnswer{ID: "abc", Outcome: policies.Pass, Reason: "well", At: w.now}
	accept := func(endpoint string, a policies.EndpointAnswer) error {
		t.Helper()
		return AcceptCallback(w.ctx(), w.store, endpoint, a)
	}
	if err := accept("changes", answer); !errors.Is(err, ErrNoRequest) {
		t.Errorf("nobody asked: %v", err)
	}
	w.putRecord(endpointStates.Key(record.Named("abc")), endpointState{ID: "abc", Endpoint: "changes", Unit: "unit:hub:acme/fleet|shop|web"})
	if err := accept("others", answer); !errors.Is(err, ErrNoRequest) {
		t.Errorf("another endpoint: %v", err)
	}
	for range 2 {
		w.must(accept("changes", answer))
	}
	woken, err := w.store.Claim(w.ctx(), "me", 10)
	w.must(err)
	if len(woken) != 1 || woken[0].Key != "unit:hub:acme/fleet|shop|web" {
		t.Errorf("woken are %+v", woken)
	}
	s, _, err := readEndpointState(w.ctx(), w.store, "abc")
	w.must(err)
	if s.Outcome != policies.Pass || s.Reason != "well" || !s.Callback || !s.At.Equal(w.now) {
		t.Errorf("kept is %+v", s)
	}
	for what, change := range map[string]func(a *policies.EndpointAnswer){
		"reason":  func(a *policies.EndpointAnswer) { a.Reason = "other" },
		"outcome": func(a *policies.EndpointAnswer) { a.Outcome = policies.Wait },
		"end":     func(a *policies.EndpointAnswer) { a.Until = w.now.Add(time.Hour) },
	} {
		other := answer
		change(&other)
		if err := accept("changes", other); !errors.Is(err, ErrStaleCallback) {
			t.Errorf("another %s of that time: %v", what, err)
		}
	}
	w.putRecord(endpointStates.Key(record.Named("abc")), endpointState{ID: "abc", Endpoint: "changes"})
	if err := accept("changes", answer); !errors.Is(err, ErrNoRequest) {
		t.Errorf("nobody waits: %v", err)
	}
}

// TestPullHolds reads the holds on a pull request; one that can't be read holds without an end.
func TestPullHolds(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	for raw, want := range map[string][]promotion.Holding{
		"":                                 nil,
		`[{"by":"ada"},{"by":"grace"}]`:    {{Hold: promotion.Hold{By: "ada"}}, {Hold: promotion.Hold{By: "grace"}}},
		`[{"by":"ada","byID":7}]`:          {{Hold: promotion.Hold{By: "ada"}, ByID: 7}},
		`[]`:                               {{}},
		`{"by": 7, "until": "2026-01-02"}`: {{}},
	} {
		if raw != "" {
			w.must(w.store.PutRecord(w.ctx(), PullHolds.Key(record.OfPull(w.repo.ID, 7)), []byte(raw)))
		}
		if raw == "" {
			w.must(w.store.DeleteRecord(w.ctx(), PullHolds.Key(record.OfPull(w.repo.ID, 7))))
		}
		got, err := ReadPullHolds(w.ctx(), w.store, w.repo.ID, 7)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", raw, err, diff)
		}
	}
}
