package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// OpenPull is an open pull request of ours with what acting on it needs. Its Pull is
// what all of its members know of it.
type OpenPull struct {
	promotion.Pull
	Environment string
	Revert      bool
	PR          *forge.PullRequest
	Base        string             // what its head was made on
	Edits       []fieldedit.Edit   // what its head changes; none where it isn't what we compose
	Reverts     *forge.PullRequest // of a revert: the promotion that it takes back, where that is known
	judgedBy    *readRules         // the forge's rules that its Rules are by; nil: they weren't needed
	HasTurn     bool               // it is this one's turn to be brought up to date with its base and merged
	// the head from which the forge brought it up to date, as it was sent to; empty: it wasn't, or hasn't yet
	UpdatedFrom string
	Proven      map[string]string // of a promotion: the releases that we put there for sure, by component
}

// provenRelease is the release of a component that we put there for sure.
func (o *OpenPull) provenRelease(component string) promotion.Known[string] {
	release := o.Proven[component]
	return promotion.Known[string]{Value: release, OK: release != ""}
}

// IsProven says that we put all there for sure that a promotion's head moves.
func (o *OpenPull) IsProven() bool {
	return len(o.Members) > 0 &&
		!slices.ContainsFunc(o.Members, func(m promotion.Member) bool { return o.Proven[m.Component] != m.Release })
}

// viewOf is the pull request as one component sees it; nil when it is no member.
func (o *OpenPull) viewOf(component string) *promotion.Pull {
	m, is := promotion.FindMember(o.Members, component)
	if !is {
		return nil
	}
	v := o.Pull
	if o.Batch {
		v.Release, v.Name, v.DeclaredRelease = m.Release, m.Name, o.provenRelease(component)
	}
	return &v
}

// notComposed says why nothing is done with a pull request.
func notComposed(number int, why string) string {
	return fmt.Sprintf("#%d is not what Liftlock composed: %s; nothing is done with it until /liftlock retry", number, why)
}

// gatherOpenPulls reads the open pull requests of ours into an environment again, as
// far as something was heard of them, and inspects what their heads move.
func (ga *Gatherer) gatherOpenPulls(ctx context.Context, ev *Evaluation, env *promotion.Env, fresh bool) error {
	r := ev.Snapshot.Repo
	var open []*pullRecord
	for _, component := range slices.Sorted(maps.Keys(ev.pulls)) {
		for _, p := range ev.pulls[component][env.Name] {
			if !p.isOpen() || !r.HasOpened(&p.PR) || !p.batch && ev.EnvAt(env.Name, component) == nil {
				continue
			}
			d, unread, err := ga.PullCache.readDetail(ctx, r, &p.Pull, fresh)
			if err != nil {
				return err
			}
			p.PR, p.mergeUnread = d.pr, unread
			reviews, err := ga.wantsReviews(ctx, ev, env, p)
			if err != nil {
				return err
			}
			stopped := isStopped(&d.pr)
			if p.detail, err = ga.PullCache.completeDetail(ctx, r, d, reviews || stopped,
				stopped || !p.ref.Revert && people.RequiresChecks(env)); err != nil {
				return err
			}
			open = append(open, p)
		}
	}
	for _, p := range open { // all are read: which are merged matters to the reverts
		if !p.isOpen() {
			continue
		}
		described, err := ga.describeOpenPull(ctx, ev, env, p)
		if err != nil {
			return fmt.Errorf("look at #%d: %w", p.PR.Number, err)
		}
		ev.OpenPulls[p.PR.Number] = described
	}
	return nil
}

// wantsReviews says whether who reviewed a pull request matters: to a gate, or because an approved
// promotion keeps its place before something newer. With neither a gate nor anything newer upstream
// no reviewer matters.
func (ga *Gatherer) wantsReviews(ctx context.Context, ev *Evaluation, env *promotion.Env, p *pullRecord) (bool, error) {
	if p.ref.Revert || !p.isOpen() {
		return false, nil
	}
	if p.batch || slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Approvals != nil }) {
		return true, nil
	}
	if err := ga.ensureCommit(ctx, ev.Snapshot.Repo, p.PR.Head); err != nil {
		return false, err
	}
	c, _ := ev.Component(p.ref.Component)
	rel, err := ga.Releases.ReadRelease(ev.Snapshot.Repo, p.PR.Head, ev.Pipeline, ev.EnvAt(env.Name, p.ref.Component))
	if err != nil || c == nil {
		return true, nil // it is somebody's own doing, which the head's inspection tells
	}
	id := ev.RememberRelease(rel).ID
	return slices.ContainsFunc(env.Spec.After, func(name string) bool {
		u := c.Env(name)
		if u == nil || !u.Release.OK || u.Release.Value.ID != id {
			return true
		}
		return len(u.History) > 0 && u.History[0].Release != id
	}), nil
}

// PullHolds are the holds that commands set on a pull request.
var PullHolds = record.Declare[record.Pull, []promotion.Holding](record.Declaration{
	Name: "pull-holds", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The holds that commands set on the pull request. One that can't be read holds without an end.",
})

// ReadPullHolds are the holds that commands set on a pull request, also those that are over; none
// when there are none. The label shows them, and by it a hold is found again without the store. But
// anybody who may write can remove a label, and the command that lifts a hold needs more. A row
// that can't be understood holds all the same, and has no end.
func ReadPullHolds(ctx context.Context, s record.Reader, repo string, number int) ([]promotion.Holding, error) {
	held, found, err := PullHolds.Find(ctx, s, record.OfPull(repo, number))
	switch {
	case err != nil || !found:
		return nil, err
	case len(held.Value) == 0:
		return []promotion.Holding{{}}, nil
	}
	return held.Value, nil
}

// describeOpenPull describes an open pull request of ours and whether its head is still
// what we would compose.
func (ga *Gatherer) describeOpenPull(ctx context.Context, ev *Evaluation, env *promotion.Env, r *pullRecord) (*OpenPull, error) {
	repo, pr := ev.Snapshot.Repo, &r.PR
	p := &OpenPull{Environment: env.Name, Revert: r.ref.Revert, PR: pr, Pull: promotion.Pull{Number: pr.Number, URL: pr.URL, Head: pr.Head,
		HeadSince: r.HeadSince, CreatedAt: pr.CreatedAt, UpdatedAt: pr.UpdatedAt,
		Held: pr.HasLabel(promotion.LabelHold), Draft: pr.Draft, Batch: r.batch, MergeUnread: r.mergeUnread}}
	holds, err := ReadPullHolds(ctx, ga.opts.Store, repo.ID, pr.Number)
	if err != nil {
		return nil, err
	}
	// One that a command set holds also while its label is off.
	hold, held := promotion.FindStrongest(promotion.ListActive(holds, ga.opts.Now()))
	p.Held, p.HeldUntil, p.HeldBy, p.HoldReason = p.Held || held, hold.Until, hold.By, hold.Reason
	if p.JoinedQueueAt, err = readJoinedQueue(ctx, ga.opts.Store, repo.ID, p.Number, p.Head); err != nil {
		return nil, err
	}
	p.Queued = isQueued(&r.Pull, p.JoinedQueueAt)
	if pr.Base != env.Branch {
		p.MarkModified(fmt.Sprintf("somebody changed its base to %s; change it back, or close the pull request", pr.Base))
	}
	if err := ga.ensureCommit(ctx, repo, pr.Head); err != nil {
		return nil, err
	}
	why, err := ga.inspectHead(ctx, ev, env, r, p)
	if err != nil {
		return nil, err
	}
	if !p.Revert {
		if p.Proven, err = ga.provenReleases(ctx, repo, r); err != nil {
			return nil, err
		}
	}
	if p.Batch && (why != "" || p.HeadState == promotion.HeadModified) {
		p.Members = addDeclaredMembers(p.Members, pr.Body)
	}
	p.identify(r)
	r.members, r.membersKnown = p.Members, true
	if why != "" {
		p.MarkModified(notComposed(p.Number, why))
	}
	if p.AwaitsTurn, err = ga.awaitsTurn(ctx, ev, pr); err != nil {
		return nil, err
	}
	if !p.MergeUnread {
		if err := ga.describeMergeability(ctx, ev, env, p, r); err != nil {
			return nil, err
		}
	}
	if err := ga.inspectReach(ctx, ev, env, p); err != nil {
		return nil, err
	}
	if err := ga.addUpdateTurn(ctx, repo, p); err != nil {
		return nil, err
	}
	if !p.Revert {
		period, err := ga.Reviews.ReadApprovalPeriod(ctx, repo, pr.Branch, &p.Pull, p.Proven != nil)
		if err != nil {
			return nil, err
		}
		if p.Review, err = ga.Reviews.ApprovalFacts(ctx, repo, p.Head, p.Base, &r.detail.reviews, period, ev.Fresh); err != nil {
			return nil, fmt.Errorf("look at its approvals: %w", err)
		}
		people.AddChecks(&p.Review, p.Head, &r.detail.checks)
		if p.Review.ReviewRequests, err = people.ReadReviewRequests(ctx, ga.opts.Store, repo.ID, p.Number); err != nil {
			return nil, err
		}
		people.AddOwners(ctx, repo, env, &p.Pull, p.Base)
		if err := ga.Teams.AddTeams(ctx, repo, env, &p.Review, ev.Fresh); err != nil {
			return nil, fmt.Errorf("look at who is in which team: %w", err)
		}
		if err := ga.Reviews.AddSkips(ctx, &ev.Basis, &p.Pull); err != nil {
			return nil, fmt.Errorf("look at which of its gates are skipped: %w", err)
		}
	}
	return p, nil
}

// identify fills in what moves, as a whole.
func (o *OpenPull) identify(r *pullRecord) {
	if !o.Revert && !o.Batch {
		o.DeclaredRelease = o.provenRelease(r.ref.Component)
	}
	switch {
	case o.Batch:
		o.Release, o.Name = promotion.BatchID(o.Members), joinMemberNames(o.Members)
	case len(o.Members) == 1 && o.Members[0].Release != "":
		o.Release, o.Name = o.Members[0].Release, o.Members[0].Name
	case !o.Revert:
		marked, _ := branch.ReadMarker(r.PR.Body) // its head can't be read, so nothing but a person acts on it
		o.Release = cmp.Or(o.DeclaredRelease.Value, marked.Release)
	}
	if o.Revert && o.Release == "" {
		o.Release = r.ref.Short // a restraint that holds whatever somebody pushes there
	}
	if !o.Batch {
		o.Members = []promotion.Member{{Component: r.ref.Component, Release: o.Release, Name: o.Name}}
	}
}

// inspectReach says whether merging a pull request now would change targets outside its
// environment. The branch may have got other readers since, so the effect of the edits on its
// present state counts.
func (ga *Gatherer) inspectReach(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull) error {
	if p.HeadState == promotion.HeadModified || p.Stale || len(p.Edits) == 0 {
		return nil
	}
	why, err := ga.Effects.WhyNotIsolated(ctx, &ev.Basis, effects.ComponentNames(p.Members), env.Name, env.Tip, p.Edits)
	switch {
	case err == nil:
		p.MarkReach(promotion.ReachCrossEnvironment, why)
	case ctx.Err() != nil:
		return err
	default:
		p.MarkReach(promotion.ReachUnknown, "which targets it would change can't be told: "+err.Error())
	}
	return nil
}

// inspectHead says why a pull request's head is not what we compose; "" when it is.
func (ga *Gatherer) inspectHead(ctx context.Context, ev *Evaluation, env *promotion.Env, r *pullRecord, p *OpenPull) (why string,
	err error) {
	if p.Base, why, err = ga.findBase(ctx, ev, env, p.Head); err == nil && why == "" {
		why, err = inspectMerges(ctx, ev, env, p.Base, p.Head)
	}
	if err != nil {
		return "", err
	}
	if p.Revert {
		if p.Members, err = ga.findMembers(ctx, ev, r); err != nil || why != "" {
			return why, err
		}
		return ga.inspectRevert(ctx, ev, env, r, p)
	}
	if why != "" {
		return why, nil
	}
	return ga.inspectPromotion(ctx, ev, env, r.ref.Component, p)
}

// inspectPromotion compares a head with what composing the releases that it moves on
// its base gives.
func (ga *Gatherer) inspectPromotion(ctx context.Context, ev *Evaluation, env *promotion.Env, component string,
	p *OpenPull) (string, error) {
	r := ev.Snapshot.Repo
	moved := []string{component}
	if p.Batch {
		list, err := ga.History.FindReleaseChanges(ctx, r, ev.Pipeline, env.Name, p.Base, p.Head)
		if err != nil {
			return "", err
		}
		moved = nil
		for _, m := range list {
			moved = append(moved, m.Component)
		}
	}
	subject := func(component string) string {
		if p.Batch {
			return "the release of " + component
		}
		return "its release"
	}
	for _, component := range moved {
		rel, err := ga.Releases.ReadRelease(r, p.Head, ev.Pipeline, ev.EnvAt(env.Name, component))
		if err != nil {
			return fmt.Sprintf("%s can't be read: %v", subject(component), err), nil
		}
		known := ev.RememberRelease(rel)
		p.Members = append(p.Members, promotion.Member{Component: component, Release: known.ID, Name: known.Name})
	}
	edits, refused := ga.Effects.ComposeMembers(ctx, &ev.Basis, env.Name, p.Base, p.Members)
	for _, m := range p.Members {
		if why := refused[m.Component]; why != "" {
			return fmt.Sprintf("%s can't be composed: %s", subject(m.Component), why), nil
		}
	}
	return ga.compareHead(ctx, ev, env, p, edits)
}

// inspectRevert compares a revert's head with what restoring what its promotion moved
// on its base gives.
func (ga *Gatherer) inspectRevert(ctx context.Context, ev *Evaluation, env *promotion.Env, r *pullRecord, p *OpenPull) (string, error) {
	of, err := ga.findReverted(ctx, ev, r)
	if err != nil {
		return "", err
	}
	if of == nil {
		return "the promotion that it takes back is not known", nil
	}
	p.Reverts = &of.PR
	p.Members = slices.Clone(of.members)
	for i := range p.Members {
		m := &p.Members[i]
		if at := ev.EnvAt(env.Name, m.Component); at != nil { // the body may name one that is gone
			if rel, err := ga.Releases.ReadRelease(ev.Snapshot.Repo, of.PR.MergeCommit, ev.Pipeline, at); err == nil {
				m.Name = ev.RememberRelease(rel).Name
			}
		}
	}
	edits, err := ga.Effects.ComposeRevert(ctx, &ev.Basis, env.Name, p.Members, of.PR.MergeCommit, p.Base)
	switch {
	case err != nil && ctx.Err() != nil: // a run that is over finds out nothing
		return "", err
	case err != nil:
		p.Diverged = true // a person decides
		return "", nil
	}
	return ga.compareHead(ctx, ev, env, p, edits)
}

// compareHead says how a head differs from its base plus edits, and notes whether the
// edited files moved on since.
func (ga *Gatherer) compareHead(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull,
	edits []fieldedit.Edit) (string, error) {
	m := ev.Snapshot.Repo.Mirror
	paths, err := branch.ChangedPaths(ctx, m, p.Base, p.Head)
	if err != nil {
		return "", err
	}
	if err := fieldedit.VerifyCommit(m.Tree(p.Head), paths, edits); err != nil {
		return err.Error(), nil
	}
	files := effects.EditedFiles(edits)
	same, err := ga.History.IsUnchanged(ctx, ev.Snapshot.Repo, p.Base, env.Tip, func(file string) bool {
		return slices.Contains(files,
			file)
	})
	if err != nil {
		return "", err
	}
	p.Stale, p.Edits = !same, edits
	return "", nil
}

// ensureCommit makes sure that a commit is in the mirror, fetching once if need be.
func (ga *Gatherer) ensureCommit(ctx context.Context, r *branch.Repository, commit string) error {
	ok, err := r.Mirror.Has(ctx, commit)
	if err != nil || ok {
		return err
	}
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return err
	}
	if ok, err = r.Mirror.Has(ctx, commit); err != nil || ok {
		return err
	}
	return fmt.Errorf("%w: commit %s is not among the branches of %s", forge.ErrRetryable, commit, r.ID)
}

// findBase is the commit of the environment's branch that a head was made on. That is its parent,
// or, where the branch was brought up to date with a merge, that merge's other parent. why is set
// when the head doesn't descend from the branch so.
func (ga *Gatherer) findBase(ctx context.Context, ev *Evaluation, env *promotion.Env, head string) (base, why string, err error) {
	m := ev.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, head)
	if err != nil {
		return "", "", err
	}
	for _, parent := range slices.Backward(info.Parents) {
		ok, err := m.IsAncestor(ctx, parent, env.Tip)
		if err != nil {
			return "", "", err
		}
		if ok {
			return parent, "", nil
		}
	}
	return "", fmt.Sprintf("its head %s is not one commit on top of %s", wording.Short(head), env.Branch), nil
}

// addDeclaredMembers adds those whom a body names to the members of a head that isn't
// ours: what we put there counts for them too.
func addDeclaredMembers(members []promotion.Member, body string) []promotion.Member {
	out := slices.Clone(members)
	for _, m := range branch.MarkedMembers(body) {
		if _, known := promotion.FindMember(out, m.Component); !known {
			out = append(out, m)
		}
	}
	return out
}

// joinMemberNames is what people call what moves together.
func joinMemberNames(members []promotion.Member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.String()
	}
	return strings.Join(names, ", ")
}
