package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
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
func (a *Actor) SetHold(ctx context.Context, r *facts.Repository, u promotion.Unit, h Hold) (active promotion.Hold, err error) {
	file, err := holdFile(u, h.Scope, h.Environment)
	if err != nil {
		return active, err
	}
	for i := range holdTries {
		var written bool
		active, written, err = a.writeHold(ctx, r, file, h)
		switch {
		case errors.Is(err, git.ErrLeaseLost):
		case err != nil, written, i > 0:
			return active, err
		}
		// What was there was another process's meanwhile; so may be that there is nothing to do.
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

// ListHolds lists the holds on something that stand, as its file had them when the state
// branch was there last, as far as is known here; none when there are none.
func (a *Actor) ListHolds(ctx context.Context, r *facts.Repository, u promotion.Unit, scope, environment string) ([]promotion.Holding, error) {
	file, err := holdFile(u, scope, environment)
	if err != nil {
		return nil, nil // there can't be one
	}
	_, commit, err := a.opts.Gatherer.FindHolds(ctx, r)
	if err != nil || commit == "" {
		return nil, err
	}
	all, err := history.ReadHolds(r.Mirror.Tree(commit), file)
	return promotion.ListActive(all, a.opts.Now()), err
}

// writeHold does what SetHold does, once, on the state branch as it was fetched last. written
// says that it changed something there.
func (a *Actor) writeHold(ctx context.Context, r *facts.Repository, file string, h Hold) (active promotion.Hold, written bool, err error) {
	m, now := r.Mirror, a.opts.Now()
	head, base, err := a.opts.Gatherer.FindHolds(ctx, r)
	if err != nil {
		return active, false, err
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
		next = promotion.AddHold(promotion.ListActive(all, now), promotion.Holding{ByID: h.ByID, Via: h.Via, Subject: h.Subject, Hold: promotion.Hold{By: h.By, Reason: h.Reason, At: cmp.Or(h.Given, now), Reverts: h.Reverts, Until: h.Until}})
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
	spec.Message = fmt.Sprintf("%s %s\n\nBy: %s\n", verb, strings.TrimSuffix(strings.TrimPrefix(file, "holds/"), ".yaml"), h.By)
	commit, err := m.Write(ctx, spec)
	if err == nil {
		commit, err = m.Sign(forge.WithPriority(ctx, forge.PriorityUrgent), commit)
	}
	if err != nil {
		return active, false, err
	}
	return active, true, m.Push(ctx, git.PushSpec{Branch: history.StateBranch, New: commit, Old: head})
}
