package story_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

const (
	replicaCount = 3
	// replicaLease is how long a killed replica keeps others from what it was at: short,
	// because one is killed every other second.
	replicaLease = 2 * time.Second

	hooksSecret = "a-webhook-secret"
)

// replicatedRepository is one of the repositories that the replicas look after.
type replicatedRepository struct {
	name       string
	set        string // its ApplicationSet
	prod       string // further lines of the environment prod
	components []*releasedComponent
}

// releasedComponent is a component with the releases that came into its dev so far.
type releasedComponent struct {
	name     string
	released int
}

// brokenEvery is how many releases there are to one that fails in qa.
const brokenEvery = 3

// releaseTag is a release's tag; every so often it is one that fails in qa.
func releaseTag(n int) string {
	if n%brokenEvery == 2 {
		return fmt.Sprintf("1.%d.0-broken-in-qa", n)
	}
	return fmt.Sprintf("1.%d.0", n)
}

func isBrokenTag(tag string) bool { return strings.HasSuffix(tag, "-broken-in-qa") }

// releaseTags finds the tags in a text.
var releaseTags = regexp.MustCompile(`\b1\.\d+\.0(-broken-in-qa)?\b`)

// In the repositories releases into prod are approved, merged by a person, or merged by the server
// alone. The last repository's release waits there, so that nothing happens in it but comments.
func replicatedRepositories() []*replicatedRepository {
	all := []*replicatedRepository{
		{name: "acme/approved", prod: "merge: auto\n      gates:\n        - approvals: {count: 1, from: {users: [ada]}}"},
		{name: "acme/manual", prod: "merge: manual"},
		{name: "acme/automatic", prod: "merge: auto"},
		{name: commentedRepository, prod: "merge: manual"},
	}
	for i, r := range all {
		r.set = fmt.Sprintf("shop-%d", i)
		n := 3
		if r.name == commentedRepository {
			n = 1
		}
		for k := range n {
			r.components = append(r.components, &releasedComponent{name: fmt.Sprintf("web-%d-%d", i, k)})
		}
	}
	return all
}

const commentedRepository = "acme/commented"

// replicaRun is three servers on one PostgreSQL with the world that they look after.
type replicaRun struct {
	identity     story.Identity
	t            *testing.T
	dir          string
	database     *postgresServer
	forge        *emulator.Forge
	argocd       *argoemulator.ArgoCD
	relay        *webhookRelay
	repositories []*replicatedRepository
	replicas     []*replica
	deaths       *deathChooser

	mu       sync.Mutex
	ending   bool               // nothing new is released or held
	comments []*personalComment // so far
	heldAt   map[string]time.Time
}

// personalComment is a command that a person gave.
type personalComment struct {
	repository string
	pull       int
	id         int64
	text       string
}

// replica is one of the servers.
type replica struct {
	*serverProcess
	url string
	// starting is held by a caller that doesn't want it to be started again now.
	starting sync.Mutex
	began    time.Time // its last process; only its own goroutine's
}

// startReplicas makes the world and starts the servers in it.
func startReplicas(t *testing.T, seed uint64) *replicaRun {
	t.Helper()
	r := newReplicaRun(t, seed, replicatedRepositories())
	var all []*replica
	for i := range replicaCount {
		one, err := r.newReplica(fmt.Sprintf("replica-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
		r.relay.servers = append(r.relay.servers, one.url)
	}
	r.replicas = all
	for _, one := range all {
		go one.keepRunning()
	}
	return r
}

// newReplicaRun makes the world with some repositories, and no servers.
func newReplicaRun(t *testing.T, seed uint64, repositories []*replicatedRepository) *replicaRun {
	t.Helper()
	r := &replicaRun{t: t, database: startPostgres(t), repositories: repositories, relay: startWebhookRelay(t), deaths: newDeathChooser(seed), heldAt: map[string]time.Time{}}
	dir, err := os.MkdirTemp("", "liftlock-replicas-")
	if err != nil {
		t.Fatal(err)
	}
	r.dir = dir
	t.Cleanup(r.close)
	r.makeParts()
	for _, f := range r.repositories {
		if err := r.makeRepository(f); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// makeParts makes the forge and Argo CD, with everybody who has an account.
func (r *replicaRun) makeParts() {
	r.t.Helper()
	timings := argoemulator.FastTimings()
	timings.Tick, timings.Resync = 20*time.Millisecond, 10*time.Second // there are many Applications, and the machine has more to do
	var err error
	// A forge gives a server that is restarted all the time far less than it asks for.
	if r.forge, err = emulator.NewForge(emulator.ForgeOptions{Dir: filepath.Join(r.dir, "repositories"), RateLimit: 1 << 30, Face: forgeFace()}); err != nil {
		r.t.Fatal(err)
	}
	if r.argocd, err = argoemulator.New(argoemulator.Options{Repos: r.forge, Timings: timings}); err != nil {
		r.t.Fatal(err)
	}
	if r.identity, err = story.NewIdentity(r.forge, forgeFace(), r.dir, "acme"); err != nil {
		r.t.Fatal(err)
	}
	for _, login := range []string{story.Author, story.FirstApprover, story.SecondApprover} {
		if err := r.forge.AddUser(login, "token-of-"+login, emulator.UserOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.argocd.WriteKubeconfig(filepath.Join(r.dir, "kubeconfig")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replicaRun) makeRepository(f *replicatedRepository) error {
	files := map[string]string{
		"argocd/shop.yaml": strings.NewReplacer("REPO", r.forge.CloneURL(f.name), "SET", f.set).Replace(replicatedSetTemplate),
		".liftlock.yaml":   strings.ReplaceAll(replicatedPipelineTemplate, "PROD", f.prod),
	}
	for _, c := range f.components {
		files["apps/"+c.name+"/base/kustomization.yaml"] = "resources:\n  - deployment.yaml\n"
		files["apps/"+c.name+"/base/deployment.yaml"] = strings.ReplaceAll(replicatedDeploymentTemplate, "NAME", c.name)
		for _, env := range replicatedEnvironments {
			files[replicatedOverlay(c.name, env)] = replicatedKustomization(c.name, "1.0.0")
		}
	}
	access := map[string]emulator.Permission{r.identity.Login: emulator.Admin, story.Author: emulator.Write, story.FirstApprover: emulator.Write, story.SecondApprover: emulator.Write}
	if err := r.forge.CreateRepo(f.name, emulator.RepoOptions{Branch: story.Branch, Author: story.Author, Message: "Overlays", Files: files, Access: access}); err != nil {
		return err
	}
	for _, c := range f.components {
		for _, env := range replicatedEnvironments {
			// A cluster of its own: when several components of one degrade at once, it is left
			// to people.
			if err := r.argocd.AddApplication(argoemulator.AppSpec{Name: c.name + "-" + env, Repo: f.name, Branch: story.Branch, Path: filepath.Dir(replicatedOverlay(c.name, env)),
				DestinationNamespace: c.name + "-" + env, Cluster: "https://" + c.name + ".example", ApplicationSet: f.set}); err != nil {
				return err
			}
		}
	}
	return nil
}

// newReplica writes a server's file.
func (r *replicaRun) newReplica(name string) (*replica, error) {
	address, err := emulator.FreeAddress()
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	for _, f := range r.repositories {
		fmt.Fprintf(&lines, "  - {forge: hub, name: %s, branch: %s, manageWebhooks: %t, pollInterval: 10h}\n", f.name, story.Branch, r.identity.Manage)
	}
	config := filepath.Join(r.dir, name+".yaml")
	// Nobody looks by itself: what isn't taken from a delivery is found by a server that
	// starts, or never.
	text := fmt.Sprintf(`listen: %s
externalURL: %s
store: %s
dataDir: %s
sweepInterval: 10h
forges:
  - name: hub
    type: %s
    url: %s
    auth: %s
    webhookSecrets: [%s]
repositories:
%sargocd:
  - name: hub
    kubernetes: {kubeconfig: kubeconfig, namespaces: [argocd]}
`, address, r.relay.front.URL, r.database.address(), filepath.Join(r.dir, name), r.forge.Face(), r.forge.APIURL(), r.identity.Auth, hooksSecret, lines.String())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	one := &replica{url: "http://" + address}
	one.serverProcess = &serverProcess{t: r.t, config: config, log: log, done: make(chan struct{}), died: make(chan struct{})}
	one.environ = func() []string {
		one.began = time.Now()
		return []string{leaseVariable + "=" + replicaLease.String(), dieAtVariable + "=" + r.deaths.choosePoint()}
	}
	one.onDeath = func() {
		r.deaths.countDeath()
		one.starting.Lock()
		defer one.starting.Unlock()
	}
	one.mayEnd = func() bool {
		return r.database.wasAwaySince(one.began) && r.deaths.countEnd()
	}
	return one, nil
}

func (r *replicaRun) close() {
	for _, one := range r.replicas {
		one.stopServer()
		one.checkServerLog()
	}
	if r.t.Failed() {
		for _, one := range r.replicas {
			r.t.Logf("the log of %s:\n%s", one.url, one.lastLines(40))
		}
	}
	var wrong []error
	if r.argocd != nil {
		wrong = append(wrong, r.argocd.Close())
	}
	if r.forge != nil {
		wrong = append(wrong, r.forge.Close())
	}
	for _, one := range r.replicas {
		wrong = append(wrong, one.log.Close())
	}
	if r.t.Failed() {
		r.t.Logf("everything is left in %s, with the servers' whole logs", r.dir)
	} else {
		wrong = append(wrong, os.RemoveAll(r.dir))
	}
	if err := errors.Join(wrong...); err != nil {
		r.t.Errorf("clean up: %v", err)
	}
}

// listPulls are a repository's pull requests, those of one environment where one is named.
func (r *replicaRun) listPulls(repository, env string) []emulator.PullRequest {
	all, err := r.forge.Pulls(repository)
	if err != nil {
		r.t.Errorf("list the pull requests: %v", err)
	}
	var out []emulator.PullRequest
	for _, p := range slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return p.IsLanding() }) {
		if ref, _ := promotion.ParseBranch(p.Branch); env == "" || ref.Environment == env {
			out = append(out, p)
		}
	}
	return out
}

var replicatedEnvironments = []string{"dev", "qa", "prod"}

func replicatedOverlay(component, env string) string {
	return "apps/" + component + "/overlays/" + env + "/kustomization.yaml"
}

func replicatedKustomization(component, tag string) string {
	return strings.NewReplacer("NAME", component, "TAG", tag).Replace(`resources:
  - ../../base
images:
  - name: registry.example/NAME
    newTag: TAG
`)
}

const replicatedSetTemplate = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: SET
  namespace: argocd
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - git:
        repoURL: REPO
        revision: main
        directories:
          - path: apps/*/overlays/*
  template:
    metadata:
      name: '{{ index .path.segments 1 }}-{{ .path.basename }}'
    spec:
      project: default
      source:
        repoURL: REPO
        targetRevision: main
        path: '{{ .path.path }}'
      destination:
        server: 'https://{{ index .path.segments 1 }}.example'
        namespace: '{{ index .path.segments 1 }}-{{ .path.basename }}'
      syncPolicy:
        automated: {}
`

const replicatedPipelineTemplate = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata:
  name: shop
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  limits: {openPerEnvironment: 100, mergesPerHour: 100000, revertsPer10Minutes: 10000}
  carry:
    - kustomizeImages: ["registry.example/*"]
  environments:
    - name: dev
      verify: {arriveWithin: 5m, timeout: 3m, healthyFor: 100ms, watch: 30s, debounce: 50ms}
    - name: qa
      after: [dev]
      merge: auto
      onDegraded: revert-and-merge
      verify: {arriveWithin: 5m, timeout: 3m, healthyFor: 100ms, watch: 30s, debounce: 50ms}
    - name: prod
      after: [qa]
      PROD
      verify: {arriveWithin: 5m, timeout: 3m, healthyFor: 100ms, watch: 30s, debounce: 50ms}
`

const replicatedDeploymentTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
spec:
  selector:
    matchLabels: {app: NAME}
  template:
    metadata:
      labels: {app: NAME}
    spec:
      containers:
        - name: NAME
          image: registry.example/NAME
`
