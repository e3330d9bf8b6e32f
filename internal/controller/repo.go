package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// runRepo fetches, resolves what the branch says now and wakes the units. It asks to
// run again after the poll interval: with every webhook lost, things only happen later.
func (co *Controller) runRepo(ctx context.Context, r *Repository) (time.Time, error) {
	mark, err := co.fetch(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	next := co.opts.Clock.Now().Add(r.PollInterval)
	if until := s.ValidUntil(); !until.IsZero() && until.Before(next) {
		next = until
	}
	heads, err := r.Mirror.Heads(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	seen, err := co.opts.Gatherer.History.SeenHeads(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	heads = maps.Clone(heads)
	unrestored := co.restoreHolds(ctx, r, heads)
	now := repositoryLook{snapshot: s, heads: relevantHeads(heads, s.BranchHeads())}
	co.recordUnusable(r, s)
	if err := co.wakeMoved(ctx, r, mark, seen, now); err != nil {
		return time.Time{}, errors.Join(err, unrestored)
	}
	// Last, as the forge may refuse it for long: what was pushed doesn't wait for it.
	return next, errors.Join(unrestored, co.setBranchStatus(ctx, r, s))
}

// recordUnusable remembers why the pipeline files can't be used, or are to no use, for who looks
// after the server.
func (co *Controller) recordUnusable(r *Repository, s *branch.Snapshot) {
	co.mu.Lock()
	defer co.mu.Unlock()
	if s.PipelineErr != "" {
		co.pipelineErrs[r.ID] = s.PipelineErr
	} else {
		delete(co.pipelineErrs, r.ID)
	}
	maps.DeleteFunc(co.emptyPipelines, func(id PipelineID, _ string) bool { return id.Repo == r.ID })
	for _, p := range s.Pipelines {
		if why := p.WhyEmpty(); why != "" {
			co.emptyPipelines[PipelineID{r.ID, p.Name()}] = why
		}
	}
}

// wakeMoved wakes the units that a look at a repository concerns, fetched after a mark; seen are
// the heads that the last look saw.
func (co *Controller) wakeMoved(ctx context.Context, r *Repository, mark string, seen map[string]string, now repositoryLook) error {
	s := now.snapshot
	co.apps.setTargets(s, co.opts.Gatherer.ArgoCDs.ArgoCDOf)
	changed := co.targetsChanged(r.ID, s.Generation)
	if seen != nil && maps.Equal(seen, now.heads) && !changed {
		return nil
	}
	co.mu.Lock()
	last, looked := co.lastLooks[r.ID]
	co.mu.Unlock()
	var err error
	keys := urgentKeys{}
	if all := changed || !looked || seen == nil || last.missed(seen, now); all {
		keys[store.Normal], err = co.keysOfAll(ctx, r, s)
	} else {
		keys, err = co.keysOfChanges(ctx, r, seen, last, now)
	}
	if err != nil {
		return err
	}
	if r.Onboard {
		keys.add(store.Normal, wake.ForOnboarding(r.ID))
	}
	if co.opts.Versions != nil && discoveryRules(s) != discoveryRules(last.snapshot) {
		keys.add(store.Normal, wake.ForDiscovery(r.ID))
	}
	left := ""
	err = co.opts.Store.Tx(ctx, "fetched", func(tx *store.Tx) error {
		if !maps.Equal(seen, now.heads) {
			if left, err = co.fresh.leaveMark(ctx, tx, r, mark); err != nil {
				return err
			}
		}
		if err := branch.SeenHeads.Put(ctx, tx, record.Repository(r.ID), now.heads); err != nil {
			return err
		}
		return keys.wake(ctx, tx)
	})
	if err != nil {
		return err
	}
	if left != "" {
		co.fresh.remember(r, left)
	}
	co.mu.Lock()
	defer co.mu.Unlock()
	co.lastLooks[r.ID] = now
	return nil
}

// restoreHolds puts back on the state branch what somebody else took off. Until then that counts all the
// same, and where the branch was deleted nothing is merged (as Gather has it); everything else goes on. heads
// gets where the branch is.
func (co *Controller) restoreHolds(ctx context.Context, r *Repository, heads map[string]string) error {
	head, err := co.opts.Actor.RestoreHolds(ctx, r.Repository)
	if head != "" {
		heads[history.StateBranch] = head
	}
	return err
}

// keysOfAll are the keys of every unit that there is or was, and of the repositories
// whose targets depend on this one.
func (co *Controller) keysOfAll(ctx context.Context, r *Repository, s *branch.Snapshot) ([]wake.Key, error) {
	var keys []wake.Key
	for _, u := range s.AllUnits() {
		keys = append(keys, wake.ForUnit(s.RunsAs(u)))
	}
	known, err := co.opts.Store.Units(ctx, store.UnitFilter{Repo: r.ID})
	if err != nil {
		return nil, err
	}
	for _, row := range known {
		u := promotion.Unit{Repo: row.Repo, Pipeline: row.Pipeline, Component: row.Component}
		if _, at := s.Unit(u); at == nil || s.RunsAs(u) == u {
			keys = append(keys, wake.ForUnit(u)) // one that is gone is forgotten by its run
		}
	}
	for _, other := range co.opts.Gatherer.Targets.Dependents(r.ID) {
		keys = append(keys, wake.ForRepository(other))
	}
	return keys, nil
}

// targetsChanged says that this process has not evaluated a repository's units yet, or not since
// its targets changed without a commit. Its knowledge of them may be out of date.
func (co *Controller) targetsChanged(repo string, generation uint64) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	last, looked := co.seenGenerations[repo]
	co.seenGenerations[repo] = generation
	return !looked || last != generation
}

// brokenPipelines are why pipeline files can't be used, while the tracked branch shows that.
var brokenPipelines = record.Declare[record.Repository, string](record.Declaration{
	Name: "broken-pipeline", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "Why the pipeline file can't be used, while the status of the tracked branch says so.",
})

// setBranchStatus shows a broken pipeline file on the tracked branch's commit, and,
// once it is mended, that it is.
func (co *Controller) setBranchStatus(ctx context.Context, r *Repository, s *branch.Snapshot) error {
	about := record.Repository(r.ID)
	was, err := brokenPipelines.Has(ctx, co.opts.Store, about)
	if err != nil {
		return err
	}
	switch {
	case s.PipelineErr != "":
		if err := co.opts.Actor.SetStatus(ctx, r.Repository, 0, s.Commit, prtext.OtherStatus(s.PipelineErr, true)); err != nil {
			return err
		}
		if err := brokenPipelines.Put(ctx, co.opts.Store, about, s.PipelineErr); err != nil {
			return err
		}
		_, err := co.opts.Store.AddEvents(ctx, store.Event{At: co.opts.Clock.Now(), Repo: r.ID, Kind: event.Broken,
			Message: "the pipeline file is broken: " + s.PipelineErr, IdempotencyKey: "broken|" + r.ID + "|" + s.Commit})
		return err
	case was:
		if err := co.opts.Actor.SetStatus(ctx, r.Repository, 0, s.Commit, prtext.OtherStatus("", true)); err != nil {
			return err
		}
		return brokenPipelines.Drop(ctx, co.opts.Store, about)
	}
	return nil
}

// runSweep looks at everything that is open and everything that moved, through the
// same keys as an event would.
func (co *Controller) runSweep(ctx context.Context, r *Repository) (time.Time, error) {
	next := co.opts.Clock.Now().Add(r.SweepInterval)
	if err := co.opts.Gatherer.PullCache.RefreshPullRequests(ctx, r.Repository); err != nil {
		return time.Time{}, err
	}
	open, err := co.opts.Gatherer.PullCache.OpenPulls(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	var keys []wake.Key
	for _, pr := range open {
		keys = append(keys, wake.ForPull(r.ID, pr.Number))
	}
	units, err := co.unsettledUnits(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	groups, err := co.unservedGroups(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	keys = slices.Concat(keys, units, groups)
	if r.Onboard {
		keys = append(keys, wake.ForOnboarding(r.ID))
	}
	if err := co.maintainMirror(ctx, r); err != nil {
		return time.Time{}, err
	}
	if _, err := co.opts.Store.Prune(ctx, co.opts.Clock.Now().Add(-co.opts.Retention)); err != nil {
		return time.Time{}, err
	}
	return next, co.opts.Store.Tx(ctx, "swept", func(tx *store.Tx) error {
		for i := range open {
			if err := facts.ForgetCommentCount(ctx, tx, r.ID, &open[i]); err != nil {
				return err
			}
		}
		if err := facts.ForgetClosedPulls(ctx, tx, r.ID, open); err != nil {
			return err
		}
		if err := co.forgetUnconfirmed(ctx, tx, r); err != nil {
			return err
		}
		if err := co.forgetClosedHolds(ctx, tx, r); err != nil {
			return err
		}
		return tx.WakeAs(ctx, store.Background, wake.Strings(keys...)...)
	})
}

// maintainEvery is how often a mirror is packed anew.
const maintainEvery = 24 * time.Hour

// maintained is when mirrors were packed last.
var maintained = record.Declare[record.Repository, time.Time](record.Declaration{
	Name: "mirror-maintained", Owner: "controller", Lifetime: record.Lasting,
	Doc: "When the mirror was packed last.",
})

// maintainMirror keeps the mirror fast: once a day, by whichever process is first.
func (co *Controller) maintainMirror(ctx context.Context, r *Repository) error {
	about := record.Repository(r.ID)
	last, ok, err := maintained.Get(ctx, co.opts.Store, about)
	if err != nil {
		return err
	}
	now := co.opts.Clock.Now()
	if ok && now.Sub(last) < maintainEvery {
		return nil
	}
	if err := r.Mirror.Maintain(ctx); err != nil {
		return err
	}
	return maintained.Put(ctx, co.opts.Store, about, now.UTC().Truncate(time.Second))
}

// runPull reads one pull request again, takes the commands in it and wakes its unit.
func (co *Controller) runPull(ctx context.Context, r *Repository, number int) (time.Time, error) {
	if err := co.ensureFresh(ctx, r); err != nil {
		return time.Time{}, err
	}
	before, _, err := co.opts.Store.Pull(ctx, r.ID, number)
	if err != nil {
		return time.Time{}, err
	}
	pr, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, number)
	if isGone(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if err := errors.Join(co.noticeProposal(ctx, r, pr), co.noticeIncoming(ctx, r, pr)); err != nil {
		return time.Time{}, err
	}
	ref, ours := promotion.ParseBranch(pr.Branch)
	if !ours || pr.Fork || !r.HasOpened(pr) {
		if ours && !pr.Fork {
			// A stranger's pull request on a branch named like ours keeps us from opening one.
			u := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}
			if err := co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForUnit(u).String()); err != nil {
				return time.Time{}, err
			}
		}
		again, err := co.checkPull(ctx, r, pr)
		if err != nil {
			return time.Time{}, err
		}
		answerAgain, err := co.answerUserPull(ctx, r, pr)
		return branch.Earliest(again, answerAgain), err
	}
	again, err := co.handleComments(ctx, r, pr, ref)
	if err == nil {
		err = co.announceRest(ctx, r, number)
	}
	if err != nil {
		return time.Time{}, err
	}
	ends, err := co.keepPullHold(ctx, r, number)
	if err != nil {
		return time.Time{}, err
	}
	again = branch.Earliest(again, ends)
	u, urgency := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}, store.Urgent
	isSwept := urgencyOf(ctx) == store.Background && before.State == string(pr.State) && before.Head == pr.Head
	if isSwept || facts.IsLate(pr, co.opts.Clock.Now()) {
		// Its commands, if any, have said how urgent they are; and a sweep has one look for all
		// pull requests of a unit.
		urgency = store.Background
	}
	known, err := co.isMergeOnRecord(ctx, pr, &before)
	if err == nil && !known {
		err = co.opts.Store.WakeAs(ctx, urgency, wake.ForUnit(u).String())
	}
	if err != nil {
		return time.Time{}, err
	}
	if pr.State != forge.Open {
		if err := co.wakeQueued(ctx, r); err != nil {
			return time.Time{}, err
		}
	}
	return again, co.reportOrphan(ctx, r, pr, u, ref.Environment)
}

// isMergeOnRecord says that a pull request of ours is on record as merged. The process that
// recorded it wakes its unit, and only its comments are news from then on. before is what the store
// had of it.
func (co *Controller) isMergeOnRecord(ctx context.Context, pr *forge.PullRequest, before *store.Pull) (bool, error) {
	if pr.State != forge.Merged || before.State != string(forge.Merged) || before.MergeCommit != pr.MergeCommit {
		return false, nil
	}
	records, err := co.opts.Store.Promotions(ctx, store.PromotionFilter{Repo: before.Repo, Pull: pr.Number})
	return len(records) > 0 && !slices.ContainsFunc(records, func(p store.Promotion) bool { return !facts.IsRecordOfMerge(&p) }), err
}

// reportOrphan says on an open pull request of ours that nothing looks after it any
// more: its component, environment or pipeline is gone. It is left to people.
func (co *Controller) reportOrphan(ctx context.Context, r *Repository, pr *forge.PullRequest, u promotion.Unit, env string) error {
	if pr.State != forge.Open {
		return nil
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	p, unit := s.Unit(u)
	if s.PipelineErr != "" {
		return nil
	}
	// An environment that the pipeline doesn't have any more isn't managed. Its targets may be
	// there still, which is a problem then, and no reason not to say so.
	if p != nil && p.Spec.EnvironmentByName(env) != nil {
		// One of several components is looked after by them, or closed.
		if len(p.Problems) > 0 || u.Component == promotion.BatchName || unit != nil && unit.Envs[env] != nil {
			return nil
		}
	}
	return co.opts.Actor.SetStatus(ctx, r.Repository, pr.Number, pr.Head, prtext.Status{State: string(forge.StatusFailure),
		Description: fmt.Sprintf("%s has no %s in %s any more: nothing looks after this pull request; close it", r.Branch,
			u.Component, env)})
}
