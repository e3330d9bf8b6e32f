package sim

import (
	"context"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// process is one server.
type process struct {
	sim        *Simulation
	name       string
	ctx        context.Context
	cancel     context.CancelFunc
	dead       bool
	started    time.Time
	frozen     time.Time // until when it is stopped
	tasks      []*task
	run        *task // the key that it runs, or its start
	view       *view
	controller *controller.Controller
	receiver   *webhooks.Receiver
	skew       time.Duration // of its own clock
	hasUpdate  bool          // of an Application, and it has not written that down yet
	store      *store.Store
	mirror     *git.Mirror
}

const (
	repositoryID  = "hub:acme/fleet"
	bot           = "liftlock-bot"
	botID         = 900
	sweepInterval = 10 * time.Minute
	webhookSecret = "a secret that only the forge knows"
)

// startProcess starts a server: its parts are the real ones, over the world's.
func (sim *Simulation) startProcess() {
	sim.processCount++
	p := &process{sim: sim, name: "server " + string(rune('A'+(sim.processCount-1)%26)), skew: sim.drawSkew(), started: sim.now}
	p.ctx, p.cancel = context.WithCancel(sim.ctx)
	p.view = &view{sim: sim, process: p, apps: map[string]verification.App{}}
	for _, x := range sim.argocd.apps {
		p.view.see(x.state)
	}
	sim.processes = append(sim.processes, p)
	sim.report("%s starts; its clock is %v off", p.name, p.skew)
	sim.spawnRun(p, func(ctx context.Context, _ *task) {
		if err := p.build(ctx); err != nil {
			sim.report("%s can't start: %v", p.name, err)
			sim.kill(p)
		}
		sim.mayBeDue = true
	})
}

func (p *process) build(ctx context.Context) error {
	sim := p.sim
	p.store = sim.store.ForProcess(p.now)
	clock := p.store.Clock(processClock{p})
	mirror := git.OpenMemory(sim.remote, git.MemoryOptions{Author: git.Ident{Name: "Liftlock", Email: "liftlock@example.org"}, Now: p.now,
		BeforeRemote: func(ctx context.Context, op string) error {
			t := taskOf(ctx)
			err := sim.reach(t, theGit, "git "+op, false)
			if t != nil && op != "push" { // which tells nothing of the branch that is promoted from
				t.lookedAt = sim.now
			}
			if t != nil && op == "fetch" {
				t.fetchedAt = sim.now
			}
			return err
		},
		AfterRemote: func(ctx context.Context, op string) error {
			if op == "push" {
				sim.judgeLease(taskOf(ctx), "pushes")
				if err := sim.forge.NoticePush(sim.repo, bot); err != nil {
					return err
				}
			}
			return sim.reach(taskOf(ctx), theGit, "git "+op, true)
		}})
	p.mirror = mirror
	if _, err := mirror.Fetch(ctx); err != nil {
		return err
	}
	marks, err := branch.NewMarkSigner([]byte(webhookSecret))
	if err != nil {
		return err
	}
	repo := &branch.Repository{Marks: marks, ID: repositoryID, Name: sim.repo, Forge: sim.reachForge(sim.forge.As(bot)), ForgeRef: "hub",
		Branch: trunk,
		Mirror: mirror, URLs: []string{cloneURL}, BotLogin: bot, BotID: botID}
	gatherer := facts.New(facts.Options{Store: p.store, Resolver: appset.New(appset.Options{Now: p.now}), MainArgoCD: "hub",
		Repos:   []*branch.Repository{repo},
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: p.view, Namespace: "argocd", NoRefresh: sim.scenario.noRefresh}}, Now: clock.Now,
		MaxAge: 2 * sweepInterval})
	actor := act.New(act.Options{Store: p.store, Gatherer: gatherer, ArgoCDs: map[string]act.ArgoCD{"hub": p.view}, Now: clock.Now,
		Log: sim.log.Named(p.name), Owner: p.name, Console: "https://liftlock.example"})
	p.controller = controller.New(controller.Options{Store: p.store, Gatherer: gatherer, Actor: actor, Clock: clock,
		Log: sim.log.Named(p.name), Owner: p.name, Metrics: runCounter{sim}, Versions: sim.versions(),
		Repos: []*controller.Repository{{Repository: repo, PollInterval: 5 * time.Minute, SweepInterval: sweepInterval,
			DiscoverInterval: discoverInterval}}})
	if p.receiver, err = webhooks.New(webhooks.GitHub, [][]byte{[]byte(webhookSecret)}, sim.budget); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.view.apps)) { // as a watch begins
		p.controller.AppChanged(p.view.apps[name], false)
	}
	return p.controller.Start(ctx)
}

// now is the time as the process's own clock has it.
func (p *process) now() time.Time { return p.sim.now.Add(p.skew) }

// step lets a process run one key, if one is due.
func (sim *Simulation) step(p *process) {
	p.hasUpdate = false
	if p.controller == nil {
		return
	}
	sim.spawnRun(p, func(ctx context.Context, t *task) {
		ran, err := p.controller.Step(ctx)
		p.hasUpdate = p.hasUpdate || p.controller.HasPendingWakes()
		if err != nil && !p.dead {
			sim.report("%s can't read the queue: %v", p.name, err)
			sim.sleep(t, time.Second)
			sim.mayBeDue = true // it tries again, whatever is due
			return
		}
		hasUpdate := slices.ContainsFunc(sim.processes, func(p *process) bool { return !p.dead && p.hasUpdate })
		sim.mayBeDue = hasUpdate || sim.mayBeDue && (ran || err != nil) // what was heard while none was idle, too
	})
}

// kill ends a process at once: nothing that it is at has an effect any more.
func (sim *Simulation) kill(p *process) {
	if p.dead {
		return
	}
	p.dead, sim.trouble = true, sim.now
	p.cancel()
	for _, t := range p.tasks {
		t.dead = true
	}
	sim.after(sim.between(time.Second, time.Minute), sim.startProcess)
	sim.after(time.Hour, func() {
		for i, other := range sim.processes {
			if other == p {
				sim.processes = append(sim.processes[:i:i], sim.processes[i+1:]...)
				return
			}
		}
	})
}

// accept takes a delivery as the server does; false when it wasn't acknowledged.
func (p *process) accept(ctx context.Context, id, name, body, signature string) bool {
	req := httptest.NewRequestWithContext(ctx, "POST", "/webhooks/hub", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", name)
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-Hub-Signature-256", "sha256="+signature)
	rec := httptest.NewRecorder()
	webhooks.Handler(p.receiver, func(ctx context.Context, ev *webhooks.Event) error {
		records, err := controller.RecordsOfEvent(repositoryID, bot, ev)
		if err != nil {
			return err
		}
		d := store.Delivery{Forge: "hub", ID: ev.Delivery, Event: ev.Name, Repo: ev.Repo, ReceivedAt: p.store.Clock(processClock{p}).Now(),
			Keys: wake.Strings(controller.KeysOfEvent(ctx, p.store, repositoryID, bot, ev)...), Urgency: controller.UrgencyOfEvent(ev),
			Records: records}
		at, err := controller.TimeOfEvent(ctx, p.store, repositoryID, ev, d.ReceivedAt)
		if err != nil {
			return err
		}
		d.DueAt = at
		_, err = p.store.Accept(ctx, d)
		return err
	}, nil).ServeHTTP(rec, req)
	return rec.Code < 300
}

// processClock is a process's own clock. To wait for it is to let the world go on.
type processClock struct{ p *process }

var _ clock.WithTicker = processClock{}

func (p processClock) Now() time.Time                  { return p.p.now() }
func (p processClock) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

func (p processClock) After(d time.Duration) <-chan time.Time {
	at := make(chan time.Time, 1)
	if t := p.p.sim.current; t != nil && !t.dead {
		p.p.sim.sleep(t, d)
		if !t.dead {
			at <- p.Now()
		}
	}
	return at
}

// The controller's step neither ticks nor sleeps otherwise.

func (p processClock) NewTimer(d time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(d) }
func (p processClock) NewTicker(d time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(d)
}
func (p processClock) Tick(d time.Duration) <-chan time.Time { return clock.RealClock{}.Tick(d) }
func (p processClock) Sleep(d time.Duration)                 { <-p.After(d) }

// runCounter counts the runs of keys.
type runCounter struct{ sim *Simulation }

func (r runCounter) Run(kind string, _ time.Duration, err error) {
	r.sim.runs[kind]++
	r.sim.noteRun(kind, err)
}

func (r runCounter) Check(time.Duration, bool)      {}
func (r runCounter) Skipped(string, string, string) {}

func (r runCounter) Discovered(string, string, time.Duration) {}
