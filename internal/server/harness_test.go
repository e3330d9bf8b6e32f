package server_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/cli"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/evaluatetest"
)

// runLong runs what takes minutes.
var runLong = flag.Bool("long", false, "run the long tests too")

// TestMain lets more tests run at once than there are processors: they mostly
// wait for each other's forge, Argo CD and git.
func TestMain(m *testing.M) {
	evaluatetest.ServeIfWorker()
	if len(os.Args) > 2 && os.Args[1] == serveCommand {
		fmt.Fprintln(os.Stderr, runLoadedServer(os.Args[2]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == onboard.Command {
		os.Exit(cli.Main(os.Args[1:]))
	}
	if len(os.Args) > 3 && os.Args[1] == plainCommand {
		fmt.Fprintln(os.Stderr, runPlainHandler(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	flag.Parse()
	if *runLong {
		patience = time.Hour
	}
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

const (
	repoName = "acme/fleet"
	botToken = "token-of-the-bot"
	secret   = "a-webhook-secret"

	// pollInterval is how often a test looks.
	pollInterval = 20 * time.Millisecond

	verifyFast = "{arriveWithin: 30s, timeout: 4s, healthyFor: 50ms, watch: 2m, debounce: 50ms}"
)

// patience is how long a test waits for what must happen: long, because the machine may be busy;
// nothing waits that long when all is well. Hundreds of promotions at once take longer.
var patience = 5 * time.Minute

// harnessOptions says what a scene is made of. The zero value is one component, web, in
// dev, qa and prod, all at 1.0.0, and a hook that was made by hand.
type harnessOptions struct {
	components      []string
	tag             func(component, env string) string // what it carries at first; nil: 1.0.0
	cluster         func(component, env string) string // nil: one for all
	destination     string                             // the server that its set says; empty: the cluster that Argo CD runs in
	pipeline        string                             // empty: pipelineYAML(nil)
	branches        map[string]string                  // layout: branches, by environment; nil: directories
	folder          func(component, env string) string // of its Application; nil: its overlay's
	files           map[string]string                  // further files
	serverLines     string                             // further keys of the server's file
	externalURL     string                             // empty: http://server.example
	forgeLines      string                             // further keys of its forge's entry
	repositoryLines string                             // further repositories of the server's file
	argocdLines     string                             // further lines of its Argo CD's entry
	plugin          string                             // of Argo CD's, which renders every target; empty: none
	poll            time.Duration                      // 0: an hour
	sweep           time.Duration                      // 0: an hour
	discover        time.Duration                      // how often new versions are looked for; 0: as the file has it
	manageHook      bool                               // the server looks after its webhook
	noHook          bool                               // webhooks off
	onboard         bool                               // the repository has no pipeline file, and is to be proposed one
	access          map[string]emulator.Permission     // changes to who may do what
	store           string                             // address of the database; empty: SQLite
	clock           *steppedClock                      // nil: the real one
	seams           server.Seams
	timings         argoemulator.Timings   // of Argo CD; zero: FastTimings
	face            emulator.Face          // of the forge; empty: FORGE's
	publicLimits    bool                   // GitLab's face: those of gitlab.com to single calls
	rateLimit       int                    // of the forge, calls of an account; 0: its own
	secondaryShare  int                    // GitHub's face: the part of its secondary limits that is enforced; 0: none
	gitlab          emulator.GitLabProject // the repository's, on GitLab's face
}

// project is the repository as a project of GitLab's, where how it is merged is the project's choice.
func (h *harnessOptions) project() emulator.GitLabProject {
	o := h.gitlab
	if strings.Contains(h.pipeline, "merge: {method: rebase}") {
		o.MergeMethod = "ff"
	}
	return o
}

// harness is a world with a server in it.
type harness struct {
	*emulator.Simulation
	t    testing.TB
	opts harnessOptions
	dir  string
	logs *observer.ObservedLogs
	url  string // the server's

	bot  string // the login of its account
	auth string // how it proves who it is
	stop func() // ends the server; nil when none runs
}

// accounts are all who have an account besides the bot.
var accounts = map[string]emulator.Permission{
	"linus": emulator.Write, "ada": emulator.Write, "grace": emulator.Write, "rita": emulator.Read, "mallory": emulator.NoPermission,
}

// mention is how people write a pull request's number.
func (ha *harness) mention(number int) string {
	if ha.Forge.Face() == emulator.GitLab {
		return "!" + itoa(number)
	}
	return "#" + itoa(number)
}

// pullPage is the end of the address of a pull request's page.
func (ha *harness) pullPage(number int) string {
	if ha.Forge.Face() == emulator.GitLab {
		return "/" + repoName + "/-/merge_requests/" + itoa(number)
	}
	return "/" + repoName + "/pull/" + itoa(number)
}

// ownPulls are the repository's pull requests, without those that only bring people's changes.
func (ha *harness) ownPulls() ([]emulator.PullRequest, error) {
	all, err := ha.Forge.Pulls(repoName)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return p.IsLanding() }), err
}

// newHarness makes a world; the server is not started yet.
func newHarness(t testing.TB, p harnessOptions) *harness {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel()
	}
	if len(p.components) == 0 {
		p.components = []string{"web"}
	}
	if p.tag == nil {
		p.tag = func(string, string) string { return "1.0.0" }
	}
	if p.cluster == nil {
		p.cluster = func(string, string) string { return "https://kubernetes.default.svc" }
	}
	if p.pipeline == "" {
		p.pipeline = pipelineYAML(nil)
	}
	if p.branches != nil {
		p.pipeline = withBranches(p.pipeline, p.branches)
	}
	p.face = cmp.Or(p.face, forgeFace())
	if p.poll == 0 {
		p.poll = time.Hour
	}
	if p.sweep == 0 {
		p.sweep = time.Hour
	}
	if p.timings == (argoemulator.Timings{}) {
		p.timings = argoemulator.FastTimings()
	}
	s := &harness{t: t, opts: p, dir: t.TempDir()}
	o := emulator.Options{Dir: filepath.Join(s.dir, "world"), Timings: p.timings, Face: p.face,
		KeepHooks:    !p.manageHook, // nobody would enable one again that was made by hand
		PublicLimits: p.publicLimits, RateLimit: p.rateLimit, SecondaryShare: p.secondaryShare}
	if p.clock != nil {
		o.Now = p.clock.Now
	}
	w, err := emulator.New(o)
	s.must("make the world", err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Simulation = w
	s.addBot()
	access := map[string]emulator.Permission{s.bot: emulator.Admin}
	for login, perm := range accounts {
		s.must("add "+login, w.Forge.AddUser(login, "token-of-"+login, emulator.UserOptions{}))
		access[login] = perm
	}
	for login, perm := range p.access {
		access[login] = perm
	}
	s.must("make the repository", w.Forge.CreateRepo(repoName, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: s.repositoryFiles(), Access: access, GitLab: p.project()}))
	s.createBranches()
	for _, c := range p.components {
		for _, env := range s.environmentNames() {
			s.must("add an Application", w.ArgoCD.AddApplication(argoemulator.AppSpec{Name: c + "-" + env, Repo: repoName, Branch: p.branches[env], Path: s.applicationDir(c, env),
				DestinationNamespace: c + "-" + env, Cluster: p.cluster(c, env), ApplicationSet: "shop", Options: pluginOptions(p.plugin)}))
		}
	}
	s.must("write the kubeconfig", w.ArgoCD.WriteKubeconfig(filepath.Join(s.dir, "kubeconfig")))
	_, s.logs = observer.New(zapcore.InfoLevel)
	t.Cleanup(func() {
		if t.Failed() {
			s.logState()
		}
	})
	return s
}

// startHarness makes a world and starts the server in it.
func startHarness(t testing.TB, p harnessOptions) *harness {
	t.Helper()
	s := newHarness(t, p)
	s.start()
	return s
}

// awaitJudged waits until the server has judged every component.
func (ha *harness) awaitJudged() {
	ha.t.Helper()
	for _, c := range ha.opts.components {
		ha.waitFor("the server looks at "+c, func() (bool, string) {
			e, seen := ha.readEnvironment(c, ha.environmentNames()[0])
			return e != nil, seen
		})
	}
}

// start runs a server over the scene's data until stop, or the test's end.
func (ha *harness) start() {
	ha.t.Helper()
	if ha.stop != nil {
		ha.t.Fatal("a server runs already")
	}
	core, logs := observer.New(zapcore.InfoLevel)
	ha.logs = logs
	srv, err := server.New(context.Background(), ha.serverOptions(core))
	ha.must("build the server", err)
	first := ha.url == ""
	ha.url = srv.URL()
	if first && !ha.opts.noHook && !ha.opts.manageHook {
		ha.makeHook()
	}
	end := ha.run(srv)
	ended := false
	ha.stop = func() {
		if ended {
			return
		}
		ended, ha.stop = true, nil
		end()
	}
	ha.t.Cleanup(ha.stop)
}

// run runs a server; end ends it.
func (ha *harness) run(srv *server.Server) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	return func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				ha.t.Errorf("the server ended: %v", err)
			}
		case <-time.After(patience):
			ha.t.Error("the server doesn't end")
		}
	}
}

// serverOptions are the server's; the address stays the same over restarts.
func (ha *harness) serverOptions(core zapcore.Core) server.Options {
	ha.t.Helper()
	listen := "127.0.0.1:0"
	if ha.url != "" {
		listen = strings.TrimPrefix(ha.url, "http://")
	}
	file := filepath.Join(ha.dir, "liftlock.yaml")
	text := fmt.Sprintf(`externalURL: %s
store: %s
dataDir: %s
forges:
  - name: hub
    type: %s
    url: %s
    auth: %s
    webhookSecrets: [%s, an-older-secret]
%srepositories:
  - {forge: hub, name: %s, manageWebhooks: %t, onboard: %t}
%sargocd:
  - name: hub
    kubernetes: {kubeconfig: %s, namespaces: [argocd]}
%sapi:
  tokens:
    - {name: ops, role: operator, token: a-token-of-an-operator}
    - {name: eyes, role: viewer, token: a-token-of-a-viewer}
%s`, cmp.Or(ha.opts.externalURL, "http://server.example"), cmp.Or(ha.opts.store, "sqlite://"+filepath.Join(ha.dir, "data", "liftlock.db")), filepath.Join(ha.dir, "data"), ha.Forge.Face(), ha.Forge.APIURL(), ha.auth, secret, ha.opts.forgeLines, repoName, ha.opts.manageHook && !ha.isApp(), ha.opts.onboard, ha.opts.repositoryLines,
		filepath.Join(ha.dir, "kubeconfig"), ha.opts.argocdLines, ha.opts.serverLines)
	ha.must("write the server's file", os.WriteFile(file, []byte(text), 0o600))
	cfg, err := config.Load(file, os.LookupEnv)
	ha.must("load the server's file", err)
	cfg.Listen = listen
	// Tests are in more of a hurry than the file allows.
	cfg.SweepInterval, cfg.Repositories[0].PollInterval = ha.opts.sweep, ha.opts.poll
	if ha.opts.discover > 0 {
		cfg.Repositories[0].DiscoverInterval = ha.opts.discover
	}
	if ha.opts.manageHook {
		if ha.url == "" {
			ha.url = "http://" + freeAddress(ha.t)
			cfg.Listen = strings.TrimPrefix(ha.url, "http://")
		}
		cfg.ExternalURL, cfg.Webhooks.ExternalURL = ha.url, ha.url
	}
	if raceDetector {
		ha.opts.seams.Sandbox.Memory = 1 << 46 // the detector maps terabytes
	}
	o := server.Options{Config: cfg, Log: zap.New(core), Version: "test", Seams: ha.opts.seams}
	if ha.opts.clock != nil {
		o.Clock = ha.opts.clock
	}
	return o
}

// deleteDatabase stops the server and deletes its database.
func (ha *harness) deleteDatabase() {
	ha.t.Helper()
	ha.stop()
	files, err := filepath.Glob(filepath.Join(ha.dir, "data", "liftlock.db*"))
	ha.must("find the database", err)
	for _, f := range files {
		ha.must("delete the database", os.Remove(f))
	}
}

func (ha *harness) must(what string, err error) {
	ha.t.Helper()
	if err != nil {
		ha.t.Fatalf("%s: %v", what, err)
	}
}

// waitFor waits for a condition. With a stepped clock, time goes on meanwhile.
func (ha *harness) waitFor(what string, ok func() (bool, string)) {
	ha.t.Helper()
	ha.waitEvery(pollInterval, what, ok)
}

// waitEvery looks less or more often.
func (ha *harness) waitEvery(interval time.Duration, what string, ok func() (bool, string)) {
	ha.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		done, seen := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			ha.t.Fatalf("waited in vain: %s; last seen: %s", what, seen)
		}
		<-tick.C
		if ha.opts.clock != nil {
			ha.opts.clock.Step(interval)
		}
	}
}

// logState helps to see why a test failed.
func (ha *harness) logState() {
	for _, e := range ha.logs.All() {
		if e.Level >= zapcore.WarnLevel || e.LoggerName == "act" || e.Message == "a command came" {
			ha.t.Logf("%s %s: %s %v", e.Level, e.LoggerName, e.Message, e.ContextMap())
		}
	}
	all, err := ha.ownPulls()
	if err != nil {
		return
	}
	for _, p := range all {
		ha.t.Logf("#%d %q %s open=%t merged=%t labels=%v statuses=%+v", p.Number, p.Title, p.Branch, p.Open, p.Merged, p.Labels, p.Statuses)
	}
}

// countLogged counts the log's entries that have a text in them, fields included.
func (ha *harness) countLogged(text string) int {
	n := 0
	for _, e := range ha.logs.All() {
		if strings.Contains(e.Message+fmt.Sprint(e.ContextMap()), text) {
			n++
		}
	}
	return n
}
