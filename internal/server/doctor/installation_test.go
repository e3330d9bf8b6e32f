package doctor_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/forge/gitlab"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	botLogin, botToken = "liftlock-bot", "bot-token-0123456789"
	adminLogin         = "grace"
	hookSecret         = "the webhooks' secret"
	repoName           = "acme/vessels"
)

// installation is an installation in which nothing is wrong, until a fault is planted in it.
type installation struct {
	t        *testing.T
	face     emulator.Face
	em       *emulator.Forge
	argocd   *argoemulator.ArgoCD
	receiver *httptest.Server // of webhooks
	answer   int              // what it answers
	host     testHost
	env      map[string]string
	file     string // the server's file
	key      string // the file of the App's key
	off      time.Duration
	timeout  time.Duration
	prober   func(doctor.Prober) doctor.Prober // that a probe is made by; nil: none is made
}

// testHost is a machine as it is wanted.
type testHost struct {
	gitErr, dirErr, diskErr error
	free                    int64
}

func (t *testHost) CheckGit(context.Context) (string, error) { return "2.39", t.gitErr }
func (t *testHost) FreeBytes(string) (int64, error)          { return t.free, t.diskErr }
func (t *testHost) MayWrite(string) error                    { return t.dirErr }

var errPlanted = errors.New("planted")

// serverFile is the file of a sound installation.
const serverFile = `
externalURL: EXTERNAL
dataDir: FOLDER
forges:
  - name: hub
    type: TYPE
    url: APIADDRESS
    auth: {token: "${FORGE_TOKEN}"}
    webhookSecrets: ["${WEBHOOK_SECRET}"]
repositories:
  - {forge: hub, name: acme/vessels, manageWebhooks: true}
argocd:
  - name: hub
    version: v2.14.21
    kubernetes: {kubeconfig: KUBECONFIG, namespaces: [argocd]}
`

// pipelineFile is a pipeline in which nothing is wrong.
const pipelineFile = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["*"]}]
  merge: {method: merge}
  breakGlass: {teams: [acme/sre]}
  environments:
    - {name: dev}
    - name: qa
      after: [dev]
      merge: auto
      gates:
        - checks: {require: ["ci/*"]}
    - name: prod
      after: [qa]
      gates:
        - approvals: {count: 1, from: {teams: [acme/sre], users: [ada]}}
        - window: {cron: "0 9 * * MON-THU", duration: 8h, timezone: Europe/Berlin}
`

func newInstallation(t *testing.T, face emulator.Face, calls int) *installation {
	t.Helper()
	in := &installation{t: t, face: face, answer: http.StatusNoContent, host: testHost{free: 100 << 30}, timeout: 20 * time.Second,
		env: map[string]string{"FORGE_TOKEN": botToken, "WEBHOOK_SECRET": hookSecret}}
	var err error
	if in.em, err = emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: face, RateLimit: calls}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.em.Close(); err != nil {
			t.Error(err)
		}
	})
	in.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(in.answer) }))
	t.Cleanup(in.receiver.Close)
	in.do(in.em.AddUser(botLogin, botToken, emulator.UserOptions{}))
	access := map[string]emulator.Permission{botLogin: emulator.Admin, adminLogin: emulator.Admin}
	for _, login := range []string{adminLogin, "ada", "edsger", "mallory"} {
		in.do(in.em.AddUser(login, login+"-token", emulator.UserOptions{}))
	}
	access["ada"], access["edsger"] = emulator.Write, emulator.Write
	in.do(in.em.SetTeam("acme/sre", "", adminLogin, "edsger"))
	in.do(in.em.CreateRepo(repoName, emulator.RepoOptions{Author: adminLogin, Access: access,
		Files: map[string]string{"README.md": "vessels\n", ".liftlock.yaml": pipelineFile, "argocd/apps.yaml": "kind: ApplicationSet\n"}}))
	in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}}))
	in.guardBranches(botLogin)
	head, err := in.em.CommitAs(repoName, "ada", "topic", "Change it", map[string]string{"a.txt": "a\n"})
	in.do(err)
	_, err = in.em.OpenPull(repoName, "ada", "topic", "main", "Change it", "")
	in.do(err)
	in.do(in.em.SetStatus(repoName, "ada", head, emulator.Status{Context: "ci/build", State: "success"}))
	in.argocd, err = argoemulator.New(argoemulator.Options{Repos: in.em})
	in.do(err)
	t.Cleanup(func() { in.do(in.argocd.Close()) })
	in.do(in.argocd.AddApplication(argoemulator.AppSpec{Name: "web-dev", Repo: repoName, Path: "apps/web/dev", DestinationNamespace: "dev"}))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	in.do(in.argocd.WriteKubeconfig(kubeconfig))
	in.file = strings.NewReplacer("KUBECONFIG", kubeconfig, "EXTERNAL", in.receiver.URL, "TYPE", string(face), "APIADDRESS", in.em.APIURL(), "FOLDER", t.TempDir()).Replace(serverFile)
	if _, err := in.driver(in.config()).(forge.Forge).EnsureHook(context.Background(), forge.Repo{Owner: "acme", Name: "vessels"}, forge.Hook{URL: in.hookURL(), Secret: hookSecret}); err != nil {
		t.Fatal(err)
	}
	return in
}

func (in *installation) hookURL() string { return in.receiver.URL + "/webhooks/hub" }

func (in *installation) do(err error) {
	in.t.Helper()
	if err != nil {
		in.t.Fatal(err)
	}
}

// guardBranches lets only these accounts push where promotions and reverts come from, and holds are.
func (in *installation) guardBranches(logins ...string) {
	in.t.Helper()
	for _, pattern := range []string{"liftlock/**/*", "liftlock-revert/**/*", "liftlock-state"} {
		in.do(in.em.GuardBranches(repoName, pattern, logins...))
	}
}

// config is the server's file as it is now.
func (in *installation) config() *config.Config {
	in.t.Helper()
	c, err := in.load()
	in.do(err)
	return c
}

func (in *installation) load() (*config.Config, error) {
	in.t.Helper()
	path := filepath.Join(in.t.TempDir(), "liftlock.yaml")
	in.do(os.WriteFile(path, []byte(in.file), 0o600))
	return config.Load(path, func(name string) (string, bool) { v, ok := in.env[name]; return v, ok })
}

// driver is the forge's real one, as the file has it.
func (in *installation) driver(c *config.Config) doctor.Forge {
	in.t.Helper()
	f := c.Forges[0]
	var d doctor.Forge
	var err error
	switch {
	case in.face == emulator.GitLab:
		d, err = gitlab.New(gitlab.Options{URL: f.URL, Token: f.Auth.Token.Reveal()}, gitlab.CallLimits{})
	case f.Auth.App != nil:
		d, err = github.NewApp(github.Options{URL: f.URL}, github.AppOptions{ID: f.Auth.App.Issuer(), PrivateKeyFile: f.Auth.App.PrivateKeyFile, Repositories: []forge.Repo{{Owner: "acme", Name: "vessels"}}})
	default:
		d, err = github.New(github.Options{URL: f.URL, Token: f.Auth.Token.Reveal()})
	}
	in.do(err)
	return d
}

// inspectedArgoCD reads the Argo CD as the server would.
type inspectedArgoCD struct{ options argocd.Options }

func (i inspectedArgoCD) Inspect(ctx context.Context, now time.Time) (*argocd.Inspection, error) {
	return argocd.Inspect(ctx, i.options, now)
}

func (in *installation) newArgoCD(c *config.Config) doctor.ArgoCD {
	in.t.Helper()
	a := c.ArgoCD[0]
	o := argocd.Options{Name: a.Name, Kubeconfig: a.Kubernetes.Kubeconfig, Namespaces: a.Kubernetes.Namespaces, Clusters: a.Clusters.Live, Refresh: a.Refresh, APIAlone: a.APIAlone}
	if a.API != nil {
		ca, err := api.ReadCAFile(a.API.CAFile)
		in.do(err)
		o.API, err = api.New(api.Options{URL: a.API.URL, Token: a.API.Token.Reveal(), CA: ca})
		in.do(err)
	}
	return inspectedArgoCD{o}
}

// examine runs doctor on it.
func (in *installation) examine(ctx context.Context) *doctor.Report {
	in.t.Helper()
	c, err := in.load()
	if err != nil {
		return doctor.InvalidFile(err)
	}
	d, probers := in.driver(c), map[string]doctor.Prober{}
	if in.prober != nil {
		probers["hub"] = in.prober(d.(doctor.Prober))
	}
	return doctor.Run(ctx, doctor.Options{
		Config: c, Host: &in.host, Forges: map[string]doctor.Forge{"hub": d}, Probers: probers, ArgoCDs: map[string]doctor.ArgoCD{"hub": in.newArgoCD(c)}, Timeout: in.timeout,
		Now: func() time.Time { return time.Now().Add(in.off) },
	})
}

// push has something happen that the webhook is sent, and waits until it was answered.
func (in *installation) push() {
	in.t.Helper()
	_, err := in.em.CommitAs(repoName, adminLogin, "main", "Change it", map[string]string{"README.md": time.Now().String() + "\n"})
	in.do(err)
	in.do(in.em.WaitIdle(context.Background()))
}

// editPipeline replaces something in the pipeline file, which must be there.
func editPipeline(old, with string) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		was, _, err := in.em.File(repoName, "main", ".liftlock.yaml")
		in.do(err)
		if !strings.Contains(was, old) {
			in.t.Fatalf("the pipeline file has no %q", old)
		}
		_, err = in.em.CommitAs(repoName, adminLogin, "main", "Change the pipeline", map[string]string{".liftlock.yaml": strings.Replace(was, old, with, 1)})
		in.do(err)
	}
}

func faces(only ...emulator.Face) []emulator.Face {
	if len(only) > 0 {
		return only
	}
	return []emulator.Face{emulator.GitHub, emulator.GitLab}
}
