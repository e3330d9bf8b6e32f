package facts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestBatch follows the releases of two components that move together, a third that joins
// them too late, what degrades and goes back, and what is found again without the store.
func TestBatch(t *testing.T) {
	w := newStory(t, `  batch: environment
  deployments: true
  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`, []string{"dev", "qa"}, "api", "job", "web")
	w.evaluate("web", false) // what is there is the baseline
	w.release("ada", "dev", "1.1.0", "web", "api")
	w.soak("web")
	ev, d := w.lookAtUnit("two are verified together")
	n := w.openPromotion(ev, d)
	w.lookAtUnit("their pull request is open")
	w.putRecord(Deployments.Key(record.Unit(ev.Unit)), StoredDeployments{"qa": {{DeploymentRecord: promotion.DeploymentRecord{Commit: w.head("main"), State: promotion.DeploymentSuccess}, ID: 7}}})
	w.release("linus", "dev", "1.2.0", "job")
	w.soak("web")
	ev, _ = w.lookAtUnit("a third is verified")
	for _, number := range []int{n, 99} {
		env, members, err := w.o.PullMembers(w.ctx(), ev, number)
		w.must(err)
		want := map[int][]string{n: {"api", "web"}}[number]
		if got := effects.ComponentNames(members); !cmp.Equal(got, want) && len(got)+len(want) > 0 || env != map[int]string{n: "qa"}[number] {
			t.Errorf("#%d is about %q in %q", number, got, env)
		}
	}
	w.merge(n, "linus")
	w.soak("web")
	w.lookAtUnit("they have landed")
	if env, members, err := w.o.PullMembers(w.ctx(), ev, n); err != nil || env != "qa" || len(members) != 2 {
		t.Errorf("after the merge: %s %v %v", env, members, err)
	}
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}
	w.becomes("web-qa", func(app *verification.App) { app.Health, app.HealthMessage = "Degraded", "crashes" })
	w.soak("web")
	ev, d = w.lookAtUnit("one of them degrades")
	revert := w.openRevert(ev, d)
	w.wait(time.Second)
	w.lookAtUnit("all go back")
	w.becomes("web-qa", nil)
	w.merge(revert, "grace")
	w.wait(time.Second)
	ev, _ = w.lookAtUnit("all are back")
	if of, release := ev.RevertedPull("qa", revert); of != n || release == "" {
		t.Errorf("#%d took back #%d of %q", revert, of, release)
	}
	if of, release := ev.RevertedPull("qa", n); of != 0 || release != "" {
		t.Errorf("a promotion took back #%d of %q", of, release)
	}
	w.restart()
	w.lookAtUnit("the store is lost")
	w.end()
}

// TestKindChanges follows what is open and what was merged when spec.batch becomes
// another.
func TestKindChanges(t *testing.T) {
	const envs = `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`
	w := newStory(t, "  batch: environment\n"+envs, []string{"dev", "qa"}, "api", "web")
	w.components = []string{"web"}
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	first := w.openPromotion(ev, d)
	w.merge(first, "linus")
	w.release("ada", "dev", "1.2.0", "web")
	w.soak("web")
	ev, d = w.lookAtUnit("a release has landed, and the next is verified")
	second := w.openPromotion(ev, d)
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment"})
	ev, d = w.lookAtUnit("the next is open, and the first is to go back")
	w.openRevert(ev, d)
	w.commit("ada", "Each for itself", map[string]string{".liftlock.yaml": storyPipeline(envs)})
	w.wait(time.Second)
	w.lookAtUnit("they move alone now")
	w.must(w.forge.Close(storyRepo, second, "grace"))
	w.refreshPull(second)
	w.lookAtUnit("a person closed the one of all")
	own := w.commitTo("mallory", promotion.Branch("shop", "qa", "web"), w.head("main"), "Mine", map[string]string{"x": "y"})
	w.lookAtUnit("somebody is on the branch")
	number, err := w.forge.OpenPull(storyRepo, "mallory", promotion.Branch("shop", "qa", "web"), "main", "Mine", "")
	w.must(err)
	w.refreshPull(number)
	w.name(own, "Mine")
	w.lookAtUnit("somebody's pull request is on the branch")
	w.commit("ada", "All together again", map[string]string{".liftlock.yaml": storyPipeline("  batch: environment\n" + envs)})
	w.lookAtUnit("they move together again")
	w.end()
}

// TestHeads follows what others do to an open promotion's branch, base and labels.
func TestHeads(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	branch, ours := promotion.Branch("shop", "qa", "web"), w.refreshPull(n).Head
	w.lookAtUnit("as we opened it")
	at := func(step, head string) {
		t.Helper()
		w.wait(time.Second)
		w.must(w.forge.Push(storyRepo, "mallory", branch, head, true))
		w.fetch()
		w.refreshPull(n)
		w.lookAtUnit(step)
	}
	write := func(on, message string, files map[string]string) string {
		t.Helper()
		return w.commitTo("mallory", "elsewhere", on, message, files)
	}
	at("somebody adds a file", write(w.head("main"), "More", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.0"), "more": "x"}))
	at("somebody's commit on top", write(ours, "On top", map[string]string{"more": "x"}))
	at("another release, well made", write(w.head("main"), "Another release", map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")}))
	at("a release that can't be read", write(w.head("main"), "Broken", map[string]string{overlayFile("web", "qa"): "images: ["}))
	at("ours again", ours)

	w.commit("linus", "Docs", map[string]string{"docs": "x"})
	tree, conflicts, err := w.remote.Merge(w.ctx(), ours, w.head("main"))
	w.must(err)
	if len(conflicts) > 0 {
		t.Fatal(conflicts)
	}
	w.wait(time.Second)
	at("the forge's button brings it up to date", w.mergeCommit(tree, ours, w.head("main")))
	w.commit("linus", "Another replica in QA", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.0") + "replicas: [{name: web, count: 2}]\n"})
	w.refreshPull(n)
	w.lookAtUnit("its file has moved on")
	w.must(w.o.PullCache.RecordRefusedMerge(w.ctx(), w.repo, n, w.head(branch), &forge.Error{Op: "merge", Kind: forge.ErrNotMergeable, Message: "the queue is closed"}))
	w.lookAtUnit("the forge has refused to merge it")
	w.commit("linus", "QA by hand", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.9")})
	w.refreshPull(n)
	w.lookAtUnit("it conflicts")
	w.commitTo("grace", "other", w.head("main"), "Other branch", map[string]string{"other": "x"})
	w.bases[n] = "other"
	w.refreshPull(n)
	w.lookAtUnit("somebody changed its base")
	delete(w.bases, n)
	w.must(w.forge.Close(storyRepo, n, "grace"))
	w.refreshPull(n)
	w.lookAtUnit("a person closed it")
	w.startProcess()
	w.wait(8 * 24 * time.Hour)
	w.lookAtUnit("long after, another process")
	w.end()
}
