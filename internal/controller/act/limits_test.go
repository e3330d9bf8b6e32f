package act

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/policies"
)

// TestTextsAreLeftToLimits holds that comments and texts for which the forge's limits leave no call
// stop nothing else. The commit status that a merge may wait for is set, as urgently as the merge
// is wanted. The texts are written when the limits are over, without a search for a comment that
// can't be there.
func TestTextsAreLeftToLimits(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	w.verifyDev()
	pr := w.forge.pulls[n]
	over := w.now.Add(10 * time.Minute)
	w.forge.textsAgain = over
	present := func() (next time.Time, calls []string) {
		t.Helper()
		ev, d := w.evaluate()
		gates := d.Components[0].Env("qa").Gates
		for i := range gates {
			gates[i].Outcome = policies.Pass // as they are right before a merge
		}
		w.faults.Calls = nil
		next, err := w.actor.Present(forge.WithPriority(w.ctx(), forge.PriorityUrgent), ev, d)
		w.must(err)
		return next, slices.Clone(w.faults.Calls)
	}
	next, _ := present()
	if st := w.forge.statuses[pr.Head]; st.State != forge.StatusSuccess || w.forge.urgency != forge.PriorityUrgent {
		t.Errorf("the status is %+v, set with priority %d", st, w.forge.urgency)
	}
	if !next.Equal(over) || len(w.forge.comments[n]) != 0 {
		t.Errorf("the next look is at %s, %d comments are there", next, len(w.forge.comments[n]))
	}
	w.now = over
	next, calls := present()
	if !next.IsZero() || len(w.forge.comments[n]) != 1 || slices.Contains(calls, "forge: comments #1") {
		t.Errorf("at the end of the limits: %d comments by %q, the next look at %s", len(w.forge.comments[n]), calls, next)
	}

	// The last word on a pull request isn't put off: nobody would come back to it.
	w.forge.textsAgain = w.now.Add(time.Hour)
	if _, err := w.actor.putComment(w.ctx(), w.repo, n, commentText{body: "bye", last: true}); !errors.Is(err, forge.ErrRateLimited) {
		t.Errorf("the last word is put off: %v", err)
	}
}

// TestOpeningWaitsForLimits composes and pushes nothing while the forge's limits don't let a pull
// request be opened anyway.
func TestOpeningWaitsForLimits(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	limited := &forge.Error{Op: "open a pull request", Kind: forge.ErrRateLimited}
	w.forge.opensLater, w.faults.Calls = limited, nil
	if err := w.do(ev, d, open); !errors.Is(err, limited) {
		t.Fatalf("it gives %v", err)
	}
	if i := slices.IndexFunc(w.faults.Calls, func(c string) bool { return strings.HasPrefix(c, "git: ") || strings.HasPrefix(c, "forge: ") }); i >= 0 {
		t.Errorf("it did %q", w.faults.Calls)
	}
	w.forge.opensLater = nil
	w.must(w.do(ev, d, open))
	if len(w.forge.pulls) != 1 {
		t.Errorf("%d are open", len(w.forge.pulls))
	}
}

// TestOpeningIsLeftToLimits holds that a pull request that the forge's limits don't let open is not
// looked for in its lists with the next try: nothing was opened. One that may have been, by a run
// that was interrupted, is.
func TestOpeningIsLeftToLimits(t *testing.T) {
	t.Parallel()
	limited := &forge.Error{Op: "open", Kind: forge.ErrRateLimited}
	for name, c := range map[string]struct {
		refused []error // one try after the other
		list    bool    // of the last try, which nothing refuses
	}{
		"by the limits, again and again":             {[]error{limited, limited}, false},
		"by an answer that is lost":                  {[]error{&forge.Error{Op: "open", Kind: forge.ErrRetryable}}, true},
		"by the limits, after an answer was lost":    {[]error{&forge.Error{Op: "open", Kind: forge.ErrRetryable}, limited}, true},
		"by the limits before an answer that's lost": {[]error{limited, &forge.Error{Op: "open", Kind: forge.ErrRetryable}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "", "web")
			ev, d, open := w.ready("2.0.0")
			for _, w.forge.refuseOpening = range c.refused {
				if err := w.do(ev, d, open); !errors.Is(err, w.forge.refuseOpening) {
					t.Fatalf("it gives %v", err)
				}
			}
			w.forge.refuseOpening, w.faults.Calls = nil, nil
			w.must(w.do(ev, d, open))
			if got := slices.Contains(w.faults.Calls, "forge: list"); got != c.list || len(w.forge.pulls) != 1 {
				t.Errorf("%d are open, by %q", len(w.forge.pulls), w.faults.Calls)
			}
		})
	}
}
