package story_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	runLong     = flag.Bool("long", false, "kill the server at every point instead of at a sample of them")
	seed        = flag.Uint64("seed", 1, "of the sample and of the random moments")
	pointFilter = flag.String("points", "", "kill the server at the points that match this expression and nowhere else")
)

// TestKilledAtEveryPoint kills the server before and after every forge write, every push and every
// commit of the story, one telling each. Work that was in flight is taken up again at once.
func TestKilledAtEveryPoint(t *testing.T) {
	all := surveyPoints(t)
	t.Logf("the story passes %d points:\n%s", len(all), strings.Join(all, "\n"))
	var first, again durations
	t.Cleanup(func() {
		t.Logf("from the start of the new process to the component's first run: %s", &again)
		// The middle, because one of many processes on a busy machine may have to
		// wait for it; there the bound grows with what a start takes anyway.
		if bound := max(resumeWithin, 3*first.median()); again.median() > bound {
			t.Errorf("what was in flight was taken up after %v in the middle, wanted within %v", again.median(), bound)
		}
	})
	for _, point := range choosePoints(all, 12) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			runWithCrash(t, point, runOptions{}, func(t *testing.T, r *storyRun) {
				if err := r.runStory(); err != nil {
					t.Fatal(err)
				}
				r.checkEnd()
				r.recordResumeTimes(&first, &again)
			})
		})
	}
}

// resumeWithin is how soon after its start a server works on what was in flight.
const resumeWithin = time.Second

// recordResumeTimes records how soon the server resumed the work that was in flight at its death.
// It also records how long the first start of the same run took, which had nothing in flight.
func (sr *storyRun) recordResumeTimes(first, again *durations) {
	sr.t.Helper()
	starts := sr.resumeTimes()
	if len(starts) < 2 || starts[1] == 0 {
		return // it did not die, or the story was told before it was back
	}
	first.record(starts[0])
	again.record(starts[1])
}

// durations collects how long something took.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) record(one time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
}

// median is 0 where there was nothing to collect.
func (d *durations) median() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0
	}
	slices.Sort(d.all)
	return d.all[len(d.all)/2]
}

// String tells the middle and the longest.
func (d *durations) String() string {
	if len(d.all) == 0 {
		return "nobody died"
	}
	return fmt.Sprintf("median %v, longest %v of %d", d.median(), slices.Max(d.all), len(d.all))
}

// choosePoints takes every point in the long run, and otherwise an even sample: half of
// it writes to the outside, of which there are few, and half commits.
func choosePoints(all []string, sample int) []string {
	if *pointFilter != "" {
		match := regexp.MustCompile(*pointFilter)
		return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !match.MatchString(p) })
	}
	if *runLong {
		return all
	}
	var outside, commits []string
	for _, p := range all {
		if strings.HasPrefix(p, "store ") {
			commits = append(commits, p)
		} else {
			outside = append(outside, p)
		}
	}
	return append(sampleEvenly(outside, sample/2), sampleEvenly(commits, sample/2)...)
}

// sampleEvenly takes n of all; which ones depends on the seed.
func sampleEvenly(all []string, n int) []string {
	if len(all) <= n {
		return all
	}
	var out []string
	first := int(*seed*7) % len(all)
	for i := range n {
		out = append(out, all[(first+i*len(all)/n)%len(all)])
	}
	return out
}

// maxKills lets the story come to its end on a machine that is so busy that a
// server hardly starts between two deaths.
const maxKills = 8

// TestKilledAtRandom kills the server at random moments of the story.
func TestKilledAtRandom(t *testing.T) {
	rounds := 3
	if *runLong {
		rounds = 50
	}
	for i := range rounds {
		seed := *seed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			runKilledAtRandom(t, seed, runOptions{})
		})
	}
}

// runKilledAtRandom tells the story while the server is killed at random moments.
func runKilledAtRandom(t *testing.T, seed uint64, h runOptions) {
	random := rand.New(rand.NewPCG(seed, 7))
	r := startRun(t, h)
	done := make(chan error, 1)
	go func() { done <- r.runStory() }()
	for kills := 0; ; {
		var moment <-chan time.Time
		if kills < maxKills {
			moment = time.After(time.Duration(100+random.IntN(1600)) * time.Millisecond)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if r.deathCount() == 0 {
				t.Error("the story was told before the server was killed")
			}
			r.checkEnd()
			return
		case <-moment:
			r.killServer()
			kills++
		}
	}
}
