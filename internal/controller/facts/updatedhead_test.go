package facts

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// TestMergesOnOurBranch has another account push merges to a promotion's branch that differ from
// their base only in the promotion's own changes. The one that the forge's own button makes is
// still ours, and none that would land something else.
func TestMergesOnOurBranch(t *testing.T) {
	for _, method := range []string{"merge", "rebase"} {
		t.Run(method, func(t *testing.T) {
			w := newStory(t, "  merge: {method: "+method+"}\n  environments:\n    - {name: dev}\n    - {name: qa, after: [dev]}\n", []string{"dev", "qa"}, "web")
			w.evaluate("web", false)
			w.release("ada", "dev", "1.1.0", "web")
			w.soak("web")
			n := w.openPromotion(w.evaluate("web", false))
			branch, ours := promotion.Branch("shop", "qa", "web"), w.refreshPull(n).Head
			older := w.commit("linus", "Docs", map[string]string{"docs": "x"})
			newest := w.commit("linus", "Close a hole", map[string]string{"hole": "closed"})
			tree, conflicts, err := w.remote.Merge(w.ctx(), ours, older)
			if w.must(err); len(conflicts) > 0 {
				t.Fatal(conflicts)
			}
			check := func(what string, isOurs bool, parents ...string) {
				t.Helper()
				w.must(w.forge.Push(storyRepo, "mallory", branch, w.mergeCommit(tree, parents...), true))
				w.fetch()
				w.wait(time.Second)
				w.refreshPull(n)
				ev, _ := w.evaluate("web", false)
				p := ev.OpenPulls[n]
				if modified := p.HeadState == promotion.HeadModified; modified == isOurs {
					t.Errorf("%s: the head is %q: %s", what, p.HeadState, p.HeadReason)
				}
			}
			check("the forge's button", true, ours, older)
			check("the button, a second time", true, w.mergeCommit(tree, ours, older), older)
			on := w.commitTo("mallory", "elsewhere", newest, "Nothing", nil)
			check("a merge of what is newer than its base", false, on, older)
			more := w.commitTo("mallory", "elsewhere", older, "More", map[string]string{"more": "x"})
			check("a merge that leaves out a commit's change", method == "merge", more, older)
		})
	}
}
