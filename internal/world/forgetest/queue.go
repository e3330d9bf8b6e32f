package forgetest

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// joinQueue has a pull request join the merge queue.
func (f *fixture) joinQueue(t *testing.T, branch string) *forge.PullRequest {
	t.Helper()
	pr := f.openPull(t, branch)
	if landed := f.mergePull(t, pr, "merge"); landed != "" {
		t.Fatalf("%s landed as %s", branch, landed)
	}
	return f.wantQueue(t, pr, forge.Queued)
}

// wantQueue reads a pull request, which must be open, with its head as it was, and in the
// queue or not.
func (f *fixture) wantQueue(t *testing.T, pr *forge.PullRequest, want forge.QueueState) *forge.PullRequest {
	t.Helper()
	now := f.readPull(t, pr.Number)
	if now.State != forge.Open || now.Head != pr.Head || now.Queue != want {
		t.Errorf("#%d is %s at %s, queue %q; want queue %q at %s", pr.Number, now.State, now.Head, now.Queue, want, pr.Head)
	}
	return now
}

// testQueue merges by the forge's queue: what joins it lands later, in its turn.
func testQueue(t *testing.T, s *fixture) {
	s.ctx = forge.WithMergeQueue(s.ctx)
	before := s.branchTip(t, "main")
	first, second := s.joinQueue(t, branchA), s.joinQueue(t, branchB)
	mergeAgain := func(pr *forge.PullRequest) (string, error) {
		return s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	}
	if landed, err := mergeAgain(first); err != nil || landed != "" { // again
		t.Errorf("joining twice: %q, %v", landed, err)
	}
	for range 2 { // leaving what it isn't in is success
		if err := s.Forge.LeaveQueue(s.ctx, s.Repo, second.Number); err != nil {
			t.Fatal(err)
		}
	}
	s.wantQueue(t, second, forge.NotQueued)
	if tip := s.branchTip(t, "main"); tip != before {
		t.Fatalf("main moved to %s", tip)
	}
	s.RunQueue(t)
	s.wantQueue(t, second, forge.NotQueued)
	p := s.awaitPull(t, first.Number, "merged", func(p *forge.PullRequest) bool { return p.State == forge.Merged })
	tip := s.branchTip(t, "main")
	hasMoved := tip != before && p.MergeCommit == tip
	if !hasMoved || p.Head != first.Head || p.Queue != forge.NotQueued || p.MergedBy != s.ownLogin(t) {
		t.Errorf("merged: %+v; main is at %s", p, tip)
	}
	if landed, err := mergeAgain(first); err != nil || landed != p.MergeCommit {
		t.Errorf("merging what has landed: %q, %v", landed, err)
	}
	wantKind(t, "leaving with what has landed", s.Forge.LeaveQueue(s.ctx, s.Repo, first.Number), forge.ErrConflict)
}

// testQueueDrops takes out of the queue what is no longer what joined it.
func testQueueDrops(t *testing.T, s *fixture) {
	s.ctx = forge.WithMergeQueue(s.ctx)
	pushed, closed := s.joinQueue(t, branchA), s.joinQueue(t, branchB)
	stale := pushed.Head
	head := s.pushCommit(t, branchA, "", "more.txt", "more\n")
	pushed = s.awaitPull(t, pushed.Number, "the new head", func(p *forge.PullRequest) bool {
		return p.Head == head && p.Mergeable == forge.MergeableYes
	})
	s.wantQueue(t, pushed, forge.NotQueued)
	_, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pushed.Number, Head: stale, Method: "merge"})
	wantKind(t, "joining with a stale head", err, forge.ErrConflict)
	state := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, closed.Number, forge.PullRequestUpdate{State: &state}); err != nil {
		t.Fatal(err)
	}
	before := s.branchTip(t, "main")
	s.RunQueue(t)
	if tip := s.branchTip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
	if p := s.readPull(t, closed.Number); p.State != forge.Closed || p.Queue != forge.NotQueued {
		t.Errorf("the closed one: %+v", p)
	}
	if err := s.Forge.LeaveQueue(s.ctx, s.Repo, closed.Number); err != nil {
		t.Errorf("leaving with what is closed: %v", err)
	}
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: closed.Number, Head: closed.Head, Method: "merge"})
	wantKind(t, "joining with what is closed", err, forge.ErrNotMergeable)
}

// testNoQueue leaves a queue that isn't there: nothing to be done, or nothing that the forge has.
func testNoQueue(t *testing.T, s *fixture) {
	s.ctx = forge.WithMergeQueue(s.ctx)
	pr := s.openPull(t, branchA)
	if err := s.Forge.LeaveQueue(s.ctx, s.Repo, pr.Number); err != nil {
		wantKind(t, "leaving a queue that isn't there", err, forge.ErrUnsupported)
	}
	s.wantQueue(t, pr, forge.NotQueued)
}

// testAutoMerge takes off what a person has the forge merge by itself: it would land later than it
// was judged.
func testAutoMerge(t *testing.T, s *fixture) {
	if s.AutoMerge == nil {
		t.Skip("nothing merges by itself here")
	}
	s.Protect(t, 0, "ci/build")
	pr := s.openPull(t, branchA)
	s.wantQueue(t, pr, forge.NotQueued)
	s.AutoMerge(t, pr.Number)
	s.wantQueue(t, pr, forge.Queued)
	list, err := s.Forge.PullRequests(s.ctx, s.Repo, time.Time{})
	if err != nil || len(list) != 1 || list[0].Queue != forge.Queued {
		t.Errorf("the list: %+v, %v", list, err)
	}
	if bulk, is := s.Forge.(forge.BulkReader); is {
		read, err := bulk.ReviewedPullRequests(s.ctx, s.Repo, pr.Number)
		if err != nil || len(read) != 1 || read[0].Queue != forge.Queued {
			t.Errorf("read together: %+v, %v", read, err)
		}
	}
	for range 2 { // again
		if err := s.Forge.LeaveQueue(s.ctx, s.Repo, pr.Number); err != nil {
			t.Fatal(err)
		}
		s.wantQueue(t, pr, forge.NotQueued)
	}
}
