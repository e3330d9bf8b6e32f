package promotion

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// guiltModel is a target over time, with what is done to it and around it. It knows the
// truth that the properties are about, from what happened and not from what was judged.
type guiltModel struct {
	app       verification.App
	health    string // how the target really is, however its Argo CD says so
	synced    bool   // it was Synced before it lost a resource that it needs
	prev      *verification.App
	rel       verification.Relation
	opRel     verification.Relation
	down      string
	culprits  []verification.Resource
	brought   bool   // the promotion brought the image that can't be pulled
	treeErr   string // why the culprits can't be read; empty: they can
	incidents []ClusterIncident
	others    []string // other commits that changed what the target reads
	wellThen  bool     // it was well before the merge
	quiet     bool     // nothing else happens: what becomes of it is the release's doing
	cluster   time.Duration

	now time.Time
	mem verification.Memory

	// The truth.
	deployed       bool      // a whole sync of X succeeded
	deployedBefore bool      // and did so before the last operation began
	failSince      time.Time // its own first whole sync has failed in a resource, at every look since
	done           bool      // it is synced to X
	everDone       bool      // it was
	reconciles     int       // comparisons since it was done without a break
	lastSeen       time.Time // the comparison that was seen last
	fresh          bool      // a comparison since is certain
	freshSince     time.Time
	firstFailed    bool      // its own first whole sync failed in a resource, and none succeeded since
	badSince       time.Time // Degraded or Missing, for certain about X, at every look since
	unhealthySince time.Time // not Healthy with X, at every look since
	surelySince    time.Time // and for certain about X, and not in the middle of a sync
	wasUnhealthy   bool      // for debounce, and not Healthy since
	illBefore      bool      // Degraded or Missing before its sync began, and not well since it ended
	missingBefore  bool      // Missing when compared with the release before its sync began, and ever since
	meddled        bool      // at some time there was something that may explain it, or hides it
}

// unpulledPod is a pod that can't pull an image.
var unpulledPod = verification.Descendant{Kind: "Pod", Name: "web-7c", Health: "Degraded", Reason: "ImagePullBackOff", Message: `Back-off pulling image "proxy:1"`}

var ownObject = Object{"apps", "Deployment", "shop", "web"}

const (
	guiltDebounce = 30 * time.Second
	guiltTimeout  = 3 * time.Minute
)

func newGuiltModel(t *rapid.T) *guiltModel {
	w := &guiltModel{now: noon, health: "Healthy", rel: verification.Before, quiet: rapid.Bool().Draw(t, "quiet"), wellThen: true,
		app: verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "web-qa", UID: "u", AutoSync: true, SyncStatus: "Synced", Revisions: []string{"w"},
			ComparedToSpec: true, Health: "Healthy", ReconciledAt: noon.Add(-time.Hour)}}
	if !w.quiet {
		w.wellThen = rapid.IntRange(0, 5).Draw(t, "well before") > 0
	}
	if rapid.Bool().Draw(t, "synced already") {
		w.rel, w.opRel, w.deployed = verification.Holds, verification.Holds, true
		w.app.Revisions, w.app.Operation = []string{"x"}, &verification.Operation{Phase: "Succeeded", Revisions: []string{"x"}, Automated: true}
	}
	return w
}

// step lets something happen.
func (w *guiltModel) step(t *rapid.T) {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	switch rapid.IntRange(0, 10).Draw(t, "event") {
	case 0, 1, 2:
		w.compare()
	case 3: // Argo CD notices the commit
		if w.rel != verification.Holds {
			w.rel, w.app.Revisions, w.app.SyncStatus = verification.Holds, []string{"x"}, "OutOfSync"
			w.compare()
		}
	case 4:
		w.operate(t)
	case 5, 6:
		w.changeHealth(pick("health", "Healthy", "Healthy", "Degraded", "Degraded", "Missing", "lost", "Progressing", "Progressing", "Suspended", "Unknown"))
		w.culprits = nil
		switch w.health {
		case "lost":
			w.health = "Missing"
			w.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Missing"}}
		case "Degraded", "Missing":
			switch pick("culprit", "own", "own", "another", "untold", "unpulled") {
			case "unpulled":
				w.brought = rapid.Bool().Draw(t, "brought")
				w.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: w.app.Health, Descendants: []verification.Descendant{unpulledPod}}}
			case "own":
				w.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: w.app.Health}}
			case "another":
				w.culprits = []verification.Resource{{Group: "batch", Kind: "CronJob", Namespace: "shop", Name: "nightly", Health: w.app.Health}}
			}
		}
		w.app.Unhealthy = w.culprits
	case 7:
		w.down = pick("reach", "", "", "timeout")
		w.app.Conditions = nil
		if pick("condition", "", "", "ComparisonError") != "" {
			w.app.Conditions = []verification.Condition{{Type: "ComparisonError", Message: "m"}}
		}
	case 8:
		w.incidents = nil
		if !w.quiet && pick("incident", "no", "no", "yes") == "yes" {
			other := ClusterIncident{ID: "db", Cluster: pick("cluster", "one", "two"), Target: "db", Since: w.now, Unsettled: rapid.Bool().Draw(t, "unsettled")}
			if pick("who", "another", "another", "the old release") == "the old release" {
				other.ID, other.Target, other.Component, other.Environment = "web-prod", "web-prod", "web", "prod"
			}
			w.incidents = []ClusterIncident{other}
		}
	case 9:
		w.treeErr = pick("tree", "", "", "403 Forbidden")
		if !w.quiet && pick("commit", "no", "no", "no", "yes") == "yes" {
			w.others = []string{"another"}
		}
	case 10: // the branch goes on
		if w.rel == verification.Before {
			return
		}
		w.app.Revisions = []string{pick("revision", "x", "x", "y", "y", "unknown", "newer")}
		w.rel = map[string]verification.Relation{"x": verification.Holds, "y": verification.Holds, "unknown": verification.Unresolved, "newer": verification.Superseded}[w.app.Revisions[0]]
		w.compare()
	}
}

// changeHealth changes how the target is. That it has lost a resource shows, from Argo CD 3.4 on, in
// that one and in what differs, and its health stays as it was.
func (w *guiltModel) changeHealth(health string) {
	if w.synced {
		w.app.SyncStatus, w.synced = "Synced", false
	}
	w.health = health
	if health != "lost" {
		w.app.Health = health
		return
	}
	w.synced = w.app.SyncStatus == "Synced"
	w.app.Health, w.app.SyncStatus = "Healthy", "OutOfSync"
}

// compare lets the controller finish a comparison.
func (w *guiltModel) compare() {
	w.cluster += time.Second
	w.app.ReconciledAt, w.app.RefreshPending = noon.Add(-time.Hour+w.cluster), false
}

// operate lets an operation begin, or end: of the release or of what was there before, by
// Argo CD, a person or a self-heal.
func (w *guiltModel) operate(t *rapid.T) {
	op := &verification.Operation{Phase: rapid.SampledFrom([]string{"Running", "Succeeded", "Succeeded", "Failed", "Failed", "Error"}).Draw(t, "phase"), Revisions: []string{"w"}}
	switch rapid.SampledFrom([]string{"Argo CD", "its ApplicationSet controller", "a person"}).Draw(t, "whose") {
	case "Argo CD":
		op.Automated = true
	case "its ApplicationSet controller":
		op.Automated, op.By = true, "applicationset-controller"
	case "a person":
		op.By = "ada"
	}
	w.opRel, w.deployedBefore = verification.Before, w.deployed
	if w.rel == verification.Holds && rapid.IntRange(0, 4).Draw(t, "of") > 0 {
		w.opRel, op.Revisions = verification.Holds, []string{"x"}
	}
	switch rapid.SampledFrom([]string{"whole", "whole", "whole", "dry run", "local", "partial", "self-heal", "terminated"}).Draw(t, "kind") {
	case "dry run":
		op.DryRun = true
	case "local":
		op.Local = true
	case "partial":
		op.Partial = true
	case "self-heal":
		op.SelfHealAttempts = 2
	case "terminated":
		op.Message = "Operation terminated"
	}
	if (op.Phase == "Failed" || op.Phase == "Error") && rapid.Bool().Draw(t, "a resource failed") {
		op.Results = []verification.SyncResult{{Group: "apps", Kind: "Deployment", Name: "web", Status: "SyncFailed", Message: "denied"}}
	}
	w.app.Operation = op
	if w.opRel != verification.Holds || !op.IsWhole() {
		return
	}
	switch op.Phase {
	case "Succeeded":
		if w.health == "Missing" && w.app.Health == "Healthy" { // what was lost is there again
			w.health, w.culprits, w.app.Unhealthy = "Healthy", nil, nil
		}
		w.app.SyncStatus, w.synced, w.firstFailed, w.deployed = "Synced", false, false, true
		w.compare()
	case "Failed":
		w.firstFailed = w.firstFailed || !w.everDone && !w.deployed && len(op.Results) > 0 && op.Message == ""
	}
}

// recordTruth notes what is so at a look.
func (w *guiltModel) recordTruth() {
	a := &w.app
	running := a.Operation != nil && a.Operation.Phase == "Running"
	if w.down == "" && w.rel == verification.Superseded { // whatever comes back has to arrive anew
		w.everDone, w.fresh, w.reconciles, w.illBefore, w.missingBefore, w.wasUnhealthy = false, false, 0, false, false, false
	}
	sure := w.down == "" && len(a.Conditions) == 0 && w.rel != verification.Superseded
	begun := a.Operation != nil && w.opRel == verification.Holds || w.everDone || w.deployedBefore
	if sure && !begun && !(w.rel == verification.Holds && a.SyncStatus == "Synced") {
		switch {
		case w.health == "Missing" && w.rel == verification.Holds:
			w.missingBefore = true
		case w.health == "Degraded" || w.health == "Missing":
			w.illBefore = true
		case w.health == "Healthy":
			w.illBefore, w.missingBefore = false, false
		}
	} else if sure && w.health != "Missing" {
		w.missingBefore = false
	}
	failed := a.HasFailedSync() && w.opRel == verification.Holds && !w.everDone && !w.deployedBefore
	convicted := failed && a.Operation.Phase == "Failed" && len(a.Operation.Results) > 0 && a.Operation.Message == ""
	w.failSince = keepSince(w.failSince, sure && w.rel == verification.Holds && convicted, w.now)
	w.done = sure && w.rel == verification.Holds && a.SyncStatus == "Synced" && !running && !failed
	w.everDone = w.everDone || w.done
	switch {
	case w.fresh:
	case !w.done && sure:
		w.reconciles = 0
	case w.done && w.reconciles == 0 && !a.RefreshPending, w.done && w.reconciles > 0 && !a.ReconciledAt.Equal(w.lastSeen):
		w.reconciles++
		w.fresh = w.reconciles > 2
	}
	w.lastSeen = a.ReconciledAt
	w.freshSince = keepSince(w.freshSince, w.fresh, w.now)
	bad := w.health == "Degraded" || w.health == "Missing"
	w.badSince = keepSince(w.badSince, sure && w.fresh && w.rel == verification.Holds && bad && !running, w.now)
	unhealthy := bad || w.health == "Progressing"
	w.unhealthySince = keepSince(w.unhealthySince, sure && w.everDone && w.rel == verification.Holds && unhealthy, w.now)
	w.surelySince = keepSince(w.surelySince, sure && w.fresh && w.rel == verification.Holds && unhealthy && !(running && w.health == "Missing"), w.now)
	if sure && w.health == "Healthy" {
		w.wasUnhealthy = w.wasUnhealthy && w.rel == verification.Unresolved // that says nothing of the release
		w.illBefore = w.illBefore && !w.everDone
	}
	w.wasUnhealthy = w.wasUnhealthy || !w.unhealthySince.IsZero() && w.now.Sub(w.unhealthySince) >= guiltDebounce
	w.meddled = w.meddled || !w.wellThen || w.illBefore || w.missingBefore || len(w.others) > 0 || len(w.incidents) > 0
}

func keepSince(since time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// innocent says why a revert would be wrong whatever became of the target; empty: nothing.
// bySync says that it is the release's own sync that convicts it.
func (w *guiltModel) innocent(bySync bool) string {
	switch {
	case !w.wellThen:
		return "it was unwell before the merge"
	case w.illBefore || w.missingBefore:
		return "it was unwell before its sync began"
	case len(w.others) > 0:
		return "another commit changed what it reads"
	case w.rel == verification.Superseded || w.rel == verification.Unresolved:
		return "it isn't known to run the release"
	case !bySync && w.treeErr == "" && len(w.culprits) > 0 && w.culprits[0].Kind == "CronJob":
		return "what is degraded fails by itself, and wasn't changed"
	case !bySync && w.treeErr == "" && len(w.culprits) > 0 && w.culprits[0].Descendants != nil && !w.brought:
		return "an image can't be pulled that it didn't change"
	}
	guilty := bySync || w.treeErr == "" && slices.ContainsFunc(w.culprits, func(r verification.Resource) bool { return r.Name == ownObject.Name })
	for _, i := range w.incidents {
		switch lasts := !i.Unsettled || w.now.Sub(i.Since) >= guiltDebounce; {
		case !lasts:
		case i.Environment == "prod":
			return "what was there before is unwell elsewhere"
		case i.Cluster == "one" && !guilty:
			return "there is an incident on its cluster"
		}
	}
	return ""
}

// evaluate judges the target and decides; true when a revert is opened.
func (w *guiltModel) evaluate(t *rapid.T) (verification.Verdict, bool) {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
	e.Landed.Value.At = noon
	f.Now = w.now
	v := &e.Spec.Verify
	v.Timeout, v.Watch = pipeline.Duration(guiltTimeout), mins(60)
	expect := verification.Expect{Commit: "x", Release: "r2", Landed: noon, OperationRel: []verification.Relation{w.opRel}, DeployedBefore: w.deployedBefore && w.app.NeedsHistory(), Unreachable: w.down, Limits: verification.Limits{
		ArriveWithin: v.ArriveWithin.AsDuration(), Timeout: v.Timeout.AsDuration(), HealthyFor: v.HealthyFor.AsDuration(), Watch: v.Watch.AsDuration(), Debounce: v.Debounce.AsDuration(),
		QueueFor: 24 * time.Hour, SuspendedFor: 24 * time.Hour}}
	app := verification.TrackRefresh(w.prev, w.app)
	w.prev = &app
	verdict, mem := verification.Judge(expect, &app, []verification.Relation{w.rel}, w.mem, w.now)
	w.mem = mem
	if verdict.Refresh {
		w.app.RefreshPending = true
	}
	e.Targets[0].Verdict, e.Targets[0].Unhealthy, e.Targets[0].HealthyBefore = verdict, Known[[]verification.Resource]{}, Sure(w.wellThen)
	e.Targets[0].ChangedSince, e.Targets[0].ChangedObjects = Sure(w.others), Sure([]Object{ownObject})
	if w.brought {
		e.Targets[0].BroughtImages = []string{"proxy:1"}
	}
	e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
	f.ClusterIncidents = w.incidents
	d := Decide(Facts{Components: []ComponentFacts{*f}})
	if slices.ContainsFunc(d.Components[0].Actions, func(a Action) bool { r, ok := a.(FactRequest); return ok && r.What == RequestCulprits }) {
		if e.Targets[0].Unhealthy = Sure(verification.AddCulprits(w.culprits, verdict.Culprits)); w.treeErr != "" && len(verdict.Culprits) == 0 {
			e.Targets[0].Unhealthy = Unsure[[]verification.Resource](w.treeErr)
		}
		d = Decide(Facts{Components: []ComponentFacts{*f}})
	}
	return verdict, slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok })
}

// TestOnlyTheGuiltyIsReverted looks at a target over random histories of operations, whosever
// and of whatever kind, revisions, health, culprits (also with images that can't be pulled) and whether they can be told, incidents on
// its cluster and of the release before elsewhere, and trouble with Argo CD. No
// revert opens but where the release's own first whole sync failed in a resource, or the
// target became unwell with it and nothing else explains that. And where that sync has failed
// so, or the target is Degraded or Missing for certain, and nothing else ever could explain
// that, a revert opens within debounce and one look; within timeout where it doesn't get well.
func TestOnlyTheGuiltyIsReverted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newGuiltModel(t)
		var next time.Time
		for range rapid.IntRange(5, 40).Draw(t, "looks") {
			for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "events") {
				w.step(t)
			}
			if next.After(w.now) && next.Sub(w.now) < 2*time.Minute && rapid.Bool().Draw(t, "on time") {
				w.now = next
			} else {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 80).Draw(t, "wait")) * time.Second)
			}
			w.recordTruth()
			v, reverts := w.evaluate(t)
			next = v.Next
			unhealthy := w.wasUnhealthy && !w.unhealthySince.IsZero()
			switch why := w.innocent(len(v.Culprits) > 0); {
			case reverts && why != "":
				t.Fatalf("a revert opens although %s: %+v", why, v)
			case reverts && !unhealthy && (!w.firstFailed || w.everDone):
				t.Fatalf("a revert opens of a release that did nothing: %+v, operation %+v", v, w.app.Operation)
			case reverts || why != "" || w.meddled:
			case !w.badSince.IsZero() && w.now.Sub(w.badSince) >= guiltDebounce:
				t.Fatalf("no revert opens %s after it became %s: %+v", w.now.Sub(w.badSince), w.health, v)
			case !w.surelySince.IsZero() && w.now.Sub(w.surelySince) >= guiltTimeout && w.now.Sub(w.freshSince) >= guiltDebounce:
				t.Fatalf("no revert opens although it has not been well for %s: it is %s: %+v", w.now.Sub(w.surelySince), w.health, v)
			case !w.failSince.IsZero() && (w.app.Revisions[0] == "x" || w.now.Sub(w.failSince) >= guiltDebounce):
				t.Fatalf("no revert opens %s after its own first sync failed: %+v", w.now.Sub(w.failSince), v)
			}
		}
	})
}
