package plan

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// noPulls is a forge on which there has never been a pull request. Nothing else is
// asked of it.
type noPulls struct{ forge.Forge }

func (noPulls) PullRequests(context.Context, forge.Repo, time.Time) ([]forge.PullRequest, error) {
	return nil, nil
}

// HasDeployments is true: nothing is said of what the forge lacks.
func (noPulls) HasDeployments() bool { return true }

// newStore is a store as a server finds it that has never run. Writes are not kept: nothing is
// evaluated twice. Our pull requests and commands are never read, because there are none.
type newStore struct{ facts.Store }

func (newStore) OpenPulls(context.Context, string, string) ([]store.Pull, error) { return nil, nil }
func (newStore) UnsettledPulls(context.Context, string, string, ...store.PullsByRules) ([]store.Pull, error) {
	return nil, nil
}
func (newStore) PullsAt(context.Context, string, string) ([]store.Pull, error) { return nil, nil }
func (newStore) PullsMergedAs(context.Context, string, string) ([]store.Pull, error) {
	return nil, nil
}
func (newStore) RevertPulls(context.Context, string, string, time.Time) ([]store.Pull, error) {
	return nil, nil
}
func (newStore) PullUsage(context.Context, string, string, string, string, string, time.Time) (store.PullUsage, error) {
	return store.PullUsage{OpenByEnv: map[string]int{}}, nil
}
func (newStore) NewestPastPulls(context.Context, store.PastPlace, ...string) ([]store.PastPull, error) {
	return nil, nil
}
func (newStore) RestrainingPulls(context.Context, store.PastPlace, ...string) ([]store.PastPull, error) {
	return nil, nil
}
func (newStore) MergedPulls(context.Context, store.PastPlace, ...string) ([]store.PastPull, error) {
	return nil, nil
}
func (newStore) PullThatMoved(context.Context, string, string, string, string, string, int) (int, bool, error) {
	return 0, false, nil
}
func (newStore) PullCursor(context.Context, string) (time.Time, error)     { return time.Time{}, nil }
func (newStore) Tx(context.Context, string, func(*store.Tx) error) error   { return nil }
func (newStore) Arrivals(context.Context, string) ([]store.Arrival, error) { return nil, nil }
func (newStore) OlderArrivals(context.Context, string, ...string) ([]store.Arrival, error) {
	return nil, nil
}
func (newStore) ArrivalsVersion(context.Context, string) (int64, error) { return 0, nil }
func (newStore) PastPullsVersion(context.Context, string, string, string) (int64, error) {
	return 0, nil
}
func (newStore) MergeQueue(context.Context, string) ([]string, error) { return nil, nil }
func (newStore) Record(context.Context, store.RecordKey) ([]byte, bool, error) {
	return nil, false, nil
}
func (newStore) Records(context.Context, store.RecordFilter) ([]store.Record, error) { return nil, nil }
func (newStore) Observations(context.Context, string) ([]store.Observation, error) {
	return nil, nil
}
func (newStore) PendingCommands(context.Context, string) ([]store.PendingCommand, error) {
	return nil, nil
}
