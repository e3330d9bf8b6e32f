package live

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func TestGeneratedSpec(t *testing.T) {
	options := json.RawMessage(`{"helm":{"parameters":[{"name":"image.tag","value":"1.1.0"}]}}`)
	target := appset.Target{Name: "web-qa", ApplicationSet: "shop", ApplicationSetFile: "argocd/shop.yaml", GeneratorFiles: []string{"envs/qa/config.json"},
		Policy: appset.Policy{NoUpdate: true, IgnoreDifferences: []appset.IgnoreDifference{
			{JSONPointers: []string{"/spec/project"}}, {Name: "web-qa", JQPaths: []string{".spec.source.targetRevision"}}, {Name: "another", JSONPointers: []string{"/x"}}}},
		Sources: []appset.Source{{RepoURL: "https://git.example/acme/fleet", Path: "charts/web", TargetRevision: "main", Options: options}}}
	at := &branch.ResolvedEnv{Roots: []string{"charts/web", "envs/qa"}}
	release := fieldedit.Release{Fields: []fieldedit.Field{{File: "config.json", Path: "tag", Value: "1.1.0"}}}
	app := &verification.App{Sources: []verification.Source{{RepoURL: "git@git.example:acme/fleet.git"}}}
	want := &verification.Generated{Set: "shop", Carries: true, NoUpdate: true, Ignored: []string{"/spec/project", ".spec.source.targetRevision"},
		Sources: []verification.Source{{RepoURL: "git@git.example:acme/fleet.git", Path: "charts/web", TargetRevision: "main", Options: argocd.OptionsOf(options)}}}
	if diff := cmp.Diff(want, GeneratedSpec(at, &target, release, app)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	release.Fields[0].File = "values.yaml"
	if GeneratedSpec(at, &target, release, nil).Carries {
		t.Error("its fields are in a file that the sources read, not the generators")
	}
	for name, change := range map[string]func(*appset.Target){
		"plain, as it runs": func(t *appset.Target) { t.ApplicationSet, t.ApplicationSetFile = "", "" }, "taken from what runs": func(t *appset.Target) { t.Live = true },
	} {
		other := target
		if change(&other); GeneratedSpec(at, &other, release, app) != nil {
			t.Errorf("%s: nothing is generated", name)
		}
	}
}
