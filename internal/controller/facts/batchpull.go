package facts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// batchPull is a pull request on a branch of several components' of a pipeline: in
// the book, with whom it moves.
type batchPull struct {
	cachedPull
	ref          promotion.BranchRef
	members      []promotion.Member
	membersKnown bool            // passengers are known
	pull         *promotion.Pull // where it is open and ours; without what differs by component
	detail       *pullDetail
}

// batchPulls are the pull requests of several components of one pipeline, by
// environment, newest first.
type batchPulls map[string][]*batchPull

// cachedBatchPulls reads them from the book. A pipeline whose components travel alone
// may have a component with the name; then there are none.
func (o *Gatherer) cachedBatchPulls(ctx context.Context, s *Snapshot, p *ResolvedPipeline) (batchPulls, error) {
	out := batchPulls{}
	if p.Units[promotion.BatchName] != nil {
		return out, nil
	}
	byEnv, err := o.unitPulls(ctx, s.Repo, promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: promotion.BatchName})
	if err != nil {
		return nil, err
	}
	for env, entries := range byEnv {
		for i := range entries {
			ref, _ := promotion.ParseBranch(entries[i].PR.Branch)
			out[env] = append(out[env], &batchPull{cachedPull: entries[i], ref: ref})
		}
	}
	return out, nil
}

// refreshOpen reads the open ones again, as readDetail does, and inspects what their
// heads move. The case is the pipeline's own.
func (rs batchPulls) refreshOpen(ctx context.Context, o *Gatherer, c *Evaluation, fresh bool) error {
	r := c.Snapshot.Repo
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for _, ri := range rs[env.Name] {
			if ri.PR.State != forge.Open || ri.PR.Author != r.BotLogin {
				continue
			}
			d, err := o.readDetail(ctx, r, &ri.cachedPull, !ri.ref.Revert, fresh)
			if err != nil {
				return err
			}
			ri.PR, ri.detail = d.pr, d
		}
	}
	for i := range c.Facts.Envs { // all are read: which are merged matters to the reverts
		env := &c.Facts.Envs[i]
		for _, ri := range rs[env.Name] {
			if ri.PR.State != forge.Open || ri.PR.Author != r.BotLogin || env.Tip == "" {
				continue
			}
			if err := o.inspectBatchPull(ctx, c, env, rs[env.Name], ri); err != nil {
				return fmt.Errorf("look at #%d: %w", ri.PR.Number, err)
			}
		}
	}
	return nil
}

// findMembers are the passengers of a ride: of an open one as its head has it, of a
// merged one as its commit did it, of a revert those of what it takes back, of
// any other as its head or else its body says.
func (o *Gatherer) findMembers(ctx context.Context, c *Evaluation, all []*batchPull, ri *batchPull) ([]promotion.Member, error) {
	if ri.membersKnown {
		return ri.members, nil
	}
	var err error
	if ri.ref.Revert {
		if of := o.findReverted(ctx, c, all, ri); of != nil {
			ri.members = of.members
		} else {
			ri.members = markedMembers(ri.PR.Body)
		}
	}
	for _, commit := range []string{ri.PR.MergeCommit, ri.PR.Head} {
		if len(ri.members) > 0 || commit == "" {
			continue
		}
		info, ierr := c.Snapshot.Repo.Mirror.Commit(ctx, commit)
		if ierr != nil || len(info.Parents) == 0 {
			continue // gone, or not fetched: the body may tell
		}
		base := info.Parents[0]
		if commit == ri.PR.Head {
			base = o.headBase(ctx, c, ri.ref.Environment, commit, base)
		}
		if ri.members, err = o.changedMembers(ctx, c.Snapshot.Repo, c.Pipeline, ri.ref.Environment, base, commit, ri.ref.Revert); err != nil {
			return nil, err
		}
	}
	if len(ri.members) == 0 {
		ri.members = markedMembers(ri.PR.Body)
	}
	ri.membersKnown = true
	return ri.members, nil
}

// headBase is the commit of an environment's branch that a head was made on; parent
// where that can't be told. The forge's own button brings a branch up to date with
// a merge, whose first parent is ours.
func (o *Gatherer) headBase(ctx context.Context, c *Evaluation, environment, head, parent string) string {
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		if env.Name != environment || env.Tip == "" {
			continue
		}
		if base, why, err := o.findBase(ctx, c, env, head); err == nil && why == "" {
			return base
		}
	}
	return parent
}

// findReverted is the merged ride that a revert takes back: the newest before it
// of which the identity is in its branch's name; nil when none is known.
func (o *Gatherer) findReverted(ctx context.Context, c *Evaluation, all []*batchPull, revert *batchPull) *batchPull {
	for _, ri := range all {
		if ri.ref.Revert || ri.PR.State != forge.Merged || ri.PR.Author != c.Snapshot.Repo.BotLogin || ri.PR.MergeCommit == "" || ri.PR.Number > revert.PR.Number {
			continue
		}
		members, err := o.findMembers(ctx, c, all, ri)
		if err == nil && len(members) > 0 && wording.Short(promotion.BatchID(members)) == revert.ref.Short {
			return ri
		}
	}
	return nil
}

// inspectBatchPull describes an open pull request of several components of ours and whether
// its head is what we would compose.
func (o *Gatherer) inspectBatchPull(ctx context.Context, c *Evaluation, env *promotion.Env, all []*batchPull, ri *batchPull) error {
	r, pr := c.Snapshot.Repo, &ri.PR
	p := &promotion.Pull{Number: pr.Number, URL: pr.URL, Head: pr.Head, CreatedAt: pr.CreatedAt, UpdatedAt: pr.UpdatedAt,
		Held: pr.HasLabel(promotion.LabelHold), Batch: true, Mergeable: promotion.MergeState(pr.Mergeable), MergeNote: pr.MergeReason}
	if pr.Base != env.Branch {
		p.MarkModified(fmt.Sprintf("somebody changed its base to %s; change it back, or close the pull request", pr.Base))
	}
	if err := o.ensureCommit(ctx, r, pr.Head); err != nil {
		return err
	}
	base, why, err := o.findBase(ctx, c, env, pr.Head)
	if err != nil {
		return err
	}
	if ri.ref.Revert {
		if p.Members, err = o.findMembers(ctx, c, all, ri); err != nil {
			return err
		}
		if why == "" {
			why, err = o.inspectBatchRevert(ctx, c, env, all, ri, p, base)
		}
	} else if why == "" {
		why, err = o.inspectBatchHead(ctx, c, env, p, base)
	}
	if err != nil {
		return err
	}
	if why != "" || p.HeadState == promotion.HeadModified {
		p.Members = addDeclaredMembers(p.Members, pr.Body)
	}
	p.Release, p.Name = promotion.BatchID(p.Members), joinMemberNames(p.Members)
	if ri.ref.Revert {
		p.Release = cmp.Or(p.Release, ri.ref.Short)
	} else {
		p.DeclaredRelease = declaredRelease(readMarker(pr.Body))
	}
	if why != "" && p.HeadState != promotion.HeadModified {
		p.MarkModified(fmt.Sprintf("#%d is not what Liftlock composed: %s; nothing is done with it until /liftlock retry", pr.Number, why))
	}
	if pr.Mergeable == forge.MergeableDirty {
		p.Stale = true
	}
	edits := c.HeadEdits[pr.Number]
	o.recordHead(r, p, base, len(edits) > 0)
	if p.HeadState != promotion.HeadModified && !p.Stale && len(edits) > 0 {
		why, err := o.WhyNotIsolated(ctx, c.withMembers(p.Members), env.Name, env.Tip, edits)
		switch {
		case err == nil:
			p.MarkReach(promotion.ReachCrossEnvironment, why)
		case ctx.Err() != nil:
			return err
		default:
			p.MarkReach(promotion.ReachUnknown, "which targets it would change can't be told: "+err.Error())
		}
	}
	if why := o.refusedMergeReason(r, &ri.cachedPull); why != "" {
		p.Mergeable, p.MergeNote = promotion.MergeState(forge.MergeableBlocked), why
	}
	if !ri.ref.Revert {
		if p.Review, err = o.approvalFacts(ctx, r, p.Head, ri.detail, base); err != nil {
			return fmt.Errorf("look at its approvals: %w", err)
		}
	}
	ri.pull, ri.members, ri.membersKnown = p, p.Members, true
	c.OpenPulls[pr.Number], c.HeadBases[pr.Number] = pr, base
	return nil
}

// inspectBatchHead compares a head with what composing all that it moves on its
// base gives.
func (o *Gatherer) inspectBatchHead(ctx context.Context, c *Evaluation, env *promotion.Env, p *promotion.Pull, base string) (string, error) {
	r := c.Snapshot.Repo
	list, err := o.findReleaseChanges(ctx, r, c.Pipeline, env.Name, base, p.Head)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		rel, err := o.readRelease(r, p.Head, c.Pipeline, c.Pipeline.Units[m.component].Envs[env.Name])
		if err != nil {
			return fmt.Sprintf("the release of %s can't be read: %v", m.component, err), nil
		}
		known := c.rememberRelease(rel)
		p.Members = append(p.Members, promotion.Member{Component: m.component, Release: known.ID, Name: known.Name})
	}
	edits, refused := o.composeMembers(ctx, c, env.Name, base, p.Members)
	for _, q := range p.Members {
		if why := refused[q.Component]; why != "" {
			return fmt.Sprintf("the release of %s can't be composed: %s", q.Component, why), nil
		}
	}
	return o.compareHead(ctx, c, env, p, base, edits)
}

// inspectBatchRevert compares a revert's head with what restoring all that its
// promotion moved on its base gives.
func (o *Gatherer) inspectBatchRevert(ctx context.Context, c *Evaluation, env *promotion.Env, all []*batchPull, ri *batchPull, p *promotion.Pull, base string) (string, error) {
	of := o.findReverted(ctx, c, all, ri)
	if of == nil {
		return "the promotion that it takes back is not known", nil
	}
	c.RevertedPulls[p.Number] = &of.PR
	for i := range p.Members {
		q := &p.Members[i]
		at := c.envAt(env.Name, q.Component)
		if at == nil {
			continue // the body names one that is gone
		}
		if rel, err := o.readRelease(c.Snapshot.Repo, of.PR.MergeCommit, c.Pipeline, at); err == nil {
			q.Name = c.rememberRelease(rel).Name
		}
	}
	edits, err := o.composeRevert(ctx, c, c.memberOverlays(env.Name, p.Members), of.PR.MergeCommit, base)
	if err != nil {
		p.Diverged = true
		return "", nil //nolint:nilerr // said through Diverged: a person decides
	}
	return o.compareHead(ctx, c, env, p, base, edits)
}

// composeMembers composes the releases of several components on a commit, one
// after the other. refused says why a component's own part can't be made.
func (o *Gatherer) composeMembers(ctx context.Context, c *Evaluation, env, base string, members []promotion.Member) (edits []fieldedit.Edit, refused map[string]string) {
	m := c.Snapshot.Repo.Mirror
	tree := m.Tree(base)
	refused = map[string]string{}
	edited := map[string]bool{}
	for _, p := range members {
		at := c.envAt(env, p.Component)
		if at == nil {
			refused[p.Component] = ErrNoUnit.Error()
			continue
		}
		if why := c.whyUnknown(p.Release); why != "" {
			refused[p.Component] = why
			continue
		}
		part, err := fieldedit.Compose(tree, at.Overlay(c.Pipeline.Pipeline), c.ReleaseContents[p.Release], wholeFileReader(ctx, m, base))
		if err == nil && slices.ContainsFunc(part, func(e fieldedit.Edit) bool { return edited[e.File] }) {
			part, err = fieldedit.Compose(fieldedit.Apply(tree, edits), at.Overlay(c.Pipeline.Pipeline), c.ReleaseContents[p.Release], wholeFileReader(ctx, m, base))
		}
		if err != nil {
			refused[p.Component] = err.Error()
			continue
		}
		for _, e := range part {
			edited[e.File] = true
			for _, ch := range e.Changes {
				c.fieldOwners[e.File+"|"+ch.Path] = p.Component
			}
		}
		edits = fieldedit.JoinEdits(edits, part)
	}
	return edits, refused
}

// addDeclaredMembers adds those whom a body names to the passengers of a head that isn't
// ours: what we put there counts for them too.
func addDeclaredMembers(members []promotion.Member, body string) []promotion.Member {
	out := slices.Clone(members)
	for _, p := range markedMembers(body) {
		if _, known := promotion.FindMember(out, p.Component); !known {
			out = append(out, p)
		}
	}
	return out
}

// viewFor is an open ride as one component sees it; nil when the component is none
// of its passengers.
func (ri *batchPull) viewFor(component string) *promotion.Pull {
	if ri.pull == nil {
		return nil
	}
	in, is := promotion.FindMember(ri.pull.Members, component)
	if !is {
		return nil
	}
	p := *ri.pull
	declared, _ := promotion.FindMember(markedMembers(ri.PR.Body), component)
	p.Release, p.Name, p.DeclaredRelease = in.Release, in.Name, declaredRelease(declared.Release, 0)
	return &p
}

// cachedPulls are the rides of an environment as the book has them.
func (rs batchPulls) cachedPulls(env string) []cachedPull {
	out := make([]cachedPull, 0, len(rs[env]))
	for _, ri := range rs[env] {
		out = append(out, ri.cachedPull)
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].PR.Number > out[b].PR.Number })
	return out
}
