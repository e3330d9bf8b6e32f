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
func (si *simulation) do(f *ComponentFacts, a Action, crash bool) error {
	switch a := a.(type) {
	case Open:
		if si.hasUnmanagedPull(a.Environment, false, "") {
			return errStale
		}
		si.create(&simPull{env: a.Environment, ours: true, release: a.Release, declared: a.Release, base: si.logLengthAt(a.Tip)})
		return si.bindCommand(a.Members[0].CommandID, a.Release, crash)
	case Replace:
		p, err := si.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		p.release, p.headModified, p.base, p.head, p.changed = a.Release, "", si.logLengthAt(a.Tip), si.newHead(), si.now
		if crash {
			return errCrash // the description still names the old release
		}
		p.declared = a.Release
		return si.bindCommand(a.Members[0].CommandID, a.Release, false)
	case Close:
		p, err := si.findUnchangedPull(a.Pull, simHead(f, a.Environment, a.Pull))
		if err != nil {
			return err
		}
		p.super = true
		if crash {
			return errCrash // labelled, still open
		}
		p.open, p.ended = false, si.now
	case Merge:
		p, err := si.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		if si.tip() != a.Tip {
			return errStale
		}
		if a.Behind { // the same edits on the newest commit, which the forge is content with
			p.base, p.head, p.mergeable, p.changed = si.logLengthAt(a.Tip), si.newHead(), "yes", si.now
			return nil
		}
		if !si.merge(p, true, true) {
			return errStale
		}
		if crash {
			return errCrash
		}
	case OpenRevert:
		if si.hasUnmanagedPull(a.Environment, true, a.Release) {
			return errStale
		}
		c := &si.log[si.logLengthAt(a.Commit)-1]
		si.create(&simPull{env: a.Environment, revert: true, ours: true, release: a.Release, back: c.before, base: si.logLengthAt(a.Tip)})
		return si.bindCommand(a.Members[0].CommandID, a.Release, crash)
	case RecomposeRevert:
		p, err := si.findUnchangedPull(a.Pull, a.Head)
		if err != nil {
			return err
		}
		p.base, p.head, p.changed = si.logLengthAt(a.Tip), si.newHead(), si.now
	case LiftVeto:
		si.pull(a.Pull).super = true
	case RestartVerification:
		si.forget(a.Environment)
	case BindCommand:
		return si.bindCommand(a.ID, a.Release, false)
	case FinishCommand:
		si.store.pending = slices.DeleteFunc(si.store.pending, func(k PendingCommand) bool { return k.ID == a.ID })
	case Record:
		for i := range si.store.history[a.Environment] {
			h := &si.store.history[a.Environment][i]
			if h.Release != a.Release || h.Commit != a.Commit {
				continue
			}
			switch {
			case a.ByHand:
				h.By, si.adopted[a.Commit] = ByHand, true
			case a.Verified:
				h.MarkVerified(si.clock())
			default:
				h.MarkDegraded(si.clock())
			}
		}
	case Refresh, Sync:
	default:
		return fmt.Errorf("no way to do %T", a)
	}
	return nil
}

// bindCommand is the store's part of an action that fulfils a command.
func (si *simulation) bindCommand(commandID int64, release string, crash bool) error {
	if crash {
		return errCrash
	}
	for i := range si.store.pending {
		if si.store.pending[i].ID == commandID {
			si.store.pending[i].Release = release
		}
	}
	return nil
}

// findUnchangedPull finds a pull request that must still be as it was judged.
func (si *simulation) findUnchangedPull(number int, head string) (*simPull, error) {
	p := si.pull(number)
	if !p.open || p.head != head {
		return nil, errStale
	}
	return p, nil
}

func (si *simulation) hasUnmanagedPull(env string, revert bool, release string) bool {
	return slices.ContainsFunc(si.pulls, func(p *simPull) bool {
		return p.open && !p.ours && p.env == env && p.revert == revert && (!revert || p.release == release)
	})
}

func (si *simulation) forget(env string) {
	i := si.landed(env)
	for k := range si.store.history[env] {
		if h := &si.store.history[env][k]; h.Commit == si.log[i].sha {
			h.VerifiedAt, h.DegradedAt = time.Time{}, time.Time{}
		}
	}
	for _, t := range si.targets[env] {
		t.state, t.since = verification.Arriving, si.now
	}
}

// logLengthAt is the length of the log whose last commit is sha.
func (si *simulation) logLengthAt(sha string) int {
	return slices.IndexFunc(si.log, func(c simCommit) bool { return c.sha == sha }) + 1
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
