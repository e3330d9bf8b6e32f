package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
	"github.com/liftlock/liftlock/webhooks"
)

// Options say which world is run, and for how long.
type Options struct {
	Seed int64
	// Lasts is how long people act and faults happen, in virtual time; then the world
	// comes to rest. 0: three hours.
	Lasts time.Duration
	// Without leaves out what people do and what befalls the world, by its number in the
	// story: what a failing seed doesn't need to fail.
	Without map[int]bool
	// Tolerates says of a rule by its name that it isn't judged. nil: all are.
	Tolerates func(rule string) bool
	// Story is given the story, a line at a time. nil: nobody listens.
	Story func(line string)
	// Log is the service's own. nil: it says nothing.
	Log *zap.Logger
}

// Result is what became of a world.
type Result struct {
	Seed       int64
	Promotions int            // merged
	Reverts    int            // merged
	Runs       map[string]int // of keys, by their kind
	Steps      int            // points at which the world could interfere
	Acts       int            // what people did and what befell the world
	Broken     *Break         // the rule that was broken; nil: none
}

// Break is a rule that the service broke.
type Break struct {
	Rule string // its name
	How  string
	At   time.Duration // since the world began
}

// Error says which rule was broken, and how.
func (b *Break) Error() string { return fmt.Sprintf("%s: %s", b.Rule, b.How) }

// span is a stretch of time.
type span struct{ from, to time.Time }

// Simulation is one simulated world.
type Simulation struct {
	Options
	ctx    context.Context
	log    *zap.Logger
	chance *rand.Rand

	began, now   time.Time
	planned      int
	agenda       agenda
	control      chan struct{}
	idle         []chan func() // goroutines that wait for something to do
	current      *task
	processes    []*process
	processCount int
	mayBeDue     bool // a key may be due now
	due          dueTime

	faulty        bool
	faults        faults
	away          map[part]time.Time // until when
	left          map[part]time.Time // since when it is, or was the last time
	limits        time.Time          // until when the forge wants to be left alone
	storeFailures int                // calls of the database that have failed so far
	trouble       time.Time          // when something last went wrong that puts off what a process is at
	failed        time.Time          // when a run last failed
	slow          []span             // calls that took long, of late
	skews         []time.Duration

	scenario scenario
	repo     forge.Repo
	remote   *git.MemoryRemote
	forge    *memoryforge.Forge
	argocd   *argocd
	registry registry
	store    *store.Store
	stores   int

	storeOpened time.Time              // the newest
	said        *observer.ObservedLogs // by the store
	putAside    time.Time              // until when it leaves a key alone whose runs had no end
	budget      *webhooks.Budget

	deliveries int
	tags       map[string]string // by commit and file
	truth      truth
	incidents  []span
	merging    bool             // a merge is what moves the branch
	resetting  bool             // a reset is
	muted      time.Time        // when the forge last failed to report of something at once
	leased     map[string]int64 // the newest claim of each key that a run has acted on
	failing    map[string]bool  // the keys whose last run failed
	queueRuns  bool             // the merge queue's next run is planned
	whispers   map[int]func()   // what is said on a pull request as soon as its comments were read

	steps        int
	minute       time.Time // and how many runs it has had
	runsOfMinute int
	runs         map[string]int
	result       Result
	broken       *Break
}

// Run runs a world to its end, or until a rule is broken.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Lasts == 0 {
		o.Lasts = 3 * time.Hour
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sim := &Simulation{Options: o, ctx: ctx, log: o.Log, chance: rand.New(rand.NewPCG(uint64(o.Seed), 1)), control: make(chan struct{}),
		away: map[part]time.Time{}, left: map[part]time.Time{}, tags: map[string]string{}, leased: map[string]int64{},
		whispers: map[int]func(){}, failing: map[string]bool{}, runs: map[string]int{}, result: Result{Seed: o.Seed}}
	if err := sim.build(); err != nil {
		return sim.result, fmt.Errorf("build the world of seed %d: %w", o.Seed, err)
	}
	defer sim.close()
	sim.live()
	sim.result.Runs, sim.result.Steps, sim.result.Broken = sim.runs, sim.steps, sim.broken
	return sim.result, nil
}

func (sim *Simulation) build() error {
	shape := rand.New(rand.NewPCG(uint64(sim.Seed), 2))
	sim.scenario, sim.faults = drawScenario(shape), drawFaults(shape)
	sim.scenario.queues = rand.New(rand.NewPCG(uint64(sim.Seed), 5)).IntN(4) == 0
	sim.scenario.plain = rand.New(rand.NewPCG(uint64(sim.Seed), 7)).IntN(2) == 0
	sim.scenario.shared = rand.New(rand.NewPCG(uint64(sim.Seed), 11)).IntN(3) == 0
	sim.scenario.limited = rand.New(rand.NewPCG(uint64(sim.Seed), 12)).IntN(4) == 0
	sim.scenario.noRefresh = rand.New(rand.NewPCG(uint64(sim.Seed), 6)).IntN(6) == 0
	sim.scenario.soaks = rand.New(rand.NewPCG(uint64(sim.Seed), 10)).IntN(4) == 0
	sim.scenario.insiders = rand.New(rand.NewPCG(uint64(sim.Seed), 8)).IntN(2) == 0 && !sim.Without[WithoutInsiders]
	sim.scenario.discovers = !sim.scenario.plain && rand.New(rand.NewPCG(uint64(sim.Seed), 13)).IntN(3) == 0
	sim.scenario.signs = sim.scenario.discovers && rand.New(rand.NewPCG(uint64(sim.Seed), 16)).IntN(2) == 0
	sim.beginRegistry()
	sim.scenario.freezes = rand.New(rand.NewPCG(uint64(sim.Seed), 9)).IntN(3) == 0 && !sim.Without[WithoutFreezes]
	sim.faults.leaveOut(sim.Without)
	sim.skews = [][]time.Duration{{0}, {0}, {0, 2 * time.Second, -2 * time.Second}, {0, 30 * time.Second, -30 * time.Second}}[shape.IntN(4)]
	sim.began = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	sim.now = sim.began
	sim.truth = newTruth()
	sim.repo = forge.Repo{Owner: "acme", Name: "fleet"}
	sim.remote = git.NewMemoryRemote()
	first, err := sim.remote.Write(sim.ctx, git.CommitSpec{Files: fileWrites(sim.scenario.files()), Message: "Overlays",
		When: sim.now.Add(-24 * time.Hour)})
	if err != nil {
		return err
	}
	if err := sim.remote.Update(trunk, first, ""); err != nil {
		return err
	}
	sim.forge = memoryforge.New(memoryforge.Options{Bot: bot, Now: func() time.Time { return sim.now }, OnEvent: sim.onForgeEvent})
	sim.addUsers()
	if sim.budget, err = webhooks.NewBudget(webhooks.BudgetOptions{}); err != nil {
		return err
	}
	sim.openStore()
	sim.argocd = newArgoCD(sim)
	return nil
}

// fileWrites are files to write, in the order of their names.
func fileWrites(files map[string]string) []git.FileWrite {
	var out []git.FileWrite
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, git.FileWrite{Path: name, Content: []byte(files[name])})
	}
	return out
}

// openStore opens an empty database, in which the SQL runs that people run.
func (sim *Simulation) openStore() {
	sim.stores++
	sim.storeOpened = sim.now
	clear(sim.leased)
	clear(sim.failing)
	core, said := observer.New(zap.ErrorLevel)
	sim.said = said
	now := func() time.Time { return sim.now }
	sim.store = store.OpenMemory(store.Options{Log: zap.New(core), Now: now, DatabaseNow: now,
		Intercept: func(ctx context.Context, name string, answered bool) error {
			if answered {
				sim.due.known, sim.mayBeDue = false, sim.mayBeDue || name != "claim"
			}
			switch {
			case name == "":
				return sim.reachRead(taskOf(ctx))
			case name == "claim":
				sim.noteClaim(taskOf(ctx))
			case answered:
				sim.judgeClaim(ctx, name)
			}
			sim.noteRunning(ctx)
			switch {
			case name == "fetched" && answered:
				sim.noteSeen(taskOf(ctx))
			case name == "judged" && !answered:
				sim.judgeFreshness(taskOf(ctx))
			}
			return sim.reach(taskOf(ctx), theStore, "store "+name, answered)
		}})
}

// reachRead is reach for a read of the store, which has no effect that could be lost.
func (sim *Simulation) reachRead(t *task) error {
	switch {
	case t == nil:
		return nil
	case t.dead:
		return errKilled
	case sim.now.Before(sim.away[theStore]):
		return sim.failure(theStore, "read the store", false)
	}
	return nil
}

func (sim *Simulation) close() {
	for _, p := range sim.processes {
		p.dead = true
		p.cancel()
		for _, t := range p.tasks {
			t.dead = true
		}
	}
	for t := sim.pickTask(); t != nil; t = sim.pickTask() {
		sim.switchTo(t)
	}
	for _, jobs := range sim.idle {
		close(jobs)
	}
	sim.closeStore()
}

func (sim *Simulation) closeStore() {
	if err := sim.store.Close(); err != nil {
		sim.report("the store doesn't close: %v", err)
	}
}

// report adds a line to the story.
func (sim *Simulation) report(format string, args ...any) {
	if sim.Story != nil {
		sim.Story(fmt.Sprintf("%s  %s", sim.now.Sub(sim.began).Truncate(time.Millisecond), fmt.Sprintf(format, args...)))
	}
}

// broke notes that a rule was broken: the first counts.
func (sim *Simulation) broke(rule, how string, args ...any) {
	if sim.broken == nil && (sim.Tolerates == nil || !sim.Tolerates(rule)) {
		sim.broken = &Break{Rule: rule, How: fmt.Sprintf(how, args...), At: sim.now.Sub(sim.began)}
		sim.report("BROKEN: %v", sim.broken)
	}
}

// between draws a time between two.
func (sim *Simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(sim.chance.Int64N(int64(most-least)+1))
}

func (sim *Simulation) drawSkew() time.Duration { return sim.skews[sim.chance.IntN(len(sim.skews))] }

// tagAt is the tag that a commit has in a target.
func (sim *Simulation) tagAt(commit string, p target) string {
	file := sim.scenario.file(p)
	key := commit + file
	tag, ok := sim.tags[key]
	if !ok {
		data, err := sim.remote.Tree(commit).ReadFile(file)
		if err == nil {
			tag = tagOf(string(data))
		}
		sim.tags[key] = tag
	}
	return tag
}

func (sim *Simulation) head() string {
	head, _ := sim.remote.Head(trunk)
	return head
}

// describePull names a pull request in the story.
func describePull(n int, branch string) string {
	return fmt.Sprintf("#%d (%s)", n, strings.TrimPrefix(branch, "liftlock"))
}
