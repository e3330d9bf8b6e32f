package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// recordGatherer says what the store has of promotions: their records, the queue for
// places, and what is in use of limits.
type recordGatherer struct {
	store   recordStore
	pulls   *pullGatherer
	argocds *branch.ArgoCDs
}

// recordStore is what is read of the store for that.
type recordStore interface {
	Promotions(ctx context.Context, f store.PromotionFilter) ([]store.Promotion, error)
	Pull(ctx context.Context, repo string, number int) (store.Pull, bool, error)
	PullUsage(ctx context.Context, repo, pipeline, author, component, branchPrefix string, since time.Time) (store.PullUsage, error)
	RevertPulls(ctx context.Context, repo, pipeline string, since time.Time) ([]store.Pull, error)
	record.Reader
	record.Lister
	Unit(ctx context.Context, key string) (store.Unit, bool, error)
}

// The words of a record that are no state of a promotion's own.
const (
	recordMerged     = "merged"
	recordSuperseded = "superseded"
)

// IsRecordOfMerge says that a record is of a pull request that was merged, whatever became of it since.
func IsRecordOfMerge(p *store.Promotion) bool {
	return p.State != promotion.Opened && p.State != promotion.Closed && p.State != recordSuperseded
}

// ListChanged are the records of our pull requests, and the events of their lives, in which the store
// differs from the forge. A process may have died between a write to the forge and its record,
// people merge and close, and the store itself may have been lost. They are oldest first; none when
// all is as it should be.
func (rg *recordGatherer) ListChanged(ctx context.Context, c *ComponentEvaluation) ([]store.Promotion, []store.Event, error) {
	known, err := rg.knownRecords(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	var rows []store.Promotion
	var events []store.Event
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		listed := map[int]bool{}
		for _, own := range c.memberPulls(env) {
			pr := &own.PR
			listed[pr.Number] = true
			if !own.isOurs(c.Snapshot.Repo) {
				continue
			}
			was := known[pr.Number]
			now := c.buildRecord(env, pr, was)
			if now.State == was.State && now.Release == was.Release && now.Kind == was.Kind {
				continue
			}
			rows = append(rows, now)
			events = append(events, c.recordEvents(env, pr, now)...)
			if was.State == promotion.Opened && IsRecordOfMerge(&now) {
				merged, err := rg.addMerge(ctx, c, env.Name, pr, now)
				if err != nil {
					return nil, nil, err
				}
				events = append(events, merged...)
			}
		}
		for k := range env.PastPulls { // settled long ago: only whether it was reverted may be news
			p := &env.PastPulls[k]
			was, is := known[p.Number]
			if state := mergedState(env, p.Number, was, was.State); is && !listed[p.Number] && p.Merged && state != was.State {
				was.State, was.UpdatedAt = state, c.Facts.Now
				rows = append(rows, was)
			}
		}
	}
	rows = append(rows, c.supersededRecords(known)...)
	slices.SortFunc(rows, func(a, b store.Promotion) int { return a.Pull - b.Pull })
	return rows, events, nil
}

// addMerge adds to the evaluation what is to be kept of a merge that was just seen, which
// isn't on record, and gives what is to be told of it.
func (rg *recordGatherer) addMerge(ctx context.Context, c *ComponentEvaluation, env string, pr *forge.PullRequest,
	now store.Promotion) ([]store.Event, error) {
	pr, err := rg.withMerger(ctx, c, pr)
	if err != nil || pr.State != forge.Merged {
		return nil, err
	}
	entry, err := rg.findMerge(ctx, c, env, pr, now)
	if err != nil {
		return nil, err
	}
	c.Merges = append(c.Merges, entry)
	if now.Kind != promotion.KindPromotion {
		return nil, nil
	}
	past, err := rg.findUngated(ctx, c, env, pr)
	if err != nil || past == nil {
		return nil, err
	}
	c.Ungated = append(c.Ungated, *past)
	return []store.Event{ungatedEvent(c, env, past)}, nil
}

// knownRecords are the records of the pull requests that the facts name, by number.
func (rg *recordGatherer) knownRecords(ctx context.Context, c *ComponentEvaluation) (map[int]store.Promotion, error) {
	numbers := map[int]bool{}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for _, own := range c.memberPulls(env) {
			numbers[own.PR.Number] = true
		}
		for k := range env.PastPulls {
			numbers[env.PastPulls[k].Number] = true
		}
		if env.BatchPull != nil {
			numbers[env.BatchPull.Number] = true
		}
	}
	out := make(map[int]store.Promotion, len(numbers))
	for some := range slices.Chunk(slices.Sorted(maps.Keys(numbers)), maxKnownRecords) {
		rows, err := rg.store.Promotions(ctx, store.PromotionFilter{Unit: wake.UnitName(c.Facts.Unit), Repo: c.Facts.Unit.Repo, Pulls: some,
			Limit: maxKnownRecords})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			out[row.Pull] = row
		}
	}
	return out, nil
}

// supersededRecords are the records of open pull requests of several that the component is no
// longer in: it left them, or something newer took its place in another one.
func (c *ComponentEvaluation) supersededRecords(known map[int]store.Promotion) []store.Promotion {
	var out []store.Promotion
	for _, was := range known {
		if was.State != promotion.Opened || was.Kind != promotion.KindPromotion {
			continue
		}
		for i := range c.Facts.Envs {
			env := &c.Facts.Envs[i]
			if t := env.BatchPull; t != nil && t.Number == was.Pull && t.HeadState != promotion.HeadModified {
				was.State, was.UpdatedAt = recordSuperseded, c.Facts.Now
				out = append(out, was)
			}
		}
	}
	return out
}

// maxKnownRecords bounds how many records are asked for at once.
const maxKnownRecords = 1000

// buildRecord is what the store should say of a pull request of ours; was is what it
// says, zero when it says nothing.
func (c *ComponentEvaluation) buildRecord(env *promotion.Env, pr *forge.PullRequest, was store.Promotion) store.Promotion {
	u := c.Facts.Unit
	ref, _ := promotion.ParseBranch(pr.Branch)
	now := store.Promotion{Unit: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name,
		Kind: promotion.KindPromotion, Pull: pr.Number, CreatedAt: pr.CreatedAt, UpdatedAt: c.Facts.Now, Data: was.Data}
	if ref.Revert {
		now.Kind = promotion.KindRevert
	}
	now.Release = pullRelease(env, pr.Number)
	if len(now.Release) < len(was.Release) { // unknown, or known only in short
		now.Release = was.Release
	}
	switch {
	case pr.State == forge.Open:
		now.State = promotion.Opened
	case pr.State == forge.Merged && !isOnOtherBranch(env, pr):
		now.State = mergedState(env, pr.Number, now, was.State)
	case was.State == recordSuperseded || isSuperseded(env, pr.Number):
		now.State = recordSuperseded
	default:
		now.State = promotion.Closed
	}
	if was.State == "" && pr.State != forge.Open {
		now.UpdatedAt = pr.ClosedAt
	}
	return now
}

// isOnOtherBranch says that a merged pull request landed on another branch than the environment's.
func isOnOtherBranch(env *promotion.Env, pr *forge.PullRequest) bool {
	return slices.ContainsFunc(env.PastPulls, func(p promotion.PastPull) bool {
		return p.Number == pr.Number && !p.Merged && (p.OnOtherBranch || p.Superseded)
	})
}

func isSuperseded(env *promotion.Env, number int) bool {
	return slices.ContainsFunc(env.PastPulls, func(p promotion.PastPull) bool { return p.Number == number && p.Superseded })
}

func pullRelease(env *promotion.Env, number int) string {
	for _, p := range []*promotion.Pull{env.Open, env.Revert} {
		if p != nil && p.Number == number {
			return p.Release
		}
	}
	for i := range env.PastPulls {
		if env.PastPulls[i].Number == number {
			return env.PastPulls[i].Release
		}
	}
	return ""
}

// mergedState says how what was merged has gone on: reverted, being
// reverted, or as its verification says while it is what the environment carries.
func mergedState(env *promotion.Env, number int, now store.Promotion, was string) string {
	if now.Kind == promotion.KindPromotion && now.Release != "" {
		if env.Revert != nil && findRevertedPull(env, env.Revert.Number, env.Revert.Release) == number {
			return promotion.Reverting
		}
		for i := range env.PastPulls {
			if p := &env.PastPulls[i]; p.Revert && p.Merged && findRevertedPull(env, p.Number, p.Release) == number {
				return promotion.Reverted
			}
		}
	}
	if env.Landed.OK && env.Landed.Value.Pull == number {
		for i := range env.History {
			h := &env.History[i]
			switch {
			case h.Commit != env.Landed.Value.Commit || h.Release != env.Release.Value.ID:
			case h.IsDegraded():
				return promotion.Degraded
			case !h.VerifiedAt.IsZero():
				return promotion.Verified
			}
		}
		return recordMerged
	}
	if was == promotion.Verified || was == promotion.Degraded {
		return was
	}
	return recordMerged
}

// findRevertedPull is the promotion that a revert reverts: the last with its release
// that was merged before it; 0 when none is known.
func findRevertedPull(env *promotion.Env, revert int, release string) int {
	of := 0
	for i := range env.PastPulls {
		p := &env.PastPulls[i]
		if p.Revert || !p.Merged || p.Number <= of || p.Number >= revert {
			continue
		}
		if p.Release != "" && wording.Short(p.Release) == wording.Short(release) {
			of = p.Number
		}
	}
	return of
}

// recordEvents are the events that a record stands for, each written once however often
// it is reported.
func (c *ComponentEvaluation) recordEvents(env *promotion.Env, pr *forge.PullRequest, now store.Promotion) []store.Event {
	u := c.Facts.Unit
	newEvent := func(kind event.Kind, at time.Time, format string, args ...any) store.Event {
		return store.Event{At: at, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name,
			Pull: pr.Number, Kind: kind,
			Message: fmt.Sprintf("#%d "+format, append([]any{pr.Number}, args...)...)}
	}
	opened := newEvent(event.Opened, pr.CreatedAt, "opened: %s", pr.Title)
	if now.Kind == promotion.KindRevert {
		opened.Kind = event.RevertOpened
	}
	opened.IdempotencyKey = OpenedEventKey(u, pr.Number)
	out := []store.Event{opened}
	switch {
	case pr.State == forge.Merged && !IsRecordOfMerge(&now):
		closed := newEvent(event.Closed, pr.MergedAt, "merged into %s, which isn't the branch of %s: nothing landed there", pr.Base,
			env.Name)
		closed.IdempotencyKey = ClosedEventKey(u, pr.Number, pr.Head)
		out = append(out, closed)
	case pr.State == forge.Merged:
		merged := newEvent(event.Merged, pr.MergedAt, "merged into %s as %s", pr.Base, wording.Short(pr.MergeCommit))
		merged.IdempotencyKey = MergedEventKey(u, pr.Number)
		out = append(out, merged)
	case pr.State == forge.Closed:
		closed := newEvent(event.Closed, pr.ClosedAt, "closed without a merge")
		closed.IdempotencyKey = ClosedEventKey(u, pr.Number, pr.Head)
		out = append(out, closed)
	}
	return out
}

// OpenedEventKey names the event that a pull request was opened, in a component's life.
func OpenedEventKey(u promotion.Unit, pull int) string { return eventKey(event.Opened, u, pull) }

// MergedEventKey names the event that it was merged.
func MergedEventKey(u promotion.Unit, pull int) string { return eventKey(event.Merged, u, pull) }

// ClosedEventKey names the event that it was closed with a head; it may be opened again.
func ClosedEventKey(u promotion.Unit, pull int, head string) string {
	return eventKey(event.Closed, u, pull) + "|" + head
}

func eventKey(what event.Kind, u promotion.Unit, pull int) string {
	return fmt.Sprintf("%s|%s|%s|%d", what, u.Repo, u.Component, pull)
}
