package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Change says which change to look at.
type Change struct {
	// Base is what it is to be merged into; "" is the default branch of the
	// remote, as of the last fetch.
	Base string
	Head string // "" is the working tree
	// Rendered asks what the change does to the rendered manifests of the targets that it touches.
	Rendered bool

	Known Known
}

// Impact is what a change does.
type Impact struct {
	From, To string // the trees that were compared, for people
	Report   *impact.Report
	Notes    []appset.Problem

	rulesOfHead bool // the base has no pipeline file, and the head's counts
}

// Impact compares a change's head with the newest commit that it has in common with its base, as a
// pull request does. Later changes of the base don't count. The rules are the base's pipeline
// files; only where there are none there, the head's. Where the base is a branch that an
// environment lives on, they are the default branch's, and so are the ApplicationSets.
func (r *Repository) Impact(ctx context.Context, c Change) (*Impact, error) {
	head, err := r.At(ctx, c.Head)
	if err != nil {
		return nil, err
	}
	base, err := r.forkPoint(ctx, c.Base, head)
	if err != nil {
		return nil, err
	}
	changed, err := changedFiles(ctx, base.Commit, head)
	if err != nil {
		return nil, err
	}
	out := &Impact{From: base.Name, To: head.Name, Notes: c.Known.uncheckedNotes()}
	on, err := r.environmentBranch(ctx, c.Base)
	if err != nil {
		return nil, err
	}
	before, after := on.pipes, on.pipes
	if on.branch != "" {
		out.Notes = append(out.Notes, appset.Problem{Message: fmt.Sprintf("environments live on branches here: the pipeline files and "+
			"the ApplicationSets are those of %s", on.rules.Name)})
	} else if before, after, err = out.choosePipelines(ctx, r, &c.Known, base, head); err != nil {
		return nil, err
	}
	rules := base
	if on.branch != "" {
		rules = on.rules
	} else if out.rulesOfHead {
		rules = head
	}
	known, err := c.Known.resolverInput(rules.FS, slices.Concat(before, after))
	if err != nil {
		return nil, err
	}
	files, _ := r.overlayFiles(rules, nil)
	if err := r.refuseUnread(ctx, files, rules, known, slices.Concat(before, after)); err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, known.problems...)
	if !out.rulesOfHead {
		out.Notes = append(out.Notes, changedClusters(known, changed, rules)...)
	}
	resolver := appset.New(appset.Options{})
	resolveOne := func(t *Tree, p *pipeline.Pipeline) (*evaluate.Resolution, error) {
		from := known.forPipeline(p)
		in := evaluate.Input{
			Pipelines: []*pipeline.Pipeline{p}, Changed: changed, Revision: t.Commit, Branch: r.main, RepoURLs: r.urls,
			OpenExternal: r.openExternal(t.FS, t.Commit),
			Clusters:     from.Clusters, Placements: from.Placements, Globbing: from.Globbing, Version: from.Version, ArgoCDs: from.ArgoCDs,
			Main: from.Main, Live: from.Live, Manifests: true, Build: r.manifestBuilder(nil, t),
		}
		if on.branch == "" {
			return evaluate.InProcess(ctx, resolver, t.FS, in)
		}
		in.On, in.Edited = on.branch, appset.ExternalRef{Tree: t.FS, Commit: t.Commit}
		in.Revision = "" // what the other branch is at decides as well: nothing is kept
		return evaluate.InProcess(ctx, resolver, on.rules.FS, in)
	}
	resolve := func(t *Tree, pipes []*pipeline.Pipeline) (*evaluate.Resolution, error) {
		all := &evaluate.Resolution{Pipelines: map[string]*evaluate.Pipeline{}}
		for _, p := range pipes {
			one, err := resolveOne(t, p)
			if err != nil {
				return nil, err
			}
			maps.Copy(all.Pipelines, one.Pipelines)
		}
		return all, nil
	}
	was, err := resolve(base, before)
	if err != nil {
		return nil, err
	}
	is, err := resolve(head, after)
	if err != nil {
		return nil, err
	}
	pipes := before
	if len(pipes) == 0 {
		pipes = after
	}
	out.Report, err = impact.Compare(impact.Input{Pipelines: pipes, Before: was, After: is, Changed: changed, On: on.branch})
	if err != nil || !c.Rendered {
		return out, err
	}
	return out, r.renderImpact(ctx, out.Report, cmp.Or(on.branch, r.main), base, head, was, is)
}

// changedClusters says that a change edits a file of clusters, which counts as it was before. It
// describes the clusters of Argo CD, and merging the change registers none there.
func changedClusters(known *knownInput, changed []string, rules *Tree) []appset.Problem {
	var out []appset.Problem
	for _, file := range slices.Sorted(maps.Keys(known.clusters)) {
		if slices.Contains(changed, file) {
			out = append(out, appset.Problem{File: file, Message: fmt.Sprintf("the clusters are those that %s has: the change edits this "+
				"file, and registers none with Argo CD", rules.Name)})
		}
	}
	return out
}

// branchRules is what a change is judged by that is to be merged into a branch that
// an environment lives on; empty for every other change.
type branchRules struct {
	branch string
	rules  *Tree
	pipes  []*pipeline.Pipeline
}

// environmentBranch says whether an environment of the default branch's pipelines
// lives on a base.
func (r *Repository) environmentBranch(ctx context.Context, base string) (branchRules, error) {
	for _, prefix := range []string{"refs/remotes/", "origin/", "refs/heads/"} {
		base = strings.TrimPrefix(base, prefix)
	}
	if base == "" || base == r.main || len(r.urls) == 0 {
		return branchRules{}, nil
	}
	name, sha, err := r.baseCommit(ctx, "")
	if err != nil {
		return branchRules{}, nil // without a default branch there are no rules elsewhere
	}
	rules := &Tree{FS: r.git.Tree(sha), Commit: sha, Name: describeCommit(name, sha)}
	pipes, err := pipeline.Load(rules.FS)
	if err != nil {
		return branchRules{}, nil // said where these rules are asked for
	}
	for _, p := range pipes {
		if slices.Contains(p.EnvironmentBranches(), base) {
			return branchRules{branch: base, rules: rules, pipes: dropMissingSets(pipes, rules.FS)}, nil
		}
	}
	return branchRules{}, nil
}

// forkPoint is the newest commit that the head has in common with the base.
func (r *Repository) forkPoint(ctx context.Context, base string, head *Tree) (*Tree, error) {
	if _, err := r.git.Resolve(ctx, "HEAD"); err != nil && head.repo != commits(r.git) {
		return nil, fmt.Errorf("there is nothing to compare with: %w", err)
	}
	name, sha, err := r.baseCommit(ctx, base)
	if err != nil {
		return nil, err
	}
	common, ok, err := head.repo.MergeBase(ctx, sha, head.Commit)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s and %s have no commit in common; if this is a shallow clone, fetch its history first (git fetch "+
			"--unshallow)", name, head.Name)
	}
	t := r.git.Tree(common)
	at := &Tree{FS: t, Commit: common, Name: describeCommit(name, sha)}
	if common != sha {
		at.Name = describeCommit(common, common) + " (where it left " + name + ")"
	}
	return at, nil
}

// baseCommit is the commit that a change is to be merged into, and its name.
func (r *Repository) baseCommit(ctx context.Context, rev string) (name, sha string, err error) {
	if rev != "" {
		sha, err = r.git.Resolve(ctx, rev)
		return rev, sha, err
	}
	if r.main == "" {
		return "", "", errors.New("which branch this is to be merged into is not known: name it with --base")
	}
	for _, name := range []string{"origin/" + r.main, r.main} {
		prefix := "refs/heads/"
		if name != r.main {
			prefix = "refs/remotes/"
		}
		sha, err := r.git.Resolve(ctx, prefix+name)
		if !errors.Is(err, git.ErrUnknownCommit) {
			return name, sha, err
		}
	}
	return "", "", fmt.Errorf("the branch %s, which this would be merged into, has no commit here: name another with --base", r.main)
}

// changedFiles lists the files that differ.
func changedFiles(ctx context.Context, base string, head *Tree) ([]string, error) {
	list, err := head.repo.Changed(ctx, base, head.Commit)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(list))
	for _, c := range list {
		out = append(out, c.Path)
	}
	return out, nil
}

// choosePipelines are the pipelines that both sides are judged by. Without any they are
// each side's ApplicationSets.
func (i *Impact) choosePipelines(ctx context.Context, r *Repository, known *Known, base, head *Tree) (before, after []*pipeline.Pipeline,
	err error) {
	for _, t := range []*Tree{base, head} {
		pipes, err := pipeline.Load(t.FS)
		switch {
		case errors.Is(err, pipeline.ErrNoPipeline):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("the pipeline files of %s can't be used: %w", t.Name, err)
		}
		if t == head {
			i.rulesOfHead = true
			i.Notes = append(i.Notes, appset.Problem{Message: fmt.Sprintf("%s has no pipeline file; that of %s is used", base.Name,
				head.Name)})
		}
		return dropMissingSets(pipes, base.FS), dropMissingSets(pipes, head.FS), nil
	}
	sets := make([]*runningSets, 2)
	for n, t := range []*Tree{base, head} {
		if sets[n], err = r.findRunning(ctx, t, known, kindApplicationSet); err != nil {
			return nil, nil, err
		}
	}
	i.Notes = append(i.Notes, slices.Concat(sets[1].notes, sets[1].problems)...)
	if sets[0].isEmpty() && sets[1].isEmpty() {
		i.Notes = append(i.Notes, noSetsProblem(head))
	}
	return []*pipeline.Pipeline{sets[0].pipeline()}, []*pipeline.Pipeline{sets[1].pipeline()}, nil
}

// lacksManifests says that a tree has nothing of what an entry names.
func lacksManifests(tree fs.FS, m pipeline.ManifestSource) bool {
	switch {
	case m.Helm != nil:
		_, err := fs.Stat(tree, m.Helm.Path)
		return errors.Is(err, fs.ErrNotExist)
	case m.Kustomize != "":
		_, err := fs.Stat(tree, appset.KustomizationFile(tree, m.Kustomize))
		return errors.Is(err, fs.ErrNotExist)
	}
	return m.Path != "" && !matchesAny(tree, m.Path)
}

// dropMissingSets leaves out entries whose files a tree doesn't have: the comparison shows that a
// change adds or removes a set, which is no problem.
func dropMissingSets(pipes []*pipeline.Pipeline, tree fs.FS) []*pipeline.Pipeline {
	out := make([]*pipeline.Pipeline, len(pipes))
	for i, p := range pipes {
		own := *p
		own.Spec.ApplicationSets = slices.DeleteFunc(slices.Clone(p.Spec.ApplicationSets), func(e pipeline.ApplicationSetSource) bool {
			return lacksManifests(tree, e.Manifests())
		})
		own.Spec.Applications = slices.DeleteFunc(slices.Clone(p.Spec.Applications), func(e pipeline.ApplicationSource) bool {
			return lacksManifests(tree, e.Manifests())
		})
		out[i] = &own
	}
	return out
}
