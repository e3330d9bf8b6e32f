package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// Hold is a hold on more than a pull request that is set or lifted.
type Hold struct {
	Scope       string // component, environment or pipeline
	Environment string
	By, Reason  string
	ByID        int64          // as of a promotion.Holding
	Via         string         // api: By is the name of one of its tokens; console: a user there
	Subject     string         // as of a promotion.Holding
	Reverts     bool           // reverts stand still too
	Given       time.Time      // when the command that sets it was given; zero: now
	Until       time.Time      // zero: until somebody lifts it
	Set         bool           // false: lift
	Lift        promotion.Lift // which holds, where it isn't set
}

// holdTries bounds how often a hold is written again when somebody else wrote
// the state branch at the same moment.
const holdTries = 5

// SetHold writes or removes a hold's file on the state branch, one commit each, and gives
// the strongest hold that stands then; the zero value when none does. Everybody's own hold
// stands beside the others', and is never made weaker by setting it again.
func (a *Actor) SetHold(ctx context.Context, r *branch.Repository, u promotion.Unit, h Hold) (active promotion.Hold, err error) {
	file, err := holdFile(u, h.Scope, h.Environment)
	if err != nil {
		return active, err
	}
	for i := range holdTries {
		var written bool
		if err = a.restoreRemoved(ctx, r); err == nil { // what is written goes on from what is there
			active, written, err = a.writeHold(ctx, r, file, h)
		}
		switch {
		case errors.Is(err, git.ErrLeaseLost):
		case err != nil, written, i > 0:
			return active, err
		}
		// Another process wrote these meanwhile; it may have left nothing to do.
		if _, ferr := r.Mirror.Fetch(ctx); ferr != nil {
			return active, ferr
		}
	}
	return active, err
}

// holdFile is the file of a hold on a unit's component, on an environment or on its pipeline.
func holdFile(u promotion.Unit, scope, environment string) (string, error) {
	name := u.Component
	if scope == "environment" {
		name = environment
	}
	if scope != "pipeline" && (name == "" || strings.ContainsAny(name, "/\\")) {
		return "", fmt.Errorf("hold a %s: its name %q can't be a file's", scope, name)
	}
	return history.HoldPath(u.Pipeline, scope, name), nil
}

// ListHolds lists the holds on something that stand, as its file had them when the state branch was
// last there, as far as is known here. It lists none when there are none.
func (a *Actor) ListHolds(ctx context.Context, r *branch.Repository, u promotion.Unit, scope,
	environment string) ([]promotion.Holding, error) {
	file, err := holdFile(u, scope, environment)
	if err != nil {
		return nil, nil // there can't be one
	}
	all, err := a.opts.Gatherer.History.ReadHoldFile(ctx, r, file)
	return promotion.ListActive(all, a.opts.Now()), err
}

// writeHold does what SetHold does, once, on the state branch as it was fetched last. written
// says that it changed something there.
func (a *Actor) writeHold(ctx context.Context, r *branch.Repository, file string, h Hold) (active promotion.Hold, written bool, err error) {
	m, now := r.Mirror, a.opts.Now()
	head, base, err := a.opts.Gatherer.History.FindHolds(ctx, r)
	if err != nil {
		return active, false, err
	}
	if head != "" {
		base = head // nothing is missing there by now, and what others added stays
	}
	var all []promotion.Holding
	spec := git.CommitSpec{When: now}
	if base != "" {
		spec.Parents, spec.Base = []string{base}, base
		if all, err = history.ReadHolds(m.Tree(base), file); err != nil {
			return active, false, err
		}
	}
	verb, w := "Lift the hold on", git.FileWrite{Path: file, Delete: true}
	next := h.Lift.Of(promotion.ListActive(all, now))
	if h.Set {
		verb = "Hold"
		next = promotion.AddHold(promotion.ListActive(all, now), promotion.Holding{ByID: h.ByID, Via: h.Via, Subject: h.Subject,
			Hold: promotion.Hold{By: h.By, Reason: h.Reason, At: cmp.Or(h.Given, now), Reverts: h.Reverts, Until: h.Until}})
	}
	strongest, held := promotion.FindStrongest(next)
	active = strongest.Hold
	if slices.Equal(next, all) {
		return active, false, nil
	}
	if held {
		if w.Content, err = history.EncodeHolds(next); err != nil {
			return active, false, fmt.Errorf("write the hold %s: %w", file, err)
		}
		w.Delete = false
	}
	spec.Files = []git.FileWrite{w}
	spec.Message = fmt.Sprintf("%s %s\n\nBy: %s\n", verb, holdName(file), h.By)
	return active, true, a.pushState(ctx, r, head, spec)
}

// pushState makes a commit of the state branch, signed by the server's secret, and pushes it over a head.
func (a *Actor) pushState(ctx context.Context, r *branch.Repository, head string, spec git.CommitSpec) error {
	m := r.Mirror
	commit, err := m.Write(ctx, spec)
	if err != nil {
		return err
	}
	made, err := m.Commit(ctx, commit)
	if err != nil {
		return err
	}
	if sig := r.Marks.SignState(r.ID, strings.Join(spec.Parents, ""), made.Tree); sig != "" {
		spec.Message += branch.TrailerState + ": " + sig + "\n"
		if commit, err = m.Write(ctx, spec); err != nil {
			return err
		}
	}
	if commit, err = m.Sign(forge.WithPriority(ctx, forge.PriorityUrgent), commit); err != nil {
		return err
	}
	if err := m.Push(ctx, git.PushSpec{Branch: history.StateBranch, New: commit, Old: head}); err != nil {
		return err
	}
	return branch.StateCommits.Put(ctx, a.opts.Store, record.Repository(r.ID), commit)
}

// RestoreHolds restores holds that another account removed on the state branch, or the branch
// itself where it was deleted. People who may lift holds lift them, and without this anybody who
// may push could lift them all. It gives the branch's head then. With an error it gives the former
// head, so that the commit with the holds stays known.
func (a *Actor) RestoreHolds(ctx context.Context, r *branch.Repository) (head string, err error) {
	head, own, err := a.opts.Gatherer.History.FindHolds(ctx, r)
	switch {
	case err != nil:
		return head, err
	case own == "":
		return "", nil
	case head == "":
		return own, a.restoreBranch(ctx, r, own)
	case head == own:
		return head, a.rememberState(ctx, r, own)
	}
	if err := a.restoreRemoved(ctx, r); err != nil {
		return head, fmt.Errorf("%s: put back the holds that somebody took off on the branch %s: %w", r.ID, history.StateBranch, err)
	}
	now, _, err := r.Mirror.Head(ctx, history.StateBranch)
	return now, err
}

// rememberState notes the newest commit of Liftlock's own, unless it is known.
func (a *Actor) rememberState(ctx context.Context, r *branch.Repository, own string) error {
	known, _, err := branch.StateCommits.Get(ctx, a.opts.Store, record.Repository(r.ID))
	if err != nil || known == own {
		return err
	}
	return branch.StateCommits.Put(ctx, a.opts.Store, record.Repository(r.ID), own)
}

// restoreBranch pushes the state branch again that somebody deleted.
func (a *Actor) restoreBranch(ctx context.Context, r *branch.Repository, own string) error {
	if err := r.Mirror.Push(ctx, git.PushSpec{Branch: history.StateBranch, New: own}); err != nil {
		return fmt.Errorf("%s: the branch %s, which has the holds, was deleted, and %s can't be pushed there again; until it is, nothing "+
			"is merged: %w", r.ID, history.StateBranch, own, err)
	}
	a.opts.Log.Warn("the branch with the holds was deleted, and was put back; let only Liftlock's account push to it",
		zap.String("repository", r.ID), zap.String("branch", history.StateBranch), zap.String("commit", own))
	return a.recordRestored(ctx, r, "deleted after "+own, fmt.Sprintf("somebody deleted the branch %s, which has the holds, at %s",
		history.StateBranch, wording.Short(own)))
}

// restoreRemoved restores holds that others' pushes to the state branch removed or made weaker.
// Holds that they added stay.
func (a *Actor) restoreRemoved(ctx context.Context, r *branch.Repository) error {
	head, own, err := a.opts.Gatherer.History.FindHolds(ctx, r)
	if err != nil || head == "" || head == own {
		return err
	}
	before, now := r.Mirror.Tree(own), r.Mirror.Tree(head)
	files, err := history.ListHoldFiles(before)
	if err != nil {
		return err
	}
	var writes []git.FileWrite
	var names []string
	for _, file := range files {
		w, err := restoreFile(before, now, file, a.opts.Now())
		if err != nil {
			return err
		}
		if w != nil {
			writes, names = append(writes, *w), append(names, holdName(file))
		}
	}
	if len(writes) == 0 {
		return nil
	}
	pushed, err := r.Mirror.Commit(ctx, head)
	if err != nil {
		return err
	}
	spec := git.CommitSpec{Parents: []string{head}, Base: head, Files: writes, When: a.opts.Now(),
		Message: "Put back the holds on " + strings.Join(names, ", ") + "\n\nSomebody else took them off.\n\n"}
	if err := a.pushState(ctx, r, head, spec); err != nil {
		return err
	}
	a.opts.Log.Warn("holds were taken off by a push, and were put back; let only Liftlock's account push to the branch",
		zap.String("repository", r.ID),
		zap.String("branch", history.StateBranch), zap.Strings("holds", names), zap.String("commit", head),
		zap.String("author", pushed.Author.Name))
	why := fmt.Sprintf("%s was pushed to %s, which took off or changed the holds on %s; its author is given as %s", wording.Short(head),
		history.StateBranch, strings.Join(names, ", "), pushed.Author.Name)
	return a.recordRestored(ctx, r, head, why)
}

// holdName is what a hold's file is about.
func holdName(file string) string {
	return strings.TrimSuffix(strings.TrimPrefix(file, "holds/"), ".yaml")
}

// restoreFile is what a hold's file has to be so that all that it had stands; nil where that is so.
func restoreFile(before, now fs.FS, file string, at time.Time) (*git.FileWrite, error) {
	had, err := history.ReadHolds(before, file)
	if err != nil {
		return nil, err
	}
	has, err := history.ReadHolds(now, file)
	if err != nil {
		return nil, err
	}
	had = promotion.ListActive(had, at)
	joined := history.JoinHolds(has, had)
	if slices.Equal(joined, has) {
		return nil, nil
	}
	content, err := history.EncodeHolds(joined)
	if slices.Equal(joined, had) {
		content, err = fs.ReadFile(before, file)
	}
	if err != nil {
		return nil, fmt.Errorf("put back the hold %s: %w", file, err)
	}
	return &git.FileWrite{Path: file, Content: content}, nil
}

// recordRestored puts on record that somebody's push would have lifted holds.
func (a *Actor) recordRestored(ctx context.Context, r *branch.Repository, source, why string) error {
	return a.opts.Store.Tx(ctx, "holdsRestored", func(tx *store.Tx) error {
		return tx.AddAudit(ctx, store.Audit{At: a.opts.Now(), Actor: "somebody", Via: promotion.AuditViaForge, Verb: string(command.Unhold),
			Subject: r.ID + " " + history.StateBranch,
			Reason:  why, Outcome: "refused: Liftlock put them back; /liftlock unhold lifts a hold", Source: "state-branch|" + r.ID +
				"|" + source})
	})
}
