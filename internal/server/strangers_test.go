package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestStrangersBranch leaves a branch that is named like ours and isn't.
func TestStrangersBranch(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	branch := promotion.Branch("shop", "qa", "web")
	theirs := s.editTagOn("linus", branch, "web", "qa", "6.6.6")
	s.commitRelease("web", "1.1.0")
	s.awaitReason("web", "qa", branch)
	s.awaitIdle()
	if head, err := s.Forge.Head(repoName, branch); err != nil || head != theirs {
		t.Errorf("the stranger's branch is at %s (%v), want %s", head, err, theirs)
	}
	if all, err := s.ownPulls(); err != nil || len(all) != 0 {
		t.Errorf("%d pull requests (%v)", len(all), err)
	}
	// Gone, the way is free.
	s.must("delete the branch", s.Forge.SetBranch(repoName, "linus", branch, ""))
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
}

// TestStrangersPullRequest leaves a pull request that is named like ours and
// isn't: no commands, no merge, no label.
func TestStrangersPullRequest(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	branch := promotion.Branch("shop", "qa", "web")
	s.editTagOn("linus", branch, "web", "qa", "6.6.6")
	n, err := s.Forge.OpenPull(repoName, "linus", branch, "main", "Promote web to qa: 6.6.6", "")
	s.must("open a pull request", err)
	s.commitRelease("web", "1.1.0")
	s.awaitEnvironment("web", "qa", "names the stranger's pull request", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "#"+itoa(n)) && strings.Contains(e.Text, "linus")
	})
	s.addComment(n, "ada", "/liftlock status")
	s.awaitIdle()
	p := s.readPull(n)
	if !p.Open || p.Merged || len(p.Labels) != 0 || p.Title != "Promote web to qa: 6.6.6" {
		t.Errorf("the stranger's pull request was touched: %+v", p)
	}
	if len(s.listPulls("web", "qa")) != 0 {
		t.Error("a promotion was opened beside it")
	}
}

// TestPushToOurBranch stops when somebody pushes to the branch of an open
// promotion, and retry takes it over.
func TestPushToOurBranch(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.editTagOn("grace", p.Branch, "web", "prod", "6.6.6")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitPull(p.Number, "is stopped", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "failure" })
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("what somebody pushed was merged")
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	p = s.awaitPromotion("web", "prod", "1.1.0")
	s.awaitPull(p.Number, "carries the release again", func(p *emulator.PullRequest) bool {
		text, _, err := s.Forge.File(repoName, p.Head, overlayPath("web", "prod")+"/kustomization.yaml")
		return err == nil && strings.Contains(text, "newTag: 1.1.0")
	})
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
}

// TestSameOverlayMeanwhile keeps what somebody commits to the same overlay while
// the pull request is open.
func TestSameOverlayMeanwhile(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	file := overlayPath("web", "prod") + "/kustomization.yaml"
	text, _, err := s.Forge.File(repoName, "main", file)
	s.must("read an overlay", err)
	s.commitFiles("grace", "main", "Label prod", map[string]string{file: "# prod's own\n" + text})
	p = s.awaitPull(p.Number, "is composed anew", func(now *emulator.PullRequest) bool { return now.Head != p.Head })
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	want := "# prod's own\n" + strings.Replace(text, "newTag: 1.0.0", "newTag: 1.1.0", 1)
	if got, _, err := s.Forge.File(repoName, "main", file); err != nil || got != want {
		t.Errorf("prod's overlay is (%v)\n%s\nwant\n%s", err, got, want)
	}
}

// TestSharedFileIsRefused edits nothing that targets outside the environment
// depend on too, and names those.
func TestSharedFileIsRefused(t *testing.T) {
	s := startHarness(t, harnessOptions{
		pipeline: pipelineYAML(nil, dev, qa, prod),
		files: map[string]string{
			// prod builds on qa's overlay: what moves in qa moves in prod.
			overlayPath("web", "prod") + "/kustomization.yaml": "resources:\n  - ../qa\nimages:\n  - name: registry.example/other\n    newTag: 1.0.0\n",
		},
	})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitEnvironment("web", "qa", "is refused with the other target's name", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "web-prod") && strings.Contains(e.Text, "also read by")
	})
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Errorf("%d pull requests that change prod were opened", n)
	}
}

// TestSharedFileThatIsSafe edits a file that a target outside the environment
// reads too where that target's manifests stay as they are, and shows so.
func TestSharedFileThatIsSafe(t *testing.T) {
	s := startHarness(t, harnessOptions{
		pipeline: pipelineYAML(nil, dev, qa, prod),
		files: map[string]string{
			// prod builds on qa's overlay and says its own tag over it.
			overlayPath("web", "prod") + "/kustomization.yaml": "resources:\n  - ../qa\nimages:\n  - name: registry.example/web\n    newTag: 1.0.0\n",
		},
	})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	for _, want := range []string{
		"These read a changed file too, and stay exactly as they are, which their Applications and manifests before and after show: `web-prod`.",
		"### Rendered manifests\n\n- `web-qa`: 1 changed\n",
		"  - spec.template.spec.containers[name=web].image: registry.example/web:1.0.0\n  + spec.template.spec.containers[name=web].image: registry.example/web:1.1.0\n",
	} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("the body doesn't say %q:\n%s", want, p.Body)
		}
	}
}

// TestDiff answers what an open promotion changes, in files and in manifests.
func TestDiff(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	answer := s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock diff"), "+1")
	for _, want := range []string{"newTag", "`web-prod`: 1 changed", "registry.example/web:1.1.0"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer doesn't say %q:\n%s", want, answer)
		}
	}
}

// TestIncident degrades a neighbour on the same cluster in the same moment: that
// is no promotion's doing, so a person decides.
func TestIncident(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ resource, says string }{
		"somewhere":      {"", "Argo CD doesn't say which resources of web-qa are degraded: an incident is likely"},
		"somewhere else": {"cache", "(Deployment cache) is nothing that the promotion changed: an incident is likely"},
	} {
		t.Run(name, func(t *testing.T) { runIncident(t, c.resource, c.says) })
	}
}

// runIncident makes a resource of web, and something of its neighbour, unwell.
func runIncident(t *testing.T, resource, says string) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitVerified("web", "qa", "1.1.0")
	for _, name := range []string{"api-qa", "web-qa"} {
		s.must("degrade "+name, s.ArgoCD.SetFault("argocd", name, argoemulator.AppFault{Health: "Degraded", Message: "node not ready", Resource: resource}))
	}
	s.awaitReason("web", "qa", says)
	s.awaitIdle()
	if n := len(s.listReverts("web", "qa")) + len(s.listReverts("api", "qa")); n != 0 {
		t.Fatalf("%d reverts were opened because of an incident", n)
	}
	s.awaitPull(p.Number, "asks a person", func(p *emulator.PullRequest) bool { return countComments(p, "an incident is likely") == 1 })
	for _, name := range []string{"api-qa", "web-qa"} {
		s.must("mend "+name, s.ArgoCD.SetFault("argocd", name, argoemulator.AppFault{}))
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestBadReleaseDuringIncident takes back what the promotion changed and made
// unwell, also when a neighbour on the same cluster is unwell in the same moment.
func TestBadReleaseDuringIncident(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}})
	s.awaitJudged()
	s.must("degrade api-qa", s.ArgoCD.SetFault("argocd", "api-qa", argoemulator.AppFault{Health: "Degraded", Message: "node not ready"}))
	s.commitRelease("web", "1.1.0-broken-in-qa")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0-broken-in-qa").Number)
	s.waitFor("the revert is open", func() (bool, string) {
		_, why := s.readEnvironment("web", "qa")
		return len(s.listReverts("web", "qa")) == 1, why
	})
	if body := s.listReverts("web", "qa")[0].Body; !strings.Contains(body, "became unwell too, but what is degraded in web-qa (Deployment web) is what") {
		t.Errorf("the revert doesn't say why all the same:\n%s", body)
	}
}

// TestUnhealthyBeforeMerge holds instead of reverting what was unwell before the merge.
func TestUnhealthyBeforeMerge(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, manualQA)})
	s.awaitJudged()
	s.must("degrade web-qa", s.ArgoCD.SetFault("argocd", "web-qa", argoemulator.AppFault{Health: "Degraded", Message: "disk full"}))
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitPull(p.Number, "is judged", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State != "" })
	if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.awaitReason("web", "qa", "already unwell before the merge")
	s.awaitIdle()
	if n := len(s.listReverts("web", "qa")); n != 0 {
		t.Errorf("%d reverts of what was unwell before", n)
	}
}

// TestSquashByPerson merges by hand with a squash: found, verified, and not
// opened a second time, in whatever order the news comes.
func TestSquashByPerson(t *testing.T) { testSquashByPerson(t, forgeFace()) }

func testSquashByPerson(t *testing.T, face emulator.Face) {
	components := []string{"a", "b", "c", "d"}
	s := startHarness(t, harnessOptions{face: face, components: components, pipeline: pipelineYAML(nil, dev, manualQA)})
	s.awaitJudged()
	s.Forge.SetDeliveryOptions(emulator.DeliveryOptions{Shuffle: true, Seed: 3})
	for _, c := range components {
		s.commitRelease(c, "1.1.0")
	}
	for _, c := range components {
		p := s.awaitPromotion(c, "qa", "1.1.0")
		if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "squash"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range components {
		s.awaitVerified(c, "qa", "1.1.0")
	}
	s.awaitIdle()
	for _, c := range components {
		if n := len(s.listPulls(c, "qa")); n != 1 {
			t.Errorf("%d pull requests for %s, want 1", n, c)
		}
	}
	if n := s.countLogged("No commits between"); n != 0 {
		t.Errorf("%d times what was merged was opened again", n)
	}
}

// TestApplicationAppearsLater waits for a target that doesn't exist yet.
func TestApplicationAppearsLater(t *testing.T) {
	s := newHarness(t, harnessOptions{})
	s.must("remove an Application", s.ArgoCD.RemoveApplication("argocd", "web-qa"))
	s.start()
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitEnvironment("web", "qa", "waits for its Application", func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Verifying && strings.Contains(e.Text, "no such Application exists yet")
	})
	s.must("add it", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "web-qa", Repo: repoName, Path: overlayPath("web", "qa"), DestinationNamespace: "web-qa", ApplicationSet: "shop", Unsynced: true}))
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestFileIsSharedMeanwhile merges nothing when another target came to depend on
// what an open promotion edits, and merges when that is over.
func TestFileIsSharedMeanwhile(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}})
	p := s.releaseToProd("1.1.0")
	file := overlayPath("api", "qa") + "/kustomization.yaml"
	before, _, err := s.Forge.File(repoName, "main", file)
	s.must("read an overlay", err)
	s.commitFiles("grace", "main", "Build on web's prod", map[string]string{file: strings.Replace(before, "resources:\n", "resources:\n  - ../../../web/overlays/prod\n", 1)})
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitEnvironment("web", "prod", "waits, with the other target's name", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "one-environment") && strings.Contains(e.Text, "api-qa")
	})
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("what changes another component's qa was merged")
	}
	s.commitFiles("grace", "main", "Don't", map[string]string{file: before})
	s.awaitMerged(p.Number)
}
