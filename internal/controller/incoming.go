package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// incomingPull is the pull request that Liftlock last opened to bring something into a source environment.
type incomingPull struct {
	Number int `json:"number"` // 0: none is open
}

var incomingPulls = record.Declare[record.InUnit, incomingPull](record.Declaration{
	Name: "incoming", Owner: "controller", Lifetime: record.Lasting,
	Doc: "The open pull request that brings new versions into a source environment (deliver: pull-request). Without it the forge's list " +
		"is read.",
})

// incomingAction is what to do about such a pull request.
type incomingAction string

const (
	incomingLeave  incomingAction = "leave"
	incomingOpen   incomingAction = "open"
	incomingUpdate incomingAction = "update"
	incomingClose  incomingAction = "close"
)

// incomingFacts is what is known.
type incomingFacts struct {
	Release  string         // short, of what comes in now; empty: nothing does
	IsOver   bool           // nothing newer is there, or the version came in otherwise
	IsOpen   bool           // one of ours is open
	IsOwn    bool           // its head is ours
	UpToDate bool           // it brings what comes in now
	Declined map[string]int // releases that a person has closed a pull request for, with its number
}

// decideIncoming decides. A version that a person said no to stays out, and a branch to which somebody has pushed is theirs.
func decideIncoming(f *incomingFacts) (incomingAction, string) {
	switch number := f.Declined[f.Release]; {
	case f.IsOpen && !f.IsOwn:
		return incomingLeave, ""
	case f.IsOpen && f.Release != "" && number == 0 && !f.UpToDate:
		return incomingUpdate, ""
	case f.IsOpen && f.IsOver:
		return incomingClose, ""
	case f.IsOpen:
		return incomingLeave, ""
	case f.Release != "" && number > 0:
		return incomingLeave, fmt.Sprintf("#%d, which would have brought it in, was closed by a person", number)
	case f.Release != "":
		return incomingOpen, ""
	}
	return incomingLeave, ""
}

// proposeDiscovered brings what was discovered in by a pull request, and keeps that up to date. waits says what it waits for;
// empty: nothing does.
func (co *Controller) proposeDiscovered(ctx context.Context, r *Repository, at discoveryPlace, found *discovery.Found) (waits string,
	err error) {
	in := act.Incoming{Repo: r.Repository, Unit: at.unit, Found: found}
	name := promotion.IncomingBranch(at.unit.Pipeline, at.environment, at.unit.Component)
	about := record.InUnit{Unit: record.Unit(at.unit), Name: at.environment}
	was, isKnown, err := incomingPulls.Get(ctx, co.opts.Store, about)
	if err != nil {
		return "", err
	}
	f := incomingFacts{IsOver: isOver(found), Declined: map[string]int{}}
	if len(found.Edits) > 0 && !found.DryRun {
		f.Release = wording.Short(found.Release.ID)
	}
	if f.Release == "" && isKnown && was.Number == 0 {
		return "", nil
	}
	if err := co.readIncoming(ctx, r, name, &in, &f); err != nil {
		return "", err
	}
	action, why := decideIncoming(&f)
	number := 0
	switch action {
	case incomingOpen:
		number, err = co.opts.Actor.OpenIncoming(ctx, &in)
	case incomingUpdate:
		number, err = in.Pull.Number, co.opts.Actor.UpdateIncoming(ctx, &in)
	case incomingClose:
		err = co.opts.Actor.CloseIncoming(ctx, &in)
	case incomingLeave:
		if in.Pull != nil {
			number = in.Pull.Number
		}
	}
	if errors.Is(err, git.ErrLeaseLost) { // somebody pushed at the same moment: the next look finds out what
		co.opts.Log.Info("a branch moved while it was pushed to", zap.String("branch", name), zap.Error(err))
		_, err = r.Mirror.Fetch(ctx) // else the next look would see the same
		return "", err
	}
	if err != nil {
		return "", err
	}
	waits = why
	if number > 0 && f.Release != "" {
		waits = fmt.Sprintf("it comes in when #%d is merged", number)
	}
	if isKnown && was.Number == number {
		return waits, nil
	}
	return waits, incomingPulls.Put(ctx, co.opts.Store, about, incomingPull{number})
}

// isOver says that all is known, and that nothing newer than what is there comes in.
func isOver(found *discovery.Found) bool {
	if len(found.Edits) > 0 || found.Refused != "" || found.Unfinished {
		return false
	}
	for i := range found.Versions {
		if v := &found.Versions[i]; v.Err != "" || v.Choice.Tag != "" {
			return false
		}
	}
	return true
}

// readIncoming reads what the forge and the branch say.
func (co *Controller) readIncoming(ctx context.Context, r *Repository, name string, in *act.Incoming, f *incomingFacts) error {
	pulls, err := r.Forge.PullRequestsByBranch(ctx, r.Name, name)
	if err != nil {
		return err
	}
	head, is, err := r.Mirror.Head(ctx, name)
	if err == nil && is {
		f.IsOwn, err = branch.IsPushed(ctx, co.opts.Store, r.ID, name, head)
	}
	if err != nil {
		return err
	}
	for i := range pulls {
		pr := &pulls[i]
		if pr.Fork || !r.HasOpened(pr) {
			continue
		}
		switch {
		case pr.State == forge.Open && in.Pull == nil:
			in.Pull, f.IsOpen = pr, true
		case pr.State == forge.Closed && !r.Marks.IsClosingMarked(r.ID, pr):
			if release := branch.IncomingRelease(pr.Body); release != "" && f.Declined[release] == 0 {
				f.Declined[release] = pr.Number
			}
		}
		if i == 0 && pr.State != forge.Open && f.IsOwn && pr.Head == head { // it is over, and its branch is left
			co.opts.Actor.DeleteOver(ctx, r.Repository, pr)
			head, f.IsOwn = "", false
		}
	}
	if head == "" {
		return nil
	}
	if !f.IsOwn && in.Pull == nil {
		return fmt.Errorf("the branch %s, from which a new version would be proposed, has somebody else's commits: delete it", name)
	}
	in.Head = head
	if f.Release != "" && f.IsOwn {
		f.UpToDate, err = in.IsUpToDate(ctx)
	}
	return err
}

// noticeIncoming wakes the look for new versions where a pull request with one was closed, merged or opened again.
func (co *Controller) noticeIncoming(ctx context.Context, r *Repository, pr *forge.PullRequest) error {
	if co.opts.Versions == nil || pr.Fork || !strings.HasPrefix(pr.Branch, promotion.IncomingPrefix) {
		return nil
	}
	return co.opts.Store.Wake(ctx, wake.ForDiscovery(r.ID).String())
}
