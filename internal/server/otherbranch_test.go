package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	checkedRevertingProd = "name: prod\nafter: [qa]\nmerge: auto\nonDegraded: revert-and-merge\ngates:\n  - checks: {require: [ci], from: [ada]}\nverify: " + verifyFast
	revertingProd        = "name: prod\nafter: [qa]\nmerge: auto\nonDegraded: revert\nverify: " + verifyFast
)

// passCheck has CI report well of a pull request's head.
func (ha *harness) passCheck(number int) {
	ha.t.Helper()
	ha.must("report a check", ha.Forge.SetStatus(repoName, "ada", ha.readPull(number).Head, emulator.Status{Context: "ci", State: "success"}))
}

// tagIn is the line with the tag that a component has in an environment, on the tracked branch.
func (ha *harness) tagIn(component, env string) string {
	ha.t.Helper()
	text, _, err := ha.Forge.File(repoName, "main", overlayPath(component, env)+"/kustomization.yaml")
	ha.must("read what "+env+" has", err)
	return newTag.FindString(text)
}

// promote brings a release of web to prod, whose checks pass.
func (ha *harness) promoteChecked(tag string) {
	ha.t.Helper()
	ha.commitRelease("web", tag)
	p := ha.awaitPromotion("web", "prod", tag)
	ha.awaitIdle()
	ha.passCheck(p.Number)
	ha.awaitMerged(p.Number)
	ha.awaitVerified("web", "prod", tag)
}

// mergeIntoAnother gives a pull request another base and merges it there, with a release pushed over it
// where one is named.
func (ha *harness) mergeIntoAnother(number int, tag string) {
	ha.t.Helper()
	main, err := ha.Forge.Head(repoName, "main")
	ha.must("read main", err)
	ha.must("make a branch", ha.Forge.SetBranch(repoName, "grace", "elsewhere", main))
	ha.must("change the base", ha.Forge.SetBase(repoName, number, "grace", "elsewhere"))
	if tag != "" {
		head := ha.editTagOn("grace", "made-for-it", "web", "prod", tag)
		ha.must("push over it", ha.Forge.SetBranch(repoName, "grace", ha.readPull(number).Branch, head))
	}
	_, err = ha.Forge.MergePull(repoName, number, "grace", "merge")
	ha.must("merge it into another branch", err)
	ha.awaitIdle()
}

// revertedFromProd brings 1.1.0 and 1.2.0 to prod, of which the second is taken back.
func (ha *harness) revertedFromProd() {
	ha.t.Helper()
	ha.awaitJudged()
	ha.promoteChecked("1.1.0")
	ha.promoteChecked("1.2.0")
	ha.must("break prod", ha.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{Health: "Degraded", Message: "crash", Resource: "web"}))
	ha.waitFor("1.2.0 is taken back", func() (bool, string) {
		return strings.Contains(ha.tagIn("web", "prod"), "1.1.0"), ha.tagIn("web", "prod")
	})
	ha.must("mend prod", ha.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{}))
	ha.awaitVerified("web", "prod", "1.1.0")
}

// TestPromotionMergedIntoAnotherBranch has a writer give the open promotion another base, push the release
// over it that was reverted, and merge it there. That brought nothing to prod: pushed over the next
// promotion, and approved, the release stays out.
func TestPromotionMergedIntoAnotherBranch(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, checkedRevertingProd)})
	s.revertedFromProd()
	s.commitRelease("web", "1.3.0")
	first := s.awaitPromotion("web", "prod", "1.3.0").Number
	s.awaitIdle()
	s.mergeIntoAnother(first, "1.2.0")
	next := s.awaitPull(s.awaitAnother(first), "is another promotion", func(p *emulator.PullRequest) bool { return p.Open })
	s.awaitIdle()
	head := s.editTagOn("grace", "made-anew", "web", "prod", "1.2.0")
	s.must("push over it", s.Forge.SetBranch(repoName, "grace", next.Branch, head))
	s.approve(next.Number, "grace")
	s.passCheck(next.Number)
	s.awaitIdle()
	if tag := s.tagIn("web", "prod"); !strings.Contains(tag, "1.1.0") {
		t.Errorf("prod has %s: what was reverted came back by one writer", tag)
	}
}

// awaitAnother waits for an open promotion into prod besides one, and gives its number.
func (ha *harness) awaitAnother(than int) (number int) {
	ha.t.Helper()
	ha.waitFor("another promotion opens", func() (bool, string) {
		for _, p := range ha.listPulls("web", "prod") {
			if p.Open && p.Number != than {
				number = p.Number
				return true, ""
			}
		}
		_, why := ha.readEnvironment("web", "prod")
		return false, why
	})
	return number
}

// TestQuarantinedReleaseMergedByHand has a writer push a reverted release over the next promotion
// and merge that into prod, past everything. It is there then, and stays in quarantine. When the
// release comes again it doesn't move, until somebody who may asks for it.
func TestQuarantinedReleaseMergedByHand(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, checkedRevertingProd)})
	s.revertedFromProd()
	s.commitRelease("web", "1.3.0")
	p := s.awaitPromotion("web", "prod", "1.3.0")
	s.awaitIdle()
	head := s.editTagOn("grace", "made-for-it", "web", "prod", "1.2.0")
	s.must("push over it", s.Forge.SetBranch(repoName, "grace", p.Branch, head))
	_, err := s.Forge.MergePull(repoName, p.Number, "grace", "merge")
	s.must("merge it by hand", err)
	s.awaitReason("web", "prod", "known to be what Liftlock composed")
	promote := func() {
		t.Helper()
		body := api.PipelineCommand{Component: "web", Environment: "prod", Reason: "test"}
		if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/promote", body); status != http.StatusOK {
			t.Fatalf("promote is answered with %d: %s", status, answer)
		}
	}
	promote()
	next := s.awaitAnother(p.Number)
	s.awaitIdle()
	s.passCheck(next)
	s.awaitVerified("web", "prod", "1.3.0")

	s.commitRelease("web", "1.2.0")
	s.awaitVerified("web", "qa", "1.2.0")
	s.awaitReason("web", "prod", "was reverted from prod")
	promote()
	again := s.awaitAnother(next)
	s.awaitIdle()
	s.passCheck(again)
	s.awaitVerified("web", "prod", "1.2.0")
}

// TestRevertMergedIntoAnotherBranch has somebody merge the open revert into a branch of their own: prod has
// what it had, and another revert opens.
func TestRevertMergedIntoAnotherBranch(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, revertingProd)})
		s.awaitJudged()
		for _, tag := range []string{"1.1.0", "1.2.0"} {
			s.commitRelease("web", tag)
			s.awaitVerified("web", "prod", tag)
		}
		s.must("break prod", s.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{Health: "Degraded", Message: "crash", Resource: "web"}))
		first := s.awaitRevertBesides(0)
		s.awaitIdle()
		s.mergeIntoAnother(first, "")
		second := s.awaitRevertBesides(first)
		if p := s.readPull(second); p.Base != "main" {
			t.Errorf("#%d is for %s", second, p.Base)
		}
	})
}

// awaitRevertBesides waits for an open revert in prod besides one, and gives its number.
func (ha *harness) awaitRevertBesides(than int) (number int) {
	ha.t.Helper()
	ha.waitFor("a revert opens", func() (bool, string) {
		for _, p := range ha.listReverts("web", "prod") {
			if p.Open && p.Number != than {
				number = p.Number
				return true, ""
			}
		}
		_, why := ha.readEnvironment("web", "prod")
		return false, why
	})
	return number
}

// TestBaseIsPutBack has somebody change an open promotion's base: nothing is done with it, and the reason
// says so, until /liftlock retry puts the base back.
func TestBaseIsPutBack(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		p := s.releaseToProd("1.1.0")
		main, err := s.Forge.Head(repoName, "main")
		s.must("read main", err)
		s.must("make a branch", s.Forge.SetBranch(repoName, "grace", "elsewhere", main))
		s.must("change the base", s.Forge.SetBase(repoName, p.Number, "grace", "elsewhere"))
		s.awaitReason("web", "prod", "changed its base to elsewhere")
		s.approve(p.Number, "ada")
		s.approve(p.Number, "grace")
		s.awaitIdle()
		if now := s.readPull(p.Number); !now.Open || now.Base != "elsewhere" {
			t.Fatalf("#%d is open: %t, for %s", p.Number, now.Open, now.Base)
		}
		s.addComment(p.Number, "ada", "/liftlock retry")
		s.awaitPull(p.Number, "has its base again, and is merged", func(p *emulator.PullRequest) bool { return p.Base == "main" && p.Merged })
	})
}

// TestSupersededLabelByHand has a writer set the label of what Liftlock closed itself on a promotion that a
// person closed: the veto stays, with the database and without.
func TestSupersededLabelByHand(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		p := s.releaseToProd("1.1.0")
		s.must("close it", s.Forge.ClosePull(repoName, p.Number, "ada"))
		s.awaitReason("web", "prod", "closed by a person")
		s.must("label it", s.Forge.AddLabel(repoName, p.Number, "linus", "liftlock/superseded"))
		s.awaitIdle()
		s.awaitReason("web", "prod", "closed by a person")
		s.deleteDatabase()
		s.start()
		s.awaitJudged()
		s.awaitReason("web", "prod", "closed by a person")
		for _, now := range s.listPulls("web", "prod") {
			if now.Number != p.Number {
				t.Errorf("#%d was opened", now.Number)
			}
		}
	})
}

// TestOwnClosesAreNoVeto holds that what Liftlock closed is no veto, and that a veto that a command took
// back is none, also without the database: the server signed both.
func TestOwnClosesAreNoVeto(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.must("close it", s.Forge.ClosePull(repoName, p.Number, "ada"))
	s.awaitReason("web", "prod", "closed by a person")
	id := s.addComment(p.Number, "ada", "/liftlock retry")
	s.awaitReaction(p.Number, id, "+1")
	again := s.awaitAnother(p.Number)
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitJudged()
	s.awaitPull(again, "waits for approvals", func(p *emulator.PullRequest) bool { return p.Open && liftlockStatus(p.Statuses).State == "pending" })
	s.approve(again, "ada")
	s.approve(again, "grace")
	s.awaitMerged(again)
}

// TestAnotherAccount gives the server another account, as where a token is replaced by another
// user's. The former account's commits are no person's change, its open promotion goes on, and so
// does everything else.
func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	if githubFace() == emulator.GitHubApp {
		t.Skip("an App has its own")
	}
	for name, lost := range map[string]bool{"with the database": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, "name: prod\nafter: [qa]\nmerge: manual\nonDegraded: revert-and-merge\nverify: "+verifyFast)})
			s.awaitJudged()
			s.commitRelease("web", "1.1.0")
			open := s.awaitPromotion("web", "prod", "1.1.0")
			s.awaitVerified("web", "qa", "1.1.0")
			s.awaitIdle()
			if lost {
				s.deleteDatabase()
				_, err := s.Forge.MergePull(repoName, open.Number, "ada", "merge")
				s.must("merge what is open", err)
			} else {
				s.stop()
			}
			s.must("add another account", s.Forge.AddUser("liftlock-two", "token-two", emulator.UserOptions{}))
			s.must("grant it the repository", s.Forge.Grant(repoName, "liftlock-two", emulator.Admin))
			s.bot, s.auth = "liftlock-two", "{token: token-two}"
			s.start()
			s.awaitVerified("web", "qa", "1.1.0")
			if !lost {
				s.awaitPull(open.Number, "is ready", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "success" })
				_, err := s.Forge.MergePull(repoName, open.Number, "ada", "merge")
				s.must("merge what is open", err)
			}
			s.awaitVerified("web", "prod", "1.1.0")
			s.commitRelease("web", "1.2.0")
			s.awaitVerified("web", "qa", "1.2.0")
			s.awaitPromotion("web", "prod", "1.2.0")
		})
	}
}

// TestApprovalsOfAReplacedRelease has a release replaced that two approved, and a writer push it back: what
// they approved before counts no longer.
func TestApprovalsOfAReplacedRelease(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		prod := "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - approvals: {count: 2, from: {users: [ada, grace]}}\n  - checks: {require: [ci], from: [ada]}\nverify: " + verifyFast
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, prod)})
		s.awaitJudged()
		s.commitRelease("web", "1.1.0")
		p := s.awaitPromotion("web", "prod", "1.1.0")
		s.approve(p.Number, "ada")
		s.approve(p.Number, "grace")
		s.awaitIdle()
		s.commitRelease("web", "1.2.0")
		s.awaitVerified("web", "qa", "1.2.0")
		s.awaitReaction(p.Number, s.addComment(p.Number, "grace", "/liftlock promote prod"), "+1")
		p = s.awaitPromotion("web", "prod", "1.2.0")
		s.awaitIdle()
		head := s.editTagOn("linus", "made-for-it", "web", "prod", "1.1.0")
		s.must("push it back", s.Forge.SetBranch(repoName, "linus", p.Branch, head))
		s.passCheck(p.Number)
		s.awaitIdle()
		if now := s.readPull(p.Number); now.Merged {
			t.Errorf("#%d was merged: prod has %s", p.Number, s.tagIn("web", "prod"))
		}
	})
}

// TestHoldRemovedByAPush has the release's author push the removal of an approver's hold to the
// state branch. Nothing is merged by that, the hold is put back, and both are on record. Only a
// command lifts it.
func TestHoldRemovedByAPush(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		p := s.releaseToProd("1.1.0")
		s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock hold environment load test"), "+1")
		s.awaitReason("web", "prod", "load test")
		const file = "holds/shop/environment/prod.yaml"
		held, ok, err := s.Forge.File(repoName, "liftlock-state", file)
		if err != nil || !ok {
			t.Fatalf("the hold's file: %t, %v", ok, err)
		}
		_, err = s.Forge.CommitAs(repoName, "linus", "liftlock-state", "Tidy up", map[string]string{"README.md": "x"}, file)
		s.must("take the hold off", err)
		s.approve(p.Number, "ada")
		s.approve(p.Number, "grace")
		s.waitFor("the hold is back", func() (bool, string) {
			text, _, err := s.Forge.File(repoName, "liftlock-state", file)
			return err == nil && text == held, text
		})
		s.awaitIdle()
		if now := s.readPull(p.Number); now.Merged {
			t.Fatalf("#%d was merged by a push to the state branch", p.Number)
		}
		var trail api.AuditTrail
		if _, err := s.getJSON("/api/v1/audit", &trail); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(trail.Entries, func(e api.AuditEntry) bool { return e.Verb == "unhold" && strings.Contains(e.Reason, "linus") }) {
			t.Errorf("the audit trail has %+v", trail.Entries)
		}
		if s.countLogged("put back") == 0 {
			t.Error("the log doesn't say so")
		}
		s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold environment"), "+1")
		s.awaitMerged(p.Number)
	})
}
