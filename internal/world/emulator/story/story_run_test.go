package story_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// storyRun is one world with a server that is started again whenever it dies.
type storyRun struct {
	*serverProcess
	fixture    *story.Fixture
	pointsFile string
	// storeLost: the store was lost, and with it what only it knew.
	storeLost bool
}

// runOptions says what is unusual about a telling.
type runOptions struct {
	dieAt      string                 // the point at which the server dies, once
	onDeath    func(w *story.Fixture) // after every death, before the server is started again
	deliveries emulator.DeliveryOptions
	timings    story.Timings // Fast when zero
	apiAlone   bool          // the server has no access to Kubernetes
	face       emulator.Face // of the forge; empty: FORGE's
}

// skipUnderRace skips what is told in the story's time.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector && !*runLong {
		t.Skip("the story's times are too short for the race detector; internal/server runs the same parts under it")
	}
}

// forgeFace is the face of the forge that the stories are told on: GitHub's, unless the
// environment has another FORGE.
func forgeFace() emulator.Face { return cmp.Or(emulator.Face(os.Getenv("FORGE")), emulator.GitHub) }

// startRun makes a world and starts its server.
func startRun(t *testing.T, h runOptions) *storyRun {
	t.Helper()
	skipUnderRace(t)
	// t.TempDir keeps the # of a point's name, which no address of a store may have.
	dir, err := os.MkdirTemp("", "liftlock-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	if h.timings.Wait == 0 {
		h.timings = story.FastTimings()
	}
	w, err := story.NewFixture(dir, cmp.Or(h.face, forgeFace()), h.timings, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if h.apiAlone {
		dropKubernetes(t, w)
	}
	w.Forge.SetDeliveryOptions(h.deliveries)
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	r := &storyRun{fixture: w, pointsFile: filepath.Join(dir, "points")}
	r.serverProcess = &serverProcess{t: t, config: w.Config, log: log, done: make(chan struct{}), died: make(chan struct{})}
	dieAt := h.dieAt
	r.environ = func() []string {
		at := dieAt
		dieAt = "" // once
		return []string{pointsVariable + "=" + r.pointsFile, dieAtVariable + "=" + at}
	}
	if h.onDeath != nil {
		r.onDeath = func() { h.onDeath(w) }
	}
	go r.keepRunning()
	t.Cleanup(func() {
		r.stopServer()
		if err := w.Close(); err != nil {
			t.Errorf("the world: %v", err)
		}
		r.checkServerLog()
		if t.Failed() {
			t.Logf("the server's log:\n%s", r.lastLines(60))
		}
		if err := errors.Join(log.Close(), os.RemoveAll(dir)); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return r
}

// runStory tells the whole story and says how it ended.
func (sr *storyRun) runStory() error { return sr.runStoryWith(sr.t.Context()) }

func (sr *storyRun) runStoryWith(ctx context.Context) error {
	s := story.Story{Fixture: sr.fixture, Narrate: func(who, what string) {}, State: story.StateReader(sr.fixture.URL)}
	return s.Run(ctx)
}

// pointsReached lists the points that the first server passed, in order.
func (sr *storyRun) pointsReached() []string {
	var out []string
	for _, p := range readReachedPoints(sr.t, sr.pointsFile)[1:] {
		if p.name == startedLine {
			break
		}
		out = append(out, p.name)
	}
	return out
}

// runPoint is passed in every run of the component: the work that is in flight.
const runPoint = "store judged#1 before"

// resumeTimes says, for every start of the server, how long it took until it
// worked on what was in flight; 0 when it died or was stopped before.
func (sr *storyRun) resumeTimes() []time.Duration {
	var out []time.Duration
	var at time.Time
	for _, p := range readReachedPoints(sr.t, sr.pointsFile) {
		switch {
		case p.name == startedLine:
			at, out = p.at, append(out, 0)
		case p.name == runPoint:
			out[len(out)-1] = p.at.Sub(at)
		}
	}
	return out
}

// knownPoints are the points of the story, found once for all tests.
var knownPoints struct {
	sync.Mutex
	points []string
}

// surveyPoints tells the story undisturbed a few times and lists the points that every
// telling passed, in order: what commits how often isn't the same twice.
func surveyPoints(t *testing.T) []string {
	t.Helper()
	knownPoints.Lock()
	defer knownPoints.Unlock()
	if knownPoints.points != nil {
		return knownPoints.points
	}
	n := 3
	if *runLong {
		n = 8
	}
	runs := make([]*storyRun, n)
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	for i := range runs { // at once: alone, a server commits more often than among others
		runs[i] = startRun(t, runOptions{})
		wg.Go(func() { errs[i] = runs[i].runStory() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, r := range runs {
		now := r.pointsReached()
		r.checkEnd()
		r.stopServer()
		if i == 0 {
			all = now
			continue
		}
		all = slices.DeleteFunc(all, func(p string) bool { return !slices.Contains(now, p) })
	}
	knownPoints.points = all
	return all
}

// maxRuns bounds how often the story is told for one point.
const maxRuns = 3

// runWithCrash tells the story with a server that dies at a point, and again where the point was
// not passed. The number of commits isn't the same twice. A time that most tellings don't reach
// gives way to the last that they do; the long run visits that anyway. Each place must be reached.
// tell ends the telling; it fails the test if it must.
func runWithCrash(t *testing.T, point string, h runOptions, run func(t *testing.T, r *storyRun)) {
	skipUnderRace(t)
	for {
		last := ""
		h.dieAt = point
		for i := range maxRuns {
			hit := false
			ok := t.Run(fmt.Sprintf("telling %d", i+1), func(t *testing.T) {
				r := startRun(t, h)
				run(t, r)
				hit = r.deathCount() > 0
				last = lastOccurrence(point, r.pointsReached())
			})
			if !ok || hit {
				return
			}
		}
		t.Logf("the server did not pass %q in %d tellings, last %q", point, maxRuns, last)
		if last == "" {
			t.Error("the server never was at this place")
		}
		if last == "" || *runLong {
			return
		}
		point = last
	}
}

// lastOccurrence is the last time that a point's place was passed; empty for never.
func lastOccurrence(point string, passed []string) string {
	place, when := point[:strings.LastIndexByte(point, '#')+1], point[strings.LastIndexByte(point, ' '):]
	for _, p := range slices.Backward(passed) {
		if strings.HasPrefix(p, place) && strings.HasSuffix(p, when) {
			return p
		}
	}
	return ""
}

// patience is how long a condition may take that the server is still working on. It takes seconds
// on an idle machine, and a multiple of that where several servers and other packages' tests share
// two processors.
const patience = 90 * time.Second

// eventually waits until a condition holds that the server is still working on.
func (sr *storyRun) eventually(what func() error) {
	sr.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := what()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			sr.t.Error(err)
			return
		case <-tick.C:
		}
	}
}

func joinNames(m map[string]bool) string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
