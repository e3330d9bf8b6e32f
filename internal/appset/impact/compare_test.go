package impact

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/pipeline"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shop is a pipeline of three environments.
func shop() *pipeline.Pipeline {
	p := &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}}
	for _, name := range []string{"dev", "qa", "prod"} {
		p.Spec.Environments = append(p.Spec.Environments, pipeline.Environment{Name: name})
	}
	return p
}

// target is one of the set shop; place is "component/environment", or empty.
func target(name, place, revision string) appset.Target {
	t := appset.Target{Name: name, Namespace: "argocd", ApplicationSet: "shop", ApplicationSetFile: "argocd/shop.yaml", Server: "https://c.example"}
	t.Component, t.Environment, _ = strings.Cut(place, "/")
	t.Application = json.RawMessage(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"source":{"targetRevision":%q}}}`, name, revision))
	return t
}

// side makes a world of one pipeline.
func newResolution(targets []appset.Target, changed map[string][]string, problems ...appset.Problem) *evaluate.Resolution {
	p := &evaluate.Pipeline{TargetSet: &appset.TargetSet{Targets: targets, Problems: problems}, ChangedFiles: map[string][]string{}}
	for name, files := range changed {
		p.ChangedFiles["/argocd/"+name] = files
	}
	return &evaluate.Resolution{Pipelines: map[string]*evaluate.Pipeline{"shop": p}}
}

// lines is a report in short: "environment: what name".
func lines(r *Report) []string {
	out := []string{}
	for _, p := range r.Pipelines {
		for _, e := range p.Environments {
			for _, t := range e.Targets {
				line := fmt.Sprintf("%s: %s %s", e.Name, t.What, t.Name)
				if t.From != "" {
					line += " from " + t.From + " to " + t.To
				}
				if t.Kept != "" {
					line += " (kept)"
				}
				if t.Unsure {
					line += " (unsure)"
				}
				out = append(out, line)
			}
		}
	}
	return out
}

func TestCompare(t *testing.T) {
	dev, qa, prod := target("web-dev", "web/dev", "v1"), target("web-qa", "web/qa", "v1"), target("web-prod", "web/prod", "v1")
	qa2, moved, alone := target("web-qa", "web/qa", "v2"), target("web-qa", "web/prod", "v1"), target("agent", "", "v1")
	kept, preserving, fixed := qa, qa, qa2
	kept.Policy.NoDelete, preserving.Policy.PreserveResources, fixed.Policy.NoUpdate = true, true, true
	all := []appset.Target{dev, prod, qa}
	setBroken := appset.Problem{File: "argocd/shop.yaml", ApplicationSet: "shop", Message: "it is broken"}
	otherBroken := appset.Problem{File: "argocd/other.yaml", ApplicationSet: "other", Message: "it is broken"}
	for _, tc := range []struct {
		name          string
		before, after *evaluate.Resolution
		want          []string
		reached       []string
	}{
		{"nothing", newResolution(all, nil), newResolution(all, nil), []string{}, nil},
		{"a file that one reads", newResolution(all, map[string][]string{"web-qa": {"a"}}), newResolution(all, nil), []string{"qa: changed web-qa"}, []string{"qa"}},
		{"a file that one comes to read", newResolution(all, nil), newResolution(all, map[string][]string{"web-qa": {"a"}}), []string{"qa: changed web-qa"}, []string{"qa"}},
		{"a specification", newResolution(all, nil), newResolution([]appset.Target{dev, prod, qa2}, nil), []string{"qa: changed web-qa"}, []string{"qa"}},
		{"one that Argo CD won't update", newResolution(all, nil), newResolution([]appset.Target{dev, prod, fixed}, nil), []string{"qa: changed web-qa (kept)"}, []string{"qa"}},
		{"created", newResolution([]appset.Target{dev}, nil), newResolution(all, nil), []string{"qa: created web-qa", "prod: created web-prod"}, []string{"qa", "prod"}},
		{"deleted", newResolution(all, nil), newResolution([]appset.Target{dev}, nil), []string{"qa: deleted web-qa", "prod: deleted web-prod"}, []string{"qa", "prod"}},
		{"one that Argo CD won't delete", newResolution([]appset.Target{kept}, nil), newResolution(nil, nil), []string{"qa: deleted web-qa (kept)"}, []string{"qa"}},
		{"one whose resources stay", newResolution([]appset.Target{preserving}, nil), newResolution(nil, nil), []string{"qa: deleted web-qa (kept)"}, []string{"qa"}},
		{"moved", newResolution([]appset.Target{qa}, nil), newResolution([]appset.Target{moved}, nil),
			[]string{"qa: changed web-qa from web in qa to web in prod", "prod: changed web-qa from web in qa to web in prod"}, []string{"qa", "prod"}},
		{"out of the pipeline", newResolution([]appset.Target{qa}, nil), newResolution([]appset.Target{target("web-qa", "", "v1")}, nil),
			[]string{"qa: changed web-qa from web in qa to no environment", ": changed web-qa from web in qa to no environment"}, []string{"qa"}},
		{"in no environment", newResolution(nil, nil), newResolution([]appset.Target{alone}, nil), []string{": created agent"}, nil},
		{"a set that breaks", newResolution(all, nil), newResolution(nil, nil, setBroken),
			[]string{"dev: unknown web-dev", "qa: unknown web-qa", "prod: unknown web-prod"}, nil},
		{"a set that is mended", newResolution(nil, nil, setBroken), newResolution(all, nil),
			[]string{"dev: unknown web-dev", "qa: unknown web-qa", "prod: unknown web-prod"}, nil},
		{"a file that can't be read", newResolution([]appset.Target{qa}, nil), newResolution(nil, nil, appset.Problem{File: "argocd/shop.yaml"}), []string{"qa: unknown web-qa"}, nil},
		{"another set that breaks", newResolution(all, nil), newResolution([]appset.Target{dev}, nil, otherBroken),
			[]string{"qa: deleted web-qa", "prod: deleted web-prod"}, []string{"qa", "prod"}},
		{"one Application that isn't valid", newResolution(all, nil), newResolution([]appset.Target{dev, prod}, nil, appset.Problem{File: "argocd/shop.yaml", ApplicationSet: "shop", Application: "web-qa"}),
			[]string{"qa: unknown web-qa"}, nil},
		{"a world without the pipeline", nil, newResolution([]appset.Target{qa}, nil), []string{"qa: created web-qa"}, []string{"qa"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := Compare(Input{Pipelines: []*pipeline.Pipeline{shop()}, Before: tc.before, After: tc.after, Changed: []string{"a"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(r); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if got := r.Pipelines[0].Reached(); !slices.Equal(got, tc.reached) {
				t.Errorf("it reaches %q, want %q", got, tc.reached)
			}
			if multiple := len(r.Multiple()) > 0; multiple != (len(tc.reached) > 1) {
				t.Errorf("multiple: %v", multiple)
			}
		})
	}
}

func TestCompareFilesAndProblems(t *testing.T) {
	qa := target("web-qa", "web/qa", "v1")
	qa.GeneratorFiles = []string{"clusters/qa.json"}
	preexisting := appset.Problem{File: "argocd/old.yaml", Message: "it was so"}
	fresh := appset.Problem{File: "argocd/new.yaml", Message: "it is new"}
	fixed := appset.Problem{File: "argocd/gone.yaml", Message: "it is mended"}
	before := newResolution([]appset.Target{qa}, map[string][]string{"web-qa": {"apps/web/a.yaml", "clusters/qa.json"}}, preexisting, fixed)
	after := newResolution([]appset.Target{qa}, map[string][]string{"web-qa": {"apps/web/a.yaml", "apps/web/b.yaml"}}, preexisting, fresh)
	after.Pipelines["shop"].Doubts = []deps.Problem{{Reader: "/argocd/web-qa", File: "apps/web/a.yaml"}}
	r, err := Compare(Input{Pipelines: []*pipeline.Pipeline{shop()}, Before: before, After: after, Changed: []string{
		"z.md", "README.md", ".liftlock.yaml", "argocd/shop.yaml", "argocd/new.yaml", "apps/web/a.yaml", "apps/web/b.yaml", "clusters/qa.json",
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := r.Pipelines[0].Environments[0].Targets[0]
	want := Target{
		Name: "web-qa", Namespace: "argocd", Component: "web", Cluster: "https://c.example", ApplicationSet: "shop", What: Changed,
		Files: []string{"apps/web/a.yaml", "apps/web/b.yaml", "clusters/qa.json"}, Generators: []string{"clusters/qa.json"}, Unsure: true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !slices.Equal(r.Unread, []string{"README.md", "z.md"}) || !slices.Equal(r.Rules, []string{".liftlock.yaml"}) || r.Files != 8 {
		t.Errorf("unread %q, rules %q, %d files", r.Unread, r.Rules, r.Files)
	}
	p := &r.Pipelines[0]
	if !slices.Equal(p.Problems, []appset.Problem{fresh}) || !slices.Equal(p.Preexisting, []appset.Problem{preexisting}) || !slices.Equal(p.Fixed, []appset.Problem{fixed}) || r.NewProblems() != 1 {
		t.Errorf("problems %v, standing %v, mended %v", p.Problems, p.Preexisting, p.Fixed)
	}
}

func TestCompareNamesTheTargetThatCannotBeRead(t *testing.T) {
	qa, broken := target("web-qa", "web/qa", "v1"), target("web-qa", "web/qa", "v1")
	broken.Application = json.RawMessage(`{`)
	_, err := Compare(Input{Pipelines: []*pipeline.Pipeline{shop()}, Before: newResolution([]appset.Target{qa}, nil), After: newResolution([]appset.Target{broken}, nil)})
	if err == nil || !strings.Contains(err.Error(), "pipeline shop: target /argocd/web-qa") {
		t.Errorf("%v", err)
	}
}

// manyTargets is a change of a base that many share, and of more than is shown.
func manyTargets(t *testing.T) *Report {
	t.Helper()
	var before, after []appset.Target
	changedBy := map[string][]string{}
	for i := range 25 {
		name := fmt.Sprintf("web-prod-%02d", i)
		before, after = append(before, target(name, "web/prod", "v1")), append(after, target(name, "web/prod", "v1"))
		changedBy[name] = []string{"base/deployment.yaml"}
	}
	before, after = append(before, target("web-qa", "web/qa", "v1")), append(after, target("web-qa", "web/qa", "v2"))
	for i := range 12 {
		changedBy["web-qa"] = append(changedBy["web-qa"], fmt.Sprintf("apps/web/%02d.yaml", i))
	}
	gone := target("agent\x1b[31m", "", "v1")
	gone.Policy.NoDelete = true
	before = append(before, gone)
	changed := append([]string{"base/deployment.yaml", "new\nline.md", ".liftlock/shop.yaml"}, changedBy["web-qa"]...)
	r, err := Compare(Input{Pipelines: []*pipeline.Pipeline{shop()}, Before: newResolution(before, changedBy), After: newResolution(after, changedBy), Changed: changed})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWriteTable(t *testing.T) {
	var b bytes.Buffer
	if err := WriteTable(&b, manyTargets(t)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "crowd.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-update writes it anew):\n%s", file, d)
	}
}

func TestYAMLAndJSONAreOneDocument(t *testing.T) {
	r := manyTargets(t)
	var j, y bytes.Buffer
	if err := appset.WriteJSON(&j, r); err != nil {
		t.Fatal(err)
	}
	if err := appset.WriteYAML(&y, r); err != nil {
		t.Fatal(err)
	}
	var back, again Report
	if err := json.Unmarshal(j.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(y.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*r, back); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(back, again); d != "" {
		t.Error(d)
	}
}

// A report leaves out exactly what is the same, is what it would be of inputs in
// another order, and turns round with the change.
func TestCompareProperty(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	draw := func(rt *rapid.T, label string) (map[string]appset.Target, map[string][]string) {
		targets, changed := map[string]appset.Target{}, map[string][]string{}
		for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(rt, label) {
			targets[n] = target(n, rapid.SampledFrom([]string{"web/dev", "web/qa", "api/qa", ""}).Draw(rt, label+n), rapid.SampledFrom([]string{"v1", "v2"}).Draw(rt, label+n))
			if rapid.Bool().Draw(rt, label+n+" touched") {
				changed[n] = []string{"f"}
			}
		}
		return targets, changed
	}
	list := func(rt *rapid.T, targets map[string]appset.Target) []appset.Target {
		var out []appset.Target
		for _, n := range rapid.Permutation(names).Draw(rt, "order") {
			if t, ok := targets[n]; ok {
				out = append(out, t)
			}
		}
		return out
	}
	rapid.Check(t, func(rt *rapid.T) {
		before, read := draw(rt, "before")
		after, reads := draw(rt, "after")
		compare := func(a, b map[string]appset.Target, ta, tb map[string][]string) *Report {
			r, err := Compare(Input{Pipelines: []*pipeline.Pipeline{shop()}, Before: newResolution(list(rt, a), ta), After: newResolution(list(rt, b), tb), Changed: []string{"f"}})
			if err != nil {
				rt.Fatal(err)
			}
			return r
		}
		r := compare(before, after, read, reads)
		if d := cmp.Diff(r, compare(before, after, read, reads)); d != "" {
			rt.Fatalf("another order gives another report:\n%s", d)
		}
		got := map[string]string{}
		for _, e := range r.Pipelines[0].Environments {
			for _, t := range e.Targets {
				got[t.Name] = t.What
			}
		}
		for _, n := range names {
			was, had := before[n]
			is, has := after[n]
			want := ""
			switch {
			case had && !has:
				want = Deleted
			case has && !had:
				want = Created
			case had && (string(was.Application) != string(is.Application) || was.Component != is.Component || was.Environment != is.Environment ||
				len(read[n])+len(reads[n]) > 0):
				want = Changed
			}
			if got[n] != want {
				rt.Fatalf("%s is %q, want %q", n, got[n], want)
			}
		}
		back := compare(after, before, reads, read)
		if r.Count(Created) != back.Count(Deleted) || r.Count(Deleted) != back.Count(Created) || r.Count(Changed) != back.Count(Changed) {
			rt.Fatalf("there %s\nback %s", r.Summary(), back.Summary())
		}
		if !slices.Equal(r.Pipelines[0].Reached(), back.Pipelines[0].Reached()) {
			rt.Fatalf("there %q, back %q", r.Pipelines[0].Reached(), back.Pipelines[0].Reached())
		}
		for _, e := range r.Pipelines[0].Environments {
			n := 0
			for _, g := range e.Groups() {
				n += len(g.Names)
			}
			if n != len(e.Targets) {
				rt.Fatalf("%d targets in %d of groups", len(e.Targets), n)
			}
		}
	})
}
