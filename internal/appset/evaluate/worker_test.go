package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[2] == PoolArgument {
		if err := sandbox.ServeBatches(context.Background(), os.Stdin, os.Stdout, ItemHandlers()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := sandbox.Serve(context.Background(), os.Stdin, os.Stdout, Handlers(zap.NewNop())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runner(t testing.TB, l sandbox.Limits) *sandbox.Runner {
	t.Helper()
	if raceDetector {
		l.Memory = 1 << 46
	}
	r, err := NewRunner(l, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bothWays evaluates here and in a child and holds that the answer is one.
func bothWays(t *testing.T, tree fs.FS, in Input) *Resolution {
	t.Helper()
	here, err := InProcess(t.Context(), appset.New(appset.Options{}), tree, in)
	if err != nil {
		t.Fatal(err)
	}
	child, err := InWorker(t.Context(), runner(t, sandbox.Limits{}), tree, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, here), text(t, child)); diff != "" {
		t.Errorf("here (-) and in a child (+) differ:\n%s", diff)
	}
	return child
}

func text(t *testing.T, w *Resolution) string {
	t.Helper()
	out, err := json.MarshalIndent(w, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWorkerGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	with := func(change func(fstest.MapFS)) fstest.MapFS {
		tree := shop()
		change(tree)
		return tree
	}
	for name, tc := range map[string]struct {
		tree     fs.FS
		change   func(*Input)
		targets  int
		problems int
	}{
		"plain":         {tree: shop(), targets: 4},
		"no pipelines":  {tree: shop(), change: func(in *Input) { in.Pipelines = nil }, targets: -1},
		"nothing there": {tree: fstest.MapFS{}, problems: 1},
		"manifests":     {tree: shop(), change: func(in *Input) { in.Manifests = true }, targets: 4},
		"no changes":    {tree: shop(), change: func(in *Input) { in.Changed = nil }, targets: 4},
		"odd paths": {tree: shop(), change: func(in *Input) {
			in.Changed = []string{"a\xff", "ä\n", "apps/web/base/deployment.yaml", "apps/web/base/deployment.yaml"}
		}, targets: 4},
		"known clusters": {tree: shop(), change: func(in *Input) { in.Clusters, in.Projects = []appset.Cluster{}, []string{} }, problems: 1},
		"doublestar":     {tree: shop(), change: func(in *Input) { in.Globbing = appset.GlobbingDoublestar }, targets: 4},
		"a broken set": {tree: with(func(tree fstest.MapFS) {
			tree["argocd/broken.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: broken}\nspec: {nonsense: 1}\n")}
		}), targets: 4, problems: 1},
		"a component of a strange kind": {tree: with(func(tree fstest.MapFS) {
			tree["apps/web/overlays/dev/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [../../base, https://example.com/x]\nnonsense: {a: [\n")}
		}), targets: 4},
		"links": {tree: with(func(tree fstest.MapFS) {
			tree["apps/web/overlays/out"] = &fstest.MapFile{Data: []byte("../../../../etc"), Mode: fs.ModeSymlink}
			tree["apps/web/overlays/loop"] = &fstest.MapFile{Data: []byte("loop"), Mode: fs.ModeSymlink}
			tree["argocd/link.yaml"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
		}), targets: 4, problems: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := shopInput(t)
			if tc.change != nil {
				tc.change(&in)
			}
			w := bothWays(t, tc.tree, in)
			if tc.targets < 0 {
				return
			}
			if f := w.Pipelines["shop"].TargetSet; len(f.Targets) != tc.targets || len(f.Problems) != tc.problems {
				t.Errorf("%d targets and problems %v", len(f.Targets), f.Problems)
			}
		})
	}
}

// Every rule about targets gets to the child, and nothing else needs to.
func TestRequestCarriesPipelines(t *testing.T) {
	p := shopPipeline(t)
	p.Spec.ApplicationSets = append(p.Spec.ApplicationSets, pipeline.ApplicationSetSource{Live: &pipeline.LiveApplicationSet{ArgoCD: "hub", Namespace: "argocd", Name: "x"}, Component: "c", Environment: "e"})
	p.Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{Namespace: "argocd", Selector: "a=b"}}}
	in := Input{Pipelines: []*pipeline.Pipeline{p}, OpenExternal: func(context.Context, string, string) (*appset.ExternalRef, error) { return nil, nil },
		ArgoCDs: map[string]appset.ArgoCD{"hub": {Namespace: "argo", Projects: []string{}, Kube: &appset.Kube{}}}, Live: &appset.Live{}}
	raw, err := json.Marshal(newWorkerRequest(&in))
	if err != nil {
		t.Fatal(err)
	}
	var s workerRequest
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	got, err := s.toInput(t.Context(), sandbox.Trees{})
	if err != nil {
		t.Fatal(err)
	}
	want := *p
	want.Spec.Environments = []pipeline.Environment{{Name: "dev"}, {Name: "prod", After: []string{"dev"}}}
	if diff := cmp.Diff(&want, got.Pipelines[0]); diff != "" {
		t.Errorf("sent (-), arrived (+):\n%s", diff)
	}
	if p.Spec.Environments[1].Gates == nil {
		t.Error("the caller's pipeline was changed")
	}
	if got.OpenExternal == nil || got.Live == nil || got.Live.Applications != nil || got.ArgoCDs["hub"].Kube != nil || got.ArgoCDs["hub"].Projects == nil {
		t.Errorf("arrived: %+v", got)
	}
	if in.ArgoCDs["hub"].Kube == nil {
		t.Error("the caller's Argo CDs were changed")
	}
}

func TestWorkerFetchesServedFiles(t *testing.T) {
	t.Parallel()
	application := json.RawMessage(`{"metadata":{"name":"old-web","namespace":"argocd","labels":{"team":"shop","env":"dev"}},"spec":{"project":"default",
		"source":{"repoURL":"https://git.example/acme/fleet.git","path":"apps/web/overlays/dev"},"destination":{"server":"https://kubernetes.default.svc","namespace":"web"}}}`)
	tree := shop()
	tree["argocd/other.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: elsewhere, namespace: argocd}
spec:
  goTemplate: true
  generators:
  - git: {repoURL: https://git.example/acme/teams.git, revision: v1, files: [{path: teams/*.json}]}
  template:
    metadata: {name: '{{ .name }}'}
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet.git, path: 'apps/{{ .name }}/overlays/dev'}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`)}
	tree["argocd/newer.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: newer, namespace: argocd}\nspec: {generators: [{list: {elements: []}}], fromTheFuture: 1, template: {metadata: {name: x}, spec: {project: x, destination: {}, source: {repoURL: x}}}}\n")}
	in := shopInput(t)
	p := in.Pipelines[0]
	p.Spec.ApplicationSets[0].Component, p.Spec.ApplicationSets[0].Environment = "web", "dev"
	p.Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{Namespace: "argocd", Selector: "team=shop"}, Component: "web", Environment: "{{ .application.metadata.labels.env }}"}}
	in.Main = "hub"
	var others atomic.Int32
	in.OpenExternal = func(_ context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
		others.Add(1)
		if repoURL != "https://git.example/acme/teams.git" || revision != "v1" {
			return nil, fmt.Errorf("%s at %s is not ours", repoURL, revision)
		}
		return &appset.ExternalRef{Tree: fstest.MapFS{"teams/a.json": {Data: []byte(`{"name": "api"}`)}}, Commit: strings.Repeat("1", 40)}, nil
	}
	in.Live = &appset.Live{
		Sets: []appset.LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "newer", Object: json.RawMessage(`{}`)}},
		Applications: func(_ context.Context, argocd, namespace, set string) ([]json.RawMessage, error) {
			return []json.RawMessage{json.RawMessage(strings.Replace(string(application), "old-web", set+"-web", 1))}, nil
		},
		Selected: func(context.Context, string, string, string) ([]json.RawMessage, error) {
			return []json.RawMessage{application}, nil
		},
	}
	w := bothWays(t, tree, in)
	var names []string
	for _, target := range w.Pipelines["shop"].TargetSet.Targets {
		names = append(names, target.Name)
	}
	if want := "api api-dev api-prod newer-web old-web web-dev web-prod"; strings.Join(names, " ") != want {
		t.Errorf("got %s, want %s; problems %v", names, want, w.Pipelines["shop"].TargetSet.Problems)
	}
	if len(w.Pipelines["shop"].TargetSet.Problems) > 0 {
		t.Errorf("problems: %v", w.Pipelines["shop"].TargetSet.Problems)
	}
	before := others.Load()
	l := &fileServer{in: &in, externals: map[string]*appset.ExternalRef{}}
	for _, name := range []string{`["commit","https://git.example/acme/teams.git","v1"]`, `["tree","https://git.example/acme/teams.git","v1"]`} {
		if _, err := l.serveTree(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if n := others.Load() - before; n != 1 {
		t.Errorf("the caller was asked %d times for one tree", n)
	}
}

func TestRequestsThatAreNotServed(t *testing.T) {
	live := func(context.Context, string, string, string) ([]json.RawMessage, error) {
		return nil, errors.New("asked")
	}
	in := shopInput(t)
	in.Live = &appset.Live{Applications: live, Selected: live, Sets: []appset.LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "ours"}}}
	in.Pipelines[0].Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{ArgoCD: "hub", Namespace: "argocd", Selector: "ours"}}}
	for name, lent := range map[string]bool{
		`["applications","hub","argocd","ours"]`: true, `["selected","hub","argocd","ours"]`: true,
		`["applications","hub","argocd","theirs"]`: false, `["applications","other","argocd","ours"]`: false, `["selected","hub","argocd","theirs"]`: false,
		`["commit","https://git.example/x","HEAD"]`: false, `["tree","https://git.example/x","HEAD"]`: false, `["secrets","hub","argocd","ours"]`: false,
		`[]`: false, `["tree"]`: false, `{}`: false, ``: false, `../../etc/passwd`: false, `["applications","hub","argocd","ours","more"]`: false,
	} {
		_, err := (&fileServer{in: &in}).serveTree(t.Context(), name)
		if got := err != nil && err.Error() == "asked"; got != lent || err == nil || !lent && !errors.Is(err, errNotServed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServedWithinScope holds that a worker gets other repositories, clusters, projects and live
// objects within the caller's scope alone, whatever it asks for. This repository's other branches
// are open to everybody who may read it.
func TestServedWithinScope(t *testing.T) {
	in := shopInput(t)
	in.Main = "hub"
	in.Pipelines[0].Spec.ApplicationSets[0].Component, in.Pipelines[0].Spec.ApplicationSets[0].Environment = "web", "dev"
	set := func(name, url string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: " + name + "}\nspec:\n  generators:\n" +
			"  - git: {repoURL: " + url + ", revision: v1, files: [{path: '*.json'}]}\n  template: {metadata: {name: '{{name}}'}, spec: {project: shop, destination: {name: east}, source: {repoURL: x, path: p}}}\n")}
	}
	tree := shop()
	tree["argocd/teams.yaml"] = set("teams", "https://git.example/acme/teams.git")
	opened := map[string]bool{}
	in.OpenExternal = func(_ context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
		opened[repoURL+"@"+revision] = true
		return &appset.ExternalRef{Tree: fstest.MapFS{"a.json": {Data: []byte(`{"name": "api", "password": "hunter2"}`)}}, Commit: strings.Repeat("1", 40)}, nil
	}
	in.ArgoCDs = map[string]appset.ArgoCD{"hub": {Projects: []string{"default", "shop", "secret"}, Clusters: []appset.Cluster{
		{Name: "east", Server: "https://east"}, {Name: "hidden", Server: "https://hidden"}}}}
	in.Live = &appset.Live{Sets: []appset.LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "teams"}, {ArgoCD: "hub", Namespace: "argocd", Name: "others"}},
		Applications: func(context.Context, string, string, string) ([]json.RawMessage, error) {
			return nil, errors.New("asked")
		}}
	base, err := InProcess(t.Context(), appset.New(appset.Options{}), tree, in)
	if err != nil {
		t.Fatal(err)
	}
	in.Scope = appset.NewScope(in.Main, base.Pipelines["shop"].TargetSet)
	in.Live = in.limitedLive()
	clear(opened)
	for name, served := range map[string]bool{
		`["commit","https://git.example/acme/teams.git","v1"]`: true, `["tree","ssh://git@git.example/ACME/teams","v1"]`: true,
		`["tree","https://git.example/acme/teams.git","v2"]`: false, `["tree","https://git.example/acme/vault.git","v1"]`: false, `["commit","https://git.example/acme/vault.git","v1"]`: false,
		`["tree","` + in.RepoURLs[0] + `","another-branch"]`: true,
		`["applications","hub","argocd","teams"]`:            true, `["applications","hub","argocd","others"]`: false,
	} {
		_, err := (&fileServer{in: &in, externals: map[string]*appset.ExternalRef{}}).serveTree(t.Context(), name)
		if errors.Is(err, errNotServed) == served {
			t.Errorf("%s: %v", name, err)
		}
	}
	for what := range opened {
		if strings.Contains(what, "vault") || strings.Contains(what, "v2") {
			t.Errorf("%s was opened", what)
		}
	}
	request := newWorkerRequest(&in)
	if a := request.ArgoCDs["hub"]; len(a.Clusters) != 1 || a.Clusters[0].Name != "east" || strings.Join(a.Projects, " ") != "default shop" || len(request.Live.Sets) != 1 {
		t.Errorf("a worker is sent %+v and %+v", a, request.Live.Sets)
	}

	clear(opened)
	tree["argocd/leak.yaml"] = set("leak", "https://git.example/acme/vault.git")
	out := bothWays(t, tree, in)
	found := out.Pipelines["shop"].TargetSet
	if len(found.Problems) != 1 || !strings.HasPrefix(found.Problems[0].Message, "not evaluated: it reads acme/vault at \"v1\", and no ApplicationSet") {
		t.Errorf("problems: %v", found.Problems)
	}
	if len(found.Targets) != len(base.Pipelines["shop"].TargetSet.Targets) || opened["https://git.example/acme/vault.git@v1"] {
		t.Errorf("%d targets; opened %v", len(found.Targets), opened)
	}
}

func TestSingleFileFS(t *testing.T) {
	if err := fstest.TestFS(singleFile("list", []byte("[]")), "list"); err != nil {
		t.Error(err)
	}
}

// TestImplausibleReplies holds that a child's reply is believed only where it is plausible.
func TestImplausibleReplies(t *testing.T) {
	in := shopInput(t)
	target := appset.Target{Name: "web", Component: "web", Environment: "dev"}
	otherEnvironment := target
	otherEnvironment.Environment = "moon"
	for name, tc := range map[string]struct {
		reply *replyPipeline
		words string
	}{
		"fine":                  {reply: &replyPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{target}}, ChangedFiles: map[string][]int{target.ID(): {0, 2}}}},
		"nothing":               {reply: &replyPipeline{TargetSet: &appset.TargetSet{}}},
		"no pipeline":           {words: "lacks the pipeline shop"},
		"no fleet":              {reply: &replyPipeline{}, words: "lacks the pipeline shop"},
		"a stranger touched":    {reply: &replyPipeline{TargetSet: &appset.TargetSet{}, ChangedFiles: map[string][]int{"//x": {0}}}, words: "no target"},
		"a made-up path":        {reply: &replyPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{target}}, ChangedFiles: map[string][]int{target.ID(): {3}}}, words: "path 3 of 3"},
		"a negative path":       {reply: &replyPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{target}}, ChangedFiles: map[string][]int{target.ID(): {-1}}}, words: "path -1 of 3"},
		"a made-up environment": {reply: &replyPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{otherEnvironment}}}, words: `environment "moon"`},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := (&workerReply{Pipelines: map[string]*replyPipeline{"shop": tc.reply}}).toResolution(&in)
			if tc.words != "" {
				if err == nil || !strings.Contains(err.Error(), tc.words) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || w.Pipelines["shop"].Doubts == nil || w.Pipelines["shop"].TargetSet.Targets == nil || w.Pipelines["shop"].ChangedFiles == nil {
				t.Errorf("%+v, %v", w, err)
			}
		})
	}
}
