package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// Evaluation is one unit's facts with what acting on them needs.
type Evaluation struct {
	Facts    promotion.ComponentFacts
	Snapshot *Snapshot
	Pipeline *ResolvedPipeline
	Unit     *ResolvedUnit

	ReleaseContents  map[string]fieldedit.Release // what releases carry, by identity
	Observations     []store.Observation          // verification memories, to be written with the run
	UnknownRevisions []string                     // revisions that Argo CD reports and Git doesn't know yet

	retryAt *time.Time // of all cases of one look: when a fact that ran out of time is asked for again; nil: nobody asks

	UnreachableArgoCDs []string                    // the Argo CDs that can't be asked about targets of this unit
	OpenPulls          map[int]*forge.PullRequest  // our open ones
	HeadBases          map[int]string              // what their heads were made on
	HeadEdits          map[int][]fieldedit.Edit    // what their heads change
	RevertedPulls      map[int]*forge.PullRequest  // the promotion that an open revert takes back
	ComposedEdits      map[string][]fieldedit.Edit // answers to Look compose, by environment and release
	RestoredEdits      map[string][]fieldedit.Edit // answers to Look restore, by environment

	// Members are the components that an action moves together, where the case is
	// all of a pipeline's; none in a component's own.
	Members []MemberEvaluation

	movableComponents []string          // the components that an edit may change; none: the unit's
	batchPulls        batchPulls        // the pull requests of several components
	fieldOwners       map[string]string // the components that fields belong to, by file and path, as far as they were composed
}

// rememberRelease remembers what a release carries and gives its name to the facts.
func (c *Evaluation) rememberRelease(rel fieldedit.Release) promotion.Release {
	id := rel.ID()
	c.ReleaseContents[id] = rel
	return promotion.Release{ID: id, Name: rel.String()}
}

// ErrNoUnit says that the tracked branch has no such component any more.
var ErrNoUnit = errors.New("no such component on the tracked branch")

// GatherUnit gathers everything about a unit. With fresh, open pull requests are read
// from the forge even when nothing was heard of them: before a merge.
func (o *Gatherer) GatherUnit(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*Evaluation, error) {
	p, ua := s.Unit(u)
	if ua == nil {
		return nil, fmt.Errorf("%s: %w", wake.UnitName(u), ErrNoUnit)
	}
	if err := o.ensurePullsCached(ctx, s.Repo); err != nil {
		return nil, err
	}
	c, err := o.gatherUnit(ctx, s, p, ua, fresh)
	if errors.Is(err, errRereadPulls) {
		c, err = o.gatherUnit(ctx, s, p, ua, true)
	}
	return c, err
}

// gatherUnit gathers the facts of one component, and of the pull requests of several
// that it may be in.
func (o *Gatherer) gatherUnit(ctx context.Context, s *Snapshot, p *ResolvedPipeline, ua *ResolvedUnit, fresh bool) (*Evaluation, error) {
	all, rs, err := o.readBatchPulls(ctx, s, p, fresh)
	if err != nil {
		return nil, err
	}
	return o.gatherUnitFacts(ctx, all, rs, ua, fresh)
}

// readBatchPulls gathers what is known of a pipeline's pull requests of several components.
func (o *Gatherer) readBatchPulls(ctx context.Context, s *Snapshot, p *ResolvedPipeline, fresh bool) (*Evaluation, batchPulls, error) {
	all := o.newEvaluation(s, p, promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: promotion.BatchName})
	rs, err := o.cachedBatchPulls(ctx, s, p)
	if err != nil {
		return nil, nil, err
	}
	all.batchPulls = rs
	return all, rs, rs.refreshOpen(ctx, o, all, fresh)
}

// newEvaluation is a case without facts but what a snapshot says of the pipeline's
// environments.
func (o *Gatherer) newEvaluation(s *Snapshot, p *ResolvedPipeline, u promotion.Unit) *Evaluation {
	c := &Evaluation{Snapshot: s, Pipeline: p, fieldOwners: map[string]string{}, retryAt: new(time.Time),
		OpenPulls: map[int]*forge.PullRequest{}, HeadBases: map[int]string{}, HeadEdits: map[int][]fieldedit.Edit{}, RevertedPulls: map[int]*forge.PullRequest{},
		ReleaseContents: map[string]fieldedit.Release{}, ComposedEdits: map[string][]fieldedit.Edit{}, RestoredEdits: map[string][]fieldedit.Edit{},
		Facts: promotion.ComponentFacts{Now: o.opts.Now(), Unit: u, Pipeline: p.Pipeline, PipelineErr: s.PipelineErr, Tip: s.Commit}}
	for _, spec := range p.TopologicalOrder() {
		line := s.BranchFor(p.Pipeline, spec.Name)
		c.Facts.Envs = append(c.Facts.Envs, promotion.Env{Name: spec.Name, Branch: line.Branch, Tip: line.Commit, Spec: *spec, Gates: o.Gates(spec), Compositions: map[string]promotion.Composition{}})
	}
	return c
}

// gatherUnitFacts gathers what concerns one component, given the pull requests of several.
func (o *Gatherer) gatherUnitFacts(ctx context.Context, all *Evaluation, rs batchPulls, ua *ResolvedUnit, fresh bool) (*Evaluation, error) {
	s, p, u := all.Snapshot, all.Pipeline, ua.Unit
	c := o.newEvaluation(s, p, u)
	c.retryAt = all.retryAt
	c.Unit, c.batchPulls, c.Facts.Now, c.Facts.Problems = ua, rs, all.Facts.Now, p.ProblemsOf(u.Component)
	// Commands first: what a command was given about was written down before it,
	// so it is among what is read after it.
	var err error
	if c.Facts.PendingCommands, err = o.readPendingCommands(ctx, u); err != nil {
		return nil, err
	}
	entries, err := o.unitPulls(ctx, s.Repo, u)
	if err != nil {
		return nil, err
	}
	arrived, err := o.readArrivals(ctx, c, u)
	if err != nil {
		return nil, err
	}
	memories, err := o.opts.Store.Observations(ctx, wake.UnitName(u))
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
		if err := o.gatherEnv(ctx, c, env, at, entries[env.Name], arrived[env.Name], memories, fresh); err != nil {
			return nil, fmt.Errorf("look at %s in %s: %w", u.Component, env.Name, err)
		}
	}
	if holds, err := o.Holds(ctx, s.Repo, u); err != nil {
		c.Facts.Holds = promotion.Unsure[[]promotion.Hold](err.Error())
	} else {
		c.Facts.Holds = promotion.Sure(holds)
	}
	c.Facts.ClusterIncidents = o.clusterIncidents(p, ua)
	if c.Facts.Limits, err = o.gatherLimits(ctx, c); err != nil {
		return nil, err
	}
	return c, nil
}

// gatherEnv fills in one environment.
func (o *Gatherer) gatherEnv(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, entries []cachedPull, history []promotion.Arrival, memories []store.Observation, fresh bool) error {
	r, tip := c.Snapshot.Repo, env.Tip
	env.History = history
	if tip == "" {
		env.Release = promotion.Unsure[promotion.Release](missingBranchText(r, env.Branch))
		o.judgeTargets(c, env, at, memories)
		return nil
	}
	rel, err := o.readCurrent(r, tip, c.Pipeline, at)
	var mixed *fieldedit.MixedError
	switch {
	case errors.As(err, &mixed):
		env.Fields, env.FieldsReason = promotion.FieldsMixed, err.Error()
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case err != nil:
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case rel.Empty():
		env.Release = promotion.Unsure[promotion.Release](at.NothingCarried())
	default:
		env.Release = promotion.Sure(c.rememberRelease(rel))
	}
	key := wake.UnitName(c.Facts.Unit) + "|" + env.Name
	var memo originMemo
	if env.Release.OK {
		if memo, err = o.findOrigin(ctx, r, tip, key, c.Pipeline, at, rel); err != nil {
			return err
		}
		if o.isUnexplained(key, memo, slices.Concat(entries, c.batchPulls.cachedPulls(env.Name))) && !fresh {
			if c.batchPulls.anyOpen(env.Name) {
				return errRereadPulls
			}
			fresh = true
		}
	}
	if err := o.fillPulls(ctx, c, env, at, entries, fresh); err != nil {
		return err
	}
	if err := o.fillBatchPulls(ctx, c, env); err != nil {
		return err
	}
	if err := o.ensureMergeFetched(ctx, c, env, slices.Concat(entries, c.batchPulls.cachedPulls(env.Name))); err != nil {
		return err
	}
	if !env.Release.OK {
		o.judgeTargets(c, env, at, memories)
		return nil
	}
	landed, err := o.describeLanded(ctx, r, c.Pipeline, memo, slices.Concat(entries, c.batchPulls.cachedPulls(env.Name)))
	if err != nil {
		return err
	}
	if landed.Members, err = o.landedMembers(ctx, c, env.Name, landed.Pull); err != nil {
		return err
	}
	landed.Batch = len(landed.Members) > 0
	env.Landed = promotion.Sure(landed)
	o.fillUnmanagedRevert(c, env)
	if err := o.fillRevertedReleases(ctx, c, env, at); err != nil {
		return err
	}
	if err := o.recordArrival(ctx, c, env); err != nil {
		return err
	}
	o.judgeTargets(c, env, at, memories)
	return o.fillHealthBefore(ctx, c, env)
}

// isUnexplained says, once for each commit, that what landed is by none of our
// merges as far as the book knows while one of ours was open: the branch's news
// may have come before the pull request's, so that is read again first.
func (o *Gatherer) isUnexplained(key string, m originMemo, entries []cachedPull) bool {
	open := false
	for i := range entries {
		if entries[i].PR.MergeCommit == m.origin.Commit.SHA && entries[i].PR.State == forge.Merged {
			return false
		}
		open = open || entries[i].PR.State == forge.Open
	}
	if last, _ := o.explained.Get(key); !open || last == m.origin.Commit.SHA {
		return false
	}
	o.explained.Put(key, m.origin.Commit.SHA)
	return true
}

// arrivalData is what a store.Arrival keeps for us.
type arrivalData struct {
	Content fieldedit.Release `json:"content"`
	By      string            `json:"by"`
	Author  string            `json:"who,omitempty"`
	Pull    int               `json:"pull,omitempty"`
}

// readArrivals reads a unit's history by environment, newest first.
func (o *Gatherer) readArrivals(ctx context.Context, c *Evaluation, u promotion.Unit) (map[string][]promotion.Arrival, error) {
	rows, err := o.opts.Store.Arrivals(ctx, wake.UnitName(u))
	if err != nil {
		return nil, err
	}
	out := map[string][]promotion.Arrival{}
	for _, row := range rows {
		var d arrivalData
		if err := json.Unmarshal(row.Data, &d); err != nil {
			return nil, fmt.Errorf("read what arrived in %s of %s from the store: %w", row.Environment, row.Unit, err)
		}
		c.rememberRelease(d.Content)
		out[row.Environment] = append(out[row.Environment], promotion.Arrival{Seq: row.Seq, Release: row.Release, Name: d.Content.String(),
			Commit: row.Commit, By: d.By, Author: d.Author, Pull: d.Pull, At: row.At, VerifiedAt: row.VerifiedAt, DegradedAt: row.DegradedAt})
	}
	return out, nil
}

// recordArrival writes down what is in the environment now, where that is new.
func (o *Gatherer) recordArrival(ctx context.Context, c *Evaluation, env *promotion.Env) error {
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
	err = o.opts.Store.Tx(ctx, "arrived", func(tx *store.Tx) error {
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
func (c *Evaluation) ArrivalRow(env string, a *promotion.Arrival) (store.Arrival, error) {
	data, err := json.Marshal(arrivalData{Content: c.ReleaseContents[a.Release], By: a.By, Author: a.Author, Pull: a.Pull})
	if err != nil {
		return store.Arrival{}, fmt.Errorf("write down what arrived in %s: %w", env, err)
	}
	return store.Arrival{Unit: wake.UnitName(c.Facts.Unit), Environment: env, Release: a.Release, Commit: a.Commit,
		At: a.At, VerifiedAt: a.VerifiedAt, DegradedAt: a.DegradedAt, Data: data}, nil
}

// landedEvent tells that a release is in an environment now, however it came.
func landedEvent(c *Evaluation, env *promotion.Env) store.Event {
	u, l := c.Facts.Unit, env.Landed.Value
	ev := store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name, Pull: l.Pull, Kind: "landed",
		Message:        fmt.Sprintf("%s is in %s (%s, %s)", env.Release.Value, env.Name, l.By, wording.Short(l.Commit)),
		IdempotencyKey: fmt.Sprintf("landed|%s|%s|%s|%s", wake.UnitName(u), env.Name, l.Commit, l.By)}
	if l.Pull != 0 {
		ev.Kind = "merged"
		ev.Message = fmt.Sprintf("#%d merged into %s as %s", l.Pull, env.Branch, wording.Short(l.Commit))
		ev.IdempotencyKey = MergedEventKey(u, l.Pull)
	}
	return ev
}

// ComposeRevertOnto composes the way back of what landed with commit onto a tip.
func (o *Gatherer) ComposeRevertOnto(ctx context.Context, c *Evaluation, env, commit, tip string) ([]fieldedit.Edit, error) {
	if len(c.Members) > 0 {
		return o.composeRevert(ctx, c, c.memberOverlays(env, c.listMembers()), commit, tip)
	}
	at := c.Unit.Envs[env]
	if at == nil {
		return nil, fmt.Errorf("restore %s: %w", env, ErrNoUnit)
	}
	return o.composeRevert(ctx, c, c.unitOverlays(at), commit, tip)
}

// readPendingCommands reads the commands that wait to take effect.
func (o *Gatherer) readPendingCommands(ctx context.Context, u promotion.Unit) ([]promotion.PendingCommand, error) {
	rows, err := o.opts.Store.PendingCommands(ctx, wake.UnitName(u))
	if err != nil {
		return nil, err
	}
	out := make([]promotion.PendingCommand, 0, len(rows))
	for _, a := range rows {
		out = append(out, promotion.PendingCommand{ID: a.ID, Verb: a.Verb, Environment: a.Environment, Release: a.Release, By: a.By, Reason: a.Reason, At: a.At})
	}
	return out, nil
}

// AnswerRequest gathers the expensive fact that a decision asked for.
func (o *Gatherer) AnswerRequest(ctx context.Context, c *Evaluation, l promotion.FactRequest) error {
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
		return o.answerComposition(ctx, c, env, at, l)
	case promotion.RequestRestore:
		return o.answerRestore(ctx, c, env, at)
	case promotion.RequestBlame:
		return o.answerBlame(ctx, c, env)
	case promotion.RequestChangedObjects:
		return o.answerChangedObjects(ctx, c, env)
	}
	return fmt.Errorf("unknown look %q", l.What)
}
