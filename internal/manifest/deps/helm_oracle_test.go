package deps

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"pgregory.net/rapid"
)

// helmChart loads a chart with Helm's own loader, and its file://
// dependencies as `helm dependency build` would put them into charts/.
func helmChart(tree map[string]string, dir string, depth int) (*chart.Chart, error) {
	var files []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if rel, ok := cutFolder(dir, name); ok {
			files = append(files, &loader.BufferedFile{Name: rel, Data: []byte(tree[name])})
		}
	}
	c, err := loader.LoadFiles(files)
	if err != nil || depth > 3 {
		return c, err
	}
	for _, d := range c.Metadata.Dependencies {
		if local, ok := strings.CutPrefix(d.Repository, "file://"); ok {
			dep, err := helmChart(tree, path.Join(dir, local), depth+1)
			if err != nil {
				return nil, err
			}
			c.AddDependency(dep)
		}
	}
	return c, nil
}

// helmRender is what `helm template` renders, or its error.
func helmRender(tree map[string]string, dir string, valueFiles []string) string {
	c, err := helmChart(tree, dir, 0)
	if err != nil {
		return err.Error()
	}
	values := map[string]any{}
	for _, f := range valueFiles {
		more, err := chartutil.ReadValues([]byte(tree[f]))
		if err != nil {
			return err.Error()
		}
		values = chartutil.CoalesceTables(more, values)
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return err.Error()
	}
	top, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "r", Namespace: "n"}, nil)
	if err != nil {
		return err.Error()
	}
	out, err := engine.Render(c, top)
	if err != nil {
		return err.Error()
	}
	return pointerPattern.ReplaceAllString(fmt.Sprint(out), "0x") // maps are printed sorted
}

var pointerPattern = regexp.MustCompile(`0x[0-9a-f]+`)

var chartTemplates = []string{
	"a: {{ .Values.a }}",
	"a: {{ .Values.a | quote }}\nb: {{ .Chart.Name }}",
	`{{ .Files.Get "data.txt" }}`,
	`{{ $f := .Files }}{{ range $k, $v := $f }}{{ $k }}{{ end }}`,
	`{{ (.Files.Glob "*.txt").AsConfig }}`,
	`{{ (index . "Files").Get "data.txt" }}`,
	`{{ tpl .Values.t . }}`,
	`{{ tpl (toString .Values.t) $ }}`,
	`{{ include "lib.plain" . }}`,
	`{{ include "lib.files" . }}`,
	`{{ template "lib.files" $ }}`,
	`{{ toYaml $ }}`,
	`{{ $ | toJson }}`,
	`{{ printf "(%v)" $ }}`,
	`{{ $x := print "a" ( list . ) | quote }}{{ $x }}`,
	`{{ toYaml (dict "a" $) }}`,
	`{{ toYaml (include "lib.plain" $) }}`,
	`{{- with .Values -}}{{ toYaml $.Values }}{{ toYaml . }}{{ tpl (toYaml .) $ }}{{ end }}`,
	`{{ if true }}{{ toYaml . }}{{ end }}`,
	`{{ with .Values }}{{ toYaml . }}{{ end }}`,
}

var libTemplates = []string{
	`{{ define "lib.plain" }}x: {{ .Values.a }}{{ end }}{{ define "lib.files" }}{{ .Values.a }}{{ end }}`,
	`{{ define "lib.plain" }}x{{ end }}{{ define "lib.files" }}{{ .Files.Get "data.txt" }}{{ end }}`,
	`{{ define "lib.plain" }}x{{ end }}{{ define "lib.files" }}{{ $.Files.Get "other/values.txt" }}{{ end }}`,
	`{{ define "lib.plain" }}{{ .Release.Name }}{{ end }}{{ define "lib.files" }}{{ toYaml $ }}{{ end }}`,
}

func drawCharts(t *rapid.T) map[string]string {
	tree := map[string]string{
		"apps/web/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"apps/web/values.yaml":         "a: chart\nt: plain\n",
		"apps/web/values-dev.yaml":     "a: dev\n",
		"apps/web/values-prod.yaml":    "a: prod\n",
		"apps/web/data.txt":            "data",
		"apps/web/other/values.txt":    "more",
		"apps/web/README.md":           "How .Files and tpl are used",
		"lib/Chart.yaml":               "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: " + rapid.SampledFrom([]string{"library", "application"}).Draw(t, "type") + "\n",
		"lib/templates/_lib.tpl":       rapid.SampledFrom(libTemplates).Draw(t, "lib"),
		"lib/data.txt":                 "the library's",
		"lib/values.yaml":              "t: lib\n",
		"unrelated/values.yaml":        "a: b\n",
		"apps/values/dev.yaml":         "a: shared\n",
		"apps/web/crds/crd.yaml":       "kind: CustomResourceDefinition\n",
		"apps/web/templates/NOTES.txt": "Thank you",
	}
	if rapid.Bool().Draw(t, "depends") {
		tree["apps/web/Chart.yaml"] += "dependencies: [{name: lib, version: 1.0.0, repository: file://../../lib}]\n"
	}
	if rapid.Bool().Draw(t, "vendored") {
		tree["apps/web/charts/sub/Chart.yaml"] = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
		tree["apps/web/charts/sub/data.txt"] = "the subchart's"
		tree["apps/web/charts/sub/templates/s.yaml"] = rapid.SampledFrom(chartTemplates[:8]).Draw(t, "sub")
		tree["apps/web/charts/sub/values.yaml"] = "t: sub\n"
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "templates") {
		tree[fmt.Sprintf("apps/web/templates/t%d.yaml", i)] = rapid.SampledFrom(chartTemplates).Draw(t, "template")
	}
	if rapid.IntRange(0, 2).Draw(t, "text") == 0 {
		tree[rapid.SampledFrom([]string{"apps/web/values.yaml", "apps/web/values-dev.yaml", "apps/values/dev.yaml"}).Draw(t, "in")] =
			"a: x\nt: " + rapid.SampledFrom([]string{`'{{ .Files.Get "data.txt" }}'`, `'{{ .Values.a }}'`, `'{{ toYaml $ }}'`}).Draw(t, "value") + "\n"
	}
	return tree
}

// TestUnreadFilesDontMatter holds that changing, deleting or creating a
// file that is not said to be read makes no difference to what Helm renders.
func TestUnreadFilesDontMatter(t *testing.T) {
	narrow, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		contents := drawCharts(rt)
		values := []string{"apps/web/values-dev.yaml", "apps/values/dev.yaml"}
		x, err := Build(t.Context(), memoryTree(contents), []Reader{{ID: "r", Sources: []Source{{Path: "apps/web", ValueFiles: values}}}})
		if err != nil {
			rt.Fatal(err)
		}
		want := helmRender(contents, "apps/web", values)
		if all++; x.Readers("apps/web/values-prod.yaml") == nil {
			narrow++
		}
		names := append(slices.Sorted(maps.Keys(contents)), "apps/web/new.txt", "apps/web/other/new.yaml", "lib/new.txt", "apps/new/Chart.yaml")
		for _, name := range names {
			if x.Readers(name) != nil {
				continue
			}
			for _, change := range []string{"changed", ""} {
				other := maps.Clone(contents)
				other[name] = change
				if change == "" {
					delete(other, name)
				}
				if got := helmRender(other, "apps/web", values); got != want {
					rt.Fatalf("%s isn't read, but changing it changes\n%s\nto\n%s\n%s", name, want, got, contents)
				}
			}
		}
	})
	t.Logf("%d of %d charts don't read another environment's values", narrow, all)
	if narrow == 0 {
		t.Error("every chart reads everything: the test means nothing")
	}
}
