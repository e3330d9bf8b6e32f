package controller

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// urgencyOfUnit drops what is due, and gives how urgent a unit's key was; false: it wasn't due.
func (f *fixture) urgencyOfUnit(component string) (urgency store.Urgency, due bool) {
	f.t.Helper()
	for _, c := range f.takeClaims() {
		if c.Key == wake.ForUnit(f.unit(component)).String() {
			urgency, due = c.Urgency, true
		}
	}
	return urgency, due
}

// TestPullRequestWakesItsUnits holds that news of a pull request wakes the units that judge it. For an
// open one any news does, behind all others where only a sweep asks; for a merged one, until the
// merge is on record.
func TestPullRequestWakesItsUnits(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			number := w.openOne(c.key, "2.0.0", c.components...).Number
			want := func(when string, run, urgency store.Urgency, wakes bool) {
				t.Helper()
				w.dropDue()
				ctx, _ := withUrgency(t.Context(), run)
				_, err := w.runKey(ctx, wake.ForPull(w.repo.ID, number).String())
				w.must(err)
				if got, woken := w.urgencyOfUnit(c.key); woken != wakes || got != urgency {
					t.Errorf("%s: woken %v, as %d", when, woken, got)
				}
			}
			want("open", store.Normal, store.Urgent, true)
			want("open, in a sweep", store.Background, store.Background, true)

			_, err := w.forge.MergePull(repoName, number, "grace", "merge")
			w.must(err)
			want("just merged", store.Urgent, store.Urgent, true)
			want("merged and not judged", store.Urgent, store.Urgent, true)
			w.settle(c.key, "the merge is on record", func() bool {
				records, err := w.opts.Store.Promotions(t.Context(), store.PromotionFilter{Repo: w.repo.ID, Pull: number})
				w.must(err)
				return len(records) == len(c.components) && facts.IsRecordOfMerge(&records[0])
			})
			want("on record", store.Urgent, store.Normal, false)
			row, _, err := w.opts.Store.Pull(t.Context(), w.repo.ID, number)
			w.must(err)
			for what, before := range map[string]store.Pull{"it was open": {Repo: row.Repo, State: string(forge.Open)}, "it was merged by another commit": {Repo: row.Repo, State: row.State, MergeCommit: "c0"}} {
				if known, err := w.isMergeOnRecord(t.Context(), &forge.PullRequest{Number: number, State: forge.Merged, MergeCommit: row.MergeCommit}, &before); known || err != nil {
					t.Errorf("%s when the store last heard: on record %v, %v", what, known, err)
				}
			}
			records, err := w.opts.Store.Promotions(t.Context(), store.PromotionFilter{Repo: w.repo.ID, Pull: number})
			w.must(err)
			last := records[len(records)-1]
			last.State = promotion.Opened
			w.must(w.opts.Store.Tx(t.Context(), "test", func(tx *store.Tx) error {
				_, err := tx.PutPromotion(t.Context(), last)
				return err
			}))
			want("not all of it on record", store.Urgent, store.Urgent, true)
			if known, err := w.isMergeOnRecord(t.Context(), &forge.PullRequest{Number: number + 1, State: forge.Merged, MergeCommit: row.MergeCommit}, &row); known || err != nil {
				t.Errorf("one that nobody has judged: on record %v, %v", known, err)
			}
		})
	}
}

// TestASweepWakesBehindAllOthers holds that a sweep's keys run behind all others, also those of the
// pull requests that it has read, unless there is news in them.
func TestASweepWakesBehindAllOthers(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	number := w.openOne("web", "2.0.0", "web").Number
	for _, c := range []struct {
		changed bool
		want    store.Urgency
	}{{false, store.Background}, {true, store.Urgent}} {
		w.dropDue()
		if c.changed {
			_, err := w.forge.MergePull(repoName, number, "grace", "merge")
			w.must(err)
		}
		w.must(w.opts.Store.WakeAs(t.Context(), store.Background, wake.ForPull(w.repo.ID, number).String()))
		w.clock.Step(time.Second)
		if ran, err := w.Step(t.Context()); !ran || err != nil {
			t.Fatal(ran, err)
		}
		if got, woken := w.urgencyOfUnit("web"); !woken || got != c.want {
			t.Errorf("where it changed (%v): woken %v, as %d", c.changed, woken, got)
		}
	}
}

// TestRecordsOfMerges holds which records say that a pull request was merged.
func TestRecordsOfMerges(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{promotion.Opened: false, promotion.Closed: false, "superseded": false, "merged": true, promotion.Verified: true, promotion.Reverted: true} {
		if facts.IsRecordOfMerge(&store.Promotion{State: state}) != want {
			t.Errorf("%s: %v", state, !want)
		}
	}
}
