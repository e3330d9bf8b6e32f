package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// commandTimeout bounds a command of a role's holder once it has begun, even if the caller has
	// gone.
	commandTimeout = 2 * time.Minute
	// recordTimeout bounds what follows it: recording what came of it, and saying who gave it.
	recordTimeout = 15 * time.Second
	// claimLease is for how long a command that has begun is nobody else's: longer than both,
	// as the clocks of replicas differ.
	claimLease = 4 * time.Minute
)

// inProgressText answers a command that is sent again while it is carried out.
const inProgressText = "this command is being carried out already; the audit trail says what comes of it"

// executeOnce carries out a command of a role's holder, once for its source, whichever replicas
// it is sent to and how often. Its entry in the audit trail is there before anything is done, and
// from then on it doesn't end with the request that brought it.
func (co *Controller) executeOnce(ctx context.Context, r *Repository, s *branch.Snapshot, o Command) (string, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	begun, answer, err := co.claimCommand(bounded, &o)
	if begun == "" || err != nil {
		return answer, err
	}
	answer, err = co.authoriseAndRun(bounded, r, s, o)

	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancelAfter()
	outcome := outcomeOf(err)
	co.logCommand(o, outcome)
	if _, rerr := co.opts.Store.ReplaceAuditOutcome(after, o.Source, begun, outcome); rerr != nil && (err == nil || isRefused(err)) {
		err = rerr
	}
	if err != nil {
		return "", err
	}
	co.announceCommand(after, r, o)
	return answer, nil
}

// claimCommand puts a command on record as begun, and gives that outcome. Empty: it is on record
// already, and is answered as it was then. One that failed, or that nobody has ended in time, as
// its process died, is claimed again: each step of a command may be done twice. It is then still
// of when it came first.
func (co *Controller) claimCommand(ctx context.Context, o *Command) (begun, answer string, err error) {
	now := co.opts.Clock.Now()
	begun = outcomeBegun + now.UTC().Format(time.RFC3339Nano)
	entry, err := co.buildAudit(ctx, *o, wake.UnitName(o.Unit), begun)
	if err != nil {
		return "", "", err
	}
	entry.At = o.At
	added, err := co.opts.Store.ClaimAudit(ctx, entry)
	if err != nil || added {
		return begun, "", err
	}
	all, err := co.opts.Store.AuditTrail(ctx, store.AuditFilter{Source: o.Source}, 1)
	if err != nil {
		return "", "", err
	}
	if len(all) == 0 {
		return "", "", fmt.Errorf("find the command %.80q in the audit trail: its entry is too old and was just removed; send it again",
			o.Source)
	}
	was := all[0]
	if was.Subject != entry.Subject || was.Reason != entry.Reason {
		return "", "", newRefusal("this was sent with the key of another command, which came at %s: send it with a key of its own",
			was.At.UTC().Format(time.RFC3339))
	}
	if why, refused := strings.CutPrefix(was.Outcome, outcomeRefused); refused {
		return "", "", newRefusal("%s", why)
	}
	since, isBegun := strings.CutPrefix(was.Outcome, outcomeBegun)
	if !isBegun && !strings.HasPrefix(was.Outcome, outcomeFailed) {
		return "", "", nil
	}
	if at, perr := time.Parse(time.RFC3339Nano, since); isBegun && perr == nil && now.Before(at.Add(claimLease)) {
		return "", inProgressText, nil
	}
	replaced, err := co.opts.Store.ReplaceAuditOutcome(ctx, o.Source, was.Outcome, begun)
	if err != nil || !replaced { // somebody else has claimed it again
		return "", inProgressText, err
	}
	o.At = was.At
	return begun, "", nil
}

// announceCommand says in the pull request that a command is about who gave it in the console,
// which shows nowhere else there.
func (co *Controller) announceCommand(ctx context.Context, r *Repository, o Command) {
	if o.Via != ViaConsole || o.Pull == 0 || o.Command.Verb == command.Skip { // a skip is said there anyway
		return
	}
	co.announce(ctx, r, o.Pull, o.Source, prtext.CommandGiven(o.By, command.Comment(o.Command), o.Command.Reason))
}
