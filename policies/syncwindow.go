package policies

import (
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// TargetWindow is how the sync windows of Argo CD stand that are about one target.
type TargetWindow struct {
	Target  string `json:"target"`
	Project string `json:"project,omitempty"` // the AppProject that has them
	Closed  bool   `json:"closed,omitempty"`  // they keep it from being synced
	// Changes is when they open where they are closed, and close where they are open; zero:
	// not within a year.
	Changes time.Time `json:"changes,omitzero"`
	Err     string    `json:"err,omitempty"` // why that can't be told; empty: it can
}

// FollowsSyncWindows says that the gate goes by Argo CD's sync windows, so that it needs
// [Facts.SyncWindows].
func (g *Gate) FollowsSyncWindows() bool {
	if g.Window != nil && g.Window.ArgoCD {
		return true
	}
	for i := range g.Windows {
		if g.Windows[i].ArgoCD {
			return true
		}
	}
	return false
}

// evaluateSyncWindows passes while every target can be synced.
func evaluateSyncWindows(gate GateName, f Facts) Result {
	r := Result{Gate: gate, Outcome: Wait}
	if len(f.SyncWindows) == 0 {
		r.Reason = "Argo CD's sync windows can't be told: no target of the environment is known"
		return r
	}
	var closed, closing *TargetWindow
	waiting := 0
	for i := range f.SyncWindows {
		switch w := &f.SyncWindows[i]; {
		case w.Err != "":
			r.Reason = fmt.Sprintf("Argo CD's sync windows for %s can't be told: %s", w.Target, wording.ClipLine(w.Err, maxMetricText))
			return r
		case !w.Closed:
			if !w.Changes.IsZero() && (closing == nil || w.Changes.Before(closing.Changes)) {
				closing = w
			}
		default:
			waiting++
			// All must be open at once: the one that opens last is waited for.
			if closed == nil || !closed.Changes.IsZero() && (w.Changes.IsZero() || w.Changes.After(closed.Changes)) {
				closed = w
			}
		}
	}
	if closed == nil {
		r.Outcome, r.Reason = Pass, "open for "+wording.Count(len(f.SyncWindows), "target")
		if closing != nil {
			r.Until = closing.Changes
			r.Reason += " until " + formatInstant(closing.Changes, time.UTC)
		}
		return r
	}
	r.Reason = fmt.Sprintf("Argo CD's sync windows keep %s (project %s)", closed.Target, closed.Project)
	if waiting > 1 {
		r.Reason += " and " + wording.Count(waiting-1, "other")
	}
	r.Reason += " from being synced"
	if r.Until = closed.Changes; !r.Until.IsZero() {
		r.Reason += " until " + formatInstant(r.Until, time.UTC)
	}
	return r
}
