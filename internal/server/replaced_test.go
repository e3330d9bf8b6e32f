package server_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/emulator"
)

// eachFace runs a test on the faces of the forge.
func eachFace(t *testing.T, test func(t *testing.T, face emulator.Face)) {
	t.Helper()
	for _, face := range []emulator.Face{emulator.GitHub, emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) { test(t, face) })
	}
}

// TestReplacedRepository: a repository that somebody makes under the name that one has given up is not
// taken for it, neither by a server that runs nor by one that starts, and the server says what to do.
func TestReplacedRepository(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa)})
		s.awaitJudged()
		s.awaitIdle()
		const moved = "acme/ships"
		s.must("give the name up", s.Forge.MoveRepository(repoName, moved))
		files := maps.Clone(s.repositoryFiles())
		s.must("make another", s.Forge.CreateRepo(repoName, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: files, Access: map[string]emulator.Permission{bot: emulator.Admin, "linus": emulator.Write}, GitLab: s.opts.project()}))
		s.must("make its hook", s.Forge.AddHook(repoName, "linus", emulator.Hook{URL: s.url + "/webhooks/hub", Secret: secret, Active: true}))
		s.commitRelease("web", "6.6.6")
		says := func(text string) {
			s.waitFor("it says "+text, func() (bool, string) {
				_, ready := s.getText("/readyz")
				return strings.Contains(ready, text), ready
			})
		}
		says("repository hub:" + repoName + ": another repository has this name by now, and nothing is done there: write the name that the former one has now")
		s.awaitIdle()
		if n := s.countLogged("a run failed and is tried again"); n != 0 {
			t.Errorf("%d runs failed", n)
		}
		s.stop()
		s.start()
		says("another repository has this name by now: the number of " + repoName + " was ")
		pulls, err := s.Forge.Pulls(repoName)
		s.must("list its pull requests", err)
		for _, p := range pulls {
			if p.Author == bot {
				t.Errorf("#%d was opened in it: %s", p.Number, p.Title)
			}
		}
	})
}
