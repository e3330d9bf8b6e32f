package server_test

import (
	"net/http"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestFailingTextsStopNoMerge: neither a locked conversation nor a commit that GitHub takes no
// more statuses for keeps a release from its way.
func TestFailingTextsStopNoMerge(t *testing.T) {
	s := startHarness(t, harnessOptions{face: githubFace(), pipeline: pipelineYAML(nil, dev, qa)})
	s.awaitJudged()
	s.injectFault(emulator.Fault{Method: "POST", Path: "/issues/[0-9]+/comments$", Times: -1, Status: http.StatusForbidden,
		Body: `{"message":"Unable to create comment because issue is locked."}`})
	s.injectFault(emulator.Fault{Method: "POST", Path: "/statuses/", Times: -1, Status: http.StatusUnprocessableEntity,
		Body: `{"message":"Validation Failed","errors":[{"message":"This SHA and context has reached the maximum number of statuses."}]}`})
	s.commitRelease("web", "1.1.0")
	s.awaitVerified("web", "qa", "1.1.0")
	for _, words := range []string{"issue is locked", "maximum number of statuses"} {
		if s.countLogged(words) == 0 {
			t.Errorf("the log doesn't say %q", words)
		}
	}
}
