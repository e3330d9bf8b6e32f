package appset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// liveRefresh is when targets that are live Applications are read again at the latest; the
// connection's holder may know earlier.
const liveRefresh = time.Minute

// Live is what is known of the running Argo CDs' own objects.
type Live struct {
	// Sets are all ApplicationSet objects.
	Sets []LiveSet
	// Unknown says, by an Argo CD's name, why its objects are not known now.
	// While an Argo CD is in it, none of its ApplicationSets counts as missing.
	Unknown map[string]string
	// Applications lists the whole live Applications that an ApplicationSet
	// owns, by owner reference; nil: there is no way to.
	Applications func(ctx context.Context, argocd, namespace, set string) ([]json.RawMessage, error)
	// Selected lists the whole live Applications of a namespace that a label
	// selector, as kubectl takes it, selects; nil: there is no way to.
	Selected func(ctx context.Context, argocd, namespace, selector string) ([]json.RawMessage, error)
}

// LiveSet is one ApplicationSet object of a running Argo CD.
type LiveSet struct {
	ArgoCD    string // the Argo CD's name in the server's file
	Namespace string
	Name      string
	Object    json.RawMessage // the whole object; its status is not read
}

// ExternalRef is another repository, or another revision of this one, at a commit.
type ExternalRef struct {
	Tree   fs.FS
	Commit string // in full
}

// liveCacheKey is what an answer that is kept depends on of Live: the sets that the
// pipeline names, without what changes by itself. Answers that depend on more
// of it are not kept.
func (in *Input) liveCacheKey() []string {
	key := []string{fmt.Sprint(in.Live != nil)}
	for _, e := range in.Pipeline.Spec.ApplicationSets {
		if e.Live == nil {
			continue
		}
		s, problem, _ := in.decodeLiveSet(e.Live)
		if problem != nil {
			key = append(key, problem.Message)
		} else {
			key = append(key, string(s.raw))
		}
	}
	return key
}

var errNoConnection = errors.New("there is no connection to Argo CD")

// checkLive says why an Argo CD's objects are not known, if so.
func (in *Input) checkLive(argocd string) error {
	if in.Live == nil {
		return errNoConnection
	}
	if why, unknown := in.Live.Unknown[argocd]; unknown {
		return fmt.Errorf("the objects of Argo CD %s are not known: %s", argocd, why)
	}
	return nil
}

// findLiveSets lists an entry's ApplicationSet objects of a name; an empty
// namespace means any. The error says why that isn't known.
func (in *Input) findLiveSets(argocd, namespace, name string) ([]LiveSet, error) {
	argocd = cmp.Or(argocd, in.Main)
	if err := in.checkLive(argocd); err != nil {
		return nil, err
	}
	var out []LiveSet
	for _, s := range in.Live.Sets {
		if s.ArgoCD == argocd && s.Name == name && (namespace == "" || s.Namespace == namespace) {
			out = append(out, s)
		}
	}
	return out, nil
}

// decodeLiveSet decodes the object that an entry of applicationSets names. again
// says that another try may answer differently.
func (in *Input) decodeLiveSet(l *pipeline.LiveApplicationSet) (s appSet, problem *Problem, transient bool) {
	wrong := func(err error) *Problem {
		return &Problem{ApplicationSet: l.Name, Message: fmt.Sprintf("the live ApplicationSet %s/%s can't be used: %v", l.Namespace,
			l.Name, err)}
	}
	found, err := in.findLiveSets(l.ArgoCD, l.Namespace, l.Name)
	if err != nil {
		return appSet{}, wrong(err), true
	}
	if len(found) == 0 {
		return appSet{}, wrong(fmt.Errorf("there is none of that name in Argo CD %s", cmp.Or(l.ArgoCD, in.Main))), true
	}
	var object struct {
		APIVersion string                     `json:"apiVersion"`
		Kind       string                     `json:"kind"`
		Metadata   map[string]json.RawMessage `json:"metadata"`
		Spec       json.RawMessage            `json:"spec"`
	}
	if err := json.Unmarshal(found[0].Object, &object); err != nil {
		return appSet{}, wrong(fmt.Errorf("it is not an object: %w", err)), false
	}
	// The set says nothing of the fields that the API server keeps for itself.
	maps.DeleteFunc(object.Metadata, func(key string, _ json.RawMessage) bool {
		return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, key)
	})
	if s.raw, err = json.Marshal(object); err != nil {
		return appSet{}, wrong(fmt.Errorf("it can't be written down: %w", err)), false
	}
	if err := s.decodeSpec(cmp.Or(object.APIVersion, apiVersion)); err != nil {
		return appSet{}, wrong(err), false
	}
	return s, nil, false
}

// liveParamsHint explains a template's error over a live Application.
const liveParamsHint = "; it is a live Application, which has no generator parameters: write the template over .application, as in {{ " +
	".application.metadata.labels.team }}"

// resolveLiveSet takes a set's live Applications for its targets, because the set
// itself has fields that aren't known here.
func (r *Resolver) resolveLiveSet(ctx context.Context, in *Input, s *appSet, e *pipelineEntry, c *commit, snap *snapshot) setOutcome {
	problem := func(format string, args ...any) setOutcome {
		return setOutcome{failed: true, transient: true, refresh: liveRefresh,
			problems: []Problem{s.newProblem("", s.unknown.Error()+"; its live Applications can't be used instead: "+
				fmt.Sprintf(format, args...))}}
	}
	if in.Live == nil || in.Live.Applications == nil {
		return setOutcome{failed: true, problems: []Problem{s.newProblem("", s.unknown.Error())}}
	}
	if s.file != "" && !in.Scope.has(ScopeKey{Kind: scopeLiveSet, ArgoCD: cmp.Or(e.argocd, in.Main), Place: s.spec.Namespace,
		Name: s.spec.Name}) {
		refused := &scopeError{fmt.Sprintf("the live Applications of ApplicationSet %s", s.spec.Name)}
		return setOutcome{failed: true, problems: []Problem{s.newProblem("", refused.Error()+"; it has what is not known here: "+
			s.unknown.Error())}}
	}
	found, err := in.findLiveSets(e.argocd, s.spec.Namespace, s.spec.Name)
	if err != nil {
		return problem("%v", err)
	}
	// A manifest without a namespace goes where it is applied to.
	if own := slices.IndexFunc(found, func(l LiveSet) bool { return l.Namespace == snap.argocd.Namespace }); len(found) > 1 && own >= 0 {
		found = found[own : own+1]
	}
	if len(found) != 1 {
		return problem("Argo CD %s has %d ApplicationSets of this name", cmp.Or(e.argocd, in.Main), len(found))
	}
	raws, err := in.Live.Applications(ctx, cmp.Or(e.argocd, in.Main), found[0].Namespace, s.spec.Name)
	if err != nil {
		return problem("%v", err)
	}
	o := setOutcome{transient: true, refresh: liveRefresh,
		notes: []Problem{s.newProblem("", fmt.Sprintf("%v; its %d live Applications are used as they are", s.unknown, len(raws)))}}
	known := r.generateKnown(ctx, s, c, snap)
	e.liveTargets(in, s, raws, known, c, &o)
	o.scope = known.scope
	return o
}

// generateKnown generates from what is known of a set. Nothing is believed of
// it but the parameters of Applications that turn out to be live.
func (r *Resolver) generateKnown(ctx context.Context, s *appSet, c *commit, snap *snapshot) *generatedApps {
	if snap.checkGenerators(&s.spec) != nil {
		return &generatedApps{}
	}
	out, _ := runInSlot(ctx, r.slots, func() *generatedApps {
		out, err := generateApplications(ctx, r.log, s, c, snap, r.newGeneratorAccess(ctx))
		if err != nil {
			return nil
		}
		return out
	})
	return cmp.Or(out, &generatedApps{})
}

// resolveLiveApplications takes the live Applications of one entry of applications.
func (r *Resolver) resolveLiveApplications(ctx context.Context, in *Input, i int, e *pipelineEntry, c *commit) setOutcome {
	l := in.Pipeline.Spec.Applications[i].Live
	problem := func(err error) setOutcome {
		return setOutcome{transient: true, refresh: liveRefresh, problems: []Problem{{
			File: in.Pipeline.File, Message: fmt.Sprintf("applications[%d]: %v", i, err)}}}
	}
	argocd := cmp.Or(l.ArgoCD, in.Main)
	if err := in.checkLive(argocd); err != nil {
		return problem(err)
	}
	if in.Live.Selected == nil {
		return problem(errNoConnection)
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	raws, err := in.Live.Selected(ctx, argocd, l.Namespace, l.Selector)
	if err != nil {
		return problem(fmt.Errorf("listing the Applications that %s selects in namespace %s: %w", l.Selector, l.Namespace, err))
	}
	o := setOutcome{transient: true, refresh: liveRefresh}
	note := func(format string, args ...any) {
		o.notes = append(o.notes, Problem{File: in.Pipeline.File,
			Message: fmt.Sprintf("applications[%d]: ", i) + fmt.Sprintf(format, args...)})
	}
	all := len(raws)
	raws = slices.DeleteFunc(slices.Clone(raws), ownedBySet)
	switch {
	case all == 0:
		note("%s selects no Application in namespace %s of Argo CD %s", l.Selector, l.Namespace, argocd)
	case len(raws) < all:
		note("%d of the %d Applications that %s selects belong to ApplicationSets and are left out: name those in applicationSets",
			all-len(raws), all, l.Selector)
	}
	e.liveTargets(in, &appSet{}, raws, &generatedApps{}, c, &o)
	return o
}

// ownedBySet says that an ApplicationSet made a live Application.
func ownedBySet(raw json.RawMessage) bool {
	var object struct {
		Metadata struct {
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	// An object that can't be read has no owner; it becomes a problem where it is decoded.
	_ = json.Unmarshal(raw, &object)
	return slices.ContainsFunc(object.Metadata.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == kindSet && r.Controller != nil && *r.Controller
	})
}

// liveTargets describes live Applications as targets of a set, or of none. known is
// what could be generated of the set.
func (p *pipelineEntry) liveTargets(in *Input, s *appSet, raws []json.RawMessage, known *generatedApps, c *commit, o *setOutcome) {
	generated := map[string]*generatedApp{}
	for i := range known.apps {
		generated[known.apps[i].app.Name] = &known.apps[i]
	}
	for i, raw := range raws {
		g, unknown, err := decodeApplication(raw)
		if err != nil {
			o.problems = append(o.problems, s.newProblem("", fmt.Sprintf("live Application %d of %d: %v", i+1, len(raws), err)))
			continue
		}
		if unknown != nil {
			o.problems = append(o.problems, s.newProblem(g.app.Name, unknown.Error()))
		}
		if same := generated[g.app.Name]; same != nil && sameIdentity(same.app, g.app) {
			g.params, g.files = same.params, same.files
		}
		before := len(o.problems)
		t := p.buildTarget(in, s, g, c.isThisRepository, o)
		for i := before; i < len(o.problems) && g.params == nil; i++ {
			o.problems[i].Message += liveParamsHint
		}
		t.Live = true
		o.targets = append(o.targets, t)
	}
}

// decodeApplication reads an Application that somebody wrote, or that runs. unknown says which
// field of its spec isn't known here, so that it may read more than it seems.
func decodeApplication(raw json.RawMessage) (g *generatedApp, unknown, err error) {
	var object struct {
		Metadata struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, nil, fmt.Errorf("it is not an object: %w", err)
	}
	if object.Metadata.Name == "" || len(object.Spec) == 0 {
		return nil, nil, errors.New("it has no name or no spec")
	}
	g = &generatedApp{app: &argov1alpha1.Application{}}
	g.app.Name, g.app.Namespace = object.Metadata.Name, object.Metadata.Namespace
	g.app.Labels, g.app.Annotations = object.Metadata.Labels, object.Metadata.Annotations
	wrong, err := kjson.UnmarshalStrict(object.Spec, &g.app.Spec)
	if err == nil && len(wrong) > 0 {
		var known []byte
		if known, g.newer, err = splitLiveSpec(object.Spec); err == nil && g.newer != nil {
			g.app.Spec = argov1alpha1.ApplicationSpec{}
			wrong, err = kjson.UnmarshalStrict(known, &g.app.Spec)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the spec of %s can't be read: %w", object.Metadata.Name, explainType(err))
	}
	if len(wrong) > 0 {
		unknown = fmt.Errorf("its spec has an %w; this version of the resolver doesn't know it: what it reads is not sure",
			explainUnknown(wrong[0]))
	}
	return g, unknown, nil
}

// sameIdentity says that a generated Application and a live one of its name
// are one: they go to the same place and read the same paths.
func sameIdentity(a, b *argov1alpha1.Application) bool {
	return a.Spec.GetProject() == b.Spec.GetProject() && a.Spec.Destination.Equals(b.Spec.Destination) &&
		slices.EqualFunc(a.Spec.GetSources(), b.Spec.GetSources(), func(a, b argov1alpha1.ApplicationSource) bool {
			return SameRepository(a.RepoURL, b.RepoURL) && a.Path == b.Path && a.Chart == b.Chart && a.Ref == b.Ref
		})
}
