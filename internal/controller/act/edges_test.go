package act

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// TestDegradedCause names the first target that is degraded, and says how many more there are.
func TestDegradedCause(t *testing.T) {
	t.Parallel()
	well := promotion.Target{Name: "well", Verdict: verification.Verdict{State: verification.Verified}}
	bad := func(name string) promotion.Target {
		return promotion.Target{Name: name, Verdict: verification.Verdict{State: verification.Degraded, Reason: "it crashes"}}
	}
	for want, targets := range map[string][]promotion.Target{
		"":                             {well},
		": a: it crashes":              {well, bad("a"), well},
		": a: it crashes (and 1 more)": {bad("a"), bad("b")},
		": b: it crashes (and 2 more)": {well, bad("b"), bad("a"), bad("c")},
	} {
		if got := degradedCause(&promotion.Env{Targets: targets}); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestDeploymentsOfReverts says on the forge what went back, and how many components did.
func TestDeploymentsOfReverts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  batch: environment\n  deployments: true\n", "api", "web")
	w.open("2.0.0")
	ev, d := w.evaluate()
	members := []promotion.Member{{Component: "api", Release: "r1", Name: "2.0.0"}, {Component: "web", Release: "r2", Name: "2.0.0"}}
	w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "back", At: w.now, State: promotion.DeploymentInProgress, Pull: 2, Revert: true, Members: members}))
	w.compare("how many there are", len(w.forge.deployments), 1)
	made := w.forge.deployments[0]
	w.compare("what is made", []any{made.Description, made.Payload["release"], made.Payload["kind"], made.Payload["component"]}, []any{"2 components (#2)", promotion.BatchID(members), promotion.KindRevert, promotion.BatchName})
}

// TestLabelsThatAreOver takes off the labels of skips that don't count, and one that would
// make a person's close no veto.
func TestLabelsThatAreOver(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, _ := w.evaluate()
	p := ev.OpenPulls[n]
	p.Skips = []promotion.Skip{{Gate: "soak", By: "ada"}, {Gate: "checks", By: "grace", Err: "grace may not write any more"}}
	p.PR.Labels = []string{promotion.LabelOurs, "x", promotion.LabelSkipped + "soak", promotion.LabelSkipped + "checks", promotion.LabelSkipped + "window", promotion.LabelSuperseded}
	w.forge.pulls[n].Labels = slices.Clone(p.PR.Labels)
	s := &subject{ev: ev, env: "qa", number: n, pull: p}
	w.must(w.actor.putLabels(w.ctx(), s, []string{promotion.LabelOurs, promotion.LabelHold}))
	w.compare("the labels", w.forge.pulls[n].Labels, []string{promotion.LabelOurs, promotion.LabelHold, promotion.LabelSkipped + "soak", "x"})
}

// TestLandingShownAt holds when a merged pull request is said to be verified. That is a while after
// the last of its components landed, and at once where there is more to say of any of them.
func TestLandingShownAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	verifying := func(ago time.Duration) promotion.EnvState {
		return promotion.EnvState{Environment: "qa", State: promotion.Verifying, LandedPull: 7, Since: now.Add(-ago)}
	}
	with := func(st promotion.EnvState, change func(*promotion.EnvState)) promotion.EnvState {
		change(&st)
		return st
	}
	for name, c := range map[string]struct {
		api, web promotion.EnvState
		want     time.Time
	}{
		"the last that landed counts":       {verifying(9 * time.Second), verifying(5 * time.Second), now.Add(landingGrace - 5*time.Second)},
		"whatever their order":              {verifying(5 * time.Second), verifying(9 * time.Second), now.Add(landingGrace - 5*time.Second)},
		"by the forge's clock, at most now": {verifying(-time.Hour), verifying(5 * time.Second), now.Add(landingGrace)},
		"one is verified":                   {verifying(9 * time.Second), with(verifying(5*time.Second), func(st *promotion.EnvState) { st.State = promotion.Verified }), time.Time{}},
		"one has something else by now":     {with(verifying(9*time.Second), func(st *promotion.EnvState) { st.LandedPull = 8 }), verifying(5 * time.Second), time.Time{}},
		"one has no such environment":       {verifying(9 * time.Second), with(verifying(5*time.Second), func(st *promotion.EnvState) { st.Environment = "prod" }), time.Time{}},
	} {
		ev, d := &facts.Evaluation{}, &promotion.Decision{}
		s := &subject{ev: ev, d: d, env: "qa", number: 7}
		for component, st := range map[string]promotion.EnvState{"api": c.api, "web": c.web} {
			of := &facts.ComponentEvaluation{}
			of.Facts.Unit.Component = component
			ev.Components = append(ev.Components, of)
			d.Components = append(d.Components, promotion.ComponentDecision{Envs: []promotion.EnvState{st}})
			s.members = append(s.members, promotion.Member{Component: component})
		}
		a := &Actor{opts: Options{Now: func() time.Time { return now }}}
		if got := a.landingShownAt(s); !got.Equal(c.want) {
			t.Errorf("%s: at %s, want %s", name, got, c.want)
		}
		s.members = append(s.members, promotion.Member{Component: "gone"})
		if got := a.landingShownAt(s); !got.IsZero() {
			t.Errorf("%s, and one is gone: at %s", name, got)
		}
	}
}

// TestEndpointsAreReset forgets what endpoints said of a pull request, and of no other.
func TestEndpointsAreReset(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d := w.evaluate()
	request := func(pull int, id string) store.RecordKey {
		return store.RecordKey{Kind: "endpoint-request", Repo: "hub:acme/fleet", Pull: pull, Name: id}
	}
	answer := func(id string) store.RecordKey { return store.RecordKey{Kind: "endpoint-state", Name: id} }
	for _, key := range []store.RecordKey{request(1, "abc"), answer("abc"), request(2, "def"), answer("def")} {
		w.must(w.store.PutRecord(w.ctx(), key, []byte("{}")))
	}
	w.must(w.do(ev, d, promotion.ResetEndpoints{Environment: "qa", Pull: 1}))
	for key, want := range map[store.RecordKey]bool{request(1, "abc"): false, answer("abc"): false, request(2, "def"): true, answer("def"): true} {
		_, ok, err := w.store.Record(w.ctx(), key)
		w.must(err)
		w.compare(key.String(), ok, want)
	}
}

// TestShortCommit shortens only what is the whole name of a commit.
func TestShortCommit(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0a", 20)
	for revision, want := range map[string]string{whole: whole[:12], whole[1:]: whole[1:], "v1.0.0": "v1.0.0", "abc": "abc", "": "", whole[1:] + "g": whole[1:] + "g", "release-" + whole: "release-" + whole} {
		if got := shortCommit(revision); got != want {
			t.Errorf("%q becomes %q", revision, got)
		}
	}
}

// TestCommandsAreShownAsTheyAreGiven says in texts how commands are given in the pipeline.
func TestCommandsAreShownAsTheyAreGiven(t *testing.T) {
	t.Parallel()
	for spec, bare := range map[string]bool{"": false, "  commands: bare\n": true} {
		w := newFixture(t, spec, "web")
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		s := subjectOf(ev, d, ev.OpenPulls[n])
		w.compare("bare", w.actor.newTextInput(&s, false).BareCommands, bare)
	}
}

// TestLastWordsAreRead has the comments of a pull request read once more a while after it was closed.
func TestLastWordsAreRead(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	key := wake.ForPull(w.repo.ID, n).String()
	due := func() bool {
		t.Helper()
		claims, err := w.store.Claim(w.ctx(), "test", 100)
		w.must(err)
		return slices.ContainsFunc(claims, func(c store.Claim) bool { return c.Key == key })
	}
	due() // whatever came before
	w.must(w.do(ev, d, promotion.Close{Environment: "qa", Pull: n, Why: "nobody needs it", Members: ev.OpenPulls[n].Members}))
	w.now = w.now.Add(lastWordsDelay - time.Second)
	w.compare("it is due before", due(), false)
	w.now = w.now.Add(time.Second)
	w.compare("it is due", due(), true)
}

// TestPushThatTheForgeHasNotSeen reads a pull request again that shows another head than was pushed.
func TestPushThatTheForgeHasNotSeen(t *testing.T) {
	t.Parallel()
	for unseen, reads := range map[string]bool{"": false, strings.Repeat("0", 40): true} {
		w := newFixture(t, "", "web")
		ev, d, open := w.ready("2.0.0")
		w.forge.unseen, w.faults.Calls = unseen, nil
		w.must(w.do(ev, d, open))
		w.compare("it is read again", slices.Contains(w.faults.Calls, "forge: read #1"), reads)
		w.compare("the head that is known", w.cachedPull(1).Head, w.remoteHead(w.forge.pulls[1].Branch))
	}
}

// TestOpenedWithoutItsLabels looks for a pull request again that is there, though the forge's limits
// left no call for its labels.
func TestOpenedWithoutItsLabels(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	w.forge.add(forge.NewPullRequest{Branch: promotion.Branch("shop", "qa", "web"), Base: "main"}, bot, w.remoteHead("main"))
	w.forge.refuseLabels = &forge.Error{Op: "label", Kind: forge.ErrRateLimited}
	if err := w.do(ev, d, open); !errors.Is(err, forge.ErrRateLimited) {
		t.Fatalf("without its labels it ends with %v", err)
	}
	s, err := actionSubject(ev, d, open)
	w.must(err)
	w.compare("it may be open", w.kept(openings.Key(s.opening())), true)
	w.forge.refuseLabels = nil
	w.must(w.do(ev, d, open))
	w.compare("it may be open", w.kept(openings.Key(s.opening())), false)
}

// TestForgetOpeningFails has the calls fail by which it is noted that nothing was opened.
func TestForgetOpeningFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	s, err := actionSubject(ev, d, open)
	w.must(err)
	w.failEach(func() (func() error, func()) {
		w.must(openings.Put(w.ctx(), w.store, s.opening(), "h by me"))
		return func() error { return w.actor.forgetOpening(w.ctx(), &s, "h by me") }, func() {
			w.compare("it is kept", w.kept(openings.Key(s.opening())), false)
		}
	})
}

// TestLandedIsShownWhileAnyIsWatched keeps the comment of what was merged up to date while any of what
// it brought is looked after, that of a revert at once.
func TestLandedIsShownWhileAnyIsWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states [2]string
		shown  bool
	}{
		"none is":         {[2]string{promotion.Idle, promotion.Idle}, false},
		"the first is":    {[2]string{promotion.Verified, promotion.Idle}, true},
		"the second is":   {[2]string{promotion.Idle, promotion.Verified}, true},
		"both are":        {[2]string{promotion.Verified, promotion.Verified}, true},
		"both are so now": {[2]string{promotion.Verifying, promotion.Verifying}, false}, // a while later
	} {
		w := newFixture(t, kindsOfBatch["several"].spec, "api", "web")
		n := w.land("2.0.0")
		ev, d := w.evaluate()
		for i := range ev.Components {
			st := d.Components[i].Env("qa")
			st.State, st.LandedPull, st.Since = c.states[i], n, w.now
		}
		next, err := w.actor.Present(w.ctx(), ev, d)
		w.must(err)
		w.compare(name+": it is shown", len(w.forge.comments[n]) == 1, c.shown)
		w.compare(name+": it looks again", next.IsZero(), c.states[0] != promotion.Verifying)
	}
	w := newFixture(t, "", "web")
	n := w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.must(w.do(ev, d, revert))
	ev, d = w.evaluate()
	w.must(w.do(ev, d, w.merge(ev, n+1)))
	ev, d = w.evaluate()
	w.must(presentError(w.actor.Present(w.ctx(), ev, d)))
	w.compare("of a revert", []int{len(w.forge.comments[n]), len(w.forge.comments[n+1])}, []int{1, 1})
}

// TestOverBranchesAreDeleted says so where a branch that is over can't be deleted, and nothing where
// somebody has pushed to it.
func TestOverBranchesAreDeleted(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	branch, head := w.leave()
	pr := &forge.PullRequest{Branch: branch, Head: head}
	warned := func() int { return w.logs.FilterMessageSnippet("could not be deleted").Len() }
	before := warned()
	tip := w.commit("Say more", map[string]string{"README.md": "more"})
	w.setRemoteHead(branch, tip)
	w.actor.DeleteOver(w.ctx(), w.repo, pr)
	w.compare("somebody pushed", []any{w.remoteHead(branch), warned() - before}, []any{tip, 0})
	w.setRemoteHead(branch, head)
	w.fetch()
	end := w.refuseDeletions()
	w.actor.DeleteOver(w.ctx(), w.repo, pr)
	w.compare("it is refused", []any{w.remoteHead(branch), warned() - before}, []any{head, 1})
	end()
	w.actor.DeleteOver(w.ctx(), w.repo, pr)
	w.compare("it is deleted", []any{w.remoteHead(branch), warned() - before}, []any{"", 1})
}

// TestOthersInItsEnvironmentStay names among those that stay as they are also another component's
// target in the same environment, which reads its files.
func TestOthersInItsEnvironmentStay(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.commit("Deploy it", map[string]string{
		"apps/web/qa/deployment.yaml":      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: [{name: web, image: registry.example/web}]\n",
		"apps/web/qa/kustomization.yaml":   kustomization("web", "1.0.0") + "resources: [deployment.yaml]\n",
		"apps/probe/qa/kustomization.yaml": kustomization("web", "fixed") + "resources: [../../web/qa]\n",
	})
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	p := ev.OpenPulls[n]
	s := subjectOf(ev, d, p)
	in := prtext.Input{Environment: "qa"}
	w.actor.describeEdits(w.ctx(), &s, &in, openCommits(&s), p.Edits)
	names := func(all []prtext.Target) (out []string) {
		for _, t := range all {
			out = append(out, t.Name)
		}
		return out
	}
	w.compare("reached", names(in.Reached), []string{"web-qa"})
	w.compare("they stay", names(in.UnchangedTargets), []string{"probe-qa"})
}
