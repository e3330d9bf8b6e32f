package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/emulator"
)

// TestAppInSeveralOrganisations: as an App, one organisation's suspended installation keeps
// nobody else from anything, also over a restart; it comes back when the suspension ends.
func TestAppInSeveralOrganisations(t *testing.T) {
	const other = "globex/fleet"
	s := newHarness(t, harnessOptions{app: true, face: emulator.GitHub, pipeline: pipelineYAML(nil, dev, qa), repositoryLines: "  - {forge: hub, name: " + other + "}\n"})
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
