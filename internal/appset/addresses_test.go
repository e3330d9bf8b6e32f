package appset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddresses(t *testing.T) {
	set := func(generator, source string) string {
		return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s}
spec:
  goTemplate: true
  generators: [` + generator + `]
  template:
    metadata: {name: x}
    spec: {project: default, source: ` + source + `, destination: {name: in-cluster}}
`
	}
	for _, c := range []struct {
		name, generator, source string
		want                    []string
		isOpen                  bool
	}{
		{name: "without credentials", generator: "{git: {repoURL: 'https://u:secret@git.example/a', directories: [{path: x}]}}", source: "{repoURL: https://git.example/b, path: x}", want: []string{"https://git.example/a", "https://git.example/b"}},
		{name: "nested", generator: "{matrix: {generators: [{list: {elements: [{}]}}, {git: {repoURL: 'https://git.example/a', directories: [{path: x}]}}]}}", source: "{repoURL: https://git.example/a, path: x}", want: []string{"https://git.example/a"}},
		{name: "a template's", generator: "{clusters: {}}", source: "{repoURL: '{{ .metadata.annotations.url }}', path: x}", isOpen: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, isOpen := Addresses(t.Context(), input(files(map[string]string{"set.yaml": set(c.generator, c.source)}), shop("set.yaml")))
			if d := cmp.Diff(c.want, got); d != "" || isOpen != c.isOpen {
				t.Errorf("%s, others %t", d, isOpen)
			}
		})
	}
}

func TestFindClusterUse(t *testing.T) {
	const set = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web}
spec:
  goTemplate: true
  generators:
    - matrix:
        generators:
          - list: {elements: [{tier: dev}, {tier: prod}]}
          - clusters:
              selector: {matchLabels: {tier: '{{ .tier }}'}}
    - clusters:
        selector: {matchExpressions: [{key: role, operator: NotIn, values: [hub]}]}
        values: {owner: '{{ index .metadata.annotations "acme.example/owner" }}'}
      selector: {matchLabels: {metadata.labels.region: eu, values.x: some}}
  template:
    metadata: {name: 'web-{{ .name }}'}
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet, path: 'apps/{{ .metadata.labels.tier }}/{{ .values.owner | lower }}', targetRevision: '{{ default "main" (index .metadata.labels "revision") }}'}
      destination: {server: https://10.0.0.7}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: none}
spec:
  generators: [{list: {elements: [{name: a}]}}]
  template:
    metadata: {name: '{{name}}'}
    spec: {project: default, source: {repoURL: https://git.example/acme/fleet, path: a}, destination: {name: a}}
`
	p := shop("set.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	got, err := New(Options{}).FindClusterUse(t.Context(), input(files(map[string]string{"set.yaml": set}), p))
	must(t, err)
	want := &ClusterUse{
		Sets: []string{"web"}, Servers: []string{"https://10.0.0.7"},
		Selectors: []ClusterSelector{
			{Set: "web", Requirements: []ClusterRequirement{{"metadata.labels.role", ClusterNotIn, []string{"hub"}}}},
			{Set: "web", Requirements: []ClusterRequirement{{"metadata.labels.region", ClusterIn, []string{"eu"}}}},
			{Requirements: []ClusterRequirement{{"metadata.labels.role", ClusterNotIn, []string{"hub"}}}},
			{Requirements: []ClusterRequirement{{"metadata.labels.tier", ClusterIn, []string{"dev"}}}},
			{Requirements: []ClusterRequirement{{"metadata.labels.tier", ClusterIn, []string{"prod"}}}},
		},
		Reads: []ClusterRead{
			{"web", "owner", []TextPart{{Word: "metadata.annotations.acme.example/owner"}}, []string{"metadata.annotations.acme.example/owner"}},
			{"web", "name", []TextPart{{Literal: "web-"}, {Word: "name"}}, []string{"name"}},
			{"web", "path", []TextPart{{Literal: "apps/"}, {Word: "metadata.labels.tier"}, {Literal: "/"}, {}}, []string{"metadata.labels.tier"}},
			{"web", "targetRevision", []TextPart{{Word: "metadata.labels.revision"}}, []string{"metadata.labels.revision"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
