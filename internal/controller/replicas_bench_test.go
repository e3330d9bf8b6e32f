package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
	"github.com/liftlock/liftlock/internal/world/storetest"
	"github.com/liftlock/liftlock/policies"
	"github.com/liftlock/liftlock/webhooks"
)

// The benchmark's forge is far away, and takes none of the replicas' processors: it and its Git are
// in memory, and every call of them takes a while. A repository's merges come one after the other,
// from any replica, so there are many repositories.
const (
	benchRepositories = 25
	benchComponents   = 20 // of each
	benchLatency      = 50 * time.Millisecond
	benchComparison   = 2 * time.Second
	benchWorkers      = 4 // of each replica
	benchPatience     = 20 * time.Minute
)

// BenchmarkReplicas promotes 500 components by one replica and by three on one PostgreSQL,
// each with the same number of workers.
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				promoteWorlds(b, replicas)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N*benchRepositories*benchComponents)/b.Elapsed().Seconds(), "promotions/s")
		})
	}
}

// benchWorld is the forge, and the Argo CD that deploys its branches at once.
type benchWorld struct {
	b          *testing.B
	worlds     map[string]*memoryForge // by repository
	worldOf    map[string]*memoryForge // by component
	forge      *memoryforge.Forge
	slow       atomic.Bool
	store      *store.Store // that takes what the forge tells
	deliveries atomic.Int64
	merged     atomic.Int64
	compared   atomic.Int64 // when Argo CD did so last, in nanoseconds
	replicas   []*Controller
	delivering sync.WaitGroup
}

func (b *benchWorld) must(err error) {
	b.b.Helper()
	if err != nil {
		b.b.Fatal(err)
	}
}

// wait is the way to the forge and back.
func (b *benchWorld) wait() {
	if b.slow.Load() {
		time.Sleep(benchLatency)
	}
}

// deliver takes an event as the server takes the forge's delivery.
func (b *benchWorld) deliver(e memoryforge.Event) {
	if e.Kind == memoryforge.PullRequestEvent && e.Action == "closed" && strings.HasPrefix(e.Branch, "liftlock/") {
		b.merged.Add(1)
	}
	if b.store == nil {
		return
	}
	b.delivering.Go(func() {
		ctx, id := context.Background(), "hub:"+e.Repo.String()
		ev := &webhooks.Event{Kind: webhooks.Kind(e.Kind), Action: e.Action, Number: e.Number, Branch: e.Branch, HeadBranch: e.Branch, Fork: e.Fork, Before: e.Before, After: e.After, Commit: e.Commit, Sender: e.Actor}
		_, err := b.store.Accept(ctx, store.Delivery{Forge: "hub", ID: fmt.Sprint(b.deliveries.Add(1)), Event: string(e.Kind), Repo: e.Repo.String(), ReceivedAt: time.Now(),
			Keys: wake.Strings(KeysOfEvent(ctx, b.store, id, bot, ev)...), Urgency: UrgencyOfEvent(ev)})
		if err != nil {
			b.b.Error(err)
		}
	})
}

// compare has Argo CD compare every Application again and again, and tell the replicas.
func (b *benchWorld) compare(ctx context.Context) {
	tick := time.NewTicker(benchComparison)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b.compared.Store(now.UnixNano())
		}
		for component := range b.worldOf {
			for _, env := range []string{"dev", "qa"} {
				app, _ := b.Get("", component+"-"+env)
				for _, c := range b.replicas {
					c.AppChanged(*app, false)
				}
			}
		}
	}
}

// Get is an Application that has what its repository's branch has.
func (b *benchWorld) Get(_, name string) (*verification.App, bool) {
	i := strings.LastIndexByte(name, '-')
	world := b.worldOf[name[:i]]
	if world == nil {
		return nil, false
	}
	head, _ := world.remote.Head("main")
	return &verification.App{ArgoCD: "hub", Name: name, Namespace: "argocd", UID: name, SyncStatus: "Synced", ComparedToSpec: true, Health: "Healthy", Revisions: []string{head},
		ReconciledAt: time.Unix(0, b.compared.Load()), Sources: []verification.Source{{RepoURL: world.CloneURL(""), Path: "apps/" + name[:i] + "/" + name[i+1:], TargetRevision: "main"}},
		Destination: verification.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"}}, true
}

func (b *benchWorld) List() []verification.App { return nil }
func (b *benchWorld) Ready() error             { return nil }

// newReplica makes a server's controller with a store, mirrors and memory of its own.
func (b *benchWorld) newReplica(dsn, owner string) *Controller {
	b.b.Helper()
	st, err := store.Open(b.b.Context(), dsn, store.Options{})
	b.must(err)
	b.b.Cleanup(func() { _ = st.Close() })
	var repos []*Repository
	var known []*branch.Repository
	for name, world := range b.worlds {
		m := git.OpenMemory(world.remote, git.MemoryOptions{Author: liftlockIdent, BeforeRemote: func(context.Context, string) error {
			b.wait()
			return nil
		}})
		_, err := m.Fetch(b.b.Context())
		b.must(err)
		r := &Repository{PollInterval: time.Hour, SweepInterval: time.Hour, Repository: &branch.Repository{ID: "hub:" + name, Name: world.repo,
			Forge: b.forge.As(bot), ForgeRef: "hub", Branch: "main", Mirror: m, URLs: []string{world.CloneURL("")}, BotLogin: bot}}
		repos, known = append(repos, r), append(known, r.Repository)
	}
	gatherer := facts.New(facts.Options{Store: st, Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: known, Now: time.Now, MaxAge: time.Hour,
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: b, Namespace: "argocd", NoRefresh: true}}, Floor: func(_ string, gates []policies.Gate) []policies.Gate { return gates }})
	actor := act.New(act.Options{Store: st, Gatherer: gatherer, Now: time.Now, Log: zap.NewNop(), Owner: owner, Console: "https://liftlock.example"})
	c := New(Options{Store: st, Gatherer: gatherer, Actor: actor, Repos: repos, Clock: clock.RealClock{}, Log: zap.NewNop(), Owner: owner, Workers: benchWorkers, Retention: time.Hour})
	b.must(c.Start(b.b.Context()))
	return c
}

func promoteWorlds(b *testing.B, replicas int) {
	w := &benchWorld{b: b, worlds: map[string]*memoryForge{}, worldOf: map[string]*memoryForge{}}
	w.forge = memoryforge.New(memoryforge.Options{Now: time.Now, Bot: bot, SlowMergeable: true, OnEvent: w.deliver, BeforeCall: func(login, _ string) error {
		if login == bot {
			w.wait()
		}
		return nil
	}})
	w.forge.AddUser("linus", 2, false)
	components := map[string][]string{}
	for i := range benchRepositories {
		world := &memoryForge{t: b, forge: w.forge, remote: git.NewMemoryRemote(), repo: forge.Repo{Owner: "acme", Name: fmt.Sprint("world-", i)}, now: time.Now}
		name := world.repo.String()
		for k := range benchComponents {
			component := fmt.Sprintf("c%d-%d", i, k)
			components[name], w.worldOf[component] = append(components[name], component), world
		}
		w.worlds[name] = world
		w.must(world.addRepo(worldFiles(world.CloneURL(""), "  limits: {openPerEnvironment: 1000, mergesPerHour: 10000}\n", autoQA, components[name]), worldAccess))
	}
	dsn := storetest.PostgresSchema(b)
	for i := range replicas {
		w.replicas = append(w.replicas, w.newReplica(dsn, fmt.Sprint("replica-", i)))
	}
	w.store = w.replicas[0].opts.Store
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { w.compare(ctx) })
	for _, c := range w.replicas {
		running.Go(func() {
			if err := c.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
		})
	}
	deadline := time.Now().Add(benchPatience)
	await := func(what string, so func() bool) {
		b.Helper()
		for !so() {
			if time.Now().After(deadline) {
				b.Fatalf("it never came to that: %s", what)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	await("every component was looked at", func() bool {
		n := 0
		for name := range w.worlds {
			units, err := w.store.Units(ctx, store.UnitFilter{Repo: "hub:" + name})
			w.must(err)
			n += len(units)
		}
		return n == benchRepositories*benchComponents
	})
	w.slow.Store(true)
	b.StartTimer()
	for name, world := range w.worlds {
		files := map[string]string{}
		for _, c := range components[name] {
			files[kustomizationOf(c, "dev")] = kustomization(c, "2.0.0")
		}
		_, err := world.CommitAs("", "linus", "main", "Release", files)
		w.must(err)
	}
	await("all are merged", func() bool { return w.merged.Load() == benchRepositories*benchComponents })
	b.StopTimer()
	cancel()
	running.Wait()
	w.delivering.Wait()
}
