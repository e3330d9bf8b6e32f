package memoryforge_test

import (
	"context"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestMergeQueueOneAfterTheOther lands what is in the queue one by one, in the order in which it
// joined, and drops what conflicts by then.
func TestMergeQueueOneAfterTheOther(t *testing.T) {
	s := newScene(t)
	s.must(s.QueueMerges(s.repo))
	first, conflicting, last := s.open("first"), s.open("conflicting"), s.open("last")
	s.push(reviewerLogin, "conflicting", "first.txt", "2\n")
	for _, number := range []int{first, conflicting, last} {
		commit, err := s.bot.Merge(context.Background(), s.repo, forge.MergeRequest{Number: number, Head: s.read(number).Head, Method: "merge"})
		if err != nil || commit != "" {
			t.Fatalf("merging #%d is %q (%v), want that it joins the queue", number, commit, err)
		}
	}
	for _, want := range []struct {
		queue []int
		state map[int]forge.State
	}{
		{[]int{first, conflicting, last}, map[int]forge.State{first: forge.Open, conflicting: forge.Open, last: forge.Open}},
		{[]int{conflicting, last}, map[int]forge.State{first: forge.Merged, conflicting: forge.Open, last: forge.Open}},
		{[]int{last}, map[int]forge.State{first: forge.Merged, conflicting: forge.Open, last: forge.Open}},
		{nil, map[int]forge.State{first: forge.Merged, conflicting: forge.Open, last: forge.Merged}},
		{nil, map[int]forge.State{first: forge.Merged, conflicting: forge.Open, last: forge.Merged}},
	} {
		queue, err := s.QueuedPulls(s.repo)
		s.must(err)
		if !slices.Equal(queue, want.queue) {
			t.Errorf("in the queue are %v, want %v", queue, want.queue)
		}
		for number, state := range want.state {
			if pr := s.read(number); pr.State != state || (pr.Queue == forge.Queued) != slices.Contains(queue, number) {
				t.Errorf("with %v in the queue #%d is %s, queue %q; want %s", queue, number, pr.State, pr.Queue, state)
			}
		}
		s.must(s.MergeNextQueued(s.repo, strangerLogin))
	}
}
