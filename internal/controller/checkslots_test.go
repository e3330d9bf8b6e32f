package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// simulatedCheck is somebody's check in a simulation of the places.
type simulatedCheck struct {
	repository, author string
	pull               int
	at, takes          time.Duration // when it comes, and how long it lasts

	begun, ends time.Duration // zero: not yet
	leave       func()
}

// runChecks has checks ask as the controller does until all are over, and returns the most
// that were remembered.
func runChecks(t *testing.T, all []*simulatedCheck) (remembered int) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var now time.Duration
	slots := newCheckSlots(func() time.Time { return start.Add(now) })
	r := rand.New(rand.NewPCG(1, 2))
	for left := len(all); left > 0; now += checkRetryDelay {
		if now > 100*time.Hour {
			t.Fatalf("%d checks are never done", left)
		}
		for _, a := range all {
			if a.leave != nil && now >= a.ends {
				a.leave()
				a.leave, left = nil, left-1
			}
		}
		for _, i := range r.Perm(len(all)) { // in no order, as their runs come
			a := all[i]
			if now < a.at || a.ends != 0 {
				continue
			}
			if leave, ok := slots.enter(a.repository, a.author, a.pull, checkRetryDelay); ok {
				a.begun, a.ends, a.leave = now, now+a.takes, leave
			}
		}
		if n := slots.occupied(); n > maxConcurrentChecks {
			t.Fatalf("%d checks run at once", n)
		}
		remembered = max(remembered, slots.remembered)
	}
	return remembered
}

// TestCheckSlotsAreFair holds that an author of many checks, or slow ones, delays another's by at
// most one of them where they share a repository. Otherwise, once the repository is known for slow
// ones, it delays none.
func TestCheckSlotsAreFair(t *testing.T) {
	const slow = 90 * time.Second
	many := func(repository, author string, n int) (out []*simulatedCheck) {
		for i := range n {
			out = append(out, &simulatedCheck{repository: repository, author: author, pull: 1000 + i, takes: slow})
		}
		return out
	}
	for name, c := range map[string]struct {
		crowd []*simulatedCheck
		most  time.Duration // that another's check waits
	}{
		"one author of the same repository": {many("shop", "mallory", 100), slow},
		"one author of another repository":  {many("other", "mallory", 100), 0},
		"many authors of another repository": {func() (out []*simulatedCheck) {
			for i := range 100 {
				out = append(out, many("other", fmt.Sprint("mallory-", i), 1)...)
			}
			return out
		}(), 0},
		"one pull request that is pushed to again and again": {func() (out []*simulatedCheck) {
			for i := range 100 {
				at := time.Duration(i) * time.Second
				out = append(out, &simulatedCheck{repository: "shop", author: "mallory", pull: 1000, at: at, takes: slow})
			}
			return out
		}(), slow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := c.crowd
			var others []*simulatedCheck
			for i := range 5 { // one after the other, a quick one each
				at := time.Duration(i+1) * 10 * time.Minute
				others = append(others, &simulatedCheck{repository: "shop", author: "ada", pull: i + 1, at: at, takes: 4 * time.Second})
			}
			runChecks(t, append(all, others...))
			for _, o := range others {
				if waited := o.begun - o.at; waited > c.most+2*checkRetryDelay {
					t.Errorf("#%d waited for %s", o.pull, waited)
				}
			}
		})
	}
}

// TestCheckSlotsByTime shares between two authors who always have something by the time that it
// takes, not by its number.
func TestCheckSlotsByTime(t *testing.T) {
	var all []*simulatedCheck
	for i := range 40 {
		all = append(all, &simulatedCheck{repository: "shop", author: "slow", pull: 1 + i, takes: 80 * time.Second},
			&simulatedCheck{repository: "shop", author: "quick", pull: 100 + i, takes: 10 * time.Second})
	}
	runChecks(t, all)
	last, slowBefore := time.Duration(0), 0
	for _, a := range all {
		if a.author == "quick" {
			last = max(last, a.ends)
		}
	}
	for _, a := range all {
		if a.author == "slow" && a.begun < last {
			slowBefore++
		}
	}
	if slowBefore > 10 {
		t.Errorf("until the quick ones were done, %d slow ones began: 40 quick ones take as long as 5", slowBefore)
	}
}

// TestCheckSlotsForget holds that only authors who wait or have something under way are remembered,
// and only so many. One who has gone keeps none waiting for long.
func TestCheckSlotsForget(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	slots := newCheckSlots(func() time.Time { return now })
	enter := func(author string, pull int) (func(), bool) {
		return slots.enter("shop", author, pull, checkRetryDelay)
	}
	first, _ := enter("a", 1)
	second, ok := enter("b", 2)
	if !ok {
		t.Fatal("the second place isn't free")
	}
	if _, ok := enter("gone", 3); ok {
		t.Fatal("there is a third place")
	}
	first()
	first() // twice is once
	if n := slots.occupied(); n != 1 {
		t.Fatalf("%d places are taken", n)
	}
	second()
	now = now.Add(checkRetryDelay)
	enough := func(author string) bool {
		leave, ok := enter(author, 4)
		if ok {
			leave()
		}
		return ok
	}
	if !enough("a") {
		t.Error("with two free places the second in line has to wait")
	}
	now = now.Add(slotPatience * checkRetryDelay)
	if !enough("a") || slots.remembered > 1 {
		t.Errorf("one who has gone is waited for; %d are remembered", slots.remembered)
	}
	now = now.Add(time.Minute)

	first, _ = enter("a", 1)
	second, _ = enter("b", 2)
	for i := range maxWaitingChecks + 100 {
		enter(fmt.Sprint("crowd-", i), 10+i)
	}
	if slots.remembered > maxWaitingChecks {
		t.Errorf("%d authors are remembered", slots.remembered)
	}
	first()
	second()
	now = now.Add(time.Hour)
	if !enough("late") || slots.remembered != 1 {
		t.Errorf("after the crowd, %d are remembered", slots.remembered)
	}
}
