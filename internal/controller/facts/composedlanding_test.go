package facts

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

const threeEnvs = `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
    - {name: prod, after: [qa]}
`

// openToQA has components released to dev, verified there, and promoted to qa by an open pull request.
func openToQA(w *story) (number int, branch, head string) {
	w.t.Helper()
	w.evaluate(w.components[0], false)
	w.release("ada", "dev", "1.1.0", w.components...)
	w.soak(w.components[0])
	ev, d := w.evaluate(w.components[0], false)
	number = w.openPromotion(ev, d)
	pr := w.refreshPull(number)
	return number, pr.Branch, pr.Head
}

// pushOver puts a commit onto a branch of ours.
func (sto *story) pushOver(number int, branch, head string) {
	sto.t.Helper()
	sto.must(sto.forge.Push(storyRepo, "mallory", branch, head, true))
	sto.fetch()
	sto.refreshPull(number)
}

// bringUpToDate merges main into a branch of ours, as the forge's button does; files are changed in that
// merge besides.
func (sto *story) bringUpToDate(number int, branch, head string, files map[string]string) string {
	sto.t.Helper()
	onto := sto.commit("linus", "Docs", map[string]string{"docs": head})
	tree, conflicts, err := sto.remote.Merge(sto.ctx(), head, onto)
	sto.must(err)
	if len(conflicts) > 0 {
		sto.t.Fatal(conflicts)
	}
	merged := sto.mergeCommit(tree, head, onto)
	if len(files) > 0 {
		tree = sto.commitTo("mallory", "elsewhere", merged, "A tree", files)
		merged = sto.mergeCommit(tree, head, onto)
	}
	sto.pushOver(number, branch, merged)
	return merged
}

// mergeBy merges by one of the forge's methods.
func (sto *story) mergeBy(number int, login, method string) {
	sto.t.Helper()
	_, err := sto.forge.MergeByHand(storyRepo, number, login, method)
	sto.must(err)
	sto.fetch()
	sto.refreshPull(number)
}

// checkLanded holds who brought an environment's release. A person's change is left alone: nothing
// moves on from there, reverts it or replaces it.
func (sto *story) checkLanded(component, want string, modified int) {
	sto.t.Helper()
	ev, _ := sto.evaluate(component, false)
	c, _ := ev.Component(component)
	l := c.Env("qa").Landed
	if !l.OK || l.Value.By != want || l.Value.ModifiedPull != modified {
		sto.t.Fatalf("what %s has in qa came by %+v, not by %s (#%d)", component, l, want, modified)
	}
	if want != promotion.ByPerson {
		return
	}
	sto.soak(component)
	sto.release("ada", "dev", "1.2.0", component)
	sto.soak(component)
	ev, d := sto.evaluate(component, false)
	_, i := ev.Component(component)
	if st := d.Components[i].Env("qa"); st.State != promotion.Diverged {
		sto.t.Errorf("qa is %s: %s", st.State, st.Reason)
	}
	for _, s := range d.Steps() {
		if env := promotion.EnvironmentOf(s.Action); env == "qa" || env == "prod" {
			sto.t.Errorf("%T %+v is wanted", s.Action, s.Action)
		}
	}
}

// TestLandedAsComposed holds that what a promotion lands with is held against what is known to be ours,
// however it was changed and merged, also without the store.
func TestLandedAsComposed(t *testing.T) {
	evil := map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")}
	for name, tc := range map[string]struct {
		change func(w *story, n int, branch, head string) // of the open pull request; nil: none
		method string
		want   string
	}{
		"a merge":            {nil, "merge", promotion.ByPromotion},
		"a squash":           {nil, "squash", promotion.ByPromotion},
		"a rebase":           {nil, "rebase", promotion.ByPromotion},
		"brought up to date": {func(w *story, n int, branch, head string) { w.bringUpToDate(n, branch, head, nil) }, "merge", promotion.ByPromotion},
		"brought up to date twice": {func(w *story, n int, branch, head string) {
			w.bringUpToDate(n, branch, w.bringUpToDate(n, branch, head, nil), nil)
		}, "squash", promotion.ByPromotion},
		"another file besides": {func(w *story, n int, branch, head string) {
			w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", head, "More", map[string]string{"more": "x"}))
		}, "merge", promotion.ByPromotion},
		"another release pushed over it": {func(w *story, n int, branch, _ string) {
			w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", w.head("main"), "Another", evil))
		}, "merge", promotion.ByPerson},
		"another release on top": {func(w *story, n int, branch, head string) {
			w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", head, "On top", evil))
		}, "squash", promotion.ByPerson},
		"a release pushed over it that was verified before, too": {func(w *story, n int, branch, _ string) {
			w.release("ada", "dev", "1.0.5", "web")
			w.soak("web")
			w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", w.head("main"), "Another", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.5")}))
		}, "merge", promotion.ByPerson},
		"a merge with another release": {func(w *story, n int, branch, head string) { w.bringUpToDate(n, branch, head, evil) }, "merge", promotion.ByPerson},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", the store lost"}[lost], func(t *testing.T) {
				w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
				n, branch, head := openToQA(w)
				if tc.change != nil {
					tc.change(w, n, branch, head)
				}
				w.mergeBy(n, "mallory", tc.method)
				modified := 0
				if tc.want == promotion.ByPerson {
					modified = n
				}
				if lost {
					w.release("ada", "dev", "1.1.5", "web") // that it was verified there can't be made again
					w.restart()
				}
				w.checkLanded("web", tc.want, modified)
			})
		}
	}
}

// TestLandedUnproven holds that a landing of which nothing proves that it is ours is a person's, until
// something does.
func TestLandedUnproven(t *testing.T) {
	forget := func(w *story, n int) {
		text := "no mark"
		w.must(w.repo.Forge.UpdatePullRequest(w.ctx(), storyRepo, n, forge.PullRequestUpdate{Body: &text}))
	}
	t.Run("by a person, of a release that nobody has verified again", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, _, _ := openToQA(w)
		forget(w, n)
		w.mergeBy(n, "mallory", "merge")
		w.release("ada", "dev", "1.1.5", "web")
		w.restart()
		w.checkLanded("web", promotion.ByPerson, n)
	})
	t.Run("verified again upstream", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, _, _ := openToQA(w)
		forget(w, n)
		w.mergeBy(n, "mallory", "merge")
		w.commit("ada", "Once more", map[string]string{overlayFile("web", "dev"): overlayText("web", "1.1.5")})
		w.release("ada", "dev", "1.1.0", "web")
		w.restart()
		w.soak("web")
		w.checkLanded("web", promotion.ByPromotion, 0)
	})
	t.Run("merged by Liftlock", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, _, _ := openToQA(w)
		forget(w, n)
		w.mergeBy(n, storyBot, "merge")
		w.release("ada", "dev", "1.1.5", "web")
		w.restart()
		w.checkLanded("web", promotion.ByPromotion, 0)
	})
	t.Run("known from before", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, branchName, _ := openToQA(w)
		w.mergeBy(n, "mallory", "merge")
		w.checkLanded("web", promotion.ByPromotion, 0)
		forget(w, n)
		w.putRecord(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), branch.Pushed{{Head: "another", Releases: map[string]string{"web": "another"}}})
		w.checkLanded("web", promotion.ByPromotion, 0)
	})
}

// TestBatchLandedAsComposed holds that a batch of which somebody changed one member is a person's as a
// whole.
func TestBatchLandedAsComposed(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for name, files := range map[string]map[string]string{"as composed": nil, "one changed": {overlayFile("api", "qa"): overlayText("api", "6.6.6")}} {
			t.Run(name+map[bool]string{true: ", the store lost"}[lost], func(t *testing.T) {
				w := newStory(t, "  batch: environment\n"+threeEnvs, []string{"dev", "qa", "prod"}, "api", "web")
				n, branch, head := openToQA(w)
				want, modified := promotion.ByPromotion, 0
				if files != nil {
					w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", head, "On top", files))
					want, modified = promotion.ByPerson, n
				}
				w.mergeBy(n, "mallory", "squash")
				if lost {
					w.release("ada", "dev", "1.1.5", "api", "web")
					w.restart()
				}
				for _, component := range slices.Backward(w.components) {
					w.checkLanded(component, want, modified)
				}
			})
		}
	}
}

// TestRevertLandedAsComposed holds the same of a revert.
func TestRevertLandedAsComposed(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for name, files := range map[string]map[string]string{"as composed": nil, "another release": {overlayFile("web", "qa"): overlayText("web", "6.6.6")}} {
			t.Run(name+map[bool]string{true: ", the store lost"}[lost], func(t *testing.T) {
				w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
				n, _, _ := openToQA(w)
				w.mergeBy(n, "mallory", "merge")
				w.soak("web")
				w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 1"})
				ev, d := w.evaluate("web", false)
				revert := w.openRevert(ev, d)
				pr := w.refreshPull(revert)
				want, modified := promotion.ByRevert, 0
				if files != nil {
					w.pushOver(revert, pr.Branch, w.commitTo("mallory", "elsewhere", pr.Head, "On top", files))
					want, modified = promotion.ByPerson, revert
				} else {
					w.bringUpToDate(revert, pr.Branch, pr.Head, nil)
				}
				w.mergeBy(revert, "mallory", "merge")
				if lost {
					w.restart()
				}
				w.checkLanded("web", want, modified)
			})
		}
	}
}

// TestLandingOfUnknownOrigin has each call fail by which it is found out whose what landed is: that it
// isn't known is never taken for a person's change, nor for ours.
func TestLandingOfUnknownOrigin(t *testing.T) {
	envs := []string{"dev", "qa", "prod"}
	t.Run("a promotion, by what was pushed", func(t *testing.T) {
		w := newStory(t, threeEnvs, envs, "web")
		n, _, _ := openToQA(w)
		w.mergeBy(n, "mallory", "squash")
		w.failEach("web", "landed")
	})
	t.Run("a promotion, by its mark", func(t *testing.T) {
		w := newStory(t, threeEnvs, envs, "web")
		n, branch, head := openToQA(w)
		w.bringUpToDate(n, branch, head, nil)
		w.mergeBy(n, "mallory", "merge")
		w.restart()
		w.failEach("web", "landed")
	})
	t.Run("a batch", func(t *testing.T) {
		w := newStory(t, "  batch: environment\n"+threeEnvs, envs, "api", "web")
		n, _, _ := openToQA(w)
		w.mergeBy(n, "mallory", "squash")
		w.failEach("web", "landed")
	})
	t.Run("a revert", func(t *testing.T) {
		w := newStory(t, threeEnvs, envs, "web")
		n, _, _ := openToQA(w)
		w.mergeBy(n, "mallory", "merge")
		w.soak("web")
		w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 1"})
		revert := w.openRevert(w.evaluate("web", false))
		w.mergeBy(revert, "mallory", "squash")
		w.failEach("web", "landed")
		w.restart()
		w.failEach("web", "landed, and the store is lost")
	})
}

// TestIsMergedByUs reads once who merged where a list doesn't say it.
func TestIsMergedByUs(t *testing.T) {
	for login, want := range map[string]bool{storyBot: true, "mallory": false} {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, _, _ := openToQA(w)
		w.mergeBy(n, login, "merge")
		listed := *w.refreshPull(n)
		if ours, err := w.o.isMergedByUs(w.ctx(), w.repo, &listed); err != nil || ours != want {
			t.Errorf("by %s: ours is %t, %v", login, ours, err)
		}
		listed.MergedBy, listed.MergedByID = "", 0
		for _, calls := range []bool{true, false} {
			w.faults = faulttest.Faults{Deep: true}
			if ours, err := w.o.isMergedByUs(w.ctx(), w.repo, &listed); err != nil || ours != want || slices.ContainsFunc(w.faults.Calls, func(call string) bool { return strings.HasPrefix(call, "forge: ") }) != calls {
				t.Errorf("by %s, which the list doesn't say: ours is %t, %v, after %q", login, ours, err, w.faults.Calls)
			}
			w.faults = faulttest.Faults{}
		}
		for what, change := range map[string]func(pr *forge.PullRequest){
			"another commit": func(pr *forge.PullRequest) { pr.MergeCommit = landedHash },
			"no such one":    func(pr *forge.PullRequest) { pr.Number = 99 },
		} {
			other := listed
			change(&other)
			if ours, err := w.o.isMergedByUs(w.ctx(), w.repo, &other); err != nil || ours {
				t.Errorf("%s: ours is %t, %v", what, ours, err)
			}
		}
		w.faults = faulttest.Faults{Deep: true, At: 1}
		listed.MergeCommit = landedHash[1:] + "0"
		if ours, err := w.o.isMergedByUs(w.ctx(), w.repo, &listed); err == nil || ours {
			t.Errorf("the forge is away: ours is %t, %v", ours, err)
		}
		w.faults = faulttest.Faults{}
	}
}
