package facts

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestLeftovers holds which branches are deleted once they are of no use, and on which of them the
// next promotion may be built. A push of an interrupted run of ours is both. A branch of another
// account, or one that a person may want, is neither.
func TestLeftovers(t *testing.T) {
	branchName := promotion.Branch("shop", "qa", "web")
	merged := func(w *story, n int) { w.mergeBy(n, "linus", "merge") }
	closed := func(labels ...string) func(w *story, n int) {
		return func(w *story, n int) {
			w.must(w.forge.SetLabels(storyRepo, n, "linus", append(labels, promotion.LabelOurs)...))
			w.must(w.forge.Close(storyRepo, n, "linus"))
			w.refreshPull(n)
		}
	}
	for name, c := range map[string]struct {
		push      func(w *story, ours string) string // what is on the branch; nil: what we composed
		pull      bool                               // a pull request was opened from there
		then      func(w *story, number int)         // what became of that; nil: it is open
		leftover  bool
		unmanaged string // what is said of it; empty: a promotion may be built there
	}{
		"ours, without a pull request": {leftover: true},
		"its pull request is open":     {pull: true},
		"it was merged":                {pull: true, then: merged, leftover: true},
		"we closed it":                 {pull: true, then: closed(promotion.LabelSuperseded), leftover: true},
		"a person closed it":           {pull: true, then: closed()},
		"a person's commit": {push: func(w *story, _ string) string {
			return w.commitTo("mallory", branchName, w.head("main"), "Mine", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.0")})
		}, unmanaged: "the branch liftlock/shop/qa/web exists with a commit by mallory that is not Liftlock's (Liftlock did not commit it); delete or rename it"},
		"more than we composed": {push: func(w *story, _ string) string {
			return w.commitTo(storyBot, branchName, w.head("main"), "As ours", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.0"), "more": "x"})
		}, leftover: true, unmanaged: "more"},
		"on nothing of the branch": {push: func(w *story, ours string) string {
			return w.commitTo(storyBot, branchName, w.commitTo(storyBot, branchName, ours, "As ours", map[string]string{"more": "x"}), "Twice", map[string]string{"more": "y"})
		}, leftover: true, unmanaged: "is not one commit on top of main"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
			w.evaluate("web", false)
			w.release("ada", "dev", "1.1.0", "web")
			w.soak("web")
			ev, d := w.evaluate("web", false)
			x := storyAction[promotion.Open](w, d)
			head := w.pushEdits(branchName, x.Tip, "Promote", ev.ComposedEdits(x.Environment, x.Release))
			if c.push != nil {
				head = c.push(w, head)
			}
			if c.pull {
				n := w.openPull(branchName, "Promote", head, branch.Marker{Kind: promotion.KindPromotion, Release: x.Release})
				if c.then != nil {
					c.then(w, n)
				}
			}
			ev, _ = w.evaluate("web", false)
			leftovers, err := w.o.Leftovers(w.ctx(), ev)
			w.must(err)
			if is := len(leftovers) == 1 && leftovers[0] == (Leftover{Branch: branchName, Head: head}); is != c.leftover || len(leftovers) > 1 {
				t.Errorf("leftovers are %+v", leftovers)
			}
			qa := ev.Components[0].Env("qa")
			if (qa.BranchState == promotion.BranchUnmanaged) != (c.unmanaged != "") || !strings.Contains(qa.BranchReason, c.unmanaged) {
				t.Errorf("the branch is %q: %s", qa.BranchState, qa.BranchReason)
			}
			if at, known := ev.JudgedHead(branchName); at != head || !known {
				t.Errorf("it was judged at %q, %t", at, known)
			}
			if at, known := ev.JudgedHead("other"); at != "" || known {
				t.Errorf("another branch was judged at %q", at)
			}
		})
	}
	t.Run("a revert's, and one that moved meanwhile", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		revert := promotion.RevertBranch("shop", "qa", "web", release("a"))
		head := w.commitTo(storyBot, revert, w.head("main"), "Revert", map[string]string{"x": "x"})
		w.commitTo(storyBot, promotion.RevertBranch("shop", "qa", "webshop", release("a")), w.head("main"), "Another's", map[string]string{"x": "x"})
		ev, _ := w.evaluate("web", false)
		leftovers, err := w.o.Leftovers(w.ctx(), ev)
		if err != nil || len(leftovers) != 1 || (leftovers[0] != Leftover{Branch: revert, Head: head}) {
			t.Errorf("leftovers are %+v, %v", leftovers, err)
		}
		if spare, err := w.o.isLeftover(w.ctx(), w.repo, revert, landedHash); err != nil || spare {
			t.Errorf("a head that isn't there any more is spare: %t, %v", spare, err)
		}
	})
}

// signingForge is a forge that commits for us.
type signingForge struct {
	forge.Forge
	forge.CommitSigner
}

func (signingForge) IsSigner(email string) bool { return email == "signer@forge.example" }

// TestIsCommittedByUs takes a commit for ours by who committed it, or, where the forge commits for us,
// by its author.
func TestIsCommittedByUs(t *testing.T) {
	us, signer, mallory := git.Ident{Name: "Liftlock", Email: "bot@example.com"}, git.Ident{Name: "Forge", Email: "signer@forge.example"}, git.Ident{Name: "Mallory", Email: "mallory@example.com"}
	r := &branch.Repository{Mirror: git.OpenMemory(git.NewMemoryRemote(), git.MemoryOptions{Author: us})}
	for name, c := range map[string]struct {
		forge             forge.Forge
		signs             bool
		author, committer git.Ident
		want              bool
	}{
		"we committed it":                      {nil, false, us, us, true},
		"we committed what somebody wrote":     {nil, false, mallory, us, true},
		"somebody committed what we wrote":     {nil, false, us, mallory, false},
		"the forge did, and doesn't sign ours": {signingForge{}, false, us, signer, false},
		"the forge did, for us":                {signingForge{}, true, git.Ident{Name: "liftlock[bot]", Email: "BOT@example.com"}, signer, true},
		"the forge did, for somebody":          {signingForge{}, true, mallory, signer, false},
		"somebody, where the forge signs":      {signingForge{}, true, us, mallory, false},
		"ours, where the forge signs":          {signingForge{}, true, mallory, us, true},
		"a forge that can't sign":              {nil, true, us, signer, false},
	} {
		r.Forge, r.SignedByForge = c.forge, c.signs
		if got := r.IsCommittedByUs(&git.CommitInfo{Author: c.author, Committer: c.committer}); got != c.want {
			t.Errorf("%s: ours is %t", name, got)
		}
	}
}
