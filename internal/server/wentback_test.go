package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	ungatedProd  = "name: prod\nafter: [qa]\nmerge: auto\nverify: " + verifyFast
	oneVoiceProd = "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - approvals: {count: 1}\nverify: " + verifyFast
	checkedProd  = "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - checks: {require: [ci], from: [ada]}\nverify: " + verifyFast
	byHandQA     = "name: qa\nafter: [dev]\nmerge: manual\nverify: " + verifyFast
)

// allOnBranches are three environments, none of which lives on the tracked branch.
func allOnBranches() map[string]string {
	return map[string]string{"dev": "env/dev", "qa": "env/qa", "prod": "env/prod"}
}

// carriedTag is the line with the tag that web has in an environment, where that lives.
func (ha *harness) carriedTag(env string) string {
	ha.t.Helper()
	text, _, err := ha.Forge.File(repoName, ha.branchOf(env), ha.overlayDir("web", env)+"/kustomization.yaml")
	ha.must("read what "+env+" has", err)
	return newTag.FindString(text)
}

// setHold holds an environment over the API, or lifts that.
func (ha *harness) setHold(env string, held bool) {
	ha.t.Helper()
	path, body := "/api/v1/pipelines/shop/unhold", map[string]any{"environment": env}
	if held {
		path, body["reason"] = "/api/v1/pipelines/shop/hold", "looking at it"
	}
	if status, answer := ha.postCommand(operatorToken, path, body); status != http.StatusOK {
		ha.t.Fatalf("%s: HTTP %d: %s", path, status, answer)
	}
}

// lookAgain has everything evaluated once more, by a server that starts.
func (ha *harness) lookAgain() {
	ha.t.Helper()
	ha.awaitIdle()
	ha.stop()
	ha.start()
	ha.awaitJudged()
	ha.awaitIdle()
}

// promoteAllTheWay waits until releases went all the way, one after the other.
func (ha *harness) promoteAllTheWay(tags ...string) {
	ha.t.Helper()
	ha.awaitJudged()
	for _, tag := range tags {
		ha.commitRelease("web", tag)
		ha.awaitVerified("web", "prod", tag)
	}
	ha.awaitIdle()
}

// TestOpenPromotionOfAWithdrawnRelease holds on each face that a release which a person withdrew
// from an environment by hand doesn't come to the next one. Its open promotion is closed, with the
// reason.
func TestOpenPromotionOfAWithdrawnRelease(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		p := s.releaseToProd("1.1.0")
		s.awaitVerified("web", "qa", "1.1.0")
		s.editTag("linus", "web", "qa", "1.0.0")
		s.awaitReason("web", "qa", "changed it by hand")
		now := s.awaitPull(p.Number, "is closed", func(p *emulator.PullRequest) bool { return !p.Open })
		says := func(c emulator.Comment) bool {
			return c.User == s.bot && strings.Contains(c.Body, "qa went back to 1.0.0")
		}
		if !slices.ContainsFunc(now.Comments, says) {
			t.Errorf("nobody is told why: %+v", now.Comments)
		}
		s.lookAgain()
		if q := s.readPull(p.Number); q.Merged || s.carriedTag("prod") != "newTag: 1.0.0" {
			t.Errorf("it went on to prod, which has %s", s.carriedTag("prod"))
		}
	})
}

// TestSameReleaseByHand has a person put the release of prod's open promotion into prod. Nothing
// has diverged, and the next release comes as if the promotion had brought this one, also after a
// restart of the server.
func TestSameReleaseByHand(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"by the same process": false, "with a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{})
			p := s.releaseToProd("1.1.0")
			s.editTag("linus", "web", "prod", "1.1.0")
			s.awaitPull(p.Number, "is closed", func(p *emulator.PullRequest) bool { return !p.Open })
			s.awaitVerified("web", "prod", "1.1.0")
			if restart {
				s.stop()
				s.start()
			}
			s.lookAgain()
			s.commitRelease("web", "1.2.0")
			s.awaitPromotion("web", "prod", "1.2.0")
		})
	}
}

// TestReleaseWithdrawnBeforeItsPromotion holds that a release which was taken back goes no further by itself: by hand,
// or by a reset of the branch that it was on.
func TestReleaseWithdrawnBeforeItsPromotion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		branches map[string]string
		from, to string // it was taken back from there, and doesn't come to there
		take     func(s *harness, before string)
	}{
		"by hand where promotions bring releases": {from: "qa", to: "prod", take: func(s *harness, _ string) {
			s.editTag("linus", "web", "qa", "1.1.0")
			s.awaitReason("web", "qa", "changed it by hand")
		}},
		"by a reset of the source's branch": {branches: allOnBranches(), from: "dev", to: "qa", take: func(s *harness, before string) {
			s.must("reset", s.Forge.SetBranch(repoName, "linus", "env/dev", before))
		}},
		"by a reset of another branch": {branches: allOnBranches(), from: "qa", to: "prod", take: func(s *harness, before string) {
			s.must("reset", s.Forge.SetBranch(repoName, "linus", "env/qa", before))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{branches: c.branches, pipeline: pipelineYAML(nil, dev, qa, ungatedProd)})
			s.promoteAllTheWay("1.1.0")
			before, err := s.Forge.Head(repoName, s.branchOf(c.from))
			s.must("read a branch", err)
			s.setHold(c.to, true)
			s.commitRelease("web", "1.2.0")
			s.awaitVerified("web", c.from, "1.2.0")
			s.awaitIdle()
			c.take(s, before)
			s.awaitEnvironment("web", c.from, "has 1.1.0 again", func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Name, "1.1.0") })
			s.awaitIdle()
			s.setHold(c.to, false)
			s.lookAgain()
			if got := s.carriedTag(c.to); got != "newTag: 1.1.0" {
				_, why := s.readEnvironment("web", c.to)
				t.Errorf("%s has %s: %s", c.to, got, why)
			}
		})
	}
}

// TestBranchSetBack holds that what somebody takes back by a reset of the branch isn't put there again by itself.
func TestBranchSetBack(t *testing.T) {
	t.Parallel()
	for name, branches := range map[string]map[string]string{"of all environments": nil, "of the environment": allOnBranches()} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{branches: branches, pipeline: pipelineYAML(nil, dev, qa, ungatedProd)})
			s.awaitJudged()
			s.setHold("prod", true)
			s.commitRelease("web", "1.1.0")
			s.awaitVerified("web", "qa", "1.1.0")
			s.awaitIdle()
			before, err := s.Forge.Head(repoName, s.branchOf("prod"))
			s.must("read a branch", err)
			s.setHold("prod", false)
			s.awaitVerified("web", "prod", "1.1.0")
			s.awaitIdle()
			s.must("reset", s.Forge.SetBranch(repoName, "ada", s.branchOf("prod"), before))
			s.awaitEnvironment("web", "prod", "has 1.0.0 again", func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Name, "1.0.0") })
			s.lookAgain()
			if got := s.carriedTag("prod"); got != "newTag: 1.0.0" {
				_, why := s.readEnvironment("web", "prod")
				t.Errorf("prod has %s: %s", got, why)
			}
		})
	}
}

// TestOlderReleasePushedOverAPromotion holds that nobody brings an environment back to what it had, or to what was
// vetoed, by pushing that over the next promotion and passing its gates.
func TestOlderReleasePushedOverAPromotion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prod   string
		vetoed bool
		over   string
	}{
		"one approval":       {prod: oneVoiceProd, over: "1.1.0"},
		"a check":            {prod: checkedProd, over: "1.1.0"},
		"what was closed":    {prod: oneVoiceProd, vetoed: true, over: "1.2.0"},
		"closed and a check": {prod: checkedProd, vetoed: true, over: "1.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, c.prod)})
			s.awaitJudged()
			next := func(tag string) emulator.PullRequest {
				s.commitRelease("web", tag)
				p := s.awaitPromotion("web", "prod", tag)
				s.awaitIdle()
				return p
			}
			pass := func(p emulator.PullRequest, login string) {
				s.approve(p.Number, login)
				s.passCheck(p.Number)
			}
			p := next("1.1.0")
			pass(p, "ada")
			s.awaitVerified("web", "prod", "1.1.0")
			p = next("1.2.0")
			if c.vetoed {
				s.must("close", s.Forge.ClosePull(repoName, p.Number, "ada"))
				s.awaitReason("web", "prod", "closed by a person")
			} else {
				pass(p, "ada")
				s.awaitVerified("web", "prod", "1.2.0")
			}
			had := s.carriedTag("prod")
			p = next("1.3.0")
			head := s.editTagOn("grace", "somewhere", "web", "prod", c.over)
			s.must("push over", s.Forge.SetBranch(repoName, "grace", p.Branch, head))
			pass(p, "grace")
			s.awaitPull(p.Number, "isn't merged", func(p *emulator.PullRequest) bool { return !p.Open || liftlockStatus(p.Statuses).State == "failure" })
			s.lookAgain()
			if got := s.carriedTag("prod"); got != had && got != "newTag: 1.3.0" {
				t.Errorf("prod has %s", got)
			}
		})
	}
}

// TestMoveWithARelease holds that a release which comes with the commit that moves its component goes on.
func TestMoveWithARelease(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, ungatedProd)})
	s.promoteAllTheWay("1.1.0")
	files := map[string]string{}
	var gone []string
	for name := range s.readTree() {
		moved, ok := strings.CutPrefix(name, "apps/web/")
		if !ok {
			continue
		}
		text, _, err := s.Forge.File(repoName, "main", name)
		s.must("read", err)
		if moved == "overlays/dev/kustomization.yaml" {
			text = newTag.ReplaceAllString(text, "newTag: 1.2.0")
		}
		files["services/web/"+moved], gone = text, append(gone, name)
	}
	set, _, err := s.Forge.File(repoName, "main", "argocd/shop.yaml")
	s.must("read the set", err)
	files["argocd/shop.yaml"] = strings.ReplaceAll(set, "apps/*/overlays/*", "services/*/overlays/*")
	_, err = s.Forge.CommitAs(repoName, "linus", "main", "Move and bump", files, gone...)
	s.must("move", err)
	for _, env := range s.environmentNames() {
		s.must("remove an Application", s.ArgoCD.RemoveApplication("argocd", "web-"+env))
		s.must("add an Application", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "web-" + env, Repo: repoName, Path: "services/web/overlays/" + env,
			DestinationNamespace: "web-" + env, Cluster: "https://kubernetes.default.svc", ApplicationSet: "shop"}))
	}
	s.awaitVerified("web", "prod", "1.2.0")
}

// TestAuthorsApprovalKeepsNoPlace holds that an approval which counts for no gate keeps no release in its place before
// a newer one.
func TestAuthorsApprovalKeepsNoPlace(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.approve(p.Number, "linus") // the release's author, and no approver
	s.awaitIdle()
	s.commitRelease("web", "1.1.1")
	s.awaitPromotion("web", "prod", "1.1.1")
}

// TestDegradedBeforeIsNotForgotten holds that what degraded in one environment doesn't go past the next one, however
// many releases came since.
func TestDegradedBeforeIsNotForgotten(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, byHandQA, ungatedProd)})
	s.awaitJudged()
	s.setHold("prod", true)
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	_, err := s.Forge.MergePull(repoName, p.Number, "ada", "merge")
	s.must("merge", err)
	s.awaitVerified("web", "qa", "1.1.0")
	s.must("break dev", s.ArgoCD.SetFault("argocd", "web-dev", argoemulator.AppFault{Health: "Degraded", Message: "out of memory", Resource: "web"}))
	s.awaitEnvironment("web", "dev", "is degraded", func(e *api.EnvironmentWhy) bool { return e.State == promotion.Degraded })
	s.setHold("prod", false)
	has := func(tag string) {
		s.commitRelease("web", tag)
		s.awaitEnvironment("web", "dev", "has "+tag, func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Name, tag) })
	}
	has("1.9.0")
	s.waitFor("Argo CD has synced it", func() (bool, string) {
		st, err := s.ArgoCD.State("argocd", "web-dev")
		head, _ := s.Forge.Head(repoName, "main")
		return err == nil && st.Revision == head, st.Revision
	})
	s.awaitIdle()
	s.must("mend dev", s.ArgoCD.SetFault("argocd", "web-dev", argoemulator.AppFault{}))
	for i := range 52 { // more than the part of an environment's history that is read
		has("2.0." + itoa(i))
	}
	s.lookAgain()
	if got := s.carriedTag("prod"); got != "newTag: 1.0.0" || len(s.listPulls("web", "prod")) != 0 {
		_, why := s.readEnvironment("web", "prod")
		t.Errorf("prod has %s, by %d pull requests: %s", got, len(s.listPulls("web", "prod")), why)
	}
}
