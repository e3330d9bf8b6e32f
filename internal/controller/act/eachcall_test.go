package act

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// pullKey is a record of a kind of another package about a pull request.
func pullKey(kind, repo string, number int) store.RecordKey {
	return store.RecordKey{Kind: kind, Repo: repo, Pull: number}
}

// kept says whether the store has a record.
func (f *fixture) kept(key store.RecordKey) bool {
	f.t.Helper()
	_, ok, err := f.store.Record(f.ctx(), key)
	f.must(err)
	return ok
}

func (f *fixture) putRecord(key store.RecordKey) {
	f.t.Helper()
	f.must(f.store.PutRecord(f.ctx(), key, []byte("{}")))
}

// TestJoinQueueFails has the calls fail of a merge that is the forge's queue to make, and of
// leaving that queue.
func TestJoinQueueFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.forge.queues = true
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	merge := w.merge(ev, n)
	joined, merging := pullKey("joined-queue", w.repo.ID, n), facts.Merging.Key(facts.OfMerge(w.unit("web"), n))
	w.failEach(func() (func() error, func()) {
		w.forge.pulls[n].Queue, w.forge.pulls[n].UpdatedAt = forge.NotQueued, w.now
		w.must(w.store.DeleteRecord(w.ctx(), joined))
		w.must(w.store.DeleteRecord(w.ctx(), merging))
		_, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, n)
		w.must(err)
		before := len(w.events("queued"))
		return func() error { return w.do(ev, d, merge) }, func() {
			ev, _ := w.evaluate()
			w.compare("in the queue, as the forge and the store have it", []any{w.forge.pulls[n].Queue, w.cachedPull(n).Queue, ev.OpenPulls[n].JoinedQueueAt.IsZero(), w.kept(merging)}, []any{forge.Queued, forge.Queued, false, true})
			if len(w.events("queued")) == before {
				t.Error("that it joined isn't said")
			}
		}
	})
	_, members := merge.Subject()
	leave := promotion.LeaveQueue{Environment: "qa", Pull: n, Members: members, Why: "it is held"}
	w.failEach(func() (func() error, func()) {
		w.forge.pulls[n].Queue, w.forge.pulls[n].UpdatedAt = forge.Queued, w.now
		w.putRecord(joined)
		w.putRecord(merging)
		before := len(w.events("unqueued"))
		return func() error { return w.do(ev, d, leave) }, func() {
			ev, _ := w.evaluate()
			w.compare("out of the queue", []any{w.forge.pulls[n].Queue, w.cachedPull(n).Queue, ev.OpenPulls[n].JoinedQueueAt.IsZero(), w.kept(merging)}, []any{forge.NotQueued, forge.NotQueued, true, false})
			if len(w.events("unqueued")) == before {
				t.Error("that it left isn't said")
			}
		}
	})
}

// TestUpdateFails has the calls fail of bringing a head up to date: by the forge, which keeps
// approvals, and by composing it anew.
func TestUpdateFails(t *testing.T) {
	for name, c := range map[string]struct {
		keep    bool
		refusal error
		byForge bool
	}{
		"by the forge":                  {keep: true, byForge: true},
		"by us, as the forge can't":     {keep: true, refusal: &forge.Error{Op: "update", Kind: forge.ErrUnsupported}},
		"by us, with nothing to keep":   {},
		"refused by the forge for good": {keep: true, refusal: &forge.Error{Op: "update", Kind: forge.ErrForbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "", "web")
			n := w.open("2.0.0")
			opened := clonePull(w.forge.pulls[n])
			tip := w.commit("Say more", map[string]string{"README.md": "more"})
			ev, d := w.evaluate()
			merge := w.merge(ev, n)
			merge.Behind, merge.KeepApprovals, merge.Tip = true, c.keep, tip
			w.forge.refuseUpdates = c.refusal
			turn := store.RecordKey{Kind: "update-turn", Repo: w.repo.ID, Name: "main"}
			if errors.Is(c.refusal, forge.ErrForbidden) {
				if err := w.do(ev, d, merge); !errors.Is(err, forge.ErrForbidden) {
					t.Errorf("it ended with %v", err)
				}
				w.compare("the head", w.remoteHead(opened.Branch), opened.Head)
				return
			}
			w.failEach(func() (func() error, func()) {
				pr := clonePull(&opened)
				w.forge.pulls[n] = &pr
				w.setRemoteHead(pr.Branch, opened.Head)
				w.fetch()
				w.must(w.store.DeleteRecord(w.ctx(), turn))
				w.forge.updates = 0
				var err error
				return func() error { err = w.do(ev, d, merge); return err }, func() {
					w.compare("it is its turn", w.kept(turn), true)
					if c.byForge {
						w.compare("the forge was sent to", w.forge.updates > 0, true)
						return
					}
					info, cerr := w.repo.Mirror.Commit(w.ctx(), w.remoteHead(pr.Branch))
					w.must(cerr)
					w.compare("parents", info.Parents, []string{tip})
					if err == nil { // else the look after it says it
						w.compare("events", len(w.events("updated")), 1)
					}
				}
			})
		})
	}
}

// TestSetHoldFails has the calls fail by which a hold is set and lifted.
func TestSetHoldFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	for _, set := range []bool{true, false} {
		before := w.remoteHead(history.StateBranch)
		hold := Hold{Scope: "component", By: "ada", Reason: "it smells", Set: set}
		w.failEach(func() (func() error, func()) {
			w.setRemoteHead(history.StateBranch, before)
			w.must(w.store.DeleteRecord(w.ctx(), branch.StateCommits.Key(record.Repository(w.repo.ID))))
			w.fetch()
			return func() error {
					_, err := w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), hold)
					return err
				}, func() {
					w.fetch()
					text, held := w.stateFile("holds/shop/component/web.yaml")
					w.compare("held", []bool{held, strings.Contains(text, "it smells")}, []bool{set, set})
				}
		})
	}
	// Another process's hold came in between, and it can't be fetched.
	w.setHold(Hold{Scope: "component", By: "ada", Reason: "one", Set: true})
	w.setRemoteHead(history.StateBranch, w.remoteHead("main"))
	w.faults.Deep, w.faults.Hook = true, func(call string) {
		if call == "git: fetch" {
			w.faults.At = len(w.faults.Calls) // this very one fails
		}
	}
	if _, err := w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), Hold{Scope: "component", By: "linus", Reason: "two", Set: true}); !errors.Is(err, faulttest.ErrInjected) {
		t.Errorf("it is taken for set: %v", err)
	}
}

// TestDeleteLeftoversFails has the calls fail by which a branch that is left over is deleted.
func TestDeleteLeftoversFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	branch, head := w.leave()
	w.failEach(func() (func() error, func()) {
		w.setRemoteHead(branch, head)
		w.fetch()
		ev, _ := w.evaluate()
		return func() error { return w.actor.DeleteLeftovers(w.ctx(), ev) }, func() {
			w.compare("the branch", w.remoteHead(branch), "")
		}
	})
}

// TestSmallActionsFail has the calls fail of the actions that are one or two calls.
func TestSmallActionsFail(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	id := w.command("web", "promote", "test")
	ev, d := w.evaluate()
	joined := pullKey("joined-queue", w.repo.ID, n)
	bound := func() (release string) {
		all, err := w.store.PendingCommands(w.ctx(), unitName(w, "web"))
		w.must(err)
		for _, c := range all {
			if c.ID == id {
				release = c.Release
			}
		}
		return release
	}
	for _, c := range []struct {
		name   string
		action promotion.Action
		begin  func()
		done   func() bool
	}{
		{"refresh", promotion.Refresh{Environment: "qa", Target: "web-qa"}, func() { w.argocd.requests = nil }, func() bool { return len(w.argocd.requests) > 0 }},
		{"sync", promotion.Sync{Environment: "qa", Target: "web-qa"}, func() { w.argocd.requests = nil }, func() bool { return len(w.argocd.requests) > 0 }},
		{"bind a command", promotion.BindCommand{ID: id, Release: "r2"}, func() {}, func() bool { return bound() == "r2" }},
		{"rejoin the queue", promotion.RejoinQueue{Environment: "qa", Pull: n}, func() { w.putRecord(joined) }, func() bool { return !w.kept(joined) }},
	} {
		w.failEach(func() (func() error, func()) {
			c.begin()
			return func() error { return w.do(ev, d, c.action) }, func() {
				w.compare(c.name, c.done(), true)
			}
		})
	}
}
