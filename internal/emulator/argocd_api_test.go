package emulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/emulator"
)

// newAPIClient makes a client of the emulated Argo CD's own API.
func (c *apiHarness) newAPIClient(token string) *api.Client {
	c.t.Helper()
	authority := filepath.Join(c.t.TempDir(), "ca.pem")
	c.must(c.ArgoCD.WriteAuthority(authority))
	pem, err := os.ReadFile(authority)
	c.must(err)
	client, err := api.New(api.Options{URL: c.ArgoCD.APIURL(), Token: token, CA: pem, Wait: time.Millisecond})
	c.must(err)
	return client
}

// TestResourceTree tells by its pods why a release doesn't get ready.
func TestResourceTree(t *testing.T) {
	c := newAPIHarness(t, emulator.FastTimings(), 1)
	client := c.newAPIClient(c.ArgoCD.APIToken())
	_, err := c.Forge.CommitAs(repo, "ada", "main", "a release", map[string]string{
		"a0/kustomization.yaml": "images: [{name: web, newTag: 1.1.0-broken}]\nreplicas: [{name: web, count: 2}]\n"})
	c.must(err)
	var pods []string
	for deadline := time.Now().Add(30 * time.Second); len(pods) != 2 && time.Now().Before(deadline); {
		nodes, err := client.ResourceTree(c.ctx, "argocd", "a0", "default")
		c.must(err)
		pods = nil
		for _, n := range nodes {
			if n.Kind == "Pod" && n.Health.Status == "Degraded" && n.Info[0].Value == "ImagePullBackOff" && n.Parents[0].Kind == "ReplicaSet" {
				pods = append(pods, n.Name)
			}
		}
	}
	if len(pods) != 2 {
		t.Errorf("the pods that don't start are %v", pods)
	}
	if _, err := client.ResourceTree(c.ctx, "argocd", "none", "default"); !api.IsNotFound(err) {
		t.Errorf("an Application that isn't there: %v", err)
	}
	if _, err := client.ResourceTree(c.ctx, "argocd", "none", ""); !api.IsForbidden(err) {
		t.Errorf("one of no known project: %v", err)
	}
	if _, err := c.newAPIClient("another").ResourceTree(c.ctx, "argocd", "a0", ""); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with another token: %v", err)
	}
	c.ArgoCD.FailRequests("", "api/resource-tree", -1, 500)
	if _, err := client.ResourceTree(c.ctx, "argocd", "a0", ""); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("while it fails: %v", err)
	}
}
