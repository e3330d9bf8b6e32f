package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/server/config"
)

// printedPassword is the line of what is announced about a generated password that has it.
var printedPassword = regexp.MustCompile(`(?m)^    ([A-Z2-7]{26})$`)

// passwordWorld is a server's file whose console takes the generated password, and what starts of it have announced.
type passwordWorld struct {
	t         *testing.T
	file      string
	announced []string
	logs      *observer.ObservedLogs
}

func newPasswordWorld(t *testing.T) *passwordWorld {
	dir := t.TempDir()
	w := &passwordWorld{t: t, file: filepath.Join(dir, "liftlock.yaml")}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(deadCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `listen: 127.0.0.1:0
readAccess: token
dataDir: ` + filepath.Join(dir, "data") + `
forges:
  - {name: hub, type: github, url: "http://127.0.0.1:1", auth: {token: x}, webhookSecrets: [a-webhook-secret]}
repositories: [{forge: hub, name: acme/fleet}]
argocd: [{name: hub, kubernetes: {kubeconfig: ` + kubeconfig + `}}]
`
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// start builds the server and gives what the holder of a secret is answered. It is closed before the next start.
func (w *passwordWorld) start(reset bool, change func(*Options)) (answer func(secret string) int, stop func()) {
	w.t.Helper()
	cfg, err := config.Load(w.file, os.LookupEnv)
	if err != nil {
		w.t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	w.logs = logs
	o := Options{Config: cfg, Version: "test", Log: zap.New(core), ResetAdmin: reset, Announce: func(text string) { w.announced = append(w.announced, text) }}
	if change != nil {
		change(&o)
	}
	s, err := New(context.Background(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	main, _ := s.handlers(w.t)
	return func(secret string) int {
		return frontRequest{method: http.MethodGet, path: "/api/v1/pipelines", host: "127.0.0.1", token: secret}.send(main).Code
	}, s.Close
}

// TestAdminPassword has the first start generate a password where nothing else opens the console, and print it once.
func TestAdminPassword(t *testing.T) {
	w := newPasswordWorld(t)
	answer, stop := w.start(false, nil)
	if len(w.announced) != 1 {
		t.Fatalf("the first start announced %q", w.announced)
	}
	found := printedPassword.FindStringSubmatch(w.announced[0])
	if found == nil || !strings.Contains(w.announced[0], "/login/token") {
		t.Fatalf("it announced %s", w.announced[0])
	}
	first := found[1]
	if got := [3]int{answer(first), answer("another"), answer("")}; got != [3]int{200, 401, 401} {
		t.Errorf("it, another and none are answered %v", got)
	}
	for _, e := range w.logs.All() {
		if strings.Contains(e.Message, first) {
			t.Errorf("the log has it: %s", e.Message)
		}
	}
	stop()
	answer, stop = w.start(false, nil)
	if len(w.announced) != 1 || answer(first) != 200 {
		t.Errorf("the second start announced %q, and answers %d", w.announced[1:], answer(first))
	}
	stop()
	answer, stop = w.start(true, nil)
	if len(w.announced) != 2 || answer(first) != 401 || answer(printedPassword.FindStringSubmatch(w.announced[1])[1]) != 200 {
		t.Errorf("a reset announced %q, and the first one is answered %d", w.announced[1:], answer(first))
	}
	stop()
	_, stop = w.start(false, func(o *Options) { o.Announce = nil })
	stop()
	if len(w.announced) != 2 {
		t.Errorf("announced without a way to: %q", w.announced)
	}
}

// TestAdminPasswordEnds has the generated password count only while neither tokens nor a login are configured.
func TestAdminPasswordEnds(t *testing.T) {
	w := newPasswordWorld(t)
	_, stop := w.start(false, nil)
	stop()
	password := printedPassword.FindStringSubmatch(w.announced[0])[1]
	answer, stop := w.start(false, func(o *Options) {
		o.Config.API.Tokens = []config.Token{{Name: "ci", Role: config.Viewer, Token: "a-token-of-a-viewer"}}
	})
	defer stop()
	if len(w.announced) != 1 || answer(password) != 401 || answer("a-token-of-a-viewer") != 200 {
		t.Errorf("announced %q; it is answered %d, and the token %d", w.announced, answer(password), answer("a-token-of-a-viewer"))
	}
}
