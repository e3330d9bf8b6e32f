package memoryforge

import (
	"context"
	"slices"
	"strconv"

	"github.com/liftlock/liftlock/internal/forge"
)

// maxMissed is how many missed deliveries a look reads.
const maxMissed = 100

// RecordMissedDelivery notes that a delivery to a repository's hook failed: nothing is delivered
// from here, so who plays the network says it.
func (f *Forge) RecordMissedDelivery(r forge.Repo, url string, d forge.MissedDelivery) error {
	admin := &call{Forge: f, ctx: context.Background(), op: "note a missed delivery of " + r.String(), mover: f.options.Bot}
	return admin.runAs(f.options.Bot, r, forge.PermissionAdmin, func(c *call) error {
		if _, ok := c.repo.hooks[url]; !ok {
			return c.failure(forge.ErrNotFound, "Not Found")
		}
		c.repo.missed[url] = append(c.repo.missed[url], d)
		return nil
	})
}

// MissedDeliveries are those that RecordMissedDelivery noted. The cursor is how many there were.
func (v *view) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (out forge.MissedDeliveries, err error) {
	err = v.forge.withRepository(ctx, "list the deliveries of the webhook of "+r.String(), v.login, r, forge.PermissionAdmin,
		func(c *call) error {
			if _, ok := c.repo.hooks[q.URL]; !ok {
				return c.failure(forge.ErrNotFound, "Not Found")
			}
			all := c.repo.missed[q.URL]
			after, err := strconv.Atoi(q.Cursor)
			if err != nil || after < 0 || after > len(all) {
				after = 0
			}
			fresh := all[after:]
			if len(fresh) > maxMissed {
				fresh, out.Incomplete = fresh[len(fresh)-maxMissed:], true
			}
			for _, d := range slices.Backward(fresh) {
				if !q.IsKnown(d.ID) && !slices.ContainsFunc(out.Deliveries, func(o forge.MissedDelivery) bool { return o.ID == d.ID }) {
					out.Deliveries = append(out.Deliveries, d)
				}
			}
			out.Cursor = strconv.Itoa(len(all))
			return nil
		})
	return out, err
}
