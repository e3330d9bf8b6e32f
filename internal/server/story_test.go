package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/emulator"
)

// story follows one release from dev to prod. It returns prod's pull request.
func (s *scene) story() emulator.PullRequest {
	s.t.Helper()
	s.quiet()
	s.release("web", "1.1.0")
	s.merged(s.opened("web", "qa", "1.1.0").Number)
	s.verified("web", "qa", "1.1.0")
	p := s.opened("web", "prod", "1.1.0")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	p = s.merged(p.Number)
	s.verified("web", "prod", "1.1.0")
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	if len(all) != 2 {
		s.t.Errorf("the story made %d pull requests, want 2", len(all))
	}
	return p
}

// TestStory also holds that neither file of another environment changed, and
// that a restart without a database finds nothing to do.
func TestStory(t *testing.T) {
	s := begin(t, plan{})
	s.story()
	for _, env := range []string{"dev", "qa", "prod"} {
		text, _, err := s.Forge.File(repoName, "main", overlay("web", env)+"/kustomization.yaml")
		s.must("read an overlay", err)
		if want := strings.NewReplacer("NAME", "web", "TAG", "1.1.0").Replace(kustomization); text != want {
			t.Errorf("%s's overlay is\n%s", env, text)
		}
	}
	s.idle()
	s.forget()
	s.start()
	s.quiet()
	s.idle()
	if all, err := s.Forge.Pulls(repoName); err != nil || len(all) != 2 {
		t.Errorf("after the database was lost there are %d pull requests (%v), want 2", len(all), err)
	}
}
