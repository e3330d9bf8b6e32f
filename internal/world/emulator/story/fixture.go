package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/imageregistry"
)

// The people and things in the world.
const (
	Repo           = "acme/fleet"
	Bot            = "liftlock-bot"
	Author         = "linus"
	FirstApprover  = "ada"
	SecondApprover = "grace"
	Branch         = "main"
	Pipeline       = "shop"

	Component = "web"
	APIToken  = "demo-api-token-operator" // of the server's API and console
	// application is the repository that the image is built from.
	application = "acme/web"
	firstTag    = "1.0.0" // that runs everywhere when the story begins
	botToken    = "demo-token-of-the-bot"
	secret      = "demo-webhook-secret"
)

// Timings says how fast the story goes.
type Timings struct {
	Emulator argoemulator.Timings
	Verify   string        // the pipeline's verify block
	Wait     time.Duration // how long a step may take before the story says that it was not reached
	Poll     time.Duration // how often the server fetches without being told
	Discover time.Duration // how often the server looks for new images
	Sweep    time.Duration
	Soak     time.Duration // how long a release is verified in qa before it may go to prod
	Notify   bool          // there is a channel that is told of what happens
}

// DemoTimings is for people, Fast for machines.
func DemoTimings() Timings {
	return Timings{Emulator: argoemulator.DemoTimings(), Wait: 45 * time.Second, Poll: time.Minute, Sweep: time.Minute,
		Discover: time.Second, Soak: 3 * time.Second, Notify: true,
		Verify: "{arriveWithin: 30s, timeout: 8s, healthyFor: 1s, watch: 2m, debounce: 500ms}"}
}

// FastTimings keeps a story to a few seconds.
func FastTimings() Timings {
	return Timings{Emulator: argoemulator.FastTimings(), Wait: 45 * time.Second, Poll: time.Minute, Sweep: time.Minute,
		Discover: time.Second, Soak: 200 * time.Millisecond,
		Verify: "{arriveWithin: 20s, timeout: 3s, healthyFor: 100ms, watch: 2m, debounce: 50ms}"}
}

// Fixture is the demo's world, made and running, and the server's file for it.
type Fixture struct {
	*emulator.Simulation
	Dir    string
	Config string // path of the server's file
	URL    string // where the server will listen
	Start  string // the commit that the story starts from
	Server Identity
	// Registry has the image that comes into dev by itself.
	Registry *imageregistry.Registry
	timings  Timings
	channel  *channel // nil: nobody is told
}

// Close ends the world.
func (f *Fixture) Close() error {
	if f.channel != nil {
		f.channel.close()
	}
	return errors.Join(f.Registry.Close(), f.Simulation.Close())
}

// Pulls are the repository's pull requests, without those that only bring releases to dev.
func (f *Fixture) Pulls() ([]emulator.PullRequest, error) {
	all, err := f.Forge.Pulls(Repo)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return p.IsLanding() }), err
}

// NewFixture makes the world in a folder, on a forge with the face: the repository, its
// people, the Applications, and the server's file. No face is GitHub's.
func NewFixture(dir string, face emulator.Face, p Timings, log *zap.Logger) (_ *Fixture, err error) {
	w, err := emulator.New(emulator.Options{Dir: filepath.Join(dir, "world"), Timings: p.Emulator, Face: face, Log: log})
	if err != nil {
		return nil, err
	}
	out := &Fixture{Simulation: w, Dir: dir, Config: filepath.Join(dir, "liftlock.yaml"), timings: p}
	if out.Registry, err = imageregistry.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	for login, token := range map[string]string{"acme": "demo-token-of-acme", Author: "demo-token-of-linus",
		FirstApprover: "demo-token-of-ada", SecondApprover: "demo-token-of-grace"} {
		if err := w.Forge.AddUser(login, token, emulator.UserOptions{}); err != nil {
			return nil, err
		}
	}
	if out.Server, err = NewIdentity(w.Forge, face, dir, "acme"); err != nil {
		return nil, err
	}
	if err := w.Forge.CreateRepo(Repo, emulator.RepoOptions{Branch: Branch, Author: Author,
		Message: "Overlays, an ApplicationSet and a pipeline", Files: out.repositoryFiles(),
		Access: map[string]emulator.Permission{out.Server.Login: emulator.Admin, Author: emulator.Write, FirstApprover: emulator.Write,
			SecondApprover: emulator.Write}}); err != nil {
		return nil, err
	}
	if err := w.Forge.CreateRepo(application, emulator.RepoOptions{Branch: Branch, Author: Author, Message: "The application",
		Files:  map[string]string{"main.go": "package main // " + firstTag + "\n"},
		Access: map[string]emulator.Permission{out.Server.Login: emulator.Read, Author: emulator.Write}}); err != nil {
		return nil, err
	}
	if err := out.pushImage(context.Background(), firstTag); err != nil {
		return nil, err
	}
	for _, env := range []string{"dev", "qa", "prod"} {
		if err := w.ArgoCD.AddApplication(argoemulator.AppSpec{Name: Component + "-" + env, Namespace: "argocd", Repo: Repo, Branch: Branch,
			Path:                 overlayDir(env),
			DestinationNamespace: Component + "-" + env, Cluster: "https://kubernetes.default.svc", ApplicationSet: "shop"}); err != nil {
			return nil, err
		}
	}
	if out.Start, err = w.Forge.Head(Repo, Branch); err != nil {
		return nil, err
	}
	if err := w.ArgoCD.WriteKubeconfig(filepath.Join(dir, "kubeconfig")); err != nil {
		return nil, err
	}
	if err := w.ArgoCD.WriteAuthority(filepath.Join(dir, "argocd-ca.pem")); err != nil {
		return nil, err
	}
	addr, err := emulator.FreeAddress()
	if err != nil {
		return nil, err
	}
	out.URL = "http://" + addr
	text := out.serverConfig(addr)
	if p.Notify {
		if out.channel, err = openChannel(); err != nil {
			return nil, err
		}
		text += fmt.Sprintf("channels: [{name: bus, type: webhook, url: %q, secret: %s}]\n", out.channel.url, channelSecret)
	}
	return out, os.WriteFile(out.Config, []byte(text), 0o600)
}

func overlayDir(env string) string { return "apps/" + Component + "/overlays/" + env }

// Kustomization is the file that a promotion into an environment edits.
func Kustomization(env string) string { return overlayDir(env) + "/kustomization.yaml" }

// pushImage pushes the image that is built from the application's newest commit.
func (f *Fixture) pushImage(ctx context.Context, tag string) error {
	commit, err := f.Forge.Head(application, Branch)
	if err != nil {
		return err
	}
	return f.Registry.Push(ctx, Component, tag,
		imageregistry.Source{Repository: strings.TrimSuffix(f.Forge.CloneURL(application), ".git"), Commit: commit})
}

func (f *Fixture) repositoryFiles() map[string]string {
	registry := f.Registry.Host
	out := map[string]string{
		"argocd/shop.yaml": strings.ReplaceAll(applicationSetTemplate, "REPO", f.Forge.CloneURL(Repo)),
		".liftlock.yaml": strings.NewReplacer("VERIFY", f.timings.Verify, "SOAK", f.timings.Soak.String(), "REGISTRY", registry,
			"DEPLOYMENTS", fmt.Sprint(f.Forge.Face() == emulator.GitHub)).Replace(pipelineTemplate),
		"apps/web/base/kustomization.yaml": `resources:
  - deployment.yaml
`,
		"apps/web/base/deployment.yaml": strings.ReplaceAll(deploymentTemplate, "REGISTRY", registry),
	}
	for _, env := range []string{"dev", "qa", "prod"} {
		out[Kustomization(env)] = strings.NewReplacer("ENV", env, "REGISTRY", registry, "TAG", firstTag, "REPLICAS",
			map[string]string{"dev": "1", "qa": "2", "prod": "6"}[env]).Replace(kustomizationTemplate)
	}
	return out
}

const applicationSetTemplate = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: shop
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
        server: https://kubernetes.default.svc
        namespace: '{{ index .path.segments 1 }}-{{ .path.basename }}'
      syncPolicy:
        automated: {}
`

const pipelineTemplate = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata:
  name: shop
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry:
    - kustomizeImages: ["REGISTRY/*"]
  deployments: DEPLOYMENTS
  notify:
    - {to: bus, on: [waiting, degraded, reverted]}
  environments:
    - name: dev
      discover:
        - image: REGISTRY/web
          choose: {semver: ">=1.0.0"}
      verify: VERIFY
    - name: qa
      after: [dev]
      merge: auto
      onDegraded: revert-and-merge
      verify: VERIFY
    - name: prod
      after: [qa]
      merge: auto
      gates:
        - approvals: {count: 2, from: {users: [ada, grace]}}
        - window: {cron: "0 0 * * *", duration: 24h, timezone: Europe/Berlin}
        - soak: {environment: qa, for: SOAK}
      verify: VERIFY
`

const deploymentTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: REGISTRY/web
`

// kustomizationTemplate has comments and a line of the environment's own, which a
// promotion must leave alone.
const kustomizationTemplate = `# web in ENV
resources:
  - ../../base

images:
  # moved by Liftlock; everything else here belongs to ENV
  - name: REGISTRY/web
    newTag: TAG   # the release

replicas:
  - name: web
    count: REPLICAS
`

func (f *Fixture) serverConfig(addr string) string {
	data := filepath.Join(f.Dir, "data")
	return fmt.Sprintf(`listen: %s
externalURL: http://%s
store: sqlite://%s
dataDir: %s
sweepInterval: %s
forges:
  - name: hub
    type: %s
    url: %s
    auth: %s
    webhookSecrets: [%s]
repositories:
  - {forge: hub, name: %s, branch: %s, manageWebhooks: %t, pollInterval: %s, discoverInterval: %s}
registries:
  - {host: "%s", plainHTTP: true}
argocd:
  - name: hub
    kubernetes: {kubeconfig: kubeconfig, namespaces: [argocd]}
    api: {url: %s, token: %s, caFile: argocd-ca.pem}
api:
  tokens: [{name: demo, role: operator, token: %s}]
`, addr, addr, filepath.Join(data, "liftlock.db"), data, f.timings.Sweep, f.Forge.Face(), f.Forge.APIURL(), f.Server.Auth, secret, Repo,
		Branch, f.Server.Manage, f.timings.Poll, f.timings.Discover, f.Registry.Host, f.ArgoCD.APIURL(), f.ArgoCD.APIToken(), APIToken)
}
