package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// imagePushes are when registries last told of pushes. Lists of tags that are older don't count.
var imagePushes = record.Declare[record.Repository, time.Time](record.Declaration{
	Name: "image-pushed", Owner: "controller", Lifetime: record.Lasting,
	Doc: "When a registry last told of a push to an image that the repository's rules are about.",
})

// pushPause is the least time between two looks for registries' word: one push has many events.
const pushPause = 2 * time.Second

// ImagePushed has new versions looked for in the repositories whose rules are about one of the images, given in all
// spellings of their names without tags. It is a hint: what is there is read from the registry. The error is the store's.
func (co *Controller) ImagePushed(ctx context.Context, images []string) error {
	if co.opts.Versions == nil {
		return nil
	}
	for _, r := range co.repositories() {
		co.mu.Lock()
		s := co.lastLooks[r.ID].snapshot
		co.mu.Unlock()
		if s == nil || !discoversImage(s, images) {
			continue // one that wasn't looked at yet looks for new versions then
		}
		about := record.Repository(r.ID)
		now := co.opts.Clock.Now()
		last, is, err := imagePushes.Get(ctx, co.opts.Store, about)
		if err != nil {
			return fmt.Errorf("read when an image of %s was pushed last: %w", r.ID, err)
		}
		at := now
		if is && now.Sub(last) < pushPause {
			at = last.Add(pushPause)
		}
		err = co.opts.Store.Tx(ctx, "image pushed", func(tx *store.Tx) error {
			if err := imagePushes.Put(ctx, tx, about, now); err != nil {
				return err
			}
			return tx.WakeAt(ctx, at, wake.ForDiscovery(r.ID).String())
		})
		if err != nil {
			return fmt.Errorf("look for new versions for %s: %w", r.ID, err)
		}
	}
	return nil
}

// discoversImage says that a rule may be about one of the images, or about a chart of that name.
func discoversImage(s *branch.Snapshot, images []string) bool {
	for _, p := range s.Pipelines {
		for i := range p.Spec.Environments {
			for k := range p.Spec.Environments[i].Discover {
				if namesImage(&p.Spec.Environments[i].Discover[k], images) {
					return true
				}
			}
		}
	}
	return false
}

func namesImage(d *pipeline.Discovery, images []string) bool {
	for _, image := range images {
		if d.MatchesImage(image) || d.MatchesChart("oci://"+image) {
			return true
		}
	}
	return false
}

// listAge is how old a list of tags may be: half the interval, and not older than the last push that is known of.
func (co *Controller) listAge(ctx context.Context, r *Repository) (time.Duration, error) {
	age := r.DiscoverInterval / 2
	pushed, is, err := imagePushes.Get(ctx, co.opts.Store, record.Repository(r.ID))
	if err != nil {
		return 0, err
	}
	if since := co.opts.Clock.Now().Sub(pushed); is && since < age {
		age = max(since-time.Nanosecond, 0)
	}
	return age, nil
}
