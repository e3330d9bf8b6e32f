package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// BatchEvaluation is the facts of all components of a pipeline that travel together, with
// what acting on them needs.
type BatchEvaluation struct {
	Unit        promotion.Unit // stands for all of them
	Evaluations []*Evaluation  // a component's each, sorted by name

	shared       *Evaluation // what belongs to the pull requests of several
	compositions map[string]map[string]promotion.Composition
}

// GatherBatch gathers everything about a pipeline's components. With fresh, open pull
// requests are read from the forge even when nothing was heard of them.
func (o *Gatherer) GatherBatch(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*BatchEvaluation, error) {
	p := s.Pipeline(u.Pipeline)
	if p == nil {
		return nil, fmt.Errorf("%s: %w", wake.UnitName(u), ErrNoUnit)
	}
	if err := o.ensurePullsCached(ctx, s.Repo); err != nil {
		return nil, err
	}
	b, err := o.gatherMembers(ctx, s, p, fresh)
	if errors.Is(err, errRereadPulls) {
		b, err = o.gatherMembers(ctx, s, p, true)
	}
	return b, err
}

func (o *Gatherer) gatherMembers(ctx context.Context, s *Snapshot, p *ResolvedPipeline, fresh bool) (*BatchEvaluation, error) {
	all, rs, err := o.readBatchPulls(ctx, s, p, fresh)
	if err != nil {
		return nil, err
	}
	b := &BatchEvaluation{Unit: all.Facts.Unit, shared: all, compositions: map[string]map[string]promotion.Composition{}}
	for _, component := range slices.Sorted(maps.Keys(p.Units)) {
		c, err := o.gatherUnitFacts(ctx, b.shared, rs, p.Units[component], fresh)
		if err != nil {
			return nil, err
		}
		b.Evaluations = append(b.Evaluations, c)
		maps.Copy(b.shared.ReleaseContents, c.ReleaseContents)
	}
	b.mergeSharedPulls()
	return b, o.inspectBatchLeftovers(ctx, b)
}

// Facts are what DecideBatch judges.
func (b *BatchEvaluation) Facts() promotion.Facts {
	f := promotion.Facts{Compositions: b.compositions}
	for _, c := range b.Evaluations {
		f.Components = append(f.Components, c.Facts)
	}
	return f
}

// mergeSharedPulls makes of what the components know of a shared pull request what all know:
// it is sound when each says so, and its authors are everybody's.
func (b *BatchEvaluation) mergeSharedPulls() {
	for i := range b.shared.Facts.Envs {
		var members []*promotion.Pull
		headModified, authorsErr := "", ""
		var authors []string
		for _, c := range b.Evaluations {
			if p := c.Facts.Envs[i].Open; p != nil && len(p.Members) > 0 {
				members = append(members, p)
				headModified, authorsErr = cmp.Or(headModified, p.HeadReason), cmp.Or(authorsErr, p.Review.AuthorsErr)
				authors = append(authors, p.Review.Authors...)
			}
		}
		slices.Sort(authors)
		authors = slices.Compact(authors)
		for _, p := range members {
			if headModified != "" {
				p.HeadState, p.HeadReason = promotion.HeadModified, headModified
			}
			p.Review.AuthorsErr, p.Review.Authors = authorsErr, authors
		}
		for _, c := range b.Evaluations {
			if t := c.Facts.Envs[i].BatchPull; t != nil && headModified != "" {
				with := *t
				with.HeadState, with.HeadReason = promotion.HeadModified, headModified
				c.Facts.Envs[i].BatchPull = &with
			}
		}
	}
}

// inspectBatchLeftovers looks at the branches of several components that have no open
// pull request, as leftover does at a component's.
func (o *Gatherer) inspectBatchLeftovers(ctx context.Context, b *BatchEvaluation) error {
	c := b.shared
	m := c.Snapshot.Repo.Mirror
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		branch := promotion.Branch(b.Unit.Pipeline, env.Name, promotion.BatchName)
		head, ok, err := m.Head(ctx, branch)
		if err != nil {
			return err
		}
		pulls := c.batchPulls[env.Name]
		known := slices.ContainsFunc(pulls, func(ri *batchPull) bool {
			return ri.PR.Branch == branch && (ri.PR.Head == head && ri.PR.Author == c.Snapshot.Repo.BotLogin || ri.PR.State == forge.Open)
		})
		if !ok || known || env.Source() || env.Tip == "" {
			continue
		}
		why, info, err := o.inspectLeftoverHead(ctx, c, env, head)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		for _, member := range b.Evaluations {
			member.Facts.Envs[i].MarkUnmanaged(fmt.Sprintf("the branch %s exists with a commit by %s that is not Liftlock's (%s); delete or rename it", branch, info.Author.Name, why))
		}
	}
	return nil
}

func (o *Gatherer) inspectLeftoverHead(ctx context.Context, c *Evaluation, env *promotion.Env, head string) (why string, info *git.CommitInfo, err error) {
	m := c.Snapshot.Repo.Mirror
	if info, err = m.Commit(ctx, head); err != nil {
		return "", nil, err
	}
	base, why, err := o.findBase(ctx, c, env, head)
	if err != nil {
		return "", nil, err
	}
	if why == "" && info.Committer != m.Committer() {
		why = "Liftlock did not commit it"
	}
	if why == "" {
		why, err = o.inspectBatchHead(ctx, c, env, &promotion.Pull{Head: head}, base)
		delete(c.HeadEdits, 0)
	}
	return why, info, err
}

// AnswerBatchRequest gathers what moving several releases at once changes.
func (o *Gatherer) AnswerBatchRequest(ctx context.Context, b *BatchEvaluation, l promotion.FactRequest) error {
	c, env := b.shared, b.findEnv(l.Environment)
	if env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, ErrNoUnit)
	}
	id := promotion.BatchID(l.Members)
	out := promotion.Composition{Tip: env.Tip}
	edits, refused := o.composeMembers(ctx, c, env.Name, env.Tip, l.Members)
	out.RefusedByMember = refused
	if len(refused) == 0 {
		why, err := o.WhyNotIsolated(ctx, c.withMembers(l.Members), env.Name, env.Tip, edits)
		if err != nil {
			return err
		}
		if out.Refuse(why); out.State == promotion.EditRefused {
			if out.RefusedByMember, err = o.blameMembers(ctx, c, env, l.Members); err != nil {
				return err
			}
		}
	}
	c.ComposedEdits[CompositionKey(env.Name, id)] = edits
	if b.compositions[env.Name] == nil {
		b.compositions[env.Name] = map[string]promotion.Composition{}
	}
	b.compositions[env.Name][id] = out
	return nil
}

// blameMembers finds the components whose own part reaches a target that
// doesn't come along.
func (o *Gatherer) blameMembers(ctx context.Context, c *Evaluation, env *promotion.Env, members []promotion.Member) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range members {
		part, refused := o.composeMembers(ctx, c, env.Name, env.Tip, []promotion.Member{p})
		why := refused[p.Component]
		if why == "" && len(part) > 0 {
			var err error
			if why, err = o.WhyNotIsolated(ctx, c.withMembers(members), env.Name, env.Tip, part); err != nil {
				return nil, err
			}
		}
		if why != "" {
			out[p.Component] = why
		}
	}
	return out, nil
}

func (b *BatchEvaluation) findEnv(name string) *promotion.Env {
	for i := range b.shared.Facts.Envs {
		if b.shared.Facts.Envs[i].Name == name {
			return &b.shared.Facts.Envs[i]
		}
	}
	return nil
}

// EvaluationOf finds a component's; nil when there is none.
func (b *BatchEvaluation) EvaluationOf(component string) (*Evaluation, int) {
	for i, c := range b.Evaluations {
		if c.Facts.Unit.Component == component {
			return c, i
		}
	}
	return nil, -1
}

// OpenPulls are the numbers of the open pull requests of several components into an
// environment.
func (b *BatchEvaluation) OpenPulls(env string) (open *promotion.Pull, reverts []*promotion.Pull) {
	for _, ri := range b.shared.batchPulls[env] {
		switch {
		case ri.pull == nil:
		case ri.ref.Revert:
			reverts = append(reverts, ri.pull)
		default:
			open = ri.pull
		}
	}
	return open, reverts
}

// SharedEvaluation is the case of what several components do together in an environment,
// with the decision as it is for all of them. number is the pull
// request that it is about, 0 for one that is not open yet; passengers are whom it
// moves, of which those that are there become the case's members.
func (b *BatchEvaluation) SharedEvaluation(d *promotion.Decision, env string, number int, members []promotion.Member) (*Evaluation, *promotion.ComponentDecision) {
	c := *b.shared.withMembers(members)
	c.RestoredEdits = map[string][]fieldedit.Edit{}
	c.Facts.Envs = slices.Clone(b.shared.Facts.Envs)
	for i := range c.Facts.Envs {
		e := &c.Facts.Envs[i]
		if e.Name != env {
			continue
		}
		e.Release, e.Landed = promotion.Sure(promotion.Release{}), promotion.Sure(promotion.Landed{})
		for _, ri := range b.shared.batchPulls[env] {
			if ri.pull == nil || ri.PR.Number != number {
				continue
			}
			if p := b.agreedPull(i, ri); ri.ref.Revert {
				e.Revert = p
			} else {
				e.Open = p
			}
		}
	}
	for _, p := range members {
		m, i := b.EvaluationOf(p.Component)
		if m == nil {
			continue
		}
		c.Members = append(c.Members, MemberEvaluation{Member: p, Evaluation: m, Decision: &d.Components[i]})
		if edits := m.RestoredEdits[env]; edits != nil && m.landedByPull(env, number) {
			c.RestoredEdits[env] = edits
		}
	}
	return &c, &promotion.ComponentDecision{Actions: d.Actions}
}

// agreedPull is a ride's pull request with what its passengers found out about it.
func (b *BatchEvaluation) agreedPull(env int, ri *batchPull) *promotion.Pull {
	p := *ri.pull
	for _, c := range b.Evaluations {
		if v := c.Facts.Envs[env].Open; v != nil && v.Number == p.Number {
			p.MarkModified(v.HeadReason)
		}
	}
	return &p
}

// Environments are the pipeline's, topologically sorted.
func (b *BatchEvaluation) Environments() []string {
	out := make([]string, 0, len(b.shared.Facts.Envs))
	for i := range b.shared.Facts.Envs {
		out = append(out, b.shared.Facts.Envs[i].Name)
	}
	return out
}

// RevertedBy is the promotion of several components that a merged revert took
// back; 0 when it isn't known.
func (b *BatchEvaluation) RevertedBy(env string, revert int) int {
	of := 0
	for _, c := range b.Evaluations {
		for i := range c.Facts.Envs {
			if e := &c.Facts.Envs[i]; e.Name == env {
				if p := slices.IndexFunc(e.PastPulls, func(p promotion.PastPull) bool { return p.Number == revert }); p >= 0 {
					of = max(of, findRevertedPull(e, revert, e.PastPulls[p].Release))
				}
			}
		}
	}
	return of
}

// PullEvaluation is the case of what belongs to the pull requests of several components.
func (b *BatchEvaluation) PullEvaluation() *Evaluation { return b.shared }

// PullMembers is a pull request of several components: the environment that it is
// about, and whom it moves; nobody when it isn't known.
func (o *Gatherer) PullMembers(ctx context.Context, b *BatchEvaluation, number int) (env string, members []promotion.Member, err error) {
	for env, all := range b.shared.batchPulls {
		for _, ri := range all {
			if ri.PR.Number == number {
				members, err := o.findMembers(ctx, b.shared, all, ri)
				return env, members, err
			}
		}
	}
	return "", nil, nil
}
