package appset

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// raw turns YAML into an object as the API server gives it.
func raw(t testing.TB, text string) json.RawMessage {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	return out
}

const liveApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: web-dev
  namespace: argocd
  labels: {team: shop, env: dev}
spec:
  project: default
  source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: apps/web/dev}
  destination: {server: "https://kubernetes.default.svc", namespace: dev}
status: {sync: {status: Synced}, brandNew: {x: 1}}
`

var ownedApplication = strings.Replace(strings.Replace(liveApplication, "web-dev", "web-qa", 1), "  labels:",
	"  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: shop, uid: '1', controller: true}]\n  labels:", 1)

// running is a hub that runs sets and Applications.
func running(t testing.TB, sets, applications []string) *Live {
	l := &Live{}
	for _, text := range sets {
		object := raw(t, text)
		var meta struct {
			Metadata struct{ Name, Namespace string }
		}
		must(t, json.Unmarshal(object, &meta))
		l.Sets = append(l.Sets, LiveSet{ArgoCD: "hub", Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name, Object: object})
	}
	var apps []json.RawMessage
	for _, text := range applications {
		apps = append(apps, raw(t, text))
	}
	l.Applications = func(_ context.Context, argocd, namespace, set string) ([]json.RawMessage, error) {
		if argocd != "hub" || namespace != "argocd" || set == "" {
			return nil, errors.New("asked for " + argocd + "/" + namespace + "/" + set)
		}
		return apps, nil
	}
	l.Selected = func(_ context.Context, argocd, namespace, selector string) ([]json.RawMessage, error) {
		switch {
		case argocd != "hub" || namespace != "argocd":
			return nil, errors.New("asked for " + argocd + "/" + namespace)
		case selector == "team=shop":
			return apps, nil
		}
		return nil, nil
	}
	return l
}

func liveInput(p *pipeline.Pipeline, live *Live) Input {
	in := input(directoriesTree(), p)
	in.Live, in.Main = live, "hub"
	return in
}

// TestLiveSet resolves the object that runs over the commit's files.
func TestLiveSet(t *testing.T) {
	p := shop()
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Live: &pipeline.LiveApplicationSet{Namespace: "argocd", Name: "shop"}}}
	object := directoriesSet + "status: {conditions: [{type: ErrorOccurred, brandNew: 1}]}\n"
	object = strings.Replace(object, "namespace: argocd}", "namespace: argocd, resourceVersion: '7', labels: {team: shop}, managedFields: [{x: y}]}", 1)
	p.Spec.ApplicationSets[0].Component = `{{ .applicationSet.metadata.labels.team }}-{{ index .path.segments 1 }}`
	f := mustResolve(t, liveInput(p, running(t, []string{object}, nil)))
	if len(f.Problems) > 0 || len(f.Targets) != 4 {
		t.Fatalf("%+v", f)
	}
	x := f.Targets[1]
	if x.Name != "web-dev" || x.Component != "shop-web" || x.Environment != "dev" || x.Live || x.ApplicationSet != "shop" || x.ApplicationSetFile != "" || x.Namespace != "argocd" {
		t.Errorf("%+v", x)
	}
}

// TestLiveSetIsResolvedAgainWhenItChanges holds that an object's own
// bookkeeping changes nothing, and its content does.
func TestLiveSetIsResolvedAgainWhenItChanges(t *testing.T) {
	p := shop()
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Live: &pipeline.LiveApplicationSet{Namespace: "argocd", Name: "shop"}}}
	r := New(Options{})
	resolve := func(object string) *TargetSet {
		t.Helper()
		in := liveInput(p, nil)
		in.Revision = strings.Repeat("a", 40)
		if object != "" {
			in.Live = running(t, []string{object, strings.Replace(object, "name: shop", "name: other", 1)}, nil)
		}
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		return f
	}
	if f := resolve(""); len(f.Problems) != 1 {
		t.Fatalf("without a connection: %+v", f)
	}
	first := resolve(directoriesSet)
	if len(first.Problems) > 0 || len(first.Targets) != 4 {
		t.Fatalf("%+v", first)
	}
	if resolve(strings.Replace(directoriesSet, "namespace: argocd", "namespace: argocd, resourceVersion: '8', generation: 3", 1)+"status: {conditions: []}\n") != first {
		t.Error("its bookkeeping had it resolved again")
	}
	changed := resolve(strings.Replace(directoriesSet, "apps/*/*", "apps/web/*", 1))
	if len(changed.Targets) != 3 {
		t.Errorf("after a change: %+v", changed)
	}
	labelled := resolve(strings.Replace(directoriesSet, "namespace: argocd", "namespace: argocd, labels: {a: b}", 1))
	if labelled == first || len(labelled.Targets) != 4 {
		t.Errorf("after a new label: %+v", labelled)
	}
}

// TestLiveProblems holds that what a live entry can't give is named.
func TestLiveProblems(t *testing.T) {
	const unknownField = "unknown field \"spec.generators[0].git.directories[0].brandNew\""
	newer := strings.Replace(directoriesSet, "{path: apps/*/*}", "{path: apps/*/*, brandNew: true}", 1)
	set := func(argocd, name string) *pipeline.Pipeline {
		p := shop()
		p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Live: &pipeline.LiveApplicationSet{ArgoCD: argocd, Namespace: "argocd", Name: name}}}
		return p
	}
	plain := func(selector string) *pipeline.Pipeline {
		p := shop()
		p.Spec.Component, p.Spec.Environment = "{{ .application.metadata.labels.team }}", "{{ .application.metadata.labels.env }}"
		p.Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{Namespace: "argocd", Selector: selector}}}
		return p
	}
	file := func(text string) Input {
		in := liveInput(shop("argocd/shop.yaml"), nil)
		tree := directoriesTree()
		tree["argocd/shop.yaml"].Data = []byte(text)
		in.Tree = tree
		return in
	}
	with := func(in Input, change func(*Input)) Input { change(&in); return in }
	for _, c := range []struct {
		name    string
		in      Input
		problem string // of the first; empty: none
		note    string
		targets int
		again   bool
	}{
		{name: "no connection", in: liveInput(set("", "shop"), nil), problem: "the live ApplicationSet argocd/shop can't be used: there is no connection to Argo CD"},
		{name: "not known now", in: liveInput(set("", "shop"), &Live{Unknown: map[string]string{"hub": "dial tcp: refused"}}), problem: "the objects of Argo CD hub are not known: dial tcp: refused"},
		{name: "no such set", in: liveInput(set("", "other"), running(t, []string{directoriesSet}, nil)), problem: "there is none of that name in Argo CD hub"},
		{name: "of another Argo CD", in: liveInput(set("edge", "shop"), running(t, []string{directoriesSet}, nil)), problem: "there is none of that name in Argo CD edge"},
		{name: "not an object", in: liveInput(set("", "shop"), &Live{Sets: []LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "shop", Object: json.RawMessage(`[1]`)}}}), problem: "it is not an object"},
		{name: "a live set that is newer, without its Applications", in: liveInput(set("", "shop"), &Live{Sets: running(t, []string{newer}, nil).Sets}), problem: unknownField},

		{name: "a newer manifest without a connection", in: file(newer), problem: "argocd/shop.yaml: ApplicationSet shop: " + unknownField},
		{name: "a newer manifest of a set that doesn't run", in: with(file(newer), func(in *Input) { in.Live = running(t, nil, nil) }), problem: "its live Applications can't be used instead: Argo CD hub has 0 ApplicationSets of this name", again: true},
		{name: "a newer manifest, and Argo CD is away", in: with(file(newer), func(in *Input) { in.Live = running(t, nil, nil); in.Live.Unknown = map[string]string{"hub": "timeout"} }), problem: "its live Applications can't be used instead: the objects of Argo CD hub are not known: timeout", again: true},
		{name: "a newer manifest, and its Applications can't be listed", in: with(file(newer), func(in *Input) {
			in.Live = running(t, []string{directoriesSet}, nil)
			in.Live.Applications = func(context.Context, string, string, string) ([]json.RawMessage, error) {
				return nil, errors.New("forbidden")
			}
		}), problem: "its live Applications can't be used instead: forbidden", again: true},
		{name: "a newer manifest that runs", in: with(file(newer), func(in *Input) { in.Live = running(t, []string{directoriesSet}, []string{liveApplication}) }), note: unknownField + ": this version of the resolver doesn't know it, so the set is not half-understood; its 1 live Applications are used as they are", targets: 1, again: true},
		{name: "a newer manifest whose Application went elsewhere", in: with(file(newer), func(in *Input) {
			in.Live = running(t, []string{directoriesSet}, []string{strings.Replace(liveApplication, "apps/web/dev", "apps/web/moved", 1)})
		}), note: unknownField, problem: "it is a live Application, which has no generator parameters: write the template over .application", targets: 1, again: true},
		{name: "a broken Application", in: with(file(newer), func(in *Input) {
			in.Live = running(t, []string{directoriesSet}, []string{"metadata: {name: x}\nspec: 3\n"})
		}), note: unknownField, problem: "live Application 1 of 1: the spec of x can't be read", again: true},

		{name: "plain, but a set's", in: liveInput(plain("team=shop"), running(t, nil, []string{liveApplication, ownedApplication})), targets: 1, again: true,
			note: "applications[0]: 1 of the 2 Applications that team=shop selects belong to ApplicationSets and are left out: name those in applicationSets"},
		{name: "plain, twice", in: with(liveInput(plain("team=shop"), running(t, nil, []string{liveApplication})), func(in *Input) {
			in.Pipeline.Spec.Applications = append(in.Pipeline.Spec.Applications, in.Pipeline.Spec.Applications[0])
		}), targets: 1, again: true, problem: "Application web-dev: two entries of the pipeline's applications select it"},
		{name: "plain", in: liveInput(plain("team=shop"), running(t, nil, []string{liveApplication})), targets: 1, again: true},
		{name: "plain, none", in: liveInput(plain("team=other"), running(t, nil, nil)), note: "applications[0]: team=other selects no Application in namespace argocd of Argo CD hub", again: true},
		{name: "plain, no connection", in: liveInput(plain("team=shop"), nil), problem: "applications[0]: there is no connection to Argo CD", again: true},
		{name: "plain, away", in: liveInput(plain("team=shop"), &Live{Unknown: map[string]string{"hub": "x509"}, Selected: running(t, nil, nil).Selected}), problem: "applications[0]: the objects of Argo CD hub are not known: x509", again: true},
		{name: "plain, newer", in: liveInput(plain("team=shop"), running(t, nil, []string{strings.Replace(liveApplication, "path: apps", "brandNew: 1, path: apps", 1)})),
			problem: `Application web-dev: its spec has an unknown field "source.brandNew"`, targets: 1, again: true},
		{name: "plain, by parameters", in: with(liveInput(plain("team=shop"), running(t, nil, []string{liveApplication})), func(in *Input) { in.Pipeline.Spec.Component = "{{ .path.basename }}" }),
			problem: `map has no entry for key "path"; it is a live Application, which has no generator parameters`, targets: 1, again: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustResolve(t, c.in)
			first := ""
			if len(f.Problems) > 0 {
				first = f.Problems[0].String()
			}
			if !strings.Contains(first, c.problem) || (c.problem == "") != (first == "") {
				t.Errorf("problems %v, want %q", f.Problems, c.problem)
			}
			if c.note == "" != (len(f.Notes) == 0) || len(f.Notes) > 0 && !strings.Contains(f.Notes[0].String(), c.note) {
				t.Errorf("notes %v, want %q", f.Notes, c.note)
			}
			if len(f.Targets) != c.targets || (f.RefreshAfter > 0) != c.again {
				t.Errorf("%d targets, again after %s; want %d, %t", len(f.Targets), f.RefreshAfter, c.targets, c.again)
			}
			for _, x := range f.Targets {
				if !x.Live || x.Managed() != (c.problem == "" || c.name == "plain, twice" || strings.Contains(c.name, "newer") && !strings.Contains(c.name, "elsewhere")) {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

// TestLiveTargetsOfANewerSet holds that they are described by what runs, and
// by the parameters that give the same.
func TestLiveTargetsOfANewerSet(t *testing.T) {
	newer := strings.Replace(directoriesSet, "{path: apps/*/*}", "{path: apps/*/*, brandNew: true}", 1)
	tree := directoriesTree()
	tree["argocd/shop.yaml"].Data = []byte(strings.Replace(newer, ", namespace: argocd", "", 1))
	in := liveInput(shop("argocd/shop.yaml"), running(t,
		[]string{directoriesSet, strings.Replace(directoriesSet, "namespace: argocd", "namespace: other", 1)},
		[]string{strings.Replace(liveApplication, "targetRevision: main", "targetRevision: v7", 1)}))
	in.Tree, in.Revision = tree, strings.Repeat("a", 40)
	r := New(Options{})
	f, err := r.Resolve(t.Context(), in)
	must(t, err)
	if len(f.Problems) > 0 || len(f.Targets) != 1 || f.RefreshAfter != time.Minute {
		t.Fatalf("%+v", f)
	}
	x := f.Targets[0]
	if x.Component != "web" || x.Environment != "dev" || x.Sources[0].TargetRevision != "v7" || !x.Live || x.ApplicationSetFile != "argocd/shop.yaml" {
		t.Errorf("%+v", x)
	}
	if again, err := r.Resolve(t.Context(), in); err != nil || again == f {
		t.Error("what runs must be looked at again")
	}
}

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       Policy
	}{
		{"none", "", Policy{}},
		{"sync", "syncPolicy: {applicationsSync: sync}", Policy{}},
		{"create-only", "syncPolicy: {applicationsSync: create-only}", Policy{NoUpdate: true, NoDelete: true}},
		{"create-update", "syncPolicy: {applicationsSync: create-update}", Policy{NoDelete: true}},
		{"create-delete", "syncPolicy: {applicationsSync: create-delete}", Policy{NoUpdate: true}},
		{"preserved resources", "syncPolicy: {preserveResourcesOnDeletion: true}", Policy{PreserveResources: true}},
		{"all at once", "strategy: {type: AllAtOnce}", Policy{}},
		{"step by step", "strategy: {type: RollingSync, rollingSync: {steps: []}}", Policy{Rolling: true}},
		{"preserved fields", "preservedFields: {annotations: [a], labels: [b]}", Policy{PreservedAnnotations: []string{"a"}, PreservedLabels: []string{"b"}}},
		{"ignored", "ignoreApplicationDifferences: [{name: x, jsonPointers: [/spec/a], jqPathExpressions: [.b]}]", Policy{IgnoreDifferences: []IgnoreDifference{{Name: "x", JSONPointers: []string{"/spec/a"}, JQPaths: []string{".b"}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := directoriesTree()
			tree["argocd/shop.yaml"].Data = []byte(strings.Replace(directoriesSet, "spec:\n", "spec:\n  "+c.spec+"\n", 1))
			f := mustResolve(t, input(tree, shop("argocd/shop.yaml")))
			if len(f.Problems) > 0 || len(f.Targets) != 4 {
				t.Fatalf("%+v", f)
			}
			if d := cmp.Diff(c.want, f.Targets[0].Policy); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSourceHydrator(t *testing.T) {
	tree := directoriesTree()
	tree["argocd/shop.yaml"].Data = []byte(strings.Replace(directoriesSet,
		"      source: {repoURL: https://git.example.com/acme/fleet.git, targetRevision: main, path: '{{ .path.path }}'}\n",
		"      sourceHydrator:\n        drySource: {repoURL: https://git.example.com/acme/fleet, targetRevision: main, path: '{{ .path.path }}'}\n        syncSource: {targetBranch: 'env/{{ .path.basename }}', path: out}\n        hydrateTo: {targetBranch: next}\n", 1))
	f := mustResolve(t, input(tree, shop("argocd/shop.yaml")))
	if len(f.Problems) > 0 || len(f.Targets) != 4 {
		t.Fatalf("%+v", f)
	}
	x := f.Targets[1]
	if d := cmp.Diff(&Hydration{Branch: "env/dev", Path: "out", Staging: "next"}, x.Hydration); d != "" {
		t.Error(d)
	}
	if len(x.Sources) != 1 || !x.Sources[0].Here || x.Sources[0].Path != "apps/web/dev" || x.Sources[0].TargetRevision != "main" {
		t.Errorf("%+v", x.Sources)
	}
}
