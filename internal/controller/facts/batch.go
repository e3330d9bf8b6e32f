package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Batch is the facts of all components of a pipeline that travel together, with
// what acting on them needs.
type Batch struct {
	Unit  promotion.Unit // stands for all of them
	Cases []*Case        // a component's each, sorted by name

	all      *Case // what belongs to the pull requests of several
	together map[string]map[string]promotion.BatchComposition
}

// Batch gathers everything about a pipeline's components. With fresh, open pull
// requests are read from the forge even when nothing was heard of them.
func (o *Observer) Batch(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*Batch, error) {
	p := s.Pipeline(u.Pipeline)
	if p == nil {
		return nil, fmt.Errorf("%s: %w", UnitName(u), ErrNoUnit)
	}
	if err := o.ensureBook(ctx, s.Repo); err != nil {
		return nil, err
	}
	b, err := o.gather(ctx, s, p, fresh)
	if errors.Is(err, errReadAgain) {
		b, err = o.gather(ctx, s, p, true)
	}
	return b, err
}

func (o *Observer) gather(ctx context.Context, s *Snapshot, p *PipelineAt, fresh bool) (*Batch, error) {
	all, rs, err := o.shared(ctx, s, p, fresh)
	if err != nil {
		return nil, err
	}
	b := &Batch{Unit: all.Facts.Unit, all: all, together: map[string]map[string]promotion.BatchComposition{}}
	for _, component := range slices.Sorted(maps.Keys(p.Units)) {
		c, err := o.facts(ctx, b.all, rs, p.Units[component], fresh)
		if err != nil {
			return nil, err
		}
		b.Cases = append(b.Cases, c)
		maps.Copy(b.all.Contents, c.Contents)
	}
	b.agree()
	return b, o.leftTogether(ctx, b)
}

// Facts are what DecideBatch judges.
func (b *Batch) Facts() promotion.BatchFacts {
	f := promotion.BatchFacts{Compositions: b.together}
	for _, c := range b.Cases {
		f.Components = append(f.Components, c.Facts)
	}
	return f
}

// agree makes of what the components know of a shared pull request what all know:
// it is sound when each says so, and its authors are everybody's.
func (b *Batch) agree() {
	for i := range b.all.Facts.Envs {
		var members []*promotion.Pull
		unsound, authorsErr := "", ""
		var authors []string
		for _, c := range b.Cases {
			if p := c.Facts.Envs[i].Open; p != nil && len(p.Members) > 0 {
				members = append(members, p)
				unsound, authorsErr = firstOf(unsound, p.HeadModified), firstOf(authorsErr, p.Review.AuthorsErr)
				authors = append(authors, p.Review.Authors...)
			}
		}
		slices.Sort(authors)
		authors = slices.Compact(authors)
		for _, p := range members {
			p.HeadModified, p.Review.AuthorsErr, p.Review.Authors = unsound, authorsErr, authors
		}
		for _, c := range b.Cases {
			if t := c.Facts.Envs[i].BatchPull; t != nil && unsound != "" {
				with := *t
				with.HeadModified = unsound
				c.Facts.Envs[i].BatchPull = &with
			}
		}
	}
}

// leftTogether looks at the branches of several components that have no open
// pull request, as leftover does at a component's.
func (o *Observer) leftTogether(ctx context.Context, b *Batch) error {
	c := b.all
	m := c.Snapshot.Repo.Mirror
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		branch := promotion.Branch(b.Unit.Pipeline, env.Name, promotion.BatchName)
		head, ok, err := m.Head(ctx, branch)
		if err != nil {
			return err
		}
		rides := c.rides[env.Name]
		known := slices.ContainsFunc(rides, func(ri *ride) bool {
			return ri.PR.Branch == branch && (ri.PR.Head == head && ri.PR.Author == c.Snapshot.Repo.Me || ri.PR.State == forge.Open)
		})
		if !ok || known || env.Source() || env.Tip == "" {
			continue
		}
		why, info, err := o.inspectLeftover(ctx, c, env, head)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		for _, member := range b.Cases {
			member.Facts.Envs[i].Unmanaged = fmt.Sprintf("the branch %s exists with a commit by %s that is not Liftlock's (%s); delete or rename it", branch, info.Author.Name, why)
		}
	}
	return nil
}

func (o *Observer) inspectLeftover(ctx context.Context, c *Case, env *promotion.Env, head string) (why string, info *git.CommitInfo, err error) {
	m := c.Snapshot.Repo.Mirror
	if info, err = m.Commit(ctx, head); err != nil {
		return "", nil, err
	}
	base, why, err := o.baseOf(ctx, c, env, head)
	if err != nil {
		return "", nil, err
	}
	if why == "" && info.Committer != m.Committer() {
		why = "Liftlock did not commit it"
	}
	if why == "" {
		why, err = o.inspectTogether(ctx, c, env, &promotion.Pull{Head: head}, base)
		delete(c.Edits, 0)
	}
	return why, info, err
}

// AnswerTogether gathers what moving several releases at once changes.
func (o *Observer) AnswerTogether(ctx context.Context, b *Batch, l promotion.FactRequest) error {
	c, env := b.all, b.env(l.Environment)
	if env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, ErrNoUnit)
	}
	id := promotion.BatchID(l.Members)
	out := promotion.BatchComposition{Tip: env.Tip}
	edits, refused := o.composeTogether(ctx, c, env.Name, env.Tip, l.Members)
	out.RefusedByMember = refused
	if len(refused) == 0 {
		var err error
		if out.Refused, err = o.Outside(ctx, c.with(l.Members), env.Name, env.Tip, edits); err != nil {
			return err
		}
		if out.Refused != "" {
			if out.RefusedByMember, err = o.blameTogether(ctx, c, env, l.Members); err != nil {
				return err
			}
		}
	}
	c.Composed[ComposedKey(env.Name, id)] = edits
	if b.together[env.Name] == nil {
		b.together[env.Name] = map[string]promotion.BatchComposition{}
	}
	b.together[env.Name][id] = out
	return nil
}

// blameTogether finds the components whose own part reaches a target that
// doesn't come along.
func (o *Observer) blameTogether(ctx context.Context, c *Case, env *promotion.Env, passengers []promotion.Member) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range passengers {
		part, refused := o.composeTogether(ctx, c, env.Name, env.Tip, []promotion.Member{p})
		why := refused[p.Component]
		if why == "" && len(part) > 0 {
			var err error
			if why, err = o.Outside(ctx, c.with(passengers), env.Name, env.Tip, part); err != nil {
				return nil, err
			}
		}
		if why != "" {
			out[p.Component] = why
		}
	}
	return out, nil
}

func (b *Batch) env(name string) *promotion.Env {
	for i := range b.all.Facts.Envs {
		if b.all.Facts.Envs[i].Name == name {
			return &b.all.Facts.Envs[i]
		}
	}
	return nil
}

// Case finds a component's; nil when there is none.
func (b *Batch) Case(component string) (*Case, int) {
	for i, c := range b.Cases {
		if c.Facts.Unit.Component == component {
			return c, i
		}
	}
	return nil, -1
}

// Rides are the numbers of the open pull requests of several components into an
// environment.
func (b *Batch) Rides(env string) (open *promotion.Pull, undos []*promotion.Pull) {
	for _, ri := range b.all.rides[env] {
		switch {
		case ri.pull == nil:
		case ri.ref.Revert:
			undos = append(undos, ri.pull)
		default:
			open = ri.pull
		}
	}
	return open, undos
}

// Shared is the case of what several components do together in an environment,
// with the decision as it is for all of them. number is the pull
// request that it is about, 0 for one that is not open yet; passengers are whom it
// moves, of which those that are there become the case's members.
func (b *Batch) Shared(d *promotion.BatchDecision, env string, number int, passengers []promotion.Member) (*Case, *promotion.Decision) {
	c := *b.all.with(passengers)
	c.Restored = map[string][]fieldedit.Edit{}
	c.Facts.Envs = slices.Clone(b.all.Facts.Envs)
	facts := b.Facts().Components
	for i := range c.Facts.Envs {
		e := &c.Facts.Envs[i]
		if e.Name != env {
			continue
		}
		e.Release, e.Landed = promotion.Sure(promotion.Release{}), promotion.Sure(promotion.Landed{})
		for _, ri := range b.all.rides[env] {
			if ri.pull == nil || ri.PR.Number != number {
				continue
			}
			if p := b.agreed(i, ri); ri.ref.Revert {
				e.Revert = p
			} else {
				e.Open = p
			}
		}
	}
	for _, p := range passengers {
		m, i := b.Case(p.Component)
		if m == nil {
			continue
		}
		c.Members = append(c.Members, Member{Passenger: p, Case: m, Decision: &d.Components[i]})
		if edits := m.Restored[env]; edits != nil && m.landedBy(env, number) {
			c.Restored[env] = edits
		}
	}
	return &c, &promotion.Decision{Actions: d.Actions, Next: d.Next, Envs: []promotion.EnvState{d.SharedState(facts, env, number)}}
}

// agreed is a ride's pull request with what its passengers found out about it.
func (b *Batch) agreed(env int, ri *ride) *promotion.Pull {
	p := *ri.pull
	for _, c := range b.Cases {
		if v := c.Facts.Envs[env].Open; v != nil && v.Number == p.Number {
			p.HeadModified = firstOf(p.HeadModified, v.HeadModified)
		}
	}
	return &p
}

// Environments are the pipeline's, topologically sorted.
func (b *Batch) Environments() []string {
	out := make([]string, 0, len(b.all.Facts.Envs))
	for i := range b.all.Facts.Envs {
		out = append(out, b.all.Facts.Envs[i].Name)
	}
	return out
}

// TakenBackBy is the promotion of several components that a merged revert took
// back; 0 when it isn't known.
func (b *Batch) TakenBackBy(env string, revert int) int {
	of := 0
	for _, c := range b.Cases {
		for i := range c.Facts.Envs {
			if e := &c.Facts.Envs[i]; e.Name == env {
				if p := slices.IndexFunc(e.PastPulls, func(p promotion.PastPull) bool { return p.Number == revert }); p >= 0 {
					of = max(of, undoes(e, revert, e.PastPulls[p].Release))
				}
			}
		}
	}
	return of
}

// Own is the case of what belongs to the pull requests of several components.
func (b *Batch) Own() *Case { return b.all }

// Ride is a pull request of several components: the environment that it is
// about, and whom it moves; nobody when it isn't known.
func (o *Observer) Ride(ctx context.Context, b *Batch, number int) (env string, passengers []promotion.Member, err error) {
	for env, all := range b.all.rides {
		for _, ri := range all {
			if ri.PR.Number == number {
				passengers, err := o.who(ctx, b.all, all, ri)
				return env, passengers, err
			}
		}
	}
	return "", nil, nil
}
