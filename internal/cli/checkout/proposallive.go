package checkout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// findLive finds the ApplicationSets that run and deploy from this repository, wherever their
// manifests are.
func (d *deployed) findLive(ctx context.Context) error {
	state := d.query.Known.Running.liveState
	if state.SetsErr != nil {
		return fmt.Errorf("list the running ApplicationSets: %w", state.SetsErr)
	}
	var all []propose.Set
	for _, s := range state.Sets {
		all = append(all, propose.Set{Live: &pipeline.LiveApplicationSet{Namespace: s.Namespace, Name: s.Name}})
	}
	if len(all) == 0 {
		return d.nothing("looked for ApplicationSets in the running Argo CD's namespaces; there is none")
	}
	found, err := d.resolve(ctx, pipelineOfEntries(all))
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for i := range found.Targets {
		if slices.ContainsFunc(found.Targets[i].Sources, func(s appset.Source) bool { return s.Here }) {
			here[found.Targets[i].ApplicationSet] = true
		}
	}
	if d.live = slices.DeleteFunc(all, func(s propose.Set) bool { return !here[s.Live.Name] }); len(d.live) == 0 {
		return d.nothing("no ApplicationSet that runs deploys from this repository (%s), of %d; --repo-url says what else their manifests call it%s",
			strings.Join(d.repository.urls, ", "), len(all), firstProblem(found.Problems))
	}
	d.targets, err = d.resolve(ctx, pipelineOfEntries(d.live))
	return err
}

// pipelineOfEntries is a pipeline over these sets, without components and environments.
func pipelineOfEntries(sets []propose.Set) *pipeline.Pipeline {
	out := &pipeline.Pipeline{}
	for _, s := range sets {
		out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, pipeline.ApplicationSetSource{Path: s.Path, Live: s.Live, Component: s.Component, Environment: s.Environment})
	}
	return out
}

// setEntries are the entries of applicationSets; own has the templates of sets that have some
// of their own, by setKey.
func (d *deployed) setEntries(own map[string]propose.Templates) []propose.Set {
	if len(d.live) == 0 {
		return fileEntries(d.sets, own)
	}
	out := slices.Clone(d.live)
	for i := range out {
		out[i].Templates = own[out[i].Live.Name]
	}
	return out
}

// setKey is what a target's set is called by while templates are found: its file, and of a live
// one its name.
func (d *deployed) setKey(t *appset.Target) string {
	if len(d.live) > 0 {
		return t.ApplicationSet
	}
	return t.ApplicationSetFile
}
