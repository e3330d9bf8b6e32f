package backtest

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

const (
	// mergeWindow is what limits.mergesPerHour counts over.
	mergeWindow = time.Hour
	// revertWindow is what limits.revertsPer10Minutes counts over.
	revertWindow = 10 * time.Minute
)

// usage is what is in use of a pipeline's limits. Groups that don't know of each other have one each.
type usage struct {
	version int         // rises with every change
	merges  []time.Time // oldest first
	opened  []openCount // likewise
	open    map[string]int
	reverts []openedRevert // oldest first
}

// openCount is a pull request that opened (1) or ended (-1).
type openCount struct {
	at  time.Time
	env string
	by  int
}

type openedRevert struct {
	at  time.Time
	env string
}

func newUsage() *usage { return &usage{open: map[string]int{}} }

func (u *usage) addMerge(at time.Time) {
	u.merges = append(u.merges, at)
	u.version++
}

func (u *usage) addRevert(at time.Time, env string) {
	u.reverts = append(u.reverts, openedRevert{at, env})
	u.version++
}

func (u *usage) addOpen(at time.Time, env string, by int) {
	u.opened = append(u.opened, openCount{at, env, by})
	u.open[env] += by
	u.version++
}

// limits is what is in use of the limits as a component's facts have it.
func (u *usage) limits(g *group, component *unitModel) promotion.Limits {
	var l promotion.Limits
	for i := len(u.merges) - 1; i >= 0 && g.now.Sub(u.merges[i]) < mergeWindow; i-- {
		l.MergesLastHour++
		l.OldestMerge = u.merges[i]
	}
	if component.rules != nil && !component.rules.batched {
		for env, n := range u.open {
			if p := g.openIn(env, false, component.script.unit.Component); p != nil {
				n--
			}
			if n > 0 {
				if l.OpenByOthers == nil {
					l.OpenByOthers = map[string]int{}
				}
				l.OpenByOthers[env] = n
			}
		}
	}
	for i := len(u.reverts) - 1; i >= 0 && g.now.Sub(u.reverts[i].at) <= 24*time.Hour; i-- {
		r := u.reverts[i]
		if component.revertsSince(r.env, g.now).Sub(r.at) > revertWindow {
			continue
		}
		if l.RevertsByEnv == nil {
			l.RevertsByEnv = map[string]int{}
		}
		l.RevertsByEnv[r.env]++
		l.OldestRecentRevert = r.at
	}
	return l
}

// revertsSince is when the window of reverts ends for a component: now or, where it is degraded, when
// it became so.
func (u *unitModel) revertsSince(env string, now time.Time) time.Time {
	e := u.env(env)
	if e == nil {
		return now
	}
	for i := range e.history {
		if a := &e.history[i]; a.Commit == e.landed.Commit && a.Release == e.release.ID && a.IsDegraded() {
			return a.DegradedAt
		}
	}
	return now
}

// reaches says whether several groups' usage may have reached a limit, so that one kept another
// waiting.
func reaches(all []*usage, limits []int) bool {
	var merges []time.Time
	var opened []openCount
	var reverts []openedRevert
	for _, s := range all {
		merges, opened, reverts = append(merges, s.merges...), append(opened, s.opened...), append(reverts, s.reverts...)
	}
	perEnvironment, perHour, per10Minutes := limits[0], limits[1], limits[2]
	slices.SortFunc(merges, time.Time.Compare)
	for i := range merges {
		if k := i - perHour; perHour > 0 && k >= 0 && merges[i].Sub(merges[k]) < mergeWindow {
			return true
		}
	}
	slices.SortStableFunc(opened, func(a, b openCount) int { return a.at.Compare(b.at) })
	open := map[string]int{}
	for _, o := range opened {
		if open[o.env] += o.by; perEnvironment > 0 && open[o.env] > perEnvironment {
			return true
		}
	}
	slices.SortFunc(reverts, func(a, b openedRevert) int { return a.at.Compare(b.at) })
	byEnv := map[string][]time.Time{}
	for _, r := range reverts {
		here := append(byEnv[r.env], r.at)
		byEnv[r.env] = here
		if k := len(here) - per10Minutes; per10Minutes > 0 && k >= 0 && r.at.Sub(here[k]) <= revertWindow {
			return true
		}
	}
	return false
}
