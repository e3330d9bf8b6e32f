package promotion

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// errStale says that the world is no longer what an action was judged on.
var errStale = errors.New("moved")

// errCrash says that the process died between the forge's part of an action and
// the store's.
var errCrash = errors.New("crashed")

// do performs an action as act does: the forge first, then the store. With crash
// the process dies in between.
func (w *simulation) do(f *ComponentFacts, a Action, crash bool) error {
	switch a := a.(type) {
	case Open:
		if w.hasUnmanagedPull(a.Environment, false, "") {
			return errStale
		}
		w.create(&simPull{env: a.Environment, ours: true, release: a.Release, declared: a.Release, base: w.logLengthAt(a.Tip)})
		return w.bindCommand(a.Members[0].CommandID, a.Release, crash)
	case Replace:
		p, err := w.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		p.release, p.headModified, p.base, p.head, p.changed = a.Release, "", w.logLengthAt(a.Tip), w.newHead(), w.now
		if crash {
			return errCrash // the description still names the old release
		}
		p.declared = a.Release
		return w.bindCommand(a.Members[0].CommandID, a.Release, false)
	case Close:
		p, err := w.findUnchangedPull(a.Pull, simHead(f, a.Environment, a.Pull))
		if err != nil {
			return err
		}
		p.super = true
		if crash {
			return errCrash // labelled, still open
		}
		p.open, p.ended = false, w.now
	case Merge:
		p, err := w.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		if w.tip() != a.Tip {
			return errStale
		}
		if a.Behind { // the same edits on the newest commit, which the forge is content with
			p.base, p.head, p.mergeable, p.changed = w.logLengthAt(a.Tip), w.newHead(), "yes", w.now
			return nil
		}
		if !w.merge(p, true, true) {
			return errStale
		}
		if crash {
			return errCrash
		}
	case OpenRevert:
		if w.hasUnmanagedPull(a.Environment, true, a.Release) {
			return errStale
		}
		c := &w.log[w.logLengthAt(a.Commit)-1]
		w.create(&simPull{env: a.Environment, revert: true, ours: true, release: a.Release, back: c.before, base: w.logLengthAt(a.Tip)})
		return w.bindCommand(a.Members[0].CommandID, a.Release, crash)
	case RecomposeRevert:
		p, err := w.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		p.base, p.head, p.changed = w.logLengthAt(a.Tip), w.newHead(), w.now
	case LiftVeto:
		w.pull(a.Pull).super = true
	case RestartVerification:
		w.forget(a.Environment)
	case BindCommand:
		return w.bindCommand(a.ID, a.Release, false)
	case FinishCommand:
		w.store.pending = slices.DeleteFunc(w.store.pending, func(k PendingCommand) bool { return k.ID == a.ID })
	case Record:
		for i := range w.store.history[a.Environment] {
			h := &w.store.history[a.Environment][i]
			if h.Release != a.Release || h.Commit != a.Commit {
				continue
			}
			switch {
			case a.ByHand:
				h.By, w.adopted[a.Commit] = ByHand, true
			case a.Verified:
				h.MarkVerified(w.clock())
			default:
				h.MarkDegraded(w.clock())
			}
		}
	case Refresh, Sync:
	default:
		return fmt.Errorf("no way to do %T", a)
	}
	return nil
}

// bindCommand is the store's part of an action that fulfils a command.
func (w *simulation) bindCommand(commandID int64, release string, crash bool) error {
	if crash {
		return errCrash
	}
	for i := range w.store.pending {
		if w.store.pending[i].ID == commandID {
			w.store.pending[i].Release = release
		}
	}
	return nil
}

// findUnchangedPull finds a pull request that must still be as it was judged.
func (w *simulation) findUnchangedPull(number int, head string) (*simPull, error) {
	p := w.pull(number)
	if !p.open || p.head != head {
		return nil, errStale
	}
	return p, nil
}

func (w *simulation) hasUnmanagedPull(env string, revert bool, release string) bool {
	return slices.ContainsFunc(w.pulls, func(p *simPull) bool {
		return p.open && !p.ours && p.env == env && p.revert == revert && (!revert || p.release == release)
	})
}

func (w *simulation) forget(env string) {
	i := w.landed(env)
	for k := range w.store.history[env] {
		if h := &w.store.history[env][k]; h.Commit == w.log[i].sha {
			h.VerifiedAt, h.DegradedAt = time.Time{}, time.Time{}
		}
	}
	for _, t := range w.targets[env] {
		t.state, t.since = verification.Arriving, w.now
	}
}

// logLengthAt is the length of the log whose last commit is sha.
func (w *simulation) logLengthAt(sha string) int {
	return slices.IndexFunc(w.log, func(c simCommit) bool { return c.sha == sha }) + 1
}

func simHead(f *ComponentFacts, env string, number int) string {
	e := simEnv(f, env)
	for _, p := range []*Pull{e.Open, e.Revert} {
		if p != nil && p.Number == number {
			return p.Head
		}
	}
	return ""
}
