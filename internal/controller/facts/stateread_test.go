package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// errAway is what a store answers that is away.
var errAway = errors.New("the database is away")

// awayStore is a store that is away.
type awayStore struct{}

func (awayStore) Record(context.Context, store.RecordKey) ([]byte, bool, error) {
	return nil, false, errAway
}

// TestStoreThatIsAway holds that a record that can't be read is an error and never nothing: nothing
// would mean that there is no hold, request or review.
func TestStoreThatIsAway(t *testing.T) {
	const repo = "hub:acme/fleet"
	ctx := t.Context()
	for name, read := range map[string]func() error{
		"holds":       func() error { _, err := ReadPullHolds(ctx, awayStore{}, repo, 7); return err },
		"requesters":  func() error { _, err := people.ReadRequesters(ctx, awayStore{}, repo, 7); return err },
		"comments":    func() error { _, err := ReadCommentsRead(ctx, awayStore{}, repo, 7); return err },
		"requests":    func() error { _, err := people.ReadReviewRequests(ctx, awayStore{}, repo, 7); return err },
		"the queue":   func() error { _, err := readJoinedQueue(ctx, awayStore{}, repo, 7, "h"); return err },
		"deployments": func() error { _, err := ReadDeployments(ctx, awayStore{}, promotion.Unit{Repo: repo}); return err },
	} {
		if err := read(); !errors.Is(err, errAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFirstKnown takes the first time that a forge told; none when it told none.
func TestFirstKnown(t *testing.T) {
	merged, updated := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
	for want, times := range map[time.Time][]time.Time{merged: {{}, merged, updated}, updated: {updated, merged}, {}: {{}, {}}} {
		if got := firstKnown(times...); !got.Equal(want) {
			t.Errorf("of %s it is %s", times, got)
		}
	}
}
