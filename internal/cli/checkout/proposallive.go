package checkout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// findLive finds the ApplicationSets that run and deploy from this repository, wherever their
// manifests are. Each is resolved by itself: what is wrong with one hides no other.
func (d *deployed) findLive(ctx context.Context, state *argocd.SetsAndProjects) error {
	if state.SetsErr != nil {
		return fmt.Errorf("list the running ApplicationSets: %w", state.SetsErr)
	}
	if len(state.Sets) == 0 {
		return d.nothing("looked for ApplicationSets in the running Argo CD's namespaces; there is none")
	}
	for _, s := range state.Sets {
		set := propose.Set{Live: &pipeline.LiveApplicationSet{Namespace: s.Namespace, Name: s.Name}}
		found, err := d.resolve(ctx, pipelineOfEntries([]propose.Set{set}))
		switch {
		case err != nil:
			return fmt.Errorf("resolve the running ApplicationSet %s: %w", liveKey(s.Namespace, s.Name), err)
		case slices.ContainsFunc(found.Targets, deploysFromHere):
			d.live = append(d.live, set)
		case len(found.Problems) > 0:
			d.unresolved = append(d.unresolved, appset.Problem{ApplicationSet: liveKey(s.Namespace, s.Name),
				Message: "left out, because whether it deploys from this repository can't be found out: " + found.Problems[0].Message})
		}
	}
	if len(d.live) == 0 {
		which := "that runs"
		if len(d.query.Files) > 0 {
			which = "that was named"
		}
		return d.nothing("no ApplicationSet %s deploys from this repository (%s), of %d; --repo-url says what else their manifests call "+
			"it%s",
			which, strings.Join(d.repository.urls, ", "), len(state.Sets), firstProblem(d.unresolved))
	}
	var err error
	d.targets, err = d.resolve(ctx, pipelineOfEntries(d.live))
	return err
}

// deploysFromHere says that a target's manifests, values or parameters are in this repository. A
// release of another repository's chart may have its version in a file that a generator reads here.
func deploysFromHere(t appset.Target) bool {
	return len(t.GeneratorFiles) > 0 || len(t.BranchFiles) > 0 ||
		slices.ContainsFunc(t.Sources, func(s appset.Source) bool { return s.Here })
}

// pipelineOf is a pipeline over what the entries have, without components and environments.
func (d *deployed) pipelineOf(entries []propose.Set) *pipeline.Pipeline {
	if !d.sets.isPlain() {
		return pipelineOfEntries(entries)
	}
	out := &pipeline.Pipeline{}
	for _, s := range entries {
		out.Spec.Applications = append(out.Spec.Applications, pipeline.ApplicationSource{
			Path: s.Path, Kustomize: s.Kustomize, Helm: s.Helm, ArgoCD: s.ArgoCD, Component: s.Component, Environment: s.Environment})
	}
	return out
}

// pipelineOfEntries is a pipeline over these sets, without components and environments.
func pipelineOfEntries(sets []propose.Set) *pipeline.Pipeline {
	out := &pipeline.Pipeline{}
	for _, s := range sets {
		out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, pipeline.ApplicationSetSource{
			Path: s.Path, Kustomize: s.Kustomize, Helm: s.Helm, Live: s.Live, ArgoCD: s.ArgoCD, Component: s.Component,
			Environment: s.Environment})
	}
	return out
}

// setEntries are the entries of applicationSets; own has the templates of sets that have some
// of their own, by setKey.
func (d *deployed) setEntries(own map[string]propose.Templates) []propose.Set {
	if len(d.live) == 0 {
		return append(fileEntries(d.sets, own, d.own), d.builtEntries(own, d.own)...)
	}
	out := slices.Clone(d.live)
	for i := range out {
		out[i].Templates = own[liveKey(out[i].Live.Namespace, out[i].Live.Name)]
	}
	return out
}

// builtEntries are the entries of folders and charts that sets are built of.
func (d *deployed) builtEntries(own map[string]propose.Templates, argocds ownArgoCDs) []propose.Set {
	var out []propose.Set
	for _, folder := range d.sets.built {
		file := appset.KustomizationFile(d.tree.FS, folder)
		out = append(out, propose.Set{Kustomize: folder, Templates: own[file], ArgoCD: argocds[file]})
	}
	for i := range d.sets.charts {
		c := &d.sets.charts[i]
		out = append(out, propose.Set{Helm: &c.HelmSource, Templates: own[c.file()], ArgoCD: cmp.Or(c.argocd, argocds[c.key()])})
	}
	return out
}

// setKey is what a target's set is called by while templates are found: its file, and of a live
// one its namespace and name. Its Applications are in its namespace, too.
func (d *deployed) setKey(t *appset.Target) string {
	if len(d.live) > 0 {
		return liveKey(t.Namespace, t.ApplicationSet)
	}
	return t.ApplicationSetFile
}

// liveKey is what a set that runs is called by.
func liveKey(namespace, name string) string { return namespace + "/" + name }
