package appset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// pipelineEntry is one of the pipeline's applicationSets with its two templates.
type pipelineEntry struct {
	argocd                 string
	component, environment *assigner         // nil: it doesn't parse, which is a problem already
	environments           map[string]string // with their branches
}

// withContext is the entry for another goroutine, whose templates end with its context.
func (p *pipelineEntry) withContext(ctx context.Context) *pipelineEntry {
	out := *p
	for _, a := range []**assigner{&out.component, &out.environment} {
		if *a != nil {
			*a, _ = newAssigner(ctx, (*a).what, (*a).text) // it parsed before
		}
	}
	return &out
}

// newPipelineEntries gives those of applicationSets, and those of applications.
func newPipelineEntries(ctx context.Context, p *pipeline.Pipeline) (sets, plain []pipelineEntry, problems []Problem) {
	environments := map[string]string{}
	for _, e := range p.Spec.Environments {
		environments[e.Name] = p.BranchOf(e.Name)
	}
	parsed := map[[2]string]*assigner{}
	parse := func(what string, texts ...string) *assigner {
		text := cmp.Or(texts...)
		key := [2]string{what, text}
		if a, ok := parsed[key]; ok {
			return a
		}
		a, err := newAssigner(ctx, what, text)
		if err != nil {
			problems = append(problems, Problem{File: p.File, Message: err.Error()})
		}
		parsed[key] = a
		return a
	}
	make := func(argocd, component, environment string) pipelineEntry {
		return pipelineEntry{
			argocd:       argocd,
			component:    parse("component", component, p.Spec.Component),
			environment:  parse("environment", environment, p.Spec.Environment),
			environments: environments,
		}
	}
	for i := range p.Spec.ApplicationSets {
		s := &p.Spec.ApplicationSets[i]
		sets = append(sets, make(s.ArgoCDName(), s.Component, s.Environment))
	}
	for i := range p.Spec.Applications {
		a := &p.Spec.Applications[i]
		plain = append(plain, make(a.ArgoCDName(), a.Component, a.Environment))
	}
	return sets, plain, problems
}

// buildTarget describes one Application; what is wrong with it goes into o.
func (p *pipelineEntry) buildTarget(in *Input, s *appSet, g *generatedApp, here func(url string) bool, o *setOutcome) Target {
	own, others := splitOrigins(g.files)
	t := Target{
		Name: g.app.Name, Namespace: g.app.Namespace, Project: g.app.Spec.GetProject(), ArgoCD: p.argocd,
		ApplicationSet: s.spec.Name, ApplicationSetFile: s.file, SetFiles: s.madeOf, Params: g.params, Policy: s.policy,
		Server: g.app.Spec.Destination.Server, Cluster: g.app.Spec.Destination.Name, DestNS: g.app.Spec.Destination.Namespace,
		Sources:   sourcesOf(g.app, here),
		AutoSync:  g.autoSyncs(),
		Hydration: hydrationOf(g),
		Ignores:   ignoresOf(&g.app.Spec),

		GeneratorFile: firstFile(g, own, s.spec.Spec.GoTemplate), GeneratorFiles: own, BranchFiles: others,
	}
	t.ValueFiles = valueFilesAs(t.Sources, func() Version { return in.argoCD(p.argocd).Version })
	wrong := func(err error) {
		o.problems = append(o.problems, s.newProblem(t.Name, err.Error()))
	}
	if err := p.assignComponent(&t, g, s); err != nil {
		wrong(err)
	}
	if t.Branch = p.environments[t.Environment]; !t.Managed() && in.Pipeline.Spec.Layout == pipeline.LayoutBranches {
		t.Branch = in.Branch
	}
	if why := branchMismatch(&t, in.Branch); why != "" {
		wrong(errors.New(why))
	}
	for i := range t.Sources {
		if err := checkVisible(t.Sources[i].RepoURL); err != nil {
			wrong(err)
		}
	}
	if in.Manifests {
		raw, err := applicationManifest(g)
		if err != nil {
			wrong(err)
		}
		t.Application = raw
	}
	return t
}

// assignComponent gives the target its component and environment, both or none.
func (p *pipelineEntry) assignComponent(t *Target, g *generatedApp, s *appSet) error {
	if p.component == nil || p.environment == nil {
		return nil
	}
	var data map[string]any
	var err error
	if p.component.fixed == nil || p.environment.fixed == nil {
		data, err = templateData(g, s, p.component.usesApplication || p.environment.usesApplication,
			p.component.usesSet || p.environment.usesSet)
	}
	if err != nil {
		return err
	}
	environment, err := p.environment.evaluateTemplate(data)
	if err != nil || environment == "" {
		return err
	}
	component, err := p.component.evaluateTemplate(data)
	if err != nil || component == "" {
		return err
	}
	if _, known := p.environments[environment]; !known {
		return fmt.Errorf("environment %q, of component %q, is not in the pipeline: add it there, or let the environment template give "+
			"nothing for it%s", environment, component, strictyaml.DidYouMean(environment, slices.Sorted(maps.Keys(p.environments))))
	}
	t.Component, t.Environment = component, environment
	return nil
}

// applicationManifest is the Application as a file would hold it.
func applicationManifest(g *generatedApp) (json.RawMessage, error) {
	object, err := g.asMap()
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	object["apiVersion"], object["kind"] = apiVersion, kindApplication
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the Application: %w", err)
	}
	return raw, nil
}

// sortProblems puts what was gathered into its order.
func (t *TargetSet) sortProblems() {
	slices.SortStableFunc(t.Problems, compareProblems)
	slices.SortStableFunc(t.Notes, compareProblems)
}

// targetList is the list that several sets' targets make.
type targetList struct {
	parts    [][]Target
	targets  []Target
	problems []Problem
}

// maxTargetLists bounds the lists that a resolver remembers.
const maxTargetLists = 64

// assembleTargets makes one list of the targets of all sets, sorted, each ID once. If
// all of them are those of before, so is the list; key says of what pipeline, and
// without one nothing is remembered.
func (r *Resolver) assembleTargets(key string, parts [][]Target) *targetList {
	last, ok := r.targetLists.Get(key)
	if ok && slices.EqualFunc(last.parts, parts, func(a, b []Target) bool { return len(a) == len(b) && &a[0] == &b[0] }) {
		return last
	}
	out := &targetList{parts: parts}
	if len(parts) == 1 {
		out.targets = parts[0][:len(parts[0]):len(parts[0])] // shared
	} else {
		out.targets = slices.Concat(parts...)
	}
	if out.targets == nil {
		out.targets = []Target{}
	}
	sorted, twice := true, false
	for i := 1; i < len(out.targets); i++ {
		a, b := &out.targets[i-1], &out.targets[i]
		sorted = sorted && compareTargets(a, b) <= 0
		twice = twice || a.sameID(b)
	}
	if !sorted || twice {
		out.sortUnique()
	}
	if key != "" {
		r.targetLists.Put(key, out)
	}
	return out
}

func (t *Target) sameID(o *Target) bool {
	return t.Name == o.Name && t.Namespace == o.Namespace && t.ArgoCD == o.ArgoCD
}

// sortUnique makes a sorted list, each ID once.
func (tl *targetList) sortUnique() {
	order := make([]*Target, len(tl.targets))
	for i := range tl.targets {
		order[i] = &tl.targets[i]
	}
	slices.SortStableFunc(order, compareTargets)
	out := make([]Target, 0, len(order))
	for _, t := range order {
		if len(out) > 0 && out[len(out)-1].sameID(t) {
			first := &out[len(out)-1]
			message := fmt.Sprintf("ApplicationSet %s in %s generates an Application of this name too", first.ApplicationSet,
				first.ApplicationSetFile)
			switch {
			case first.Live:
				message = "two entries of the pipeline's applications select it"
			case first.ApplicationSet == "":
				message = fmt.Sprintf("%s has an Application of this name too", first.ApplicationSetFile)
			}
			if first.ApplicationSetFile != t.ApplicationSetFile && !first.Live {
				message += "; where each runs in an Argo CD of its own, name that as argocd in their entries"
			}
			tl.problems = append(tl.problems, Problem{File: t.ApplicationSetFile, ApplicationSet: t.ApplicationSet, Application: t.Name,
				Message: message})
			continue
		}
		out = append(out, *t)
	}
	tl.targets = out
}

func compareTargets(a, b *Target) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ArgoCD, b.ArgoCD),
		cmp.Compare(a.ApplicationSetFile, b.ApplicationSetFile), cmp.Compare(a.ApplicationSet, b.ApplicationSet))
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.ApplicationSet, b.ApplicationSet), cmp.Compare(a.Application, b.Application),
		cmp.Compare(a.Message, b.Message))
}
