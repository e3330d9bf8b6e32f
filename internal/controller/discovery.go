package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Versions says which tags and versions there are, as lists that are no older than maxAge have them.
type Versions func(maxAge time.Duration) discovery.Source

const (
	// discoveryTries bounds how often a commit is composed anew when others push at the same moment.
	discoveryTries = 5
	// unfinishedDelay is when a look goes on that didn't get through all tags.
	unfinishedDelay = 10 * time.Second
	// spreadShare is the part of the interval over which the looks of several repositories are spread: one of so many.
	spreadShare = 10
)

// discoveryPlace is a component in a source environment.
type discoveryPlace struct {
	unit        promotion.Unit
	environment string
}

// runDiscovery looks for new tags and versions for all source environments of a repository, and commits what comes in by
// itself. One component's failure delays no other.
func (co *Controller) runDiscovery(ctx context.Context, r *Repository) (time.Time, error) {
	if co.opts.Versions == nil {
		return time.Time{}, nil
	}
	if err := co.ensureFresh(ctx, r); err != nil {
		return time.Time{}, err
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	places := discoveryPlaces(s)
	available, err := co.readAvailable(ctx, r, places)
	if err != nil || len(places) == 0 {
		return time.Time{}, err // the look that finds one wakes this key
	}
	next := co.opts.Clock.Now().Add(spreadInterval(r))
	if s.PipelineErr != "" {
		return next, nil // rules that can't be read bring nothing in
	}
	var errs []error
	var last lastGathered
	for _, at := range places {
		unfinished, err := co.discoverAt(ctx, r, at, available[at], &last)
		if ctx.Err() != nil {
			return time.Time{}, ctx.Err()
		}
		if soon := co.opts.Clock.Now().Add(unfinishedDelay); unfinished {
			next = branch.Earliest(next, soon)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("look for new versions of %s for %s: %w", at.unit.Component, at.environment, err))
		}
	}
	return next, errors.Join(errs...)
}

// spreadInterval is how long it is to the next look: the repositories' looks don't all come at one moment.
func spreadInterval(r *Repository) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.ID)) // it never fails
	part := r.DiscoverInterval / spreadShare
	if part <= 0 {
		return r.DiscoverInterval
	}
	return r.DiscoverInterval + time.Duration(h.Sum32())%part
}

// discoveryPlaces are the components in source environments into which something may come by itself, in the order of the
// pipelines.
func discoveryPlaces(s *branch.Snapshot) []discoveryPlace {
	var out []discoveryPlace
	for _, p := range s.Pipelines {
		for _, spec := range p.TopologicalOrder() {
			if len(spec.Discover) == 0 {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(p.Units)) {
				if u := p.Units[name]; u.Envs[spec.Name] != nil {
					out = append(out, discoveryPlace{u.Unit, spec.Name})
				}
			}
		}
	}
	return out
}

// discoveryRules is a digest of what may come in by itself; empty where nothing may, and without a snapshot.
func discoveryRules(s *branch.Snapshot) string {
	if s == nil {
		return ""
	}
	var rules []any
	for _, p := range s.Pipelines {
		for i := range p.Spec.Environments {
			if e := &p.Spec.Environments[i]; len(e.Discover) > 0 {
				rules = append(rules, p.Name(), p.Spec.Mode, e.Name, e.Discover, slices.Sorted(maps.Keys(p.Units)))
			}
		}
	}
	if rules == nil {
		return ""
	}
	data, err := json.Marshal(rules)
	if err != nil {
		return err.Error() // the next look finds the same
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// lastGathered is the evaluation of the unit that was looked at last: the components of a batch share one, until a commit
// moves the branch.
type lastGathered struct {
	snapshot *branch.Snapshot
	unit     promotion.Unit
	ev       *facts.Evaluation
}

// gatherFor gathers the facts about the unit that a component runs as. Its own run waits for that, not for registries.
func (co *Controller) gatherFor(ctx context.Context, s *branch.Snapshot, u promotion.Unit, last *lastGathered) (*facts.Evaluation, error) {
	runs := s.RunsAs(u)
	if last.snapshot == s && last.unit == runs {
		return last.ev, nil
	}
	unlock, err := co.units.Lock(ctx, runs)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ev, err := co.opts.Gatherer.Gather(ctx, s, u, false)
	if err == nil {
		*last = lastGathered{s, runs, ev}
	}
	return ev, err
}

// discoverAt looks for what is new for one component in one source environment, and commits it. Where somebody else pushed
// meanwhile, it is composed anew on that.
func (co *Controller) discoverAt(ctx context.Context, r *Repository, at discoveryPlace, known stored.Available,
	last *lastGathered) (unfinished bool, err error) {
	began := co.opts.Clock.Now()
	for range discoveryTries {
		s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
		if err != nil {
			return false, err
		}
		_, unit := s.Unit(at.unit)
		if unit == nil || s.PipelineErr != "" {
			return false, nil // it is gone meanwhile
		}
		ev, err := co.gatherFor(ctx, s, at.unit, last)
		if err != nil {
			return false, err
		}
		if env := ev.Environment(at.environment); env != nil {
			if err := co.opts.Actor.FinishDiscovery(ctx, r.Repository, at.unit, at.environment, env.Tip); err != nil {
				return false, err
			}
		}
		age, err := co.listAge(ctx, r)
		if err != nil {
			return false, err
		}
		source := co.opts.Versions(age)
		found, err := co.opts.Gatherer.Discover(ctx, ev, at.unit.Component, at.environment, source)
		if err != nil || found == nil {
			return false, err
		}
		if err := co.reportUndiscovered(ctx, at, found); err != nil {
			return found.Unfinished, err
		}
		if (len(found.Edits) == 0 || found.DryRun) && !found.ByPullRequest {
			return found.Unfinished, co.putAvailable(ctx, at, known, found, "")
		}
		if moved, err := found.HasMoved(ctx, source); err != nil || moved != "" {
			co.opts.Log.Info("a tag isn't for sure the image of which the signature was verified any more; it is looked at again",
				zap.String("tag", moved), zap.String("component", at.unit.Component), zap.String("environment", at.environment),
				zap.Error(err))
			return true, ctx.Err()
		}
		if found.ByPullRequest {
			waits, err := co.proposeDiscovered(ctx, r, at, found)
			return found.Unfinished, errors.Join(err, co.putAvailable(ctx, at, known, found, waits))
		}
		err = co.opts.Actor.CommitDiscovered(ctx, ev, found)
		switch {
		case errors.Is(err, act.ErrStale):
			continue
		case errors.Is(err, git.ErrRejected), errors.Is(err, git.ErrAuth), errors.Is(err, forge.ErrForbidden):
			return found.Unfinished, errors.Join(err, co.reportRefusedPush(ctx, at, found, err),
				co.putAvailable(ctx, at, known, found, fmt.Sprintf("the push to %s was refused: %v", found.Branch, err)))
		case err != nil:
			return found.Unfinished, err
		}
		if m := co.opts.Metrics; m != nil {
			seen := found.FirstSeen(&known)
			if seen.IsZero() {
				seen = began
			}
			m.Discovered(at.unit.Pipeline, at.environment, co.opts.Clock.Now().Sub(seen))
		}
		return found.Unfinished, co.putAvailable(ctx, at, known, found, "")
	}
	co.opts.Log.Info("the branch kept moving; new versions come in with the next look", zap.String("repository", r.ID),
		zap.String("component", at.unit.Component), zap.String("environment", at.environment))
	return true, nil
}

// readAvailable reads what is on record of each place, and forgets what is of places that are there no more.
func (co *Controller) readAvailable(ctx context.Context, r *Repository,
	places []discoveryPlace) (map[discoveryPlace]stored.Available, error) {
	all, err := stored.AvailableVersions.List(ctx, co.opts.Store, record.Within{Repo: r.ID})
	if err != nil {
		return nil, err
	}
	isThere := make(map[discoveryPlace]bool, len(places))
	for _, at := range places {
		isThere[at] = true
	}
	out := make(map[discoveryPlace]stored.Available, len(all))
	for _, one := range all {
		at := discoveryPlace{promotion.Unit(one.About.Unit), one.About.Name}
		if !isThere[at] {
			if err := stored.AvailableVersions.Drop(ctx, co.opts.Store, one.About); err != nil {
				return nil, err
			}
			continue
		}
		out[at] = one.Value
	}
	return out, nil
}

// putAvailable puts on record what the registries have and the environment doesn't get, where that is something else than
// what is known.
func (co *Controller) putAvailable(ctx context.Context, at discoveryPlace, known stored.Available, found *discovery.Found,
	refused string) error {
	now := found.ListAvailable(&known, refused, co.opts.Clock.Now())
	about := record.InUnit{Unit: record.Unit(at.unit), Name: at.environment}
	switch {
	case now.IsEqual(&known):
		return nil
	case len(now.Versions) == 0:
		return stored.AvailableVersions.Drop(ctx, co.opts.Store, about)
	}
	return stored.AvailableVersions.Put(ctx, co.opts.Store, about, now)
}

// reportUndiscovered tells once of what can't come in, or isn't known, for a reason that a person has to see to.
func (co *Controller) reportUndiscovered(ctx context.Context, at discoveryPlace, found *discovery.Found) error {
	var all []store.Event
	add := func(text string) { all = append(all, co.undiscoveredEvent(at, event.Undiscovered, text)) }
	for i := range found.Versions {
		v := &found.Versions[i]
		if v.Err != "" && !v.Passing {
			add(fmt.Sprintf("%s in %s: %s", v.Name, at.environment, v.Err))
		}
		for _, u := range v.Unsigned {
			if !u.Pending {
				all = append(all, co.undiscoveredEvent(at, event.Unsigned, fmt.Sprintf("%s:%s doesn't come into %s: it %s", v.Name, u.Tag,
					at.environment, u.Why)))
			}
		}
	}
	if found.Refused != "" && !found.KeptOut {
		add(fmt.Sprintf("nothing comes into %s by itself: %s", at.environment, found.Refused))
	}
	if len(all) == 0 {
		return nil
	}
	_, err := co.opts.Store.AddEvents(ctx, all...)
	return err
}

// reportRefusedPush tells once that the forge takes no commit for the environment's branch.
func (co *Controller) reportRefusedPush(ctx context.Context, at discoveryPlace, found *discovery.Found, why error) error {
	text := fmt.Sprintf("%s can't come into %s: the push to %s was refused: %v", found.Release, at.environment, found.Branch, why)
	_, err := co.opts.Store.AddEvents(ctx, co.undiscoveredEvent(at, event.Undiscovered, text))
	return err
}

func (co *Controller) undiscoveredEvent(at discoveryPlace, kind event.Kind, text string) store.Event {
	sum := sha256.Sum256([]byte(text))
	return store.Event{At: co.opts.Clock.Now(), Repo: at.unit.Repo, Pipeline: at.unit.Pipeline, Component: at.unit.Component,
		Environment: at.environment, Kind: kind, Message: text,
		IdempotencyKey: string(kind) + "|" + wake.UnitName(at.unit) + "|" + at.environment + "|" + hex.EncodeToString(sum[:12])}
}
