package act

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// Incoming is the pull request that brings new versions of a component into a source environment.
type Incoming struct {
	Repo  *branch.Repository
	Unit  promotion.Unit // with the component
	Found *discovery.Found
	Pull  *forge.PullRequest // nil: none is open
	Head  string             // where its branch is; empty: there is none. It is Liftlock's own
}

func (in *Incoming) branchName() string {
	return promotion.IncomingBranch(in.Unit.Pipeline, in.Found.Environment, in.Unit.Component)
}

// text is what the pull request says.
func (in *Incoming) text() prtext.Incoming {
	return prtext.Incoming{Discovery: discoveryText(in.Unit, in.Found), Marker: branch.MarkIncoming(in.Found.Release.ID)}
}

// OpenIncoming opens the pull request, and gives its number. After an interruption the same commit is made again, and the pull
// request is found, not doubled.
func (a *Actor) OpenIncoming(ctx context.Context, in *Incoming) (number int, err error) {
	r := in.Repo
	if err := r.Forge.MayOpen(ctx, r.Name); err != nil {
		return 0, err
	}
	if err := a.pushIncoming(ctx, in); err != nil {
		return 0, err
	}
	text := in.text()
	title, body := r.Words(text.Title()), r.Words(text.Body())
	pr, created, err := r.Forge.CreatePullRequest(ctx, r.Name, forge.NewPullRequest{Title: title, Body: body, Branch: in.branchName(),
		Base: in.Found.Branch, Labels: []string{promotion.LabelOurs}})
	if err != nil {
		return 0, err
	}
	if !r.HasOpened(pr) {
		return 0, fmt.Errorf("%w: #%d by %s already uses %s", ErrStale, pr.Number, pr.Author, in.branchName())
	}
	if !created { // its text is of the run that was interrupted
		in.Pull = pr
		return pr.Number, a.UpdateIncoming(ctx, in)
	}
	a.opts.Log.Info("a new version is proposed to a source environment", append(unitFields(in.Unit),
		zap.String("environment", in.Found.Environment), zap.String("release", in.Found.Release.String()), zap.Int("pull", pr.Number))...)
	u := in.Unit
	about := store.Event{At: a.opts.Now(), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
		Environment: in.Found.Environment, Kind: event.Discovered, IdempotencyKey: fmt.Sprintf("incoming|%s|%d", r.ID, pr.Number),
		Message: fmt.Sprintf("%s comes into %s when #%d is merged: %s", in.Found.Release, in.Found.Environment, pr.Number,
			wording.ClipRunes(strings.Join(text.Reasons, "; "), maxDiscoveryText))}
	return pr.Number, a.opts.Store.Tx(ctx, "proposed", func(tx *store.Tx) error {
		_, err := tx.AddEvents(ctx, about)
		return err
	})
}

// UpdateIncoming brings the open pull request up to date with what comes in now.
func (a *Actor) UpdateIncoming(ctx context.Context, in *Incoming) error {
	if err := a.pushIncoming(ctx, in); err != nil {
		return err
	}
	r, text := in.Repo, in.text()
	title, body := r.Words(text.Title()), r.Words(text.Body())
	var update forge.PullRequestUpdate
	if in.Pull.Title != title || in.Pull.Body != body {
		update.Title, update.Body = &title, &body
	}
	if in.Pull.Base != in.Found.Branch {
		update.Base = &in.Found.Branch
	}
	if update == (forge.PullRequestUpdate{}) {
		return nil
	}
	return r.Forge.UpdatePullRequest(ctx, r.Name, in.Pull.Number, update)
}

// CloseIncoming closes the pull request of which nothing is to come in any more, with the signed mark that this is no person's
// "no".
func (a *Actor) CloseIncoming(ctx context.Context, in *Incoming) error {
	r, pr := in.Repo, in.Pull
	closed := forge.Closed
	body := r.Marks.MarkClosed(r.ID, pr, a.opts.Now(), r.Words(prtext.ObsoleteIncomingBody(in.Found.Environment)))
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, pr.Number, forge.PullRequestUpdate{State: &closed, Body: &body}); err != nil {
		return err
	}
	a.opts.Log.Info("a version that was proposed doesn't come in any more", append(unitFields(in.Unit),
		zap.String("environment", in.Found.Environment), zap.Int("pull", pr.Number))...)
	a.DeleteOver(ctx, r, pr)
	return nil
}

// pushIncoming makes the commit, and moves the branch to it, with a lease on where that was. The store knows beforehand what is
// pushed.
func (a *Actor) pushIncoming(ctx context.Context, in *Incoming) error {
	r, text := in.Repo, discoveryText(in.Unit, in.Found)
	head, err := composeDiscovered(forge.WithPriority(ctx, forge.PriorityNormal), r, in.Found, &text)
	if err != nil || head == in.Head {
		return err
	}
	if err := a.pushOwn(ctx, r, "pushIncoming", git.PushSpec{Branch: in.branchName(), New: head, Old: in.Head}); err != nil {
		return err
	}
	in.Head = head
	return nil
}

// IsUpToDate says that a head brings the same as what was composed now: the same release, on files that are as they were.
func (in *Incoming) IsUpToDate(ctx context.Context) (bool, error) {
	if in.Pull == nil || branch.IncomingRelease(in.Pull.Body) != wording.Short(in.Found.Release.ID) || in.Pull.Base != in.Found.Branch {
		return false, nil
	}
	info, err := in.Repo.Mirror.Commit(ctx, in.Head)
	if err != nil || len(info.Parents) != 1 {
		return false, err
	}
	base := in.Repo.Mirror.Tree(info.Parents[0])
	for i := range in.Found.Edits {
		was, err := base.ReadFile(in.Found.Edits[i].File)
		if err != nil {
			return false, nil // it is another file by now
		}
		if string(was) != string(in.Found.Edits[i].Before) {
			return false, nil
		}
	}
	return true, nil
}
