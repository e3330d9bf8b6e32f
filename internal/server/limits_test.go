package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// manualQA is qa where people merge.
var manualQA = strings.Replace(qa, "merge: auto", "merge: manual", 1)

// TestOpenPerEnvironment keeps no more open than the limit allows, and the
// release that was verified first goes first.
func TestOpenPerEnvironment(t *testing.T) {
	components := []string{"a", "b", "c", "d", "e"}
	s := startHarness(t, harnessOptions{components: components, pipeline: pipelineYAML([]string{"limits: {openPerEnvironment: 2}"}, dev, manualQA)})
	s.awaitJudged()
	order := []string{"d", "b", "e", "a", "c"}
	for _, c := range order {
		s.commitRelease(c, "1.1.0")
		s.awaitVerified(c, "dev", "1.1.0")
	}
	first := s.awaitPromotion("d", "qa", "1.1.0")
	s.awaitPromotion("b", "qa", "1.1.0")
	for _, c := range order[2:] {
		s.awaitReason(c, "qa", "limits.openPerEnvironment")
	}
	s.awaitIdle()
	open := func() (names []string) {
		for _, c := range components {
			for _, p := range s.listPulls(c, "qa") {
				if p.Open {
					names = append(names, c)
				}
			}
		}
		return names
	}
	if got := open(); !slices.Equal(got, []string{"b", "d"}) {
		t.Fatalf("open are %v, want b and d", got)
	}
	// One place comes free: e's release was verified before a's and c's.
	if _, err := s.Forge.MergePull(repoName, first.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.awaitPromotion("e", "qa", "1.1.0")
	s.awaitIdle()
	if got := open(); !slices.Equal(got, []string{"b", "e"}) {
		t.Errorf("open are %v, want b and e", got)
	}
}

// TestMergesPerHour merges no more than the limit allows, and goes on when the
// hour is over.
func TestMergesPerHour(t *testing.T) {
	clock := newSteppedClock()
	s := startHarness(t, harnessOptions{clock: clock, components: []string{"a", "b", "c"}, pipeline: pipelineYAML([]string{"limits: {mergesPerHour: 2}"}, dev, qa)})
	s.awaitJudged()
	for _, c := range s.opts.components {
		s.commitRelease(c, "1.1.0")
	}
	var waiting emulator.PullRequest
	s.waitFor("two are merged and one waits for the hour", func() (bool, string) {
		merged, why := 0, ""
		for _, c := range s.opts.components {
			for _, p := range s.listPulls(c, "qa") {
				why += fmt.Sprintf("#%d %t %s; ", p.Number, p.Merged, liftlockStatus(p.Statuses).Description)
				if p.Merged {
					merged++
				} else if strings.Contains(liftlockStatus(p.Statuses).Description, "limits.mergesPerHour") {
					waiting = p
				}
			}
		}
		return merged == 2 && waiting.Number != 0, why
	})
	s.awaitIdle()
	clock.Step(50 * time.Minute)
	s.awaitIdle()
	if s.readPull(waiting.Number).Merged {
		t.Fatal("three were merged within an hour")
	}
	clock.Step(11 * time.Minute)
	s.awaitMerged(waiting.Number)
}

// TestRevertLimit degrades five components at once: past the limit everything
// holds and says so, once, and a person may still take a release back.
func TestRevertLimit(t *testing.T) {
	components := []string{"a", "b", "c", "d", "e"}
	s := startHarness(t, harnessOptions{components: components, cluster: func(c, _ string) string { return "cluster-" + c },
		pipeline: pipelineYAML([]string{"limits: {revertsPer10Minutes: 2}"}, dev, manualQA)})
	s.awaitJudged()
	const bad = "1.1.0-late-in-qa"
	for _, c := range components {
		s.commitRelease(c, bad)
	}
	for _, c := range components {
		p := s.awaitPromotion(c, "qa", bad)
		s.awaitPull(p.Number, "is judged", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "success" })
	}
	for _, c := range components {
		if _, err := s.Forge.MergePull(repoName, s.listPulls(c, "qa")[0].Number, "linus", "merge"); err != nil {
			t.Fatal(err)
		}
	}
	var held []string
	s.waitFor("two reverts are open and three hold", func() (bool, string) {
		held = nil
		reverts, seen := 0, ""
		for _, c := range components {
			reverts += len(s.listReverts(c, "qa"))
			e, text := s.readEnvironment(c, "qa")
			if e != nil && e.State == promotion.Degraded && strings.Contains(e.Text, "revertsPer10Minutes") && len(s.listReverts(c, "qa")) == 0 {
				held = append(held, c)
			}
			seen += text + "\n"
		}
		if reverts > 2 {
			t.Fatalf("%d reverts were opened, the limit is 2", reverts)
		}
		return reverts == 2 && len(held) == 3, seen
	})
	s.awaitIdle()
	p := s.listPulls(held[0], "qa")[0]
	if n := countComments(&p, "revertsPer10Minutes"); n != 1 {
		t.Errorf("the promotion says in %d comments that everything holds, want 1: %+v", n, p.Comments)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock revert"), "+1")
	s.waitFor("the revert opens because a person wants it", func() (bool, string) { return len(s.listReverts(held[0], "qa")) == 1, "" })
}

func countComments(p *emulator.PullRequest, text string) int {
	n := 0
	for _, c := range p.Comments {
		if strings.Contains(c.Body, text) {
			n++
		}
	}
	return n
}

// TestModeThatOnlyReports says what it would do, and does none of it.
func TestModeThatOnlyReports(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML([]string{"mode: observe"})})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitReason("web", "qa", "mode is observe; otherwise: open a promotion of 1.1.0 into qa")
	s.awaitIdle()
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	if n := s.countCalls("POST", "git-receive-pack") + s.countCalls("POST", s.paths().repositories) + s.countCalls("PATCH", s.paths().repositories) + s.countCalls("PUT", s.paths().repositories); n != 0 || len(all) != 0 {
		t.Errorf("observing made %d writes and %d pull requests:\n%s", n, len(all), formatCalls(s.Forge.Calls()))
	}
	if n := s.ArgoCD.Requests()["PATCH applications"]; n != 0 {
		t.Errorf("observing asked Argo CD for %d refreshes", n)
	}
}

// countsApprovals says whether the comment on a pull request of ours says how many approvals it
// has, as in "1 of 2".
func countsApprovals(p *emulator.PullRequest, count string) bool {
	return slices.ContainsFunc(p.Comments, func(c emulator.Comment) bool {
		return strings.Contains(c.Body, "| approvals | "+count+" approval")
	})
}

// TestNewerReplaces composes the open pull request anew for a newer release, and
// makes it wait once somebody has approved the older.
func TestNewerReplaces(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.commitRelease("web", "1.2.0")
	p = s.awaitPull(p.Number, "is for 1.2.0", func(p *emulator.PullRequest) bool {
		return p.Open && strings.Contains(p.Title, "1.2.0") && strings.Contains(p.Body, "1.2.0")
	})
	s.approve(p.Number, "ada")
	s.awaitPull(p.Number, "counts the approval", func(p *emulator.PullRequest) bool {
		return countsApprovals(p, "1 of 2")
	})
	s.commitRelease("web", "1.3.0")
	s.awaitVerified("web", "qa", "1.3.0")
	s.awaitReason("web", "prod", "1.3.0 is newer and waits its turn")
	s.awaitIdle()
	if now := s.readPull(p.Number); now.Head != p.Head {
		t.Fatal("an approved pull request was composed anew")
	}
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "prod", "1.2.0")
	if next := s.awaitPromotion("web", "prod", "1.3.0"); next.Number == p.Number {
		t.Error("the newer release came in the same pull request")
	}
	if n := len(s.listPulls("web", "prod")); n != 2 {
		t.Errorf("%d pull requests into prod, want 2", n)
	}
}

// TestApprovals counts the right people's approvals of the right diff.
func TestApprovals(t *testing.T) {
	anybody := strings.Replace(prod, "count: 2, from: {users: [ada, grace]}", "count: 2", 1)
	file := overlayPath("web", "prod") + "/kustomization.yaml"
	first := strings.NewReplacer("NAME", "web", "TAG", "1.0.0").Replace(kustomizationTemplate) + "commonAnnotations:\n  a: far\n  b: away\n  c: from\n  d: the tag\n  owner: shop\n"
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, anybody), files: map[string]string{file: first}})
	p := s.releaseToProd("1.1.0")
	says := func(text string) {
		s.t.Helper()
		s.awaitReason("web", "prod", text+" approvals") // the comment says it, too, in its own time
	}
	// linus is the release's author, rita may not write.
	s.approve(p.Number, "linus")
	s.approve(p.Number, "rita")
	s.approve(p.Number, "ada")
	says("1 of 2")
	// Another line of the same file moves: the diff stays as it was, and so does
	// the approval.
	head := p.Head
	text := strings.Replace(first, "owner: shop", "owner: checkout", 1)
	s.commitFiles("linus", "main", "Say whose it is", map[string]string{file: text})
	p = s.awaitPull(p.Number, "is composed anew", func(p *emulator.PullRequest) bool { return p.Head != head })
	says("1 of 2")
	// The other line is next to the tag now: it isn't the same diff any more.
	head = p.Head
	s.commitFiles("linus", "main", "Say what it is", map[string]string{file: strings.Replace(text, "    newTag:", "    # as released\n    newTag:", 1)})
	p = s.awaitPull(p.Number, "is composed anew", func(p *emulator.PullRequest) bool { return p.Head != head })
	says("0 of 2")
	s.approve(p.Number, "ada")
	says("1 of 2")
	s.must("dismiss", s.Forge.DismissReviews(repoName, p.Number, "linus", "ada"))
	says("0 of 2")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
}

// TestFloor raises what the pipeline file asks for.
func TestFloor(t *testing.T) {
	open := "name: prod\nafter: [qa]\nmerge: auto\nverify: " + verifyFast
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, open), serverLines: "floor:\n  - {environments: [\"prod*\"], approvals: {count: 1}}\n"})
	p := s.releaseToProd("1.1.0")
	s.awaitPull(p.Number, "waits for one", func(p *emulator.PullRequest) bool { return countsApprovals(p, "0 of 1") })
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
}

// TestServerFreeze keeps what would merge from merging while the server's file says so;
// it is opened all the same.
func TestServerFreeze(t *testing.T) {
	open := "name: prod\nafter: [qa]\nmerge: auto\nverify: " + verifyFast
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, open), serverLines: "freezes:\n  - {environments: [\"prod*\"], from: 2020-01-01, to: 2100-01-01, timezone: UTC, reason: holidays}\n"})
	p := s.releaseToProd("1.1.0")
	if d := liftlockStatus(p.Statuses).Description; d != "waiting for the end of a freeze: frozen until Fri 2100-01-01 00:00 UTC: holidays" {
		t.Errorf("the status is %q", d)
	}
}

// TestChecksGate merges when the checks that the pipeline asks for have passed on the very
// head, and says meanwhile what is missing.
func TestChecksGate(t *testing.T) {
	checked := "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - checks: {require: [\"ci/*\"], from: [ada]}\nverify: " + verifyFast
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, checked)})
	p := s.releaseToProd("1.1.0")
	report := func(login, context, state string) {
		t.Helper()
		s.must("report a check", s.Forge.SetStatus(repoName, login, p.Head, emulator.Status{Context: context, State: state}))
	}
	s.awaitGate("no check named ci/* from ada has reported")
	report("grace", "ci/build", "success")
	s.awaitGate("by nobody who is asked: ci/build by grace")
	report("ada", "ci/build", "pending")
	s.awaitGate("not done: ci/build (pending)")
	report("ada", "ci/build", "failure")
	s.awaitGate("failed: ci/build (" + map[emulator.Face]string{emulator.GitHub: "failure", emulator.GitLab: "failed"}[s.Forge.Face()] + ")")
	report("ada", "ci/build", "success")
	s.awaitMerged(p.Number)
}

// TestBuildJobWithLiftlocksAccount: where build jobs have Liftlock's own account, what they report
// counts when the forge tells it. Nothing is swept here within an hour.
func TestBuildJobWithLiftlocksAccount(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		checked := "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - checks: {require: [\"ci/*\"]}\nverify: " + verifyFast
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, checked)})
		p := s.releaseToProd("1.1.0")
		s.awaitGate("no check named ci/* has reported")
		s.awaitIdle()
		s.must("report a check", s.Forge.SetStatus(repoName, s.bot, p.Head, emulator.Status{Context: "ci/test", State: "success"}))
		s.awaitMerged(p.Number)
	})
}

// TestMergeMethods squashes and rebases; what landed is known to be ours and is
// verified, and its revert restores the bytes.
func TestMergeMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := startHarness(t, harnessOptions{pipeline: pipelineYAML([]string{"merge: {method: " + method + "}"})})
			s.runStory()
			file := overlayPath("web", "qa") + "/kustomization.yaml"
			before, _, err := s.Forge.File(repoName, "main", file)
			s.must("read an overlay", err)
			const bad = "1.2.0-broken-in-qa"
			s.commitRelease("web", bad)
			s.awaitPromotion("web", "qa", bad)
			s.waitFor("the revert merges", func() (bool, string) {
				rs := s.listReverts("web", "qa")
				return len(rs) == 1 && rs[0].Merged, fmt.Sprint(len(rs))
			})
			s.awaitEnvironment("web", "qa", "is back", func(e *api.EnvironmentWhy) bool {
				return e.LandedBy == promotion.ByRevert && e.State == promotion.Verified
			})
			if after, _, err := s.Forge.File(repoName, "main", file); err != nil || after != before {
				t.Errorf("the revert left (%v)\n%s\nwant\n%s", err, after, before)
			}
		})
	}
}
