package effects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxPastRendered is about how many bytes of manifests of landed promotions are
	// remembered; readers of the past don't displace what is judged now.
	maxPastRendered = 16 << 20
	// maxComparedFiles bounds the files of one pull request: whole folders may be
	// carried, and a person may have merged more with them.
	maxComparedFiles = 5000
)

// NoDifferenceError says why what a pull request changes of manifests can't be shown.
type NoDifferenceError struct{ Why string }

// Error is the reason.
func (n *NoDifferenceError) Error() string { return n.Why }

func newNoDifference(format string, args ...any) error {
	return &NoDifferenceError{Why: fmt.Sprintf(format, args...)}
}

// Difference is everything that one of our pull requests changes of manifests.
type Difference struct {
	Before, After string // the commits that are compared
	Landed        bool   // it was merged: After is what landed, Before its first parent
	Files         []string
	Effects       []isolation.Effect
	Problems      []string // of a landed one: what of its commits can't be resolved with the rules of today
	Pending       bool     // an Argo CD is still rendering some of it
}

// inspectedHead is the head of an open pull request of ours that was inspected, and whether we
// composed it. Only then is it rendered in this process.
type inspectedHead struct{ head, base, headModified string }

func pullKey(r *branch.Repository, number int) string { return fmt.Sprintf("%s#%d", r.ID, number) }

// RecordHead remembers what was found out about an open pull request's head; composed:
// its edits were composed again and are exactly what the head has.
func (ga *Gatherer) RecordHead(r *branch.Repository, p *promotion.Pull, base string, composed bool) {
	s := inspectedHead{head: p.Head, base: base, headModified: p.HeadReason}
	if s.headModified == "" && !composed {
		s.headModified = fmt.Sprintf("#%d can't be composed again, so it can't be told whether it is what Liftlock composed", p.Number)
	}
	ga.inspectedHeads.Put(pullKey(r, p.Number), s)
}

// Difference compares the manifests of an environment of a unit without and with one of our pull
// requests. It compares an open one's head with the commit that it was composed on, and a merged
// one's commit with its first parent. It reads Git and the store, never the forge. The error is a
// *NoDifferenceError where it can't.
func (ga *Gatherer) Difference(ctx context.Context, r *branch.Repository, u promotion.Unit, env string, pull int) (*Difference,
	error) {
	s, err := ga.targets.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	p, ua := s.Unit(u)
	if ua == nil || ua.Envs[env] == nil {
		return nil, newNoDifference("the pipeline %s has no component %s in %s any more, so its manifests can't be rendered", u.Pipeline,
			u.Component, env)
	}
	pr, err := ga.pulls.KnownPull(ctx, r.ID, pull)
	if err != nil {
		return nil, err
	}
	if pr == nil || !r.HasOpened(pr) {
		return nil, newNoDifference("nothing is known of the pull request #%d; it is read again at the next sweep", pull)
	}
	c := &branch.Basis{Unit: u, Snapshot: s, Pipeline: p}
	components := []string{u.Component}
	if members := branch.MarkedMembers(pr.Body); len(members) > 0 {
		components = ComponentNames(members)
	}
	switch pr.State {
	case forge.Open:
		return ga.openDifference(ctx, c, components, env, pr)
	case forge.Merged:
		return ga.LandedDifference(ctx, c, components, env, pr)
	}
	return nil, newNoDifference("#%d was closed without a merge: nothing of it landed", pull)
}

// openDifference compares an open pull request's head with its base.
func (ga *Gatherer) openDifference(ctx context.Context, c *branch.Basis, components []string, env string,
	pr *forge.PullRequest) (*Difference, error) {
	r := c.Snapshot.Repo
	seen, ok := ga.inspectedHeads.Get(pullKey(r, pr.Number))
	switch {
	case !ok || seen.head != pr.Head:
		return nil, newNoDifference("the head of #%d has not been looked at yet; try again in a moment", pr.Number)
	case seen.headModified != "":
		return nil, newNoDifference("%s. What somebody else wrote is not rendered here", seen.headModified)
	}
	edits, err := ga.EditsBetween(ctx, r, seen.base, seen.head)
	if err != nil {
		return nil, err
	}
	out := &Difference{Before: seen.base, After: seen.head, Files: EditedFiles(edits)}
	out.Effects, out.Pending, err = ga.ShownEffects(ctx, c, components, env, Commits{seen.base, seen.head}, edits, ReaderPatience)
	if err != nil && ctx.Err() == nil {
		return nil, newNoDifference("the rendered manifests could not be compared: %v", err)
	}
	return out, err
}

// EditsBetween are what turns one commit into another, by the files' contents.
func (ga *Gatherer) EditsBetween(ctx context.Context, r *branch.Repository, base, head string) ([]fieldedit.Edit, error) {
	changed, err := r.Mirror.Changed(ctx, base, head)
	if err != nil {
		return nil, err
	}
	if len(changed) > maxComparedFiles {
		return nil, newNoDifference("it changes %d files; at most %d are compared", len(changed), maxComparedFiles)
	}
	tree := r.Mirror.Tree(head)
	out := make([]fieldedit.Edit, 0, len(changed))
	for _, f := range changed {
		e := fieldedit.Edit{File: f.Path, Mode: fieldedit.Mode(f.NewMode), Created: f.OldMode == 0, Deleted: f.NewMode == 0}
		if !e.Deleted {
			if e.After, err = tree.ReadFile(f.Path); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// EditedFiles are the files of edits, in their order.
func EditedFiles(edits []fieldedit.Edit) []string {
	out := make([]string, 0, len(edits))
	for _, e := range edits {
		out = append(out, e.File)
	}
	return out
}

// LandedDifference compares what landed with a merged pull request with the commit
// before. Both are of the environment's branch's history. They are resolved with the
// rules, the live objects and the other repositories of today: those of then
// are not in Git.
func (ga *Gatherer) LandedDifference(ctx context.Context, c *branch.Basis, components []string, env string,
	pr *forge.PullRequest) (*Difference, error) {
	m, commit := c.Snapshot.Repo.Mirror, pr.MergeCommit
	line := c.Snapshot.BranchFor(c.Pipeline.Pipeline, env)
	on := false
	if commit != "" {
		var err error
		if on, err = m.IsAncestor(ctx, commit, line.Commit); err != nil && !errors.Is(err, git.ErrUnknownCommit) {
			return nil, err
		}
	}
	if !on {
		return nil, newNoDifference("#%d was merged as %s, which is not on %s: it was rewritten, or has not been fetched yet", pr.Number,
			describeCommit(commit), line.Branch)
	}
	info, err := m.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	if len(info.Parents) == 0 {
		return nil, newNoDifference("%s has no commit before it to compare with", describeCommit(commit))
	}
	out := &Difference{Before: info.Parents[0], After: commit, Landed: true}
	if out.Files, err = branch.ChangedPaths(ctx, m, out.Before, out.After); err != nil {
		return nil, err
	}
	if len(out.Files) > maxComparedFiles {
		return nil, newNoDifference("%s changes %d files; at most %d are compared", describeCommit(commit), len(out.Files),
			maxComparedFiles)
	}
	limited, cancel := ga.withEditTimeout(ctx)
	defer cancel()
	err = ga.compareLanded(limited, c, components, env, out)
	if RanOutOfTime(ctx, err) {
		return nil, newNoDifference("rendering both sides took longer than %s", editTimeout)
	}
	if err != nil {
		return nil, err
	}
	var retries []retryState
	out.Effects, retries = ga.remote.replaceEffects(ctx, out.Effects, Commits{out.Before, out.After}, ReaderPatience)
	out.Pending = slices.ContainsFunc(retries, retryState.isPending)
	return out, ctx.Err()
}

// compareLanded fills in the effects of a commit of the past. Nothing of it is
// kept where the present is judged from.
func (ga *Gatherer) compareLanded(ctx context.Context, c *branch.Basis, components []string, env string, d *Difference) error {
	edit := &isolation.Edit{Files: d.Files, Revision: d.Before}
	mine, came := map[string]bool{}, map[string]bool{}
	branchName := c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Branch
	var err error
	if edit.Before, err = ga.resolveAt(ctx, c, components, env, branch.Head{Branch: branchName, Commit: d.Before}, true, mine); err != nil {
		return err
	}
	if edit.After, err = ga.resolveAt(ctx, c, components, env, branch.Head{Branch: branchName, Commit: d.After}, true, came); err != nil {
		return err
	}
	edit.MayChange = func(t *appset.Target) bool { return mine[t.ID()] || came[t.ID()] }
	var readers []deps.Reader
	known := map[string]bool{}
	for i := range edit.Before.Targets {
		if t := &edit.Before.Targets[i]; !known[t.ID()] { // several pipelines may have one
			known[t.ID()] = true
			readers = append(readers, evaluate.Reader(t))
		}
	}
	ix, err := deps.Build(ctx, edit.Before.Tree, readers)
	if err != nil {
		return err
	}
	edit.FilesByTarget = ix.AffectedReaders(d.Files)
	d.Effects, err = ga.pastRenderer.Effects(ctx, edit)
	d.Problems = slices.Compact(slices.Sorted(slices.Values(slices.Concat(edit.Before.Problems, edit.After.Problems))))
	return err
}

func describeCommit(commit string) string {
	if commit == "" {
		return "a commit that the forge doesn't name"
	}
	return wording.Short(commit)
}

// CommitEffects says what a commit did to the targets of an environment, by the rules of today:
// their files haven't changed since, or it isn't requested.
func (ga *Gatherer) CommitEffects(ctx context.Context, c *branch.Basis, components []string, env, parent,
	commit string) ([]isolation.Effect, error) {
	if parent == "" {
		return nil, errors.New("there is no commit before it")
	}
	edits, err := ga.EditsBetween(ctx, c.Snapshot.Repo, parent, commit)
	if err != nil {
		return nil, err
	}
	return ga.ListEffects(ctx, c, components, env, parent, edits)
}
