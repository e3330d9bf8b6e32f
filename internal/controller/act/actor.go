package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// ArgoCD is what is asked of a watched Argo CD.
type ArgoCD interface {
	Refresh(ctx context.Context, namespace, name string) error
	Sync(ctx context.Context, namespace, name string, request verification.SyncRequest) error
}

// Store is what is kept of what was done. *store.Store is one.
type Store interface {
	Tx(ctx context.Context, name string, do func(*store.Tx) error) error
	record.ReadWriter
	PendingCommands(ctx context.Context, unit string) ([]store.PendingCommand, error)
	TakeSlot(ctx context.Context, name, owner string, ttl time.Duration) (bool, error)
	FreeSlot(ctx context.Context, name, owner string) error
	CountSlots(ctx context.Context, prefix string) (int, error)
}

// Options are the actor's parts. All but Metrics and Lease are required.
type Options struct {
	Store    Store
	Gatherer *facts.Gatherer
	ArgoCDs  map[string]ArgoCD
	Console  string // externalURL, empty without one
	Now      func() time.Time
	Log      *zap.Logger
	Metrics  Metrics
	Owner    string // of slots: one process
	// Lease bounds how long one process may hold the right to count what is open and add
	// one; 0: store.DefaultLease.
	Lease time.Duration
}

// Metrics is told what was done.
type Metrics interface {
	Stage(environment, stage string, took time.Duration)
	Reverted(environment string)
	Delivered(pipeline, environment string, d promotion.Delivery)
}

// Actor performs actions. It is safe for concurrent use; one run at a time acts on a unit.
type Actor struct {
	opts        Options
	undeletable sync.Map // facts.Leftover: branches whose deletion the forge refused
	refusals    sync.Map // Refusal by the repository's ID: of deployments
}

// New makes an actor.
func New(o Options) *Actor {
	if o.Lease == 0 {
		o.Lease = store.DefaultLease
	}
	return &Actor{opts: o}
}

// ErrStale says that the world is no longer what the action was judged on: look
// again. It is not a failure.
var ErrStale = errors.New("the world moved; looking again")

// Do performs one step of a decision. needsLook says that it changed what is judged; ErrStale: nothing
// (more) was done.
func (a *Actor) Do(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision, step promotion.Step) (needsLook bool, err error) {
	needsLook = true
	u, do := ev.Unit, func() error { return fmt.Errorf("no way to do %T", step.Action) }
	if x, ok := step.Action.(promotion.PullAction); ok {
		s, err := actionSubject(ev, d, x)
		if err != nil {
			return false, err
		}
		u, do = s.unit(), func() error { return a.doPullAction(ctx, &s, x) }
	} else if x, ok := step.Action.(promotion.SetDeployment); ok {
		do = func() error {
			needsLook, err = a.setDeployment(ctx, ev, x)
			return err
		}
	} else if step.Component >= 0 {
		c := ev.Components[step.Component]
		u, do = c.Facts.Unit, func() error { return a.doComponentAction(ctx, c, step.Action) }
	}
	text := step.Action.Describe()
	a.opts.Log.Info(text, unitFields(u)...)
	switch err = do(); {
	case err == nil:
		return needsLook, nil
	case errors.Is(err, git.ErrLeaseLost):
		// The mirror is behind: without a fetch the next look would see the same.
		if _, ferr := ev.Snapshot.Repo.Mirror.Fetch(ctx); ferr != nil {
			return false, fmt.Errorf("%s: %w; and the fetch after it: %w", text, err, ferr)
		}
		return false, fmt.Errorf("%s: %w (%v)", text, ErrStale, err)
	case errors.Is(err, forge.ErrConflict):
		return false, fmt.Errorf("%s: %w (%v)", text, ErrStale, err)
	}
	return false, fmt.Errorf("%s: %w", text, err)
}

// actionSubject is what an action on a pull request is done to.
func actionSubject(ev *facts.Evaluation, d *promotion.Decision, x promotion.PullAction) (subject, error) {
	number, members := x.Subject()
	s := subject{ev: ev, d: d, env: promotion.EnvironmentOf(x), members: members}
	switch x := x.(type) {
	case promotion.Open:
		s.batch = x.Batch
		return s, nil
	case promotion.OpenRevert:
		s.batch = x.Batch
		return s, nil
	}
	s.pull = ev.OpenPulls[number]
	if s.pull == nil {
		return s, fmt.Errorf("%w: #%d is not open", ErrStale, number)
	}
	s.number, s.batch = number, s.pull.Batch && ev.IsBatch()
	return s, nil
}

func (a *Actor) doPullAction(ctx context.Context, s *subject, action promotion.PullAction) error {
	switch x := action.(type) {
	case promotion.Open:
		return a.openPromotion(ctx, s, x)
	case promotion.Replace:
		return a.replaceHead(ctx, s, x)
	case promotion.Close:
		return a.closePull(ctx, s, x)
	case promotion.Merge:
		return a.mergePull(ctx, s, x)
	case promotion.LeaveQueue:
		return a.leaveQueue(ctx, s, x)
	case promotion.OpenRevert:
		return a.openRevert(ctx, s, x)
	case promotion.RecomposeRevert:
		return a.recomposeRevert(ctx, s, x)
	}
	return fmt.Errorf("no way to do %T", action)
}

func (a *Actor) doComponentAction(ctx context.Context, c *facts.ComponentEvaluation, action promotion.Action) error {
	switch x := action.(type) {
	case promotion.Record:
		return a.recordVerification(ctx, c, x)
	case promotion.Refresh:
		return a.refreshTarget(ctx, c, x)
	case promotion.Sync:
		return a.syncTarget(ctx, c, x)
	case promotion.RestartVerification:
		return a.restartVerification(ctx, c, x)
	case promotion.LiftVeto:
		return a.liftVeto(ctx, c, x)
	case promotion.BindCommand:
		return a.bindCommand(ctx, c, x)
	case promotion.ResetEndpoints:
		return a.opts.Store.Tx(ctx, "resetEndpoints", func(tx *store.Tx) error {
			return facts.ForgetEndpoints(ctx, tx, c.Facts.Unit.Repo, x.Pull)
		})
	case promotion.RejoinQueue:
		return facts.DropJoinedQueue(ctx, a.opts.Store, c.Facts.Unit.Repo, x.Pull)
	case promotion.RequestReviewers:
		return a.requestReviewers(ctx, c, x)
	case promotion.FinishCommand:
		return a.finishCommand(ctx, c, x)
	}
	return fmt.Errorf("no way to do %T", action)
}

// recordByHand writes down that a person put into an environment what would have been promoted there.
func (a *Actor) recordByHand(ctx context.Context, c *facts.ComponentEvaluation, x promotion.Record) error {
	env := c.Env(x.Environment)
	i := slices.IndexFunc(env.History, func(h promotion.Arrival) bool { return h.Release == x.Release && h.Commit == x.Commit })
	if i < 0 {
		return nil
	}
	history := slices.Clone(env.History) // others have it too
	history[i].By = promotion.ByHand
	row, err := c.ArrivalRow(x.Environment, &history[i])
	if err != nil {
		return err
	}
	err = a.opts.Store.Tx(ctx, "recordByHand", func(tx *store.Tx) error {
		_, err := tx.PutArrival(ctx, row)
		return err
	})
	if err == nil {
		env.History = history
	}
	return err
}

// recordVerification writes down that what landed was verified or degraded.
func (a *Actor) recordVerification(ctx context.Context, c *facts.ComponentEvaluation, x promotion.Record) error {
	if x.ByHand {
		return a.recordByHand(ctx, c, x)
	}
	env := c.Env(x.Environment)
	measure, history := func() {}, env.History
	err := a.opts.Store.Tx(ctx, "record", func(tx *store.Tx) error {
		for i := range env.History {
			h := &env.History[i]
			if h.Release != x.Release || h.Commit != x.Commit {
				continue
			}
			said := *h
			kind, state, verb, cause := event.Verified, promotion.Verified, "is verified", ""
			if x.Verified {
				said.MarkVerified(c.Facts.Now)
			}
			if x.Degraded {
				said.MarkDegraded(c.Facts.Now)
				kind, state, verb, cause = event.Degraded, promotion.Degraded, "is degraded", degradedCause(env)
			}
			row, err := c.ArrivalRow(x.Environment, &said)
			if err != nil {
				return err
			}
			if _, err := tx.PutArrival(ctx, row); err != nil {
				return err
			}
			pull := 0
			if env.Landed.OK {
				pull = env.Landed.Value.Pull
			}
			ev := newEvent(c, x.Environment, pull, kind, fmt.Sprintf("%s %s in %s%s", h.Name, verb, x.Environment, cause))
			ev.IdempotencyKey = fmt.Sprintf("%s|%s|%s|%s|%d", kind, wake.UnitName(c.Facts.Unit), x.Environment, x.Commit,
				row.VerifiedAt.UnixMicro()+row.DegradedAt.UnixMicro())
			if kind == event.Verified {
				ev.Data = runsOf(env)
			}
			measure = func() {
				a.opts.Metrics.Stage(x.Environment, state, c.Facts.Now.Sub(h.At))
				a.opts.Metrics.Delivered(c.Facts.Unit.Pipeline, x.Environment, c.Facts.MeasureDelivery(x))
			}
			if err := a.updatePromotion(ctx, tx, c, x.Environment, pull, x.Release, state); err != nil {
				return err
			}
			history = slices.Clone(env.History) // others have it too
			history[i] = said
			_, err = tx.AddEvents(ctx, ev)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.opts.Metrics != nil {
		measure()
	}
	env.History = history // what is opened right after it says so
	return nil
}

// degradedCause says what is wrong with the first target that is degraded, and how many
// more there are; "" where none is.
func degradedCause(env *promotion.Env) string {
	first, more := "", -1
	for i := range env.Targets {
		t := &env.Targets[i]
		if t.Verdict.State != verification.Degraded {
			continue
		}
		if more++; more == 0 {
			first = ": " + t.Name + ": " + t.Verdict.Reason
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}

// updatePromotion keeps the row of one promotion's life; without a pull request
// there is none.
func (a *Actor) updatePromotion(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, env string, pull int, release,
	state string) error {
	if pull == 0 {
		return nil
	}
	u := c.Facts.Unit
	kind := promotion.KindPromotion
	if p, ok, err := tx.PromotionByPull(ctx, wake.UnitName(u), u.Repo, pull); err != nil {
		return err
	} else if ok {
		kind = p.Kind
		if release == "" || kind == promotion.KindRevert { // a revert is about what it took back
			release = p.Release
		}
	}
	return a.putPromotionRow(ctx, tx, c, env, pull, kind, release, state)
}

func (a *Actor) putPromotionRow(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, env string, pull int, kind, release,
	state string) error {
	u := c.Facts.Unit
	_, err := tx.PutPromotion(ctx, store.Promotion{Unit: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
		Environment: env, Kind: kind, Release: release, Pull: pull, State: state, UpdatedAt: c.Facts.Now})
	if err != nil || state == promotion.Opened {
		return err
	}
	return facts.ForgetSettled(ctx, tx, u.Repo, pull)
}

// findTarget finds a target of an environment by what decisions call it, and its Argo CD.
func (a *Actor) findTarget(c *facts.ComponentEvaluation, env, name string) (ArgoCD, *appset.Target, error) {
	t := a.opts.Gatherer.FindTarget(c, env, name)
	if t == nil {
		return nil, nil, fmt.Errorf("%w: %s is no target any more", ErrStale, name)
	}
	w := a.opts.ArgoCDs[a.opts.Gatherer.ArgoCDs.ArgoCDOf(t)]
	if w == nil {
		return nil, nil, fmt.Errorf("the server's file has no Argo CD named %q", a.opts.Gatherer.ArgoCDs.ArgoCDOf(t))
	}
	return w, t, nil
}

func (a *Actor) refreshTarget(ctx context.Context, c *facts.ComponentEvaluation, x promotion.Refresh) error {
	w, t, err := a.findTarget(c, x.Environment, x.Target)
	if err != nil {
		return err
	}
	return w.Refresh(ctx, t.Namespace, t.Name)
}

func (a *Actor) syncTarget(ctx context.Context, c *facts.ComponentEvaluation, x promotion.Sync) error {
	w, t, err := a.findTarget(c, x.Environment, x.Target)
	if err != nil {
		return err
	}
	env := c.Env(x.Environment)
	request := verification.SyncRequest{Prune: verification.Prune(env.Spec.Verify.Prune), Reason: fmt.Sprintf("Liftlock: %s of %s in %s",
		env.Release.Value.Name, c.Facts.Unit.Component, env.Name)}
	request.Revisions = revisionsOnBranch(t, env.Branch, x.Tip)
	return w.Sync(ctx, t.Namespace, t.Name, request)
}

// revisionsOnBranch are a commit of a branch for each of a target's sources that deploys this
// branch of this repository. It is nil where none does, or it is hydrated.
func revisionsOnBranch(t *appset.Target, branch, commit string) []string {
	out := make([]string, len(t.Sources))
	follows := false
	for i := range t.Sources {
		s := &t.Sources[i]
		at := appset.BranchName(s.TargetRevision) // none: the tracked branch, which has the target as Here then
		isOnBranch := at == "" || at == branch
		if isOnBranch && s.Here && s.Chart == "" && t.Hydration == nil {
			out[i], follows = commit, true
		}
	}
	if !follows {
		return nil
	}
	return out
}

// restartVerification starts the verification of what landed again.
func (a *Actor) restartVerification(ctx context.Context, c *facts.ComponentEvaluation, x promotion.RestartVerification) error {
	env := c.Env(x.Environment)
	targets := slices.Concat(c.Unit.Envs[x.Environment].Targets, c.ChildTargets(x.Environment))
	return a.opts.Store.Tx(ctx, "forget", func(tx *store.Tx) error {
		for i := range targets {
			if err := a.forgetTarget(ctx, tx, c, env, &targets[i], x.Resync); err != nil {
				return err
			}
		}
		for i := range env.History {
			h := env.History[i]
			if !env.Landed.OK || h.Commit != env.Landed.Value.Commit {
				continue
			}
			h.VerifiedAt, h.DegradedAt, h.At = time.Time{}, time.Time{}, c.Facts.Now
			row, err := c.ArrivalRow(x.Environment, &h)
			if err != nil {
				return err
			}
			if _, err := tx.PutArrival(ctx, row); err != nil {
				return err
			}
		}
		_, err := tx.AddEvents(ctx, newEvent(c, x.Environment, 0, event.Retry, "the verification starts again"))
		return err
	})
}

// forgetTarget has a target judged anew, and another sync of it asked for where its name is among resync.
func (a *Actor) forgetTarget(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, env *promotion.Env, t *appset.Target,
	resync []string) error {
	unit, name := wake.UnitName(c.Facts.Unit), a.opts.Gatherer.ArgoCDs.TargetName(t)
	at := slices.IndexFunc(env.Targets, func(out promotion.Target) bool { return out.ID == name })
	var memory *verification.Memory
	if at >= 0 {
		v := &env.Targets[at].Verdict
		commit, release := env.Landed.Value.Commit, env.Release.Value.ID
		memory = verification.StartAgain(commit, release, v)
		if v.Unsynced != nil && slices.Contains(resync, env.Targets[at].Name) {
			retried := verification.RetrySync(commit, release, v.Unsynced, c.Facts.Now)
			memory = &retried
		}
	}
	if memory == nil {
		return tx.DeleteObservation(ctx, unit, env.Name, name)
	}
	data, err := json.Marshal(memory)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return tx.PutObservations(ctx, store.Observation{Unit: unit, Environment: env.Name, Target: name, Data: data})
}

// bindCommand ties a command to a release, and to the open pull request that moves it.
func (a *Actor) bindCommand(ctx context.Context, c *facts.ComponentEvaluation, x promotion.BindCommand) error {
	return a.opts.Store.Tx(ctx, "bound", func(tx *store.Tx) error {
		if env := c.Env(x.Environment); env != nil && env.Open != nil {
			if m, is := promotion.FindMember(env.Open.Members, c.Facts.Unit.Component); is && m.Release == x.Release {
				if err := putRequested(ctx, tx, c, x.ID, env.Open.Number, x.Release); err != nil {
					return err
				}
			}
		}
		return tx.BindPendingCommand(ctx, x.ID, x.Release)
	})
}

// liftVeto marks a closed pull request as superseded, for all that it moves: it is no veto any
// more. The record counts, or the signed mark in its body where the record is lost; the label shows
// it.
func (a *Actor) liftVeto(ctx context.Context, c *facts.ComponentEvaluation, x promotion.LiftVeto) error {
	r := c.Snapshot.Repo
	pr, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
	if err != nil {
		return err
	}
	if pr.State == forge.Open {
		return fmt.Errorf("%w: #%d is open again", ErrStale, x.Pull)
	}
	if err := r.Forge.AddLabels(ctx, r.Name, x.Pull, promotion.LabelSuperseded); err != nil {
		return err
	}
	err = a.opts.Store.Tx(ctx, "vetoLifted", func(tx *store.Tx) error {
		for _, member := range c.Evaluation.Components {
			_, moved, err := tx.PromotionByPull(ctx, wake.UnitName(member.Facts.Unit), r.ID, x.Pull)
			if err == nil && (moved || member == c) {
				err = a.updatePromotion(ctx, tx, member, x.Environment, x.Pull, "", "superseded")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if body := r.Marks.MarkClosed(r.ID, pr, pr.ClosedAt, pr.Body); body != pr.Body {
		if err := r.Forge.UpdatePullRequest(ctx, r.Name, x.Pull, forge.PullRequestUpdate{Body: &body}); err != nil {
			return err
		}
	}
	_, err = a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
	return err
}

// finishCommand answers a person's command where it was given.
func (a *Actor) finishCommand(ctx context.Context, c *facts.ComponentEvaluation, x promotion.FinishCommand) error {
	pending, err := a.opts.Store.PendingCommands(ctx, wake.UnitName(c.Facts.Unit))
	if err != nil {
		return err
	}
	for _, k := range pending {
		if k.ID != x.ID {
			continue
		}
		if !x.Done || x.Reply {
			reply := a.replyForCommand
			if c.Pipeline.Spec.BatchesByEnvironment() { // it may have been given for several, and each has its answer
				x.Outcome = c.Facts.Unit.Component + ": " + x.Outcome
				reply = a.replyForMember
			}
			if err := reply(ctx, c.Snapshot.Repo, k.Source, k.By, k.Verb+" "+k.Environment, x.Outcome); err != nil {
				return err
			}
		}
		return a.opts.Store.Tx(ctx, "finishPendingCommand", func(tx *store.Tx) error {
			if err := tx.FinishPendingCommand(ctx, x.ID, x.Outcome); err != nil {
				return err
			}
			_, err := tx.AddEvents(ctx, newEvent(c, k.Environment, 0, event.Command,
				fmt.Sprintf("%s's %s %s: %s", k.By, k.Verb, k.Environment,
					x.Outcome)))
			return err
		})
	}
	return nil
}
