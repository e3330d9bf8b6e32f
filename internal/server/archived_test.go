package server_test

import (
	"strings"
	"testing"
)

// TestArchivedRepository lets a repository rest while it is archived, without a run that fails, and
// goes on once it isn't any more.
func TestArchivedRepository(t *testing.T) {
	s := startHarness(t, harnessOptions{face: githubFace(), pipeline: pipelineYAML(nil, dev, qa)})
	s.awaitJudged()
	s.must("archive it", s.Forge.ArchiveRepository(repoName, true))
	s.commitRelease("web", "1.1.0")
	s.waitFor("it rests", func() (bool, string) {
		_, ready := s.getText("/readyz")
		return strings.Contains(ready, "it is archived, and rests"), ready
	})
	s.awaitIdle()
	if n := s.countLogged("a run failed and is tried again"); n != 0 {
		t.Errorf("%d runs failed", n)
	}
	s.must("unarchive it", s.Forge.ArchiveRepository(repoName, false))
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
	if _, ready := s.getText("/readyz"); strings.Contains(ready, "archived") {
		t.Errorf("it rests still: %s", ready)
	}
}
