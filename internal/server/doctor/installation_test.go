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

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/forge/gitlab"
	"github.com/liftlock/liftlock/internal/server/doctor"
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
	receiver *httptest.Server // of webhooks
	answer   int              // what it answers
	host     testHost
	env      map[string]string
	file     string // the server's file
	key      string // the file of the App's key
	off      time.Duration
	timeout  time.Duration
}

// testHost is a machine as it is wanted.
type testHost struct {
	gitErr, dirErr, diskErr error
	free                    int64
}

func (h *testHost) CheckGit(context.Context) (string, error) { return "2.39", h.gitErr }
func (h *testHost) FreeBytes(string) (int64, error)          { return h.free, h.diskErr }
func (h *testHost) MayWrite(string) error                    { return h.dirErr }

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
    kubernetes: {namespaces: [argocd]}
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
	in.do(in.em.AddUser(adminLogin, "grace-token", emulator.UserOptions{}))
	in.do(in.em.CreateRepo(repoName, emulator.RepoOptions{Author: adminLogin, Files: map[string]string{"README.md": "vessels\n"},
		Access: map[string]emulator.Permission{botLogin: emulator.Admin, adminLogin: emulator.Admin}}))
	in.file = strings.NewReplacer("EXTERNAL", in.receiver.URL, "TYPE", string(face), "APIADDRESS", in.em.APIURL(), "FOLDER", t.TempDir()).Replace(serverFile)
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
		d, err = gitlab.New(gitlab.Options{URL: f.URL, Token: f.Auth.Token.Reveal()})
	case f.Auth.App != nil:
		d, err = github.NewApp(github.Options{URL: f.URL}, github.AppOptions{ID: f.Auth.App.Issuer(), PrivateKeyFile: f.Auth.App.PrivateKeyFile, Repositories: []forge.Repo{{Owner: "acme", Name: "vessels"}}})
	default:
		d, err = github.New(github.Options{URL: f.URL, Token: f.Auth.Token.Reveal()})
	}
	in.do(err)
	return d
}

// examine runs doctor on it.
func (in *installation) examine() *doctor.Report {
	in.t.Helper()
	c, err := in.load()
	if err != nil {
		return doctor.InvalidFile(err)
	}
	return doctor.Run(context.Background(), doctor.Options{
		Config: c, Host: &in.host, Forges: map[string]doctor.Forge{"hub": in.driver(c)}, Timeout: in.timeout,
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

func faces(only ...emulator.Face) []emulator.Face {
	if len(only) > 0 {
		return only
	}
	return []emulator.Face{emulator.GitHub, emulator.GitLab}
}
