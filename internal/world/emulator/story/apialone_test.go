package story_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// dropKubernetes takes the access to Kubernetes out of the server's file, and away.
func dropKubernetes(t *testing.T, w *story.Fixture) {
	t.Helper()
	text, err := os.ReadFile(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	alone := strings.Replace(string(text), "    kubernetes: {kubeconfig: kubeconfig, namespaces: [argocd]}\n", "", 1)
	if alone == string(text) {
		t.Fatalf("there is no access to Kubernetes in\n%s", text)
	}
	if err := os.WriteFile(w.Config, []byte(alone), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.Dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
}

// TestByAPIAlone tells the story to a server that knows Argo CD by its own API only, while
// the stream of changes keeps breaking.
func TestByAPIAlone(t *testing.T) {
	t.Parallel()
	r := startRun(t, runOptions{apiAlone: true})
	cut := time.NewTicker(2500 * time.Millisecond)
	defer cut.Stop()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-cut.C:
				r.fixture.ArgoCD.CutWatches()
			case <-done:
				return
			}
		}
	}()
	if err := r.runStory(); err != nil {
		t.Fatal(err)
	}
	r.checkEnd()
	if n := r.fixture.ArgoCD.Requests()["GET applications"]; n > 0 {
		t.Errorf("Kubernetes was asked %d times", n)
	}
}
