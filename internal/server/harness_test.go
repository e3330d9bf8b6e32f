package server_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/sandbox"
	"github.com/liftlock/liftlock/internal/server"
)

// long runs what takes minutes.
var long = flag.Bool("long", false, "run the long tests too")

// TestMain lets more tests run at once than there are processors: they mostly
// wait for each other's forge, Argo CD and git.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == evaluate.Command {
		// A server starts this program to look at what strangers wrote.
		if err := sandbox.Serve(context.Background(), os.Stdin, os.Stdout, evaluate.Handlers(zap.NewNop())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

const (
	repoName = "acme/fleet"
	bot      = "liftlock-bot"
	secret   = "a-webhook-secret"

	// patience is how long a test waits for what must happen: long, because the
	// machine may be busy; nothing waits that long when all is well.
	patience = 2 * time.Minute
	// look is how often a test looks.
	look = 20 * time.Millisecond

	verifyFast = "{arriveWithin: 30s, timeout: 4s, healthyFor: 50ms, watch: 2m, debounce: 50ms}"
)

// plan says what a scene is made of. The zero value is one component, web, in
// dev, qa and prod, all at 1.0.0, and a hook that was made by hand.
type plan struct {
	components []string
	tag        func(component, env string) string // what it carries at first; nil: 1.0.0
	cluster    func(component, env string) string // nil: one for all
	pipeline   string                             // empty: pipelineOf(nil)
	branches   map[string]string                  // layout: branches, by environment; nil: directories
	files      map[string]string                  // further files
	server     string                             // further keys of the server's file
	argocd     string                             // further lines of its Argo CD's entry
	poll       time.Duration                      // 0: an hour
	sweep      time.Duration                      // 0: an hour
	manage     bool                               // manageWebhooks
	noHook     bool                               // webhooks off
	access     map[string]emulator.Permission     // changes to who may do what
	clock      *stepClock                         // nil: the real one
	seams      server.Seams
	botScopes  []string
}

// scene is a world with a server in it.
type scene struct {
	*emulator.World
	t    *testing.T
	p    plan
	dir  string
	logs *observer.ObservedLogs
	url  string // the server's

	stop func() // ends the server; nil when none runs
}

// people are all who have an account besides the bot.
var people = map[string]emulator.Permission{
	"linus": emulator.Write, "ada": emulator.Write, "grace": emulator.Write, "rita": emulator.Read, "mallory": emulator.NoPermission,
}

// scenery makes a world; the server is not started yet.
func scenery(t *testing.T, p plan) *scene {
	t.Helper()
	t.Parallel()
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
		p.pipeline = pipelineOf(nil)
	}
	if p.branches != nil {
		p.pipeline = branched(p.pipeline, p.branches)
	}
	if p.poll == 0 {
		p.poll = time.Hour
	}
	if p.sweep == 0 {
		p.sweep = time.Hour
	}
	s := &scene{t: t, p: p, dir: t.TempDir()}
	o := emulator.Options{Dir: filepath.Join(s.dir, "world"), Pace: emulator.FastPace()}
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
	s.World = w
	s.must("add the bot", w.Forge.AddUser(bot, "token-of-the-bot", emulator.UserOptions{Scopes: p.botScopes}))
	access := map[string]emulator.Permission{bot: emulator.Admin}
	for login, perm := range people {
		s.must("add "+login, w.Forge.AddUser(login, "token-of-"+login, emulator.UserOptions{}))
		access[login] = perm
	}
	for login, perm := range p.access {
		access[login] = perm
	}
	s.must("make the repository", w.Forge.CreateRepo(repoName, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: s.files(), Access: access}))
	s.makeBranches()
	for _, c := range p.components {
		for _, env := range s.environments() {
			s.must("add an Application", w.ArgoCD.AddApplication(emulator.AppSpec{Name: c + "-" + env, Repo: repoName, Branch: p.branches[env], Path: s.overlay(c, env),
				DestinationNamespace: c + "-" + env, Cluster: p.cluster(c, env), ApplicationSet: "shop"}))
		}
	}
	s.must("write the kubeconfig", w.ArgoCD.WriteKubeconfig(filepath.Join(s.dir, "kubeconfig")))
	_, s.logs = observer.New(zapcore.InfoLevel)
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
		}
	})
	return s
}

// begin makes a world and starts the server in it.
func begin(t *testing.T, p plan) *scene {
	t.Helper()
	s := scenery(t, p)
	s.start()
	return s
}

// quiet waits until the server has judged every component.
func (s *scene) quiet() {
	s.t.Helper()
	for _, c := range s.p.components {
		s.until("the server looks at "+c, func() (bool, string) {
			e, seen := s.env(c, s.environments()[0])
			return e != nil, seen
		})
	}
}

// start runs a server over the scene's data until stop, or the test's end.
func (s *scene) start() {
	s.t.Helper()
	if s.stop != nil {
		s.t.Fatal("a server runs already")
	}
	core, logs := observer.New(zapcore.InfoLevel)
	s.logs = logs
	srv, err := server.New(context.Background(), s.options(core))
	s.must("build the server", err)
	first := s.url == ""
	s.url = srv.URL()
	if first && !s.p.noHook && !s.p.manage {
		s.must("make a hook", s.Forge.AddHook(repoName, bot, emulator.Hook{URL: s.url + "/webhooks/hub", Secret: secret, Active: true}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	ended := false
	s.stop = func() {
		if ended {
			return
		}
		ended, s.stop = true, nil
		cancel()
		select {
		case err := <-done:
			if err != nil {
				s.t.Errorf("the server ended: %v", err)
			}
		case <-time.After(patience):
			s.t.Error("the server doesn't end")
		}
	}
	s.t.Cleanup(s.stop)
}

// options are the server's; the address stays the same over restarts.
func (s *scene) options(core zapcore.Core) server.Options {
	s.t.Helper()
	listen := "127.0.0.1:0"
	if s.url != "" {
		listen = strings.TrimPrefix(s.url, "http://")
	}
	file := filepath.Join(s.dir, "liftlock.yaml")
	text := fmt.Sprintf(`externalURL: http://server.example
store: sqlite://%s
dataDir: %s
forges:
  - name: hub
    type: github
    url: %s/api/v3
    auth: {token: token-of-the-bot}
    webhookSecrets: [%s, an-older-secret]
repositories:
  - {forge: hub, name: %s, manageWebhooks: %t}
argocd:
  - name: hub
    kubernetes: {kubeconfig: %s, namespaces: [argocd]}
%sapi:
  tokens:
    - {name: ops, role: operator, token: a-token-of-an-operator}
    - {name: eyes, role: viewer, token: a-token-of-a-viewer}
%s`, filepath.Join(s.dir, "data", "liftlock.db"), filepath.Join(s.dir, "data"), s.Forge.URL(), secret, repoName, s.p.manage,
		filepath.Join(s.dir, "kubeconfig"), s.p.argocd, s.p.server)
	s.must("write the server's file", os.WriteFile(file, []byte(text), 0o600))
	cfg, err := config.Load(file, os.LookupEnv)
	s.must("load the server's file", err)
	cfg.Listen = listen
	// Tests are in more of a hurry than the file allows.
	cfg.SweepInterval, cfg.Repositories[0].PollInterval = s.p.sweep, s.p.poll
	if s.p.manage {
		if s.url == "" {
			s.url = "http://" + freeAddress(s.t)
			cfg.Listen = strings.TrimPrefix(s.url, "http://")
		}
		cfg.ExternalURL = s.url
	}
	if raceDetector {
		s.p.seams.Sandbox.Memory = 1 << 46 // the detector maps terabytes
	}
	o := server.Options{Config: cfg, Log: zap.New(core), Version: "test", Seams: s.p.seams}
	if s.p.clock != nil {
		o.Clock = s.p.clock
	}
	return o
}

// forget stops the server and deletes its database.
func (s *scene) forget() {
	s.t.Helper()
	s.stop()
	files, err := filepath.Glob(filepath.Join(s.dir, "data", "liftlock.db*"))
	s.must("find the database", err)
	for _, f := range files {
		s.must("delete the database", os.Remove(f))
	}
}

func (s *scene) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// until waits for a condition. With a stepped clock, time goes on meanwhile.
func (s *scene) until(what string, ok func() (bool, string)) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		done, seen := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain: %s; last seen: %s", what, seen)
		}
		<-tick.C
		if s.p.clock != nil {
			s.p.clock.Step(look)
		}
	}
}

// dump helps to see why a test failed.
func (s *scene) dump() {
	for _, e := range s.logs.All() {
		if e.Level >= zapcore.WarnLevel || e.LoggerName == "act" || e.Message == "a command came" {
			s.t.Logf("%s %s: %s %v", e.Level, e.LoggerName, e.Message, e.ContextMap())
		}
	}
	all, err := s.Forge.Pulls(repoName)
	if err != nil {
		return
	}
	for _, p := range all {
		s.t.Logf("#%d %q %s open=%t merged=%t labels=%v statuses=%+v", p.Number, p.Title, p.Branch, p.Open, p.Merged, p.Labels, p.Statuses)
	}
}

// said counts the log's entries that have a text in them, fields included.
func (s *scene) said(text string) int {
	n := 0
	for _, e := range s.logs.All() {
		if strings.Contains(e.Message+fmt.Sprint(e.ContextMap()), text) {
			n++
		}
	}
	return n
}
