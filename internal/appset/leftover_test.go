package appset

import (
	"strings"
	"testing"
)

// TestLeftovers names the parameters of sets without goTemplate that no generator gives.
func TestLeftovers(t *testing.T) {
	set := func(goTemplate, path, values string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n" + goTemplate +
			"  generators: [{list: {elements: [{env: dev}, {env: qa}]}}]\n  template:\n    metadata: {name: 'web-{{env}}'}\n    spec:\n" +
			"      project: default\n      destination: {server: https://kubernetes.default.svc}\n" +
			"      source: {repoURL: 'https://git.example.com/acme/fleet', targetRevision: main, path: '" + path + "', helm: {values: '" + values + "'}}\n"
	}
	for _, c := range []struct {
		name, set string
		want      string // the note; empty: there is none
	}{
		{"all filled in", set("", "apps/{{env}}", ""), ""},
		{"an unknown parameter", set("", "apps/{{env}}/{{ metadata.labels.tier }}", ""),
			"no generator gives the parameter {{metadata.labels.tier}}, so that it stays as it is written in web-dev, web-qa"},
		{"goTemplate forgotten", set("", "apps/{{.env}}", ""), "no generator gives the parameter {{.env}}, so that it stays as it is written in web-dev, web-qa"},
		{"a chart's own template", set("", "apps/{{env}}", "host: {{name}}.example"), ""},
		{"goTemplate", strings.ReplaceAll(set("  goTemplate: true\n", "apps/{{.env}}", ""), "{{env}}", "{{.env}}"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(files(map[string]string{"sets/s.yaml": c.set}), shop("sets/*.yaml"))
			in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "web", "{{/* none */}}"
			f := mustResolve(t, in)
			if len(f.Problems) > 0 || len(f.Targets) != 2 {
				t.Fatalf("%+v", f)
			}
			var got []string
			for _, n := range f.Notes {
				got = append(got, n.Message)
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("the notes are %q, want %q", got, c.want)
			}
		})
	}
}
