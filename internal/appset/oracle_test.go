package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/controllers"
	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/metrics"
	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// The oracle is Argo CD's own ApplicationSet controller over a fake
// Kubernetes API and a real Git checkout.

const oracleNamespace = "argocd"

// checkout writes a tree into a Git work tree and stages all of it.
func checkout(t testing.TB, tree map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range tree {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	runGit(t, dir, "init", "-q")
	runGit(t, dir, "add", "-A", "-f", ".")
	return dir
}

func runGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// checkoutRepos does what Argo CD's repo server does, on a checkout.
type checkoutRepos struct {
	dir        string
	doublestar bool
	listed     *sync.Map // what git answered, by pattern
}

func (c checkoutRepos) GetFiles(_ context.Context, _, _, pattern string, _, _ bool) (map[string][]byte, error) {
	names, ok := c.listed.Load(pattern)
	if !ok {
		list, err := c.list(pattern)
		if err != nil {
			return nil, err
		}
		names, _ = c.listed.LoadOrStore(pattern, list)
	}
	files := map[string][]byte{}
	for _, name := range names.([]string) {
		data, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

func (c checkoutRepos) list(pattern string) ([]string, error) {
	if !c.doublestar {
		return lsFiles(c.dir, pattern)
	}
	found, err := doublestar.FilepathGlob(c.dir + "/" + pattern)
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], c.dir+"/")
	}
	return found, err
}

// lsFiles is the controller's default globbing.
func lsFiles(dir, pattern string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "--full-name", "-z", "--", pattern)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("unable to list files: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

func (c checkoutRepos) GetDirectories(context.Context, string, string, bool, bool) ([]string, error) {
	var out []string
	err := filepath.WalkDir(c.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if rel, _ := filepath.Rel(c.dir, p); rel != "." {
			out = append(out, rel)
		}
		return nil
	})
	return out, err
}

// oracle answers what the controller would do.
type oracle struct {
	dir      string // a checkout
	clusters []Cluster
	projects []string
	globbing string // empty is git's
	large    bool   // the checkout has many folders
	listed   sync.Map

	objects []runtime.Object // Secrets and ConfigMaps of Argo CD's namespace
	duck    []runtime.Object // what clusterDecisionResource generators read
}

// dynamic is the API server for resources of any kind.
func (o *oracle) dynamic() dynamic.Interface {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{duckResource: "PlacementRuleList"}, o.duck...)
}

// duckResource is the example's.
var duckResource = schema.GroupVersionResource{Group: "apps.open-cluster-management.io", Version: "v1", Resource: "placementrules"}

// reconcile runs the controller once: the Applications it made, by name, and
// the error it put into the set's status.
func (o *oracle) reconcile(t rapid.TB, manifest []byte) (map[string]string, string) {
	t.Helper()
	list, failed := o.reconcileOver(t, manifest)
	apps := map[string]string{}
	for i := range list {
		apps[list[i].Name] = canonical(t, &list[i])
	}
	return apps, failed
}

// reconcileOver runs the controller once over live Applications, and returns
// what is live then.
func (o *oracle) reconcileOver(t rapid.TB, manifest []byte, live ...client.Object) ([]argov1alpha1.Application, string) {
	t.Helper()
	ctx := context.Background()
	scheme := runtime.NewScheme()
	must(t, argov1alpha1.AddToScheme(scheme))
	must(t, corev1.AddToScheme(scheme))
	set := &argov1alpha1.ApplicationSet{}
	must(t, yaml.Unmarshal(manifest, set))
	set.Namespace, set.UID = oracleNamespace, "1"
	objects := append([]client.Object{set}, live...)
	var secrets []runtime.Object
	for _, s := range clusterSecrets(o.clusters) {
		s.Namespace = oracleNamespace
		objects, secrets = append(objects, s.DeepCopy()), append(secrets, s.DeepCopy())
	}
	for _, x := range o.objects {
		objects, secrets = append(objects, x.DeepCopyObject().(client.Object)), append(secrets, x.DeepCopyObject())
	}
	for _, p := range o.projects {
		objects = append(objects, &argov1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: p, Namespace: oracleNamespace}})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(set).
		WithIndex(&argov1alpha1.Application{}, ".metadata.controller", func(object client.Object) []string {
			if owner := metav1.GetControllerOf(object); owner != nil {
				return []string{owner.Name}
			}
			return nil
		}).Build()
	kube := kubefake.NewSimpleClientset(secrets...)
	r := controllers.ApplicationSetReconciler{
		Client: c, Scheme: scheme, Recorder: record.NewFakeRecorder(10_000), KubeClientset: kube, ArgoCDNamespace: oracleNamespace,
		Generators: generators.GetGenerators(ctx, c, kube, oracleNamespace, checkoutRepos{o.dir, o.globbing == GlobbingDoublestar, &o.listed}, o.dynamic(),
			generators.NewSCMConfig("", nil, true, nil, false)),
		Renderer: &utils.Render{}, Metrics: metrics.NewFakeAppsetMetrics(c),
		Policy: argov1alpha1.ApplicationsSyncPolicySync, EnablePolicyOverride: true, EnableProgressiveSyncs: true,
	}
	key := types.NamespacedName{Namespace: oracleNamespace, Name: set.Name}
	if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
		return nil, err.Error()
	}
	failed := ""
	after := &argov1alpha1.ApplicationSet{}
	must(t, c.Get(ctx, key, after))
	for _, condition := range after.Status.Conditions {
		if condition.Type == argov1alpha1.ApplicationSetConditionErrorOccurred && condition.Status == argov1alpha1.ApplicationSetConditionStatusTrue {
			failed = condition.Message
		}
	}
	var list argov1alpha1.ApplicationList
	must(t, c.List(ctx, &list))
	return list.Items, failed
}

// canonical is what a generated Application consists of, as sorted YAML.
func canonical(t rapid.TB, app *argov1alpha1.Application) string {
	t.Helper()
	raw, err := yaml.Marshal(map[string]any{
		"name": app.Name, "namespace": app.Namespace, "labels": app.Labels, "annotations": app.Annotations,
		"finalizers": app.Finalizers, "spec": app.Spec,
	})
	must(t, err)
	return string(raw)
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ours resolves the same set.
func (o *oracle) ours(t rapid.TB, manifest []byte, urls ...string) (map[string]string, []Problem) {
	t.Helper()
	var meta struct {
		Metadata map[string]any `json:"metadata"`
	}
	must(t, yaml.Unmarshal(manifest, &meta))
	tree := overlaid{os.DirFS(o.dir), "set.yaml", manifest}
	p := shop("set.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	in := Input{
		Pipeline: p, Tree: tree, Branch: "main", RepoURLs: urls, Manifests: true,
		Generators: Generators{SCMProvider: true, PullRequest: true, Plugin: true},
		ArgoCDs: map[string]ArgoCD{"": {Clusters: o.clusters, Projects: o.projects, Globbing: o.globbing,
			Kube: &Kube{core: kubefake.NewSimpleClientset(o.objects...).CoreV1(), dynamic: o.dynamic()}}},
	}
	f, err := New(Options{}).Resolve(context.Background(), in)
	must(t, err)
	in.Manifests = false // then less is rendered
	without, err := New(Options{}).Resolve(context.Background(), in)
	must(t, err)
	if d := cmp.Diff(f, without, cmpopts.IgnoreUnexported(TargetSet{}), cmpopts.IgnoreFields(Target{}, "Application"), cmpopts.IgnoreFields(TargetSet{}, "RefreshAfter")); d != "" {
		t.Errorf("without manifests (-with +without):\n%s\nset:\n%s", d, manifest)
	}
	apps := map[string]string{}
	for _, x := range f.Targets {
		app := &argov1alpha1.Application{}
		must(t, json.Unmarshal(x.Application, app))
		app.Namespace = oracleNamespace // the manifest may leave it out
		apps[app.Name] = canonical(t, app)
	}
	return apps, f.Problems
}

// overlaid is a tree with one more file in its root.
type overlaid struct {
	fs.FS
	name string
	data []byte
}

func (o overlaid) Open(name string) (fs.File, error) {
	if name == o.name {
		return files(map[string]string{o.name: string(o.data)}).Open(name)
	}
	return o.FS.Open(name)
}

// compare holds both to the same Applications and to agree on errors.
func (o *oracle) compare(t rapid.TB, manifest []byte, urls ...string) (n int, failed bool) {
	t.Helper()
	want, wrong := o.reconcile(t, manifest)
	got, problems := o.ours(t, manifest, urls...)
	if strings.Contains(string(manifest), "merge:") {
		// A merge's order is random, so which duplicate comes first is too.
		for _, p := range problems {
			if strings.Contains(p.Message, "more than one Application of this name") {
				delete(want, p.Application)
				delete(got, p.Application)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" && len(want)+len(got) > 0 {
		t.Errorf("Applications differ (-controller +ours):\n%s\ncontroller's error: %s\nour problems: %v\nset:\n%s", d, wrong, problems, manifest)
	}
	if (wrong != "") != (len(problems) > 0) {
		t.Errorf("controller's error: %q\nour problems: %v\nset:\n%s", wrong, problems, manifest)
	}
	return len(got), wrong != ""
}

var oracleClusters = []Cluster{
	{Secret: "cluster-a", Name: "engineering-dev", Server: "https://1.2.3.4", Labels: map[string]string{"environment": "staging", "staging": "true", "use-kafka": "false"}, Annotations: map[string]string{"a/b": "c"}},
	{Secret: "cluster-b", Name: "engineering-prod", Server: "https://2.4.6.8", Labels: map[string]string{"environment": "prod"}},
	{Secret: "cluster-c", Name: "Some_Cluster", Server: "https://some-specific-cluster", Labels: map[string]string{"environment": "prod", "use-kafka": "true"}, Project: "default"},
}

// TestExamples resolves the examples that Argo CD ships.
func TestExamples(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-cd/v2").Output()
	if err != nil {
		t.Fatalf("finding Argo CD's module: %v", err)
	}
	const examples = "applicationset/examples"
	module := strings.TrimSpace(string(out))
	tree := map[string]string{"cluster-config/engineering/dev/config.json": `{"cluster": {"name": "dev", "address": "https://1.2.3.4"}}`}
	err = fs.WalkDir(os.DirFS(module), examples, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(module, name))
		tree[name] = string(data)
		return err
	})
	must(t, err)
	withoutTokens(t)
	forge := newRecordingServer(t)
	o := &oracle{
		dir: checkout(t, tree), projects: []string{"default", "my-project", "dev"}, objects: networkObjects(forge.URL),
		clusters: append(slices.Clone(oracleClusters), Cluster{Secret: "cluster-1", Name: "cluster-01", Server: "https://cluster-01"}, Cluster{Secret: "cluster-2", Name: "cluster-02", Server: "https://cluster-02"}),
		duck:     []runtime.Object{placement("test-placement", object{"clusterName": "cluster-01"}, object{"clusterName": "cluster-02"})},
	}
	// The stub answers the examples' questions.
	recording := strings.NewReplacer("api: https://git.example.com/", "api: "+forge.URL+"/", "api: https://gitlab.com", "api: "+forge.URL,
		"organization: argoproj\n", "organization: argoproj\n        api: "+forge.URL+"/\n")
	// Fields that this version of the library doesn't know are refused by name.
	refused := map[string]string{
		"design-doc/proposal/filters.yaml":                    "unknown field",
		"matrix/matrix-and-union-in-matrix.yaml":              "unknown field",
		"matrix/matrix-and-union-in-matrix-fasttemplate.yaml": "unknown field",
	}
	var names []string
	for name, data := range tree {
		if strings.HasSuffix(name, ".yaml") && strings.Contains(data, "kind: ApplicationSet") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	total := 0
	for _, name := range names {
		short := strings.TrimPrefix(name, examples+"/")
		t.Run(short, func(t *testing.T) {
			for _, doc := range strings.Split(tree[name], "\n---\n") {
				if !strings.Contains(doc, "kind: ApplicationSet") {
					continue
				}
				urls := []string{"https://github.com/argoproj/argo-cd.git", "https://github.com/argoproj/argocd-example-apps", "https://github.com/infra-team/cluster-deployments.git",
					"https://github.com/infra-team/cluster-deployments"}
				if want := refused[short]; want != "" {
					_, problems := o.ours(t, []byte(doc), urls...)
					if len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
						t.Errorf("problems: %v, want one with %q", problems, want)
					}
					continue
				}
				n, _ := o.compare(t, []byte(recording.Replace(doc)), urls...)
				if n == 0 && networkExample(doc) {
					t.Error("no Applications of what was recorded")
				}
				total += n
			}
		})
	}
	if total < 40 {
		t.Errorf("the examples gave %d Applications, too few to mean much", total)
	}
}

func networkExample(doc string) bool {
	return strings.Contains(doc, "pullRequest:") || strings.Contains(doc, "scmProvider:") || strings.Contains(doc, "clusterDecisionResource:")
}
