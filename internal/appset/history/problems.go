package history

import (
	"cmp"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
)

// scope is what a problem is about: one target, all of an ApplicationSet, all
// sets of a file or, with everything, whatever the pipeline has. Without a file
// it is a live object; without a file and a set, plain Applications.
type scope struct {
	file, set, application string
	everything             bool
}

// scopeOf reads what a problem of a pipeline's targets is about. One of the
// pipeline's own file, and one that names nothing, is about everything.
func scopeOf(p appset.Problem, own string) scope {
	return scope{file: p.File, set: p.ApplicationSet, application: p.Application,
		everything: (p.File == own || p.File == "") && p.ApplicationSet == "" && p.Application == ""}
}

func (s scope) covers(o scope) bool {
	if s.everything {
		return true
	}
	coversSet := s.set == "" || s.set == o.set
	coversApplication := s.application == "" || s.application == o.application
	return s.file == o.file && coversSet && coversApplication
}

// concernsTarget says whether a problem is about a target.
func (s scope) concernsTarget(t *appset.Target) bool {
	return s.covers(scope{file: t.ApplicationSetFile, set: t.ApplicationSet, application: t.Name})
}

func scopesOf(problems []appset.Problem, own string) []scope {
	out := make([]scope, 0, len(problems))
	for _, p := range problems {
		out = append(out, scopeOf(p, own))
	}
	return out
}

// UnrelatedProblems says that none of some problems is about what another is about; own is
// the pipeline's file.
func UnrelatedProblems(some, others []appset.Problem, own string) bool {
	scopes := scopesOf(others, own)
	return !slices.ContainsFunc(scopesOf(some, own), func(a scope) bool {
		return slices.ContainsFunc(scopes, func(b scope) bool { return a.covers(b) || b.covers(a) })
	})
}

// EffectiveTargets are the targets that count while some can't be resolved: for what a
// problem is about those of before, for the rest what was resolved now. A problem
// that is about no target that was ever known may be about any: then nothing of
// before is given up. own is the pipeline's file.
func EffectiveTargets(now, before *appset.TargetSet, own string) *appset.TargetSet {
	scopes := scopesOf(now.Problems, own)
	wide := slices.ContainsFunc(scopes, func(s scope) bool {
		return !slices.ContainsFunc(before.Targets, func(t appset.Target) bool { return s.concernsTarget(&t) })
	})
	out := *now
	out.Targets = slices.Clone(now.Targets)
	at := make(map[string]int, len(now.Targets))
	for i := range now.Targets {
		at[now.Targets[i].ID()] = i
	}
	for i := range before.Targets {
		t := &before.Targets[i]
		concerned := slices.ContainsFunc(scopes, func(s scope) bool { return s.concernsTarget(t) })
		switch here, ok := at[t.ID()]; {
		case ok && concerned:
			out.Targets[here] = *t
		case !ok && (concerned || wide):
			out.Targets = append(out.Targets, *t)
		}
	}
	slices.SortStableFunc(out.Targets, func(a, b appset.Target) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ArgoCD, b.ArgoCD))
	})
	return &out
}

// ComponentProblems are problems with the components that they concern.
type ComponentProblems []componentProblem

type componentProblem struct {
	appset.Problem
	all   bool // it may concern any
	units map[string]bool
}

// NewComponentProblems says whom each problem concerns: the components with a target in
// force that it is about. Where there is no such target nobody knows whose it
// would be. Then it is about the components with targets of the same
// ApplicationSet; and of a set without any, about all. own is the pipeline's file.
func NewComponentProblems(problems []appset.Problem, fl *appset.TargetSet, own string) ComponentProblems {
	out := make(ComponentProblems, 0, len(problems))
	for _, p := range problems {
		s := scopeOf(p, own)
		t := componentProblem{Problem: p, units: componentsIn(fl, s), all: s.everything}
		if len(t.units) == 0 && s.application != "" {
			s.application = ""
			t.units = componentsIn(fl, s)
		}
		t.all = t.all || len(t.units) == 0
		out = append(out, t)
	}
	return out
}

func componentsIn(fl *appset.TargetSet, s scope) map[string]bool {
	out := map[string]bool{}
	for i := range fl.Targets {
		if t := &fl.Targets[i]; t.Managed() && s.concernsTarget(t) {
			out[t.Component] = true
		}
	}
	return out
}

// For are the problems that concern a component, in words: one for each cause.
func (c ComponentProblems) For(component string) []string {
	var found []appset.Problem
	for i := range c {
		if c[i].all || c[i].units[component] {
			found = append(found, c[i].Problem)
		}
	}
	var out []string
	for _, p := range appset.GroupProblems(found, appset.NameFew) {
		out = append(out, p.Text())
	}
	return out
}
