package appset

import (
	"fmt"
	"testing"
)

// TestDestinations holds that the same destinations are valid here and there.
func TestDestinations(t *testing.T) {
	const inCluster = "https://kubernetes.default.svc"
	for _, c := range []struct {
		name     string
		clusters []Cluster
		valid    []string // of the destinations below
	}{
		{name: "none registered", valid: []string{"none", "server in-cluster", "name in-cluster"}},
		{name: "some", clusters: []Cluster{{Secret: "a", Name: "a", Server: "https://a"}}, valid: []string{"none", "server in-cluster", "name in-cluster", "name a", "server a"}},
		{name: "a slash at the end", clusters: []Cluster{{Secret: "a", Name: "a", Server: "https://a/"}}, valid: []string{"none", "server in-cluster", "name in-cluster", "name a", "server a"}},
		{name: "no name", clusters: []Cluster{{Secret: "a", Server: "https://a"}}, valid: []string{"none", "server in-cluster", "name in-cluster"}},
		{name: "two of one name", clusters: []Cluster{{Secret: "a", Name: "a", Server: "https://a"}, {Secret: "b", Name: "a", Server: "https://b"}}, valid: []string{"none", "server in-cluster", "name in-cluster", "server a"}},
		{name: "two of one server", clusters: []Cluster{{Secret: "a", Name: "a", Server: "https://a"}, {Secret: "b", Name: "b", Server: "https://a"}}, valid: []string{"none", "server in-cluster", "name in-cluster", "name a"}},
		{name: "the local one by another name", clusters: []Cluster{{Secret: "l", Name: "local", Server: inCluster}}, valid: []string{"none", "server in-cluster"}},
		{name: "a remote one called in-cluster", clusters: []Cluster{{Secret: "l", Name: "in-cluster", Server: "https://a"}}, valid: []string{"none", "server in-cluster", "server a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &oracle{dir: t.TempDir(), clusters: c.clusters, projects: []string{"default"}}
			if o.clusters == nil {
				o.clusters = []Cluster{}
			}
			var valid []string
			for _, d := range [][2]string{
				{"none", "{}"}, {"server in-cluster", "{server: '" + inCluster + "'}"}, {"server in-cluster/", "{server: '" + inCluster + "/'}"}, {"name in-cluster", "{name: in-cluster}"},
				{"name a", "{name: a}"}, {"server a", "{server: 'https://a'}"}, {"both", "{name: a, server: 'https://a'}"}, {"gone", "{name: gone}"},
			} {
				manifest := fmt.Appendf(nil, "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{list: {elements: [{name: x}]}}]\n"+
					"  template:\n    metadata: {name: x}\n    spec: {project: default, source: {repoURL: x, path: p}, destination: %s}\n", d[1])
				if n, failed := o.compare(t, manifest); n == 1 && !failed {
					valid = append(valid, d[0])
				}
			}
			if fmt.Sprint(valid) != fmt.Sprint(c.valid) {
				t.Errorf("valid are %q, want %q", valid, c.valid)
			}
		})
	}
}
