package gitea

import (
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// LeaveQueue is ErrUnsupported. Gitea has no merge queue; what is set to merge when its checks succeed isn't shown by its API.
func (d *Driver) LeaveQueue(_ context.Context, r forge.Repo, n int) error {
	return &forge.Error{Op: "take " + r.Number(n) + " out of the merge queue", Kind: forge.ErrUnsupported,
		Message: "Liftlock knows no merge queue of Gitea"}
}
