package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// proposals are the pull requests from the branch of proposals, oldest first.
func (ha *harness) proposals() []emulator.PullRequest {
	ha.t.Helper()
	all, err := ha.ownPulls()
	ha.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return p.Branch != promotion.OnboardingBranch })
}

// awaitProposal waits until the one pull request that proposes a pipeline file is so.
func (ha *harness) awaitProposal(what string, ok func(p *emulator.PullRequest, file string) bool) emulator.PullRequest {
	ha.t.Helper()
	var found emulator.PullRequest
	ha.waitFor("the proposal "+what, func() (bool, string) {
		all := ha.proposals()
		if len(all) != 1 {
			return false, itoa(len(all)) + " pull requests"
		}
		file, _, err := ha.Forge.File(repoName, all[0].Head, ".liftlock.yaml")
		ha.must("read the proposed file", err)
		found = all[0]
		return ok(&found, file), found.Body + file
	})
	return found
}

// awaitNoMore has the server look again, and holds that no other pull request comes of it.
func (ha *harness) awaitNoMore(when, file string) {
	ha.t.Helper()
	ha.commitFiles("linus", "main", "Touch "+file, map[string]string{file: "x\n"})
	ha.awaitIdle()
	if all := ha.proposals(); len(all) != 1 || all[0].Open {
		ha.t.Fatalf("%s there are %+v", when, all)
	}
}

// TestOnboarding proposes a pipeline file to a repository without one, and keeps that up to date with the branch. When
// it is merged the repository is observed.
func TestOnboarding(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, onboard: true})
		p := s.awaitProposal("is open", func(p *emulator.PullRequest, _ string) bool {
			return p.Open && slices.Contains(p.Labels, promotion.LabelOurs)
		})
		for _, part := range []string{"`.liftlock.yaml`, in `mode: observe`", "1 component: `web`", "`dev` → `qa` → `prod`", "The order is a guess", "No promotion would open now.", "comes to `dev`", "that is a no", "<!-- liftlock:onboarding sig="} {
			if !strings.Contains(p.Body, part) {
				t.Errorf("it doesn't say %q:\n%s", part, p.Body)
			}
		}
		if p.Author != s.bot || p.Base != "main" {
			t.Errorf("it is %+v", p)
		}
		s.awaitStatus(p.Head, "success", "pipeline files are valid")
		s.awaitIdle()
		s.stop()
		s.start()
		s.awaitIdle()

		files := map[string]string{}
		s.addComponentFiles(files, []string{"api"})
		s.commitFiles("linus", "main", "Another component", files)
		s.awaitProposal("has the other component", func(p *emulator.PullRequest, _ string) bool {
			return strings.Contains(p.Body, "2 components: `api`, `web`")
		})
		s.commitRelease("web", "1.1.0")
		p = s.awaitProposal("has the release", func(p *emulator.PullRequest, _ string) bool {
			return strings.Contains(p.Body, "dev carries 1.1.0 since before the pipeline came in")
		})
		_, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge")
		s.must("merge it", err)
		s.awaitReason("web", "qa", "was there before the pipeline came in")
		s.commitRelease("web", "1.2.0")
		s.awaitReason("web", "qa", "mode is observe; otherwise: open a promotion of 1.2.0 into qa")
		s.awaitIdle()
		if all, err := s.ownPulls(); err != nil || len(all) != 1 {
			t.Errorf("observed, there are %+v, %v", all, err)
		}
		if branches, err := s.Forge.Branches(repoName); err != nil || slices.Contains(branches, promotion.OnboardingBranch) {
			t.Errorf("the branch is left over: %q, %v", branches, err)
		}
	})
}

// TestOnboardingClosed takes a close for a no: for good, also where the database is lost. Opened again it is kept up to
// date again, and a person's push ends that.
func TestOnboardingClosed(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, onboard: true})
		p := s.awaitProposal("is open", func(p *emulator.PullRequest, _ string) bool { return p.Open })
		s.must("close it", s.Forge.ClosePull(repoName, p.Number, "linus"))
		s.awaitIdle()
		s.awaitNoMore("closed", "a")
		s.deleteDatabase()
		s.start()
		s.awaitIdle()
		s.awaitNoMore("without a database", "b")
		s.must("open it again", s.Forge.ReopenPull(repoName, p.Number, "linus"))
		files := map[string]string{}
		s.addComponentFiles(files, []string{"api"})
		s.commitFiles("linus", "main", "Another component", files)
		s.awaitProposal("has the other component", func(p *emulator.PullRequest, _ string) bool {
			return p.Open && strings.Contains(p.Body, "2 components")
		})
		head := s.commitFiles("ada", promotion.OnboardingBranch, "Mine", map[string]string{"NOTES.md": "mine\n"})
		s.awaitProposal("says that somebody pushed", func(p *emulator.PullRequest, _ string) bool {
			return strings.Contains(p.Body, "Somebody has pushed to this branch")
		})
		s.addComponentFiles(files, []string{"mail"})
		s.commitFiles("linus", "main", "And another", files)
		s.awaitIdle()
		if p := s.proposals()[0]; p.Head != head || strings.Contains(p.Body, "3 components") {
			t.Errorf("somebody's push is written over: %+v", p)
		}
	})
}

// TestOnboardingDraft proposes a draft where something is open, and lists what was seen for it.
func TestOnboardingDraft(t *testing.T) {
	s := startHarness(t, harnessOptions{onboard: true, pipeline: pipelineYAML(nil, "name: blue", "name: green")})
	p := s.awaitProposal("is open", func(p *emulator.PullRequest, file string) bool { return p.Open && strings.Contains(file, "TODO") })
	for _, part := range []string{"What is open", "The file is a draft", "--order", "There is no plan while something is open"} {
		if !strings.Contains(p.Body, part) {
			t.Errorf("it doesn't say %q:\n%s", part, p.Body)
		}
	}
}

// TestOnboardingOfNothing says among the troubles why nothing is proposed.
func TestOnboardingOfNothing(t *testing.T) {
	s := newHarness(t, harnessOptions{onboard: true})
	s.must("take the sets away", removeFile(s, "argocd/shop.yaml"))
	s.start()
	s.waitFor("it says why", func() (bool, string) {
		var all api.Pipelines
		if _, err := s.getJSON("/api/v1/pipelines", &all); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(all.Troubles, func(t api.Trouble) bool {
			return t.Part == "pipeline file for hub:"+repoName && strings.Contains(t.Message, "kind: ApplicationSet")
		}), itoa(len(all.Troubles))
	})
	if left, err := os.ReadDir(filepath.Join(s.dir, "data", "proposal")); err == nil {
		t.Errorf("the process left %v", left)
	}
}

// TestOnboardingIsLimited has the process that makes a proposal go past its memory: that is told, nothing is opened, and
// the server goes on.
func TestOnboardingIsLimited(t *testing.T) {
	if raceDetector || !sandbox.CanLimitMemory() {
		t.Skip("memory can't be limited here")
	}
	s := startHarness(t, harnessOptions{onboard: true, seams: server.Seams{Sandbox: sandbox.Limits{Memory: 8 << 20}}})
	s.waitFor("it says why", func() (bool, string) {
		var all api.Pipelines
		if _, err := s.getJSON("/api/v1/pipelines", &all); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(all.Troubles, func(t api.Trouble) bool {
			return t.Part == "pipeline file for hub:"+repoName && strings.Contains(t.Message, "in a process of its own")
		}), itoa(len(all.Troubles))
	})
	if all := s.proposals(); len(all) != 0 {
		t.Errorf("there are %+v", all)
	}
}

func removeFile(s *harness, file string) error {
	_, err := s.Forge.LandAs(repoName, "linus", "main", "Take "+file+" away", nil, file)
	return err
}
