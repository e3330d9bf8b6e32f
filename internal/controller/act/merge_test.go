package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

func TestMergePull(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		opened := w.now
		w.metrics.recorded = nil
		ev, d := w.evaluate()
		head, branch := w.forge.pulls[n].Head, w.forge.pulls[n].Branch
		w.must(w.do(ev, d, w.merge(ev, n)))
		if m := w.forge.merges[0]; m.Number != n || m.Head != head || m.Method != "merge" || !strings.HasSuffix(m.Title, "(#1)") ||
			!strings.Contains(m.Title, "2.0.0") || !strings.Contains(m.Message, promotion.TrailerRelease+": "+ev.OpenPulls[n].Release) {
			w.t.Errorf("asked for the merge %+v", m)
		}
		w.compare("main", w.remoteHead("main"), head)
		now, _, err := w.repo.Mirror.Head(w.ctx(), "main")
		w.must(err)
		w.compare("the mirror's main", now, head)
		w.compare("the branch", w.remoteHead(branch), "")
		for _, c := range w.names {
			p := w.promotionOf(c, n)
			m, _ := promotion.FindMember(ev.OpenPulls[n].Members, c)
			w.compare("the row of "+c, []string{p.Kind, p.State, p.Release}, []string{"promotion", "merged", m.Release})
		}
		w.compare("warnings", w.logs.Len(), 0)
		want := w.each("%s: #1 merged into main as " + wording.Short(head))
		w.compare("events", w.events("merged"), want)
		w.compare("metrics", w.metrics.recorded, []string{fmt.Sprintf("qa merged %s", w.now.Sub(opened))})

		w.mustBeStale(w.do(ev, d, w.merge(ev, n)), "somebody pushed to main") // done again, what was judged is the past
		w.compare("main", w.remoteHead("main"), head)
		w.compare("events", w.events("merged"), want)
		ev, _ = w.evaluate()
		w.compare("what is open", len(ev.OpenPulls), 0)
		for _, c := range ev.Components {
			w.compare("what landed", []any{c.Env("qa").Landed.Value.Pull, c.Env("qa").Landed.Value.Commit}, []any{n, head})
		}
	})
}

// TestMergePinsTheJudgedHead holds what the forge's answers to a merge do: nothing is
// written down of what didn't happen.
func TestMergePinsTheJudgedHead(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  merge: {method: squash}\n", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	merge := w.merge(ev, n)
	for _, c := range []struct {
		kind  error
		stale bool
	}{{forge.ErrConflict, true}, {forge.ErrNotMergeable, false}, {forge.ErrForbidden, false}, {forge.ErrRateLimited, false}, {forge.ErrRetryable, false}} {
		w.forge.refuse = &forge.Error{Op: "merge acme/fleet#1", Kind: c.kind, Message: "no", RetryAfter: w.now.Add(time.Hour)}
		err := w.do(ev, d, merge)
		if errors.Is(err, ErrStale) != c.stale || !c.stale && (!errors.Is(err, c.kind) || !forge.RetryAfter(err).Equal(w.now.Add(time.Hour))) || !strings.Contains(err.Error(), "merge #1 into qa") {
			t.Errorf("%v: %v", c.kind, err)
		}
		w.compare(c.kind.Error(), []any{w.promotionOf("web", n).State, len(w.events("merged")), w.remoteHead("main"), w.remoteHead(w.forge.pulls[n].Branch)},
			[]any{promotion.Opened, 0, merge.Tip, merge.Head})
	}
	w.forge.refuse = nil
	other := merge
	other.Head = merge.Tip
	w.mustBeStale(w.do(ev, d, other))
	w.compare("method", w.forge.merges[0].Method, "squash")
	w.refuseDeletions() // which keeps nothing from being written down
	w.actor.opts.Metrics = nil
	w.must(w.do(ev, d, merge))
	w.compare("warnings", len(w.logs.FilterMessageSnippet("could not be deleted").All()), 1)
	w.compare("events", len(w.events("merged")), 1)
	w.compare("the branch", w.remoteHead(w.forge.pulls[n].Branch), merge.Head)
}

// TestMergeWhileItsGatesPass merges nothing once a gate doesn't pass any more that did when the
// merge was judged.
func TestMergeWhileItsGatesPass(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	merge := w.merge(ev, n)
	merge.Until = w.now
	w.mustBeStale(w.do(ev, d, merge), "merge #1 into qa", "a gate of #1 passed until "+w.now.UTC().Format(time.RFC3339)+" only, which came while it was judged")
	w.compare("merges", len(w.forge.merges), 0)
	merge.Until = w.now.Add(time.Nanosecond)
	w.must(w.do(ev, d, merge))
	w.compare("merges", len(w.forge.merges), 1)
}

// TestMergeOfAMovedHead merges nothing when a branch that it was judged on isn't
// where it was: with what it promotes into, with the rules, or with the holds. The
// mirror hasn't heard of it yet.
func TestMergeOfAMovedHead(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"main", history.StateBranch} {
		w := newFixture(t, "", "web")
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		merge := w.merge(ev, n)
		w.faults.Calls = nil
		w.setRemoteHead(branch, merge.Head)
		w.mustBeStale(w.do(ev, d, merge), "merge #1 into qa", "somebody pushed to "+branch+" while #1 was judged")
		w.compare("merges", len(w.forge.merges), 0)
		w.compare("events", len(w.events("merged")), 0)
	}
}

// TestMergeOntoAPushOfTheSameMoment says so when the forge put the merge onto a commit
// that came between the last look and the merge.
func TestMergeOntoAPushOfTheSameMoment(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	merge := w.merge(ev, n)
	var between string
	w.forge.merging = func() {
		between = w.commit("Break the rules", map[string]string{".liftlock.yaml": "broken"})
		landed, err := w.repo.Mirror.Write(w.ctx(), git.CommitSpec{Message: "landed", When: w.now, Base: between, Parents: []string{between, merge.Head}})
		w.must(err)
		w.must(w.repo.Mirror.Push(w.ctx(), git.PushSpec{Branch: "main", New: landed, Old: between}))
		w.forge.landed = landed
	}
	w.must(w.do(ev, d, merge))
	want := "#1 landed on " + wording.Short(between) + " and was judged on " + wording.Short(merge.Tip) + ": somebody pushed in the same moment; look at what came between"
	w.compare("events", w.events("unjudged"), []string{"web: " + want})
	w.compare("what landed is told as merged", len(w.events("merged")), 1)
}

// TestMergedMeanwhileIntoAnotherBranch holds that a pull request that a person merged into another
// branch, in the moment of its merge here, isn't recorded as merged. It keeps its branch: another
// pull request may be on it.
func TestMergedMeanwhileIntoAnotherBranch(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		pr := w.forge.pulls[n]
		other := w.commitBeside("somewhere/else")
		pr.State, pr.Base, pr.MergeCommit, pr.MergedBy = forge.Merged, "somewhere/else", other, "mallory"
		pr.MergedAt, pr.ClosedAt, pr.UpdatedAt = w.now, w.now, w.now.Add(time.Second)
		w.mustBeStale(w.do(ev, d, w.merge(ev, n)), "which isn't on main")
		if w.remoteHead(pr.Branch) == "" {
			w.t.Error("the branch is deleted, which another pull request may be on")
		}
		w.compare("told as merged", w.events("merged"), []string(nil))
		for _, c := range w.names {
			w.compare("record", w.promotionOf(c, n).State, promotion.Opened)
		}
	})
}

// TestMergeRevert holds that a merged revert ends the promotion that it takes back.
func TestMergeRevert(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.land("2.0.0")
		ev, d, revert := w.requestRevert()
		w.must(w.do(ev, d, revert))
		w.metrics.recorded = nil
		ev, d = w.evaluate()
		w.must(w.do(ev, d, w.merge(ev, n+1)))
		if m := w.forge.merges[1]; !strings.Contains(m.Title, "Revert") || !strings.Contains(m.Message, "Takes back #1, asked for by linus: it smells") {
			w.t.Errorf("asked for the merge %+v", m)
		}
		for _, c := range w.names {
			m, _ := promotion.FindMember(revert.Members, c)
			p := w.promotionOf(c, n)
			w.compare("the promotion's row", []string{p.Kind, p.State, p.Release}, []string{"promotion", promotion.Reverted, m.Release})
			p = w.promotionOf(c, n+1)
			w.compare("the revert's row", []string{p.Kind, p.State, p.Release}, []string{"revert", "merged", m.Release})
		}
		w.compare("events", len(w.events("merged")), 2*len(w.names))
		w.compare("metrics", w.metrics.recorded, []string{"qa merged 1s"})
		w.mustBeStale(w.do(ev, d, w.merge(ev, n+1)))
		w.compare("events", len(w.events("merged")), 2*len(w.names))
		if ev, _ = w.evaluate(); slices.Contains([]string{promotion.ByPromotion, ""}, ev.Components[0].Env("qa").Landed.Value.By) {
			w.t.Errorf("it landed by %q", ev.Components[0].Env("qa").Landed.Value.By)
		}
	})
}

// TestMergeRendersNothing holds that a merge, which keeps all else of the repository waiting,
// waits for no manifests: its message has none.
func TestMergeRendersNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	s := subjectOf(ev, d, ev.OpenPulls[n])
	in, err := w.actor.openInput(w.ctx(), &s)
	w.must(err)
	if len(in.Rendered) != 0 || in.RenderedErr != "" || len(in.Changes) == 0 {
		t.Errorf("the merge's message is made from %+v", in)
	}
	w.actor.renderEffects(w.ctx(), &s, &in, openCommits(&s), s.pull.Edits, 0)
	if len(in.Rendered) == 0 {
		t.Error("the page shows no manifests")
	}
}

// commitBeside pushes a commit on main's head to another branch.
func (f *fixture) commitBeside(branch string) string {
	f.t.Helper()
	head := f.remoteHead("main")
	commit, err := f.remote.Write(f.ctx(), git.CommitSpec{Message: "Beside", When: f.now, Parents: []string{head}, Base: head, Files: []git.FileWrite{{Path: "beside", Content: []byte("x")}}})
	f.must(err)
	f.setRemoteHead(branch, commit)
	return commit
}
