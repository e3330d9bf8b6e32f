package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// pullRecord is a pull request on one of our branches as the store has it; an open
// one of ours as the forge has it.
type pullRecord struct {
	stored.Pull
	row          store.Pull
	ref          promotion.BranchRef
	batch        bool // on the branch of all components of its pipeline
	members      []promotion.Member
	membersKnown bool
	detail       *pullDetail
	mergeUnread  bool             // as promotion.Pull's
	moved        []store.PastPull // of one that is closed: what it did for each component
	movedKnown   bool
	unsure       bool // its commits may still be fetched
	landing      landing
}

func (p *pullRecord) isOpen() bool { return p.PR.State == forge.Open }

// isOurs says that a pull request is the server's own. For one that isn't open any more its signed
// mark says so too, where the server's former account isn't known. It proves that we put that head
// on that branch, and no more. An open one's author can change it.
func (p *pullRecord) isOurs(r *branch.Repository) bool {
	if r.HasOpened(&p.PR) {
		return true
	}
	_, signed := r.Marks.Signed(r.ID, p.PR.Branch, []string{p.PR.Head}, p.PR.Body)
	return signed && !p.isOpen()
}

// pullIndex has the pull requests that concern a unit by component, BatchName for
// those of all, and environment, newest first.
type pullIndex map[string]map[string][]*pullRecord

// readPulls reads from the store those that are open, those of which what they moved
// was not worked out yet, and what was merged last. A pipeline whose components move
// alone may have a component with the name BatchName; then there is no pull request
// of all.
func (ga *Gatherer) readPulls(ctx context.Context, ev *Evaluation) (pullIndex, error) {
	out := pullIndex{}
	branches := componentsOf(ev)
	if ev.hasBatches() {
		branches = append(branches, promotion.BatchName)
	}
	for _, component := range branches {
		out[component] = map[string][]*pullRecord{}
	}
	rows, err := ga.readUnsettled(ctx, ev, branches)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if _, err := ga.PullCache.addPull(ev, out, row, nil); err != nil {
			return nil, err
		}
	}
	for _, c := range ev.Components {
		if err := ga.readNewestPulls(ctx, c, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readUnsettled reads the pull requests on branches that name one of the components which are open, or of which what
// they moved isn't worked out.
func (ga *Gatherer) readUnsettled(ctx context.Context, ev *Evaluation, components []string) ([]store.Pull, error) {
	of := make([]store.PullsByRules, len(components))
	for i, component := range components {
		of[i] = store.PullsByRules{Component: component, Rules: ev.rulesOf(component)}
	}
	return ga.PullCache.store.UnsettledPulls(ctx, ev.Unit.Repo, ev.Unit.Pipeline, of...)
}

// hasBatches says that there may be pull requests of all components.
func (ev *Evaluation) hasBatches() bool { return ev.Pipeline.Units[promotion.BatchName] == nil }

// addPull adds a pull request in its place, unless it is there; nil where it is on no
// branch that concerns the unit. settled is the same where it was read before.
func (pg *pullGatherer) addPull(ev *Evaluation, x pullIndex, row store.Pull, settled *pullRecord) (*pullRecord, error) {
	ref, ok := promotion.ParseBranch(row.Branch)
	byEnv := x[ref.Component]
	if !ok || byEnv == nil || ref.Pipeline != ev.Unit.Pipeline {
		return nil, nil
	}
	i, found := slices.BinarySearchFunc(byEnv[ref.Environment], row.Number,
		func(p *pullRecord, number int) int { return number - p.PR.Number })
	if found {
		return byEnv[ref.Environment][i], nil
	}
	if settled == nil {
		e, err := pg.decodePull(row)
		if err != nil {
			return nil, err
		}
		settled = &pullRecord{row: row, Pull: *e}
	}
	p := &pullRecord{Pull: settled.Pull, row: settled.row, ref: ref, batch: ev.hasBatches() && ref.Component == promotion.BatchName}
	if i == len(byEnv[ref.Environment]) {
		byEnv[ref.Environment] = append(byEnv[ref.Environment], p)
	} else { // anew: somebody may be going through the list
		byEnv[ref.Environment] = slices.Concat(byEnv[ref.Environment][:i], []*pullRecord{p}, byEnv[ref.Environment][i:])
	}
	return p, nil
}

// of are the pull requests that a component is, was or may be in: its own, then
// those of all.
func (p pullIndex) of(c *ComponentEvaluation, env string) []*pullRecord {
	out := p[c.Facts.Unit.Component][env]
	if batch := p[promotion.BatchName][env]; c.Facts.Unit.Component != promotion.BatchName {
		out = slices.Concat(out, batch)
	}
	return out
}

// memberPulls are the pull requests that a component is or was in, as far as its facts
// have them.
func (c *ComponentEvaluation) memberPulls(env *promotion.Env) []*pullRecord {
	in := map[int]bool{}
	for _, p := range []*promotion.Pull{env.Open, env.Revert, env.WrongKind} {
		if p != nil {
			in[p.Number] = true
		}
	}
	for i := range env.PastPulls {
		in[env.PastPulls[i].Number] = true
	}
	return slices.DeleteFunc(c.Evaluation.pulls.of(c, env.Name), func(p *pullRecord) bool { return p.batch && !in[p.PR.Number] })
}

// assignPulls fills in what an environment of a component has of pull requests.
func (ga *Gatherer) assignPulls(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, at *branch.ResolvedEnv) error {
	for _, p := range c.Evaluation.pulls.of(c, env.Name) {
		switch {
		case !p.isOurs(c.Snapshot.Repo):
			if p.isOpen() && !p.ref.Revert && !c.Evaluation.isWrongKind(p) {
				env.MarkUnmanaged(p.unmanagedReason())
			}
		case p.isOpen():
			if err := ga.assignOpenPull(ctx, c, env, c.Evaluation.OpenPulls[p.PR.Number]); err != nil {
				return err
			}
		default:
			moved, err := ga.findMoved(ctx, c.Evaluation, at, p)
			if err != nil {
				return err
			}
			addPastPulls(env, c.Facts.Unit.Component, moved)
		}
	}
	return nil
}

// isWrongKind says that a pull request is of the other kind than spec.batch says by
// now: its branch isn't used any more.
func (ev *Evaluation) isWrongKind(p *pullRecord) bool {
	return p.batch != ev.Pipeline.Spec.BatchesByEnvironment()
}

func (p *pullRecord) unmanagedReason() string {
	return fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", p.PR.Number, p.PR.Author,
		p.PR.Branch)
}

// markUnmanagedReverts fills in another account's work on the branch that a revert of the landed
// release would use.
func (c *ComponentEvaluation) markUnmanagedReverts(env *promotion.Env) {
	for _, p := range c.Evaluation.pulls.of(c, env.Name) {
		short := wording.Short(env.Release.Value.ID)
		if p.batch {
			short = wording.Short(promotion.BatchID(env.Landed.Value.Members))
		}
		if p.isOurs(c.Snapshot.Repo) || !p.isOpen() || !p.ref.Revert {
			continue
		}
		if short != "" && strings.EqualFold(p.ref.Short, short) {
			env.MarkRevertUnmanaged(p.unmanagedReason())
		}
	}
}

// assignOpenPull fills in an open pull request of ours: with the component, or
// without it.
func (ga *Gatherer) assignOpenPull(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *OpenPull) error {
	if open == nil {
		return nil
	}
	v := open.viewOf(c.Facts.Unit.Component)
	batches := c.Pipeline.Spec.BatchesByEnvironment()
	switch {
	case v == nil && !open.Revert && batches:
		env.BatchPull = &open.Pull
	case v == nil:
	case open.Revert:
		if v.Batch && !batches {
			v.Batch, v.Members = false, nil
			v.MarkModified(fmt.Sprintf("#%d takes several components back at once, and spec.batch is component by now; merge it or close "+
				"it by hand", v.Number))
		}
		env.Revert = v
	default:
		if v.HeadState != promotion.HeadModified &&
			v.DeclaredRelease.Value != v.Release && !promotion.VerifiedInAll(c.Facts.Envs, env.Spec.After, v.Release) {
			// Well made, but not by us: that we put a release there is the proof that
			// it was verified upstream, and that is not this release.
			another := "it carries another release than the one that Liftlock put there"
			if v.Batch {
				another = fmt.Sprintf("it carries another release of %s than the one that Liftlock put there", c.Facts.Unit.Component)
			}
			v.MarkModified(notComposed(v.Number, another))
			v.Reach, v.ReachReason = "", ""
		}
		if err := ga.Authors.AuthorFacts(ctx, &c.ComponentBasis, env, v); err != nil {
			return fmt.Errorf("look at who made what #%d moves: %w", v.Number, err)
		}
		if err := ga.releaseFacts(ctx, c, env, open, v); err != nil {
			return fmt.Errorf("look at what #%d moves: %w", v.Number, err)
		}
		var err error
		if v.Incomplete, err = ga.Authors.WhyIncomplete(ctx, &c.ComponentBasis, env, v.Release); err != nil {
			return fmt.Errorf("look at what #%d leaves out: %w", v.Number, err)
		}
		if err = ga.findIneffective(ctx, c, env, open, v); err != nil {
			return fmt.Errorf("look at what #%d does to the rendered manifests: %w", v.Number, err)
		}
		if err := ga.releaseCheckFacts(ctx, c, env, v); err != nil {
			return fmt.Errorf("look at the checks of where #%d's release landed before: %w", v.Number, err)
		}
		if err := ga.metricFacts(ctx, c, env, v); err != nil {
			return fmt.Errorf("look at the metrics that #%d waits for: %w", v.Number, err)
		}
		if err := ga.endpointFacts(ctx, c, env, v); err != nil {
			return fmt.Errorf("look at the endpoints that #%d waits for: %w", v.Number, err)
		}
		if v.Batch == batches {
			env.Open = v
		} else {
			v.Batch, v.Members = false, nil
			env.WrongKind = v
		}
	}
	return nil
}

// joinViews makes of what the components know of a shared pull request what all know:
// it is ours when each says so, and its authors are everybody's.
func (ev *Evaluation) joinViews(i int) {
	for _, p := range ev.OpenPulls {
		if p.Environment != ev.envs[i].Name || p.Revert {
			continue
		}
		var views []*promotion.Pull
		var authors []policies.Account
		authorsErr := ""
		for _, c := range ev.Components {
			for _, v := range []*promotion.Pull{c.Facts.Envs[i].Open, c.Facts.Envs[i].WrongKind} {
				if v != nil && v.Number == p.Number {
					views = append(views, v)
					authors = append(authors, v.Review.Authors...)
					p.MarkModified(v.HeadReason)
					authorsErr = cmp.Or(authorsErr, v.Review.AuthorsErr)
				}
			}
		}
		slices.SortFunc(authors, policies.Account.Compare)
		authors = slices.Compact(authors)
		for _, v := range views {
			v.MarkModified(p.HeadReason)
			v.Review.AuthorsErr, v.Review.Authors = authorsErr, authors
		}
	}
}

// landedMembers are the members of the pull request of several by which an
// environment came to what it carries; none when it was no such.
func (ga *Gatherer) landedMembers(ctx context.Context, c *ComponentEvaluation, env string, number int) ([]promotion.Member, error) {
	for _, p := range c.Evaluation.pulls[promotion.BatchName][env] {
		if p.batch && number != 0 && p.PR.Number == number {
			return ga.findMembers(ctx, c.Evaluation, p)
		}
	}
	return nil, nil
}

// PullMembers are the environment that one of our pull requests, open or not, is about and the
// components that it moves; none when that isn't known.
func (ga *Gatherer) PullMembers(ctx context.Context, ev *Evaluation, number int) (env string, members []promotion.Member, err error) {
	for _, byEnv := range ev.pulls {
		for env, pulls := range byEnv {
			for _, p := range pulls {
				if p.PR.Number == number {
					members, err = ga.findMembers(ctx, ev, p)
					return env, members, err
				}
			}
		}
	}
	row, ok, err := ga.PullCache.store.Pull(ctx, ev.Snapshot.Repo.ID, number)
	if err != nil || !ok {
		return "", nil, err
	}
	p, err := ga.PullCache.addPull(ev, ev.pulls, row, nil)
	if err != nil || p == nil {
		return "", nil, err
	}
	members, err = ga.findMembers(ctx, ev, p)
	return p.ref.Environment, members, err
}

// findMembers are the components that a pull request moves: its own. For one of several they are
// its head's while it is open, and its commit's when it is merged. A revert has those of its
// promotion, and any other its head's or else its body's.
func (ga *Gatherer) findMembers(ctx context.Context, ev *Evaluation, p *pullRecord) ([]promotion.Member, error) {
	if p.membersKnown {
		return p.members, nil
	}
	if !p.batch {
		return []promotion.Member{{Component: p.ref.Component}}, nil
	}
	if p.ref.Revert {
		of, err := ga.findReverted(ctx, ev, p)
		if err != nil {
			return nil, err
		}
		if of != nil {
			p.members = of.members
		} else {
			p.members = branch.MarkedMembers(p.PR.Body)
		}
	}
	for _, commit := range []string{p.PR.MergeCommit, p.PR.Head} {
		if len(p.members) > 0 || commit == "" {
			continue
		}
		info, err := ev.Snapshot.Repo.Mirror.Commit(ctx, commit)
		if p.unsure = errors.Is(err, git.ErrUnknownCommit) && p.PR.State == forge.Closed && !p.ref.Revert &&
			p.headMayCome(ev.Now); p.unsure && ga.fetchHead(ctx, ev, p) {
			p.unsure = false
			info, err = ev.Snapshot.Repo.Mirror.Commit(ctx, commit)
		}
		if errors.Is(err, git.ErrUnknownCommit) || err == nil && len(info.Parents) == 0 {
			continue // gone, or not fetched: the body may tell
		}
		if err != nil {
			return nil, err
		}
		base := info.Parents[0]
		if commit == p.PR.Head {
			// The forge's own button brings a branch up to date with a merge, whose first
			// parent is ours.
			if env := ev.Environment(p.ref.Environment); env != nil && env.Tip != "" {
				onto, why, err := ga.findBase(ctx, ev, env, commit)
				if err != nil && !errors.Is(err, git.ErrUnknownCommit) {
					return nil, err
				}
				if err == nil && why == "" {
					base = onto
				}
			}
		}
		if p.members, err = ga.History.ChangedMembers(ctx, ev.Snapshot.Repo, ev.Pipeline, p.ref.Environment, base, commit,
			p.ref.Revert); err != nil {
			return nil, err
		}
	}
	if len(p.members) == 0 {
		p.members = branch.MarkedMembers(p.PR.Body)
	}
	p.membersKnown = true
	return p.members, nil
}

// findReverted is the merged promotion that a revert takes back: the newest before it
// of which the identity is in its branch's name; nil when none is known.
func (ga *Gatherer) findReverted(ctx context.Context, ev *Evaluation, revert *pullRecord) (*pullRecord, error) {
	for _, p := range slices.Backward(ev.pulls[revert.ref.Component][revert.ref.Environment]) {
		if is, err := ga.isReverted(ctx, ev, revert, p); err != nil || is {
			return p, err
		}
	}
	for below, tries := revert.PR.Number, 0; tries < maxRevertedTries; tries++ {
		number, ok, err := ga.PullCache.store.PullThatMoved(ctx, ev.Snapshot.Repo.ID, ev.Unit.Pipeline, revert.ref.Component,
			revert.ref.Environment, revert.ref.Short, below)
		if err != nil || !ok {
			return nil, err
		}
		row, ok, err := ga.PullCache.store.Pull(ctx, ev.Snapshot.Repo.ID, number)
		if err != nil || !ok {
			return nil, err
		}
		p, err := ga.PullCache.addPull(ev, ev.pulls, row, nil)
		if err != nil {
			return nil, err
		}
		if p != nil {
			if is, err := ga.isReverted(ctx, ev, revert, p); err != nil || is {
				return p, err
			}
		}
		below = number
	}
	return nil, nil
}

// maxRevertedTries bounds how many promotions are compared for the one that a revert undoes. A
// person may merge one that brings nothing any more, as another one brought it.
const maxRevertedTries = 5

// isReverted says that a revert takes a pull request back, which landed what the revert's branch names.
func (ga *Gatherer) isReverted(ctx context.Context, ev *Evaluation, revert, p *pullRecord) (bool, error) {
	if p.ref.Revert || p.PR.Number > revert.PR.Number {
		return false, nil
	}
	if p.PR.State != forge.Merged || p.PR.MergeCommit == "" || !p.isOurs(ev.Snapshot.Repo) {
		return false, nil
	}
	if landed, err := hasLanded(ctx, ev, p); err != nil || !landed {
		return false, err
	}
	id := ""
	if !p.batch {
		id = ga.Releases.ReleaseIDAt(ev.Snapshot.Repo, p.PR.MergeCommit, ev.Pipeline, ev.EnvAt(p.ref.Environment, p.ref.Component))
		p.members, p.membersKnown = []promotion.Member{{Component: p.ref.Component, Release: id}}, true
	} else if members, err := ga.findMembers(ctx, ev, p); err == nil {
		id = promotion.BatchID(members)
	}
	if id == "" || wording.Short(id) != revert.ref.Short {
		return false, nil
	}
	nothing, err := ga.landedNothing(ctx, ev, p)
	return !nothing, err
}

// landedNothing says that all releases that a merged pull request moves were there before it
// landed; where its commit is gone that isn't known.
func (ga *Gatherer) landedNothing(ctx context.Context, ev *Evaluation, p *pullRecord) (bool, error) {
	r := ev.Snapshot.Repo
	info, err := r.Mirror.Commit(ctx, p.PR.MergeCommit)
	if errors.Is(err, git.ErrUnknownCommit) || err == nil && len(info.Parents) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(p.members, func(m promotion.Member) bool {
		at := ev.EnvAt(p.ref.Environment, m.Component)
		return at == nil || ga.Releases.ReleaseIDAt(r, info.Parents[0], ev.Pipeline, at) != m.Release
	}), nil
}

// RevertedPull is the merged promotion that a merged revert took back, with the release
// of one of its components; 0 when it isn't known.
func (ev *Evaluation) RevertedPull(env string, revert int) (of int, release string) {
	for _, c := range ev.Components {
		past := c.Env(env).PastPulls
		if p := slices.IndexFunc(past, func(p promotion.PastPull) bool { return p.Number == revert }); p >= 0 {
			if n := findRevertedPull(c.Env(env), revert, past[p].Release); n > of {
				i := slices.IndexFunc(past, func(p promotion.PastPull) bool { return p.Number == n })
				of, release = n, past[i].Release
			}
		}
	}
	return of, release
}

// Environment finds an environment of the pipeline, with nothing of a component's; nil
// when there is none.
func (ev *Evaluation) Environment(name string) *promotion.Env {
	for i := range ev.envs {
		if ev.envs[i].Name == name {
			return &ev.envs[i]
		}
	}
	return nil
}
