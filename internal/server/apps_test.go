package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestAppInSeveralOrganisations: as an App, one organisation's suspended installation keeps
// nobody else from anything, also over a restart; it comes back when the suspension ends.
func TestAppInSeveralOrganisations(t *testing.T) {
	const other = "globex/fleet"
	s := newHarness(t, harnessOptions{face: emulator.GitHubApp, pipeline: pipelineYAML(nil, dev, qa), repositoryLines: "  - {forge: hub, name: " + other + "}\n"})
	s.must("make the other repository", s.Forge.CreateRepo(other, emulator.RepoOptions{Author: "linus", Message: "A pipeline", Files: map[string]string{".liftlock.yaml": "broken"},
		Access: map[string]emulator.Permission{"linus": emulator.Write}}))
	s.must("install the App", s.Forge.InstallApp("liftlock", "globex"))
	s.must("suspend it", s.Forge.SuspendApp("liftlock", "globex", true))
	s.start()
	s.awaitJudged()
	rests := func(resting bool) {
		t.Helper()
		s.waitFor("/readyz says which installation rests", func() (bool, string) {
			status, text := s.getText("/readyz")
			says := strings.Contains(text, "installation in globex on hub: the App's installation in globex is suspended") && strings.Contains(text, "repository "+other)
			return status == http.StatusOK && says == resting && (resting || !strings.Contains(text, "globex")), text
		})
	}
	rests(true)
	s.commitRelease("web", "1.1.0")
	s.awaitVerified("web", "qa", "1.1.0")

	s.stop()
	s.start()
	s.awaitJudged()
	rests(true)
	s.commitRelease("web", "1.2.0")
	s.awaitVerified("web", "qa", "1.2.0")
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	for _, p := range all {
		if p.Author != "liftlock[bot]" || p.MergedBy != "liftlock[bot]" {
			t.Errorf("#%d is by %s and was merged by %s", p.Number, p.Author, p.MergedBy)
		}
	}

	s.must("end it", s.Forge.SuspendApp("liftlock", "globex", false))
	rests(false)
	s.waitFor("the repository is looked at", func() (bool, string) {
		seen, err := s.readTroubles()
		return err == nil && strings.Contains(seen, "pipeline file of hub:"+other), seen
	})
	s.must("suspend it again", s.Forge.SuspendApp("liftlock", "globex", true))
	s.waitFor("/readyz says so", func() (bool, string) {
		_, text := s.getText("/readyz")
		return strings.Contains(text, "installation in globex on hub"), text
	})
}

// TestAppTokensEndDuringAPromotion has GitHub refuse the App's tokens between any two steps of a
// promotion. Others are exchanged, for Git too, and nothing is done twice or said to fail.
func TestAppTokensEndDuringAPromotion(t *testing.T) {
	clock := newSteppedClock()
	s := startHarness(t, harnessOptions{face: emulator.GitHubApp, clock: clock, pipeline: pipelineYAML(nil, dev, manualQA)})
	end := func() {
		clock.Step(2 * time.Minute) // one that is hardly there isn't given up
		s.must("end the tokens", s.Forge.RevokeAppTokens("liftlock"))
	}
	s.awaitJudged()
	s.awaitIdle()
	end()
	s.commitRelease("web", "1.1.0")
	s.waitFor("the promotion is open and says so", func() (bool, string) {
		all, err := s.ownPulls()
		s.must("list the pull requests", err)
		return len(all) == 1 && liftlockStatus(all[0].Statuses).State == "success", ""
	})
	s.awaitIdle()
	end()
	_, err := s.Forge.MergePull(repoName, 1, "linus", "merge")
	s.must("merge it", err)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitIdle()
	if n := s.countLogged("a run failed"); n != 0 {
		t.Errorf("%d runs failed", n)
	}
	if n := s.countOpenings(); n > 2 { // one is made again that wasn't taken
		t.Errorf("%d calls opened it", n)
	}
}
