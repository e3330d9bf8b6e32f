package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// withQueue runs a test in worlds whose forges merge by a queue: GitLab's merge trains and GitHub's
// merge queue.
func withQueue(t *testing.T, p harnessOptions, test func(t *testing.T, s *harness)) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		p := p
		p.face, p.gitlab.QueueMerges = face, true
		s := startHarness(t, p)
		if s.Forge.Face() == emulator.GitHub {
			s.must("merge by a queue", s.Forge.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Ruleset: "queue"}))
		}
		s.awaitJudged()
		test(t, s)
	})
}

// countJoins counts the calls that join the queue or leave it.
func (ha *harness) countJoins() int {
	return ha.countCalls("POST", "merge_trains") + ha.countCalls("POST", "cancel_merge") + ha.countCalls("PUT", "pulls/{number}/merge")
}

// awaitQueued waits until a pull request is in the forge's queue, or isn't.
func (ha *harness) awaitQueued(number int, queued bool) {
	ha.t.Helper()
	what := map[bool]string{true: "is in the queue", false: "is out of the queue"}[queued]
	ha.awaitPull(number, what, func(p *emulator.PullRequest) bool { return p.Open && p.Queued == queued })
}

// runQueue lets the forge's queue come to its end.
func (ha *harness) runQueue() {
	ha.must("run the merge queue", ha.Forge.RunMergeQueue(repoName, "linus"))
}

// TestMergeQueue has promotions join the forge's queue and land in their turn, and goes on with
// what landed.
func TestMergeQueue(t *testing.T) {
	withQueue(t, harnessOptions{components: []string{"web", "api"}, pipeline: pipelineYAML(nil, dev, qa)}, testMergeQueue)
}

func testMergeQueue(t *testing.T, s *harness) {
	s.commitRelease("web", "1.1.0")
	web := s.awaitPromotion("web", "qa", "1.1.0").Number
	s.awaitQueued(web, true)
	s.awaitReason("web", "qa", "is in the forge's merge queue and lands in its turn")
	s.commitRelease("api", "2.0.0")
	second := s.awaitPromotion("api", "qa", "2.0.0").Number
	s.awaitQueued(second, true)
	s.awaitIdle()
	s.Forge.ResetCalls()
	s.runQueue()
	s.awaitMerged(web)
	s.awaitMerged(second) // behind another one, on which it wasn't judged
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitVerified("api", "qa", "2.0.0")
	s.awaitIdle()
	if n := s.countJoins(); n != 0 {
		t.Errorf("landing took %d calls of the queue", n)
	}
	for _, component := range []string{"web", "api"} {
		var rows api.Promotions
		if _, err := s.getJSON("/api/v1/promotions?component="+component, &rows); err != nil || len(rows.Promotions) != 1 || rows.Promotions[0].State != "verified" {
			t.Errorf("%s: %+v (%v)", component, rows.Promotions, err)
		}
	}
	if n := s.countLogged("somebody pushed in the same moment"); n != 0 {
		t.Errorf("%d merges are called unjudged", n)
	}

	// The release that it broke is reverted by the queue, too.
	s.commitRelease("web", "1.2.0-broken-in-qa")
	bad := s.awaitPromotion("web", "qa", "1.2.0").Number
	s.awaitQueued(bad, true)
	s.runQueue()
	s.awaitMerged(bad)
	s.waitFor("the revert is in the queue", func() (bool, string) {
		rs := s.listReverts("web", "qa")
		_, seen := s.readEnvironment("web", "qa")
		return len(rs) == 1 && rs[0].Queued, seen
	})
	s.runQueue()
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestLeavesTheMergeQueue takes a promotion out of the forge's queue once it may not be merged any
// more, and lets nothing land that isn't what was judged.
func TestLeavesTheMergeQueue(t *testing.T) {
	withQueue(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa)}, testLeavesTheMergeQueue)
}

func testLeavesTheMergeQueue(t *testing.T, s *harness) {
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitQueued(p.Number, true)

	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock hold pr the database is moving"), "+1")
	s.awaitQueued(p.Number, false)
	s.awaitReason("web", "qa", promotion.LabelHold)
	s.awaitIdle()
	s.runQueue()
	if s.readPull(p.Number).Merged {
		t.Fatal("it landed although it is on hold")
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold"), "+1")
	s.awaitQueued(p.Number, true)

	// A newer release takes its place: it is composed anew outside of the queue, and joins again.
	s.commitRelease("web", "1.2.0")
	newer := s.awaitPull(p.Number, "carries the newer release and is in the queue", func(now *emulator.PullRequest) bool {
		return strings.Contains(now.Title, "1.2.0") && now.Head != p.Head && now.Queued
	})

	_, err := s.Forge.CommitAs(repoName, "grace", p.Branch, "One more thing", map[string]string{"more.txt": "more\n"})
	s.must("push to the branch", err)
	s.awaitQueued(p.Number, false)
	s.awaitReason("web", "qa", "is not what Liftlock composed")
	s.awaitIdle()
	s.runQueue()
	if s.readPull(p.Number).Merged {
		t.Fatal("what somebody pushed landed")
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock retry"), "+1")
	s.awaitPull(p.Number, "is composed anew and in the queue", func(now *emulator.PullRequest) bool {
		return now.Queued && now.Head == newer.Head
	})
	s.runQueue()
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.2.0")
}

// TestDroppedFromTheMergeQueue has what the forge dropped from its queue wait for a person, also over
// a restart: joining again by itself would run what failed again and again.
func TestDroppedFromTheMergeQueue(t *testing.T) {
	withQueue(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa)}, testDroppedFromTheMergeQueue)
}

func testDroppedFromTheMergeQueue(t *testing.T, s *harness) {
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0").Number
	s.awaitQueued(p, true)
	s.awaitIdle()
	s.Forge.ResetCalls()
	s.must("have the queue fail", s.Forge.FailMergeQueue(repoName, p, "linus"))
	// GitLab says nothing: its merge train is read again at once
	s.addComment(p, "linus", "the pipeline of the queue failed")
	s.awaitReason("web", "qa", "is out of it without having landed")
	s.awaitIdle()
	s.stop()
	s.start()
	s.awaitReason("web", "qa", "/liftlock retry has it join again")
	s.awaitIdle()
	if n := s.countJoins(); n != 0 || s.readPull(p).Queued {
		t.Fatalf("it joined %d times again", n)
	}
	s.awaitReaction(p, s.addComment(p, "ada", "/liftlock retry"), "+1")
	s.awaitQueued(p, true)
	s.runQueue()
	s.awaitMerged(p)
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestMergeGroups has two promotions and a stranger's pull request land as one group of GitHub's
// merge queue, which requires Liftlock's status of it. It also has a group without any of
// Liftlock's.
func TestMergeGroups(t *testing.T) {
	s := startHarness(t, harnessOptions{face: githubFace(), components: []string{"web", "api"}, pipeline: pipelineYAML(nil, dev, qa)})
	s.must("merge by a queue", s.Forge.Protect(repoName, "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Contexts: []string{act.StatusContext}, Ruleset: "queue"}))
	s.awaitJudged()
	openStranger := func(branch string) int {
		_, err := s.Forge.CommitAs(repoName, "linus", branch, "Docs", map[string]string{branch + ".md": "more\n"})
		s.must("push docs", err)
		n, err := s.Forge.OpenPull(repoName, "linus", branch, "main", "Docs", "")
		s.must("open a pull request", err)
		s.waitFor("the stranger's is checked", func() (bool, string) {
			err := s.Forge.Enqueue(repoName, n, "linus")
			return err == nil, fmt.Sprint(err)
		})
		return n
	}
	land := func(groups int, pulls ...int) {
		t.Helper()
		s.must("build the groups", s.Forge.BuildMergeGroups(repoName, "linus"))
		s.waitFor("each group has its status", func() (bool, string) {
			all, err := s.Forge.MergeGroups(repoName)
			s.must("list the groups", err)
			ready := len(all) == groups
			for _, g := range all {
				ready = ready && g.States[act.StatusContext] == "success"
			}
			return ready, fmt.Sprintf("%+v", all)
		})
		s.runQueue()
		for _, n := range pulls {
			s.awaitMerged(n)
		}
	}
	docs := openStranger("docs")
	land(1, docs)

	s.commitRelease("web", "1.1.0")
	web := s.awaitPromotion("web", "qa", "1.1.0").Number
	s.awaitQueued(web, true)
	more := openStranger("more")
	s.commitRelease("api", "2.0.0")
	second := s.awaitPromotion("api", "qa", "2.0.0").Number
	s.awaitQueued(second, true)
	land(3, web, more, second)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitVerified("api", "qa", "2.0.0")
}

// TestPersonsAutoMerge takes off what a person has the forge merge by itself while a gate doesn't pass,
// and lets it stand once all do.
func TestPersonsAutoMerge(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa)})
	s.must("require a check", s.Forge.Protect(repoName, "main", emulator.Protection{Contexts: []string{"ci"}, Ruleset: "main"}))
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock hold pr the database is moving"), "+1")
	s.awaitReason("web", "qa", promotion.LabelHold)

	s.must("have it merged by itself", s.Forge.EnableAutoMerge(repoName, p.Number, "grace"))
	s.awaitQueued(p.Number, false)
	s.must("let the check succeed", s.Forge.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci", State: "success"}))
	s.must("merge what merges by itself", s.Forge.RunAutoMerges(repoName, "grace"))
	if s.readPull(p.Number).Merged {
		t.Fatal("it landed although it is on hold")
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold"), "+1")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
}
