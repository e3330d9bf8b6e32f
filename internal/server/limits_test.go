package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// manualQA is qa where people merge.
var manualQA = strings.Replace(qa, "merge: auto", "merge: manual", 1)

// TestOpenPerEnvironment keeps no more open than the limit allows, and the
// release that was verified first goes first.
func TestOpenPerEnvironment(t *testing.T) {
	components := []string{"a", "b", "c", "d", "e"}
	s := begin(t, plan{components: components, pipeline: pipelineOf([]string{"limits: {openPerEnvironment: 2}"}, dev, manualQA)})
	s.quiet()
	order := []string{"d", "b", "e", "a", "c"}
	for _, c := range order {
		s.release(c, "1.1.0")
		s.verified(c, "dev", "1.1.0")
	}
	first := s.opened("d", "qa", "1.1.0")
	s.opened("b", "qa", "1.1.0")
	for _, c := range order[2:] {
		s.says(c, "qa", "limits.openPerEnvironment")
	}
	s.idle()
	open := func() (names []string) {
		for _, c := range components {
			for _, p := range s.pulls(c, "qa") {
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
	s.opened("e", "qa", "1.1.0")
	s.idle()
	if got := open(); !slices.Equal(got, []string{"b", "e"}) {
		t.Errorf("open are %v, want b and e", got)
	}
}

// TestMergesPerHour merges no more than the limit allows, and goes on when the
// hour is over.
func TestMergesPerHour(t *testing.T) {
	clock := newStepClock()
	s := begin(t, plan{clock: clock, components: []string{"a", "b", "c"}, pipeline: pipelineOf([]string{"limits: {mergesPerHour: 2}"}, dev, qa)})
	s.quiet()
	for _, c := range s.p.components {
		s.release(c, "1.1.0")
	}
	var waiting emulator.PullRequest
	s.until("two are merged and one waits for the hour", func() (bool, string) {
		merged, why := 0, ""
		for _, c := range s.p.components {
			for _, p := range s.pulls(c, "qa") {
				why += fmt.Sprintf("#%d %t %s; ", p.Number, p.Merged, statusOf(p.Statuses).Description)
				if p.Merged {
					merged++
				} else if strings.Contains(statusOf(p.Statuses).Description, "limits.mergesPerHour") {
					waiting = p
				}
			}
		}
		return merged == 2 && waiting.Number != 0, why
	})
	s.idle()
	clock.Step(50 * time.Minute)
	s.idle()
	if s.pull(waiting.Number).Merged {
		t.Fatal("three were merged within an hour")
	}
	clock.Step(11 * time.Minute)
	s.merged(waiting.Number)
}

// TestRevertStorm degrades five components at once: past the limit everything
// holds and says so, once, and a person may still take a release back.
func TestRevertStorm(t *testing.T) {
	components := []string{"a", "b", "c", "d", "e"}
	s := begin(t, plan{components: components, cluster: func(c, _ string) string { return "cluster-" + c },
		pipeline: pipelineOf([]string{"limits: {revertsPer10Minutes: 2}"}, dev, manualQA)})
	s.quiet()
	const bad = "1.1.0-late-in-qa"
	for _, c := range components {
		s.release(c, bad)
	}
	for _, c := range components {
		p := s.opened(c, "qa", bad)
		s.pullIs(p.Number, "is judged", func(p *emulator.PullRequest) bool { return statusOf(p.Statuses).State == "success" })
	}
	for _, c := range components {
		if _, err := s.Forge.MergePull(repoName, s.pulls(c, "qa")[0].Number, "linus", "merge"); err != nil {
			t.Fatal(err)
		}
	}
	var held []string
	s.until("two reverts are open and three hold", func() (bool, string) {
		held = nil
		reverts, seen := 0, ""
		for _, c := range components {
			reverts += len(s.reverts(c, "qa"))
			e, text := s.env(c, "qa")
			if e != nil && e.State == promotion.Degraded && strings.Contains(e.Text, "revertsPer10Minutes") && len(s.reverts(c, "qa")) == 0 {
				held = append(held, c)
			}
			seen += text + "\n"
		}
		if reverts > 2 {
			t.Fatalf("%d reverts were opened, the limit is 2", reverts)
		}
		return reverts == 2 && len(held) == 3, seen
	})
	s.idle()
	p := s.pulls(held[0], "qa")[0]
	if n := countComments(&p, "revertsPer10Minutes"); n != 1 {
		t.Errorf("the promotion says in %d comments that everything holds, want 1: %+v", n, p.Comments)
	}
	s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock revert"), "+1")
	s.until("the revert opens because a person wants it", func() (bool, string) { return len(s.reverts(held[0], "qa")) == 1, "" })
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

// TestObserveMode says what it would do, and does none of it.
func TestObserveMode(t *testing.T) {
	s := begin(t, plan{pipeline: pipelineOf([]string{"mode: observe"})})
	s.quiet()
	s.release("web", "1.1.0")
	s.says("web", "qa", "mode is observe; otherwise: open a promotion of 1.1.0 into qa")
	s.idle()
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	if n := s.calls("POST", "git-receive-pack") + s.calls("POST", "/repos/") + s.calls("PATCH", "/repos/") + s.calls("PUT", "/repos/"); n != 0 || len(all) != 0 {
		t.Errorf("observing made %d writes and %d pull requests:\n%s", n, len(all), table(s.Forge.Calls()))
	}
	if n := s.ArgoCD.Requests()["PATCH applications"]; n != 0 {
		t.Errorf("observing asked Argo CD for %d refreshes", n)
	}
}

// TestNewerReplaces composes the open pull request anew for a newer release, and
// makes it wait once somebody has approved the older.
func TestNewerReplaces(t *testing.T) {
	s := begin(t, plan{})
	p := s.inProd("1.1.0")
	s.release("web", "1.2.0")
	p = s.pullIs(p.Number, "is for 1.2.0", func(p *emulator.PullRequest) bool {
		return p.Open && strings.Contains(p.Title, "1.2.0") && strings.Contains(p.Body, "1.2.0")
	})
	s.approve(p.Number, "ada")
	s.pullIs(p.Number, "counts the approval", func(p *emulator.PullRequest) bool {
		return strings.Contains(statusOf(p.Statuses).Description, "1 of 2")
	})
	s.release("web", "1.3.0")
	s.verified("web", "qa", "1.3.0")
	s.says("web", "prod", "1.3.0 is newer and waits its turn")
	s.idle()
	if now := s.pull(p.Number); now.Head != p.Head {
		t.Fatal("an approved pull request was composed anew")
	}
	s.approve(p.Number, "grace")
	s.merged(p.Number)
	s.verified("web", "prod", "1.2.0")
	if next := s.opened("web", "prod", "1.3.0"); next.Number == p.Number {
		t.Error("the newer release came in the same pull request")
	}
	if n := len(s.pulls("web", "prod")); n != 2 {
		t.Errorf("%d pull requests into prod, want 2", n)
	}
}

// TestApprovals counts the right people's approvals of the right diff.
func TestApprovals(t *testing.T) {
	anybody := strings.Replace(prod, "count: 2, from: {users: [ada, grace]}", "count: 2", 1)
	file := overlay("web", "prod") + "/kustomization.yaml"
	first := strings.NewReplacer("NAME", "web", "TAG", "1.0.0").Replace(kustomization) + "commonAnnotations:\n  a: far\n  b: away\n  c: from\n  d: the tag\n  owner: shop\n"
	s := begin(t, plan{pipeline: pipelineOf(nil, dev, qa, anybody), files: map[string]string{file: first}})
	p := s.inProd("1.1.0")
	says := func(text string) {
		s.t.Helper()
		s.pullIs(p.Number, "says "+text, func(p *emulator.PullRequest) bool { return strings.Contains(statusOf(p.Statuses).Description, text) })
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
	s.commit("linus", "main", "Say whose it is", map[string]string{file: text})
	p = s.pullIs(p.Number, "is composed anew", func(p *emulator.PullRequest) bool { return p.Head != head })
	says("1 of 2")
	// The other line is next to the tag now: it isn't the same diff any more.
	head = p.Head
	s.commit("linus", "main", "Say what it is", map[string]string{file: strings.Replace(text, "    newTag:", "    # as released\n    newTag:", 1)})
	p = s.pullIs(p.Number, "is composed anew", func(p *emulator.PullRequest) bool { return p.Head != head })
	says("0 of 2")
	s.approve(p.Number, "ada")
	says("1 of 2")
	s.must("dismiss", s.Forge.DismissReviews(repoName, p.Number, "linus", "ada"))
	says("0 of 2")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.merged(p.Number)
}

// TestFloor raises what the pipeline file asks for.
func TestFloor(t *testing.T) {
	open := "name: prod\nafter: [qa]\nmerge: auto\nverify: " + verifyFast
	s := begin(t, plan{pipeline: pipelineOf(nil, dev, qa, open), server: "floor:\n  - {environments: [\"prod*\"], approvals: {count: 1}}\n"})
	p := s.inProd("1.1.0")
	if d := statusOf(p.Statuses).Description; !strings.Contains(d, "0 of 1") {
		t.Errorf("the status is %q", d)
	}
	s.approve(p.Number, "grace")
	s.merged(p.Number)
}

// TestMergeMethods squashes and rebases; what landed is known to be ours and is
// verified, and its revert restores the bytes.
func TestMergeMethods(t *testing.T) {
	for _, method := range []string{"squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := begin(t, plan{pipeline: pipelineOf([]string{"merge: {method: " + method + "}"})})
			s.story()
			file := overlay("web", "qa") + "/kustomization.yaml"
			before, _, err := s.Forge.File(repoName, "main", file)
			s.must("read an overlay", err)
			const bad = "1.2.0-broken-in-qa"
			s.release("web", bad)
			s.opened("web", "qa", bad)
			s.until("the revert merges", func() (bool, string) {
				rs := s.reverts("web", "qa")
				return len(rs) == 1 && rs[0].Merged, fmt.Sprint(len(rs))
			})
			s.is("web", "qa", "is back", func(e *api.WhyHere) bool { return e.LandedBy == promotion.ByRevert && e.State == promotion.Verified })
			if after, _, err := s.Forge.File(repoName, "main", file); err != nil || after != before {
				t.Errorf("the revert left (%v)\n%s\nwant\n%s", err, after, before)
			}
		})
	}
}
