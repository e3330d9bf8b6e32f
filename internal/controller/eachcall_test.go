package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// swallowed are the calls whose failure is no run's, by how they begin and a file that they
// come from, and why.
var swallowed = []struct{ call, from, because string }{
	{"store: statement of freeSlot", "controller/mergequeue.go", "a turn that isn't given back comes free by itself"},
	{"store: freeSlot", "controller/mergequeue.go", "a turn that isn't given back comes free by itself"},
	{"forge: create the webhook", "controller/hook.go", "polling finds what it would have told"},
	{"", "controller/announcements.go", "what a command did is on record, and is said later"},
	{"forge: list the deliveries", "controller/hook.go", "sweeping finds what they were about"},
	{"git: push", "act/leftovers.go", "a branch that can't be deleted is left over, and the sweep deletes it"},
}

// failCalls does something again and again while one of its calls fails that no run of the test had
// fail before. It ends with the failing call's error, except where that is swallowed.
func (f *fixture) failCalls(what string, do func() error) error {
	f.t.Helper()
	if f.injected.Once == nil {
		return do()
	}
	for {
		f.injected.Hit, f.injected.Deep = "", true
		err := do()
		hit := f.injected.Hit
		f.injected.Deep = false
		if hit == "" {
			return err
		}
		f.clock.Step(f.retryDelay)
		if errors.Is(err, faulttest.ErrInjected) {
			continue
		}
		why := whySwallowed(hit, f.injected.HitCaller)
		if why == "" {
			f.t.Errorf("%s: after %s had failed it ended with %v", what, f.injected.HitCaller, err)
			return err
		}
		f.t.Logf("%s: %s failed: %s", what, hit, why)
	}
}

// whySwallowed is why a call's failure is no run's; empty: it is.
func whySwallowed(call, caller string) string {
	for _, s := range swallowed {
		if strings.HasPrefix(call, s.call) && strings.Contains(caller, s.from) {
			return s.because
		}
	}
	return ""
}

// outcome is what there is in the end: pull requests with what they show, what is said to have
// happened, and the audit trail.
func (f *fixture) outcome() (out []string) {
	f.t.Helper()
	for _, p := range f.pulls() {
		slices.Sort(p.Labels)
		out = append(out, fmt.Sprintf("#%d %s of %s to %s, open %t, merged %t by %q, labels %q", p.Number, p.Title, p.Branch, p.Base, p.Open, p.Merged, p.MergedBy, p.Labels))
		for _, k := range p.Comments {
			first, _, _ := strings.Cut(k.Body, "\n")
			first, _, _ = strings.Cut(first, " id=") // the forge's number of a comment
			out = append(out, fmt.Sprintf("#%d: %s says %s %v", p.Number, k.User, first, k.Reactions))
		}
		for _, s := range p.Statuses {
			out = append(out, fmt.Sprintf("#%d: %s is %s", p.Number, s.Context, s.State))
		}
	}
	events, err := f.opts.Store.Events(f.t.Context(), store.EventFilter{Limit: 1000})
	f.must(err)
	var said []string
	for _, e := range events {
		if slices.Contains([]string{"replaced", "queued", "unqueued"}, string(e.Kind)) {
			continue // not said of what had its effect before a failure
		}
		said = append(said, fmt.Sprintf("%s %s %s #%d", e.Component, e.Environment, e.Kind, e.Pull))
	}
	audit, err := f.opts.Store.AuditTrail(f.t.Context(), store.AuditFilter{}, 0)
	f.must(err)
	for _, a := range audit {
		result, _, _ := strings.Cut(a.Outcome, " as ") // a commit, which its time is in
		said = append(said, fmt.Sprintf("%s gave %s: %s", a.Actor, a.Verb, result))
	}
	slices.Sort(said)
	return append(out, said...)
}

// rest sweeps until that changes nothing any more, twice in a row: what is healthy is verified after
// some minutes in which nothing else happens.
func (f *fixture) rest(component string) {
	f.t.Helper()
	var before []string
	quiet := 0
	for range 20 {
		now := f.outcome()
		if slices.Equal(before, now) {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 2 {
			return
		}
		before = now
		f.sweepAll(component)
	}
	f.t.Fatal("it never comes to rest")
}

// sweepAll runs what runs from time to time, and the unit until it has come to rest.
func (f *fixture) sweepAll(component string) {
	f.t.Helper()
	for range 3 {
		f.clock.Step(time.Minute)
		for _, k := range []wake.Key{wake.ForSweep(f.repo.ID), wake.ForHook(f.repo.ID), wake.ForRules(f.repo.ID), wake.ForUnit(f.unit(component)), wake.ForMerge(f.repo.ID)} {
			if err := f.run(k); err != nil && !isStale(err) {
				f.t.Fatalf("%s: %v", k, err)
			}
		}
		for _, p := range f.pulls() {
			f.must(f.run(wake.ForPull(f.repo.ID, p.Number)))
		}
	}
}

// TestEachCallFails has each call of the store, the forge or Git fail once, before its effect and
// after it. The run ends with that, and in the end all is as if none had failed.
func TestEachCallFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("what one run comes to after each failure is nothing that goroutines share")
	}
	for name, s := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm := newMemoryFixture(t, s.spec, s.after, s.components...)
			s.happens(calm)
			w := newMemoryFixture(t, s.spec, s.after, s.components...)
			w.injected.Once = map[string]bool{}
			s.happens(w)
			if len(w.injected.Once) < 20 {
				t.Errorf("only %d calls failed", len(w.injected.Once))
			}
			if diff := cmp.Diff(calm.outcome(), w.outcome()); diff != "" {
				t.Errorf("without failures (-) and with them (+):\n%s", diff)
			}
		})
	}
}
