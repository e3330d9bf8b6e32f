package facts

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func TestGeneratedSpec(t *testing.T) {
	options := json.RawMessage(`{"helm":{"parameters":[{"name":"image.tag","value":"1.1.0"}]}}`)
	target := appset.Target{Name: "web-qa", ApplicationSet: "shop", ApplicationSetFile: "argocd/shop.yaml", GeneratorFiles: []string{"envs/qa/config.json"},
		Policy: appset.Policy{NoUpdate: true, IgnoreDifferences: []appset.IgnoreDifference{
			{JSONPointers: []string{"/spec/project"}}, {Name: "web-qa", JQPaths: []string{".spec.source.targetRevision"}}, {Name: "another", JSONPointers: []string{"/x"}}}},
		Sources: []appset.Source{{RepoURL: "https://git.example/acme/fleet", Path: "charts/web", TargetRevision: "main", Options: options}}}
	at := &ResolvedEnv{Roots: []string{"charts/web", "envs/qa"}}
	release := fieldedit.Release{Fields: []fieldedit.Field{{File: "config.json", Path: "tag", Value: "1.1.0"}}}
	app := &verification.App{Sources: []verification.Source{{RepoURL: "git@git.example:acme/fleet.git"}}}
	want := &verification.Generated{Set: "shop", Carries: true, NoUpdate: true, Ignored: []string{"/spec/project", ".spec.source.targetRevision"},
		Sources: []verification.Source{{RepoURL: "git@git.example:acme/fleet.git", Path: "charts/web", TargetRevision: "main", Options: argocd.OptionsOf(options)}}}
	if diff := cmp.Diff(want, generatedSpec(at, &target, release, app)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	release.Fields[0].File = "values.yaml"
	if generatedSpec(at, &target, release, nil).Carries {
		t.Error("its fields are in a file that the sources read, not the generators")
	}
	for name, change := range map[string]func(*appset.Target){
		"plain": func(t *appset.Target) { t.ApplicationSet = "" }, "taken from what runs": func(t *appset.Target) { t.Live = true },
	} {
		other := target
		if change(&other); generatedSpec(at, &other, release, app) != nil {
			t.Errorf("%s: nothing is generated", name)
		}
	}
}

func TestHydratedFrom(t *testing.T) {
	const dry, old = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	ours := []string{"https://git.example/acme/fleet.git"}
	for name, c := range map[string]struct {
		tree   fstest.MapFS
		folder string
		want   string
	}{
		"the folder's own":          {fstest.MapFS{"envs/qa/hydrator.metadata": file(`{"drySha":"` + dry + `"}`), "hydrator.metadata": file(`{"drySha":"` + old + `"}`)}, "envs/qa", dry},
		"the root's":                {fstest.MapFS{"hydrator.metadata": file(`{"repoURL":"git@git.example:acme/fleet","drySha":"` + dry + `"}`)}, "./envs/qa/", dry},
		"deployed from the root":    {fstest.MapFS{"hydrator.metadata": file(`{"drySha":"` + dry + `"}`)}, ".", dry},
		"another repository's":      {fstest.MapFS{"hydrator.metadata": file(`{"repoURL":"https://git.example/acme/other","drySha":"` + dry + `"}`)}, ".", ""},
		"not JSON":                  {fstest.MapFS{"hydrator.metadata": file(`drySha: x`)}, ".", ""},
		"an enormous one":           {fstest.MapFS{"hydrator.metadata": {Data: make([]byte, maxHydratorFile+1)}}, ".", ""},
		"no hydrated tree":          {fstest.MapFS{"README.md": file("x")}, "envs/qa", ""},
		"a folder that climbs away": {fstest.MapFS{"README.md": file("x")}, "../..", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hydratedFrom(c.tree, c.folder, ours); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
