package fieldedit

import (
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestExplainEmpty(t *testing.T) {
	tree := fstest.MapFS{
		"apps/web/kustomization.yaml": {Data: []byte("images: [{name: r/web, newTag: v1}, {name: r/api, newTag: v1}]")},
		"apps/job/kustomization.yaml": {Data: []byte("resources: [a.yaml, 'https://git.example/job?ref=v1', 'https://git.example/none']")},
		"apps/web/values.yaml":        {Data: []byte("image: {tag: v1}")},
		"flat/values.yaml":            {Data: []byte("image.tag: v1\nlist: [{name: a, image.tag: v1}]")},
		"chart/values-dev.yaml":       {Data: []byte("image: {tag: v1}")},
		"chart/developer.yaml":        {Data: []byte("image: {tag: v1}")},
	}
	yaml := func(file, path string) pipeline.Carry {
		return pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{file}, Paths: []string{path}}}
	}
	for name, c := range map[string]struct {
		roots, shared []string
		carry         pipeline.Carry
		want          string
	}{
		"images that are there":            {roots: []string{"apps/web"}, carry: pipeline.Carry{KustomizeImages: []string{"x/*"}}, want: "kustomizeImages x/* matches none of the images that are there: r/api, r/web"},
		"remote bases that are there":      {roots: []string{"apps/job"}, carry: pipeline.Carry{KustomizeRefs: []string{"https://x/*"}}, want: "kustomizeRefs https://x/* matches none of the remote bases with a ref that are there: https://git.example/job"},
		"no images at all":                 {roots: []string{"chart"}, carry: pipeline.Carry{KustomizeImages: []string{"x/*"}}},
		"a field that isn't there":         {roots: []string{"apps/web"}, carry: yaml("values.yaml", "image.tga"), want: "apps/web/values.yaml has no image.tga; there are image.tag"},
		"one key with a dot":               {roots: []string{"flat"}, carry: yaml("values.yaml", "image.tag"), want: `flat/values.yaml has no image.tag; did you mean ["image.tag"], which is there?`},
		"one key in every item of a list":  {roots: []string{"flat"}, carry: yaml("values.yaml", "list[*].image.tag"), want: `flat/values.yaml has no list[*].image.tag; did you mean list[*]["image.tag"], which is there?`},
		"two keys, written as one":         {roots: []string{"apps/web"}, carry: yaml("values.yaml", `image\.tag`), want: `apps/web/values.yaml has no ["image.tag"]; did you mean image.tag, which is there?`},
		"a file that isn't there":          {roots: []string{"apps/web"}, carry: yaml("other.yaml", "image.tag"), want: "apps/web has no other.yaml; there are kustomization.yaml, values.yaml"},
		"a shared folder":                  {shared: []string{"chart"}, carry: yaml("*.yaml", "image.tag"), want: "chart/values-dev.yaml lies in a folder that others have too: pick it as values-{{environment}}.yaml"},
		"others' files in a shared folder": {shared: []string{"chart"}, carry: yaml("dev*.yaml", "image.tag")},
		"an entry that can't be read":      {roots: []string{".."}, carry: yaml("*.yaml", "image.tag")},
	} {
		t.Run(name, func(t *testing.T) {
			o := Overlay{Roots: c.roots, Shared: c.shared, Carry: []pipeline.Carry{c.carry}, Environment: "dev", Component: "web"}
			if got := ExplainEmpty(tree, o); got != c.want {
				t.Errorf("it says %q, not %q", got, c.want)
			}
		})
	}
}
