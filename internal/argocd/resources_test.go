package argocd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func TestSetsAreKeptWithoutNoise(t *testing.T) {
	s := newAPIServer(t)
	s.set("applicationsets", "argocd", "shop", `{"kind":"ApplicationSet","metadata":{"generation":3,"managedFields":[{"manager":"x"}],
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","team":"shop"},"labels":{"a":"b"}},"spec":{"generators":[]},"status":{"conditions":[]}}`)
	w := startWatcher(t, s, nil)
	var first ApplicationSet
	w.until("the set", func() bool {
		sets, err := w.Sets()
		if err != nil || len(sets) != 1 {
			return false
		}
		first = sets[0]
		return true
	})
	want := `{"kind":"ApplicationSet","metadata":{"annotations":{"team":"shop"},"labels":{"a":"b"},"name":"shop","namespace":"argocd","uid":"uid-shop"},"spec":{"generators":[]}}`
	if diff := cmp.Diff(want, string(first.Object)); diff != "" {
		t.Errorf("Object (-want +got):\n%s", diff)
	}
	before := w.Version()
	s.set("applicationsets", "argocd", "shop", `{"kind":"ApplicationSet","metadata":{"annotations":{"team":"shop"},"labels":{"a":"b"}},"spec":{"generators":[]},"status":{"conditions":[{}]}}`)
	s.set("applicationsets", "argocd", "other", `{"spec":{}}`)
	w.until("the other set", func() bool { sets, err := w.Sets(); return err == nil && len(sets) == 2 })
	if sets, _ := w.Sets(); sets[1].Version != first.Version || sets[0].Name != "other" {
		t.Errorf("a change of the status is none: %+v", sets)
	}
	if now := w.Version(); now.Sets != before.Sets+1 {
		t.Errorf("one set is new; the version went from %+v to %+v", before, now)
	}
	s.remove("applicationsets", "argocd", "other")
	w.until("one set", func() bool { sets, _ := w.Sets(); return len(sets) == 1 })
}

func TestASetThatCannotBeReadCountsAsAbsent(t *testing.T) {
	s := newAPIServer(t)
	s.set("applicationsets", "argocd", "shop", `{"spec":{}}`)
	w := startWatcher(t, s, nil)
	w.until("the set", func() bool { sets, _ := w.Sets(); return len(sets) == 1 })
	s.set("applicationsets", "argocd", "shop", `{"spec":{},"status":{"applicationStatus":"none"}}`)
	w.until("no set", func() bool { sets, err := w.Sets(); return err == nil && len(sets) == 0 })
	if w.logs.FilterMessageSnippet("can't be read").Len() != 1 {
		t.Errorf("it is said: %v", w.logs.All())
	}
}

func TestTooManySetsAreReported(t *testing.T) {
	st := newAppStore("hub", nil, nil, &versionCounter{onChange: func() {}})
	st.keepSet("argocd/a", ApplicationSet{Name: "a", Object: make(json.RawMessage, maxSetBytes), Version: "1"})
	if sets, err := st.liveSets(); err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	st.keepSet("argocd/b", ApplicationSet{Name: "b", Object: json.RawMessage("{}"), Version: "1"})
	if _, err := st.liveSets(); err == nil || !strings.Contains(err.Error(), "128") {
		t.Errorf("%v", err)
	}
	st.keepSet("argocd/a", ApplicationSet{})
	if sets, err := st.liveSets(); err != nil || len(sets) != 1 {
		t.Error(sets, err)
	}
}

func TestProjects(t *testing.T) {
	t.Run("listed, added, removed", func(t *testing.T) {
		s := newAPIServer(t)
		s.set("appprojects", "argocd", "default", `{}`)
		s.set("appprojects", "elsewhere", "other", `{}`)
		w := startWatcher(t, s, func(o *Options) { o.Namespaces = []string{"argocd", "aaa"} })
		has := func(want ...string) {
			t.Helper()
			w.until(fmt.Sprint(want), func() bool { got, err := w.Projects(); return err == nil && slices.Equal(got, want) })
		}
		has("default")
		before := w.Version().Projects
		s.set("appprojects", "argocd", "shop", `{}`)
		has("default", "shop")
		s.set("appprojects", "argocd", "shop", `{"spec":{"description":"x"}}`)
		s.remove("appprojects", "argocd", "default")
		has("shop")
		if now := w.Version().Projects; now != before+2 {
			t.Errorf("the version went from %d to %d", before, now)
		}
	})
	t.Run("forbidden: not known, which is not none, and no hindrance", func(t *testing.T) {
		s := newAPIServer(t)
		s.failWith("appprojects", http.StatusForbidden)
		notified := make(chan struct{}, 100)
		w := startWatcher(t, s, func(o *Options) { o.OnVersionChange = func() { notified <- struct{}{} } })
		w.until("ready", func() bool { return w.Ready() == nil })
		w.until("the reason", func() bool {
			names, err := w.Projects()
			return names == nil && err != nil && strings.Contains(err.Error(), "resources [appprojects]")
		})
		<-notified // that it is unknown, and why, is news
	})
}

// clusterSecret is a Secret as Argo CD makes one for a cluster.
func clusterSecret(name, server string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"argocd.argoproj.io/secret-type":"cluster","env":"prod"},"annotations":{"note":"x","kubectl.kubernetes.io/last-applied-configuration":"{\"config\":\"topsecret\"}"}},
		"data":{"name":%q,"server":%q,"config":%q}}`, b64(name), b64(server), b64(`{"bearerToken":"topsecret"}`))
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestClusters(t *testing.T) {
	s := newAPIServer(t)
	s.set("secrets", "argocd", "c1", clusterSecret("prod", "https://prod.example"))
	w := startWatcher(t, s, func(o *Options) { o.Clusters = true })
	w.until("ready", func() bool { return w.Ready() == nil })
	if s.seen("/secrets") > 0 {
		t.Error("nobody has asked for clusters")
	}
	got, err := w.Clusters(context.Background())
	want := []Cluster{{Secret: "c1", Namespace: "argocd", Name: "prod", Server: "https://prod.example",
		Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}, Annotations: map[string]string{"note": "x"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if s.seen("labelSelector=argocd.argoproj.io%2Fsecret-type%3Dcluster") != 1 || s.seen("/secrets") != 1 {
		t.Errorf("one list, by label: %v", s.requests)
	}
	if _, err := w.Clusters(context.Background()); err != nil || s.seen("/secrets") != 1 {
		t.Errorf("answered from memory: %v", s.requests)
	}

	before := w.Version().Clusters
	s.set("secrets", "argocd", "c2", clusterSecret("dev", "https://dev.example"))
	w.clusters.refreshClusters(context.Background())
	if got, _ := w.Clusters(context.Background()); len(got) != 2 || w.Version().Clusters != before+1 {
		t.Errorf("%v, version %d after %d", got, w.Version().Clusters, before)
	}

	s.failWith("secrets", http.StatusForbidden)
	w.clusters.refreshClusters(context.Background())
	got, err = w.Clusters(context.Background())
	if len(got) != 2 || err == nil || !strings.Contains(err.Error(), `apiGroups [""], resources [secrets], verbs [list]`) || w.Version().Clusters != before+2 {
		t.Errorf("those of before, and the reason: %v, %v", got, err)
	}
	w.clusters.refreshClusters(context.Background())
	if w.logs.FilterMessageSnippet("clusters can't be read").Len() != 1 || w.Version().Clusters != before+2 {
		t.Error("the failure is news once")
	}
	s.failWith("secrets", 0)
	w.clusters.refreshClusters(context.Background())
	if _, err = w.Clusters(context.Background()); err != nil || w.Version().Clusters != before+3 {
		t.Error(err)
	}
	for _, l := range w.logs.All() {
		if strings.Contains(fmt.Sprint(l), "topsecret") || strings.Contains(fmt.Sprint(l), b64("topsecret")) {
			t.Errorf("a credential is in the log: %v", l)
		}
	}
}

func TestClustersThatMayNotBeListed(t *testing.T) {
	s := newAPIServer(t)
	w := startWatcher(t, s, nil)
	if got, err := w.Clusters(context.Background()); got != nil || !errors.Is(err, ErrClustersOff) || s.seen("/secrets") > 0 {
		t.Errorf("%v, %v", got, err)
	}
	s.failWith("secrets", http.StatusForbidden)
	w = startWatcher(t, s, func(o *Options) { o.Clusters = true })
	if got, err := w.Clusters(context.Background()); got != nil || err == nil {
		t.Errorf("%v, %v", got, err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	w = startWatcher(t, s, func(o *Options) { o.Clusters = true })
	if got, err := w.Clusters(gone); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v, %v", got, err)
	}
}

func TestDecodeCluster(t *testing.T) {
	for name, c := range map[string]struct{ raw, wrong string }{
		"no server":         {`{"metadata":{"name":"a"},"data":{"name":"YQ=="}}`, "data.server is missing"},
		"not base64":        {`{"metadata":{"name":"a"},"data":{"server":"top secret"}}`, "data.server is not base64"},
		"not a secret":      {`"topsecret"`, "can't be read"},
		"no name":           {`{"data":{"server":"YQ=="}}`, "can't be read"},
		"a strange config":  {`{"metadata":{"name":"a"},"data":{"server":"YQ==","config":{"topsecret":1}}}`, ""},
		"a strange comment": {`{"metadata":{"name":"a","annotations":{"x":1}},"data":{"server":"YQ=="}}`, "annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeCluster([]byte(c.raw))
			switch {
			case c.wrong == "" && (err != nil || got.Server != "a"):
				t.Errorf("%+v, %v", got, err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret\"")):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestEach(t *testing.T) {
	s := newAPIServer(t)
	for i := range 2*pageSize + 3 {
		owner := "shop"
		if i%2 == 1 {
			owner = "other"
		}
		s.set("applications", "argocd", fmt.Sprintf("a%04d", i), fmt.Sprintf(`{"metadata":{"ownerReferences":[{"kind":"ApplicationSet","name":%q}]},"spec":{"x":%d}}`, owner, i))
	}
	s.set("applications", "team", "b", `{}`)
	w := startWatcher(t, s, func(o *Options) { o.Namespaces = []string{"argocd", "team"} })
	names := map[string]bool{}
	if err := w.Each(context.Background(), func(raw json.RawMessage) error { names[keyOf(raw)] = true; return nil }); err != nil || len(names) != 2*pageSize+4 {
		t.Errorf("%d, %v", len(names), err)
	}
	owned, err := w.Owned(context.Background(), "argocd", "shop")
	if err != nil || len(owned) != pageSize+2 || !strings.Contains(string(owned[1]), `"a0002"`) {
		t.Errorf("%d, %v", len(owned), err)
	}
	if none, err := w.Owned(context.Background(), "team", "shop"); err != nil || len(none) != 0 || none == nil {
		t.Errorf("another namespace: %v, %v", none, err)
	}
	if _, err := w.Owned(context.Background(), "elsewhere", "shop"); err == nil || !strings.Contains(err.Error(), "not watched") {
		t.Errorf("a namespace that isn't watched: %v", err)
	}
	s.set("applications", "team", "labelled", `{"metadata":{"labels":{"team":"shop"}}}`)
	selected, err := w.Selected(context.Background(), "team", "team=shop")
	if err != nil || len(selected) != 1 || s.seen("labelSelector=team%3Dshop") != 1 {
		t.Errorf("%d selected, %v", len(selected), err)
	}
	one, err := w.Whole(context.Background(), &verification.App{Namespace: "team", Name: "labelled"})
	if err != nil || !strings.Contains(string(one), `"labelled"`) {
		t.Errorf("one whole object: %s, %v", one, err)
	}
	if _, err := w.Whole(context.Background(), &verification.App{Namespace: "team", Name: "gone"}); err == nil || !strings.Contains(err.Error(), "read Application team/gone") {
		t.Errorf("one that isn't there: %v", err)
	}
	stop, seen := errors.New("enough"), 0
	if err := w.Each(context.Background(), func(json.RawMessage) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
		t.Errorf("%d visits, %v", seen, err)
	}
	s.failWith("applications", http.StatusForbidden)
	if err := w.Each(context.Background(), func(json.RawMessage) error { return nil }); err == nil || !strings.Contains(err.Error(), "resources [applications]") {
		t.Errorf("%v", err)
	}
}

func TestWrittenChangesRaiseVersion(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", `{"metadata":{"labels":{"a":"b"}},"spec":{"source":{"path":"x"}},"status":{"health":{"status":"Healthy"}}}`)
	w := startWatcher(t, s, nil)
	w.next("web", isNamed("web"))
	before := w.Version().Applications
	for _, step := range []struct {
		name, object string
		raised       uint64
	}{
		{"how it is", `{"metadata":{"labels":{"a":"b"}},"spec":{"source":{"path":"x"}},"status":{"health":{"status":"Degraded"}}}`, 0},
		{"its labels", `{"metadata":{"labels":{"a":"c"}},"spec":{"source":{"path":"x"}},"status":{"health":{"status":"Healthy"}}}`, 1},
		{"its specification", `{"metadata":{"labels":{"a":"c"}},"spec":{"source":{"path":"y"}},"status":{"health":{"status":"Degraded"}}}`, 2},
		{"its owner", `{"metadata":{"labels":{"a":"c"},"ownerReferences":[{"kind":"ApplicationSet","name":"s"}]},"spec":{"source":{"path":"y"}},"status":{"health":{"status":"Healthy"}}}`, 3},
	} {
		s.set("applications", "argocd", "web", step.object)
		w.next(step.name, isNamed("web"))
		if got := w.Version().Applications - before; got != step.raised {
			t.Errorf("%s: %d changes, want %d", step.name, got, step.raised)
		}
	}
	s.remove("applications", "argocd", "web")
	w.next("gone", func(c appChange) bool { return c.deleted })
	if got := w.Version().Applications - before; got != 4 {
		t.Errorf("its end: %d", got)
	}
}

func TestReadyAgainIsReported(t *testing.T) {
	s := newAPIServer(t)
	s.failWith("applications", http.StatusServiceUnavailable)
	reported := make(chan struct{}, 100)
	w := startWatcher(t, s, func(o *Options) { o.OnReady = func() { reported <- struct{}{} } })
	w.until("the reason", func() bool { return w.Ready() != nil && strings.Contains(w.Ready().Error(), "failing as told") })
	if len(reported) != 0 {
		t.Error("told too early")
	}
	s.failWith("applications", 0)
	<-reported
	if err := w.Ready(); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeSet(f *testing.F) {
	f.Add(`{"metadata":{"namespace":"argocd","name":"shop","managedFields":[],"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","a":"b"}},"spec":{"generators":[]},"status":{"applicationStatus":[{"application":"a","status":"Waiting"}]}}`)
	f.Add(`{"metadata":{"name":"x","annotations":null},"spec":null}`)
	f.Add(`{"metadata":[],"status":1}`)
	f.Fuzz(func(t *testing.T, raw string) {
		set, steps, err := decodeSet([]byte(raw))
		if steps == nil {
			t.Fatal("steps is nil, which would forget the set")
		}
		if err != nil {
			return
		}
		again, _, err := decodeSet(set.Object)
		if err != nil || again.Version != set.Version {
			t.Errorf("what is kept reads as something else: %v\n%s\n%s", err, set.Object, again.Object)
		}
	})
}

func FuzzDecodeCluster(f *testing.F) {
	f.Add(clusterSecret("prod", "https://prod.example"))
	f.Add(`{"metadata":{"name":"a"},"data":{"server":"YQ==","config":"dG9wc2VjcmV0"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := decodeCluster([]byte(raw))
		if err == nil && (c.Server == "" || c.Secret == "") {
			t.Errorf("%+v", c)
		}
		if _, has := c.Annotations[lastApplied]; has {
			t.Error("kubectl's copy of the Secret is kept")
		}
	})
}

// TestUncheckedResources counts what Argo CD can't tell the health of, where the Application
// would say it.
func TestUncheckedResources(t *testing.T) {
	decode := func(status string) verification.Unchecked {
		app, _, err := decodeApplication("hub", []byte(`{"metadata":{"namespace":"argocd","name":"web"},"status":{"resources":[`+
			`{"kind":"ConfigMap","name":"a"},{"group":"apps","kind":"Deployment","name":"b"},{"group":"rbac.authorization.k8s.io","kind":"Role","name":"c"},`+
			`{"group":"argoproj.io","kind":"Application","name":"d"},{"group":"kafka.strimzi.io","kind":"KafkaTopic","name":"e"},{"group":"kafka.strimzi.io","kind":"Kafka","name":"f"},`+
			`{"group":"kafka.strimzi.io","kind":"Kafka","name":"g","requiresPruning":true},{"group":"x.io","kind":"Migration","name":"h","hook":true},`+
			`{"group":"cert-manager.io","kind":"Certificate","name":"i","health":{"status":"Healthy"}},{"group":"kafka.strimzi.io","kind":"Kafka","name":"j"}]`+status+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		return app.Unchecked
	}
	if diff := cmp.Diff(verification.Unchecked{Total: 3, Kinds: []string{"Kafka", "KafkaTopic"}}, decode("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := decode(`,"resourceHealthSource":"appTree"`); got.Total != 0 {
		t.Errorf("the Application doesn't say it, and it is %+v", got)
	}
}
