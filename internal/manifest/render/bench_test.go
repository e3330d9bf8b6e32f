package render

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
)

// benchmarkTargets is a tree of targets in one layout.
func benchmarkTargets(layout string, n int) (fs.FS, []Input) {
	contents := map[string]string{
		"base/kustomization.yaml": "resources: [deploy.yaml, svc.yaml]\nconfigMapGenerator: [{name: conf, literals: [a=b]}]\n",
		"base/deploy.yaml":        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: conf}}]}]}\n",
		"base/svc.yaml":           "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n",
		"chart/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n", "chart/values.yaml": "replicas: 1\nimage: {tag: '1'}\n",
		"chart/templates/_h.tpl":      "{{- define \"labels\" }}app: {{ .Release.Name }}{{ end }}",
		"chart/templates/deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {{- include \"labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  template: {spec: {containers: [{name: web, image: \"web:{{ .Values.image.tag }}\"}]}}\n",
		"chart/templates/svc.yaml":    "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: 80}]}\n",
	}
	var in []Input
	for i := range n {
		dir := fmt.Sprintf("apps/%04d", i)
		switch layout {
		case "kustomize":
			contents[dir+"/kustomization.yaml"] = fmt.Sprintf("resources: [../../base]\nnamespace: n%d\nimages: [{name: web, newTag: '%d'}]\nreplicas: [{name: web, count: 2}]\npatches: [{path: p.yaml}]\n", i, i)
			contents[dir+"/p.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: {a: b}}\n"
			in = append(in, singleSource(dir, ""))
		case "helm":
			contents[dir+"/values.yaml"] = fmt.Sprintf("image: {tag: '%d'}\n", i)
			in = append(in, singleSource("chart", fmt.Sprintf(`{"helm":{"valueFiles":["/%s/values.yaml"]}}`, dir)))
		case "plain":
			contents[dir+"/all.yaml"] = contents["base/deploy.yaml"] + "---\n" + contents["base/svc.yaml"]
			in = append(in, singleSource(dir, ""))
		}
	}
	return memoryTree(contents), in
}

// BenchmarkRender renders 1,000 small targets of each layout, one after the other.
func BenchmarkRender(b *testing.B) {
	const targets = 1000
	silenceLogs(b)
	for _, layout := range []string{"kustomize", "helm", "plain"} {
		tree, in := benchmarkTargets(layout, targets)
		b.Run(layout, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range in {
					if m, err := Render(context.Background(), tree, in[i]); err != nil || len(m.Objects) < 2 {
						b.Fatal(err, m)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/targets, "µs/target")
		})
	}
}

// BenchmarkMemo asks for 1,000 targets again that nothing touched.
func BenchmarkMemo(b *testing.B) {
	tree, in := benchmarkTargets("kustomize", 1000)
	same := func(p string) (string, error) { return p, nil }
	m := NewMemo(MemoOptions{Bytes: 64 << 20})
	renderAll := func() {
		for i := range in {
			if _, err := m.Render(context.Background(), tree, same, in[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	renderAll()
	b.ReportAllocs()
	for b.Loop() {
		renderAll()
	}
}

// BenchmarkDiff compares targets of which one image differs.
func BenchmarkDiff(b *testing.B) {
	tree, in := benchmarkTargets("kustomize", 2)
	var m [2]*Manifests
	for i := range m {
		var err error
		if m[i], err = Render(context.Background(), tree, in[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if Diff(m[0], m[1]).Empty() {
			b.Fatal("no changes")
		}
	}
}
