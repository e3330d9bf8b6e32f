//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// The worlds are named by these variables; the lab knows their addresses.
const (
	clusterVariable     = "LIFTLOCK_E2E_WORLD"      // Argo CD looks often
	slowClusterVariable = "LIFTLOCK_E2E_SLOW_WORLD" // Argo CD believes for ten minutes that a branch hasn't moved
	artifactsVariable   = "LIFTLOCK_E2E_ARTIFACTS"  // where servers' logs are kept
	programVariable     = "LIFTLOCK_E2E_PROGRAM"    // the liftlock to test; not set: it is built
)

// runID is in the names of all that this run makes, so that runs don't meet.
var runID = strconv.FormatInt(time.Now().Unix()%(36*36*36*36*36), 36)

// program is the liftlock that is tested, artifacts the folder of its logs.
var program, artifacts string

// testCluster is one lab world, with the accounts that the stories share.
type testCluster struct {
	name       string
	kubeconfig string
	argocd     argocdClient
	helm       string // the program
	kubectl    string // the program
	giteaURL   string // URL
	adminToken string
	kube       dynamic.Interface
	accounts   map[string]*account
	org        string
}

// argocdClient is Argo CD's own command line, of the world's version.
type argocdClient struct{ program, server, version string }

// The worlds; set before the first test.
var normalCluster, slowCluster *testCluster

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	artifacts = os.Getenv(artifactsVariable)
	if artifacts == "" {
		artifacts = filepath.Join(os.TempDir(), "liftlock-e2e-"+runID)
	}
	// Paths end up in files that servers read, from another folder.
	var err error
	if artifacts, err = filepath.Abs(artifacts); err == nil {
		err = os.MkdirAll(artifacts, 0o750)
	}
	if program = os.Getenv(programVariable); err == nil && program == "" {
		program = filepath.Join(artifacts, "liftlock")
		err = buildProgram(program)
	}
	if err == nil {
		normalCluster, err = findCluster(clusterVariable, "e2e")
	}
	if err == nil {
		slowCluster, err = findCluster(slowClusterVariable, "e2e-slow")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "e2e: the servers' logs and files are in %s\n", artifacts)
	}
	return code
}

func buildProgram(to string) error {
	c := exec.Command("go", "build", "-o", to, "github.com/liftlock/liftlock/cmd/liftlock")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build liftlock: %w\n%s", err, out)
	}
	return nil
}

// findCluster asks the lab where a world is and makes its accounts.
func findCluster(variable, name string) (*testCluster, error) {
	if v := os.Getenv(variable); v != "" {
		name = v
	}
	if normalCluster != nil && normalCluster.name == name { // by hand: stories that need the one only
		return normalCluster, nil
	}
	lab, err := filepath.Abs("../../deploy/lab/lab")
	if err != nil {
		return nil, err
	}
	c := exec.Command("bash", "-c", `set -eu; vars=$("$0" env); eval "$vars"; printf '%s\n' "$KUBECONFIG" "$GITEA_URL" "$GITEA_TOKEN" "$(command -v argocd)" "$ARGOCD_SERVER" "$ARGOCD_VERSION" "$(command -v helm)" "$(command -v kubectl)"`, lab)
	c.Env = append(os.Environ(), "LIFTLOCK_LAB_RUN="+name)
	out, err := c.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 8 {
		return nil, fmt.Errorf("the lab's world %q is not up; make e2e brings it up: %w\n%s", name, err, out)
	}
	w := &testCluster{name: name, kubeconfig: lines[0], giteaURL: lines[1], adminToken: lines[2], argocd: argocdClient{lines[3], lines[4], lines[5]}, helm: lines[6], kubectl: lines[7]}
	rest, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the world %q: %w", name, err)
	}
	rest.QPS, rest.Burst = 200, 400 // the stories poll side by side through one client
	if w.kube, err = dynamic.NewForConfig(rest); err != nil {
		return nil, err
	}
	if err := w.createAccounts(); err != nil {
		return nil, fmt.Errorf("make the accounts in the Gitea of the world %q: %w", name, err)
	}
	return w, nil
}

// cleanupContext bounds a call that cleans up or reports after a test's own context ended.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}
