package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// facesWithLists are those of the forges that list what they couldn't deliver, and the word in the
// address of the list.
var facesWithLists = map[emulator.Face]string{emulator.GitHub: "deliveries", emulator.GitHubApp: "deliveries", emulator.GitLab: "events"}

const missedText = "deliveries of the webhook were missed"

// refusingStore takes no deliveries while it is refusing.
type refusingStore struct{ refusing atomic.Bool }

func (r *refusingStore) seams() server.Seams {
	return server.Seams{StoreIntercept: func(_ context.Context, name string, _ bool) error {
		if name == "accept" && r.refusing.Load() {
			return errors.New("the disk is gone")
		}
		return nil
	}}
}

// openManually opens a promotion that waits for a person, and comes to rest.
func (ha *harness) openManually() emulator.PullRequest {
	ha.t.Helper()
	ha.awaitJudged()
	ha.commitRelease("web", "1.1.0")
	p := ha.awaitPromotion("web", "qa", "1.1.0")
	ha.awaitIdle()
	return p
}

func (ha *harness) awaitLogged(text string) {
	ha.t.Helper()
	ha.waitFor("the log says "+text, func() (bool, string) { return ha.countLogged(text) > 0, "it doesn't" })
}

// TestMissedDeliveries holds that events from a time when deliveries were refused, or no server
// ran, are taken up right after, although polls and sweeps are an hour apart.
func TestMissedDeliveries(t *testing.T) {
	t.Parallel()
	for face := range facesWithLists {
		t.Run(string(face), func(t *testing.T) {
			r := &refusingStore{}
			s := startHarness(t, harnessOptions{face: face, manageHook: true, pipeline: pipelineYAML(nil, dev, manualQA), seams: r.seams()})
			p := s.openManually()
			r.refusing.Store(true)
			id := s.addComment(p.Number, "ada", "/liftlock status")
			s.waitFor("its delivery is refused", func() (bool, string) {
				all := s.Forge.Deliveries()
				return all[len(all)-1].Status == 503, all[len(all)-1].Event
			})
			r.refusing.Store(false)
			s.awaitReaction(p.Number, id, "+1")
			s.awaitLogged(missedText)
			s.awaitIdle()
			s.stop()
			id = s.addComment(p.Number, "ada", "/liftlock status")
			s.must("let the delivery fail", s.Forge.WaitIdle(t.Context()))
			s.start()
			s.awaitReaction(p.Number, id, "+1")
			s.awaitLogged(missedText)
			s.awaitIdle()
			s.stop()
			s.start() // with its store it knows how far it read
			s.awaitJudged()
			s.awaitIdle()
			if n := s.countLogged(missedText); n != 0 {
				t.Errorf("started again it found something missed %d times", n)
			}
			s.deleteDatabase()
			s.start()
			s.awaitLogged(missedText) // with an empty store all is found again
			s.awaitPromotion("web", "qa", "1.1.0")
		})
	}
}

// TestDroppedDeliveries has every delivery dropped, which the forge reports to nobody. The missed
// events are taken up within ten minutes, at the cost of a few calls.
func TestDroppedDeliveries(t *testing.T) {
	t.Parallel()
	for face, list := range facesWithLists {
		t.Run(string(face), func(t *testing.T) {
			clock := newSteppedClock()
			s := startHarness(t, harnessOptions{face: face, manageHook: true, pipeline: pipelineYAML(nil, dev, manualQA), clock: clock})
			p := s.openManually()
			s.Forge.SetDeliveryOptions(emulator.DeliveryOptions{Drop: true})
			id := s.addComment(p.Number, "ada", "/liftlock status")
			s.awaitIdle()
			was := s.readPull(p.Number)
			if answered := s.findReply(&was, id); answered != "" {
				t.Fatalf("it was found without a delivery: %s", answered)
			}
			s.Forge.ResetCalls()
			clock.Step(10 * time.Minute)
			s.awaitReaction(p.Number, id, "+1")
			if n := s.countCalls("GET", list); n == 0 || n > 3 {
				t.Errorf("it took %d calls to know", n)
			}

			// For the rest of the hour, too: a release whose push nobody told of is promoted.
			s.commitRelease("web", "1.2.0")
			s.awaitIdle()
			clock.Step(10 * time.Minute)
			s.awaitPromotion("web", "qa", "1.2.0")
		})
	}
}

// TestEventsMissedByADisabledHook has so many deliveries refused that GitLab sends nothing for a while.
// Events of that time are in no list, and are taken up all the same.
func TestEventsMissedByADisabledHook(t *testing.T) {
	r := &refusingStore{}
	s := startHarness(t, harnessOptions{face: emulator.GitLab, manageHook: true, pipeline: pipelineYAML(nil, dev, manualQA), seams: r.seams()})
	p := s.openManually()
	r.refusing.Store(true)
	for range 4 {
		before := len(s.Forge.Deliveries())
		s.addComment(p.Number, "ada", "a word")
		s.waitFor("its delivery is refused", func() (bool, string) {
			all := s.Forge.Deliveries()
			return len(all) > before && all[len(all)-1].Status == 503, all[len(all)-1].Event
		})
	}
	before := len(s.Forge.Deliveries())
	id := s.addComment(p.Number, "ada", "/liftlock status")
	s.must("let nothing be delivered", s.Forge.WaitIdle(t.Context()))
	for _, d := range s.Forge.Deliveries()[before:] {
		if d.Event == "Note Hook" {
			t.Fatal("the hook isn't disabled")
		}
	}
	r.refusing.Store(false)
	s.awaitReaction(p.Number, id, "+1")
	s.awaitLogged("maybe more:true")
}
