package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// pendingDiscovery is a commit that was about to be pushed, with what is to be put on record once it is there.
type pendingDiscovery struct {
	Commit  string `json:"commit"`
	Branch  string `json:"branch"`
	Release string `json:"release"`
	Text    string `json:"text"`
}

// pendingDiscoveries are the commits of which isn't on record yet that they came in.
var pendingDiscoveries = record.Declare[record.InUnit, pendingDiscovery](record.Declaration{
	Name: "discovering", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "A commit that brings a new version into a source environment was about to be pushed, and isn't on record yet.",
})

// CommitDiscovered commits what was discovered to the environment's branch, and puts that on record. The commit is a
// function of what comes in and of the commit below it, and the push takes the branch to be where that was judged. So an
// interruption anywhere leads to the same commit, and another account's push to [ErrStale].
func (a *Actor) CommitDiscovered(ctx context.Context, ev *facts.Evaluation, d *discovery.Found) error {
	r, u := ev.Snapshot.Repo, ev.Unit
	u.Component = d.Component
	m := r.Mirror
	text := discoveryText(u, d)
	commit, err := composeDiscovered(ctx, r, d, &text)
	if err != nil {
		return err
	}
	pending := pendingDiscovery{Commit: commit, Branch: d.Branch, Release: d.Release.ID,
		Text: fmt.Sprintf("%s came into %s by itself as %s: %s", d.Release, d.Environment, wording.Short(commit),
			wording.ClipRunes(strings.Join(text.Reasons, "; "), maxDiscoveryText))}
	about := record.InUnit{Unit: record.Unit(u), Name: d.Environment}
	if err := pendingDiscoveries.Put(ctx, a.opts.Store, about, pending); err != nil {
		return err
	}
	err = m.Push(ctx, git.PushSpec{Branch: d.Branch, New: commit, Old: d.Tip})
	if errors.Is(err, git.ErrLeaseLost) {
		if _, ferr := m.Fetch(ctx); ferr != nil {
			return errors.Join(err, ferr)
		}
		return fmt.Errorf("%w (%v)", ErrStale, err)
	}
	if err != nil {
		return err
	}
	a.opts.Log.Info("a new version came into a source environment by itself", append(unitFields(u),
		zap.String("environment", d.Environment), zap.String("release", d.Release.String()), zap.String("commit", commit))...)
	return a.recordDiscovery(ctx, r, u, d.Environment, pending)
}

// discoveryText is what a commit with what was discovered says.
func discoveryText(u promotion.Unit, d *discovery.Found) prtext.Discovery {
	text := prtext.Discovery{Unit: u, Environment: d.Environment, Release: d.Release}
	for i := range d.Versions {
		if v := &d.Versions[i]; v.Err == "" && v.Choice.Tag != "" {
			text.Reasons = append(text.Reasons, v.Reason())
		}
	}
	for i := range d.Edits {
		for _, ch := range d.Edits[i].Changes {
			text.Changes = append(text.Changes, prtext.Change{File: ch.File, Path: ch.Path, Old: ch.Old, New: ch.New, Line: ch.Line})
		}
	}
	return text
}

// composeDiscovered makes the commit with what was discovered; the same each time.
func composeDiscovered(ctx context.Context, r *branch.Repository, d *discovery.Found, text *prtext.Discovery) (string, error) {
	commit, err := effects.CommitEdits(ctx, r.Mirror, d.Tip, d.Edits, r.Words(text.Message()))
	if err != nil {
		return "", err
	}
	return r.Mirror.Sign(ctx, commit)
}

// maxDiscoveryText bounds what an event says of why versions came in.
const maxDiscoveryText = 600

// FinishDiscovery puts on record what was pushed before the process died, and forgets what wasn't. tip is where the
// environment's branch is.
func (a *Actor) FinishDiscovery(ctx context.Context, r *branch.Repository, u promotion.Unit, environment, tip string) error {
	about := record.InUnit{Unit: record.Unit(u), Name: environment}
	pending, is, err := pendingDiscoveries.Get(ctx, a.opts.Store, about)
	if err != nil || !is || tip == "" {
		return err
	}
	has, err := r.Mirror.Has(ctx, pending.Commit)
	if err == nil && has {
		has, err = r.Mirror.IsAncestor(ctx, pending.Commit, tip)
	}
	if err != nil {
		return err
	}
	if !has {
		return pendingDiscoveries.Drop(ctx, a.opts.Store, about)
	}
	return a.recordDiscovery(ctx, r, u, environment, pending)
}

// recordDiscovery puts on record that a commit is on its branch, once, and has the branch looked at.
func (a *Actor) recordDiscovery(ctx context.Context, r *branch.Repository, u promotion.Unit, environment string,
	p pendingDiscovery) error {
	source := "discovery|" + r.ID + "|" + p.Commit
	return a.opts.Store.Tx(ctx, "discovered", func(tx *store.Tx) error {
		if err := pendingDiscoveries.Drop(ctx, tx, record.InUnit{Unit: record.Unit(u), Name: environment}); err != nil {
			return err
		}
		if err := tx.Wake(ctx, wake.ForRepository(r.ID).String()); err != nil {
			return err
		}
		err := tx.AddAudit(ctx, store.Audit{At: a.opts.Now(), Actor: r.BotLogin, Via: promotion.AuditViaServer,
			Verb: promotion.AuditDiscover, Subject: wake.UnitName(u), Environment: environment, Reason: p.Text,
			Outcome: "committed as " + p.Commit + " to " + p.Branch, Source: source})
		if err != nil {
			return err
		}
		_, err = tx.AddEvents(ctx, store.Event{At: a.opts.Now(), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
			Environment: environment, Kind: event.Discovered, Message: p.Text, IdempotencyKey: source})
		return err
	})
}
