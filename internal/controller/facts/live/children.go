package live

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// ChildTarget is an Application that is a resource of a target's: of an app of apps. Its
// parent's being Healthy says nothing of it, so it is judged like a target.
type ChildTarget struct {
	appset.Target
	Label  string // what decisions call it
	Parent string // what they call the one that it is a resource of
}

// maxChildren bounds the Applications below the targets of one environment of a component.
const maxChildren = 200

// findChildren finds the Applications that an environment's targets have among their
// resources, and those that these have. overflown are the targets of which not all
// could be taken.
func (ga *Gatherer) findChildren(c *branch.ComponentBasis, env *promotion.Env, at *branch.ResolvedEnv) (children []ChildTarget,
	overflown []string) {
	type parent struct {
		target *appset.Target
		label  string
	}
	seen, labels := map[string]bool{}, map[string]bool{}
	var queue []parent
	for i := range at.Targets {
		t := &at.Targets[i]
		label := ga.Argocds.TargetLabel(at, t)
		seen[ga.Argocds.TargetName(t)], labels[label] = true, true
		queue = append(queue, parent{t, label})
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		app, err := ga.Argocds.FindApp(p.target)
		if err != nil || app == nil || !deploysHere(ga.Argocds, p.target, app) {
			continue
		}
		for _, ref := range app.Children {
			child := ga.newChildTarget(c, env, p.target, app, ref)
			id := ga.Argocds.TargetName(&child)
			if seen[id] {
				continue
			}
			if len(children) == maxChildren {
				overflown = append(overflown, p.label)
				break
			}
			label := child.Name
			if labels[label] {
				label = id
			}
			seen[id], labels[label] = true, true
			children = append(children, ChildTarget{child, label, p.label})
			queue = append(queue, parent{&child, label})
		}
	}
	return children, overflown
}

// deploysHere says that an Application deploys to the cluster that its Argo CD runs in, so
// that the Applications among its resources are that Argo CD's.
func deploysHere(a *branch.ArgoCDs, t *appset.Target, app *verification.App) bool {
	own := a.ClusterOfDestination(a.ArgoCDOf(t), verification.Destination{Name: branch.InCluster})
	return a.ClusterOfDestination(a.ArgoCDOf(t), app.Destination) == own
}

// newChildTarget describes an Application by how it runs. Only what it has from the
// environment's own branch can be told to be of a commit: the rest it has from its parent.
func (ga *Gatherer) newChildTarget(c *branch.ComponentBasis, env *promotion.Env, parent *appset.Target, app *verification.App,
	ref verification.ChildRef) appset.Target {
	t := appset.Target{Name: ref.Name, Namespace: cmp.Or(ref.Namespace, app.Destination.Namespace, app.Namespace),
		ArgoCD:    ga.Argocds.ArgoCDOf(parent),
		Component: parent.Component, Environment: parent.Environment, Live: true}
	live, err := ga.Argocds.FindApp(&t)
	if err != nil || live == nil {
		return t
	}
	t.Project, t.AutoSync = live.Project, live.AutoSync
	t.Server, t.Cluster, t.DestNS = live.Destination.Server, live.Destination.Name, live.Destination.Namespace
	if live.HydratedPath != "" {
		t.Hydration = &appset.Hydration{Path: live.HydratedPath}
	}
	for _, s := range live.Sources {
		here := s.Chart == "" && slices.Contains([]string{"", "HEAD", env.Branch, "refs/heads/" + env.Branch}, s.TargetRevision) &&
			slices.ContainsFunc(c.Snapshot.Repo.URLs, func(url string) bool { return appset.SameRepository(url, s.RepoURL) })
		t.Sources = append(t.Sources, appset.Source{RepoURL: s.RepoURL, Path: s.Path, Chart: s.Chart, TargetRevision: s.TargetRevision,
			Ref: s.Ref, Here: here})
	}
	return t
}

// judgeChildren judges the Applications below an environment's targets, each when the one
// that it is a resource of is done with what landed: before that, how it is says nothing.
// isDone are the targets that are, by what decisions call them.
func (ga *Gatherer) judgeChildren(l *targetLook, at *branch.ResolvedEnv, isDone map[string]bool) {
	children, overflown := ga.findChildren(l.c, l.env, at)
	for i := range l.out.Targets {
		if t := &l.out.Targets[i]; slices.Contains(overflown, t.Name) {
			t.Verdict = unjudged(verification.Unclear, fmt.Sprintf("there are more than %d Applications below it, and not all of them "+
				"can be looked at", maxChildren))
		}
	}
	l.out.Children = children
	for i := range children {
		k := &children[i]
		if isDone[k.Parent] {
			isDone[k.Label] = ga.judgeTarget(l, at, &k.Target, k.Label, true)
			continue
		}
		out := ga.NewTarget(&k.Target, k.Label)
		out.Verdict = unjudged(verification.Arriving, k.Parent+", which it is a part of, is not done with the commit yet")
		l.out.Targets = append(l.out.Targets, out)
	}
}

// TargetsOf are Applications below targets, as targets.
func TargetsOf(children []ChildTarget) []appset.Target {
	var out []appset.Target
	for i := range children {
		out = append(out, children[i].Target)
	}
	return out
}

// TargetAt is what an environment's target of the facts was judged by; nil when there is none.
func TargetAt(env *promotion.Env, at *branch.ResolvedEnv, children []ChildTarget, i int) *appset.Target {
	if i < len(at.Targets) {
		return &at.Targets[i]
	}
	if k := FindChild(children, env.Targets[i].Name); k != nil {
		return &k.Target
	}
	return nil
}

// FindTarget finds a target, or an Application below one, by what decisions call it; nil
// when there is none any more.
func FindTarget(a *branch.ArgoCDs, at *branch.ResolvedEnv, children []ChildTarget, label string) *appset.Target {
	if at != nil {
		for i := range at.Targets {
			if a.TargetLabel(at, &at.Targets[i]) == label {
				return &at.Targets[i]
			}
		}
	}
	if k := FindChild(children, label); k != nil {
		return &k.Target
	}
	return nil
}

// FindChild finds an Application below targets by what decisions call it; nil when it is none.
func FindChild(children []ChildTarget, label string) *ChildTarget {
	i := slices.IndexFunc(children, func(k ChildTarget) bool { return k.Label == label })
	if i < 0 {
		return nil
	}
	return &children[i]
}
