package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// A component's history is long and changes seldom, and every look reads it. A reading is
// remembered as long as the store says that it is the same. The version is read before it, so that
// the remembered reading is never older than its version.

// rememberedArrivals are a unit's.
type rememberedArrivals struct {
	version  int64
	byEnv    map[string][]promotion.Arrival // newest first
	contents map[string]fieldedit.Release   // what their releases carry, by identity
	bytes    int64                          // of the rows, about
	older    bool                           // there may be more than these
}

// olderArrivals are those of a unit that the store answered last, which aren't among its recent ones.
type olderArrivals struct {
	version int64
	about   string
	known   *rememberedArrivals
}

func newOlderArrivals(group *cache.Group) *cache.Cache[string, olderArrivals] {
	return cache.New(group, cache.Options[string, olderArrivals]{Name: "older_arrivals", Entries: branch.MaxDecodedRows,
		Bytes: branch.MaxDecodedBytes,
		Size:  func(_ string, r olderArrivals) int64 { return int64(len(r.about)) + r.known.bytes }})
}

// completeHistory adds to a component's history where the releases that a decision may be about arrived
// longer ago than what every look reads: what was said of them then holds.
func (ga *Gatherer) completeHistory(ctx context.Context, c *ComponentEvaluation) error {
	if !c.olderArrivals {
		return nil
	}
	releases := map[string]bool{}
	for _, p := range c.Facts.PendingCommands {
		releases[p.Release] = true
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		releases[env.Release.Value.ID] = true
		for k := range env.History {
			releases[env.History[k].Release] = true
		}
		for _, p := range []*promotion.Pull{env.Open, env.WrongKind} {
			if p != nil {
				releases[p.Release] = true
			}
		}
	}
	delete(releases, "")
	known, err := ga.readOlderArrivals(ctx, c, slices.Sorted(maps.Keys(releases)))
	if err != nil {
		return err
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		env.History = slices.Concat(env.History, known.byEnv[env.Name])
	}
	return nil
}

func (ga *Gatherer) readOlderArrivals(ctx context.Context, c *ComponentEvaluation, releases []string) (*rememberedArrivals, error) {
	unit, about := wake.UnitName(c.Facts.Unit), strings.Join(releases, "|")
	last, ok := ga.older.Get(unit)
	if !ok || last.version != c.arrivalsVersion || last.about != about {
		rows, err := ga.opts.Store.OlderArrivals(ctx, unit, releases...)
		if err != nil {
			return nil, err
		}
		last = olderArrivals{version: c.arrivalsVersion, about: about}
		if last.known, err = ga.decodeArrivals(c.arrivalsVersion, rows); err != nil {
			return nil, err
		}
		ga.older.Put(unit, last)
	}
	maps.Copy(c.Contents, last.known.contents)
	return last.known, nil
}

func newRememberedArrivals(group *cache.Group) *cache.Cache[string, *rememberedArrivals] {
	return cache.New(group, cache.Options[string, *rememberedArrivals]{Name: "arrivals", Entries: branch.MaxDecodedRows,
		Bytes: branch.MaxDecodedBytes,
		Size:  func(_ string, r *rememberedArrivals) int64 { return r.bytes }})
}

// readArrivals reads a unit's history by environment, newest first.
func (ga *Gatherer) readArrivals(ctx context.Context, c *ComponentEvaluation) (map[string][]promotion.Arrival, error) {
	unit := wake.UnitName(c.Facts.Unit)
	version, err := ga.opts.Store.ArrivalsVersion(ctx, unit)
	if err != nil {
		return nil, err
	}
	known, ok := ga.arrivals.Get(unit)
	if !ok || known.version != version {
		rows, err := ga.opts.Store.Arrivals(ctx, unit)
		if err != nil {
			return nil, err
		}
		if known, err = ga.decodeArrivals(version, rows); err != nil {
			return nil, err
		}
		ga.arrivals.Put(unit, known)
	}
	c.arrivalsVersion, c.olderArrivals = known.version, known.older
	maps.Copy(c.Contents, known.contents)
	own := make(map[string][]promotion.Arrival, len(known.byEnv)) // what is decided is written into it
	for env, arrivals := range known.byEnv {
		own[env] = slices.Clone(arrivals)
	}
	return own, nil
}

func (ga *Gatherer) decodeArrivals(version int64, rows []store.Arrival) (*rememberedArrivals, error) {
	r := &rememberedArrivals{version: version, byEnv: map[string][]promotion.Arrival{}, contents: map[string]fieldedit.Release{}}
	for _, row := range rows {
		d, err := ga.arrivalRows.Decode(row.Data)
		if err != nil {
			return nil, fmt.Errorf("read what arrived in %s of %s from the store: %w", row.Environment, row.Unit, err)
		}
		r.bytes += 2*int64(len(row.Data)) + rowBytes
		r.contents[d.release.ID] = d.Content
		r.byEnv[row.Environment] = append(r.byEnv[row.Environment], promotion.Arrival{Seq: row.Seq, Release: row.Release,
			Name:   d.release.Name,
			Commit: row.Commit, By: d.By, Author: d.Author, Pull: d.Pull, At: row.At, VerifiedAt: row.VerifiedAt,
			DegradedAt: row.DegradedAt, WithdrawnAt: row.WithdrawnAt, Soak: d.Soak})
		r.older = r.older || len(r.byEnv[row.Environment]) >= store.RecentArrivals
	}
	return r, nil
}

// rowBytes is about what a row takes besides its text.
const rowBytes = 512

// pastQuestion is one of the questions about a component's closed pull requests: which
// are the newest in environments, or about releases in short.
type pastQuestion struct {
	name string
	read func(s pullStore, ctx context.Context, at store.PastPlace, names ...string) ([]store.PastPull, error)
}

func newestPulls() pastQuestion      { return pastQuestion{"newest", pullStore.NewestPastPulls} }
func restrainingPulls() pastQuestion { return pastQuestion{"restraining", pullStore.RestrainingPulls} }
func mergedPulls() pastQuestion      { return pastQuestion{"merged", pullStore.MergedPulls} }

// pastAnswer is what the store answered last to one of them.
type pastAnswer struct {
	version int64
	about   string
	rows    []store.PastPull
}

func newPastAnswers(group *cache.Group) *cache.Cache[string, pastAnswer] {
	return cache.New(group, cache.Options[string, pastAnswer]{Name: "closed_pull_requests", Entries: branch.MaxDecodedRows,
		Bytes: branch.MaxDecodedBytes,
		Size:  func(_ string, a pastAnswer) int64 { return int64(len(a.about) + rowBytes*(1+len(a.rows))) }})
}

// readPast reads the answer to a question about a component's closed pull requests. Its result is
// shared: no caller changes it.
func (pg *pullGatherer) readPast(ctx context.Context, c *ComponentEvaluation, q pastQuestion, names []string) ([]store.PastPull, error) {
	at := c.pastLocation()
	key := strings.Join([]string{at.Repo, at.Pipeline, at.Component, q.name}, "|")
	about := strings.Join(at.Rules, "|") + "\n" + strings.Join(names, "|")
	if known, ok := pg.past.Get(key); ok && known.version == c.pastVersion && known.about == about {
		return known.rows, nil
	}
	rows, err := q.read(pg.store, ctx, at, names...)
	if err != nil {
		return nil, err
	}
	rows = slices.Clip(rows)
	pg.past.Put(key, pastAnswer{version: c.pastVersion, about: about, rows: rows})
	return rows, nil
}
