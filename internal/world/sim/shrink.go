package sim

import (
	"context"
	"maps"
)

// Shrink leaves out of a world that breaks a rule what it doesn't need to break it, and
// gives what is left out. It runs the world up to tries times.
func Shrink(ctx context.Context, o Options, rule string, acts, tries int) (map[int]bool, error) {
	o.Story = nil
	without := maps.Clone(o.Without)
	if without == nil {
		without = map[int]bool{}
	}
	attempt := func(trial map[int]bool) (bool, error) {
		tries--
		o.Without = trial
		res, err := Run(ctx, o)
		return err == nil && res.Broken != nil && res.Broken.Rule == rule, err
	}
	for _, fault := range []int{WithoutCrashes, WithoutSlowness, WithoutLostAnswers, WithoutFailures, WithoutInsiders, WithoutFreezes,
		WithoutNextReleases} {
		trial := maps.Clone(without)
		trial[fault] = true
		if ok, err := attempt(trial); err != nil {
			return without, err
		} else if ok {
			without = trial
		}
	}
	for size := max(acts/2, 1); size >= 1; size /= 2 {
		for from := 0; from < acts; from += size {
			if tries <= 0 || ctx.Err() != nil {
				return without, ctx.Err()
			}
			trial := maps.Clone(without)
			for n := from; n < min(from+size, acts); n++ {
				trial[n] = true
			}
			if len(trial) == len(without) {
				continue
			}
			if ok, err := attempt(trial); err != nil {
				return without, err
			} else if ok {
				without = trial
			}
		}
	}
	return without, nil
}
