package argoemulator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// repo is the repository that the tests deploy from.
const repo = "acme/fleet"

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// apiHarness is a world at full speed and a client of its API server.
type apiHarness struct {
	*emulator.Simulation
	t      *testing.T
	ctx    context.Context
	config *rest.Config
	dynamic.NamespaceableResourceInterface
}

func newAPIHarness(t *testing.T, timings argoemulator.Timings, apps int) *apiHarness {
	t.Helper()
	w, err := emulator.New(emulator.Options{Dir: t.TempDir(), Timings: timings})
	if err != nil {
		t.Fatal(err)
	}
	c := &apiHarness{Simulation: w, t: t}
	t.Cleanup(func() { c.must(w.Close()) })
	c.must(w.Forge.AddUser("ada", "ada-token", emulator.UserOptions{}))
	files := map[string]string{}
	for i := range apps {
		files[fmt.Sprintf("a%d/kustomization.yaml", i)] = "images: [{name: web, newTag: 1.0.0}]\n"
	}
	c.must(w.Forge.CreateRepo(repo, emulator.RepoOptions{Author: "ada", Files: files, Access: map[string]emulator.Permission{"ada": emulator.Write}}))
	for i := range apps {
		c.must(w.ArgoCD.AddApplication(argoemulator.AppSpec{
			Name: fmt.Sprintf("a%d", i), Repo: repo, Path: fmt.Sprintf("a%d", i), DestinationNamespace: "qa", ApplicationSet: "shop",
			Labels: map[string]string{"team": []string{"shop", "search"}[i%2]},
		}))
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	c.must(w.ArgoCD.WriteKubeconfig(kubeconfig))
	c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	c.must(err)
	client, err := dynamic.NewForConfig(c.config)
	c.must(err)
	c.NamespaceableResourceInterface = client.Resource(applications)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c.ctx = ctx
	return c
}

func (a *apiHarness) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// quietTimings is a pace at which nothing happens by itself.
func quietTimings() argoemulator.Timings {
	p := argoemulator.FastTimings()
	p.Resync, p.Bookmark = 0, 20*time.Millisecond
	return p
}

func (a *apiHarness) requestRefresh(name string) error {
	_, err := a.Namespace("argocd").Patch(a.ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`), metav1.PatchOptions{})
	return err
}

func TestAPI_listAndGet(t *testing.T) {
	c := newAPIHarness(t, quietTimings(), 5)
	for _, n := range []int64{1, 2, 5, 100} {
		var names []string
		o := metav1.ListOptions{Limit: n}
		for {
			page, err := c.List(c.ctx, o)
			c.must(err)
			for _, x := range page.Items {
				names = append(names, x.GetName())
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				break
			}
			if len(page.Items) != int(n) {
				t.Errorf("a page of %d has %d", n, len(page.Items))
			}
		}
		if want := []string{"a0", "a1", "a2", "a3", "a4"}; !slices.Equal(names, want) {
			t.Errorf("in pages of %d: %v", n, names)
		}
	}
	cached, err := c.List(c.ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	c.must(err)
	if len(cached.Items) != 5 {
		t.Errorf("from the watch cache: %d, want all in spite of the limit", len(cached.Items))
	}
	shop, err := c.Namespace("argocd").List(c.ctx, metav1.ListOptions{LabelSelector: "team=shop"})
	c.must(err)
	if len(shop.Items) != 3 {
		t.Errorf("with the label: %d, want 3", len(shop.Items))
	}
	x, err := c.Namespace("argocd").Get(c.ctx, "a1", metav1.GetOptions{})
	c.must(err)
	text := func(fields ...string) string {
		s, _, err := unstructured.NestedString(x.Object, fields...)
		c.must(err)
		return s
	}
	head, err := c.Forge.Head(repo, "main")
	c.must(err)
	if text("status", "sync", "revision") != head || text("status", "sync", "status") != "Synced" || text("status", "health", "status") != "Healthy" ||
		text("spec", "source", "repoURL") != c.Forge.CloneURL(repo) || x.GetOwnerReferences()[0].Name != "shop" || x.GetUID() == "" {
		t.Errorf("the Application: %v", x.Object)
	}
	if _, err := c.Namespace("argocd").Get(c.ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting what isn't there: %v", err)
	}
	c.must(c.ArgoCD.AddObject("appprojects", map[string]any{"metadata": map[string]any{"name": "default", "namespace": "argocd"}}))
	client, err := dynamic.NewForConfig(c.config)
	c.must(err)
	for resource, want := range map[string]int{"appprojects": 1, "applicationsets": 0} {
		list, err := client.Resource(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: resource}).List(c.ctx, metav1.ListOptions{})
		c.must(err)
		if len(list.Items) != want {
			t.Errorf("%d %s, want %d", len(list.Items), resource, want)
		}
	}
}

func TestAPI_discoveryAndAccess(t *testing.T) {
	c := newAPIHarness(t, quietTimings(), 1)
	d, err := discovery.NewDiscoveryClientForConfig(c.config)
	c.must(err)
	list, err := d.ServerResourcesForGroupVersion("argoproj.io/v1alpha1")
	c.must(err)
	if len(list.APIResources) != 3 {
		t.Errorf("resources: %v", list)
	}
	if _, _, err := d.ServerGroupsAndResources(); err != nil {
		t.Error(err)
	}
	stranger := rest.CopyConfig(c.config)
	stranger.BearerToken = "wrong"
	client, err := dynamic.NewForConfig(stranger)
	c.must(err)
	if _, err := client.Resource(applications).List(c.ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a wrong token: %v", err)
	}
	c.ArgoCD.FailRequests("PATCH", "applications", 1, 403)
	if err := c.requestRefresh("a0"); !apierrors.IsForbidden(err) {
		t.Errorf("a forbidden patch: %v", err)
	}
	c.must(c.requestRefresh("a0"))
	if n := c.ArgoCD.Requests()["PATCH applications"]; n != 2 {
		t.Errorf("%d patches were counted: %v", n, c.ArgoCD.Requests())
	}
}

func TestAPI_patch(t *testing.T) {
	p := quietTimings()
	p.Compare = time.Hour // nothing takes the annotation away
	c := newAPIHarness(t, p, 1)
	in := c.Namespace("argocd")
	c.must(c.requestRefresh("a0"))
	x, err := in.Get(c.ctx, "a0", metav1.GetOptions{})
	c.must(err)
	if x.GetAnnotations()["argocd.argoproj.io/refresh"] != "normal" {
		t.Errorf("annotations: %v", x.GetAnnotations())
	}
	version := x.GetResourceVersion()
	c.must(c.requestRefresh("a0"))
	if x, err = in.Get(c.ctx, "a0", metav1.GetOptions{}); err != nil || x.GetResourceVersion() != version {
		t.Errorf("a patch that changes nothing made version %s of %s, %v", x.GetResourceVersion(), version, err)
	}
	patch := func(kind types.PatchType, body string) error {
		_, err := in.Patch(c.ctx, "a0", kind, []byte(body), metav1.PatchOptions{})
		return err
	}
	c.must(patch(types.MergePatchType, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":null}}}`))
	if err := patch(types.MergePatchType, `{"metadata":{"resourceVersion":"`+version+`"},"operation":{"sync":{}}}`); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	if err := patch(types.JSONPatchType, `[]`); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("a JSON patch: %v", err)
	}
	if err := patch(types.MergePatchType, `{`); !apierrors.IsBadRequest(err) {
		t.Errorf("half a patch: %v", err)
	}
	if _, err := in.Patch(c.ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a patch of nothing: %v", err)
	}
}

// nextEvent waits for an event of a kind.
func (a *apiHarness) nextEvent(w watch.Interface, kinds ...watch.EventType) watch.Event {
	a.t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				a.t.Fatal("the watch ended")
			}
			if slices.Contains(kinds, e.Type) {
				return e
			}
		case <-a.ctx.Done():
			a.t.Fatalf("no %v came", kinds)
		}
	}
}

func TestAPI_watch(t *testing.T) {
	c := newAPIHarness(t, quietTimings(), 2)
	list, err := c.List(c.ctx, metav1.ListOptions{})
	c.must(err)
	from := list.GetResourceVersion()
	open := func(version string) watch.Interface {
		w, err := c.Watch(c.ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		c.must(err)
		t.Cleanup(w.Stop)
		return w
	}
	w := open(from)
	c.must(c.requestRefresh("a0"))
	first := c.nextEvent(w, watch.Modified)
	c.must(c.ArgoCD.RemoveApplication("argocd", "a1"))
	if e := c.nextEvent(w, watch.Deleted); e.Object.(*unstructured.Unstructured).GetName() != "a1" {
		t.Errorf("deleted: %v", e.Object)
	}
	// Everything again, from the version before.
	again := open(from)
	if e := c.nextEvent(again, watch.Modified, watch.Deleted); e.Object.(*unstructured.Unstructured).GetResourceVersion() != first.Object.(*unstructured.Unstructured).GetResourceVersion() {
		t.Errorf("resumed with %v", e.Object)
	}
	mark := c.nextEvent(again, watch.Bookmark).Object.(*unstructured.Unstructured).GetResourceVersion()
	if mark <= from {
		t.Errorf("a bookmark of version %s after %s", mark, from)
	}
	fresh := open("")
	if e := c.nextEvent(fresh, watch.Added); e.Object.(*unstructured.Unstructured).GetName() != "a0" {
		t.Errorf("a watch without a version began with %v", e.Object)
	}
	c.ArgoCD.Compact()
	if _, err := c.Watch(c.ctx, metav1.ListOptions{ResourceVersion: from}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from before what is kept: %v", err)
	}
	c.ArgoCD.CutWatches()
	for range fresh.ResultChan() { // it ends, or the test's time is over
	}
}

func TestAPI_stalledWatch(t *testing.T) {
	c := newAPIHarness(t, quietTimings(), 1)
	w, err := c.Watch(c.ctx, metav1.ListOptions{AllowWatchBookmarks: true})
	c.must(err)
	defer w.Stop()
	c.nextEvent(w, watch.Bookmark)
	c.ArgoCD.StallWatches(true)
	c.must(c.requestRefresh("a0"))
	c.waitFor("the refresh is done", func() bool {
		x, err := c.Namespace("argocd").Get(c.ctx, "a0", metav1.GetOptions{})
		return err == nil && len(x.GetAnnotations()) == 0
	})
	for done := false; !done; {
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Modified {
				t.Error("a stalled watch told something")
			}
		default:
			done = true
		}
	}
	c.ArgoCD.StallWatches(false)
	c.nextEvent(w, watch.Modified)
}

// waitFor waits until something holds.
func (a *apiHarness) waitFor(what string, holds func() bool) {
	a.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			a.t.Fatalf("never: %s", what)
		}
	}
}

// TestReflector is client-go's own reflector through a whole promotion, with
// watches that break and versions that expire under it.
func TestReflector(t *testing.T) {
	c := newAPIHarness(t, argoemulator.FastTimings(), 3)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflector(&cache.ListWatch{
		ListFunc:  func(o metav1.ListOptions) (runtime.Object, error) { return c.List(c.ctx, o) },
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) { return c.Watch(c.ctx, o) },
	}, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}}, store, 0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); reflector.Run(stop) }()
	defer func() { close(stop); <-done }()

	state := func(name string) string {
		x, ok, err := store.GetByKey("argocd/" + name)
		if err != nil || !ok {
			return ""
		}
		u := x.(*unstructured.Unstructured).Object
		get := func(fields ...string) string { s, _, _ := unstructured.NestedString(u, fields...); return s }
		return strings.Join([]string{get("status", "sync", "status"), get("status", "sync", "revision"), get("status", "health", "status")}, " ")
	}
	release := func(tag string) string {
		sha, err := c.Forge.CommitAs(repo, "ada", "main", "Release "+tag, map[string]string{"a0/kustomization.yaml": "images: [{name: web, newTag: " + tag + "}]\n"})
		c.must(err)
		return sha
	}
	sha := release("1.1.0")
	c.waitFor("a0 is synced and healthy", func() bool { return state("a0") == "Synced "+sha+" Healthy" })
	c.waitFor("a1 has moved on with it", func() bool { return state("a1") == "Synced "+sha+" Healthy" })
	c.ArgoCD.CutWatches()
	c.ArgoCD.Compact()
	c.must(c.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "later", Repo: repo, Path: "a1", DestinationNamespace: "qa", AppearsAfter: 50 * time.Millisecond}))
	sha = release("1.2.0-broken-in-qa")
	c.waitFor("a0 degrades", func() bool { return state("a0") == "Synced "+sha+" Degraded" })
	c.waitFor("the new one is synced and healthy", func() bool { return state("later") == "Synced "+sha+" Healthy" })
	c.must(c.ArgoCD.RemoveApplication("argocd", "a2"))
	c.waitFor("a2 is gone", func() bool { return state("a2") == "" })
}
