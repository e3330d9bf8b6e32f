package server_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/server"
)

// TestJudgedAgainLater opens nothing while it can't be shown in time whom an edit
// touches, says so, and tries again later without any news.
func TestJudgedAgainLater(t *testing.T) {
	var tries atomic.Int32
	s := startHarness(t, harnessOptions{clock: newSteppedClock(), seams: server.Seams{JudgeTime: func() time.Duration {
		if tries.Add(1) <= 2 {
			return time.Nanosecond
		}
		return time.Minute
	}}})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitEnvironment("web", "qa", "says that it ran out of time", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "could not be shown within 30s; it is tried again")
	})
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 || tries.Load() != 1 {
		t.Fatalf("%d pull requests after %d tries", n, tries.Load())
	}
	for want := int32(2); want <= 3; want++ {
		s.opts.clock.Step(time.Duration(want-1)*time.Minute + time.Second)
		s.waitFor("it is tried again", func() (bool, string) { return tries.Load() >= want, "" })
	}
	s.awaitPromotion("web", "qa", "1.1.0")
}
