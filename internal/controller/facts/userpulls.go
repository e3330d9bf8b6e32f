package facts

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/store"
)

// ShownKey is the store's key of what was last written on a pull request, ours or not; number 0: on
// the tracked branch.
func ShownKey(repo string, number int) string { return fmt.Sprintf("shown|%s|%d", repo, number) }

// ForgetUserPull forgets what was read of a person's own pull request and written on it, as that is
// closed. Where it is opened again our comment is found on it.
func ForgetUserPull(ctx context.Context, tx *store.Tx, repo string, number int) error {
	for _, key := range []string{ShownKey(repo, number), commentsKey(repo, number), UnreadCommentsKey(repo, number)} {
		if err := tx.DeleteState(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
