package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestReachOfApplicationSet says whom an edit of a set reaches, which no target reads: those whose Applications
// come out otherwise.
func TestReachOfApplicationSet(t *testing.T) {
	const pipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: "argocd/*.yaml"}]
  component: '{{ .component }}'
  environment: '{{ .env }}'
  carry: [{yaml: {files: ["s.yaml"], paths: ["spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"]}}]
  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`
	element := func(component, env, cluster, tag string) string {
		return "{component: " + component + ", env: " + env + ", cluster: " + cluster + ", tag: '" + tag + "'}"
	}
	set := func(qa string, more ...string) string {
		elements := append([]string{element("web", "dev", "a", "2"), element("web", "qa", "a", qa), element("web", "qa", "b", qa), element("api", "qa", "a", "1")}, more...)
		return strings.ReplaceAll(appSetYAML("s", "{list: {elements: ["+strings.Join(elements, ", ")+"]}}",
			"source: {repoURL: 'https://charts.example', chart: '{{ .component }}', targetRevision: '{{ .tag }}'}"), "{{ .env }}'}", "{{ .env }}-{{ .cluster }}'}")
	}
	r := newTestRepo(t, "fleet", map[string]string{".liftlock.yaml": pipeline, "argocd/s.yaml": set("1")})
	o := newTestGatherer(r)
	s := takeSnapshot(t, o, r)
	ev := &Evaluation{Basis: branch.Basis{Snapshot: s, Pipeline: s.Pipelines[0], Unit: promotion.Unit{Repo: r.ID, Pipeline: "shop", Component: "web"}}}
	for name, c := range map[string]struct {
		after      string
		base       string
		reached    []string
		unaffected int
	}{
		"an element":            {set("2"), s.Commit, []string{"s-web-qa-a spec.source.targetRevision 1 → 2", "s-web-qa-b spec.source.targetRevision 1 → 2"}, 2},
		"a comment":             {set("1") + "# later\n", s.Commit, nil, 4},
		"one more":              {set("1", element("web", "qa", "c", "1")), s.Commit, []string{"s-web-qa-c"}, 4},
		"others' are no matter": {set("1", element("api", "qa", "c", "1")), s.Commit, nil, 4},
		"of no commit":          {set("2"), "", nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			edits := []fieldedit.Edit{{File: "argocd/s.yaml", Mode: fieldedit.ModeRegular, Before: []byte(set("1")), After: []byte(c.after)}}
			reached, unaffected, err := o.Effects.Reach(t.Context(), &ev.Basis, []string{"web"}, "qa", c.base, edits)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range reached {
				text := x.Name
				for _, f := range x.Fields {
					text += " " + f.Path + " " + f.Live + " → " + f.Resolved
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.reached, got); diff != "" || len(unaffected) != c.unaffected {
				t.Errorf("%d are left as they are (-want +got):\n%s", len(unaffected), diff)
			}
		})
	}
}
