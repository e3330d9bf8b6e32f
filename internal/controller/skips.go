package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// skipGate has an open promotion pass one of its pipeline's gates, for its head as it is
// and for a while. It says so on the pull request, in the history and in the audit trail.
func (co *Controller) skipGate(ctx context.Context, r *Repository, s *branch.Snapshot, p *branch.ResolvedPipeline,
	o Command) (string, error) {
	if o.Pull == 0 || p == nil {
		return "", newRefusal("which pull request? /liftlock skip is about an open promotion")
	}
	m, err := co.evaluateMembers(ctx, s, o)
	if errors.Is(err, branch.ErrNoUnit) {
		return "", newRefusal("%v", err)
	}
	if err != nil {
		return "", err
	}
	open := m.ev.OpenPulls[o.Pull]
	switch {
	case open == nil:
		return "", newRefusal("#%d is not an open promotion of Liftlock's", o.Pull)
	case open.Revert:
		return "", newRefusal("#%d is a revert, which has no gates to skip", o.Pull)
	case open.HeadState == promotion.HeadModified:
		return "", newRefusal("#%d is not what Liftlock composed, so nothing is skipped for it: %s", o.Pull, open.HeadReason)
	}
	now := co.opts.Clock.Now()
	given := now
	if !o.At.IsZero() && o.At.Before(now) {
		given = o.At
	}
	if err := checkSkipTime(open, o, now, given); err != nil {
		return "", err
	}
	if !strings.HasPrefix(open.Head, strings.ToLower(o.Head)) {
		return "", newRefusal("the head of #%d is %s by now, and this is about %s. Look at it as it is now, and send it again", open.Number,
			wording.Short(open.Head), wording.Short(o.Head))
	}
	if err := co.checkSkippable(p, open.Environment, o.Command.Gate); err != nil {
		return "", err
	}
	if err := co.checkSecondPerson(ctx, s, p, o, open.Environment); err != nil {
		return "", err
	}
	skip := people.StoredSkip{Head: open.Head, Release: open.Release, Source: o.Source,
		Skip: promotion.Skip{Gate: policies.GateName(o.Command.Gate), By: o.By,
			ByID: o.ByID, Via: holdVia(o), Account: o.Account, Subject: o.Subject,
			Reason: o.Command.Reason, At: given, Until: given.Add(promotion.SkipDuration)}}
	text := prtext.SkippedText(skip.Skip, open.Head)
	added, err := co.storeSkip(ctx, r, m.ev, open, skip, text)
	if err != nil {
		return "", err
	}
	// Before what the forge may refuse: the skip counts from now on, and isn't added a second time.
	if added && co.opts.Metrics != nil {
		co.opts.Metrics.Skipped(o.Unit.Pipeline, open.Environment, string(skip.Gate))
	}
	if added && skip.Via != "" { // who wrote a comment is answered by one
		co.announce(ctx, r, o.Pull, o.Source, text)
	}
	if err := r.Forge.AddLabels(ctx, r.Name, o.Pull, promotion.LabelSkipped+string(skip.Gate)); err != nil {
		return "", err
	}
	if _, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, o.Pull); err != nil { // it has another label by now
		return "", err
	}
	return text, co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForUnit(o.Unit).String())
}

// checkSkipTime refuses a skip that was written about another head than the present one, such as
// one that is heard of late. It also refuses one that is over already.
func checkSkipTime(open *facts.OpenPull, o Command, now, given time.Time) error {
	switch {
	case o.At.IsZero(): // it is about what is there
	case o.Role == "" && (open.HeadSince.IsZero() || !o.At.After(open.HeadSince)): // others name the head
		return newRefusal("#%d has had its head %s only since about when this was written, so it may be about what was there before. "+
			"Look at it as it is now, and write it again", open.Number, wording.Short(open.Head))
	case !now.Before(given.Add(promotion.SkipDuration)):
		return newRefusal("this was written at %s, and a skip holds for %s; write it again", given.UTC().Format(time.RFC3339),
			promotion.SkipDuration)
	}
	return nil
}

// maxSkips bounds the skips of a head that are kept.
const maxSkips = 50

// storeSkip writes a skip down with its event; false when the same command was before. A person who
// skips a gate again replaces their own skip of it.
func (co *Controller) storeSkip(ctx context.Context, r *Repository, ev *facts.Evaluation, open *facts.OpenPull, skip people.StoredSkip,
	text string) (added bool, err error) {
	known, err := people.ReadSkips(ctx, co.opts.Store, r.ID, open.Number, open.Head, open.Release)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(known, func(k people.StoredSkip) bool { return k.Source == skip.Source }) {
		return false, nil
	}
	known = slices.DeleteFunc(known, func(k people.StoredSkip) bool {
		return !skip.At.Before(k.Until) || skip.Replaces(&k.Skip)
	})
	if len(known) >= maxSkips {
		return false, newRefusal("%d skips of #%d hold already", len(known), open.Number)
	}
	var events []store.Event
	for _, m := range open.Members {
		if c, _ := ev.Component(m.Component); c != nil {
			u := c.Facts.Unit
			events = append(events, store.Event{At: skip.At, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
				Environment: open.Environment, Pull: open.Number, Kind: event.Skipped,
				Message: text, IdempotencyKey: fmt.Sprintf("skipped|%s|%s|%s", u.Repo, u.Component, skip.Source)})
		}
	}
	return true, co.opts.Store.Tx(ctx, "skip", func(tx *store.Tx) error {
		if err := people.Skips.Put(ctx, tx, record.OfPull(r.ID, open.Number), append(known, skip)); err != nil {
			return err
		}
		_, err := tx.AddEvents(ctx, events...)
		return err
	})
}

// checkSkippable refuses gates that aren't the pipeline file's. They are Liftlock's own conditions
// but the effect, which the file asks for too, and the server file's gates.
func (co *Controller) checkSkippable(p *branch.ResolvedPipeline, env, gate string) error {
	spec := p.Spec.EnvironmentByName(env)
	if spec == nil {
		return newRefusal("the pipeline has no environment %s any more", env)
	}
	var names, floor []string
	for i := range spec.Gates {
		names = append(names, string(spec.Gates[i].Name()))
	}
	if slices.Contains(names, gate) || gate == string(promotion.GateEffect) && spec.RequiresEffect() {
		return nil
	}
	for _, g := range co.opts.Gatherer.Gates(spec) {
		floor = append(floor, string(g.Name()))
	}
	switch {
	case slices.Contains(floor, gate):
		return newRefusal("the gate %s of %s is the server's own, which nobody skips", gate, env)
	case len(names) == 0:
		return newRefusal("%s has no gates in the pipeline file that could be skipped", env)
	}
	slices.Sort(names)
	return newRefusal("%s has no gate %s that could be skipped; it has %s. Holds are lifted by /liftlock unhold; what Liftlock itself "+
		"waits for can't be skipped", env, gate, strings.Join(slices.Compact(names), ", "))
}

// checkSecondPerson refuses who made the release that they want to let past a gate, as far as it
// is known which account they have on the forge.
func (co *Controller) checkSecondPerson(ctx context.Context, s *branch.Snapshot, p *branch.ResolvedPipeline, o Command, env string) error {
	giver, known := o.giver()
	if b := p.Spec.BreakGlass; !known || b != nil && b.AllowSelf {
		return nil
	}
	authors, unknown, err := co.releaseAuthors(ctx, s, o, env)
	switch {
	case err != nil:
		return err
	case unknown != nil:
		return newRefusal("who made the release, who may not skip its gates, can't be told: %v", unknown)
	case slices.ContainsFunc(authors, giver.Matches):
		return newRefusal("%s is an author of the release, so it takes a second person to skip a gate of it", o.By)
	}
	return nil
}
