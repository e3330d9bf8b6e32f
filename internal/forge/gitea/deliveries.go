package gitea

import (
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// MissedDeliveries is ErrUnsupported: Gitea keeps a hook's deliveries for its own pages and has
// no call for them.
func (d *Driver) MissedDeliveries(_ context.Context, r forge.Repo, _ forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	return forge.MissedDeliveries{}, &forge.Error{Op: "list the deliveries of the webhook of " + r.String(), Kind: forge.ErrUnsupported,
		Message: "Gitea's API doesn't list them"}
}
