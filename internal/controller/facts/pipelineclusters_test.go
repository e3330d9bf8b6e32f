package facts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// TestServerIgnoresPipelineClusters holds that a file of the repository tells a server nothing of
// clusters: neither where it knows some, nor where it knows none.
func TestServerIgnoresPipelineClusters(t *testing.T) {
	files := map[string]string{
		"argocd/agents.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: agents}
spec:
  generators: [{clusters: {selector: {matchLabels: {environment: prod}}}}]
  template:
    metadata: {name: 'agent-{{name}}'}
    spec: {project: default, source: {repoURL: https://git.example/acme/fleet.git, path: agent}, destination: {name: '{{name}}'}}
`,
		"clusters.yaml": `kind: Secret
metadata: {name: claimed, labels: {argocd.argoproj.io/secret-type: cluster, environment: prod}}
stringData: {name: claimed, server: https://claimed.example}
`,
		".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: agents}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  clusters: clusters.yaml
  component: agent
  environment: '{{ .metadata.labels.environment }}'
  carry: [{kustomizeImages: ["*"]}]
  environments: [{name: prod}]
`,
	}
	real := argocd.Cluster{Secret: "a", Name: "a", Server: "https://a.example", Labels: map[string]string{"environment": "prod"}}
	for _, c := range []struct {
		name    string
		live    fakeArgoCD
		want    []string
		problem string
	}{
		{name: "clusters that are known", live: fakeArgoCD{clusters: []argocd.Cluster{real}}, want: []string{"agent-a"}},
		{name: "none that are known", live: fakeArgoCD{clustersErr: argocd.ErrClustersOff}, problem: "those are not known here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo := newTestRepo(t, "fleet", files)
			o := New(Options{
				Resolver: appset.New(appset.Options{}), Repos: []*branch.Repository{repo.Repository}, Now: time.Now,
				ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: &c.live, Live: &c.live, Namespace: "argocd"}}, MainArgoCD: "hub",
			})
			set := takeSnapshot(t, o, repo).Pipelines[0].TargetSet
			var names []string
			for i := range set.Targets {
				names = append(names, set.Targets[i].Name)
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("the targets are %v, want %v", names, c.want)
			}
			if c.problem != "" && (len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Message, c.problem)) {
				t.Errorf("the problems are %v", set.Problems)
			}
		})
	}
}
