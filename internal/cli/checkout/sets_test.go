package checkout

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestMayHoldSet(t *testing.T) {
	for _, tc := range []struct {
		name, data string
		want       bool
	}{
		{"nothing", "", false},
		{"one", "kind: ApplicationSet\n", true},
		{"JSON", `{"kind": "ApplicationSet"}`, true},
		{"the second document", "kind: Secret\n---\nkind: ApplicationSet\n", true},
		{"an item of a list", "kind: List\nitems:\n- kind: Secret\n- kind: ApplicationSet\n", true},
		{"another kind", "kind: Application\n", false},
		{"in a comment", "# kind: ApplicationSet\na: b\n", false},
		{"in a text", "data:\n  a: |\n    kind: ApplicationSet\n", false},
		{"deeper", "spec: {kind: ApplicationSet}\n", false},
		{"behind what is no object", "- a\n---\n5\n---\nkind: [x]\n---\nkind: ApplicationSet\n", true},
		{"what can't be read", "a: [\n", true},
		{"behind it", "a: [\n---\nkind: Secret\n", true},
		{"too large", "kind: Secret\n" + strings.Repeat("#", maxInspected), true},
	} {
		if got := mayHold([]byte(tc.data), kindApplicationSet); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// FuzzMayHoldSet holds that no manifest is passed over in which the resolver
// finds an ApplicationSet.
func FuzzMayHoldSet(f *testing.F) {
	for _, s := range []string{"kind: ApplicationSet\n", "a: 1\n---\nkind: \"ApplicationSet\"\n", "{kind: ApplicationSet}", "kind: List\nitems: [{kind: ApplicationSet}]", "a: &a {kind: ApplicationSet}\n<<: *a\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found := false
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			doc, err := documents.Read()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					return // the resolver refuses it
				}
				break
			}
			var object struct {
				Kind  string `json:"kind"`
				Items []struct {
					Kind string `json:"kind"`
				} `json:"items"`
			}
			if yaml.Unmarshal(doc, &object) != nil {
				continue
			}
			found = found || object.Kind == "ApplicationSet"
			for _, item := range object.Items {
				found = found || object.Kind == "List" && item.Kind == "ApplicationSet"
			}
		}
		if found && !mayHold(data, kindApplicationSet) {
			t.Errorf("%q is passed over", data)
		}
	})
}

func TestNarrowPipeline(t *testing.T) {
	p := &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}}
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{
		{Path: "argocd/**"}, {Path: "./argocd/prod*.yaml", ArgoCD: "prod"}, {Live: &pipeline.LiveApplicationSet{Name: "live"}},
	}
	for _, tc := range []struct {
		name  string
		files []string
		want  []pipeline.ApplicationSetSource
	}{
		{"none", []string{"other/a.yaml"}, nil},
		{"the wide one", []string{"argocd/x/a.yaml"}, []pipeline.ApplicationSetSource{{Path: "argocd/x/a.yaml"}}},
		{"the last one that matches", []string{"argocd/prod-1.yaml"}, []pipeline.ApplicationSetSource{{Path: "argocd/prod-1.yaml", ArgoCD: "prod"}}},
		{"a name like a glob", []string{"argocd/{a}[b]*?.yaml"}, []pipeline.ApplicationSetSource{{Path: `argocd/\{a\}\[b\]\*\?.yaml`}}},
	} {
		got := narrowPipeline(p, tc.files)
		if tc.want == nil {
			if got != nil {
				t.Errorf("%s: %+v", tc.name, got.Spec.ApplicationSets)
			}
			continue
		}
		if got == nil || !slices.Equal(got.Spec.ApplicationSets, tc.want) || got.Name() != "shop" {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	if len(p.Spec.ApplicationSets) != 3 {
		t.Error("the pipeline itself was changed")
	}
}

func TestMergePipelines(t *testing.T) {
	one, two := &pipeline.Pipeline{}, &pipeline.Pipeline{}
	one.Spec.ApplicationSets = []pipeline.ApplicationSetSource{
		{Path: "a", Component: "{{ .x }}"}, {Path: "b", ArgoCD: "hub"}, {Path: "c", ArgoCD: "other"},
		{Live: &pipeline.LiveApplicationSet{ArgoCD: "hub", Namespace: "argocd", Name: "s"}},
	}
	two.Spec.ApplicationSets = []pipeline.ApplicationSetSource{
		{Path: "a", Environment: "prod"}, {Live: &pipeline.LiveApplicationSet{ArgoCD: "hub", Namespace: "argocd", Name: "s"}},
		{Live: &pipeline.LiveApplicationSet{ArgoCD: "hub", Namespace: "team", Name: "s"}},
	}
	var got []string
	for _, e := range mergePipelines([]*pipeline.Pipeline{one, two}, "hub").Spec.ApplicationSets {
		name := e.Path
		if e.Live != nil {
			name = e.Live.Namespace + "/" + e.Live.Name
		}
		if e.Component+e.Environment != "" {
			t.Errorf("%s has templates", name)
		}
		got = append(got, name)
	}
	if want := []string{"a", "b", "argocd/s", "team/s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if one.Spec.ApplicationSets[0].Component == "" {
		t.Error("the pipeline itself was changed")
	}
}
