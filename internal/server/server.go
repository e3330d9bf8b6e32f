package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/registry"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/git/sshsig"
	"github.com/liftlock/liftlock/internal/notify"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
	"github.com/liftlock/liftlock/webhooks"
)

// Options say what to build. Config is required; the rest has defaults.
type Options struct {
	Config  *config.Config
	Log     *zap.Logger
	Version string
	Clock   clock.WithTicker
	// Announce tells people, once, the password that is generated where neither tokens nor a login are configured. Nil:
	// none is generated.
	Announce   func(text string)
	ResetAdmin bool // generate another password in place of the one that was lost

	// Seams lets a test stand between the parts. The zero value is production's.
	Seams Seams
}

// Seams are the places where a test may watch, count, or die.
type Seams struct {
	Forge         func(forge.Forge) forge.Forge
	OnCommit      func(name string, before bool)
	BeforePush    func(ref string)
	AfterPush     func(ref string)
	StoreMaxPages int
	// StoreIntercept is asked before the store is: store.Options.
	StoreIntercept func(ctx context.Context, name string, answered bool) error
	JudgeTime      func() time.Duration // how long an edit may be judged; nil: as long as a server gives it
	Sandbox        sandbox.Limits       // the zero value: those that a server has
	Workers        int                  // how many keys run at once; 0: as many as a server runs
	Lease          time.Duration        // how long what a dead process was at is kept from others; 0: as long as a server keeps it
}

// Server is a built server. Run runs it once.
type Server struct {
	o                    Options
	log                  *zap.Logger
	store                *store.Store
	metrics              *metrics
	caches               cache.Group
	argocds              map[string]*argocdConnection
	repos                []*controller.Repository
	sources              []*git.Mirror // that renderings read besides
	forges               map[string]forge.Forge
	apps                 map[string]*github.App // the forges where we work as an App, by name
	signingKey           *sshsig.Key            // nil: commits aren't signed
	tokens, argocdTokens *tokenWatch
	health               *health

	owner         string // names this process to the others
	clients       clientResolver
	certificate   *certificateFiles // nil: plain HTTP
	login         *console.Login    // nil: nobody logs in to the console
	console       *console.Console
	notifier      *notify.Notifier
	gateMetrics   *gateclient.Metrics
	gateEndpoints *gateclient.Endpoints
	images        *registry.Images // of the registries that may be read
	renderers     *sandbox.Pool    // nil until the repositories are reached
	callbacks     *webhooks.Budget // of callbacks' bodies
	main          *listener        // the console, the API and, where they have no other, webhooks
	hooks         *listener        // webhooks; nil: they come in at main

	mu         sync.Mutex
	controller *controller.Controller // nil until the repositories are reached
	connecting map[*retryTimer]bool   // of repositories that aren't
	numbers    map[string]int64       // the forges' of those that were reached, by our id of the repository
}

// commitAuthorOf is who our commits are by: the account, where its forge connects them with it
// by an address of its own making.
func commitAuthorOf(me forge.User) git.Ident {
	if me.Email != "" {
		return git.Ident{Name: me.Login, Email: me.Email}
	}
	return git.Ident{Name: "Liftlock", Email: "liftlock@users.noreply.liftlock.dev"}
}

// New opens the store and the ports, and builds the rest. Forges and Argo CDs aren't spoken
// to yet; a PostgreSQL that can't be reached is waited for until the context ends, which is
// an error then. The caller runs or closes the server.
func New(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := makeDataDir(o.Config.DataDir, o.Log); err != nil {
		return nil, err
	}
	s := &Server{o: o, log: o.Log, argocds: map[string]*argocdConnection{}, forges: map[string]forge.Forge{},
		apps: map[string]*github.App{}, connecting: map[*retryTimer]bool{}, numbers: map[string]int64{}, health: newHealth(o.Clock.Now),
		clients: clientResolver{o.Config.ProxyRanges()}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.owner, err = ownerName(); err != nil {
		return nil, err
	}
	if c := o.Config.TLS; c.CertFile != "" {
		if s.certificate, err = loadCertificate(c, o.Clock.Now, o.Log.Named("http")); err != nil {
			return nil, err
		}
	}
	if s.signingKey, err = o.Config.SigningKey(); err != nil {
		return nil, fmt.Errorf("signing.sshKeyFile: %w", err)
	}
	if s.signingKey != nil {
		s.log.Info("commits are signed; Liftlock's account on each forge needs this public key as a signing key",
			zap.String("key", s.signingKey.PublicKey()), zap.String("fingerprint", s.signingKey.Fingerprint()))
	}
	s.store, err = s.awaitStore(ctx)
	if err != nil {
		return nil, err
	}
	s.o.Clock = s.store.Clock(o.Clock)
	s.metrics = newMetrics(s.store, &s.caches, s.o.Clock.Now)
	watchTokens := func(what, key string, shown *prometheus.GaugeVec, log *zap.Logger) *tokenWatch {
		return &tokenWatch{what: what, key: key, tokens: map[string]tokenExpirer{}, clock: s.o.Clock, shown: shown, log: log,
			ends: map[string]time.Time{}}
	}
	s.tokens = watchTokens("forge", "forges[].auth", s.metrics.tokenEnds, s.log.Named("forge"))
	s.argocdTokens = watchTokens("Argo CD", "argocd[].api", s.metrics.argocdTokenEnds, s.log.Named("argocd"))
	for _, f := range o.Config.Forges {
		if s.forges[f.Name], err = s.newForge(f); err != nil {
			return nil, fmt.Errorf("forge %s: %w", f.Name, err)
		}
	}
	reachable := argocdCollector{}
	for _, a := range o.Config.ArgoCD {
		if s.argocds[a.Name], err = s.newArgoCD(a); err != nil {
			return nil, fmt.Errorf("argocd %s: %w", a.Name, err)
		}
		reachable[a.Name] = s.argocds[a.Name].watcher.Ready
	}
	s.metrics.registry.MustRegister(reachable)
	if s.console, err = s.newConsole(ctx); err != nil {
		return nil, err
	}
	if s.notifier, err = s.newNotifier(); err != nil {
		return nil, err
	}
	if s.gateMetrics, err = s.newGateMetrics(); err != nil {
		return nil, err
	}
	if s.callbacks, err = s.newBodyBudget(); err != nil {
		return nil, err
	}
	if s.gateEndpoints, err = s.newGateEndpoints(); err != nil {
		return nil, err
	}
	if s.images, err = s.newImages(); err != nil {
		return nil, err
	}
	return s, s.openListeners(ctx)
}

// openListeners takes the ports.
func (s *Server) openListeners(ctx context.Context) error {
	all, err := s.listenEverywhere(ctx, func(name string) func() { return s.metrics.closed.WithLabelValues(name).Inc })
	if err != nil {
		return err
	}
	if s.main = all[0]; len(all) > 1 {
		s.hooks = all[1]
	}
	return nil
}

func (s *Server) runningEngine() *controller.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.controller
}

// URL is where the server listens.
func (s *Server) URL() string { return s.main.url() }

// WebhooksURL is where it listens for deliveries.
func (s *Server) WebhooksURL() string {
	if s.hooks != nil {
		return s.hooks.url()
	}
	return s.main.url()
}

// Close gives back what New opened; Run does it by itself.
func (s *Server) Close() {
	for _, l := range []*listener{s.main, s.hooks} {
		if l != nil {
			_ = l.Close() // closed already when the HTTP server ran
		}
	}
	if s.renderers != nil {
		s.renderers.Close()
	}
	s.closeSources()
	for _, r := range s.repos {
		if err := r.Mirror.Close(); err != nil {
			s.log.Warn("a mirror did not close cleanly", zap.String("repository", r.ID), zap.Error(err))
		}
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Warn("the store did not close cleanly", zap.Error(err))
		}
	}
}

// Run serves until the context ends, then lets what has begun come to its end.
// Deliveries are accepted from the first moment, also while a forge can't be reached.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	handlers, err := s.buildHandlers()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for l, handler := range handlers {
		l.setHandler(ctx, handler, s.log.Named("http"))
		wg.Go(func() {
			if err := l.serve(); err != nil {
				cancel(err)
			}
		})
	}
	for name, a := range s.argocds {
		wg.Go(func() {
			if err := a.watcher.Run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("watch the Argo CD %s: %w", name, err))
			}
		})
	}
	s.log.Info("listening", zap.String("address", s.URL()), zap.String("webhooks", s.WebhooksURL()),
		zap.String("readAccess", s.o.Config.ReadAccess), zap.String("version", s.o.Version))
	wg.Go(func() { s.notifier.Run(ctx) })
	wg.Go(func() { s.tokens.run(ctx) })
	wg.Go(func() { s.argocdTokens.run(ctx) })
	reached := make(chan *controller.Repository)
	wg.Go(func() { s.connectRepositories(ctx, reached) })
	if err := s.runEngine(ctx, reached); err != nil {
		cancel(err)
	}
	<-ctx.Done()
	for l := range handlers {
		l.stop()
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && err != nil {
		return err
	}
	return nil
}

// runEngine builds the engine over the first repository that is reached, runs it, and
// adds the others as they come.
func (s *Server) runEngine(ctx context.Context, reached <-chan *controller.Repository) error {
	var first *controller.Repository
	select {
	case first = <-reached:
	case <-ctx.Done():
		return nil
	}
	e, err := s.newEngine(first)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.controller = e
	s.mu.Unlock()
	if err := e.Start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	s.health.setReady()
	var adding sync.WaitGroup
	defer adding.Wait()
	adding.Go(func() {
		for {
			select {
			case r := <-reached:
				s.addRepository(ctx, e, r)
			case <-ctx.Done():
				return
			}
		}
	})
	return e.Run(ctx)
}

// addRepository adds a repository to the running engine.
func (s *Server) addRepository(ctx context.Context, e *controller.Controller, r *controller.Repository) {
	wait := backoff.NewExponentialBackOff(backoff.WithMaxInterval(maxConnectWait), backoff.WithMaxElapsedTime(0))
	err := backoff.RetryNotify(func() error { return e.AddRepository(ctx, r) }, backoff.WithContext(wait, ctx),
		func(err error, d time.Duration) {
			s.log.Error("a repository can't be taken up; trying again", zap.String("repository", r.ID), zap.Duration("in", d),
				zap.Error(err))
		})
	if err == nil {
		s.log.Info("a repository was reached", zap.String("repository", r.ID))
	}
}

// newEngine builds the engine with one repository; the others of the server's file are
// awaited.
func (s *Server) newEngine(first *controller.Repository) (*controller.Controller, error) {
	argocds, acts := map[string]branch.ArgoCD{}, map[string]act.ArgoCD{}
	for name, a := range s.argocds {
		argocds[name], acts[name] = a.factsArgoCD(), a.watcher
	}
	var awaited []string
	for _, r := range s.o.Config.Repositories {
		awaited = append(awaited, r.Forge+":"+r.Name)
	}
	// The sweep reads every open pull request anew; twice its interval keeps a
	// unit that looks at the same moment from reading it a second time.
	maxAge := 2 * s.o.Config.SweepInterval
	if !sandbox.CanLimitMemory() {
		s.log.Warn("this system can't limit a process's memory and CPU time: a stranger's pull request may take all that there is " +
			"for 90 seconds; run a server whose repositories strangers can propose changes to on Linux")
	}
	children, err := evaluate.NewRunner(s.o.Seams.Sandbox, s.log.Named("sandbox"))
	if err != nil {
		return nil, err
	}
	if s.renderers, err = evaluate.NewPool(s.o.Seams.Sandbox.Memory, s.log.Named("renderers")); err != nil {
		return nil, err
	}
	charts, err := s.newCharts(children)
	if err != nil {
		return nil, err
	}
	externals, err := s.newExternals(charts)
	if err != nil {
		return nil, err
	}
	gatherer := facts.New(facts.Options{
		Externals: externals,
		Store:     s.store, Resolver: appset.New(appset.Options{Log: s.log.Named("appset"), Now: s.o.Clock.Now, Caches: &s.caches}),
		ArgoCDs: argocds, MainArgoCD: s.o.Config.ArgoCDByName("").Name,
		Generators: appset.Generators(s.o.Config.Generators), Repos: []*branch.Repository{first.Repository}, Sandbox: children,
		Renderer: evaluate.PoolRenderer{Pool: s.renderers}, Floor: s.applyFloor, Metrics: s.gateMetrics, Endpoints: s.gateEndpoints,
		Images: s.imageSource(), IgnoreUnlinkedAuthors: s.o.Config.Authors.IgnoreUnlinked, Caches: &s.caches, Now: s.o.Clock.Now,
		Log: s.log.Named("facts"), MaxAge: maxAge, EditTimeout: s.o.Seams.JudgeTime,
		OnDisagree: s.metrics.renderDisagreement(s.log.Named("facts")),
		Resolving:  (&resolvingCommits{dir: s.o.Config.DataDir, now: s.o.Clock.Now, log: s.log.Named("facts")}).begin,
	})
	actor := act.New(act.Options{Store: s.store, Gatherer: gatherer, ArgoCDs: acts, Console: s.o.Config.ExternalURL, Now: s.o.Clock.Now,
		Log: s.log.Named("act"), Metrics: s.metrics, Owner: s.owner, Lease: s.o.Seams.Lease})
	return controller.New(controller.Options{Store: s.store, Gatherer: gatherer, Actor: actor, Repos: []*controller.Repository{first},
		Awaited: awaited, Clock: s.o.Clock, Log: s.log.Named("controller"), Metrics: s.metrics, Caches: &s.caches, Owner: s.owner,
		Workers: s.o.Seams.Workers, Lease: s.o.Seams.Lease, Propose: s.newProposer(),
		Versions: func(maxAge time.Duration) discovery.Source { return s.newVersionSource(charts, maxAge) }}), nil
}

// applyFloor raises an environment's gates to what the server's file demands.
func (s *Server) applyFloor(env string, gates []policies.Gate) []policies.Gate {
	for _, f := range s.o.Config.FreezesOf(env) {
		gates = append(slices.Clip(gates), policies.Gate{Freeze: f})
	}
	for _, floor := range s.o.Config.FloorApprovals(env) {
		gates = policies.ApplyFloor(gates, floor)
	}
	return gates
}

// ownerName names this process in the queue.
func ownerName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return host + "-" + hex.EncodeToString(b[:]), nil
}

// mirrorsFolder is the data directory's folder of mirrors.
const mirrorsFolder = "mirrors"

// mirrorDirs are where a repository's mirror lies, and where an earlier version had it:
// that one's names were the same for acme/ops_fleet and acme_ops/fleet.
func (s *Server) mirrorDirs(id string) (dir, former string) {
	name := strings.NewReplacer("/", "_", ":", "_").Replace(id)
	sum := sha256.Sum256([]byte(id))
	unique := name + "-" + hex.EncodeToString(sum[:8])
	at := func(name string) string { return filepath.Join(s.o.Config.DataDir, mirrorsFolder, name+".git") }
	switch {
	case strings.Count(id, "/") > 1: // acme/ops/fleet isn't acme_ops/fleet
		return at(unique), ""
	case strings.Contains(id, "_"):
		return at(unique), at(name)
	}
	return at(name), "" // the only one that is written so: its underscores are separators
}
