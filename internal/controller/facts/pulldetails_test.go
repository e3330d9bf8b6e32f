package facts

import (
	"context"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// undecidedForge is one that is computing for ever whether a pull request can be merged.
type undecidedForge struct {
	forge.Forge
	reads int
}

func (u *undecidedForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	u.reads++
	pr, err := u.Forge.PullRequest(ctx, r, number)
	if err == nil {
		pr.Mergeable = forge.MergeableUnknown
	}
	return pr, err
}

// TestReviewsAndChecksOfOneReading holds that a look has the reviews and the checks of a pull
// request without reading it again while a gate waits. It reads the pull request once a look where
// only the forge can't say whether it can be merged.
func TestReviewsAndChecksOfOneReading(t *testing.T) {
	for gates, waits := range map[string]bool{"[{approvals: {count: 1}}, {checks: {require: [build]}}]": true, "[]": false} {
		w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto, gates: `+gates+`}
`, []string{"dev", "qa"}, "web")
		w.evaluate("web", false)
		w.release("ada", "dev", "1.1.0", "web")
		w.soak("web")
		ev, d := w.evaluate("web", false)
		n := w.openPromotion(ev, d)
		f := &undecidedForge{Forge: w.repo.Forge}
		w.repo.Forge = f
		for look := 1; look <= 3; look++ {
			ev, _ = w.evaluate("web", false)
			p, unread, reads := ev.OpenPulls[n], waits && look > 1, look
			if waits {
				reads = 1
			}
			if p.Review.ChecksRead != waits || p.Review.ApprovalsErr != "" || p.MergeUnread != unread || !unread && !p.UncomputedSince.Equal(w.now) {
				t.Fatalf("gates %s, look %d: %+v", gates, look, p.Pull)
			}
			if f.reads != reads {
				t.Errorf("gates %s, look %d: it was read %d times, want %d", gates, look, f.reads, reads)
			}
		}
	}
}

// queueForge is one that keeps a pull request in its queue, and says so.
type queueForge struct {
	forge.Forge
	reads int
}

func (q *queueForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	q.reads++
	pr, err := q.Forge.PullRequest(ctx, r, number)
	if err == nil {
		pr.Queue, pr.Mergeable = forge.Queued, forge.MergeableYes
	}
	return pr, err
}

// TestQueuedIsReadAgain holds that what is in the forge's queue is read again although nothing
// was heard of it.
func TestQueuedIsReadAgain(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto}
`, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	f := &queueForge{Forge: w.repo.Forge}
	w.repo.Forge = f
	for _, c := range []struct {
		later time.Duration
		reads int
	}{{0, 1}, {queuedMaxAge / 2, 1}, {queuedMaxAge, 2}} {
		w.now = w.now.Add(c.later)
		ev, _ = w.evaluate("web", false)
		if !ev.OpenPulls[n].Queued || f.reads != c.reads {
			t.Errorf("%s later: queued %t, read %d times, want %d", c.later, ev.OpenPulls[n].Queued, f.reads, c.reads)
		}
	}
}

// TestOpenIsReadSeldom holds that what is in no queue is read again only when something was heard of
// it, or for long nothing was.
func TestOpenIsReadSeldom(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	n, _, _ := openToQA(w)
	reads := 0
	w.repo.Forge = countedForge{w.repo.Forge, &reads}
	w.evaluate("web", false)
	reads = 0
	for _, c := range []struct {
		what     string
		later    time.Duration
		notified bool
		reads    int
	}{{"soon", time.Second, false, 0}, {"later than one in a queue", queuedMaxAge, false, 0}, {"something was heard", time.Second, true, 1}, {"just not too late", w.options.MaxAge - time.Second, false, 1}, {"at last", time.Second, false, 2}} {
		w.wait(c.later)
		if c.notified {
			w.refreshPull(n)
		}
		if w.evaluate("web", false); reads != c.reads {
			t.Errorf("%s: it was read %d times, want %d", c.what, reads, c.reads)
		}
	}
}

// TestDetailIsCompletedOnce reads reviews and checks of an open pull request as they are wanted, each once.
func TestDetailIsCompletedOnce(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	pr := w.refreshPull(n)
	for name, c := range map[string]struct {
		has             pullDetail
		reviews, checks bool
		calls           int
	}{
		"nothing":                     {pullDetail{}, false, false, 0},
		"reviews":                     {pullDetail{}, true, false, 1},
		"checks":                      {pullDetail{}, false, true, 1},
		"both":                        {pullDetail{}, true, true, 2},
		"both, and reviews are there": {pullDetail{wanted: true, reviews: people.Reviews{Read: true}}, true, true, 1},
		"both, and checks are there":  {pullDetail{checks: people.Checks{Read: true}}, true, true, 1},
		"both, and both are there":    {pullDetail{wanted: true, reviews: people.Reviews{Read: true}, checks: people.Checks{Read: true}}, true, true, 0},
		"of one that is closed":       {pullDetail{pr: forge.PullRequest{State: forge.Closed}}, true, true, 0},
	} {
		d := c.has
		if d.pr.State == "" {
			d.pr = *pr
		}
		w.faults = faulttest.Faults{Deep: true}
		got, err := w.o.PullCache.completeDetail(w.ctx(), w.repo, &d, c.reviews, c.checks)
		calls := len(w.faults.Calls)
		w.faults = faulttest.Faults{}
		if err != nil || calls != c.calls {
			t.Errorf("%s: %d calls, %v", name, calls, err)
			continue
		}
		if open := d.pr.State == forge.Open; open && (got.reviews.Read != (c.has.reviews.Read || c.reviews) || got.checks.Read != (c.has.checks.Read || c.checks) || got.wanted != (c.has.wanted || c.reviews)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
