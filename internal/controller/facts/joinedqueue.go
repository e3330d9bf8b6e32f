package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/store"
)

// joinedQueue is which head of a pull request Liftlock had join the forge's merge queue, and when.
type joinedQueue struct {
	Head string    `json:"head"`
	At   time.Time `json:"at"`
}

// JoinedQueueKey is the store's key of that a pull request joined the forge's merge queue: kept
// nowhere else, so that without the database what the forge dropped joins once more.
func JoinedQueueKey(repo string, pull int) string { return fmt.Sprintf("joined|%s|%d", repo, pull) }

// MergesByQueueKey is the store's key of that merges into a repository go through the forge's merge
// queue, as far as that was seen: then each of its pull requests is read with how it stands to it.
func MergesByQueueKey(repo string) string { return "merges-by-queue|" + repo }

// PutJoinedQueue notes that Liftlock had a head join the forge's merge queue: when it is no longer
// there and hasn't landed, the forge or a person took it out.
func PutJoinedQueue(ctx context.Context, tx *store.Tx, repo string, pull int, head string, at time.Time) error {
	raw, err := json.Marshal(joinedQueue{head, at})
	if err != nil {
		return fmt.Errorf("note that #%d joined the forge's merge queue: %w", pull, err)
	}
	if err := tx.PutState(ctx, MergesByQueueKey(repo), nil); err != nil {
		return err
	}
	return tx.PutState(ctx, JoinedQueueKey(repo, pull), raw)
}

// readJoinedQueue is when Liftlock had a head join the forge's merge queue; zero where it didn't,
// where another head did, and where that can't be understood.
func readJoinedQueue(ctx context.Context, s StateReader, repo string, pull int, head string) (time.Time, error) {
	raw, ok, err := s.State(ctx, JoinedQueueKey(repo, pull))
	var joined joinedQueue
	if err != nil || !ok || json.Unmarshal(raw, &joined) != nil || joined.Head != head {
		return time.Time{}, err
	}
	return joined.At, nil
}
