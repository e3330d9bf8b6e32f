package appset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

const comparedSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{list: {elements: [{name: a}, {name: b}, {name: c}]}}]
  template:
    metadata: {name: 'web-{{ .name }}', labels: {team: shop}}
    spec:
      project: default
      source:
        repoURL: https://git.example.com/acme/fleet.git
        targetRevision: main
        path: 'apps/{{ .name }}'
        helm: {parameters: [{name: image.tag, value: "1"}, {name: db.password, value: new}], values: "a: 1\nb: 2\n"}
      destination: {server: https://kubernetes.default.svc, namespace: web}
      syncPolicy: {automated: {prune: true}}
`

// comparison resolves a set and gives the Applications as live ones to change.
func comparison(t *testing.T, set string) (Input, *TargetSet, map[string]object) {
	t.Helper()
	p := shop("set.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	in := input(files(map[string]string{"set.yaml": set}), p)
	in.Manifests, in.Main = true, "hub"
	f := mustResolve(t, in)
	live := map[string]object{}
	for _, x := range f.Targets {
		app := object{}
		must(t, json.Unmarshal(x.Application, &app))
		app["metadata"].(object)["namespace"] = "argocd"
		app["metadata"].(object)["ownerReferences"] = []any{object{"apiVersion": apiVersion, "kind": kindSet, "name": x.ApplicationSet, "uid": "1", "controller": true, "blockOwnerDeletion": true}}
		app["metadata"].(object)["resourceVersion"] = "17"
		app["status"] = object{"health": object{"status": "Healthy"}}
		live[x.Name] = app
	}
	return in, f, live
}

func raws(t *testing.T, live map[string]object) map[string][]json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	for _, app := range live {
		raw, err := json.Marshal(app)
		must(t, err)
		out = append(out, raw)
	}
	return map[string][]json.RawMessage{"hub": out}
}

// set changes a field by its path; a nil value removes it.
func (o objects) set(app, path string, value any) {
	at := map[string]any(o[app])
	words := strings.Split(path, "/")
	for _, w := range words[:len(words)-1] {
		next, _ := at[w].(object)
		if next == nil {
			next = object{}
			at[w] = next
		}
		at = next
	}
	if last := words[len(words)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
}

type objects map[string]object

func TestCompare(t *testing.T) {
	const ignoring = "spec:\n  ignoreApplicationDifferences:\n  - jsonPointers: [/spec/source/targetRevision]\n  - name: web-a\n    jqPathExpressions: ['.spec.source.helm.parameters[] | select(.name == \"image.tag\")']\n"
	const preserving = "spec:\n  preservedFields: {annotations: [note], labels: [owner]}\n"
	for _, c := range []struct {
		name    string
		set     string // replaces "spec:\n" at the set's top
		change  func(live objects)
		want    []string
		expects int // of want, how many are expected
	}{
		{name: "equal", change: func(objects) {}},
		{name: "what runs has more status", change: func(o objects) {
			o.set("web-a", "operation", object{"sync": object{}})
			o.set("web-a", "metadata/managedFields", []any{object{"manager": "x"}})
		}},
		{name: "missing", change: func(o objects) { delete(o, "web-b") }, want: []string{"missing hub/argocd/web-b"}},
		{name: "elsewhere is missing too", change: func(o objects) { o.set("web-b", "metadata/namespace", "other") }, want: []string{"missing hub/argocd/web-b"}},
		{name: "extra", change: func(o objects) {
			o["old"] = clone(o["web-a"])
			o.set("old", "metadata/name", "web-old")
		}, want: []string{"extra hub/argocd/web-old"}},
		{name: "extra, but kept", set: "spec:\n  syncPolicy: {applicationsSync: create-update}\n", change: func(o objects) {
			o["old"] = clone(o["web-a"])
			o.set("old", "metadata/name", "web-old")
		}, want: []string{"extra hub/argocd/web-old"}, expects: 1},
		{name: "extra, but on its way out", change: func(o objects) {
			o["old"] = clone(o["web-a"])
			o.set("old", "metadata/name", "web-old")
			o.set("old", "metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
		}, want: []string{"extra hub/argocd/web-old"}, expects: 1},
		{name: "of another set, or of none", change: func(o objects) {
			o["x"], o["y"] = clone(o["web-a"]), clone(o["web-a"])
			o.set("x", "metadata/name", "x")
			o["x"]["metadata"].(object)["ownerReferences"].([]any)[0].(object)["name"] = "other"
			o.set("y", "metadata/name", "y")
			o.set("y", "metadata/ownerReferences", nil)
		}},
		{name: "a revision", change: func(o objects) { o.set("web-a", "spec/source/targetRevision", "v1") },
			want: []string{"different hub/argocd/web-a spec.source.targetRevision=v1→main"}},
		{name: "a revision, and never updated", set: "spec:\n  syncPolicy: {applicationsSync: create-only}\n", change: func(o objects) { o.set("web-a", "spec/source/targetRevision", "v1") },
			want: []string{"different hub/argocd/web-a spec.source.targetRevision=v1→main"}, expects: 1},
		{name: "ignored", set: ignoring, change: func(o objects) {
			o.set("web-a", "spec/source/targetRevision", "v1")
			o.set("web-a", "spec/source/helm/parameters", []any{object{"name": "image.tag", "value": "9"}, object{"name": "db.password", "value": "new"}})
		}},
		{name: "ignored for another", set: ignoring, change: func(o objects) {
			o.set("web-b", "spec/source/helm/parameters", []any{object{"name": "image.tag", "value": "9"}, object{"name": "db.password", "value": "new"}})
		}, want: []string{"different hub/argocd/web-b spec.source.helm.parameters[image.tag].value=9→1"}},
		{name: "preserved", set: preserving, change: func(o objects) {
			o.set("web-a", "metadata/annotations", object{"note": "x", "argocd.argoproj.io/refresh": "normal"})
			o.set("web-a", "metadata/labels", object{"team": "shop", "owner": "ada"})
		}},
		{name: "not preserved", change: func(o objects) {
			o.set("web-a", "metadata/annotations", object{"a.b/note": "x"})
			o.set("web-a", "metadata/labels", object{"owner": "ada"})
		}, want: []string{`different hub/argocd/web-a metadata.annotations["a.b/note"]=x→ metadata.labels.owner=ada→ metadata.labels.team=→shop`}},
		{name: "a post-delete finalizer", change: func(o objects) {
			o.set("web-a", "metadata/finalizers", []any{"resources-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup"})
		}},
		{name: "a finalizer", change: func(o objects) { o.set("web-a", "metadata/finalizers", nil) },
			want: []string{"different hub/argocd/web-a metadata.finalizers=→[\"resources-finalizer.argocd.argoproj.io\"]"}},
		{name: "zero values", change: func(o objects) {
			o.set("web-a", "spec/source/kustomize", object{})
			o.set("web-a", "spec/source/directory", object{"recurse": false})
		}},
		{name: "no automation", change: func(o objects) { o.set("web-a", "spec/syncPolicy", nil) },
			want: []string{"different hub/argocd/web-a spec.syncPolicy.automated.prune=→true"}},
		{name: "no automation in a rolling sync", set: "spec:\n  strategy: {type: RollingSync, rollingSync: {steps: [{matchExpressions: []}]}}\n", change: func(o objects) {
			for app := range o {
				o.set(app, "spec/syncPolicy", nil)
			}
		}},
		{name: "a secret", change: func(o objects) {
			o.set("web-a", "spec/source/helm/parameters", []any{object{"name": "image.tag", "value": "1"}, object{"name": "db.password", "value": "old"}})
		}, want: []string{"different hub/argocd/web-a spec.source.helm.parameters[db.password].value=(hidden)→(hidden)"}},
		{name: "a secret's line", change: func(o objects) { o.set("web-a", "spec/source/helm/values", "a: 1\ntoken: abc\n") },
			want: []string{"different hub/argocd/web-a spec.source.helm.values (line 2)=(hidden)→(hidden)"}},
		{name: "another order", change: func(o objects) {
			o.set("web-a", "spec/source/helm/parameters", []any{object{"name": "db.password", "value": "new"}, object{"name": "image.tag", "value": "1"}})
		}, want: []string{"different hub/argocd/web-a spec.source.helm.parameters=in another order→in another order"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := comparedSet
			if c.set != "" {
				set = strings.Replace(set, "spec:\n", c.set, 1)
			}
			in, f, live := comparison(t, set)
			if len(f.Problems) > 0 {
				t.Fatal(f.Problems)
			}
			c.change(live)
			d, err := Compare(in, f, raws(t, live))
			must(t, err)
			if diff := cmp.Diff(c.want, lines(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := len(c.want) - d.Unexpected(); got != c.expects {
				t.Errorf("%d are expected, want %d: %+v", got, c.expects, d)
			}
			if diff := cmp.Diff(controllerDoes(t, set, live), unexpected(d)); diff != "" {
				t.Errorf("the controller wouldn't do what we say it would (-controller +ours):\n%s", diff)
			}
		})
	}
}

// controllerDoes runs the controller over live Applications and says which of
// them it creates, deletes and updates.
func controllerDoes(t *testing.T, set string, live map[string]object) []string {
	t.Helper()
	o := &oracle{dir: t.TempDir(), projects: []string{"default"}}
	before, goingAlready := map[string]string{}, map[string]bool{}
	var existing []client.Object
	for _, object := range live {
		raw, err := json.Marshal(object)
		must(t, err)
		app := &argov1alpha1.Application{}
		must(t, json.Unmarshal(raw, app))
		before[app.Namespace+"/"+app.Name] = app.ResourceVersion
		goingAlready[app.Namespace+"/"+app.Name] = app.DeletionTimestamp != nil
		existing = append(existing, app)
	}
	after, failed := o.reconcileOver(t, []byte(set), existing...)
	if failed != "" {
		t.Fatal(failed)
	}
	var did []string
	for i := range after {
		name := after[i].Namespace + "/" + after[i].Name
		switch version, was := before[name]; {
		case goingAlready[name]:
		case after[i].DeletionTimestamp != nil: // its finalizer is waited for
			did = append(did, "extra "+name)
		case !was:
			did = append(did, "missing "+name)
		case version != after[i].ResourceVersion:
			did = append(did, "different "+name)
		}
		delete(before, name)
	}
	for name := range before {
		did = append(did, "extra "+name)
	}
	slices.Sort(did)
	return did
}

func unexpected(d *Differences) []string {
	var out []string
	for what, list := range map[string][]Difference{"missing": d.Missing, "extra": d.Extra, "different": d.Different} {
		for _, x := range list {
			if x.Expected == "" {
				out = append(out, what+" "+x.Namespace+"/"+x.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func clone(o object) object {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	out := object{}
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

func lines(d *Differences) []string {
	var out []string
	for _, g := range []struct {
		what string
		list []Difference
	}{{"missing", d.Missing}, {"extra", d.Extra}, {"different", d.Different}} {
		for _, x := range g.list {
			line := fmt.Sprintf("%s %s/%s/%s", g.what, x.ArgoCD, x.Namespace, x.Name)
			for _, f := range x.Fields {
				line += fmt.Sprintf(" %s=%s→%s", f.Path, f.Live, f.Resolved)
			}
			out = append(out, line)
		}
	}
	return out
}

// TestCompareInvalid holds that live Applications of what was dropped, or of
// sets that can't be resolved, aren't taken for left-overs.
func TestCompareInvalid(t *testing.T) {
	in, _, live := comparison(t, comparedSet)
	in.Projects = []string{"other"}
	f := mustResolve(t, in)
	d, err := Compare(in, f, raws(t, live))
	must(t, err)
	if len(d.Extra) != 3 || d.Unexpected() != 0 {
		t.Errorf("dropped: %+v", d)
	}
	in.Projects = nil
	in.Tree = files(map[string]string{"set.yaml": strings.Replace(comparedSet, "'web-{{ .name }}'", "'{{ fail \"no\" }}'", 1)})
	f = mustResolve(t, in)
	if d, err = Compare(in, f, raws(t, live)); err != nil || len(lines(d)) > 0 || !slices.Equal(d.Unsure, []string{"shop"}) {
		t.Errorf("not resolved: %+v, %v", d, err)
	}
	in, f, _ = comparison(t, comparedSet)
	if _, err := Compare(in, f, map[string][]json.RawMessage{"hub": {json.RawMessage(`{"spec": 1}`)}}); err == nil {
		t.Error("what can't be read must be an error")
	}
	in.Manifests = false
	if _, err := Compare(in, mustResolve(t, in), nil); err == nil {
		t.Error("targets without manifests can't be compared")
	}
}

func TestDifferencesOutput(t *testing.T) {
	in, f, live := comparison(t, strings.Replace(comparedSet, "spec:\n", "spec:\n  syncPolicy: {applicationsSync: create-update}\n", 1))
	o := objects(live)
	delete(o, "web-b")
	o["old"] = clone(o["web-a"])
	o.set("old", "metadata/name", "web-old")
	o.set("web-a", "spec/source/targetRevision", "v1\x1b[31m")
	o.set("web-a", "spec/source/helm", nil)
	many := object{}
	for i := range maxFields {
		many[fmt.Sprintf("l%02d", i)] = "x"
	}
	o.set("web-c", "metadata/labels", many)
	d, err := Compare(in, f, raws(t, live))
	must(t, err)
	d.Different[1].Fields = d.Different[1].Fields[:2]
	for name, write := range map[string]func(io.Writer, *Differences) error{"differences.txt": WriteDifferencesTable, "differences.json": WriteJSON[*Differences], "differences.yaml": WriteYAML[*Differences]} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must(t, write(&b, d))
			golden(t, name, b.Bytes())
		})
	}
	var b bytes.Buffer
	must(t, WriteDifferencesTable(&b, &Differences{Equal: 3}))
	if b.String() != "3 equal, 0 missing, 0 extra, 0 different\n" {
		t.Errorf("%q", b.String())
	}
	var back Differences
	raw, err := json.Marshal(d)
	must(t, err)
	must(t, yaml.Unmarshal(raw, &back))
	if diff := cmp.Diff(d, &back); diff != "" {
		t.Error(diff)
	}
}

// Compare compares a fleet, resolved from in with Manifests, with all live
// Applications by their Argo CD's name.
func Compare(in Input, f *TargetSet, live map[string][]json.RawMessage) (*Differences, error) {
	c, err := NewComparison(in, f)
	if err != nil {
		return nil, err
	}
	for _, argocd := range slices.Sorted(maps.Keys(live)) {
		for _, raw := range live[argocd] {
			if err := c.CompareLive(argocd, raw); err != nil {
				return nil, err
			}
		}
	}
	return c.Differences(), nil
}
