package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestHeadThatKillsTheProcess holds that a head is on record while it is evaluated and not after.
// One that a process died on isn't evaluated again, not by a command either. A person with write
// access, or another head, has it evaluated again.
func TestHeadThatKillsTheProcess(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	checks := &checkCounter{}
	w.opts.Metrics = checks
	number := w.openChange("theirs", map[string]string{"docs/x.md": "x\n"})
	pull := func() *forge.PullRequest {
		pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, number)
		w.must(err)
		return pr
	}
	about := record.OfPull(w.repo.ID, number)
	dieOn := func(head string) {
		w.must(evaluatedHeads.Put(t.Context(), w.opts.Store, about, evaluatedHead{head, "another process"}))
	}
	dieOn(pull().Head)
	comments := func() (own []string) {
		for _, c := range w.pull(number).Comments {
			if c.User == bot {
				own = append(own, c.Body)
			}
		}
		return own
	}
	for range 2 {
		w.must(w.run(wake.ForPull(w.repo.ID, number)))
		if own := comments(); checks.checks != 0 || len(own) != 1 || !strings.Contains(own[0], "ended while it looked at this head") {
			t.Fatalf("%d checks, and it is told in %q", checks.checks, own)
		}
		if p := w.pull(number); len(p.Statuses) != 1 || p.Statuses[0].State != "failure" {
			t.Errorf("the status is %+v", p.Statuses)
		}
	}
	if answer, _ := w.question("ada", number, "/liftlock diff"); !strings.Contains(answer, "ended while it looked at this head") || checks.checks != 0 {
		t.Errorf("diff is answered %q after %d checks", answer, checks.checks)
	}
	if answer, reactions := w.question("rita", number, "/liftlock retry"); !strings.Contains(answer, "may not give") || !slices.Equal(reactions, []string{bot + " " + reactionRefused}) {
		t.Errorf("retry of one who reads is answered %q, by %q", answer, reactions)
	}
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if checks.checks != 0 {
		t.Error("one who only reads had it looked at again")
	}
	w.dropDue()
	if answer, _ := w.question("linus", number, "/liftlock retry"); !strings.Contains(answer, "looked at again") {
		t.Errorf("retry is answered %q", answer)
	}
	if due := w.takeDue(); !slices.Contains(due, wake.ForPull(w.repo.ID, number).String()) {
		t.Errorf("retry wakes %q", due)
	}
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if checks.checks != 1 || checks.failed != 0 {
		t.Errorf("%d checks, of which %d failed", checks.checks, checks.failed)
	}
	if answer, _ := w.question("linus", number, "/liftlock retry"); !strings.Contains(answer, "is about a promotion") {
		t.Errorf("retry of what was looked at is answered %q", answer)
	}
	// Another head is another matter.
	dieOn(pull().Head)
	_, err := w.forge.CommitAs(repoName, "linus", "theirs", "More", map[string]string{"docs/y.md": "y\n"})
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if left, err := evaluatedHeads.Has(t.Context(), w.opts.Store, about); left || err != nil || checks.checks != 2 {
		t.Errorf("on record after the end: %t (%v), after %d checks", left, err, checks.checks)
	}
}

// TestAShutdownIsNoDeath holds that a look that the end of the process ends isn't on record as one
// that it died on. Neither is one that this very process left on record.
func TestAShutdownIsNoDeath(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	number := w.openChange("theirs", map[string]string{"docs/x.md": "x\n"})
	pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, number)
	w.must(err)
	ctx, end := context.WithCancel(t.Context())
	looks, about := 0, record.OfPull(w.repo.ID, number)
	err = w.lookAt(ctx, w.repo, pr, func() error {
		looks++
		if on, _, err := evaluatedHeads.Get(t.Context(), w.opts.Store, about); err != nil || on.Head != pr.Head {
			t.Errorf("on record is %v (%v)", on, err)
		}
		end()
		return ctx.Err()
	})
	if left, serr := evaluatedHeads.Has(t.Context(), w.opts.Store, about); left || serr != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("left on record: %t (%v), after %v", left, serr, err)
	}
	w.must(evaluatedHeads.Put(t.Context(), w.opts.Store, about, evaluatedHead{pr.Head, w.opts.Owner}))
	w.must(w.lookAt(t.Context(), w.repo, pr, func() error { looks++; return nil }))
	if looks != 2 {
		t.Errorf("%d looks", looks)
	}
}
