package story_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/emulator/story"
)

// telling is one world with a server that is started again whenever it dies.
type telling struct {
	t      *testing.T
	world  *story.World
	points string
	log    *os.File
	done   chan struct{}
	// forgetful: the store was lost, and with it what only it knew.
	forgetful bool

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	deaths  int
	died    chan struct{} // closed at the first death, after onDeath
	onDeath func()        // may change what the server finds when it comes back
}

// how says what is unusual about a telling.
type how struct {
	dieAt   string               // the point at which the server dies, once
	onDeath func(w *story.World) // after every death, before the server is started again
	hooks   emulator.Webhooks
	pace    story.Pace // Fast when zero
}

// notUnderRace skips what is told in the story's time.
func notUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector && !*long {
		t.Skip("the story's times are too short for the race detector; internal/server runs the same parts under it")
	}
}

// begin makes a world and starts its server.
func begin(t *testing.T, h how) *telling {
	t.Helper()
	notUnderRace(t)
	// t.TempDir keeps the # of a point's name, which no address of a store may have.
	dir, err := os.MkdirTemp("", "liftlock-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	if h.pace.Wait == 0 {
		h.pace = story.Fast()
	}
	w, err := story.Prepare(dir, h.pace, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w.Forge.SetWebhooks(h.hooks)
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	r := &telling{t: t, world: w, points: filepath.Join(dir, "points"), log: log, done: make(chan struct{}), died: make(chan struct{})}
	if h.onDeath != nil {
		r.onDeath = func() { h.onDeath(w) }
	}
	go r.keep(h.dieAt)
	t.Cleanup(func() {
		r.stop()
		if err := w.Close(); err != nil {
			t.Errorf("the world: %v", err)
		}
		r.wellBehaved()
		if t.Failed() {
			t.Logf("the server's log:\n%s", r.lastLines(60))
		}
		if err := errors.Join(log.Close(), os.RemoveAll(dir)); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return r
}

// wellBehaved holds that the server did nothing that it survived by luck.
func (r *telling) wellBehaved() {
	text, err := os.ReadFile(r.log.Name())
	if err != nil {
		r.t.Errorf("read the server's log: %v", err)
	}
	for _, bad := range []string{"DATA RACE", "panic while running"} {
		if i := bytes.Index(text, []byte(bad)); i >= 0 {
			r.t.Errorf("in the server's log: %s", text[i:min(len(text), i+4000)])
		}
	}
}

// lastLines are the last lines of the server's log.
func (r *telling) lastLines(n int) []byte {
	text, err := os.ReadFile(r.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

// keep runs the server, and runs it again when it died.
func (r *telling) keep(dieAt string) {
	defer close(r.done)
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childConfig+"="+r.world.Config, childPoints+"="+r.points, childDieAt+"="+dieAt)
		cmd.Stderr = r.log
		r.mu.Lock()
		if r.stopped {
			r.mu.Unlock()
			return
		}
		_, err := cmd.StdinPipe() // it ends with this process
		if err == nil {
			err = cmd.Start()
		}
		r.cmd = cmd
		r.mu.Unlock()
		if err != nil {
			r.t.Errorf("start the server: %v", err)
			return
		}
		err = cmd.Wait()
		r.mu.Lock()
		stopped := r.stopped
		r.mu.Unlock()
		if stopped {
			return
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			r.t.Errorf("the server ended by itself: %v", err)
			return
		}
		dieAt = "" // once
		if r.onDeath != nil {
			r.onDeath()
		}
		r.mu.Lock()
		if r.deaths++; r.deaths == 1 {
			close(r.died)
		}
		r.mu.Unlock()
	}
}

func (r *telling) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill() // it may have died meanwhile
	}
}

func (r *telling) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.kill()
	<-r.done
}

func (r *telling) howOftenDied() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deaths
}

// story tells the whole story and says how it ended.
func (r *telling) story() error { return r.tell(r.t.Context()) }

func (r *telling) tell(ctx context.Context) error {
	s := story.Story{World: r.world, Tell: func(who, what string) {}, State: story.StateOver(r.world.URL)}
	return s.Run(ctx)
}

// passed lists the points that the first server passed, in order.
func (r *telling) passed() []string {
	var out []string
	for _, p := range readPassages(r.t, r.points)[1:] {
		if p.name == started {
			break
		}
		out = append(out, p.name)
	}
	return out
}

// aRun is passed in every run of the component: the work that is in flight.
const aRun = "store judged#1 before"

// startToRun says, for every start of the server, how long it took until it
// worked on what was in flight; 0 when it died or was stopped before.
func (r *telling) startToRun() []time.Duration {
	var out []time.Duration
	var at time.Time
	for _, p := range readPassages(r.t, r.points) {
		switch {
		case p.name == started:
			at, out = p.at, append(out, 0)
		case p.name == aRun:
			out[len(out)-1] = p.at.Sub(at)
		}
	}
	return out
}

// surveyed are the points of the story, found once for all tests.
var surveyed struct {
	sync.Mutex
	points []string
}

// survey tells the story undisturbed a few times and lists the points that every
// telling passed, in order: what commits how often isn't the same twice.
func survey(t *testing.T) []string {
	t.Helper()
	surveyed.Lock()
	defer surveyed.Unlock()
	if surveyed.points != nil {
		return surveyed.points
	}
	n := 3
	if *long {
		n = 8
	}
	tellings := make([]*telling, n)
	errs := make([]error, len(tellings))
	var told sync.WaitGroup
	for i := range tellings { // at once: alone, a server commits more often than among others
		tellings[i] = begin(t, how{})
		told.Go(func() { errs[i] = tellings[i].story() })
	}
	told.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, r := range tellings {
		now := r.passed()
		r.check()
		r.stop()
		if i == 0 {
			all = now
			continue
		}
		all = slices.DeleteFunc(all, func(p string) bool { return !slices.Contains(now, p) })
	}
	surveyed.points = all
	return all
}

// tries bounds how often the story is told for one point.
const tries = 3

// at tells the story with a server that dies at a point, and again where the
// point was not passed: how often something is committed isn't the same twice. A
// time that most tellings don't reach gives way to the last that they do; the
// long run visits that anyway. Each place must be reached. tell ends the telling;
// it fails the test if it must.
func at(t *testing.T, point string, h how, tell func(t *testing.T, r *telling)) {
	notUnderRace(t)
	for {
		last := ""
		h.dieAt = point
		for i := range tries {
			hit := false
			ok := t.Run(fmt.Sprintf("telling %d", i+1), func(t *testing.T) {
				r := begin(t, h)
				tell(t, r)
				hit = r.howOftenDied() > 0
				last = lastOf(point, r.passed())
			})
			if !ok || hit {
				return
			}
		}
		t.Logf("the server did not pass %q in %d tellings, last %q", point, tries, last)
		if last == "" {
			t.Error("the server never was at this place")
		}
		if last == "" || *long {
			return
		}
		point = last
	}
}

// lastOf is the last time that a point's place was passed; empty for never.
func lastOf(point string, passed []string) string {
	place, when := point[:strings.LastIndexByte(point, '#')+1], point[strings.LastIndexByte(point, ' '):]
	for _, p := range slices.Backward(passed) {
		if strings.HasPrefix(p, place) && strings.HasSuffix(p, when) {
			return p
		}
	}
	return ""
}

// settled waits until a condition holds that the server is still working on.
func (r *telling) settled(what func() error) {
	r.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
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
			r.t.Error(err)
			return
		case <-tick.C:
		}
	}
}

func names(m map[string]bool) string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
