package facts

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// TestLateMergeability reads whether the forge would merge a pull request once that matters,
// with what explains it where it wouldn't.
func TestLateMergeability(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto}
`, []string{"dev", "qa"}, "web")
	n, _, head := openToQA(w)
	w.computing = true
	w.wait(time.Second)
	w.refreshPull(n)
	ev, d := w.lookAtUnit("the forge computes")
	w.record(ev, d)
	since := w.now
	w.wait(time.Minute)
	ev, _ = w.lookAtUnit("it computes still")
	if p := ev.OpenPulls[n]; p.Mergeable != promotion.MergeUnknown || !p.UncomputedSince.Equal(since) {
		t.Errorf("it is %+v", p.Pull)
	}
	w.computing = false
	w.must(w.forge.Protect(storyRepo, "main", memoryforge.Protection{Approvals: 1, Contexts: []string{"ci/lint"}}))
	w.wait(time.Minute)
	ev, d = w.lookAtUnit("the forge has computed")
	if p := ev.OpenPulls[n]; p.Mergeable != promotion.MergeBlocked || p.MergeUnread || !p.UncomputedSince.IsZero() || len(p.Rules.Unmet) != 1 {
		t.Errorf("it is %+v", p.Pull)
	}
	w.record(ev, d)
	w.must(w.forge.As("ada").SetStatus(w.ctx(), storyRepo, head, forge.Status{Context: "ci/lint", State: forge.StatusSuccess}))
	w.must(w.forge.Review(storyRepo, n, "linus", memoryforge.Approve, ""))
	w.wait(time.Second)
	w.refreshPull(n)
	w.lookAtUnit("it may be merged")

	p := w.readAnew(n)
	env := ev.Environment("qa")
	for _, c := range []struct { // in this order: what is closed isn't read anew
		name   string
		change func()
	}{
		{"another head", func() { p.Head = "another" }},
		{"it is closed", func() { w.wait(time.Second); w.must(w.forge.Close(storyRepo, n, "grace")) }},
	} {
		p = w.readAnew(n)
		c.change()
		if err := w.o.readMergeability(w.ctx(), ev, env, p, ev.openRecord("qa", n)); !errors.Is(err, forge.ErrConflict) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	view := promotion.Env{Name: "qa", Revert: &promotion.Pull{Number: 99, MergeUnread: true}}
	if err := w.o.answerMergeability(w.ctx(), ev.Components[0], &view); !errors.Is(err, forge.ErrConflict) {
		t.Errorf("one that nobody knows: %v", err)
	}
	view.Revert.MergeUnread = false
	if err := w.o.answerMergeability(w.ctx(), ev.Components[0], &view); err != nil {
		t.Errorf("one of which it is known: %v", err)
	}
	if ev.openRecord("qa", 99) != nil || ev.openRecord("dev", n) != nil {
		t.Error("a pull request is found where it isn't")
	}
	w.end()
}

// readAnew is an open pull request as the next look describes it.
func (sto *story) readAnew(number int) *OpenPull {
	sto.t.Helper()
	ev, _ := sto.evaluate("web", false)
	return ev.OpenPulls[number]
}

// TestChildDegrades follows an Application below a target: it is judged once its parent is done, and
// what changed it is looked for where its parent's is.
func TestChildDegrades(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	w.promote("1.1.0")
	w.becomes("web-qa", func(app *verification.App) {
		app.Children = []verification.ChildRef{{Namespace: "argocd", Name: "api-db"}}
	})
	w.lookAtUnit("it has a child")
	w.soak("web")
	w.soak("web")
	degraded := func(app *verification.App) { app.Health, app.HealthMessage = "Degraded", "crashes" }
	w.unhealthy["api-db"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "db", Health: "Degraded"}}
	w.becomes("api-db", degraded)
	w.commit("grace", "Change web's base", map[string]string{"base/web/more": "x", overlayFile("web", "qa"): overlayText("web", "1.1.0") + "replicas: [{name: web, count: 2}]\n"})
	w.lookAtUnit("the child is unwell")
	w.wait(2 * time.Minute)
	ev, d := w.lookAtUnit("the child is degraded")
	targets := ev.Components[0].Env("qa").Targets
	if len(targets) != 2 || targets[1].Name != "api-db" || targets[1].Verdict.State != verification.Degraded {
		t.Fatalf("the targets are %+v", targets)
	}
	at := ev.Components[0].Unit.Envs["qa"]
	if child := live.TargetAt(ev.Components[0].Env("qa"), at, ev.Components[0].children["qa"], 1); child == nil || child.Name != "api-db" || !child.Live {
		t.Errorf("it is judged by %+v", child)
	}
	if none := live.TargetAt(&promotion.Env{Name: "qa", Targets: []promotion.Target{{}, {Name: "gone"}}}, at, ev.Components[0].children["qa"], 1); none != nil {
		t.Errorf("one that isn't there is judged by %+v", none)
	}
	w.record(ev, d)
	w.wait(time.Minute)
	w.lookAtUnit("later")
	w.end()
}

// TestRepositoriesAreAdded resolves again what others read of a repository that has been reached
// only now, and adds none twice.
func TestRepositoriesAreAdded(t *testing.T) {
	c := newBranchRepo(t, nil)
	o := newTestGatherer(c)
	s := takeSnapshot(t, o, c)
	o.Targets.AddRepository(c.Repository)
	if again := takeSnapshot(t, o, c); again != s {
		t.Error("a repository that is known is another")
	}
	o.Targets.AddRepository(newBranchRepo(t, nil).Repository)
	if len(o.Targets.Repos.All()) != 2 {
		t.Errorf("there are %d", len(o.Targets.Repos.All()))
	}
	if s.Inputs.Repositories != 1 || o.Targets.IsCurrent(t.Context(), s) {
		t.Error("what may read the other repository isn't resolved again")
	}
	units := s.AllUnits()
	if len(units) != 2 || units[0].Repo != c.ID || units[0].Pipeline != "shop" {
		t.Errorf("its units are %+v", units)
	}
}
