package fleet

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// BenchmarkResolve resolves 1,000 folders cold.
func BenchmarkResolve(b *testing.B) {
	tree := fstest.MapFS{"argocd/shop.yaml": {Data: []byte(directoriesSet)}}
	for i := range 250 {
		for _, env := range []string{"dev", "qa", "prod", "other"} {
			tree[fmt.Sprintf("apps/app-%d/%s/kustomization.yaml", i, env)] = &fstest.MapFile{}
		}
	}
	p := shop("argocd/*.yaml")
	p.Spec.Environment = `{{ if ne .path.basename "other" }}{{ .path.basename }}{{ end }}`
	r := New(Options{})
	for b.Loop() {
		f, err := r.Resolve(b.Context(), input(tree, p))
		if err != nil || len(f.Targets) != 1000 || len(f.Problems) > 0 {
			b.Fatal(err, len(f.Targets), f.Problems)
		}
	}
}
