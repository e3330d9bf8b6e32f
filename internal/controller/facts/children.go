package facts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// childTarget is an Application that is a resource of a target's: of an app of apps. Its
// parent's being Healthy says nothing of it, so it is judged like a target.
type childTarget struct {
	appset.Target
	label  string // what decisions call it
	parent string // what they call the one that it is a resource of
}

// maxChildren bounds the Applications below the targets of one environment of a component.
const maxChildren = 200

// findChildren finds the Applications that an environment's targets have among their
// resources, and those that these have. overflown are the targets of which not all
// could be taken.
func (ag *argocdGatherer) findChildren(c *ComponentEvaluation, env *promotion.Env, at *ResolvedEnv) (children []childTarget,
	overflown []string) {
	type parent struct {
		target *appset.Target
		label  string
	}
	seen, labels := map[string]bool{}, map[string]bool{}
	var queue []parent
	for i := range at.Targets {
		t := &at.Targets[i]
		label := ag.argocds.TargetLabel(at, t)
		seen[ag.argocds.TargetName(t)], labels[label] = true, true
		queue = append(queue, parent{t, label})
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		app, err := ag.argocds.findApp(p.target)
		if err != nil || app == nil || !ag.argocds.deploysHere(p.target, app) {
			continue
		}
		for _, ref := range app.Children {
			child := ag.newChildTarget(c, env, p.target, app, ref)
			id := ag.argocds.TargetName(&child)
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
			children = append(children, childTarget{child, label, p.label})
			queue = append(queue, parent{&child, label})
		}
	}
	return children, overflown
}

// deploysHere says that an Application deploys to the cluster that its Argo CD runs in, so
// that the Applications among its resources are that Argo CD's.
func (a *argoCDs) deploysHere(t *appset.Target, app *verification.App) bool {
	own := a.clusterOf(a.ArgoCDOf(t), verification.Destination{Name: inCluster})
	return a.clusterOf(a.ArgoCDOf(t), app.Destination) == own
}

// newChildTarget describes an Application by how it runs. Only what it has from the
// environment's own branch can be told to be of a commit: the rest it has from its parent.
func (ag *argocdGatherer) newChildTarget(c *ComponentEvaluation, env *promotion.Env, parent *appset.Target, app *verification.App,
	ref verification.ChildRef) appset.Target {
	t := appset.Target{Name: ref.Name, Namespace: cmp.Or(ref.Namespace, app.Destination.Namespace, app.Namespace),
		ArgoCD:    ag.argocds.ArgoCDOf(parent),
		Component: parent.Component, Environment: parent.Environment, Live: true}
	live, err := ag.argocds.findApp(&t)
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
func (ag *argocdGatherer) judgeChildren(l *targetLook, at *ResolvedEnv, isDone map[string]bool) {
	children, overflown := ag.findChildren(l.c, l.env, at)
	for i := range l.env.Targets {
		if t := &l.env.Targets[i]; slices.Contains(overflown, t.Name) {
			t.Verdict = unjudged(verification.Unclear, fmt.Sprintf("there are more than %d Applications below it, and not all of them "+
				"can be looked at", maxChildren))
		}
	}
	l.c.children[l.env.Name] = children
	for i := range children {
		k := &children[i]
		if isDone[k.parent] {
			isDone[k.label] = ag.judgeTarget(l, at, &k.Target, k.label, true)
			continue
		}
		out := ag.newTarget(&k.Target, k.label)
		out.Verdict = unjudged(verification.Arriving, k.parent+", which it is a part of, is not done with the commit yet")
		l.env.Targets = append(l.env.Targets, out)
	}
}

// ChildTargets are the Applications below an environment's targets.
func (c *ComponentEvaluation) ChildTargets(env string) []appset.Target {
	var out []appset.Target
	for i := range c.children[env] {
		out = append(out, c.children[env][i].Target)
	}
	return out
}

// FindTarget finds a target, or an Application below one, by what decisions call it; nil
// when there is none any more.
func (ag *argocdGatherer) FindTarget(c *ComponentEvaluation, env, label string) *appset.Target {
	if at := c.Unit.Envs[env]; at != nil {
		for i := range at.Targets {
			if ag.argocds.TargetLabel(at, &at.Targets[i]) == label {
				return &at.Targets[i]
			}
		}
	}
	if k := c.findChild(env, label); k != nil {
		return &k.Target
	}
	return nil
}

// targetAt is what an environment's target of the facts was judged by; nil when there is none.
func (c *ComponentEvaluation) targetAt(env *promotion.Env, at *ResolvedEnv, i int) *appset.Target {
	if i < len(at.Targets) {
		return &at.Targets[i]
	}
	if k := c.findChild(env.Name, env.Targets[i].Name); k != nil {
		return &k.Target
	}
	return nil
}

// findChild finds an Application below an environment's targets by what decisions call it;
// nil when it is none.
func (c *ComponentEvaluation) findChild(env, label string) *childTarget {
	i := slices.IndexFunc(c.children[env], func(k childTarget) bool { return k.label == label })
	if i < 0 {
		return nil
	}
	return &c.children[env][i]
}
