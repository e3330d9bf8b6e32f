package fieldedit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestBases reads and edits the folders that the kustomizations of an environment build on. An
// overlay wins over its base, overlays that don't change it have the base's, and whole files are
// those of the overlays alone.
func TestBases(t *testing.T) {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [\"https://git.example/acme/web?ref=v1\"]\nimages:\n- {name: r/web, newTag: v1}\n- {name: r/proxy, newTag: v1}\n",
		"base/settings.yaml":      "tag: v1\n",
		"eu/kustomization.yaml":   "resources: [../base]\nimages:\n- {name: r/web, newTag: v2}\n", "eu/settings.yaml": "tag: v2\n",
		"us/kustomization.yaml": "resources: [../base]\n",
		"us/base/settings.yaml": "tag: v9\n", "us/base/kustomization.yaml": "images:\n- {name: r/web, newTag: v9}\n",
		"plain/settings.yaml": "tag: v2\n",
	}
	images := []pipeline.Carry{{KustomizeImages: []string{"r/*"}}}
	settings := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"settings.yaml"}, Paths: []string{"tag"}}}}
	pins := pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{"*/kustomization.yaml"}, Paths: []string{"images[*].newTag"}}}
	eu, us := []string{"base", "eu"}, []string{"base", "us"}
	for name, c := range map[string]struct {
		roots, bases []string
		layers       [][]string
		carry        []pipeline.Carry
		want         []string // the places
		mixed        bool
	}{
		"the overlay has it":           {[]string{"eu"}, []string{"base"}, [][]string{eu}, images, []string{"base/kustomization.yaml images[r/proxy].newTag", "eu/kustomization.yaml images[r/web].newTag"}, false},
		"the base alone has it":        {[]string{"us"}, []string{"base"}, [][]string{us}, images, []string{"base/kustomization.yaml images[r/web].newTag", "base/kustomization.yaml images[r/proxy].newTag"}, false},
		"one of two overlays has it":   {[]string{"eu", "us"}, []string{"base"}, [][]string{eu, us}, images, nil, true},
		"a field of a file":            {[]string{"eu"}, []string{"base"}, [][]string{eu}, settings, []string{"eu/settings.yaml tag"}, false},
		"a field of the base's file":   {[]string{"us"}, []string{"base"}, [][]string{us}, settings, []string{"base/settings.yaml tag"}, false},
		"a file of a base in a root":   {[]string{"us"}, []string{"us/base"}, nil, settings, nil, false},
		"an image of a base in a root": {[]string{"us"}, []string{"us/base"}, nil, images, []string{"us/base/kustomization.yaml images[r/web].newTag"}, false},
		"a base that the root's picks": {[]string{"us"}, []string{"us/base"}, nil, append(images, pins), []string{"us/base/kustomization.yaml images[name=r/web].newTag"}, false},
		"a root that nothing builds":   {[]string{"us", "plain"}, []string{"base"}, [][]string{us}, settings, nil, true},
		"a remote base":                {[]string{"us"}, []string{"base"}, [][]string{us}, []pipeline.Carry{{KustomizeRefs: []string{"https://git.example/**"}}}, []string{"base/kustomization.yaml resources[https://git.example/acme/web].ref"}, false},
		"whole files of the base stay": {[]string{"us"}, []string{"base"}, [][]string{us}, []pipeline.Carry{{Files: &pipeline.FilePick{Include: []string{"*.yaml"}}}}, []string{"us/kustomization.yaml "}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Overlay{Roots: c.roots, Bases: c.bases, Layers: c.layers, Carry: c.carry}
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
			scope, err := NewScope(o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range found {
				got = append(got, l.File+" "+l.Path())
				if !scope.Covers(l.File) {
					t.Errorf("the scope doesn't cover %s", l.File)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddToBases adds what an environment lacks to its overlays, and to a base only where no overlay has the file.
func TestAddToBases(t *testing.T) {
	carry := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"settings.yaml"}, Paths: []string{"tag"}}, WhenAbsent: pipeline.WhenAbsentAdd}}
	release, err := Read(newTree(map[string]string{"dev/settings.yaml": "tag: v2\n"}), Overlay{Roots: []string{"dev"}, Carry: carry})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"both have the file":      {map[string]string{"base/settings.yaml": "a: 1\n", "eu/settings.yaml": "a: 1\n"}, []string{"eu/settings.yaml"}},
		"the base alone has it":   {map[string]string{"base/settings.yaml": "a: 1\n", "eu/x.yaml": "a: 1\n"}, []string{"base/settings.yaml"}},
		"the base has the field":  {map[string]string{"base/settings.yaml": "tag: v1\n", "eu/settings.yaml": "a: 1\n"}, []string{"base/settings.yaml"}},
		"the overlay has it, too": {map[string]string{"base/settings.yaml": "tag: v1\n", "eu/settings.yaml": "tag: v1\n"}, []string{"eu/settings.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Overlay{Roots: []string{"eu"}, Bases: []string{"base"}, Layers: [][]string{{"base", "eu"}}, Carry: carry}
			edits, err := Compose(newTree(c.files), o, release, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range edits {
				got = append(got, e.File)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
