package sim

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"time"
)

// errKilled is what everything answers to a process that is gone.
var errKilled = errors.New("the process was killed")

// event is something that happens at a time.
type event struct {
	at  time.Time
	seq int // of two at the same time the one that was planned first
	do  func()
}

// agenda is what is to happen, the earliest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push and Pop are container/heap's.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop takes the last.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// after plans something.
func (sim *Simulation) after(d time.Duration, do func()) {
	sim.planned++
	heap.Push(&sim.agenda, event{sim.now.Add(d), sim.planned, do})
}

// happen does everything that is due.
func (sim *Simulation) happen() {
	for len(sim.agenda) > 0 && !sim.agenda[0].at.After(sim.now) && sim.broken == nil {
		heap.Pop(&sim.agenda).(event).do()
	}
}

// task is something that a process is at: a run of a key, or a delivery that it takes. It
// runs on a goroutine of its own, but only while the world waits for it.
type task struct {
	process *process
	began   time.Time
	resume  chan struct{}
	until   time.Time // it sleeps
	dead    bool
	ended   bool

	lookedAt  time.Time // when it last asked the Git remote for something
	fetchedAt time.Time // when it last fetched from there

	key    string        // that it runs; empty: none, or nothing was stored yet
	leased time.Time     // when it had its key
	skew   time.Duration // of its process's clock then
}

type taskKey struct{}

func taskOf(ctx context.Context) *task {
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// spawn starts a task, up to the first point at which it lets others go on.
func (sim *Simulation) spawn(p *process, do func(ctx context.Context)) {
	sim.start(sim.newTask(p), do)
}

func (sim *Simulation) newTask(p *process) *task {
	return &task{process: p, began: sim.now, resume: make(chan struct{})}
}

// spawnRun starts what a process does one of at a time.
func (sim *Simulation) spawnRun(p *process, do func(ctx context.Context, t *task)) {
	t := sim.newTask(p)
	p.run = t
	sim.start(t, func(ctx context.Context) {
		defer func() { p.run = nil }()
		do(ctx, t)
	})
}

func (sim *Simulation) start(t *task, do func(ctx context.Context)) {
	p := t.process
	p.tasks = append(p.tasks, t)
	ctx := context.WithValue(p.ctx, taskKey{}, t)
	sim.onGoroutine(func() {
		<-t.resume
		do(ctx)
		t.ended = true
	})
	sim.switchTo(t)
}

// onGoroutine does something on a goroutine that has nothing else to do, whose stack has
// grown already, and then gives control back to the world.
func (sim *Simulation) onGoroutine(do func()) {
	if n := len(sim.idle); n > 0 {
		idle := sim.idle[n-1]
		sim.idle = sim.idle[:n-1]
		idle <- do
		return
	}
	jobs := make(chan func(), 1)
	jobs <- do
	go func() {
		for do := range jobs {
			do()
			sim.idle = append(sim.idle, jobs)
			sim.control <- struct{}{}
		}
	}()
}

// switchTo lets a task go on until it yields or ends.
func (sim *Simulation) switchTo(t *task) {
	sim.current = t
	t.resume <- struct{}{}
	<-sim.control
	sim.current = nil
}

// yield lets the others go on. Only a task's own goroutine calls it.
func (sim *Simulation) yield(t *task) {
	sim.control <- struct{}{}
	<-t.resume
	sim.current = t
}

// sleep lets time pass for a task.
func (sim *Simulation) sleep(t *task, d time.Duration) {
	t.until = sim.now.Add(d)
	sim.yield(t)
	t.until = time.Time{}
}

// advance lets the world go on until a time, or until a rule is broken.
func (sim *Simulation) advance(end time.Time) {
	for sim.broken == nil && sim.now.Before(end) {
		sim.happen()
		if sim.broken != nil {
			return
		}
		if t := sim.pickTask(); t != nil {
			sim.switchTo(t)
			continue
		}
		if p := sim.pickProcess(); p != nil {
			sim.step(p)
			continue
		}
		sim.passTime(end)
	}
}

// pickTask is a task that can go on.
func (sim *Simulation) pickTask() *task {
	var ready []*task
	for _, p := range sim.processes {
		p.tasks = deleteEnded(p.tasks)
		for _, t := range p.tasks {
			if t.dead || !t.until.After(sim.now) && !p.frozen.After(sim.now) {
				ready = append(ready, t)
			}
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[sim.chance.IntN(len(ready))]
}

func deleteEnded(tasks []*task) []*task {
	kept := tasks[:0]
	for _, t := range tasks {
		if !t.ended {
			kept = append(kept, t)
		}
	}
	clear(tasks[len(kept):])
	return kept
}

// pickProcess is a process that may take up a key, where one is due, or that has heard
// something to write down.
func (sim *Simulation) pickProcess() *process {
	if !sim.mayBeDue {
		return nil
	}
	at, ok := sim.nextDue()
	due := ok && !at.After(sim.now)
	var idle []*process
	for _, p := range sim.processes {
		isIdle := !p.dead && p.run == nil && !p.frozen.After(sim.now)
		if isIdle && (due || p.hasUpdate) {
			idle = append(idle, p)
		}
	}
	if len(idle) == 0 {
		sim.mayBeDue = false
		return nil
	}
	return idle[sim.chance.IntN(len(idle))]
}

// passTime moves time to when something may happen.
func (sim *Simulation) passTime(end time.Time) {
	next := end
	if len(sim.agenda) > 0 && sim.agenda[0].at.Before(next) {
		next = sim.agenda[0].at
	}
	for _, p := range sim.processes {
		if !p.dead && p.frozen.After(sim.now) && p.frozen.Before(next) {
			next = p.frozen
		}
		for _, t := range p.tasks {
			if t.until.After(sim.now) && t.until.Before(next) {
				next = t.until
			}
		}
	}
	if sim.hasIdle() {
		sim.notePutAside()
		sim.noteIdle()
		sim.judgeLateness()
		sim.judgeSeen()
		sim.judgeAnswers()
		sim.judgeTimely()
		if due, ok := sim.nextDue(); ok && due.Before(next) {
			next = due
		}
	}
	if !next.After(sim.now) {
		next = sim.now.Add(time.Millisecond)
	}
	sim.now = next
	sim.mayBeDue = sim.due.known && !sim.due.at.After(sim.now)
}

// hasIdle says that a process could take up a key.
func (sim *Simulation) hasIdle() bool {
	return slices.ContainsFunc(sim.processes, func(p *process) bool { return !p.dead && p.run == nil && !p.frozen.After(sim.now) })
}

// allIdle says that every process could.
func (sim *Simulation) allIdle() bool {
	return !slices.ContainsFunc(sim.processes, func(p *process) bool { return !p.dead && p.run != nil })
}

// hasRunSince says that a process has been there since then.
func (sim *Simulation) hasRunSince(at time.Time) bool {
	return slices.ContainsFunc(sim.processes, func(p *process) bool { return !p.dead && !p.started.After(at) })
}

// dueTime is when the next key is due, as long as that is known.
type dueTime struct {
	known, none bool
	at          time.Time
}

// nextDue is when the next key is due, by the world's clock.
func (sim *Simulation) nextDue() (time.Time, bool) {
	if !sim.due.known {
		at, ok, err := sim.store.NextDue(sim.ctx)
		if err != nil {
			sim.broke("harness", "the queue can't be read: %v", err)
		}
		sim.due = dueTime{known: true, none: err != nil || !ok, at: at}
		if sim.due.none {
			sim.due.at = sim.now.Add(time.Hour)
		}
	}
	return sim.due.at, !sim.due.none
}
