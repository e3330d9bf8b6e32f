package branch

import (
	"cmp"
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// RetryableError is why a call is worth another try as it is: what failed passes, or the run is over and
// found out nothing. nil where it succeeded, and where trying again at once can't help: that is an answer.
func RetryableError(ctx context.Context, err error) error {
	if forge.IsRetryable(err) || ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	return nil
}
