package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/liftlock/liftlock/internal/world/randomset"
)

// recorded is what the forges and the plugin answer, by method and path.
var recorded = map[string]string{
	"GET /api/v3/orgs/argoproj/repos": `[
		{"id": 1, "name": "argocd-example-apps", "owner": {"login": "argoproj"}, "default_branch": "master", "clone_url": "https://github.com/argoproj/argocd-example-apps.git", "ssh_url": "git@github.com:argoproj/argocd-example-apps.git", "topics": ["demo", "gitops"]},
		{"id": 2, "name": "example-apps-2", "owner": {"login": "argoproj"}, "default_branch": "main", "clone_url": "https://github.com/argoproj/example-apps-2.git", "ssh_url": "git@github.com:argoproj/example-apps-2.git"},
		{"id": 3, "name": "argo-cd", "owner": {"login": "argoproj"}, "default_branch": "master", "clone_url": "https://github.com/argoproj/argo-cd.git", "ssh_url": "git@github.com:argoproj/argo-cd.git"}]`,
	"GET /api/v3/repos/argoproj/argocd-example-apps/branches/master": `{"name": "master", "commit": {"sha": "53e28ff20cc530b9ada2173fbbd64d48338583ba"}}`,
	"GET /api/v3/repos/argoproj/example-apps-2/branches/main":        `{"name": "main", "commit": {"sha": "0d521c6e049889134f3122eb32d7ed342f43ca0d"}}`,
	"GET /api/v3/repos/argoproj/argo-cd/branches/master":             `{"name": "master", "commit": {"sha": "6"}}`,
	"GET /api/v3/repos/myorg/myrepo/pulls": `[
		{"number": 7, "title": "Add a page", "head": {"ref": "feature/Add_A-page", "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e"}, "base": {"ref": "main"}, "labels": [{"name": "preview"}, {"name": "web"}], "user": {"login": "ada"}},
		{"number": 8, "title": "Not this", "head": {"ref": "other", "sha": "aaaaaaa"}, "base": {"ref": "main"}, "labels": [], "user": {"login": "grace"}}]`,
	"GET /api/v4/groups/test-argocd-proton/projects":   `[{"id": 11, "name": "test-app", "path": "test-app", "default_branch": "main", "ssh_url_to_repo": "git@gitlab.com:test-argocd-proton/test-app.git", "http_url_to_repo": "https://gitlab.com/test-argocd-proton/test-app.git", "namespace": {"full_path": "test-argocd-proton"}, "topics": ["a"]}]`,
	"GET /api/v4/projects/11/repository/branches/main": `{"name": "main", "commit": {"id": "8898d7999fc99dd0fd578650b58b244fc63f6b58"}}`,
	"GET /api/v4/projects/acme/web/merge_requests":     `[{"iid": 3, "title": "T", "source_branch": "feat", "target_branch": "main", "sha": "8898d7999fc99dd0fd578650b58b244fc63f6b58", "labels": ["x"], "author": {"username": "ada"}}]`,
	"GET /api/v1/version":                              `{"version": "1.22.0"}`,
	"GET /api/v1/orgs/acme/repos":                      `[{"id": 5, "name": "web", "full_name": "acme/web", "default_branch": "main", "clone_url": "https://gitea.example.com/acme/web.git", "ssh_url": "git@gitea.example.com:acme/web.git", "owner": {"login": "acme"}}]`,
	"GET /api/v1/repos/acme/web/branches/main":         `{"name": "main", "commit": {"id": "1f1d7a99fc99dd0fd578650b58b244fc63f6b581"}}`,
	"GET /api/v1/repos/acme/web/labels":                `[{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]`,
	"GET /api/v1/repos/acme/web/pulls":                 `[{"id": 1, "number": 4, "title": "T", "head": {"ref": "feat", "sha": "1f1d7a99fc99dd0fd578650b58b244fc63f6b581"}, "base": {"ref": "main"}, "user": {"login": "ada"}, "labels": []}]`,
	"POST /api/v1/getparams.execute":                   `{"output": {"parameters": [{"name": "one", "digest": "sha256:1", "deep": {"n": 1, "list": ["a"]}}, {"name": "two", "digest": "sha256:2", "deep": {"n": 2, "list": []}}]}}`,
}

// recordingServer is a forge and a plugin that answer what is recorded.
type recordingServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // method, path and authorization
	delay    chan struct{}
}

func newRecordingServer(t *testing.T) *recordingServer {
	s := &recordingServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		delay := s.delay
		s.mu.Unlock()
		if delay != nil {
			<-delay
		}
		_, _ = io.Copy(io.Discard, r.Body)
		answer, known := recorded[r.Method+" "+r.URL.Path]
		if !known {
			http.Error(w, `{"message": "Not Found"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (r *recordingServer) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// networkObjects are the Secrets and ConfigMaps that generators read.
func networkObjects(url string) []runtime.Object {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: oracleNamespace}
	}
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: named("github-token"), Data: map[string][]byte{"token": []byte("t0ken"), "empty": {}}},
		&corev1.Secret{ObjectMeta: named("plugin-secret"), Data: map[string][]byte{"plugin.token": []byte("pl")}},
		&corev1.ConfigMap{ObjectMeta: named("plugin"), Data: map[string]string{"baseUrl": url, "token": "$plugin-secret:plugin.token", "requestTimeout": "20"}},
		&corev1.ConfigMap{ObjectMeta: named("ocm-placement"), Data: map[string]string{
			"apiVersion": "apps.open-cluster-management.io/v1", "kind": "placementrules", "statusListKey": "decisions", "matchKey": "clusterName"}},
		&corev1.ConfigMap{ObjectMeta: named("odd-placement"), Data: map[string]string{
			"apiVersion": "apps.open-cluster-management.io/v1", "kind": "placementrules", "statusListKey": "gone", "matchKey": "clusterName"}},
		&corev1.ConfigMap{ObjectMeta: named("no-match-key"), Data: map[string]string{"apiVersion": "apps.open-cluster-management.io/v1", "kind": "placementrules"}},
	}
}

func placement(name string, decisions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "apps.open-cluster-management.io/v1", "kind": "PlacementRule",
		"metadata": object{"name": name, "namespace": oracleNamespace, "labels": object{"placement": name}},
		"status":   object{"decisions": decisions},
	}}
}

// withoutTokens keeps the developer's own tokens out of the library's reach.
func withoutTokens(t *testing.T) {
	for _, name := range []string{"GITHUB_TOKEN", "GITLAB_TOKEN", "GITEA_TOKEN"} {
		t.Setenv(name, "")
	}
}

func networkSet(generator string, goTemplate bool, name string) []byte {
	digest, revision := "{{digest}}", "{{sha}}{{head_sha}}"
	if goTemplate {
		digest, revision = "{{ .digest }}", "{{ .sha }}{{ .head_sha }}"
	}
	return fmt.Appendf(nil, `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: asked}
spec:
  goTemplate: %t
  generators:
  - %s
  template:
    metadata: {name: '%s', labels: {digest: 'x%s'}}
    spec:
      project: default
      source: {repoURL: https://git.example.com/acme/fleet.git, path: apps, targetRevision: '%s'}
      destination: {server: https://kubernetes.default.svc, namespace: web}
`, goTemplate, generator, name, digest, revision)
}

// TestNetworkGenerators holds that generators that ask give what the
// controller would make of the same answers.
func TestNetworkGenerators(t *testing.T) {
	withoutTokens(t)
	s := newRecordingServer(t)
	o := &oracle{dir: checkout(t, randomset.Tree(3, 3)), clusters: oracleClusters, projects: []string{"default"}, objects: networkObjects(s.URL),
		duck: []runtime.Object{placement("test", object{"clusterName": "engineering-dev", "x": "y"}, object{"clusterName": "gone"}), placement("broken", object{"other": "a"})}}
	const token = "tokenRef: {secretName: github-token, key: token}"
	for _, c := range []struct {
		name, generator, app string
		goTemplate           bool
		apps                 int
		fails                bool
	}{
		{name: "github repositories", generator: "scmProvider: {github: {organization: argoproj, api: URL/, " + token + "}, filters: [{repositoryMatch: example}], values: {team: '{{repository}}'}}", app: "{{repository}}", apps: 2},
		{name: "github repositories, Go templates", generator: "scmProvider: {cloneProtocol: https, github: {organization: argoproj, api: URL/, " + token + "}, values: {team: '{{ .repository }}'}}", app: "{{ .values.team }}-{{ .short_sha_7 }}", goTemplate: true, apps: 3},
		{name: "github pulls", generator: "pullRequest: {github: {owner: myorg, repo: myrepo, api: URL/, " + token + ", labels: [preview]}}", app: "p{{ .number }}-{{ .branch_slug }}-{{ index .labels 1 }}", goTemplate: true, apps: 1},
		{name: "gitlab repositories", generator: "scmProvider: {gitlab: {group: test-argocd-proton, api: URL, includeSubgroups: true}}", app: "{{repository}}", apps: 1},
		{name: "gitlab merge requests", generator: "pullRequest: {gitlab: {project: acme/web, api: URL, pullRequestState: opened}}", app: "p{{number}}-{{branch}}", apps: 1},
		{name: "gitea repositories", generator: "scmProvider: {gitea: {owner: acme, api: URL}}", app: "{{repository}}", apps: 1},
		{name: "gitea pulls", generator: "pullRequest: {gitea: {owner: acme, repo: web, api: URL}}", app: "p{{number}}", apps: 1},
		{name: "plugin", generator: "plugin: {configMapRef: {name: plugin}, input: {parameters: {k: v}}, values: {v: '{{name}}'}}", app: "{{name}}-{{deep.n}}-{{values.v}}", apps: 2},
		{name: "plugin, Go templates", generator: "plugin: {configMapRef: {name: plugin}, input: {parameters: {k: v}}}", app: "{{ .name }}-{{ .deep.n }}", goTemplate: true, apps: 2},
		{name: "in a matrix", generator: "matrix: {generators: [{list: {elements: [{org: argoproj}]}}, {scmProvider: {github: {organization: '{{org}}', api: URL/, " + token + "}}}]}", app: "{{org}}-{{repository}}", apps: 3},
		{name: "twice in a matrix of plugins", generator: "matrix: {generators: [{plugin: {configMapRef: {name: plugin}}}, {merge: {mergeKeys: [name], generators: [{plugin: {configMapRef: {name: plugin}}}, {list: {elements: [{name: one, extra: e}]}}]}}]}", app: "{{ .name }}", goTemplate: true, fails: true},
		{name: "in a merge", generator: "merge: {mergeKeys: [name], generators: [{plugin: {configMapRef: {name: plugin}}}, {list: {elements: [{name: one, extra: e}]}}]}", app: "{{name}}-{{digest}}", fails: false, apps: 2},
		{name: "duck type by name", generator: "clusterDecisionResource: {configMapRef: ocm-placement, name: test, values: {a: b}}", app: "{{name}}-{{values.a}}-{{x}}", apps: 1},
		{name: "duck type by label", generator: "clusterDecisionResource: {configMapRef: ocm-placement, labelSelector: {matchLabels: {placement: test}}}", app: "{{ .name }}", goTemplate: true, apps: 1},
		{name: "duck type without a match", generator: "clusterDecisionResource: {configMapRef: ocm-placement, labelSelector: {matchLabels: {placement: broken}}}", app: "{{name}}"},
		{name: "duck type without a match key", generator: "clusterDecisionResource: {configMapRef: no-match-key, name: test}", app: "{{name}}"},
		{name: "duck type without a status", generator: "clusterDecisionResource: {configMapRef: odd-placement, name: test}", app: "{{name}}", fails: true},
		{name: "no such resource", generator: "clusterDecisionResource: {configMapRef: ocm-placement, labelSelector: {matchLabels: {placement: none}}}", app: "{{name}}", fails: true},
		{name: "no such ConfigMap", generator: "clusterDecisionResource: {configMapRef: gone, name: test}", app: "{{name}}", fails: true},
		{name: "no such organization", generator: "scmProvider: {github: {organization: gone, api: URL/, " + token + "}}", app: "{{repository}}", fails: true},
		{name: "no such Secret", generator: "scmProvider: {github: {organization: argoproj, api: URL/, tokenRef: {secretName: gone, key: token}}}", app: "{{repository}}", fails: true},
		{name: "no provider", generator: "scmProvider: {}", app: "{{repository}}", fails: true},
		{name: "plugin without ConfigMap", generator: "plugin: {configMapRef: {name: gone}}", app: "{{name}}", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest := networkSet(strings.ReplaceAll(c.generator, "URL", s.URL), c.goTemplate, c.app)
			n, failed := o.compare(t, manifest, appsetsURL)
			if n != c.apps || failed != c.fails {
				_, problems := o.ours(t, manifest, appsetsURL)
				t.Errorf("%d Applications, failed %t; want %d, %t; problems %v", n, failed, c.apps, c.fails, problems)
			}
		})
	}
	for _, q := range s.questions() {
		if strings.Contains(q, "/api/v3/") && !strings.HasSuffix(q, "Bearer t0ken") || strings.Contains(q, "getparams") && !strings.HasSuffix(q, "Bearer pl") {
			t.Errorf("asked without its token: %s", q)
		}
	}
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func networkInput(s *recordingServer, generator string) Input {
	tree := files(map[string]string{"set.yaml": string(networkSet(strings.ReplaceAll(generator, "URL", s.URL), true, "{{ .name }}{{ .repository }}"))})
	p := shop("set.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	in := input(tree, p)
	in.Revision = strings.Repeat("a", 40)
	in.Generators = Generators{SCMProvider: true, PullRequest: true, Plugin: true}
	in.ArgoCDs = map[string]ArgoCD{"": {Clusters: []Cluster{}, Kube: &Kube{core: kubefake.NewSimpleClientset(networkObjects(s.URL)...).CoreV1()}}}
	return in
}

func TestAnswersAreRefreshedInTime(t *testing.T) {
	withoutTokens(t)
	s, c := newRecordingServer(t), &clock{at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	r := New(Options{Now: c.now})
	in := networkInput(s, "plugin: {configMapRef: {name: plugin}, requeueAfterSeconds: 600}")
	resolve := func(requests int, after time.Duration) *TargetSet {
		t.Helper()
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		if len(f.Problems) > 0 || len(f.Targets) != 2 {
			t.Fatalf("%+v", f)
		}
		if n := len(s.questions()); n != requests || f.RefreshAfter != after {
			t.Fatalf("asked %d times, again after %s; want %d, %s", n, f.RefreshAfter, requests, after)
		}
		return f
	}
	resolve(1, 10*time.Minute)
	c.pass(4 * time.Minute)
	resolve(1, 6*time.Minute)
	in.Revision = strings.Repeat("b", 40) // a push doesn't ask either
	resolve(1, 6*time.Minute)
	c.pass(6 * time.Minute)
	resolve(2, 10*time.Minute)

	// A question that failed is asked again soon, but not at once.
	in = networkInput(s, "scmProvider: {github: {organization: gone, api: URL/}}")
	for _, requests := range []int{3, 3} {
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		if len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "asking scmProvider: error listing repos") || f.RefreshAfter != retryInterval || len(s.questions()) != requests {
			t.Fatalf("%+v after %d questions", f, len(s.questions()))
		}
	}
	c.pass(retryInterval)
	if _, err := r.Resolve(t.Context(), in); err != nil || len(s.questions()) != 4 {
		t.Fatalf("%v after %d questions", err, len(s.questions()))
	}
}

// TestSilentForge holds that a forge that never answers costs neither the
// caller nor other sets anything but this set's targets, and is asked once.
func TestSilentForge(t *testing.T) {
	withoutTokens(t)
	s := newRecordingServer(t)
	s.delay = make(chan struct{})
	defer close(s.delay)
	r := New(Options{Timeout: time.Second})
	in := networkInput(s, "scmProvider: {github: {organization: argoproj, api: URL/}}")
	for range cap(r.slots) + 1 {
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		if len(f.Targets) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "not resolved in time") {
			t.Fatalf("%+v", f)
		}
	}
	if f, err := r.Resolve(t.Context(), input(directoriesTree(), shop("argocd/*.yaml"))); err != nil || len(f.Targets) != 4 {
		t.Fatalf("another set beside it: %v %+v", err, f)
	}
	if n := len(s.questions()); n != 1 {
		t.Fatalf("asked %d times", n)
	}
}

func TestOurOwnTokenIsNotSent(t *testing.T) {
	withoutTokens(t)
	s := newRecordingServer(t)
	t.Setenv("GITHUB_TOKEN", "ours")
	for name, generator := range map[string]string{
		"no tokenRef":     "scmProvider: {github: {organization: argoproj, api: URL/}}",
		"an empty token":  "scmProvider: {github: {organization: argoproj, api: URL/, tokenRef: {secretName: github-token, key: empty}}}",
		"nested":          "matrix: {generators: [{list: {elements: [{o: argoproj}]}}, {scmProvider: {github: {organization: '{{ .o }}', api: URL/}}}]}",
		"of pullRequests": "pullRequest: {github: {owner: myorg, repo: myrepo, api: URL/}}",
	} {
		t.Run(name, func(t *testing.T) {
			f := mustResolve(t, networkInput(s, generator))
			if len(f.Targets) > 0 || len(f.Problems) != 1 {
				t.Errorf("%+v", f)
			}
		})
	}
	if q := s.questions(); len(q) > 0 {
		t.Errorf("asked: %v", q)
	}
}

func TestGitHubAppCredentials(t *testing.T) {
	kube := &Kube{core: kubefake.NewSimpleClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "argocd"}, Data: map[string][]byte{
			"githubAppID": []byte("1"), "githubAppInstallationID": []byte("2"), "githubAppEnterpriseBaseUrl": []byte("https://ghe.example.com/api/v3"), "githubAppPrivateKey": []byte("key")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "odd", Namespace: "argocd"}, Data: map[string][]byte{"githubAppID": []byte("one"), "githubAppPrivateKey": []byte("key")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: "argocd"}},
	).CoreV1()}
	a := appCredentials{&snapshotClient{kube: kube, namespace: "argocd"}}
	got, err := a.GetAuthSecret(context.Background(), "app")
	if err != nil || got.Id != 1 || got.InstallationId != 2 || got.EnterpriseBaseURL != "https://ghe.example.com/api/v3" || got.PrivateKey != "key" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"odd", "bare", "gone"} {
		if _, err := a.GetAuthSecret(context.Background(), name); err == nil {
			t.Errorf("%s gave credentials", name)
		}
	}
}

func TestCachedAnswersAreBounded(t *testing.T) {
	c := &clock{at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	r := newGeneratorCache(nil, c.now)
	for i := range maxCachedAnswers + 10 {
		if _, _, err := r.fetchParams(t.Context(), fmt.Sprint(i), time.Hour, func() ([]map[string]any, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.answers.Stats().Entries; n != maxCachedAnswers {
		t.Errorf("%d answers are held", n)
	}
	if _, _, err := r.fetchParams(t.Context(), "panics", time.Hour, func() ([]map[string]any, error) { panic("no") }); err == nil || !strings.Contains(err.Error(), "failed on it: no") {
		t.Errorf("%v", err)
	}
}

// TestCachedAnswersAreNotShared holds that what the library writes into parameters
// doesn't reach the next who asks.
func TestCachedAnswersAreNotShared(t *testing.T) {
	in := []map[string]any{{"a": map[string]any{"b": []any{map[string]any{"c": "d"}}}, "values": map[string]string{"x": "y"}}}
	before, err := json.Marshal(in)
	must(t, err)
	out := copyParams(in)
	out[0]["a"].(map[string]any)["b"].([]any)[0].(map[string]any)["c"] = "changed"
	out[0]["values"].(map[string]string)["x"] = "changed"
	out[0]["new"] = true
	if after, err := json.Marshal(in); err != nil || string(after) != string(before) {
		t.Errorf("%s became %s, %v", before, after, err)
	}
}
