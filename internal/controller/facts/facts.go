package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// Case is one unit's facts with what acting on them needs.
type Case struct {
	Facts    promotion.Facts
	Snapshot *Snapshot
	Pipeline *PipelineAt
	Unit     *UnitAt

	Contents map[string]fieldedit.Release // what releases carry, by identity
	Memories []store.Observation          // verification memories, to be written with the run
	Unknown  []string                     // revisions that Argo CD reports and Git doesn't know yet

	again *time.Time // of all cases of one look: when a fact that ran out of time is asked for again; nil: nobody asks

	Unreached []string                    // the Argo CDs that can't be asked about targets of this unit
	Pulls     map[int]*forge.PullRequest  // our open ones
	Bases     map[int]string              // what their heads were made on
	Edits     map[int][]fieldedit.Edit    // what their heads change
	UndoOf    map[int]*forge.PullRequest  // the promotion that an open revert takes back
	Composed  map[string][]fieldedit.Edit // answers to Look compose, by environment and release
	Restored  map[string][]fieldedit.Edit // answers to Look restore, by environment

	// Members are the components that an action moves together, where the case is
	// all of a pipeline's; none in a component's own.
	Members []Member

	insiders []string          // the components that an edit may change; none: the unit's
	rides    rides             // the pull requests of several components
	owners   map[string]string // the components that fields belong to, by file and path, as far as they were composed
}

// know remembers what a release carries and gives its name to the facts.
func (c *Case) know(rel fieldedit.Release) promotion.Release {
	id := rel.ID()
	c.Contents[id] = rel
	return promotion.Release{ID: id, Name: rel.String()}
}

// Key is the unit's wake key.
func Key(u promotion.Unit) string { return "unit:" + UnitName(u) }

// UnitName is the unit's name in the store.
func UnitName(u promotion.Unit) string { return u.Repo + "|" + u.Pipeline + "|" + u.Component }

// ErrNoUnit says that the tracked branch has no such component any more.
var ErrNoUnit = errors.New("no such component on the tracked branch")

// Facts gathers everything about a unit. With fresh, open pull requests are read
// from the forge even when nothing was heard of them: before a merge.
func (o *Observer) Facts(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*Case, error) {
	p, ua := s.Unit(u)
	if ua == nil {
		return nil, fmt.Errorf("%s: %w", UnitName(u), ErrNoUnit)
	}
	if err := o.ensureBook(ctx, s.Repo); err != nil {
		return nil, err
	}
	c, err := o.alone(ctx, s, p, ua, fresh)
	if errors.Is(err, errReadAgain) {
		c, err = o.alone(ctx, s, p, ua, true)
	}
	return c, err
}

// alone gathers the facts of one component, and of the pull requests of several
// that it may be in.
func (o *Observer) alone(ctx context.Context, s *Snapshot, p *PipelineAt, ua *UnitAt, fresh bool) (*Case, error) {
	all, rs, err := o.shared(ctx, s, p, fresh)
	if err != nil {
		return nil, err
	}
	return o.facts(ctx, all, rs, ua, fresh)
}

// shared gathers what is known of a pipeline's pull requests of several components.
func (o *Observer) shared(ctx context.Context, s *Snapshot, p *PipelineAt, fresh bool) (*Case, rides, error) {
	all := o.newCase(s, p, promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: promotion.BatchName})
	rs, err := o.bookedRides(ctx, s, p)
	if err != nil {
		return nil, nil, err
	}
	all.rides = rs
	return all, rs, rs.open(ctx, o, all, fresh)
}

// newCase is a case without facts but what a snapshot says of the pipeline's
// environments.
func (o *Observer) newCase(s *Snapshot, p *PipelineAt, u promotion.Unit) *Case {
	c := &Case{Snapshot: s, Pipeline: p, owners: map[string]string{}, again: new(time.Time),
		Pulls: map[int]*forge.PullRequest{}, Bases: map[int]string{}, Edits: map[int][]fieldedit.Edit{}, UndoOf: map[int]*forge.PullRequest{},
		Contents: map[string]fieldedit.Release{}, Composed: map[string][]fieldedit.Edit{}, Restored: map[string][]fieldedit.Edit{},
		Facts: promotion.Facts{Now: o.o.Now(), Unit: u, Pipeline: p.Pipeline, PipelineErr: s.Broken, Tip: s.Commit}}
	for _, spec := range p.TopologicalOrder() {
		line := s.Line(p.Pipeline, spec.Name)
		c.Facts.Envs = append(c.Facts.Envs, promotion.Env{Name: spec.Name, Branch: line.Branch, Tip: line.Commit, Spec: *spec, Gates: o.Gates(spec), Compositions: map[string]promotion.Composition{}})
	}
	return c
}

// facts gathers what concerns one component, given the pull requests of several.
func (o *Observer) facts(ctx context.Context, all *Case, rs rides, ua *UnitAt, fresh bool) (*Case, error) {
	s, p, u := all.Snapshot, all.Pipeline, ua.Unit
	c := o.newCase(s, p, u)
	c.again = all.again
	c.Unit, c.rides, c.Facts.Now, c.Facts.Problems = ua, rs, all.Facts.Now, p.ProblemsOf(u.Component)
	// Commands first: what a command was given about was written down before it,
	// so it is among what is read after it.
	var err error
	if c.Facts.PendingCommands, err = o.asks(ctx, u); err != nil {
		return nil, err
	}
	entries, err := o.ofUnit(ctx, s.Repo, u)
	if err != nil {
		return nil, err
	}
	arrived, err := o.arrivals(ctx, c, u)
	if err != nil {
		return nil, err
	}
	memories, err := o.o.Store.Observations(ctx, UnitName(u))
	if err != nil {
		return nil, err
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		at := ua.Envs[env.Name]
		if at == nil {
			env.Release = promotion.Unsure[promotion.Release]("no ApplicationSet generates a target for this component here")
			continue
		}
		if err := o.environment(ctx, c, env, at, entries[env.Name], arrived[env.Name], memories, fresh); err != nil {
			return nil, fmt.Errorf("look at %s in %s: %w", u.Component, env.Name, err)
		}
	}
	if c.Facts.Holds, err = o.Holds(ctx, s.Repo, u); err != nil {
		c.Facts.HoldsErr = err.Error()
	}
	c.Facts.ClusterIncidents = o.weather(c)
	if c.Facts.Limits, err = o.limits(ctx, c); err != nil {
		return nil, err
	}
	return c, nil
}

// environment fills in one environment.
func (o *Observer) environment(ctx context.Context, c *Case, env *promotion.Env, at *EnvAt, entries []entry, history []promotion.Arrival, memories []store.Observation, fresh bool) error {
	r, tip := c.Snapshot.Repo, env.Tip
	env.History = history
	if tip == "" {
		env.Release = promotion.Unsure[promotion.Release](missing(r, env.Branch))
		o.targets(c, env, at, memories)
		return nil
	}
	rel, err := o.readNow(r, tip, c.Pipeline, at)
	var mixed *fieldedit.MixedError
	switch {
	case errors.As(err, &mixed):
		env.Mixed = err.Error()
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case err != nil:
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case rel.Empty():
		env.Release = promotion.Unsure[promotion.Release](at.NothingCarried())
	default:
		env.Release = promotion.Sure(c.know(rel))
	}
	key := UnitName(c.Facts.Unit) + "|" + env.Name
	var memo landedMemo
	if env.Release.OK {
		if memo, err = o.whence(ctx, r, tip, key, c.Pipeline, at, rel); err != nil {
			return err
		}
		if o.unexplained(key, memo, slices.Concat(entries, c.rides.entries(env.Name))) && !fresh {
			if c.rides.anyOpen(env.Name) {
				return errReadAgain
			}
			fresh = true
		}
	}
	if err := o.pullsOf(ctx, c, env, at, entries, fresh); err != nil {
		return err
	}
	if err := o.ridesIn(ctx, c, env); err != nil {
		return err
	}
	if err := o.hasMerged(ctx, c, env, slices.Concat(entries, c.rides.entries(env.Name))); err != nil {
		return err
	}
	if !env.Release.OK {
		o.targets(c, env, at, memories)
		return nil
	}
	landed, err := o.landedOf(ctx, r, c.Pipeline, memo, slices.Concat(entries, c.rides.entries(env.Name)))
	if err != nil {
		return err
	}
	if landed.Members, err = o.cameWith(ctx, c, env.Name, landed.Pull); err != nil {
		return err
	}
	env.Landed = promotion.Sure(landed)
	o.foreignWayBack(c, env)
	if err := o.revertCommits(ctx, c, env, at); err != nil {
		return err
	}
	if err := o.arrive(ctx, c, env); err != nil {
		return err
	}
	o.targets(c, env, at, memories)
	return o.before(ctx, c, env)
}

// unexplained says, once for each commit, that what landed is by none of our
// merges as far as the book knows while one of ours was open: the branch's news
// may have come before the pull request's, so that is read again first.
func (o *Observer) unexplained(key string, m landedMemo, entries []entry) bool {
	open := false
	for i := range entries {
		if entries[i].PR.MergeCommit == m.origin.Commit.SHA && entries[i].PR.State == forge.Merged {
			return false
		}
		open = open || entries[i].PR.State == forge.Open
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !open || o.explained[key] == m.origin.Commit.SHA {
		return false
	}
	o.explained[key] = m.origin.Commit.SHA
	return true
}

// arrivalData is what a store.Arrival keeps for us.
type arrivalData struct {
	Content fieldedit.Release `json:"content"`
	By      string            `json:"by"`
	Who     string            `json:"who,omitempty"`
	Pull    int               `json:"pull,omitempty"`
}

// arrivals reads a unit's history by environment, newest first.
func (o *Observer) arrivals(ctx context.Context, c *Case, u promotion.Unit) (map[string][]promotion.Arrival, error) {
	rows, err := o.o.Store.Arrivals(ctx, UnitName(u))
	if err != nil {
		return nil, err
	}
	out := map[string][]promotion.Arrival{}
	for _, row := range rows {
		var d arrivalData
		if err := json.Unmarshal(row.Data, &d); err != nil {
			return nil, fmt.Errorf("read what arrived in %s of %s from the store: %w", row.Environment, row.Unit, err)
		}
		c.know(d.Content)
		out[row.Environment] = append(out[row.Environment], promotion.Arrival{Seq: row.Seq, Release: row.Release, Name: d.Content.String(),
			Commit: row.Commit, By: d.By, Author: d.Who, Pull: d.Pull, At: row.At, VerifiedAt: row.VerifiedAt, DegradedAt: row.DegradedAt})
	}
	return out, nil
}

// arrive writes down what is in the environment now, where that is new.
func (o *Observer) arrive(ctx context.Context, c *Case, env *promotion.Env) error {
	l, id := env.Landed.Value, env.Release.Value.ID
	i := slices.IndexFunc(env.History, func(a promotion.Arrival) bool { return a.Release == id && a.Commit == l.Commit })
	if i >= 0 && env.History[i].By == l.By {
		return nil
	}
	a := promotion.Arrival{Release: id, Name: env.Release.Value.Name, Commit: l.Commit, By: l.By, Author: l.Author, Pull: l.Pull, At: c.Facts.Now}
	if i >= 0 {
		a = env.History[i]
		a.By, a.Author, a.Pull = l.By, l.Author, l.Pull
	}
	row, err := c.ArrivalRow(env.Name, &a)
	if err != nil {
		return err
	}
	err = o.o.Store.Tx(ctx, "arrived", func(tx *store.Tx) error {
		var err error
		if a.Seq, err = tx.PutArrival(ctx, row); err != nil {
			return err
		}
		_, err = tx.AddEvents(ctx, landedEvent(c, env))
		return err
	})
	if err != nil {
		return err
	}
	if i >= 0 {
		env.History[i] = a
	} else {
		env.History = append([]promotion.Arrival{a}, env.History...)
	}
	return nil
}

// ArrivalRow is the store's row of an arrival.
func (c *Case) ArrivalRow(env string, a *promotion.Arrival) (store.Arrival, error) {
	data, err := json.Marshal(arrivalData{Content: c.Contents[a.Release], By: a.By, Who: a.Author, Pull: a.Pull})
	if err != nil {
		return store.Arrival{}, fmt.Errorf("write down what arrived in %s: %w", env, err)
	}
	return store.Arrival{Unit: UnitName(c.Facts.Unit), Environment: env, Release: a.Release, Commit: a.Commit,
		At: a.At, VerifiedAt: a.VerifiedAt, DegradedAt: a.DegradedAt, Data: data}, nil
}

// landedEvent tells that a release is in an environment now, however it came.
func landedEvent(c *Case, env *promotion.Env) store.Event {
	u, l := c.Facts.Unit, env.Landed.Value
	ev := store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name, Pull: l.Pull, Kind: "landed",
		Message:        fmt.Sprintf("%s is in %s (%s, %s)", env.Release.Value, env.Name, l.By, promotion.Short(l.Commit)),
		IdempotencyKey: fmt.Sprintf("landed|%s|%s|%s|%s", UnitName(u), env.Name, l.Commit, l.By)}
	if l.Pull != 0 {
		ev.Kind = "merged"
		ev.Message = fmt.Sprintf("#%d merged into %s as %s", l.Pull, env.Branch, promotion.Short(l.Commit))
		ev.IdempotencyKey = OnceMerged(u, l.Pull)
	}
	return ev
}

// RestoreOnto composes the way back of what landed with commit onto a tip.
func (o *Observer) RestoreOnto(ctx context.Context, c *Case, env, commit, tip string) ([]fieldedit.Edit, error) {
	if len(c.Members) > 0 {
		return o.restore(ctx, c, c.overlaysOf(env, c.passengers()), commit, tip)
	}
	at := c.Unit.Envs[env]
	if at == nil {
		return nil, fmt.Errorf("restore %s: %w", env, ErrNoUnit)
	}
	return o.restore(ctx, c, c.overlayOf(at), commit, tip)
}

// asks reads the commands that wait to take effect.
func (o *Observer) asks(ctx context.Context, u promotion.Unit) ([]promotion.PendingCommand, error) {
	rows, err := o.o.Store.PendingCommands(ctx, UnitName(u))
	if err != nil {
		return nil, err
	}
	out := make([]promotion.PendingCommand, 0, len(rows))
	for _, a := range rows {
		out = append(out, promotion.PendingCommand{ID: a.ID, Verb: a.Verb, Environment: a.Environment, Release: a.Release, By: a.By, Reason: a.Reason, At: a.At})
	}
	return out, nil
}

// Answer gathers the expensive fact that a decision asked for.
func (o *Observer) Answer(ctx context.Context, c *Case, l promotion.FactRequest) error {
	at := c.Unit.Envs[l.Environment]
	var env *promotion.Env
	for i := range c.Facts.Envs {
		if c.Facts.Envs[i].Name == l.Environment {
			env = &c.Facts.Envs[i]
		}
	}
	if at == nil || env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, ErrNoUnit)
	}
	switch l.What {
	case promotion.RequestComposition:
		return o.compose(ctx, c, env, at, l)
	case promotion.RequestRestore:
		return o.composeBack(ctx, c, env, at)
	case promotion.RequestBlame:
		return o.blame(ctx, c, env)
	case promotion.RequestChangedObjects:
		return o.changed(ctx, c, env)
	}
	return fmt.Errorf("unknown look %q", l.What)
}
