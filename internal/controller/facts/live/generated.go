package live

import (
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// GeneratedSpec is how a target's ApplicationSet, or its plain manifest, wants its Application to
// be; nil where there is neither, or where the target is taken from what runs.
func GeneratedSpec(at *branch.ResolvedEnv, t *appset.Target, rel fieldedit.Release, app *verification.App) *verification.Generated {
	if t.ApplicationSetFile == "" && t.ApplicationSet == "" || t.Live {
		return nil
	}
	// The controller takes the automated policy away where it syncs step by step; where it
	// is still there, progressive syncs are switched off and the strategy says nothing.
	rolling := t.Policy.Rolling && (app == nil || !app.AutoSync)
	g := &verification.Generated{Set: t.ApplicationSet, Rolling: rolling, NoUpdate: t.Policy.NoUpdate, Carries: CarriesRelease(at, t, rel)}
	if t.ApplicationSet == "" {
		g.File = t.ApplicationSetFile
	}
	for i, s := range t.Sources {
		want := verification.Source{RepoURL: s.RepoURL, Path: s.Path, Chart: s.Chart, TargetRevision: s.TargetRevision, Ref: s.Ref,
			Options: argocd.OptionsOf(s.Options)}
		if app != nil && i < len(app.Sources) && appset.SameRepository(want.RepoURL, app.Sources[i].RepoURL) {
			want.RepoURL = app.Sources[i].RepoURL // spelled otherwise
		}
		g.Sources = append(g.Sources, want)
	}
	for _, d := range t.Policy.IgnoreDifferences {
		if d.Name == "" || d.Name == t.Name {
			g.Ignored = append(append(g.Ignored, d.JSONPointers...), d.JQPaths...)
		}
	}
	return g
}

// CarriesRelease says whether the target has a release's fields from what its
// ApplicationSet generates: they are in a generator's file, or in the set itself.
func CarriesRelease(at *branch.ResolvedEnv, t *appset.Target, rel fieldedit.Release) bool {
	named := placeholder.Values{Environment: at.Name, Component: at.Component}
	for _, f := range rel.Fields {
		name := named.Fill(f.File)
		files := slices.DeleteFunc(slices.Clone(at.Files), func(file string) bool { return path.Base(file) != name })
		for _, root := range slices.Concat(at.Roots, at.Shared) {
			files = append(files, path.Join(root, name))
		}
		for _, file := range files {
			if t.IsGeneratedFrom(file) {
				return true
			}
		}
	}
	return false
}

// HasNoLocalSource says that none of a target's sources lies in this repository: what
// it has of it, it has through its ApplicationSet.
func HasNoLocalSource(t *appset.Target) bool {
	return !slices.ContainsFunc(t.Sources, func(s appset.Source) bool { return s.Here })
}
