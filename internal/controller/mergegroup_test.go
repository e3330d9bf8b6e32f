package controller

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/webhooks"
)

// groupState is Liftlock's status on a merge group; empty: it has none.
func (f *fixture) groupState(branch string) string {
	f.t.Helper()
	f.must(f.run(wake.ForMergeGroup(f.repo.ID, branch)))
	groups, err := f.emulated.MergeGroups(repoName)
	f.must(err)
	for _, g := range groups {
		if g.Branch == branch {
			return g.States[act.StatusContext]
		}
	}
	f.t.Fatalf("there is no merge group %s among %+v", branch, groups)
	return ""
}

// TestMergeGroupsFailClosed holds that a merge group has no success while it may have a promotion
// of ours that is on hold. One was queued by a person where the queue squashes: no group contains
// its head, whatever status anybody sets on it. One isn't queued, and one's own head was pushed as
// a merge group.
func TestMergeGroupsFailClosed(t *testing.T) {
	w := newEmulatedFixture(t, "", manualQA, "web")
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	p := w.openOne("web", "1.1.0", "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{Method: "squash"}, Contexts: []string{act.StatusContext}, Ruleset: "queue"}))
	w.must(w.forge.SetStatus(repoName, "linus", p.Head, emulator.Status{Context: act.StatusContext, State: "success"}))
	w.must(w.emulated.Enqueue(repoName, p.Number, "linus"))
	w.must(w.emulated.BuildMergeGroups(repoName, "linus"))
	groups, err := w.emulated.MergeGroups(repoName)
	w.must(err)
	if len(groups) != 1 {
		t.Fatalf("the groups are %+v", groups)
	}
	if got := w.groupState(groups[0].Branch); got != "success" {
		t.Errorf("with every gate passed the group is %q", got)
	}

	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	w.must(w.forge.SetStatus(repoName, "linus", p.Head, emulator.Status{Context: act.StatusContext, State: "success"}))
	if got := w.groupState(groups[0].Branch); got != "pending" {
		t.Errorf("with the promotion on hold the group is %q", got)
	}
	w.runAllDue()
	if queued := w.pulls()[0].Queued; queued {
		t.Error("the promotion on hold stays in the queue")
	}

	const pushed = "gh-readonly-queue/main/pr-1-x"
	w.must(w.forge.SetBranch(repoName, "linus", pushed, p.Head))
	w.must(w.forge.SetStatus(repoName, "linus", p.Head, emulator.Status{Context: act.StatusContext, State: "failure"}))
	if got := w.groupState(pushed); got != "failure" {
		t.Errorf("somebody pushed a group at the head of a promotion on hold, which has %q", got)
	}
	if _, err := w.forge.CommitAs(repoName, "linus", pushed, "More", map[string]string{"more.txt": "more\n"}); err != nil {
		t.Fatal(err)
	}
	if got := w.groupState(pushed); got != "pending" {
		t.Errorf("a group with the head of a promotion that isn't queued is %q", got)
	}
}

// TestHoldOnPullQueuedByPerson holds that a promotion that a person queued leaves GitHub's merge
// queue when it is put on hold. It does so too where the hold's event was the first to tell of the
// queue.
func TestHoldOnPullQueuedByPerson(t *testing.T) {
	w := newEmulatedFixture(t, "", manualQA, "web")
	p := w.openOne("web", "1.1.0", "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Ruleset: "queue"}))
	w.must(w.emulated.Enqueue(repoName, p.Number, "linus"))
	deliver := func(action string) {
		t.Helper()
		ev := &webhooks.Event{Forge: webhooks.GitHub, Delivery: action, Kind: webhooks.PullRequest, Action: action, Number: p.Number, Sender: "linus"}
		records, err := RecordsOfEvent(w.repo.ID, bot, ev)
		w.must(err)
		_, err = w.opts.Store.Accept(t.Context(), store.Delivery{Forge: "hub", ID: ev.Delivery, Event: "pull_request", Repo: repoName, ReceivedAt: w.clock.Now(),
			Keys: wake.Strings(KeysOfEvent(t.Context(), w.opts.Store, w.repo.ID, bot, ev)...), Urgency: UrgencyOfEvent(ev), Records: records})
		w.must(err)
		w.runAllDue()
	}
	if deliver("enqueued"); !w.pulls()[0].Queued {
		t.Fatal("what may be merged left the queue")
	}
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	w.clock.Step(2 * time.Second)
	if deliver("labeled"); w.pulls()[0].Queued {
		t.Error("it is on hold and stays in the queue")
	}
}

// TestAHoldAfterALostStore holds that a promotion in GitHub's merge queue leaves it when it is put
// on hold also after the database was lost. With the database the knowledge of the queue was lost.
func TestAHoldAfterALostStore(t *testing.T) {
	w := newEmulatedFixture(t, "", manualQA, "web")
	p := w.openOne("web", "1.1.0", "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Ruleset: "queue"}))
	w.must(w.emulated.Enqueue(repoName, p.Number, bot))
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now})
	w.must(err)
	t.Cleanup(func() { _ = st.Close() })
	w.addProcess(st, "me")
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	for range 5 { // what was verified upstream is found out again, which takes its time
		w.must(w.Start(t.Context()))
		w.runAllDue()
		w.clock.Step(2 * time.Second)
	}
	if w.pulls()[0].Queued {
		t.Error("it is on hold and stays in the queue")
	}
}

// TestSweepFindsMergeGroups has a sweep look at a merge group whose event was lost, once.
func TestSweepFindsMergeGroups(t *testing.T) {
	w := newEmulatedFixture(t, "", manualQA, "web")
	w.repo.ForgeType = webhooks.GitHub
	p := w.openOne("web", "1.1.0", "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Ruleset: "queue"}))
	w.must(w.emulated.Enqueue(repoName, p.Number, "linus"))
	w.must(w.emulated.BuildMergeGroups(repoName, "linus"))
	w.runRepository()
	for _, want := range []int{1, 0} {
		groups, err := w.unservedGroups(t.Context(), w.repo)
		if w.must(err); len(groups) != want {
			t.Fatalf("the sweep wakes %v, not %d", groups, want)
		}
		w.must(w.run(wake.ForSweep(w.repo.ID)))
		w.runAllDue()
	}
	groups, err := w.emulated.MergeGroups(repoName)
	w.must(err)
	if len(groups) != 1 || groups[0].States[act.StatusContext] != "success" {
		t.Errorf("after the sweep the groups are %+v", groups)
	}
}

// TestNoMergeGroup holds that nothing is said of a branch that isn't a merge group's, nor of one
// that is over.
func TestNoMergeGroup(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.openOne("web", "1.1.0", "web")
	for _, branch := range []string{"theirs", groupPrefix + "main"} {
		head, err := w.forge.CommitAs(repoName, "linus", branch, "Write", map[string]string{"docs.txt": branch})
		w.must(err)
		w.must(w.run(wake.ForMergeGroup(w.repo.ID, branch)))
		if all, err := w.repo.Forge.Statuses(t.Context(), w.repo.Name, head); err != nil || len(all) != 0 {
			t.Errorf("%s has the statuses %+v, %v", branch, all, err)
		}
	}
	calls := w.calls.Load()
	w.must(w.run(wake.ForMergeGroup(w.repo.ID, groupPrefix+"main/pr-9-gone")))
	if n := w.calls.Load() - calls; n != 0 {
		t.Errorf("one that is over takes %d calls", n)
	}
}
