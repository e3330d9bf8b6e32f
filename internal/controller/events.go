package controller

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
	"github.com/liftlock/liftlock/webhooks"
)

// EventStore is the part of the store that an event needs: pull requests by their heads, and the
// units whose releases arrived by a commit, with their last decisions.
type EventStore interface {
	PullsAt(ctx context.Context, repo, head string) ([]store.Pull, error)
	UnitsArrivedBy(ctx context.Context, commit string, limit int) ([]string, error)
	Unit(ctx context.Context, key string) (store.Unit, bool, error)
}

// KeysOfEvent says where a verified event about a repository of ours makes us look again. It only
// ever widens: an event that says too little wakes the whole repository. botLogin is our own
// account, empty while it isn't known.
func KeysOfEvent(ctx context.Context, st EventStore, repo, botLogin string, ev *webhooks.Event) []wake.Key {
	if isOwnAction(botLogin, ev) {
		return nil
	}
	switch ev.Kind {
	case webhooks.Push:
		if _, is := baseOfMergeGroup(ev.Branch); is && ev.Forge == webhooks.GitHub {
			if ev.Deleted {
				return nil
			}
			return []wake.Key{wake.ForMergeGroup(repo, ev.Branch)}
		}
		return []wake.Key{wake.ForRepository(repo)}
	case webhooks.Repository:
		return []wake.Key{wake.ForRepository(repo), wake.ForSweep(repo)}
	case webhooks.PullRequest, webhooks.Review, webhooks.Comment:
		if ev.Number > 0 {
			return []wake.Key{wake.ForPull(repo, ev.Number)}
		}
		return []wake.Key{wake.ForSweep(repo)}
	case webhooks.Rules:
		return []wake.Key{wake.ForRules(repo)}
	case webhooks.Status:
		return keysOfStatus(ctx, st, repo, ev.Commit)
	}
	return nil
}

// isOwnAction says that an event is about an action of ours, which was evaluated when it was done.
// Pushes are evaluated again. Of statuses only the one of our name is ours: a build job may have
// our account, and the forge names us for the checks of what we pushed.
func isOwnAction(botLogin string, ev *webhooks.Event) bool {
	if botLogin == "" || ev.Sender != botLogin {
		return false
	}
	switch ev.Kind {
	case webhooks.Push:
		return false
	case webhooks.Status:
		return ev.Context == act.StatusContext
	}
	return true
}

// RecordsOfEvent are the store's records of an event about a repository of ours until its keys run;
// none: nothing. After a comment was written or deleted the comments are read, however many the
// forge counts then. After GitHub reports that a pull request joined or left a merge queue, each is
// read with its place in one.
func RecordsOfEvent(repo, botLogin string, ev *webhooks.Event) ([]store.Record, error) {
	var r store.Record
	var err error
	switch {
	case ev.Kind == webhooks.Comment && ev.Number > 0 && (botLogin == "" || ev.Sender != botLogin):
		r, err = facts.UnreadComments.Encode(record.OfPull(repo, ev.Number), ev.Delivery)
	case ev.Kind == webhooks.PullRequest && ev.Forge == webhooks.GitHub && (ev.Action == "enqueued" || ev.Action == "dequeued"):
		r, err = facts.MergesByQueue.Encode(record.Repository(repo), true)
	default:
		return nil, nil
	}
	return []store.Record{r}, err
}

// UrgencyOfEvent says how urgent the keys of an event are: what people say, and what
// the forge says of pull requests, may hold or release a merge.
func UrgencyOfEvent(ev *webhooks.Event) store.Urgency {
	if _, group := baseOfMergeGroup(ev.Branch); ev.Kind == webhooks.Push && !group || ev.Kind == webhooks.Installation {
		return store.Normal
	}
	return store.Urgent
}

// keysOfStatus finds our open pull requests that a status may concern. They have that head, or wait
// for the checks on the commit by which their release landed before.
func keysOfStatus(ctx context.Context, st EventStore, repo, commit string) []wake.Key {
	if commit == "" {
		return nil
	}
	rows, err := st.PullsAt(ctx, repo, commit)
	if err != nil {
		return []wake.Key{wake.ForSweep(repo)}
	}
	var keys []wake.Key
	for _, row := range rows {
		if row.ClosedAt.IsZero() {
			keys = append(keys, wake.ForPull(repo, row.Number))
		}
	}
	units, err := st.UnitsArrivedBy(ctx, commit, maxUnitsOfStatus+1)
	if err != nil {
		return []wake.Key{wake.ForSweep(repo)}
	}
	if len(units) > maxUnitsOfStatus {
		return append(keys, wake.ForChecks(repo, commit))
	}
	of, err := keysOfChecked(ctx, st, repo, units)
	if err != nil {
		return []wake.Key{wake.ForSweep(repo)}
	}
	for _, key := range of {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// maxUnitsOfStatus bounds the units that are read for waiting checks before a status's delivery is
// answered. For more, which came by one push, a run reads them.
const maxUnitsOfStatus = 8

// keysOfChecked are the open promotions of units that have a gate of checks.
func keysOfChecked(ctx context.Context, st EventStore, repo string, units []string) ([]wake.Key, error) {
	var keys []wake.Key
	for _, unit := range units {
		row, known, err := st.Unit(ctx, unit)
		if err != nil {
			return nil, err
		}
		if !known || row.Repo != repo {
			continue
		}
		for _, number := range listCheckedPulls(row.Data) {
			keys = append(keys, wake.ForPull(repo, number))
		}
	}
	return keys, nil
}

// runChecks wakes what the statuses of a commit concern that many components arrived by.
func (co *Controller) runChecks(ctx context.Context, r *Repository, commit string) error {
	units, err := co.opts.Store.UnitsArrivedBy(ctx, commit, store.MaxUnitsArrivedBy)
	if err != nil {
		return err
	}
	keys, err := keysOfChecked(ctx, co.opts.Store, r.ID, units)
	if err != nil {
		return err
	}
	if len(units) == store.MaxUnitsArrivedBy {
		keys = append(keys, wake.ForSweep(r.ID)) // there may be more
	}
	return co.opts.Store.WakeAs(ctx, store.Urgent, wake.Strings(keys...)...)
}

// listCheckedPulls lists the open promotions of a unit, by its last decision, that have a gate of
// checks. Whether it passes or not, a check may change that.
func listCheckedPulls(view []byte) []int {
	var v stored.Unit
	if json.Unmarshal(view, &v) != nil {
		return nil // it is written again with the next look
	}
	var out []int
	for _, st := range v.Decision.Envs {
		if st.Pull != 0 && slices.ContainsFunc(st.Gates, func(g policies.Result) bool { return g.Gate == policies.GateChecks }) {
			out = append(out, st.Pull)
		}
	}
	return out
}
