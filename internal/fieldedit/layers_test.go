package fieldedit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestLayers reads of several values files that have a field at one place the one that Helm lays over the others.
func TestLayers(t *testing.T) {
	files := map[string]string{
		"defaults/values.yaml": "image: {tag: v1, name: web}\n", "release/values.yaml": "image: {tag: v2}\n",
		"eu/values.yaml": "replicas: 2\n", "us/values.yaml": "image: {tag: v3}\n",
	}
	const defaults, release, eu, us = "defaults/values.yaml", "release/values.yaml", "eu/values.yaml", "us/values.yaml"
	carry := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"values.yaml"}, Paths: []string{"image.*"}}}}
	for name, c := range map[string]struct {
		roots  []string
		layers [][]string
		want   []string // the places
		mixed  bool
	}{
		"the last one has it":               {[]string{"defaults", "release"}, [][]string{{defaults, release}}, []string{defaults + " image.name", release + " image.tag"}, false},
		"in another order":                  {[]string{"defaults", "release"}, [][]string{{release, defaults}}, []string{defaults + " image.tag", defaults + " image.name"}, false},
		"a later one without it":            {[]string{"defaults", "eu"}, [][]string{{defaults, eu}}, []string{defaults + " image.tag", defaults + " image.name"}, false},
		"no order is known":                 {[]string{"defaults", "release"}, nil, nil, true},
		"another target reads it as last":   {[]string{"defaults", "release", "eu"}, [][]string{{defaults, release}, {defaults, eu}}, nil, true},
		"a glob that names the last one":    {[]string{"defaults", "release"}, [][]string{{defaults, "rel*/*.yaml"}}, []string{defaults + " image.name", release + " image.tag"}, false},
		"a glob that names the first one":   {[]string{"defaults", "release"}, [][]string{{"def*/**", release}}, []string{defaults + " image.name", release + " image.tag"}, false},
		"one that a later glob matches":     {[]string{"defaults", "release"}, [][]string{{release, defaults, "release/*"}}, []string{defaults + " image.tag", defaults + " image.name"}, false},
		"one that an earlier glob matches":  {[]string{"defaults", "release"}, [][]string{{"*/values.yaml", release}}, []string{defaults + " image.name", release + " image.tag"}, false},
		"two that two globs match":          {[]string{"defaults", "release"}, [][]string{{"rel*/*", "*/values.yaml"}}, []string{defaults + " image.tag", defaults + " image.name"}, false},
		"both are one glob's":               {[]string{"defaults", "release"}, [][]string{{"*/values.yaml", us}}, nil, true},
		"a target of each, none over other": {[]string{"release", "us"}, [][]string{{defaults, release}, {defaults, us}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := Overlay{Roots: c.roots, Layers: c.layers, Carry: carry}
			_, err := Read(newTree(files), o)
			var mixed *MixedError
			if errors.As(err, &mixed) != c.mixed || err != nil && !c.mixed {
				t.Fatalf("reading it: %v", err)
			}
			if c.mixed {
				return
			}
			found, err := Locate(newTree(files), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range found {
				got = append(got, l.File+" "+l.Path())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
