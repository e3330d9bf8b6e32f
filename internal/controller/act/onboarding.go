package act

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Onboarding is a proposed pipeline file, and where its branch is.
type Onboarding struct {
	Repo     *branch.Repository
	Base     string             // the tracked branch's commit that it is proposed on
	Head     string             // of the branch of proposals, Liftlock's own; empty: there is none
	Pull     *forge.PullRequest // nil: none is open
	Proposal *onboard.Proposal  // not for closing
}

func (o *Onboarding) text() prtext.Onboarding {
	return prtext.Onboarding{Proposal: o.Proposal, Branch: o.Repo.Branch, Marker: o.Repo.Marks.MarkOnboarding(o.Repo.ID)}
}

// OpenOnboarding opens the pull request that proposes a pipeline file, and gives its number. After an
// interruption the same commit is made again, and the pull request is found, not doubled.
func (a *Actor) OpenOnboarding(ctx context.Context, o *Onboarding) (number int, err error) {
	r := o.Repo
	if err := r.Forge.MayOpen(ctx, r.Name); err != nil {
		return 0, err
	}
	if err := a.pushOnboarding(ctx, o); err != nil {
		return 0, err
	}
	title, body := r.Words(prtext.OnboardingTitle), r.Words(o.text().Body())
	pr, created, err := r.Forge.CreatePullRequest(ctx, r.Name, forge.NewPullRequest{Title: title, Body: body,
		Branch: promotion.OnboardingBranch, Base: r.Branch, Labels: []string{promotion.LabelOurs}})
	if err != nil {
		return 0, err
	}
	if !r.HasProposed(pr) {
		return 0, fmt.Errorf("%w: #%d by %s already uses %s", ErrStale, pr.Number, pr.Author, promotion.OnboardingBranch)
	}
	if !created { // its text is of the run that was interrupted
		o.Pull = pr
		return pr.Number, a.UpdateOnboarding(ctx, o)
	}
	a.opts.Log.Info("a pipeline file is proposed", zap.String("repository", r.ID), zap.Int("pull", pr.Number))
	return pr.Number, a.putShown(ctx, r, pr.Number, facts.ShownState{Page: hashParts(title, body), Bare: true})
}

// UpdateOnboarding brings the open pull request up to date: its branch where the file differs, and its
// text and base where these do.
func (a *Actor) UpdateOnboarding(ctx context.Context, o *Onboarding) error {
	r, pr := o.Repo, o.Pull
	same, err := o.isPushed()
	if err != nil {
		return err
	}
	if !same {
		if err := a.pushOnboarding(ctx, o); err != nil {
			return err
		}
		a.opts.Log.Info("a proposed pipeline file is another one now", zap.String("repository", r.ID), zap.Int("pull", pr.Number))
	}
	title, body := r.Words(prtext.OnboardingTitle), r.Words(o.text().Body())
	shown, err := a.readShown(ctx, r, pr.Number)
	if err != nil {
		return err
	}
	var update forge.PullRequestUpdate
	want := hashParts(title, body)
	if shown.Page != want && (pr.Title != title || pr.Body != body) {
		update.Title, update.Body = &title, &body
	}
	if pr.Base != r.Branch {
		update.Base = &r.Branch
	}
	if update != (forge.PullRequestUpdate{}) {
		if err := r.Forge.UpdatePullRequest(ctx, r.Name, pr.Number, update); err != nil {
			return err
		}
	}
	shown.Page = want
	return a.putShown(ctx, r, pr.Number, shown)
}

// MentionPush says in the pull request's text that somebody has pushed to its branch, unless it does.
func (a *Actor) MentionPush(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) error {
	body := prtext.ModifiedBody(pr.Body)
	if body == pr.Body {
		return nil
	}
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, pr.Number, forge.PullRequestUpdate{Body: &body}); err != nil {
		return err
	}
	shown, err := a.readShown(ctx, r, pr.Number)
	if err != nil {
		return err
	}
	shown.Page = hashParts(pr.Title, body)
	return a.putShown(ctx, r, pr.Number, shown)
}

// CloseOnboarding closes the pull request, whose proposal nobody needs any more, with the signed mark
// that this is no person's "no". A branch to which somebody has pushed stays.
func (a *Actor) CloseOnboarding(ctx context.Context, o *Onboarding) error {
	r, pr := o.Repo, o.Pull
	closed := forge.Closed
	body := r.Marks.MarkClosed(r.ID, pr, a.opts.Now(), r.Words(o.text().RetiredBody()))
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, pr.Number, forge.PullRequestUpdate{State: &closed, Body: &body}); err != nil {
		return err
	}
	a.opts.Log.Info("a proposed pipeline file isn't needed any more", zap.String("repository", r.ID), zap.Int("pull", pr.Number))
	if o.Head != "" {
		a.DeleteOver(ctx, r, pr)
	}
	return nil
}

// isPushed says that the branch has the proposed file, as it is proposed.
func (o *Onboarding) isPushed() (bool, error) {
	if o.Head == "" {
		return false, nil
	}
	now, err := o.Repo.Mirror.Tree(o.Head).ReadFile(o.Proposal.File)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(now) == o.Proposal.Text, err
}

// pushOnboarding makes the commit with the file, signed by the server's secret, and moves the branch to
// it, with a lease on where that was. The store knows beforehand what is pushed.
func (a *Actor) pushOnboarding(ctx context.Context, o *Onboarding) error {
	r, m := o.Repo, o.Repo.Mirror
	base, err := m.Commit(ctx, o.Base)
	if err != nil {
		return err
	}
	spec := git.CommitSpec{Parents: []string{o.Base}, Base: o.Base, Message: r.Words(o.text().CommitMessage()), When: base.CommitTime,
		Files: []git.FileWrite{{Path: o.Proposal.File, Content: []byte(o.Proposal.Text)}}}
	head, err := m.Write(ctx, spec)
	if err != nil {
		return err
	}
	made, err := m.Commit(ctx, head)
	if err != nil {
		return err
	}
	if sig := r.Marks.SignOnboarding(r.ID, o.Base, made.Tree); sig != "" {
		spec.Message += branch.TrailerOnboarding + ": " + sig + "\n"
		if head, err = m.Write(ctx, spec); err != nil {
			return err
		}
	}
	if head, err = m.Sign(forge.WithPriority(ctx, forge.PriorityNormal), head); err != nil {
		return err
	}
	if err := a.pushOwn(ctx, r, "pushOnboarding", git.PushSpec{Branch: promotion.OnboardingBranch, New: head, Old: o.Head}); err != nil {
		return err
	}
	o.Head = head
	return nil
}
