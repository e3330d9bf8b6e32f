package sim

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

var (
	seedFlag   = flag.Int64("sim.seed", 0, "the first world's seed; 0: a new one where -sim.for is given, else 1")
	forFlag    = flag.Duration("sim.for", 0, "how long worlds are run, one after the other; 0 with a seed: only its world, with its story")
	worldsFlag = flag.Int("sim.worlds", 0, "how many worlds are run at most; 0: as many as fit in -sim.for, or a few without it")
	honestFlag = flag.Bool("sim.honest", false, "nobody who may write goes past the service")
	allFlag    = flag.Bool("sim.all", false, "go on after a world that breaks a rule, and list them all")
	butFlag    = flag.String("sim.but", "", "which rules aren't judged, by a regular expression of their names")
	logFlag    = flag.Bool("sim.log", false, "with a story, what the service logs besides")
)

// fewWorlds are run where nothing else is said: with the other tests.
const (
	fewWorlds = 3
	fewLast   = 20 * time.Minute
)

// garbageLimit is how much memory worlds may take, in bytes, before it is collected.
const garbageLimit = 2 << 30

// shrinkTries bounds how often a world that breaks a rule is run again.
const shrinkTries = 150

// tolerates is Options.Tolerates of -sim.but.
func tolerates() func(rule string) bool {
	if *butFlag == "" {
		return nil
	}
	return regexp.MustCompile(*butFlag).MatchString
}

// tally adds up what many worlds came to.
type tally struct {
	mu                          sync.Mutex
	next                        int64 // seed
	worlds, promotions, reverts int
	broken                      *Result
}

func (t *tally) take(limit int, until time.Time) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil && !*allFlag || limit > 0 && t.worlds >= limit || limit == 0 && time.Now().After(until) {
		return 0, false
	}
	t.worlds++
	t.next++
	return t.next - 1, true
}

func (t *tally) add(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *allFlag {
		fmt.Printf("seed %d: %d promotions, %d reverts, runs %v, %d steps\n", r.Seed, r.Promotions, r.Reverts, r.Runs, r.Steps)
	}
	t.promotions += r.Promotions
	t.reverts += r.Reverts
	if r.Broken != nil && *allFlag {
		fmt.Printf("seed %d after %v: %v\n", r.Seed, r.Broken.At, r.Broken)
	}
	if r.Broken != nil && (t.broken == nil || r.Seed < t.broken.Seed) {
		t.broken = &r
	}
}

// leftOut is what every world goes without.
func leftOut() map[int]bool { return map[int]bool{WithoutInsiders: *honestFlag} }

// TestSimulation runs worlds, a seed each. make sim runs many.
func TestSimulation(t *testing.T) {
	first, limit := *seedFlag, *worldsFlag
	switch {
	case first != 0 && *forFlag == 0 && limit == 0:
		o := Options{Seed: first, Without: leftOut(), Tolerates: tolerates(), Story: func(line string) { fmt.Println(line) }}
		if *logFlag {
			o.Log = zaptest.NewLogger(t, zaptest.WrapOptions(zap.AddStacktrace(zap.FatalLevel)))
		}
		res, err := Run(t.Context(), o)
		if err != nil || res.Broken != nil {
			t.Fatal(err, res.Broken)
		}
		return
	case first == 0 && *forFlag > 0:
		first = time.Now().UnixNano() / 1e6 % 1e9
	case first == 0:
		first = 1
	}
	lasts := time.Duration(0)
	if *forFlag == 0 && limit == 0 {
		limit, lasts = fewWorlds, fewLast
	}
	// Worlds are small and short-lived: what they leave is collected when there is much of it.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(garbageLimit))
	began := time.Now()
	all := tally{next: first}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed, ok := all.take(limit, began.Add(*forFlag)); ok; seed, ok = all.take(limit, began.Add(*forFlag)) {
				res, err := Run(t.Context(), Options{Seed: seed, Lasts: lasts, Without: leftOut(), Tolerates: tolerates()})
				if err != nil {
					t.Error(err)
					return
				}
				all.add(res)
			}
		})
	}
	workers.Wait()
	if all.broken != nil && *allFlag {
		t.Errorf("rules were broken, first in the world of seed %d", all.broken.Seed)
	} else if all.broken != nil && *briefFlag {
		t.Fail()
		fmt.Printf("sim: world %d broke %s\n", all.broken.Seed, all.broken.Broken.Rule)
	} else if all.broken != nil {
		reportBreak(t, lasts, *all.broken)
	}
	fmt.Printf("sim: %d promotions and %d reverts in %d worlds, seeds %d to %d, in %v\n", all.promotions, all.reverts, all.worlds, first, all.next-1, time.Since(began).Round(time.Second))
}

// reportBreak tells the shortest story that still breaks the rule.
func reportBreak(t *testing.T, lasts time.Duration, res Result) {
	t.Helper()
	honest := ""
	if *honestFlag {
		honest = " SIM_HONEST=1"
	}
	t.Errorf("the world of seed %d broke a rule after %v; make sim SIM_SEED=%d SIM_FOR=0%s tells its whole story\n%v", res.Seed, res.Broken.At, res.Seed, honest, res.Broken)
	o := Options{Seed: res.Seed, Lasts: lasts, Without: leftOut(), Tolerates: tolerates()}
	without, err := Shrink(t.Context(), o, res.Broken.Rule, res.Acts, shrinkTries)
	if err != nil {
		t.Error(err)
		return
	}
	o.Without = without
	t.Logf("the same, with %d of its %d acts left out:", len(without), res.Acts)
	o.Story = func(line string) { t.Log(line) }
	if _, err := Run(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// TestASeedIsAWorld runs a world twice: the same happens.
func TestASeedIsAWorld(t *testing.T) {
	report := func(seed int64) (story []string) {
		if _, err := Run(context.Background(), Options{Seed: seed, Lasts: fewLast, Story: func(line string) { story = append(story, line) }}); err != nil {
			t.Fatal(err)
		}
		return story
	}
	for seed := range int64(2) {
		one, two := report(seed+1), report(seed+1)
		for i := range min(len(one), len(two)) {
			if one[i] != two[i] {
				t.Fatalf("seed %d, line %d: %q, and then %q", seed+1, i+1, one[i], two[i])
			}
		}
		if len(one) != len(two) || len(one) < 20 {
			t.Fatalf("seed %d: %d lines, and then %d", seed+1, len(one), len(two))
		}
	}
}
