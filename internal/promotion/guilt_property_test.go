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
func (g *guiltModel) step(t *rapid.T) {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	switch rapid.IntRange(0, 10).Draw(t, "event") {
	case 0, 1, 2:
		g.compare()
	case 3: // Argo CD notices the commit
		if g.rel != verification.Holds {
			g.rel, g.app.Revisions, g.app.SyncStatus = verification.Holds, []string{"x"}, "OutOfSync"
			g.compare()
		}
	case 4:
		g.operate(t)
	case 5, 6:
		g.changeHealth(pick("health", "Healthy", "Healthy", "Degraded", "Degraded", "Missing", "lost", "Progressing", "Progressing", "Suspended", "Unknown"))
		g.culprits = nil
		switch g.health {
		case "lost":
			g.health = "Missing"
			g.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Missing"}}
		case "Degraded", "Missing":
			switch pick("culprit", "own", "own", "another", "untold", "unpulled") {
			case "unpulled":
				g.brought = rapid.Bool().Draw(t, "brought")
				g.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: g.app.Health, Descendants: []verification.Descendant{unpulledPod}}}
			case "own":
				g.culprits = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: g.app.Health}}
			case "another":
				g.culprits = []verification.Resource{{Group: "batch", Kind: "CronJob", Namespace: "shop", Name: "nightly", Health: g.app.Health}}
			}
		}
		g.app.Unhealthy = g.culprits
	case 7:
		g.down = pick("reach", "", "", "timeout")
		g.app.Conditions = nil
		if pick("condition", "", "", "ComparisonError") != "" {
			g.app.Conditions = []verification.Condition{{Type: "ComparisonError", Message: "m"}}
		}
	case 8:
		g.incidents = nil
		if !g.quiet && pick("incident", "no", "no", "yes") == "yes" {
			other := ClusterIncident{ID: "db", Cluster: pick("cluster", "one", "two"), Target: "db", Since: g.now, Unsettled: rapid.Bool().Draw(t, "unsettled")}
			if pick("who", "another", "another", "the old release") == "the old release" {
				other.ID, other.Target, other.Component, other.Environment = "web-prod", "web-prod", "web", "prod"
			}
			g.incidents = []ClusterIncident{other}
		}
	case 9:
		g.treeErr = pick("tree", "", "", "403 Forbidden")
		if !g.quiet && pick("commit", "no", "no", "no", "yes") == "yes" {
			g.others = []string{"another"}
		}
	case 10: // the branch goes on
		if g.rel == verification.Before {
			return
		}
		g.app.Revisions = []string{pick("revision", "x", "x", "y", "y", "unknown", "newer")}
		g.rel = map[string]verification.Relation{"x": verification.Holds, "y": verification.Holds, "unknown": verification.Unresolved, "newer": verification.Superseded}[g.app.Revisions[0]]
		g.compare()
	}
}

// changeHealth changes how the target is. That it has lost a resource shows, from Argo CD 3.4 on, in
// that one and in what differs, and its health stays as it was.
func (g *guiltModel) changeHealth(health string) {
	if g.synced {
		g.app.SyncStatus, g.synced = "Synced", false
	}
	g.health = health
	if health != "lost" {
		g.app.Health = health
		return
	}
	g.synced = g.app.SyncStatus == "Synced"
	g.app.Health, g.app.SyncStatus = "Healthy", "OutOfSync"
}

// compare lets the controller finish a comparison.
func (g *guiltModel) compare() {
	g.cluster += time.Second
	g.app.ReconciledAt, g.app.RefreshPending = noon.Add(-time.Hour+g.cluster), false
}

// operate lets an operation begin, or end: of the release or of what was there before, by
// Argo CD, a person or a self-heal.
func (g *guiltModel) operate(t *rapid.T) {
	op := &verification.Operation{Phase: rapid.SampledFrom([]string{"Running", "Succeeded", "Succeeded", "Failed", "Failed", "Error"}).Draw(t, "phase"), Revisions: []string{"w"}}
	switch rapid.SampledFrom([]string{"Argo CD", "its ApplicationSet controller", "a person"}).Draw(t, "whose") {
	case "Argo CD":
		op.Automated = true
	case "its ApplicationSet controller":
		op.Automated, op.By = true, "applicationset-controller"
	case "a person":
		op.By = "ada"
	}
	g.opRel, g.deployedBefore = verification.Before, g.deployed
	if g.rel == verification.Holds && rapid.IntRange(0, 4).Draw(t, "of") > 0 {
		g.opRel, op.Revisions = verification.Holds, []string{"x"}
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
	g.app.Operation = op
	if g.opRel != verification.Holds || !op.IsWhole() {
		return
	}
	switch op.Phase {
	case "Succeeded":
		if g.health == "Missing" && g.app.Health == "Healthy" { // what was lost is there again
			g.health, g.culprits, g.app.Unhealthy = "Healthy", nil, nil
		}
		g.app.SyncStatus, g.synced, g.firstFailed, g.deployed = "Synced", false, false, true
		g.compare()
	case "Failed":
		g.firstFailed = g.firstFailed || !g.everDone && !g.deployed && len(op.Results) > 0 && op.Message == ""
	}
}

// recordTruth notes what is so at a look.
func (g *guiltModel) recordTruth() {
	a := &g.app
	running := a.Operation != nil && a.Operation.Phase == "Running"
	if g.down == "" && g.rel == verification.Superseded { // whatever comes back has to arrive anew
		g.everDone, g.fresh, g.reconciles, g.illBefore, g.missingBefore, g.wasUnhealthy = false, false, 0, false, false, false
	}
	sure := g.down == "" && len(a.Conditions) == 0 && g.rel != verification.Superseded
	begun := a.Operation != nil && g.opRel == verification.Holds || g.everDone || g.deployedBefore
	if sure && !begun && !(g.rel == verification.Holds && a.SyncStatus == "Synced") {
		switch {
		case g.health == "Missing" && g.rel == verification.Holds:
			g.missingBefore = true
		case g.health == "Degraded" || g.health == "Missing":
			g.illBefore = true
		case g.health == "Healthy":
			g.illBefore, g.missingBefore = false, false
		}
	} else if sure && g.health != "Missing" {
		g.missingBefore = false
	}
	failed := a.HasFailedSync() && g.opRel == verification.Holds && !g.everDone && !g.deployedBefore
	convicted := failed && a.Operation.Phase == "Failed" && len(a.Operation.Results) > 0 && a.Operation.Message == ""
	g.failSince = keepSince(g.failSince, sure && g.rel == verification.Holds && convicted, g.now)
	g.done = sure && g.rel == verification.Holds && a.SyncStatus == "Synced" && !running && !failed
	g.everDone = g.everDone || g.done
	switch {
	case g.fresh:
	case !g.done && sure:
		g.reconciles = 0
	case g.done && g.reconciles == 0 && !a.RefreshPending, g.done && g.reconciles > 0 && !a.ReconciledAt.Equal(g.lastSeen):
		g.reconciles++
		g.fresh = g.reconciles > 2
	}
	g.lastSeen = a.ReconciledAt
	g.freshSince = keepSince(g.freshSince, g.fresh, g.now)
	bad := g.health == "Degraded" || g.health == "Missing"
	g.badSince = keepSince(g.badSince, sure && g.fresh && g.rel == verification.Holds && bad && !running, g.now)
	unhealthy := bad || g.health == "Progressing"
	g.unhealthySince = keepSince(g.unhealthySince, sure && g.everDone && g.rel == verification.Holds && unhealthy, g.now)
	g.surelySince = keepSince(g.surelySince, sure && g.fresh && g.rel == verification.Holds && unhealthy && !(running && g.health == "Missing"), g.now)
	if sure && g.health == "Healthy" {
		g.wasUnhealthy = g.wasUnhealthy && g.rel == verification.Unresolved // that says nothing of the release
		g.illBefore = g.illBefore && !g.everDone
	}
	g.wasUnhealthy = g.wasUnhealthy || !g.unhealthySince.IsZero() && g.now.Sub(g.unhealthySince) >= guiltDebounce
	g.meddled = g.meddled || !g.wellThen || g.illBefore || g.missingBefore || len(g.others) > 0 || len(g.incidents) > 0
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
func (g *guiltModel) innocent(bySync bool) string {
	switch {
	case !g.wellThen:
		return "it was unwell before the merge"
	case g.illBefore || g.missingBefore:
		return "it was unwell before its sync began"
	case len(g.others) > 0:
		return "another commit changed what it reads"
	case g.rel == verification.Superseded || g.rel == verification.Unresolved:
		return "it isn't known to run the release"
	case !bySync && g.treeErr == "" && len(g.culprits) > 0 && g.culprits[0].Kind == "CronJob":
		return "what is degraded fails by itself, and wasn't changed"
	case !bySync && g.treeErr == "" && len(g.culprits) > 0 && g.culprits[0].Descendants != nil && !g.brought:
		return "an image can't be pulled that it didn't change"
	}
	guilty := bySync || g.treeErr == "" && slices.ContainsFunc(g.culprits, func(r verification.Resource) bool { return r.Name == ownObject.Name })
	for _, i := range g.incidents {
		switch lasts := !i.Unsettled || g.now.Sub(i.Since) >= guiltDebounce; {
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
func (g *guiltModel) evaluate(t *rapid.T) (verification.Verdict, bool) {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
	e.Landed.Value.At = noon
	f.Now = g.now
	v := &e.Spec.Verify
	v.Timeout, v.Watch = pipeline.Duration(guiltTimeout), mins(60)
	expect := verification.Expect{Commit: "x", Release: "r2", Landed: noon, OperationRel: []verification.Relation{g.opRel}, DeployedBefore: g.deployedBefore && g.app.NeedsHistory(), Unreachable: g.down, Limits: verification.Limits{
		ArriveWithin: v.ArriveWithin.AsDuration(), Timeout: v.Timeout.AsDuration(), HealthyFor: v.HealthyFor.AsDuration(), Watch: v.Watch.AsDuration(), Debounce: v.Debounce.AsDuration(),
		QueueFor: 24 * time.Hour, SuspendedFor: 24 * time.Hour}}
	app := verification.TrackRefresh(g.prev, g.app)
	g.prev = &app
	verdict, mem := verification.Judge(expect, &app, []verification.Relation{g.rel}, g.mem, g.now)
	g.mem = mem
	if verdict.Refresh {
		g.app.RefreshPending = true
	}
	e.Targets[0].Verdict, e.Targets[0].Unhealthy, e.Targets[0].HealthyBefore = verdict, Known[[]verification.Resource]{}, Sure(g.wellThen)
	e.Targets[0].ChangedSince, e.Targets[0].ChangedObjects = Sure(g.others), Sure([]Object{ownObject})
	if g.brought {
		e.Targets[0].BroughtImages = []string{"proxy:1"}
	}
	e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
	f.ClusterIncidents = g.incidents
	d := Decide(Facts{Components: []ComponentFacts{*f}})
	if slices.ContainsFunc(d.Components[0].Actions, func(a Action) bool { r, ok := a.(FactRequest); return ok && r.What == RequestCulprits }) {
		if e.Targets[0].Unhealthy = Sure(verification.AddCulprits(g.culprits, verdict.Culprits)); g.treeErr != "" && len(verdict.Culprits) == 0 {
			e.Targets[0].Unhealthy = Unsure[[]verification.Resource](g.treeErr)
		}
		d = Decide(Facts{Components: []ComponentFacts{*f}})
	}
	return verdict, slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok })
}

// TestOnlyTheGuiltyIsReverted judges a target over random histories. They have operations by
// anybody and of any kind, revisions, health, and culprits (also with images that can't be pulled)
// that are known or not. They have incidents on its cluster and of the release before in other
// places, and trouble with Argo CD. A revert opens only where the release's own first whole sync
// failed in a resource, or where the target became unhealthy with it and nothing else explains
// that. That sync may have failed so, or the target may be Degraded or Missing for certain. If
// nothing else could ever explain that, a revert opens within debounce and one look. Where it
// doesn't become healthy, it opens within timeout.
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
