package server_test

import (
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestOnlyUpToDateIsMerged has several released at once where the forge merges only branches that
// are up to date. One after the other they are brought up to date and land.
func TestOnlyUpToDateIsMerged(t *testing.T) {
	t.Parallel()
	auto := pipelineYAML(nil, dev, qa)
	for name, o := range map[string]harnessOptions{
		"GitLab with semi-linear history": {face: emulator.GitLab, pipeline: auto, gitlab: emulator.GitLabProject{MergeMethod: "rebase_merge"}},
		"GitLab by fast-forward":          {face: emulator.GitLab, pipeline: pipelineYAML([]string{"merge: {method: rebase}"}, dev, qa)},
		"GitHub with strict checks":       {face: githubFace(), pipeline: auto},
	} {
		t.Run(name, func(t *testing.T) {
			o.components = []string{"web", "api", "jobs"}
			s := startHarness(t, o)
			if s.Forge.Face() == emulator.GitHub {
				s.must("protect main", s.Forge.Protect(repoName, "main", emulator.Protection{Strict: true, Contexts: []string{"liftlock"}}))
			}
			s.awaitJudged()
			released := map[string]string{}
			for _, c := range o.components {
				released[overlayPath(c, "dev")+"/kustomization.yaml"] = newTag.ReplaceAllString(s.overlayText(c, "dev"), "newTag: 1.1.0")
			}
			s.commitFiles("linus", "main", "Release everything", released)
			for _, c := range o.components {
				s.awaitVerified(c, "qa", "1.1.0")
			}
			s.awaitIdle()
			all, err := s.ownPulls()
			s.must("list the pull requests", err)
			if n := s.countLogged("bring #"); n == 0 || n > len(o.components) {
				t.Errorf("%d promotions were brought up to date %d times", len(all), n)
			}
			if len(all) != len(o.components) {
				t.Errorf("%d pull requests for %d promotions", len(all), len(o.components))
			}

			// A revert is brought up to date too.
			s.commitRelease("web", "1.2.0-broken-in-qa")
			s.awaitVerified("web", "qa", "1.1.0")
		})
	}
}
