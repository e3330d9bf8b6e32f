package argoemulator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// newAPIClient makes a client of the emulated Argo CD's own API.
func (a *apiHarness) newAPIClient(token string) *api.Client {
	a.t.Helper()
	authority := filepath.Join(a.t.TempDir(), "ca.pem")
	a.must(a.ArgoCD.WriteAuthority(authority))
	pem, err := os.ReadFile(authority)
	a.must(err)
	client, err := api.New(api.Options{URL: a.ArgoCD.APIURL(), Token: token, CA: pem, Wait: time.Millisecond})
	a.must(err)
	return client
}

// TestResourceTree tells by its pods why a release doesn't get ready.
func TestResourceTree(t *testing.T) {
	c := newAPIHarness(t, argoemulator.FastTimings(), 1)
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

// TestAPIManifests renders an Application at a commit, or says why it can't.
func TestAPIManifests(t *testing.T) {
	c := newAPIHarness(t, argoemulator.FastTimings(), 1)
	client := c.newAPIClient(c.ArgoCD.APIToken())
	commit, err := c.Forge.CommitAs(repo, "ada", "other", "a release", map[string]string{
		"a0/kustomization.yaml": "images: [{name: registry.example/web, newTag: 1.1.0}]\nreplicas: [{name: web, count: 2}]\n"})
	c.must(err)
	q := api.ManifestQuery{Namespace: "argocd", Name: "a0", Project: "default", Revision: commit}
	got, err := client.Manifests(c.ctx, q)
	if all := strings.Join(got, "\n"); err != nil || len(got) != 3 || !strings.Contains(all, `"image":"registry.example/web:1.1.0"`) || !strings.Contains(all, `"replicas":2`) || !strings.Contains(all, `"password":"++++++++"`) {
		t.Errorf("%v, %v", got, err)
	}
	q.Revision = ""
	if own, err := client.Manifests(c.ctx, q); err != nil || strings.Contains(strings.Join(own, ""), "1.1.0") {
		t.Errorf("at its own revision: %v, %v", own, err)
	}
	c.must(c.ArgoCD.SetFault("argocd", "a0", argoemulator.AppFault{RenderError: "plugin sidecar failed"}))
	if _, err := client.Manifests(c.ctx, q); !api.IsRendering(err) || !strings.Contains(err.Error(), "plugin sidecar failed") {
		t.Errorf("while a plugin fails: %v", err)
	}
	q.Name = "none"
	if _, err := client.Manifests(c.ctx, q); !api.IsNotFound(err) {
		t.Errorf("an Application that isn't there: %v", err)
	}
}

// TestAPI lists, streams, refreshes and syncs as Argo CD's own API does.
func TestAPI(t *testing.T) {
	c := newAPIHarness(t, argoemulator.FastTimings(), 2)
	client := c.newAPIClient(c.ArgoCD.APIToken())
	count := func(f api.ApplicationFilter) int {
		body, err := client.ListApplications(c.ctx, f)
		c.must(err)
		defer body.Close()
		var list struct{ Items []json.RawMessage }
		c.must(json.NewDecoder(body).Decode(&list))
		return len(list.Items)
	}
	for want, f := range map[int]api.ApplicationFilter{2: {}, 1: {Selector: "team=shop"}, 0: {Projects: []string{"other"}}} {
		if got := count(f); got != want {
			t.Errorf("%+v: %d Applications, want %d", f, got, want)
		}
	}
	if got := count(api.ApplicationFilter{Namespace: "elsewhere"}); got != 0 {
		t.Errorf("%d Applications in another namespace", got)
	}
	if version, err := client.Version(c.ctx); err != nil || !strings.HasPrefix(version, "v2.14.") {
		t.Errorf("the version is %s, %v", version, err)
	}
	if may, err := client.MaySee(c.ctx, api.Applications, ""); err != nil || !may {
		t.Errorf("what may be seen: %t, %v", may, err)
	}

	sent, events, done := make(chan struct{}), make(chan api.Event, 1000), make(chan error, 1)
	go func() {
		done <- client.StreamApplications(c.ctx, api.ApplicationFilter{}, func() { close(sent) }, func(e api.Event) { events <- e })
	}()
	<-sent
	raw, err := client.Application(c.ctx, "argocd", "a1", "default", true)
	if err != nil || strings.Contains(string(raw), "argocd.argoproj.io/refresh") {
		t.Errorf("after a refresh: %v %s", err, raw)
	}
	// The stream may have begun a moment after the first change.
	c.must(c.ArgoCD.SetFault("argocd", "a1", argoemulator.AppFault{Health: "Degraded"}))
	for degraded := false; !degraded; {
		select {
		case e := <-events:
			degraded = e.Type == "MODIFIED" && strings.Contains(string(e.Application), `"Degraded"`)
		case <-c.ctx.Done():
			t.Fatal("nobody says that it is degraded")
		}
	}
	c.must(client.Sync(c.ctx, api.SyncRequest{Name: "a0", Namespace: "argocd", Project: "default", Infos: []api.SyncInfo{{Name: "Reason", Value: "a test"}}}))
	for synced := false; !synced; {
		select {
		case e := <-events:
			synced = strings.Contains(string(e.Application), `"a test"`) && strings.Contains(string(e.Application), `"Succeeded"`)
		case <-c.ctx.Done():
			t.Fatal("the sync has not succeeded")
		}
	}
	c.ArgoCD.CutWatches()
	if err := <-done; err != nil {
		t.Errorf("the stream that was cut: %v", err)
	}
}
