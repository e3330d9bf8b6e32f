package server_test

import (
	"fmt"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestStatusFollowsThePipeline has a merge request of Liftlock's get a pipeline of its own that
// succeeds, in a project whose pipelines must succeed, while a gate waits. The status liftlock
// joins it, so that nobody merges past the gate.
func TestStatusFollowsThePipeline(t *testing.T) {
	s := startHarness(t, harnessOptions{face: emulator.GitLab,
		pipeline: pipelineYAML(nil, dev, "name: qa\nafter: [dev]\nmerge: auto\ngates:\n  - approvals: {count: 1, from: {users: [ada]}}\nverify: "+verifyFast)})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.must("have pipelines succeed", s.Forge.Protect(repoName, "main", emulator.Protection{Contexts: []string{"test"}}))
	s.awaitStatus(p.Head, "pending", "waiting for ada (0 of 1)")
	s.must("run a pipeline", s.Forge.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "test", State: "success", Ref: fmt.Sprintf("refs/merge-requests/%d/head", p.Number)}))
	s.waitFor("the status is in both pipelines", func() (bool, string) {
		all, err := s.Forge.Statuses(repoName, p.Head)
		s.must("read the statuses", err)
		n := 0
		for _, o := range all {
			if o.Context == "liftlock" && o.State == "pending" {
				n++
			}
		}
		return n == 2, fmt.Sprint(all)
	})
	if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err == nil {
		t.Error("it was merged past its gate")
	}
	s.approve(p.Number, "ada")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
}
