//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// serverStop bounds how long a server may take to end what it has begun.
const serverStop = 30 * time.Second

// server is one `liftlock serve` and its file. It can be started again on the
// same data.
type server struct {
	cluster *testCluster
	dir     string
	address string
	repo    string // owner/name
	secret  string
	refresh string // of the Argo CD
	// manifests is another repository, which manifests are hydrated into; empty: none.
	manifests string
	edge      *testCluster // of another Argo CD, by that name; nil: there is one only
	// kubeconfig is whom Kubernetes takes it for; empty: the cluster's administrator.
	kubeconfig string
	live       bool // clusters are known from Argo CD's Secrets
	// apiAlone: it reaches Argo CD by this address of its own API alone; empty: by
	// Kubernetes, and its own API beside it.
	apiAlone string
	further  string // lines of its file
	onboard  bool   // the repository is proposed a pipeline file
	cmd      *exec.Cmd
	done     chan error
}

// newServer writes nothing yet: start does.
func newServer(w *testCluster, dir, repo string) (*server, error) {
	// The hooks need the address before the server runs, and after a restart it
	// must be the same.
	address, err := emulator.FreeAddress()
	return &server{cluster: w, dir: dir, address: address, repo: repo, secret: rand.Text(), refresh: "annotation"}, err
}

// argocdYAML is how the server's file reaches Argo CD, whose API lets everybody in.
func (s *server) argocdYAML() string {
	if s.apiAlone != "" {
		return fmt.Sprintf("    api: {url: %q, token: lab}\n    render: argocd\n", s.apiAlone)
	}
	return fmt.Sprintf("    kubernetes: {kubeconfig: %s, namespaces: [argocd]}\n    api: {url: \"http://%s\", token: lab}\n    refresh: %s\n    clusters: {live: %t}\n",
		cmp.Or(s.kubeconfig, s.cluster.kubeconfig), s.cluster.argocd.server, s.refresh, s.live)
}

// edgeYAML is how the server's file reaches another Argo CD.
func (s *server) edgeYAML() string {
	if s.edge == nil {
		return ""
	}
	other := server{cluster: s.edge, refresh: s.refresh}
	return "  - name: edge\n" + other.argocdYAML()
}

func (s *server) manifestsYAML() string {
	if s.manifests == "" {
		return ""
	}
	return fmt.Sprintf("  - {forge: gitea, name: %s, branch: main, manageWebhooks: true}\n", s.manifests)
}

// configYAML is the server's file. Secrets come through the environment.
func (s *server) configYAML() string {
	return fmt.Sprintf(`listen: %s
externalURL: http://%s
dataDir: %s
forges:
  - name: gitea
    type: gitea
    url: %s
    auth: {token: "${E2E_FORGE_TOKEN}"}
    webhookSecrets: ["${E2E_WEBHOOK_SECRET}"]
repositories:
  - {forge: gitea, name: %s, branch: main, manageWebhooks: true, onboard: %t}
%sargocd:
  - name: lab
%s`, s.address, s.address, filepath.Join(s.dir, "data"), s.cluster.giteaURL, s.repo, s.onboard, s.manifestsYAML(), s.argocdYAML()+s.edgeYAML()+s.further)
}

func (s *server) logFile() string { return filepath.Join(s.dir, "liftlock.log") }

// start writes the server's file and runs the program; the log goes on in the same file.
func (s *server) start(ctx context.Context) error {
	file := filepath.Join(s.dir, "liftlock.yaml")
	if err := os.WriteFile(file, []byte(s.configYAML()), 0o600); err != nil {
		return err
	}
	return s.run(ctx, []string{"serve", "--config", file, "--log-level", "debug", "--log-format", "console"},
		"E2E_FORGE_TOKEN="+s.cluster.accounts[bot].token, "E2E_WEBHOOK_SECRET="+s.secret)
}

// run runs the program with further variables and waits until it is ready.
func (s *server) run(ctx context.Context, args []string, env ...string) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// If the tests die, the server must not outlive them.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start liftlock serve: %w", err)
	}
	s.done = make(chan error, 1)
	go func() { s.done <- s.cmd.Wait() }()
	return s.awaitReady(ctx)
}

func (s *server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	last := errors.New("no answer yet")
	for {
		select {
		case err := <-s.done:
			s.done <- err
			return fmt.Errorf("liftlock serve ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("liftlock serve is not ready: %w", last)
		case <-time.After(pollInterval):
		}
		var lines string
		if lines, last = s.getText(ctx, "/readyz"); last == nil && strings.HasPrefix(lines, "engine: ok\n") {
			return nil
		}
		if last == nil {
			last = errors.New(lines)
		}
	}
}

// stop ends the server as an init system would; it must end by itself and well.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	defer func() { s.cmd = nil }()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.done:
		if err != nil {
			return fmt.Errorf("liftlock serve did not end well: %w", err)
		}
		return nil
	case <-time.After(serverStop):
		return errors.Join(fmt.Errorf("liftlock serve did not end within %s of SIGTERM", serverStop), s.cmd.Process.Kill(), <-s.done)
	}
}

// maxAnswer bounds an answer of the API.
const maxAnswer = 8 << 20

// getText reads from the server; an answer that is none is an error.
func (s *server) getText(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s: %s", path, resp.Status, bytes.TrimSpace(body))
	}
	return string(body), nil
}

// getJSON reads from the API.
func (s *server) getJSON(ctx context.Context, path string, into any) error {
	body, err := s.getText(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// getWhy asks what Liftlock thinks of a component.
func (s *server) getWhy(ctx context.Context, component string) (*api.Why, error) {
	var w api.Why
	return &w, s.getJSON(ctx, "/api/v1/why?pipeline=shop&component="+url.QueryEscape(component), &w)
}

// logTail is how much of a server's log a failure prints.
const logTail = 120

// printLogTail prints the end of the log, without the lines that tell of nothing but routine.
func (s *server) printLogTail(t *testing.T) {
	data, err := os.ReadFile(s.logFile())
	if err != nil {
		t.Logf("no log: %v", err)
		return
	}
	var lines []string
	for _, l := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if !strings.Contains(l, "\tDEBUG\t") {
			lines = append(lines, l)
		}
	}
	if len(lines) > logTail {
		lines = lines[len(lines)-logTail:]
	}
	t.Logf("the end of %s:\n%s", s.logFile(), strings.Join(lines, "\n"))
}
