package verification

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// Drift is how a target differs from what Git says although what Git says was synced to
// it: somebody changed it in the cluster. Nothing is reverted or synced by it.
type Drift struct {
	Since     time.Time    `json:"since"`
	Resources []Difference `json:"resources,omitempty"` // the worst of them first
	Total     int          `json:"total"`               // how many there are
	SelfHeal  bool         `json:"selfHeal"`            // Argo CD is to undo it by itself
	// AutoSync says that a newer commit is synced without a person's doing, which undoes it.
	AutoSync bool `json:"autoSync,omitempty"`
}

// Difference is one resource that isn't in the cluster as Git says it.
type Difference struct {
	Group     string      `json:"group,omitempty"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	How       Discrepancy `json:"how"`
}

// Discrepancy is how a resource differs.
type Discrepancy string

// The discrepancies, the worst first. OutOfSync: the Application says no more than that.
const (
	IsMissing   Discrepancy = "missing"
	IsOutOfSync Discrepancy = "out of sync"
	IsDifferent Discrepancy = "different"
	IsExtra     Discrepancy = "extra"
)

// Rank orders discrepancies, the worst first.
func (d Discrepancy) Rank() int {
	return slices.Index([]Discrepancy{IsMissing, IsOutOfSync, IsDifferent, IsExtra}, d)
}

// maxNamed is how many resources a sentence names.
const maxNamed = 3

// Describe says in words what differs.
func (d *Drift) Describe() string {
	var names []string
	for _, r := range d.Resources[:min(len(d.Resources), maxNamed)] {
		names = append(names, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, r.How))
	}
	if more := d.Total - len(names); more > 0 && len(names) > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	what := "differs from Git"
	if len(names) > 0 {
		what += " in " + wording.Count(d.Total, "resource") + ": " + strings.Join(names, ", ")
	}
	if d.SelfHeal {
		what += "; Argo CD is to heal it"
	}
	return clipMessage(what)
}

// IsOverwritten says that the sync of a newer commit, which needs nobody, overwrites what was
// changed. Whether it also removes what Git doesn't have is another question.
func (d *Drift) IsOverwritten() bool {
	onlyExtra := d.Total > 0 && len(d.Resources) == d.Total && !slices.ContainsFunc(d.Resources,
		func(r Difference) bool { return r.How != IsExtra })
	return d.AutoSync && !onlyExtra
}

// findDrift remembers what was synced, and says how the target differs from it. A target
// that a newer commit or specification waits to be synced to has not drifted; and while a
// sync is under way nobody can tell.
func (j *judgement) findDrift() *Drift {
	a, m := j.app, &j.mem
	if j.driftUntold = j.whyDriftUntold(); j.driftUntold != "" {
		return nil
	}
	compared := a.comparedWith()
	switch {
	case a.SyncStatus == synced:
		m.SyncedWith, m.DriftSince = compared, time.Time{}
		return nil
	case a.SyncStatus != outOfSync:
		m.DriftSince, j.driftUntold = time.Time{}, "Argo CD has not said yet whether it is synced"
		return nil
	case compared == "" || compared != m.SyncedWith && !a.wasDeployed():
		m.DriftSince, j.driftUntold = time.Time{}, "it waits to be synced with what Git says by now"
		if hasFailed(a.Operation) {
			j.driftUntold += ", and its last sync ended " + a.Operation.Phase
		}
		return nil
	}
	if m.DriftSince.IsZero() {
		m.DriftSince = j.now
	}
	return &Drift{Since: m.DriftSince, Resources: a.Differences, Total: a.Differing, SelfHeal: a.SelfHeal,
		AutoSync: a.AutoSync || j.usesRollingSync() || j.isTriggered()}
}

// whyDriftUntold says why nobody can tell whether the target has drifted; empty where that
// can be told by its sync status.
func (j *judgement) whyDriftUntold() string {
	a := j.app
	switch {
	case j.e.Unreachable != "":
		return "Argo CD can't be asked: " + clipMessage(j.e.Unreachable)
	case a == nil:
		return "no such Application exists yet"
	case unclearReason(a) != "":
		return unclearReason(a)
	case !a.ComparedToSpec:
		return "Argo CD has not compared with the Application's present spec yet"
	case a.isOperating():
		return "a sync is under way"
	}
	return ""
}

// comparedWith stands for the revisions and sources that Argo CD compares with; empty
// where it has reported no revision.
func (a *App) comparedWith() string {
	if len(a.Revisions) == 0 {
		return ""
	}
	digest := fnv.New64a()
	fmt.Fprintf(digest, "%q %q", a.Revisions, a.Sources)
	return strconv.FormatUint(digest.Sum64(), 16)
}

// wasDeployed says that the last sync of the whole Application was of what Argo CD
// compares with, and that it has compared since.
func (a *App) wasDeployed() bool {
	if len(a.Deployed) == 0 {
		return false
	}
	last := &a.Deployed[0]
	return last.OfSpec && slices.Equal(last.Revisions, a.Revisions) && a.ReconciledAt.After(last.At)
}
