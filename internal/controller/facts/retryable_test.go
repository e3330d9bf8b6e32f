package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// TestRetryableError tells what is worth another try from what is an answer.
func TestRetryableError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		over bool
		want error
	}{
		"it succeeded":                         {nil, false, nil},
		"it succeeded, in a run that's over":   {nil, true, context.Canceled},
		"it passes":                            {forge.ErrRetryable, false, forge.ErrRetryable},
		"it isn't our turn":                    {forge.ErrRateLimited, false, forge.ErrRateLimited},
		"it is forbidden":                      {forge.ErrForbidden, false, nil},
		"it is forbidden to a run that's over": {forge.ErrForbidden, true, forge.ErrForbidden},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.over {
			cancel()
		}
		if got := branch.RetryableError(ctx, c.err); !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
		cancel()
	}
}

// TestEarliest takes the earlier of two times, of which zero is none.
func TestEarliest(t *testing.T) {
	first, second := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
	for want, pairs := range map[time.Time][][2]time.Time{first: {{first, second}, {second, first}, {first, {}}, {{}, first}, {first, first}}, {}: {{{}, {}}}} {
		for _, p := range pairs {
			if got := branch.Earliest(p[0], p[1]); !got.Equal(want) {
				t.Errorf("of %s it is %s", p, got)
			}
		}
	}
}

// TestUnreadRulesAreReadAgain has the forge's rules that can't be read by now read again in a minute, also
// where something else is looked for again later than that.
func TestUnreadRulesAreReadAgain(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	w.must(w.forge.Protect(storyRepo, "main", memoryforge.Protection{Approvals: 1}))
	n, _, _ := openToQA(w)
	look := func() *Evaluation {
		t.Helper()
		w.wait(time.Second)
		w.refreshPull(n)
		ev, _ := w.evaluate("web", false)
		return ev
	}
	if ev := look(); !ev.RetryAt.IsZero() {
		t.Errorf("rules that were read are read again at %s", ev.RetryAt)
	}
	w.must(w.store.DeleteRecord(w.ctx(), branchRules.Key(record.OfBranch(w.repo.ID, "main"))))
	w.fails["rules"] = &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	ev := look()
	if want := w.now.Add(unreadRulesRetry); !ev.RetryAt.Equal(want) {
		t.Errorf("they are read again at %s, want %s", ev.RetryAt, want)
	}
	for at, want := range map[time.Time]time.Time{w.now.Add(time.Hour): w.now.Add(unreadRulesRetry), w.now.Add(time.Second): w.now.Add(time.Second)} {
		ev.RetryAt = at
		w.must(w.o.describeMergeability(w.ctx(), ev, ev.Environment("qa"), ev.OpenPulls[n], ev.openRecord("qa", n)))
		if !ev.RetryAt.Equal(want) {
			t.Errorf("with a look at %s they are read again at %s", at, ev.RetryAt)
		}
	}
}
