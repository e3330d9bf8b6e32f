package appset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratorFiles says which generator files targets come of.
func TestGeneratorFiles(t *testing.T) {
	tree := map[string]string{
		"clusters/dev.yaml": "cluster: dev\nregion: eu\n", "clusters/prod.yaml": "cluster: prod\nregion: us\n",
		"teams/web.yaml": "team: web\ncluster: dev\n", "teams/api.yaml": "- {team: api, cluster: prod}\n- {team: api, cluster: dev}\n",
		"tuned/web.yaml": "team: web\nsize: big\n", "nobody/cares.yaml": "team: none\n",
	}
	git := func(path, prefix string) string {
		return fmt.Sprintf(`git: {repoURL: "%s", revision: HEAD, files: [{path: "%s/*.yaml"}], pathParamPrefix: "%s"}`, repoURL, path, prefix)
	}
	const name = `{{ .team }}-{{ .cluster }}`
	for _, c := range []struct {
		name, gens, app string
		goTemplate      bool
		want            []string
	}{
		{"files", `{` + git("clusters", "") + `}`, "{{ .cluster }}", true,
			[]string{"dev clusters/dev.yaml of clusters/dev.yaml", "prod clusters/prod.yaml of clusters/prod.yaml"}},
		{"files of a list", `{` + git("teams", "t") + `}`, name, true,
			[]string{"api-dev teams/api.yaml of teams/api.yaml", "api-prod teams/api.yaml of teams/api.yaml", "web-dev teams/web.yaml of teams/web.yaml"}},
		{"no files", `{list: {elements: [{path: {path: clusters, filename: dev.yaml}}]}}`, "x", true, []string{"x  of "}},
		{"both of a matrix, the second hidden by the first", `{matrix: {generators: [{` + git("tuned", "") + `}, {` + git("clusters", "") + `}]}}`, name, true,
			[]string{"web-dev tuned/web.yaml of clusters/dev.yaml,tuned/web.yaml", "web-prod tuned/web.yaml of clusters/prod.yaml,tuned/web.yaml"}},
		{"both of a matrix, one prefixed", `{matrix: {generators: [{` + git("tuned", "t") + `}, {` + git("clusters", "") + `}]}}`, name, true,
			[]string{"web-dev clusters/dev.yaml of clusters/dev.yaml,tuned/web.yaml", "web-prod clusters/prod.yaml of clusters/prod.yaml,tuned/web.yaml"}},
		{"flat", `{matrix: {generators: [{` + git("tuned", "t") + `}, {` + git("clusters", "") + `}]}}`, "{{team}}-{{cluster}}", false,
			[]string{"web-dev clusters/dev.yaml of clusters/dev.yaml,tuned/web.yaml", "web-prod clusters/prod.yaml of clusters/prod.yaml,tuned/web.yaml"}},
		{"merged", `{merge: {mergeKeys: [team], generators: [{list: {elements: [{team: web, cluster: dev}, {team: api, cluster: dev}]}}, {` + git("tuned", "") + `}]}}`, name, true,
			[]string{"api-dev  of ", "web-dev tuned/web.yaml of tuned/web.yaml"}},
		{"merged flat", `{merge: {mergeKeys: [team], generators: [{list: {elements: [{team: web, cluster: dev}, {team: api, cluster: dev}]}}, {` + git("tuned", "t") + `}]}}`, "{{team}}-{{cluster}}", false,
			[]string{"api-dev  of ", "web-dev tuned/web.yaml of tuned/web.yaml"}},
		{"a matrix in a merge", `{merge: {mergeKeys: [team], generators: [{matrix: {generators: [{` + git("tuned", "") + `}, {list: {elements: [{cluster: "{{ len . }}"}]}}]}}, {` + git("nobody", "n") + `}, {` + git("tuned", "t") + `}]}}`, name, true,
			[]string{"web-3 tuned/web.yaml of tuned/web.yaml"}},
		{"a merge in a matrix", `{matrix: {generators: [{merge: {mergeKeys: [team], generators: [{` + git("tuned", "") + `}, {list: {elements: [{team: web, x: y}]}}]}}, {` + git("clusters", "c") + `}]}}`, `{{ .team }}-{{ .cluster }}-{{ len . }}`, true,
			[]string{"web-dev-7 tuned/web.yaml of clusters/dev.yaml,tuned/web.yaml", "web-prod-7 tuned/web.yaml of clusters/prod.yaml,tuned/web.yaml"}},
		{"merges in a merge", `{merge: {mergeKeys: [team], generators: [{merge: {mergeKeys: [team], generators: [{` + git("tuned", "") + `}, {list: {elements: [{team: web}]}}]}}, {list: {elements: [{team: web, cluster: c}]}}]}}`, `{{ .team }}-{{ .cluster }}-{{ len . }}`, true,
			[]string{"web-c-4 tuned/web.yaml of tuned/web.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s, namespace: argocd}\nspec:\n  goTemplate: %v\n  goTemplateOptions: [missingkey=error]\n  generators: [%s]\n"+
				"  template: {metadata: {name: '%s'}, spec: {project: default, source: {repoURL: '%s', path: x}, destination: {server: https://kubernetes.default.svc}}}\n", c.goTemplate, c.gens, c.app, repoURL)
			contents := map[string]string{"sets/a.yaml": set}
			for k, v := range tree {
				contents[k] = v
			}
			p := shop("sets/*.yaml")
			p.Spec.Component, p.Spec.Environment = "web", "dev"
			for _, revision := range []string{"", strings.Repeat("a", 40)} {
				in := input(withFileIDs(contents), p)
				in.Revision = revision
				f := mustResolve(t, in)
				var got []string
				for _, x := range f.Targets {
					got = append(got, fmt.Sprintf("%s %s of %s", x.Name, x.GeneratorFile, strings.Join(x.GeneratorFiles, ",")))
					for key := range x.Params {
						if strings.Contains(key, "\x00") {
							t.Errorf("%s has the parameter %q", x.Name, key)
						}
					}
				}
				if d := cmp.Diff(c.want, got); d != "" || len(f.Problems) > 0 {
					t.Errorf("%v\n%s", f.Problems, d)
				}
			}
		})
	}
}
