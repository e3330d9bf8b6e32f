package controller

import (
	"strings"
	"testing"
)

// TestEmptyPipelines has a pipeline without a component, which nothing else would show, and then
// with one.
func TestEmptyPipelines(t *testing.T) {
	w := newFixture(t, "", "")
	id := PipelineID{w.repo.ID, "shop"}
	if why := w.EmptyPipelines()[id]; !strings.Contains(why, "it has no component: what it names generates no Application") {
		t.Errorf("it is empty, as %q", why)
	}
	_, err := w.forge.CommitAs(repoName, "linus", "main", "The first component", map[string]string{kustomizationOf("web", "dev"): kustomization("web", "1.0.0")})
	w.must(err)
	w.runRepository()
	if all := w.EmptyPipelines(); len(all) != 0 {
		t.Errorf("empty are %q", all)
	}
}
