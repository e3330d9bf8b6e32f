package propose

import (
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// FuzzReadScalars holds that a field that is found in a file can be carried: a pipeline file that
// names it is valid, whatever the file has for keys and values.
func FuzzReadScalars(f *testing.F) {
	for _, seed := range []string{
		"image: {tag: v1}", "list: [{name: a, tag: v1}, {name: b, tag: v2}]", `{"a.b/c": {"tag": "1"}, "": {"tag": 2}}`,
		"a: &x {tag: 1}\nb: *x", "'{{environment}}': {tag: 1}", "tag: |\n  text", "\"a\\nb\": {tag: \"\\e[31m\"}", "images: [{name: r/web, newTag: v1}]", "a: 1\n---\na: 2", "[", "- tag: 1\n- tag: 2",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		carried, err := FindCarry(t.Context(), newSource([]string{"dev", "prod"}, files("dev/values.yaml", one, "prod/values.yaml", one), files("dev/values.yaml", other), files("prod/values.yaml", other)))
		if err != nil || len(carried.Entries) == 0 {
			return
		}
		p := &Proposal{Name: "shop", Sets: []Set{{Path: "argocd/shop.yaml"}}, Steps: Steps{{"dev"}, {"prod"}}, Carried: carried, Assignment: &Assignment{
			Templates: Templates{"{{ .app }}", "{{ .env }}"}, Components: []string{"web"}, Environments: []string{"dev", "prod"}}}
		text := p.Write()
		if _, err := pipeline.Parse(pipeline.FileName, text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}
