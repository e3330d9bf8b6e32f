package appset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const placementList = `# kubectl get placementdecisions -o yaml
---
apiVersion: v1
kind: List
items:
- apiVersion: cluster.open-cluster-management.io/v1beta1
  kind: PlacementDecision
  metadata: {name: prod-decision-1, namespace: openshift-gitops, labels: {cluster.open-cluster-management.io/placement: prod}}
  status: {decisions: [{clusterName: eu, reason: ""}, {clusterName: gone, reason: ""}]}
- apiVersion: cluster.open-cluster-management.io/v1beta1
  kind: PlacementDecision
  metadata: {name: dev-decision-1, namespace: openshift-gitops, labels: {cluster.open-cluster-management.io/placement: dev}}
  status: {decisions: [{clusterName: lab, reason: ""}]}
- apiVersion: cluster.open-cluster-management.io/v1beta1
  kind: PlacementDecision
  metadata: {name: empty-decision-1, labels: {cluster.open-cluster-management.io/placement: empty}}
---
apiVersion: mallard.io/v1beta1
kind: Duck
metadata: {name: quak}
status: {clusters: [{cluster: lab}], other: 3}
---
kind: ConfigMap
metadata: {name: ducks}
data: {apiVersion: mallard.io/v1, kind: ducks, matchKey: cluster}
`

func TestPlacements(t *testing.T) {
	placements, err := ParsePlacements([]byte(placementList))
	must(t, err)
	if d := cmp.Diff([]string{"eu", "gone", "lab"}, placements.ClusterNames()); d != "" {
		t.Error(d)
	}
	clusters := []Cluster{{Secret: "a", Name: "eu", Server: "https://eu"}, {Secret: "b", Name: "lab", Server: "https://lab"}}
	for _, c := range []struct {
		name, generator string
		placements      *Placements
		clusters        []Cluster
		want            []string
		problem         string
	}{
		{name: "by a label", generator: "{configMapRef: acm-placement, labelSelector: {matchLabels: {cluster.open-cluster-management.io/placement: prod}}}", placements: placements, clusters: clusters, want: []string{"web-eu"}},
		{name: "by its name", generator: "{configMapRef: acm-placement, name: dev-decision-1}", placements: placements, clusters: clusters, want: []string{"web-lab"}},
		{name: "without a decision yet", generator: "{configMapRef: acm-placement, name: empty-decision-1}", placements: placements, clusters: clusters},
		{name: "another kind, as a ConfigMap of the file says", generator: "{configMapRef: ducks, name: quak}", placements: placements, clusters: clusters, want: []string{"web-lab"}},
		{name: "another kind without its ConfigMap", generator: "{configMapRef: acm-placement, name: quak}", placements: placements, clusters: clusters, problem: "no clusterDecisionResources found"},
		{name: "no such placement", generator: "{configMapRef: acm-placement, name: none}", placements: placements, clusters: clusters, problem: "no clusterDecisionResources found"},
		{name: "without clusters", generator: "{configMapRef: acm-placement, name: dev-decision-1}", placements: placements, problem: "those are not known here"},
		{name: "without placements", generator: "{configMapRef: acm-placement, name: dev-decision-1}", clusters: clusters, problem: "--placements takes a file of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shop("set.yaml")
			p.Spec.Component, p.Spec.Environment = "", ""
			in := input(files(map[string]string{"set.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s}
spec:
  generators: [{clusterDecisionResource: ` + c.generator + `}]
  template:
    metadata: {name: 'web-{{name}}'}
    spec: {project: default, source: {repoURL: x, path: p}, destination: {server: '{{server}}'}}
`}), p)
			in.Clusters, in.Placements = c.clusters, c.placements
			f := mustResolve(t, in)
			var names []string
			for i := range f.Targets {
				names = append(names, f.Targets[i].Name)
			}
			if d := cmp.Diff(c.want, names); d != "" {
				t.Error(d)
			}
			if c.problem == "" != (len(f.Problems) == 0) || len(f.Problems) > 0 && !strings.Contains(f.Problems[0].Message, c.problem) {
				t.Errorf("the problems are %v, want %q", f.Problems, c.problem)
			}
		})
	}
}

func TestWrongPlacements(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":         {"kind: ConfigMap\nmetadata: {name: x}\n---\nc: [", "document 2 (line 4): it is not the YAML or JSON"},
		"no kind":          {"a: b", "document 1 (line 1): an object has no kind, or no name"},
		"another kind":     {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}", `Secret "x": its apiVersion is "v1"`},
		"no list of texts": {"apiVersion: a/v1\nkind: Duck\nmetadata: {name: x}\nstatus: {decisions: [{clusterName: [a]}]}", `Duck "x": status.decisions is not a list of texts`},
	} {
		if _, err := ParsePlacements([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzParsePlacements(f *testing.F) {
	f.Add([]byte(placementList))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := ParsePlacements(data); err == nil && len(p.Items) > maxPlacements {
			t.Fatal("too many placements")
		}
	})
}
