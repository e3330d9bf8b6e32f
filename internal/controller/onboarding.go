package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Propose makes the pipeline file that is proposed to a repository. The error is for one that could
// not be made now; that there is nothing to propose is a proposal that says so.
type Propose func(ctx context.Context, q *onboard.Request) (*onboard.Proposal, error)

// refusedDelay is how long nothing is tried after the forge refused a proposal for want of a right, or none
// could be made, while the tracked branch stays where it is: each try may take minutes of a processor.
const refusedDelay = time.Hour

// errNotMade is that the process that makes proposals made none.
var errNotMade = errors.New("no pipeline file could be made")

// onboardingState is how a repository stands to its proposal.
type onboardingState struct {
	State  onboard.State `json:"state"`
	Pull   int           `json:"pull,omitempty"`
	Key    string        `json:"key,omitempty"`    // of what the open pull request was made for
	Commit string        `json:"commit,omitempty"` // of the tracked branch
	Why    string        `json:"why,omitempty"`
	Since  time.Time     `json:"since"`
	// NotBefore is when it is tried again; zero: whenever something happens.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// onboardings are how repositories stand to their proposals.
var onboardings = record.Declare[record.Repository, onboardingState](record.Declaration{
	Name: "onboarding", Owner: "controller", Lifetime: record.Lasting,
	Doc: "The pull request that proposes a pipeline file, or why there is none. Without it the forge's list is read.",
})

// Onboarding is why a repository has no pipeline file although Liftlock proposes one, or is to.
type Onboarding struct {
	State onboard.State
	Pull  int // 0: none
	Why   string
	Since time.Time
}

// Onboardings are how the repositories stand to their proposals of which a person should know something,
// by ID.
func (co *Controller) Onboardings(ctx context.Context) (map[string]Onboarding, error) {
	out := map[string]Onboarding{}
	for _, r := range co.repositories() {
		if !r.Onboard {
			continue
		}
		is, ok, err := onboardings.Get(ctx, co.opts.Store, record.Repository(r.ID))
		if err != nil {
			return nil, err
		}
		if ok {
			out[r.ID] = Onboarding{State: is.State, Pull: is.Pull, Why: is.Why, Since: is.Since}
		}
	}
	return out, nil
}

// runOnboarding opens the pull request that proposes a pipeline file to a repository without one, or
// keeps it up to date.
func (co *Controller) runOnboarding(ctx context.Context, r *Repository) (time.Time, error) {
	if !r.Onboard || co.opts.Propose == nil {
		return time.Time{}, nil
	}
	if err := co.ensureFresh(ctx, r); err != nil {
		return time.Time{}, err
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	was, _, err := onboardings.Get(ctx, co.opts.Store, record.Repository(r.ID))
	if err != nil {
		return time.Time{}, err
	}
	isSettled := was.State == onboard.Settled && !s.NoPipelines
	if was.State.IsFinal() || isSettled {
		return time.Time{}, nil
	}
	if was.NotBefore.After(co.opts.Clock.Now()) && was.Commit == s.Commit {
		return was.NotBefore, nil
	}
	is, err := co.proposeOrUpdate(ctx, r, s, was)
	if errors.Is(err, git.ErrLeaseLost) {
		if _, ferr := r.Mirror.Fetch(ctx); ferr != nil { // else the next look would see the same
			return time.Time{}, errors.Join(err, ferr)
		}
	}
	if isRefusal(err) {
		is = onboardingState{State: onboard.Refused, Pull: was.Pull, Why: err.Error(), NotBefore: co.opts.Clock.Now().Add(refusedDelay)}
		co.opts.Log.Warn("a pipeline file can't be proposed", zap.String("repository", r.ID), zap.Error(err))
		err = nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("propose a pipeline file to %s: %w", r.ID, err)
	}
	is.Commit, is.Since = s.Commit, was.Since
	if is.State != was.State || is.Why != was.Why {
		is.Since = co.opts.Clock.Now()
	}
	return is.NotBefore, co.opts.Store.Tx(ctx, "onboarding", func(tx *store.Tx) error {
		if is.State == onboard.Proposed && is.Key != was.Key {
			// Events of our own account wake nothing, and its head gets the status that every change gets.
			if err := tx.WakeAs(ctx, store.Normal, wake.ForPull(r.ID, is.Pull).String()); err != nil {
				return err
			}
		}
		return onboardings.Put(ctx, tx, record.Repository(r.ID), is)
	})
}

// isRefusal says that a call failed for want of a right, which only a person gives, or no proposal could
// be made, which the same commit leads to again.
func isRefusal(err error) bool {
	for _, kind := range []error{errNotMade, forge.ErrForbidden, forge.ErrUnauthorized, forge.ErrNotInstalled, git.ErrAuth,
		git.ErrRejected} {
		if errors.Is(err, kind) {
			return !forge.IsRetryable(err)
		}
	}
	return false
}

// proposeOrUpdate looks, decides and acts; it gives what is so then.
func (co *Controller) proposeOrUpdate(ctx context.Context, r *Repository, s *branch.Snapshot,
	was onboardingState) (onboardingState, error) {
	pulls, err := r.Forge.PullRequestsByBranch(ctx, r.Name, promotion.OnboardingBranch)
	if err != nil {
		return onboardingState{}, err
	}
	f, err := co.onboardingFacts(ctx, r, s, pulls)
	if err != nil {
		return onboardingState{}, err
	}
	var request *onboard.Request
	if !f.HasPipeline {
		if request, err = co.proposalRequest(ctx, r, s); err != nil {
			return onboardingState{}, err
		}
		if f.Key, err = request.Key(); err != nil {
			return onboardingState{}, err
		}
	}
	if was.State == onboard.Proposed {
		f.ShownKey = was.Key
	}
	d := onboard.Decide(f)
	if d.Action == onboard.Make {
		if was.State == onboard.Nothing && was.Key == f.Key {
			return was, nil
		}
		f.Proposal, err = co.opts.Propose(ctx, request)
		if ctx.Err() != nil {
			return onboardingState{}, err
		}
		if err != nil {
			return onboardingState{}, fmt.Errorf("%w: %w", errNotMade, err)
		}
		d = onboard.Decide(f)
	}
	is := onboardingState{State: d.State, Pull: d.Pull, Why: d.Why, Key: f.Key}
	o := act.Onboarding{Repo: r.Repository, Base: s.Commit, Proposal: f.Proposal, Pull: pullNumbered(pulls, d.Pull)}
	if f.HeadIsOurs {
		o.Head = f.Head
	}
	switch d.Action {
	case onboard.Open:
		is.Pull, err = co.opts.Actor.OpenOnboarding(ctx, &o)
	case onboard.Update:
		err = co.opts.Actor.UpdateOnboarding(ctx, &o)
	case onboard.Mention:
		err = co.opts.Actor.MentionPush(ctx, r.Repository, o.Pull)
	case onboard.Close:
		err = co.opts.Actor.CloseOnboarding(ctx, &o)
	case onboard.Leave:
		if o.Pull != nil && o.Pull.State == forge.Merged && f.HeadIsOurs {
			co.opts.Actor.DeleteOver(ctx, r.Repository, o.Pull)
		}
	}
	return is, err
}

// pullNumbered is a pull request of a list; nil where it hasn't it.
func pullNumbered(pulls []forge.PullRequest, number int) *forge.PullRequest {
	for i := range pulls {
		if pulls[i].Number == number {
			return &pulls[i]
		}
	}
	return nil
}

// onboardingFacts are what is known of a repository's proposal, but for what it would be.
func (co *Controller) onboardingFacts(ctx context.Context, r *Repository, s *branch.Snapshot,
	pulls []forge.PullRequest) (*onboard.Facts, error) {
	f := &onboard.Facts{Branch: r.Branch, HasPipeline: !s.NoPipelines}
	for i := range pulls {
		pr := &pulls[i]
		if pr.Fork {
			continue
		}
		f.Pulls = append(f.Pulls, onboard.Pull{Number: pr.Number, Open: pr.State == forge.Open, Merged: pr.State == forge.Merged,
			Ours: r.HasProposed(pr), Retired: pr.State == forge.Closed && r.Marks.IsClosingMarked(r.ID, pr), Author: pr.Author,
			Base: pr.Base})
	}
	head, ok, err := r.Mirror.Head(ctx, promotion.OnboardingBranch)
	if err != nil || !ok {
		return f, err
	}
	f.Head = head
	f.HeadIsOurs, err = co.opts.Gatherer.History.IsOwnProposal(ctx, r.Repository, head)
	return f, err
}

// proposalRequest is what a pipeline file would be proposed for now.
func (co *Controller) proposalRequest(ctx context.Context, r *Repository, s *branch.Snapshot) (*onboard.Request, error) {
	heads, err := r.Mirror.Heads(ctx, "")
	if err != nil {
		return nil, err
	}
	known, sets, err := co.opts.Gatherer.Targets.ProposalInput(ctx, r.Repository)
	if err != nil {
		return nil, err
	}
	q := &onboard.Request{Repository: r.ID, Branch: r.Branch, Commit: s.Commit, Heads: map[string]string{}, URLs: r.URLs,
		Clusters: known.Clusters, Globbing: known.Globbing, Version: known.Version, Sets: sets}
	for name, head := range heads {
		if !strings.HasPrefix(name, promotion.BranchPrefix) && !strings.HasPrefix(name, promotion.RevertPrefix) {
			q.Heads[name] = head
		}
	}
	q.Heads[r.Branch] = s.Commit
	return q, nil
}

// noticeProposal wakes a repository's proposal where a pull request is its own. One that a person opened
// again is no "no" any more.
func (co *Controller) noticeProposal(ctx context.Context, r *Repository, pr *forge.PullRequest) error {
	if !r.Onboard || pr.Fork || pr.Branch != promotion.OnboardingBranch {
		return nil
	}
	about := record.Repository(r.ID)
	was, _, err := onboardings.Get(ctx, co.opts.Store, about)
	if err != nil {
		return err
	}
	isAnswered := was.State.IsFinal() && pr.State != forge.Open
	if isAnswered || was.State == onboard.Proposed && pr.State == forge.Open && pr.Number == was.Pull {
		return nil
	}
	return co.opts.Store.Tx(ctx, "proposal", func(tx *store.Tx) error {
		if was.State == onboard.Declined && pr.Number == was.Pull && r.HasProposed(pr) {
			if err := onboardings.Drop(ctx, tx, about); err != nil {
				return err
			}
		}
		return tx.WakeAs(ctx, store.Normal, wake.ForOnboarding(r.ID).String())
	})
}
