package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// twoReleases has api and web released to dev, and gives what moves both into qa.
func twoReleases(w *story) (ev *Evaluation, tip string, members []promotion.Member, edits []fieldedit.Edit) {
	w.t.Helper()
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "api", "web")
	ev, _ = w.evaluate("web", false)
	for _, c := range ev.Components {
		members = append(members, promotion.Member{Component: c.Facts.Unit.Component, Release: c.Env("dev").Release.Value.ID})
	}
	tip = w.head("main")
	edits, refused := w.o.Effects.ComposeMembers(w.ctx(), &ev.Basis, "qa", tip, members)
	if len(refused) > 0 || len(edits) != 2 {
		w.t.Fatalf("%d edits, and %v", len(edits), refused)
	}
	return ev, tip, members, edits
}

// changedTargets are the targets that effects change.
func changedTargets(shown []isolation.Effect) (names []string) {
	for _, e := range shown {
		names = append(names, e.Target.Name)
	}
	slices.Sort(names)
	return names
}

// TestEffectsAreShown shows the effects of an edit as its targets' Argo CD renders it. As long as a
// rendering is still to come, it says so.
func TestEffectsAreShown(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, tip, _, edits := twoReleases(w)
	both := []string{"api", "web"}
	show := func(ctx context.Context, head string, patience time.Duration) ([]isolation.Effect, bool, error) {
		ev.RetryAt = time.Time{}
		return w.o.Effects.ShownEffects(ctx, &ev.Basis, both, "qa", effects.Commits{Base: tip, Head: head}, edits, patience)
	}
	shown, pending, err := show(w.ctx(), "", time.Minute)
	if err != nil || pending || !slices.Equal(changedTargets(shown), []string{"api-qa", "web-qa"}) || !ev.RetryAt.IsZero() {
		t.Errorf("rendered here: %q, %t, %v", changedTargets(shown), pending, err)
	}
	release := make(chan struct{})
	source := &fakeManifests{render: func(app *verification.App, revisions []string) ([]string, error) {
		if app.Name == "api-qa" {
			<-release
		}
		return configMap(revisions[0]), nil
	}}
	argo := w.options.ArgoCDs["hub"]
	argo.Manifests = source
	w.o.ArgoCDs.ByName["hub"] = argo
	if _, pending, err = show(w.ctx(), "", time.Minute); err != nil || !pending || !ev.RetryAt.Equal(w.now.Add(effects.RemoteLook)) {
		t.Errorf("before it is pushed: %t, %v, again at %s", pending, err, ev.RetryAt)
	}
	web := slices.DeleteFunc(slices.Clone(edits), func(e fieldedit.Edit) bool { return e.File != overlayFile("web", "qa") })
	if _, pending, err = w.o.Effects.ShownEffects(w.ctx(), &ev.Basis, both, "qa", effects.Commits{Base: tip, Head: headCommit}, web, time.Minute); err != nil || pending {
		t.Errorf("of one that is rendered: %t, %v", pending, err)
	}
	if shown, pending, err = show(w.ctx(), headCommit, time.Millisecond); err != nil || !pending || !ev.RetryAt.Equal(w.now.Add(effects.RemoteLook)) {
		t.Errorf("while one of two is rendered: %+v, %t, %v", shown, pending, err)
	}
	close(release)
	if shown, pending, err = show(w.ctx(), headCommit, time.Minute); err != nil || pending || shown[0].Changes == nil || shown[1].Changes == nil || !ev.RetryAt.IsZero() {
		t.Errorf("when both are: %+v, %t, %v", shown, pending, err)
	}
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	if _, _, err = show(over, headCommit, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("whose caller has left: %v", err)
	}
}

// TestEffectsAreKnown says of what can't be told why, and never that there are none.
func TestEffectsAreKnown(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, tip, _, edits := twoReleases(w)
	for name, c := range map[string]struct {
		base  string
		edits []fieldedit.Edit
	}{"nothing that we composed": {tip, nil}, "on nothing": {"", edits}} {
		if shown, err := w.o.Effects.ListEffects(w.ctx(), &ev.Basis, []string{"api", "web"}, "qa", c.base, c.edits); err == nil || err.Error() != "its head is not what Liftlock composed" || shown != nil {
			t.Errorf("%s: %+v, %v", name, shown, err)
		}
	}
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	if shown, err := w.o.Effects.ListEffects(over, &ev.Basis, []string{"api", "web"}, "qa", tip, edits); !errors.Is(err, context.Canceled) || shown != nil {
		t.Errorf("whose caller has left: %+v, %v", shown, err)
	}
	if shown, err := w.o.Effects.ListEffects(w.ctx(), &ev.Basis, []string{"api", "web"}, "qa", tip, edits); err != nil || len(shown) != 2 {
		t.Errorf("once more: %+v, %v", shown, err)
	}
}

// TestJudgementsAreRemembered judges an edit anew when what it is judged by is another, and only then.
func TestJudgementsAreRemembered(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, tip, _, edits := twoReleases(w)
	judged := func(components []string, env, base string, edits []fieldedit.Edit, question string) effects.JudgementKey {
		t.Helper()
		key, err := effects.HashJudgementInputs(w.ctx(), &ev.Basis, components, env, base, edits, question)
		w.must(err)
		return key
	}
	both := []string{"api", "web"}
	known := judged(both, "qa", tip, edits, "what?")
	if again := judged(both, "qa", tip, edits, "what?"); again != known {
		t.Error("the same edit is judged anew")
	}
	same := w.commit("ada", "Nothing", nil)
	if again := judged(both, "qa", same, edits, "what?"); again != known {
		t.Error("the same files at another commit are judged anew")
	}
	change := func(do func(e *fieldedit.Edit)) []fieldedit.Edit {
		out := slices.Clone(edits)
		do(&out[0])
		return out
	}
	docs := w.commit("ada", "Docs", map[string]string{"docs": "x"})
	for what, other := range map[string]effects.JudgementKey{
		"of fewer components":    judged(both[:1], "qa", tip, edits, "what?"),
		"of another environment": judged(both, "dev", tip, edits, "what?"),
		"on other files":         judged(both, "qa", docs, edits, "what?"),
		"of fewer files":         judged(both, "qa", tip, edits[:1], "what?"),
		"of another file":        judged(both, "qa", tip, change(func(e *fieldedit.Edit) { e.File += "x" }), "what?"),
		"with another mode":      judged(both, "qa", tip, change(func(e *fieldedit.Edit) { e.Mode = 0o755 }), "what?"),
		"that deletes it":        judged(both, "qa", tip, change(func(e *fieldedit.Edit) { e.Deleted = true }), "what?"),
		"with other contents":    judged(both, "qa", tip, change(func(e *fieldedit.Edit) { e.After = []byte("x") }), "what?"),
		"to another question":    judged(both, "qa", tip, edits, "why?"),
	} {
		if other == known {
			t.Errorf("an edit %s is judged as the other was", what)
		}
	}
	if _, err := effects.HashJudgementInputs(w.ctx(), &ev.Basis, both, "qa", landedHash, edits, "what?"); err == nil {
		t.Error("an edit of a commit that isn't there is judged")
	}
}

// TestEditThatTakesTooLong says so of an edit whose rendering takes longer than it may, and judges it
// again after a while, and not before.
func TestEditThatTakesTooLong(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "web")
	timeout := time.Minute
	w.options.EditTimeout = func() time.Duration { return timeout }
	w.startProcess()
	ev, tip, _, edits := twoReleases(w)
	both := []string{"api", "web"}
	why := func() string {
		t.Helper()
		ev.RetryAt = time.Time{}
		why, err := w.o.Effects.WhyNotIsolated(w.ctx(), &ev.Basis, both, "qa", tip, edits)
		w.must(err)
		return why
	}
	timeout = -1 // it is over before it began
	w.o.Effects.ForgetJudgements()
	began := w.now
	if got := why(); !strings.HasPrefix(got, "that no target outside qa depends on it could not be shown within 30s") || !ev.RetryAt.Equal(began.Add(effects.FirstRetryDelay)) {
		t.Errorf("too long: %q, again at %s", got, ev.RetryAt)
	}
	if shown, err := w.o.Effects.ListEffects(w.ctx(), &ev.Basis, both, "qa", tip, edits); err == nil || !strings.HasPrefix(err.Error(), "rendering took longer than 30s") || shown != nil {
		t.Errorf("its effects: %+v, %v", shown, err)
	}
	timeout = time.Minute
	w.now = began.Add(effects.FirstRetryDelay - time.Second)
	if got := why(); got == "" || !ev.RetryAt.Equal(began.Add(effects.FirstRetryDelay)) {
		t.Errorf("before its time: %q, again at %s", got, ev.RetryAt)
	}
	w.now = began.Add(effects.FirstRetryDelay)
	timeout = -1
	if got := why(); got == "" || !ev.RetryAt.Equal(w.now.Add(2*effects.FirstRetryDelay)) {
		t.Errorf("too long again: %q, again at %s", got, ev.RetryAt)
	}
	timeout = time.Minute
	w.wait(2 * effects.FirstRetryDelay)
	if got := why(); got != "" || !ev.RetryAt.IsZero() {
		t.Errorf("in time at last: %q, again at %s", got, ev.RetryAt)
	}
	timeout = -1
	if got := why(); got != "" {
		t.Errorf("what is known is judged again: %q", got)
	}
	for name, c := range map[string]struct {
		over bool
		err  error
		want bool
	}{
		"its own time":          {false, fmt.Errorf("render: %w", context.DeadlineExceeded), true},
		"its caller's":          {true, context.DeadlineExceeded, false},
		"something else failed": {false, errors.New("no"), false},
		"nothing failed":        {false, nil, false},
	} {
		ctx, cancel := context.WithCancel(w.ctx())
		if c.over {
			cancel()
		}
		if got := effects.RanOutOfTime(ctx, c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		cancel()
	}
}

// TestAnswersOfARunThatIsOver: a run that ends while a fact is gathered finds out nothing, and that is
// its error.
func TestAnswersOfARunThatIsOver(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	w.mergeBy(n, "linus", "merge")
	w.soak("web")
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}
	w.becomes("web-qa", func(app *verification.App) { app.Health = "Degraded" })
	w.commit("ada", "Since then", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"})
	w.soak("web")
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 1"})
	ev, d := w.evaluate("web", false)
	w.openRevert(ev, d)
	w.o.Effects.ForgetJudgements()
	c := ev.Components[0]
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	release := c.Env("dev").Release.Value.ID
	for _, what := range []string{promotion.RequestComposition, promotion.RequestRestore, promotion.RequestBlame, promotion.RequestChangedObjects, promotion.RequestCulprits} {
		request := promotion.FactRequest{What: what, Environment: "qa", Release: release}
		if what == promotion.RequestComposition {
			request.Environment = "prod" // qa has it
		}
		qa := c.Env("qa")
		for i := range qa.Targets {
			qa.Targets[i].Unhealthy.OK = false
		}
		if err := w.o.answerRequest(over, c, request); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		w.must(w.o.answerRequest(w.ctx(), c, request))
	}
	for what, request := range map[string]promotion.FactRequest{
		"look at nowhere":            {What: promotion.RequestRestore, Environment: "nowhere"},
		"unknown fact request \"x\"": {What: "x", Environment: "qa"},
	} {
		if err := w.o.answerRequest(w.ctx(), c, request); err == nil || !strings.HasPrefix(err.Error(), what) {
			t.Errorf("%+v: %v", request, err)
		}
	}
}

// TestChangedObjects says of each target what landed may have made unhealthy, and of which that isn't known,
// and why.
func TestChangedObjects(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.promote("1.1.0")
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	qa := c.Env("qa")
	changed := func() []promotion.Target {
		t.Helper()
		w.must(w.o.answerChangedObjects(w.ctx(), c, qa))
		return qa.Targets
	}
	want := promotion.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	if got := changed()[0].ChangedObjects; !got.OK || !slices.Contains(got.Value, want) {
		t.Errorf("of the target: %+v", got)
	}
	c.children["qa"] = []live.ChildTarget{{Label: "web-qa", Parent: "root"}}
	if got := changed()[0].ChangedObjects; got.OK || got.Err != "it is an Application of an app of apps, whose manifests aren't compared" {
		t.Errorf("of an Application below another: %+v", got)
	}
	c.children = map[string][]live.ChildTarget{}
	qa.Targets = append(qa.Targets, promotion.Target{Name: "gone"})
	if got := changed(); got[1].ChangedObjects.OK || got[1].ChangedObjects.Err == "" || !got[0].ChangedObjects.OK {
		t.Errorf("of one that nobody judges: %+v", got[1].ChangedObjects)
	}
	qa.Targets = qa.Targets[:1]
	for parent, why := range map[string]string{"": "there is no commit before it", landedHash: ""} {
		qa.Landed.Value.Parent = parent
		if got := changed()[0].ChangedObjects; got.OK || got.Err == "" || why != "" && got.Err != why {
			t.Errorf("of what landed on %q: %+v", parent, got)
		}
	}
}

// TestChangedKindsOfAHead says nothing of the manifests of a head that isn't ours, or is to be composed anew.
func TestChangedKindsOfAHead(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	for name, step := range map[string]struct {
		change func(p *OpenPull)
		why    string
	}{
		"ours":                      {func(*OpenPull) {}, ""},
		"somebody's":                {func(p *OpenPull) { p.MarkModified("x") }, "the head is not what Liftlock composed"},
		"to be composed anew":       {func(p *OpenPull) { p.Stale = true }, "the pull request is to be composed anew"},
		"of which nothing is known": {func(p *OpenPull) { p.Edits = nil }, "its head is not what Liftlock composed"},
	} {
		p := *ev.OpenPulls[n]
		step.change(&p)
		diff, err := w.o.findChangedKinds(w.ctx(), c, c.Env("qa"), &p)
		if (err == nil) != (step.why == "") || err != nil && !strings.HasSuffix(err.Error(), step.why) || (diff != nil) != (err == nil) {
			t.Errorf("%s: %+v, %v", name, diff, err)
		}
	}
}

// TestHeadThatCantBeComposed shows nothing of an open pull request of which it can't be told whether it is
// what we composed.
func TestHeadThatCantBeComposed(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	w.mergeBy(n, "linus", "merge")
	w.soak("web")
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 1"})
	revert := w.openRevert(w.evaluate("web", false))
	w.evaluate("web", false)
	if _, err := w.o.Effects.Difference(w.ctx(), w.repo, w.unit("web"), "qa", revert); err != nil {
		t.Errorf("as it was composed: %v", err)
	}
	w.commit("linus", "By hand", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.7")})
	pr := w.refreshPull(revert)
	onto := w.commitTo("mallory", "topic", w.head("main"), "On top", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.0")})
	w.pushOver(revert, pr.Branch, onto)
	ev, _ := w.evaluate("web", false)
	var none *effects.NoDifferenceError
	_, err := w.o.Effects.Difference(w.ctx(), w.repo, w.unit("web"), "qa", revert)
	if p := ev.OpenPulls[revert]; !p.Diverged || !errors.As(err, &none) || !strings.Contains(err.Error(), "can't be composed again, so it can't be told whether it is what Liftlock composed") {
		t.Errorf("what it takes back has changed (%t): %v", p.Diverged, err)
	}
}
