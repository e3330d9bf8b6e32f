package argocd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// treeNode writes a node as Argo CD does; parent is Kind/name, of apps.
func treeNode(group, kind, name, parent, health, message, reason string) string {
	n := map[string]any{"group": group, "kind": kind, "namespace": "shop", "name": name}
	if health != "" {
		n["health"] = map[string]any{"status": health, "message": message}
	}
	if kind, name, ok := strings.Cut(parent, "/"); ok {
		n["parentRefs"] = []any{map[string]any{"group": "apps", "kind": kind, "namespace": "shop", "name": name, "uid": "u"}}
	}
	if reason != "" {
		n["info"] = []any{map[string]any{"name": "Status Reason", "value": reason}, map[string]any{"name": "Containers", "value": "0/1"}}
	}
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestUnhealthyInTree reads trees as people would: what is wrong is the pod's reason, of
// the resource that Git has.
func TestUnhealthyInTree(t *testing.T) {
	const deadline = `Deployment "web" exceeded its progress deadline`
	web := treeNode("apps", "Deployment", "web", "", "Degraded", deadline, "")
	set := treeNode("apps", "ReplicaSet", "web-7", "Deployment/web", "Progressing", "Waiting for rollout", "")
	resource := func(group, kind, name, health, message string) verification.Resource {
		return verification.Resource{Group: group, Kind: kind, Namespace: "shop", Name: name, Health: health, Message: message}
	}
	for name, c := range map[string]struct {
		nodes []string
		want  []verification.Resource
	}{
		"all is well": {[]string{treeNode("apps", "Deployment", "web", "", "Healthy", "", ""), treeNode("", "ConfigMap", "web", "", "", "", "")}, nil},
		"pods that don't start": {[]string{web, set,
			treeNode("", "Pod", "web-7-a", "ReplicaSet/web-7", "Degraded", "Back-off pulling image x:2", "ImagePullBackOff"), treeNode("", "Pod", "web-7-b", "ReplicaSet/web-7", "Progressing", "", "ContainerCreating")},
			[]verification.Resource{resource("apps", "Deployment", "web", "Degraded", "0 of 2 pods ready: ImagePullBackOff: Back-off pulling image x:2 ("+deadline+")")}},
		"old pods go on": {[]string{web, set, treeNode("apps", "ReplicaSet", "web-6", "Deployment/web", "Healthy", "", ""), treeNode("", "Pod", "web-6-a", "ReplicaSet/web-6", "Healthy", "", "Running"),
			treeNode("", "Pod", "web-7-a", "ReplicaSet/web-7", "Degraded", "CrashLoopBackOff: exit 1", "CrashLoopBackOff")},
			[]verification.Resource{resource("apps", "Deployment", "web", "Degraded", "0 of 1 pods ready: CrashLoopBackOff: exit 1 ("+deadline+")")}},
		"running, and never ready": {[]string{web, treeNode("", "Pod", "web-7-a", "Deployment/web", "Progressing", "", "Running")},
			[]verification.Resource{resource("apps", "Deployment", "web", "Degraded", deadline)}},
		"what isn't there": {[]string{treeNode("apps", "Deployment", "web", "", "Missing", "", ""), treeNode("", "Service", "web", "", "Progressing", "no address", "")},
			[]verification.Resource{resource("apps", "Deployment", "web", "Missing", ""), resource("", "Service", "web", "Progressing", "no address")}},
		"something else below": {[]string{treeNode("argoproj.io", "Rollout", "web", "", "Degraded", "RolloutAborted", ""),
			`{"group": "argoproj.io", "kind": "AnalysisRun", "namespace": "shop", "name": "web-1", "parentRefs": [{"group": "argoproj.io", "kind": "Rollout", "namespace": "shop", "name": "web"}], "health": {"status": "Degraded", "message": "metric success-rate failed"}}`},
			[]verification.Resource{resource("argoproj.io", "Rollout", "web", "Degraded", "AnalysisRun web-1: metric success-rate failed (RolloutAborted)")}},
		"a circle, and a parent that isn't there": {[]string{treeNode("apps", "A", "a", "B/b", "Degraded", "x", ""), treeNode("apps", "B", "b", "A/a", "Degraded", "y", ""), treeNode("apps", "C", "c", "D/d", "Degraded", "z", "")},
			[]verification.Resource{resource("apps", "C", "c", "Degraded", "z")}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []api.Node
			if err := json.Unmarshal([]byte("["+strings.Join(c.nodes, ",")+"]"), &nodes); err != nil {
				t.Fatal(err)
			}
			got := newResourceTree(nodes).unhealthyResources()
			for i := range got {
				got[i].Descendants = nil // TestTellingDescendants
			}
			if diff := cmp.Diff(append([]verification.Resource{}, c.want...), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTreesAreReadSparingly reads a tree once for a state, and only so many at once. Otherwise it
// falls back on the Application's own status.
func TestTreesAreReadSparingly(t *testing.T) {
	calls, code := 0, http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"nodes": [`+treeNode("apps", "Deployment", "web", "", "Degraded", "slow", "")+`]}`)
	}))
	defer s.Close()
	client, err := api.New(api.Options{URL: s.URL, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w := &Watcher{name: "hub", trees: newTreeReader(client, nil, "hub")}
	inline := []verification.Resource{{Kind: "Job", Name: "x", Health: "Degraded"}}
	app := &verification.App{Namespace: "argocd", Name: "web", UID: "1", Health: "Degraded", HealthInTree: true, ReconciledAt: time.Unix(1, 0)}
	want := []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Message: "slow"}}
	for range 3 {
		got, err := w.UnhealthyResources(t.Context(), app)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
	}
	if calls != 1 {
		t.Errorf("one state was asked for %d times", calls)
	}
	app.ReconciledAt = time.Unix(2, 0)
	if _, ok := w.RememberedUnchecked(app); !ok {
		t.Error("what has no health check is forgotten with a comparison")
	}
	if _, ok := w.RememberedUnchecked(&verification.App{UID: app.UID, Revisions: []string{"another"}}); ok {
		t.Error("it is remembered of another revision")
	}
	code = http.StatusForbidden
	if _, err := w.UnhealthyResources(t.Context(), app); err == nil || !strings.Contains(err.Error(), "argocd hub: read the resource tree of Application argocd/web: Argo CD answers 403") {
		t.Errorf("forbidden: %v", err)
	}
	if calls != 2 {
		t.Errorf("a comparison may have found something else: %d calls", calls)
	}
	own := &verification.App{UID: "2", Health: "Degraded", Unhealthy: inline}
	if got, err := w.UnhealthyResources(t.Context(), own); err != nil || cmp.Diff(inline, got) != "" {
		t.Errorf("what the Application says itself: %v, %v", got, err)
	}
	if got, err := w.UncheckedResources(t.Context(), &verification.App{Unchecked: verification.Unchecked{Total: 1}}); err != nil || got.Total != 1 {
		t.Errorf("what the Application says itself: %v, %v", got, err)
	}
	if _, err := w.UncheckedResources(t.Context(), app); err == nil || !strings.Contains(err.Error(), "read the resource tree of Application argocd/web: Argo CD answers 403") {
		t.Errorf("forbidden: %v", err)
	}
	w.trees.limit.SetBurst(0)
	if _, err := w.UnhealthyResources(t.Context(), app); !errors.Is(err, ErrTreesBusy) {
		t.Errorf("too many: %v", err)
	}
	w.trees = nil
	if _, ok := w.RememberedUnchecked(app); ok {
		t.Error("it is remembered without trees")
	}
	if _, err := w.UnhealthyResources(t.Context(), app); !errors.Is(err, ErrHealthNotKept) {
		t.Errorf("without the API: %v", err)
	}
	if got, err := w.UnhealthyResources(t.Context(), own); err != nil || cmp.Diff(inline, got) != "" {
		t.Errorf("without the API, where the Application says it: %v, %v", got, err)
	}
}

// TestTreeBesideTheApplication holds that what the Application itself says is not lost
// where its tree is older, and that a tree without a cause is not taken for "none".
func TestTreeBesideTheApplication(t *testing.T) {
	nodes := treeNode("apps", "Deployment", "web", "", "Healthy", "", "")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"nodes": [`+nodes+`]}`)
	}))
	defer s.Close()
	client, err := api.New(api.Options{URL: s.URL, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w := &Watcher{name: "hub", trees: newTreeReader(client, nil, "hub")}
	gone := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Missing"}
	own := &verification.App{UID: "1", Health: "Missing", SyncStatus: "OutOfSync", Unhealthy: []verification.Resource{gone}}
	if got, err := w.UnhealthyResources(t.Context(), own); err != nil || cmp.Diff([]verification.Resource{gone}, got) != "" {
		t.Errorf("the Application says it, the tree not yet: %v, %v", got, err)
	}
	inTree := &verification.App{UID: "2", Health: "Degraded", HealthInTree: true}
	if _, err := w.UnhealthyResources(t.Context(), inTree); !errors.Is(err, errTreeBehind) {
		t.Errorf("a tree without a cause: %v", err)
	}
	nodes = treeNode("apps", "Deployment", "web", "", "Degraded", "slow", "")
	if got, err := w.UnhealthyResources(t.Context(), inTree); err != nil || len(got) != 1 || got[0].Message != "slow" {
		t.Errorf("read again: %v, %v", got, err)
	}
	well := &verification.App{UID: "3", Health: "Healthy", SyncStatus: "OutOfSync", HealthInTree: true}
	nodes = ""
	if got, err := w.UnhealthyResources(t.Context(), well); err != nil || len(got) != 0 {
		t.Errorf("nothing is wrong: %v, %v", got, err)
	}
}

// TestHealthCauses reads what an Argo CD from 3.6 on says of a health, where it says it.
func TestHealthCauses(t *testing.T) {
	for message, want := range map[string][]verification.Resource{
		"":                                   nil,
		"waiting for the rollout":            nil,
		"Caused by":                          nil,
		"Caused by somebody":                 nil,
		"Caused by apps/Deployment:shop/web": {{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}},
		"Caused by PersistentVolume:pv-1, batch/Job:shop/migrate, Pod:shop/a and 5 more": {{Kind: "PersistentVolume", Name: "pv-1", Health: "Degraded"},
			{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate", Health: "Degraded"}, {Kind: "Pod", Namespace: "shop", Name: "a", Health: "Degraded"}},
	} {
		app := &verification.App{Health: "Degraded", HealthMessage: message, HealthInTree: true}
		if diff := cmp.Diff(want, healthCauses(app)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
		got, err := (&Watcher{}).UnhealthyResources(t.Context(), app)
		if diff := cmp.Diff(want, got); diff != "" || errors.Is(err, ErrHealthNotKept) != (want == nil) {
			t.Errorf("%q, without the API: %v %s", message, err, diff)
		}
	}
}

// TestRecordedTree reads what an Argo CD 3.2 said of a release whose image isn't there.
func TestRecordedTree(t *testing.T) {
	raw, err := os.ReadFile("testdata/trees/broken-3.2.json")
	if err != nil {
		t.Fatal(err)
	}
	var tree struct{ Nodes []api.Node }
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	want := []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "web-qa", Name: "web", Health: "Degraded",
		Message: `0 of 1 pods ready: ImagePullBackOff: Back-off pulling image "registry.example/web:1.2.0-broken-in-qa" (Deployment "web" exceeded its progress deadline)`,
		Descendants: []verification.Descendant{
			{Kind: "Pod", Name: "web-6bb8c8b5c-r9l59", Health: "Degraded", Reason: "ImagePullBackOff", Message: `Back-off pulling image "registry.example/web:1.2.0-broken-in-qa"`, Images: []string{"registry.example/web:1.2.0-broken-in-qa"}},
			{Kind: "ReplicaSet", Name: "web-6bb8c8b5c", Health: "Progressing", Message: "Waiting for rollout to finish: 0 out of 1 new replicas are available..."},
		}}}
	if diff := cmp.Diff(want, newResourceTree(tree.Nodes).unhealthyResources()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTellingDescendants names the worst that a resource brought forth, pods first, a few of them.
func TestTellingDescendants(t *testing.T) {
	nodes := []string{treeNode("apps", "Deployment", "web", "", "Degraded", "", ""), treeNode("", "Pod", "well", "Deployment/web", "Healthy", "", ""), treeNode("", "Pod", "slow", "Deployment/web", "Progressing", "starting", "")}
	for i := range 8 {
		nodes = append(nodes, treeNode("", "Pod", fmt.Sprint("bad-", i), "Deployment/web", "Degraded", strings.Repeat("x", 2000), "CrashLoopBackOff"))
	}
	var all []api.Node
	if err := json.Unmarshal([]byte("["+strings.Join(nodes, ",")+"]"), &all); err != nil {
		t.Fatal(err)
	}
	got := newResourceTree(all).unhealthyResources()[0].Descendants
	if len(got) != 5 || got[0].Name != "bad-0" || got[0].Reason != "CrashLoopBackOff" || len(got[0].Message) > maxRemark || got[4].Name != "bad-4" {
		t.Errorf("%+v", got)
	}
	for i := range all[3:9] { // the first six of eight can't pull an image
		all[3+i].Info[0].Value = "ImagePullBackOff"
		all[3+i].Images = []string{strings.Repeat("x", 200*i)}
	}
	got = newResourceTree(all).unhealthyResources()[0].Descendants
	if got[0].Name != "bad-6" || got[1].Name != "bad-7" || got[2].Name != "bad-0" || len(got[2].Images) != 1 || got[4].Images != nil {
		t.Errorf("what says more comes first: %+v", got)
	}
	few := newResourceTree(all[:3]).unhealthyResources()[0].Descendants
	if diff := cmp.Diff([]verification.Descendant{{Kind: "Pod", Name: "slow", Health: "Progressing", Message: "starting"}}, few); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzResourceTree reads any tree within its bounds.
func FuzzResourceTree(f *testing.F) {
	f.Add([]byte(`[{"kind": "Pod", "name": "a", "health": {"status": "Degraded", "message": "x"}, "parentRefs": [{"kind": "Pod", "name": "a"}]}]`))
	f.Add([]byte("[" + treeNode("apps", "Deployment", "web", "", "Degraded", "slow", "") + "," + treeNode("", "Pod", "a", "Deployment/web", "Degraded", "", "ErrImagePull") + "]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var nodes []api.Node
		if json.Unmarshal(raw, &nodes) != nil {
			return
		}
		for _, r := range newResourceTree(nodes).unhealthyResources() {
			if r.Health == "" || r.Health == "Healthy" || len(r.Message) > maxMessage+len("…") {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestUncheckedInATree counts an Application's own resources that have no health and need
// one, and nothing that they brought forth.
func TestUncheckedInATree(t *testing.T) {
	node := func(group, kind, name, health string, parents ...api.Resource) api.Node {
		n := api.Node{Resource: api.Resource{Group: group, Kind: kind, Namespace: "shop", Name: name}, Parents: parents}
		n.Health.Status = health
		return n
	}
	kafka := node("kafka.strimzi.io", "Kafka", "events", "")
	got := newResourceTree([]api.Node{
		kafka, node("kafka.strimzi.io", "KafkaTopic", "orders", ""), node("kafka.strimzi.io", "Kafka", "logs", "Healthy"),
		node("kafka.strimzi.io", "StrimziPodSet", "events", "", kafka.Resource), node("", "ConfigMap", "web", ""), node("apps", "Deployment", "web", "Healthy"),
		node("networking.k8s.io", "NetworkPolicy", "web", ""), node("argoproj.io", "Application", "child", ""),
	}).uncheckedResources()
	if diff := cmp.Diff(verification.Unchecked{Total: 2, Kinds: []string{"Kafka", "KafkaTopic"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
