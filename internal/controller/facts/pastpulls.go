package facts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// The effect of a closed pull request is worked out once, from Git, and kept in the store by
// component and release: it is settled. After that a look finds the few that say something about
// the releases at hand by these, however many there are. It is worked out again when there is news
// of the pull request, and when the rules by which a release is read have changed.

const (
	// maxSettledAtOnce bounds how many are settled with one look: writers wait for it.
	maxSettledAtOnce = 1000
	// headComesWithin is how long after a close its head may still be fetched.
	headComesWithin = time.Hour
	// headTriedAfter is how long a head that couldn't be fetched isn't tried again: a look
	// waits for Git's host.
	headTriedAfter = 5 * time.Minute
	// membersSeeWithin is how long the pull requests of all components are left unsettled where
	// each component is evaluated by itself: each has its own record of them.
	membersSeeWithin = 7 * 24 * time.Hour
)

// rulesOf names what the releases of closed pull requests depend on besides Git, by
// the component that their branch names.
func (ev *Evaluation) rulesOf(component string) string {
	known, ok := ev.rules[component]
	if !ok {
		if known = ev.nameRules(component); ev.rules == nil {
			ev.rules = map[string]string{}
		}
		ev.rules[component] = known
	}
	return known
}

func (ev *Evaluation) nameRules(component string) string {
	unit := ev.Pipeline.Units[component]
	if unit == nil {
		return "all " + ev.Pipeline.OverlaysKey()
	}
	h := sha256.New()
	for _, env := range slices.Sorted(maps.Keys(unit.Envs)) {
		fmt.Fprintln(h, env, ev.Pipeline.LocationOf(unit.Envs[env]).Key)
	}
	return "one " + hex.EncodeToString(h.Sum(nil))
}

// pastLocation is where a component's closed pull requests are found in the store.
func (c *ComponentEvaluation) pastLocation() store.PastPlace {
	u := c.Facts.Unit
	at := store.PastPlace{Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Rules: []string{c.Evaluation.rulesOf(u.Component)}}
	if c.Evaluation.hasBatches() {
		at.Rules = append(at.Rules, c.Evaluation.rulesOf(promotion.BatchName))
	}
	return at
}

// readNewestPulls reads the newest closed pull requests of a component in each of its
// environments, of each kind. The last one that was merged is read as the forge has it.
func (ga *Gatherer) readNewestPulls(ctx context.Context, c *ComponentEvaluation, x pullIndex) error {
	names := make([]string, len(c.Evaluation.envs))
	for i := range c.Evaluation.envs {
		names[i] = c.Evaluation.envs[i].Name
	}
	var err error
	u := c.Facts.Unit
	if c.pastVersion, err = ga.PullCache.store.PastPullsVersion(ctx, u.Repo, u.Pipeline, u.Component); err != nil {
		return err
	}
	if c.past, err = ga.PullCache.readPast(ctx, c, newestPulls(), names); err != nil {
		return err
	}
	last := map[string]store.PastPull{}
	for _, p := range c.past {
		if p.Commit != "" && !p.At.Before(last[p.Environment].At) {
			last[p.Environment] = p
		}
	}
	for _, past := range last {
		settled, err := ga.PullCache.readSettled(ctx, past)
		if err != nil {
			return err
		}
		if settled == nil {
			continue // heard of since
		}
		p, err := ga.PullCache.addPull(c.Evaluation, x, settled.row, settled)
		if err != nil {
			return err
		}
		if p != nil {
			p.moved, p.movedKnown = append(p.moved, past), true
		}
	}
	return nil
}

// readSettled reads a settled pull request, from memory where it is the same; nil when
// it isn't settled any more.
func (pg *pullGatherer) readSettled(ctx context.Context, past store.PastPull) (*pullRecord, error) {
	key := fmt.Sprintf("%s#%d", past.Repo, past.Number)
	if known, ok := pg.settled.Get(key); ok && known.row.Version == past.Version && known.row.Rules == past.Rules {
		return known, nil
	}
	row, ok, err := pg.store.Pull(ctx, past.Repo, past.Number)
	if err != nil || !ok || row.Version != past.Version || row.Rules != past.Rules {
		return nil, err
	}
	e, err := pg.decodePull(row)
	if err != nil {
		return nil, err
	}
	known := &pullRecord{row: row, Pull: *e}
	known.row.Data = nil
	pg.settled.Put(key, known)
	return known, nil
}

// addMergedPull adds the pull request that was merged as a commit, if there is one: a
// release may have come by another one than the last.
func (ga *Gatherer) addMergedPull(ctx context.Context, c *ComponentEvaluation, env, commit string) error {
	if commit == "" || slices.ContainsFunc(c.Evaluation.pulls.of(c, env), func(p *pullRecord) bool { return p.PR.MergeCommit == commit }) {
		return nil
	}
	rows, err := ga.PullCache.store.PullsMergedAs(ctx, c.Facts.Unit.Repo, commit)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := ga.PullCache.addPull(c.Evaluation, c.Evaluation.pulls, row, nil); err != nil {
			return err
		}
	}
	return nil
}

// findMoved is the effect of a pull request of ours that is no longer open on each of the
// components that it moved. at is the place of the one that its branch names, nil where it isn't
// there any more.
func (ga *Gatherer) findMoved(ctx context.Context, ev *Evaluation, at *branch.ResolvedEnv, p *pullRecord) ([]store.PastPull, error) {
	if p.movedKnown {
		return p.moved, nil
	}
	pr := &p.PR
	row := store.PastPull{Repo: ev.Unit.Repo, Number: pr.Number, Component: p.ref.Component, Pipeline: p.ref.Pipeline,
		Environment: p.ref.Environment, BranchOf: p.ref.Component,
		At: pr.ClosedAt, Commit: pr.MergeCommit, By: pr.MergedBy, Whole: p.ref.Short}
	if pr.State == forge.Merged {
		row.At = pr.MergedAt
	}
	end, err := ga.findEnd(ctx, ev, p)
	if err != nil {
		return nil, err
	}
	if p.batch {
		members, err := ga.findMembers(ctx, ev, p)
		if err != nil {
			return nil, err
		}
		row.Whole = cmp.Or(row.Whole, wording.Short(promotion.BatchID(members)))
		for _, m := range members {
			row.Component, row.Release, row.Short = m.Component, m.Release, wording.Short(m.Release)
			row.Kind = end.kindOf(p, m.Component, m.Release)
			p.moved = append(p.moved, row)
		}
		p.movedKnown = true
		return p.moved, nil
	}
	row.Release = ga.pastRelease(ctx, ev, at, p)
	row.Short, row.Kind = wording.Short(row.Release), end.kindOf(p, row.Component, row.Release)
	row.Whole = cmp.Or(row.Whole, row.Short)
	p.moved, p.movedKnown = []store.PastPull{row}, true
	return p.moved, nil
}

// pullEnd is how a pull request of ours ended.
type pullEnd struct {
	landed     bool            // it was merged into the environment's branch
	superseded map[string]bool // by component: Liftlock closed it, or a command took back that a person did
	all        bool            // for all components
}

// findEnd finds out how a pull request of ours that isn't open any more ended.
func (ga *Gatherer) findEnd(ctx context.Context, ev *Evaluation, p *pullRecord) (end pullEnd, err error) {
	if end.landed, err = hasLanded(ctx, ev, p); err != nil || end.landed {
		return end, err
	}
	end.superseded, end.all, err = ga.findSuperseded(ctx, ev.Snapshot.Repo, &p.PR)
	return end, err
}

func (pe pullEnd) kindOf(p *pullRecord, component, release string) store.PastKind {
	switch {
	case pe.landed && p.ref.Revert:
		return store.PastRevert
	case pe.landed:
		return store.PastMerged
	case pe.all || pe.superseded[component]:
		return store.PastSuperseded
	case p.PR.State == forge.Merged && p.ref.Revert:
		return store.PastRevertOnOtherBranch
	case p.PR.State == forge.Merged:
		return store.PastSuperseded
	case p.ref.Revert:
		return store.PastRefusedRevert
	case release == "":
		return store.PastRefusedUnknown
	}
	return store.PastRefused
}

// pastRelease is the release that a component's own closed pull request was about: as
// its commits have it, else as its body says and we signed; empty: it isn't known. A head that
// somebody else pushed is fetched, for a while after it was closed.
func (ga *Gatherer) pastRelease(ctx context.Context, ev *Evaluation, at *branch.ResolvedEnv, p *pullRecord) string {
	r := ev.Snapshot.Repo
	if p.ref.Revert {
		if marked, _ := branch.ReadMarker(p.PR.Body); strings.HasPrefix(marked.Release, p.ref.Short) {
			return marked.Release
		}
		return p.ref.Short
	}
	unread := false
	for _, commit := range []string{p.PR.Head, p.PR.MergeCommit} {
		if commit == "" || at == nil {
			continue
		}
		if ok, err := r.Mirror.Has(ctx, commit); err == nil && ok {
			if id := ga.Releases.ReleaseIDAt(r, commit, ev.Pipeline, at); id != "" {
				return id // also of what was squashed, whose head is gone with its branch
			}
		}
		unread = true
	}
	p.unsure = unread && p.headMayCome(ev.Now)
	if marked, ok := r.Marks.Signed(r.ID, p.PR.Branch, []string{p.PR.Head}, p.PR.Body); ok || !p.unsure || p.PR.MergeCommit != "" {
		return marked.Release // any other body may be anybody's: what was closed then stands for every release
	}
	if !ga.fetchHead(ctx, ev, p) {
		return ""
	}
	p.unsure = false
	return ga.Releases.ReleaseIDAt(r, p.PR.Head, ev.Pipeline, at)
}

// headMayCome says that the head of a pull request that is no longer open may still be fetched.
func (p *pullRecord) headMayCome(now time.Time) bool {
	return now.Sub(p.row.ClosedAt) < headComesWithin
}

// fetchHead fetches the head of a pull request that was closed. Another account's push is on no
// branch any more, and in no mirror that wasn't there at the time. false: it can't be had now.
func (ga *Gatherer) fetchHead(ctx context.Context, ev *Evaluation, p *pullRecord) bool {
	key := ev.Unit.Repo + " " + p.PR.Head
	if at, failed := ga.unfetchedHeads.Get(key); failed && ev.Now.Sub(at) < headTriedAfter {
		return false
	}
	if err := ev.Snapshot.Repo.Mirror.FetchRef(ctx, p.PR.Ref, p.PR.Head); err != nil {
		if ctx.Err() == nil {
			ga.unfetchedHeads.Put(key, ev.Now)
		}
		return false
	}
	return true
}

// addPastPulls adds to an environment's facts what closed pull requests did for a
// component in it, each once.
func addPastPulls(env *promotion.Env, component string, moved []store.PastPull) {
	for _, m := range moved {
		if m.Component != component || m.Environment != env.Name ||
			slices.ContainsFunc(env.PastPulls, func(p promotion.PastPull) bool { return p.Number == m.Number }) {
			continue
		}
		env.PastPulls = append(env.PastPulls, promotion.PastPull{Number: m.Number, Release: m.Release, At: m.At, Commit: m.Commit, By: m.By,
			Revert: m.Kind == store.PastRevert || m.Kind == store.PastRefusedRevert || m.Kind == store.PastRevertOnOtherBranch,
			Merged: m.Kind == store.PastMerged || m.Kind == store.PastRevert, Superseded: m.Kind == store.PastSuperseded,
			OnOtherBranch: m.Kind == store.PastRevertOnOtherBranch})
	}
}

// completePastPulls adds the closed pull requests that restrain any of the releases that
// the facts name, of however long ago, and what lifted that.
func (ga *Gatherer) completePastPulls(ctx context.Context, ev *Evaluation) error {
	for _, c := range ev.Components {
		if err := ga.readRestraints(ctx, c); err != nil {
			return err
		}
		for i := range c.Facts.Envs {
			env := &c.Facts.Envs[i]
			addPastPulls(env, c.Facts.Unit.Component, c.past)
			slices.SortStableFunc(env.PastPulls, func(a, b promotion.PastPull) int {
				return cmp.Or(b.At.Compare(a.At), b.Number-a.Number)
			})
			if err := ga.markUnrequested(ctx, ev, env, c.Facts.Unit.Component); err != nil {
				return err
			}
		}
	}
	if err := ga.findOrphansMoved(ctx, ev); err != nil {
		return err
	}
	return ga.checkPullsCurrent(ctx, ev, func(store.Pull) bool { return true })
}

// CheckClosedPulls reads what changed on the forge. forge.ErrConflict: a pull request is
// closed that an evaluation doesn't know.
func (ga *Gatherer) CheckClosedPulls(ctx context.Context, ev *Evaluation) error {
	if err := ga.PullCache.RefreshPullRequests(ctx, ev.Snapshot.Repo); err != nil {
		return err
	}
	return ga.checkPullsCurrent(ctx, ev, func(p store.Pull) bool { return p.State != string(forge.Open) })
}

// readRestraints reads those of one component.
func (ga *Gatherer) readRestraints(ctx context.Context, c *ComponentEvaluation) error {
	var known []store.PastPull
	for _, byEnv := range c.Evaluation.pulls {
		for _, pulls := range byEnv {
			for _, p := range pulls {
				known = append(known, p.moved...)
			}
		}
	}
	var restraints []store.PastPull
	if slices.ContainsFunc(c.past, func(p store.PastPull) bool { return p.Kind != store.PastMerged }) { // else there are none
		var err error
		if restraints, err = ga.PullCache.readPast(ctx, c, restrainingPulls(), c.releasesAtHand(known)); err != nil {
			return err
		}
	}
	lifted := map[string]bool{}
	for _, p := range slices.Concat(known, restraints) {
		if p.Kind != store.PastMerged && p.Short != "" {
			lifted[p.Short] = true
		}
	}
	for i := range c.Facts.Envs {
		if p := c.Facts.Envs[i].Revert; p != nil {
			lifted[wording.Short(p.Release)] = true
		}
	}
	merged, err := ga.PullCache.readPast(ctx, c, mergedPulls(), slices.Sorted(maps.Keys(lifted)))
	c.past = slices.Concat(c.past, restraints, merged)
	return err
}

// releasesAtHand are the releases, in short, that a decision about a component may be about. Among
// refused ones of unknown release only the newest counts.
func (c *ComponentEvaluation) releasesAtHand(known []store.PastPull) []string {
	at := map[string]bool{}
	for _, p := range known {
		at[p.Short] = true
	}
	for _, p := range c.Facts.PendingCommands {
		at[wording.Short(p.Release)] = true
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		at[wording.Short(env.Release.Value.ID)] = true
		for k := range env.History {
			at[wording.Short(env.History[k].Release)] = true
		}
		for _, p := range []*promotion.Pull{env.Open, env.Revert, env.WrongKind} {
			if p != nil {
				at[wording.Short(p.Release)] = true
			}
		}
	}
	delete(at, "")
	return slices.Sorted(maps.Keys(at))
}

// Orphans are the open pull requests of ours that name a component of the unit, or all of them, and
// an environment that the pipeline, or the component, no longer has.
func (ev *Evaluation) Orphans() []forge.PullRequest {
	var out []forge.PullRequest
	for component, byEnv := range ev.pulls {
		for env, pulls := range byEnv {
			if ev.isLookedAfter(component, env) {
				continue
			}
			for _, p := range pulls {
				if p.isOpen() && p.isOurs(ev.Snapshot.Repo) {
					out = append(out, p.PR)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b forge.PullRequest) int { return a.Number - b.Number })
	return out
}

// isLookedAfter says that Liftlock manages the pull requests on branches of a component in an
// environment.
func (ev *Evaluation) isLookedAfter(component, env string) bool {
	if ev.Pipeline.Spec.EnvironmentByName(env) == nil {
		return false // its targets may be there all the same
	}
	return ev.EnvAt(env, component) != nil || ev.hasBatches() && component == promotion.BatchName
}

// findOrphansMoved works out what is left in environments that a component, or the
// pipeline, doesn't have any more.
func (ga *Gatherer) findOrphansMoved(ctx context.Context, ev *Evaluation) error {
	for component, byEnv := range ev.pulls {
		for env, pulls := range byEnv {
			if ev.isLookedAfter(component, env) {
				continue
			}
			for _, p := range pulls {
				if p.isOpen() || !p.isOurs(ev.Snapshot.Repo) {
					continue
				}
				if _, err := ga.findMoved(ctx, ev, nil, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkPullsCurrent makes sure that nothing was heard of a settled pull request between
// the readings, which would be in none of them, among those that matter.
func (ga *Gatherer) checkPullsCurrent(ctx context.Context, ev *Evaluation, matters func(store.Pull) bool) error {
	rows, err := ga.readUnsettled(ctx, ev, slices.Sorted(maps.Keys(ev.pulls)))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if matters(row) && !slices.ContainsFunc(ev.pulls[row.Component][row.Environment],
			func(p *pullRecord) bool { return p.PR.Number == row.Number && p.row.Rules != ev.rulesOf(row.Component) }) {
			return fmt.Errorf("%w: something was heard of #%d", forge.ErrConflict, row.Number)
		}
	}
	return nil
}

// SettlePulls writes down what closed pull requests moved that a component's look worked
// out. It is for the transaction that stores the decision.
func (ga *Gatherer) SettlePulls(ctx context.Context, tx *store.Tx, c *ComponentEvaluation) error {
	settled := 0
	branches := []string{c.Facts.Unit.Component}
	if c.Evaluation.hasBatches() && c == c.Evaluation.Components[len(c.Evaluation.Components)-1] {
		branches = append(branches, promotion.BatchName) // all have their records of them
	}
	for _, component := range branches {
		rules := c.Evaluation.rulesOf(component)
		for _, pulls := range c.Evaluation.pulls[component] {
			for _, p := range pulls {
				if p.row.Rules == rules || !c.Evaluation.maySettle(p) || settled == maxSettledAtOnce {
					continue
				}
				if err := tx.SettlePull(ctx, p.row, rules, p.moved...); err != nil {
					return err
				}
				settled++
			}
		}
	}
	return nil
}

// maySettle says that nothing more is to be found out about a pull request.
func (ev *Evaluation) maySettle(p *pullRecord) bool {
	switch {
	case p.isOpen():
		return false
	case p.batch && !ev.IsBatch() && ev.Now.Sub(p.row.ClosedAt) < membersSeeWithin:
		return false
	case !p.isOurs(ev.Snapshot.Repo):
		return true // nothing of ours
	}
	return p.movedKnown && !p.unsure
}
