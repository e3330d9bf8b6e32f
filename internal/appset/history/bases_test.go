package history

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/appset"
)

func kustomizationsIn(folders map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for folder, text := range folders {
		out[folder+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// TestComponentsBases says which folders that kustomizations build on are an environment's alone.
func TestComponentsBases(t *testing.T) {
	const onBase = "resources: [../base, deployment.yaml, 'https://git.example/acme/x?ref=v1']\n"
	for name, c := range map[string]struct {
		folders map[string]string
		more    []appset.Target
		bases   []string
		layers  [][]string
	}{
		"a base of its own": {map[string]string{"prod/base": "", "prod/eu": onBase, "prod/us": onBase, "dev/eu": ""}, nil,
			[]string{"prod/base"}, [][]string{{"prod/base", "prod/eu"}, {"prod/base", "prod/us"}}},
		"a chain of them, the last of all": {map[string]string{"all": "", "prod/more": "bases: [../../all]\n", "prod/base": "components: [../more]\n", "prod/eu": onBase, "prod/us": "", "dev/eu": "resources: [../../all]\n"}, nil,
			[]string{"prod/base", "prod/more"}, [][]string{{"prod/more", "prod/base", "prod/eu"}}},
		"another environment builds on it": {map[string]string{"prod/base": "", "prod/eu": onBase, "prod/us": onBase, "dev/eu": "resources: [../../prod/base]\n"}, nil, nil, nil},
		"an Application that nobody manages is built from it": {map[string]string{"prod/base": "", "prod/eu": onBase, "prod/us": onBase, "dev/eu": ""},
			[]appset.Target{{Name: "x", Sources: []appset.Source{{Here: true, Path: "prod/base"}}}}, nil, nil},
		"one of its own is built from it": {map[string]string{"prod/base": "", "prod/eu": onBase, "prod/us": onBase, "dev/eu": ""},
			[]appset.Target{{Name: "x", Component: "web", Environment: "prod", Sources: []appset.Source{{Here: true, Path: "prod/base"}}}}, nil, nil},
		"another has something below it": {map[string]string{"prod/base": "", "prod/eu": onBase, "prod/us": "", "dev/eu": ""},
			[]appset.Target{{Name: "x", Component: "api", Environment: "prod", Sources: []appset.Source{{Here: true, Path: "prod/base/api"}}}}, nil, nil},
		"it isn't there":      {map[string]string{"prod/eu": onBase, "prod/us": "", "dev/eu": ""}, nil, nil, nil},
		"in a circle":         {map[string]string{"prod/base": "resources: [../eu]\n", "prod/eu": onBase, "prod/us": "", "dev/eu": ""}, nil, []string{"prod/base"}, [][]string{{"prod/base", "prod/eu"}}},
		"out of the tree":     {map[string]string{"prod/eu": "resources: [../../../x, /x, ../..]\n", "prod/us": "", "dev/eu": ""}, nil, nil, nil},
		"two ways to one":     {map[string]string{"prod/base": "", "prod/x": onBase, "prod/eu": "resources: [../base, ../x]\n", "prod/us": "", "dev/eu": ""}, nil, []string{"prod/base", "prod/x"}, [][]string{{"prod/base", "prod/eu"}, {"prod/base", "prod/x", "prod/eu"}}},
		"not readable at all": {map[string]string{"prod/base": "resources: {}\n", "prod/eu": onBase, "prod/us": "", "dev/eu": ""}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fl := &appset.TargetSet{Targets: c.more}
			for _, at := range [][2]string{{"prod", "eu"}, {"prod", "us"}, {"dev", "eu"}} {
				fl.Targets = append(fl.Targets, appset.Target{Name: at[0] + "-" + at[1], Component: "web", Environment: at[0], Sources: []appset.Source{{Here: true, Path: at[0] + "/" + at[1]}}})
			}
			bases, err := ReadBases(t.Context(), kustomizationsIn(c.folders), BaseFolders(fl, "main")["main"], nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			e := Components(fl, "main", map[string]*Bases{"main": bases})["web"]["prod"]
			if diff := cmp.Diff(c.bases, e.Bases); diff != "" {
				t.Errorf("bases (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.layers, e.Layers); diff != "" {
				t.Errorf("layers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedBases holds that what all components of an environment build on, and no other environment, is where each
// may have fields with a placeholder.
func TestSharedBases(t *testing.T) {
	const onImages = "resources: [../../base]\ncomponents: [../../images/prod]\n"
	managed := func(component, environment string) appset.Target {
		path := environment + "/" + component
		return appset.Target{Name: component + "-" + environment, Component: component, Environment: environment, Sources: []appset.Source{{Here: true, Path: path}}}
	}
	for name, c := range map[string]struct {
		folders map[string]string
		more    []appset.Target
		want    []string
	}{
		"of all components": {map[string]string{"prod/web": onImages, "prod/api": onImages}, nil, []string{"images/prod"}},
		"of one":            {map[string]string{"prod/web": onImages}, nil, nil}, // which has it as its own
		"another environment builds on it": {map[string]string{"prod/web": onImages, "prod/api": onImages, "qa/web": onImages},
			[]appset.Target{managed("web", "qa")}, nil},
		"another environment has something below it": {map[string]string{"prod/web": onImages, "prod/api": onImages},
			[]appset.Target{{Component: "web", Environment: "qa", Sources: []appset.Source{{Here: true, Path: "images/prod/qa"}}}}, nil},
		"it is a target's own folder": {map[string]string{"prod/web": onImages, "prod/api": onImages},
			[]appset.Target{{Component: "all", Environment: "prod", Sources: []appset.Source{{Here: true, Path: "images/prod"}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.folders["images/prod"], c.folders["base"], c.folders["dev/web"] = "kind: Component\n", "", "resources: [../../base]\n"
			fl := &appset.TargetSet{Targets: append(c.more, managed("web", "prod"), managed("api", "prod"), managed("web", "dev"))}
			bases, err := ReadBases(t.Context(), kustomizationsIn(c.folders), BaseFolders(fl, "main")["main"], nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			e := Components(fl, "main", map[string]*Bases{"main": bases})["web"]["prod"]
			if diff := cmp.Diff(c.want, e.Shared, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("shared (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyWaysBetweenBases bounds what is kept of kustomizations that build on each other by ever more ways.
func TestManyWaysBetweenBases(t *testing.T) {
	folders := map[string]string{"top": "resources: [../a0, ../b0]\n"}
	for i := range 40 {
		folders[fmt.Sprintf("a%d", i)] = fmt.Sprintf("resources: [../a%d, ../b%d]\n", i+1, i+1)
		folders[fmt.Sprintf("b%d", i)] = folders[fmt.Sprintf("a%d", i)]
	}
	bases, err := ReadBases(t.Context(), kustomizationsIn(folders), []string{"top"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := bases.ways("top"); got != nil {
		t.Errorf("%d ways are kept", len(got))
	}
	if got := len(bases.below("top")); got != 80 {
		t.Errorf("%d folders are below it", got)
	}
}

// TestLongWayBetweenBases counts a chain that is too long as if it built on nothing.
func TestLongWayBetweenBases(t *testing.T) {
	folders := map[string]string{}
	for i := range maxBaseDepth {
		folders[fmt.Sprintf("a%d", i)] = fmt.Sprintf("resources: [../a%d]\n", i+1)
	}
	folders[fmt.Sprintf("a%d", maxBaseDepth)] = ""
	bases, err := ReadBases(t.Context(), kustomizationsIn(folders), []string{"a0"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := bases.ways("a0"); got != nil {
		t.Errorf("%d ways of %d folders are kept", len(got), len(got[0]))
	}
	if got := bases.ways("a1"); len(got) != 1 || len(got[0]) != maxBaseDepth {
		t.Errorf("the ways are %v", got)
	}
}

// TestReadBasesAgain reads of a tree that differs in some files what those concern, and gives the same where nothing is different.
func TestReadBasesAgain(t *testing.T) {
	folders := map[string]string{"prod/base": "", "prod/eu": "resources: [../base]\n"}
	first, err := ReadBases(t.Context(), kustomizationsIn(folders), []string{"prod/eu"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	folders["prod/base"] = "images: [{name: x, newTag: v2}]\n"
	again, err := ReadBases(t.Context(), kustomizationsIn(folders), []string{"prod/eu"}, first, []string{"prod/base/kustomization.yaml", "README.md"})
	if err != nil || again != first {
		t.Errorf("it is another one: %v", err)
	}
	folders["prod/base"], folders["prod/more"] = "resources: [../more]\n", ""
	changed, err := ReadBases(t.Context(), kustomizationsIn(folders), []string{"prod/eu"}, first, []string{"prod/base/kustomization.yaml", "prod/more/kustomization.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(changed.folders)); !slices.Equal(got, []string{"prod/base", "prod/eu", "prod/more"}) {
		t.Errorf("it knows %v", got)
	}
}

// BenchmarkReadBasesAgain reads after a push to one of many folders what their kustomizations build on.
func BenchmarkReadBasesAgain(b *testing.B) {
	const count = 5000
	tree, folders := fstest.MapFS{}, make([]string, count)
	for i := range count {
		folders[i] = fmt.Sprintf("apps/%d/prod", i)
		tree[folders[i]+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("resources: [../../../bases/%d]\n", i%50))}
		tree[fmt.Sprintf("bases/%d/kustomization.yaml", i%50)] = &fstest.MapFile{Data: []byte("resources: [deployment.yaml]\n")}
	}
	before, err := ReadBases(b.Context(), tree, folders, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if again, err := ReadBases(b.Context(), tree, folders, before, []string{"apps/7/prod/kustomization.yaml"}); err != nil || again != before {
			b.Fatalf("it is another one: %v", err)
		}
	}
}
