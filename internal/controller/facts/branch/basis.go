package branch

import (
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// Basis is what the evaluation of a unit rests on: the commits that are judged, the time, and
// what was learned of releases. A unit is one component, or all of a pipeline's that move by
// one pull request an environment.
type Basis struct {
	Unit     promotion.Unit
	Snapshot *Snapshot
	Pipeline *ResolvedPipeline
	Now      time.Time
	Fresh    bool                         // before a merge: what may be remembered for minutes is read again
	RetryAt  time.Time                    // when a fact that ran out of time is looked for again; zero: none did
	Contents map[string]fieldedit.Release // what releases carry, by identity
	// The components that fields belong to, as far as they were composed.
	fieldOwners map[fieldKey]string
}

// ComponentBasis is what is known of one component of the unit.
type ComponentBasis struct {
	*Basis
	Facts promotion.ComponentFacts
	Unit  *ResolvedUnit
}

type fieldKey struct{ file, path string }

// NewBasis knows no release yet.
func NewBasis(s *Snapshot, p *ResolvedPipeline, u promotion.Unit, now time.Time, fresh bool) Basis {
	return Basis{Unit: u, Snapshot: s, Pipeline: p, Now: now, Fresh: fresh, Contents: map[string]fieldedit.Release{},
		fieldOwners: map[fieldKey]string{}}
}

// Env finds an environment of the component; nil when the pipeline has none.
func (c *ComponentBasis) Env(name string) *promotion.Env {
	for i := range c.Facts.Envs {
		if c.Facts.Envs[i].Name == name {
			return &c.Facts.Envs[i]
		}
	}
	return nil
}

// IsBatch says that the unit is all components of its pipeline.
func (b *Basis) IsBatch() bool { return b.Snapshot.IsBatch(b.Unit) }

// RememberRelease remembers what a release carries and gives its name to the facts.
func (b *Basis) RememberRelease(rel fieldedit.Release) promotion.Release {
	id := rel.ID()
	b.Contents[id] = rel
	return promotion.Release{ID: id, Name: rel.String()}
}

// ReleaseName is the release's name for people; empty when its content isn't known.
func (b *Basis) ReleaseName(release string) string { return b.Contents[release].String() }

// ScheduleRetry notes when something that ran out of time is looked for again.
func (b *Basis) ScheduleRetry(at time.Time) {
	if !at.IsZero() {
		b.RetryAt = Earliest(b.RetryAt, at)
	}
}

// Earliest is the earlier of two times, of which zero is none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// WhyUnknown says that a release's content isn't known any more: the store that had it is gone. An
// empty one in its place would take everything away.
func (b *Basis) WhyUnknown(release string) string {
	if _, ok := b.Contents[release]; ok {
		return ""
	}
	return fmt.Sprintf("what the release %s consists of is not known any more", wording.Short(release))
}

// EnvAt is an environment of any component of the pipeline; nil when there is none.
func (b *Basis) EnvAt(env, component string) *ResolvedEnv {
	u := b.Pipeline.Units[component]
	if u == nil {
		return nil
	}
	return u.Envs[env]
}

// OverlaysOf is where components have their carried fields in an environment.
func (b *Basis) OverlaysOf(env string, members []promotion.Member) []fieldedit.Overlay {
	var out []fieldedit.Overlay
	for _, m := range members {
		if at := b.EnvAt(env, m.Component); at != nil {
			out = append(out, at.Overlay(b.Pipeline.Pipeline))
		}
	}
	return out
}

// SetFieldOwner notes which component a field belongs to.
func (b *Basis) SetFieldOwner(file, path, component string) {
	b.fieldOwners[fieldKey{file, path}] = component
}

// FieldOwner is which of the members a carried field belongs to; "" when that can't
// be told.
func (b *Basis) FieldOwner(env string, members []promotion.Member, file, path string) string {
	if owner := b.fieldOwners[fieldKey{file, path}]; owner != "" {
		return owner
	}
	owner := ""
	for _, m := range members {
		at := b.EnvAt(env, m.Component)
		if at == nil {
			continue
		}
		if scope, err := fieldedit.NewScope(at.Overlay(b.Pipeline.Pipeline)); err == nil && scope.Covers(file) {
			if owner != "" {
				return ""
			}
			owner = m.Component
		}
	}
	return owner
}

// ErrNoUnit says that the tracked branch has no such component any more.
var ErrNoUnit = errors.New("no such component on the tracked branch")
