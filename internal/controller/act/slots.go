package act

import (
	"context"
	"fmt"
	"maps"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
)

// takeSlot takes the right to open one more of something that is counted; ErrStale
// when another run holds it, here or in another process.
func (a *Actor) takeSlot(ctx context.Context, u promotion.Unit, name string) (func(), error) {
	owner := a.opts.Owner + "/" + wake.UnitName(u)
	ok, err := a.opts.Store.TakeSlot(ctx, name, owner, a.opts.Lease)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: another run holds %s", ErrStale, name)
	}
	return func() {
		if err := a.opts.Store.FreeSlot(context.WithoutCancel(ctx), name, owner); err != nil {
			a.opts.Log.Warn("a slot could not be given back; it comes free by itself", zap.String("slot", name), zap.Error(err))
		}
	}, nil
}

// takeRevertSlot takes the right to open one more revert and counts again. Targets that degrade at
// the same moment are judged at the same moment, and none of those judgements saw the others'
// reverts. The limit itself is the decision's.
func (a *Actor) takeRevertSlot(ctx context.Context, s *subject) (func(), error) {
	u := s.unit()
	c, _ := s.ev.Component(s.members[0].Component) // what is in use is counted alike for each
	if c == nil {
		return nil, fmt.Errorf("%w: %s is gone", ErrStale, s.members[0].Component)
	}
	free, err := a.takeSlot(ctx, u, "revert|"+u.Repo+"|"+u.Pipeline)
	if err != nil {
		return nil, err
	}
	now, err := a.opts.Gatherer.Records.CountUsedLimits(ctx, c)
	if err == nil && (!maps.Equal(now.RevertsByEnv, c.Facts.Limits.RevertsByEnv) || !maps.Equal(now.RevertsByCluster,
		c.Facts.Limits.RevertsByCluster)) {
		err = fmt.Errorf("%w: another revert was opened meanwhile", ErrStale)
	}
	if err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// takeOpenSlot says that a component is about to open a pull request in an environment and counts
// again: several may have been judged at the same moment. Each has a slot of its own, so that none
// waits for another's pull request where there is room for both. Where there is room for one only,
// both may have to try again, and never do both open.
func (a *Actor) takeOpenSlot(ctx context.Context, s *subject) (func(), error) {
	u := s.unit()
	place := "open|" + u.Repo + "|" + u.Pipeline + "|" + s.env + "|"
	free, err := a.takeSlot(ctx, u, place+u.Component)
	if err != nil || s.batch {
		return free, err // all have one pull request, whatever the limit
	}
	if err := a.checkOpenLimit(ctx, s, place); err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// checkOpenLimit is ErrStale where an environment has no room for one more pull request. It must
// come after the slot was taken: a component that has given back its own by then has its pull
// request among the open ones.
func (a *Actor) checkOpenLimit(ctx context.Context, s *subject, place string) error {
	u, r, limit := s.unit(), s.ev.Snapshot.Repo, s.ev.Pipeline.Spec.Limits.OpenPerEnvironment
	if limit <= 0 {
		return nil
	}
	n, err := a.opts.Store.CountSlots(ctx, place)
	if err != nil {
		return err
	}
	n-- // its own
	open, err := a.opts.Gatherer.PullCache.OpenPulls(ctx, r)
	if err != nil {
		return err
	}
	for _, pr := range open {
		ref, ok := promotion.ParseBranch(pr.Branch)
		if !ok || ref.Revert || ref.Component == u.Component {
			continue
		}
		if ref.Pipeline == u.Pipeline && ref.Environment == s.env && r.HasOpened(&pr) {
			n++
		}
	}
	if n >= limit {
		return fmt.Errorf("%w: %d pull requests are open in %s by now, or about to be", ErrStale, n, s.env)
	}
	return nil
}
