package server_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// replaceRepository has the repository give its name up for moved, and somebody make another under it.
func (ha *harness) replaceRepository(moved string) {
	ha.t.Helper()
	ha.must("give the name up", ha.Forge.MoveRepository(repoName, moved))
	ha.must("make another", ha.Forge.CreateRepo(repoName, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: maps.Clone(ha.repositoryFiles()), Access: map[string]emulator.Permission{ha.bot: emulator.Admin, "linus": emulator.Write}, GitLab: ha.opts.project()}))
	ha.makeHook()
	ha.commitRelease("web", "6.6.6")
}

// awaitReady waits until /readyz says something.
func (ha *harness) awaitReady(text string) {
	ha.t.Helper()
	ha.waitFor("it says "+text, func() (bool, string) {
		_, ready := ha.getText("/readyz")
		return strings.Contains(ready, text), ready
	})
}

// TestReplacedRepository holds that a new repository under the name that another has given up is
// not taken for that one. Neither a running server nor a starting one takes it, and the server says
// what to do. Where the name is given back, all goes on.
func TestReplacedRepository(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa)})
		s.awaitJudged()
		s.awaitIdle()
		giveBack := func(other, tag string) {
			pulls, err := s.Forge.Pulls(repoName)
			s.must("list its pull requests", err)
			for _, p := range pulls {
				if p.Author == s.bot {
					t.Errorf("#%d was opened in it: %s", p.Number, p.Title)
				}
			}
			s.must("rename the other", s.Forge.MoveRepository(repoName, other))
			s.must("give the name back", s.Forge.MoveRepository("acme/ships", repoName))
			s.commitRelease("web", tag)
			s.awaitVerified("web", "qa", tag)
			if _, ready := s.getText("/readyz"); strings.Contains(ready, "another repository") {
				t.Errorf("it rests still: %s", ready)
			}
			s.awaitIdle()
		}
		s.replaceRepository("acme/ships")
		s.awaitReady("repository hub:" + repoName + ": another repository has this name by now, and nothing is done there: write the name that the former one has now")
		s.awaitIdle()
		if n := s.countLogged("a run failed and is tried again"); n != 0 {
			t.Errorf("%d runs failed", n)
		}
		giveBack("acme/first", "1.1.0")
		s.replaceRepository("acme/ships")
		s.awaitReady("another repository has this name by now")
		s.stop()
		s.start()
		s.awaitReady("another repository has this name by now: the number of " + repoName + " was ")
		giveBack("acme/second", "1.2.0")
	})
}
