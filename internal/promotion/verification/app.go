package verification

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// Argo CD's own words.
const (
	synced    = "Synced"
	outOfSync = "OutOfSync"
	unknown   = "Unknown"

	healthy        = "Healthy"
	progressing    = "Progressing"
	degradedHealth = "Degraded"
	suspended      = "Suspended"
	missing        = "Missing"

	succeeded = "Succeeded"
	failed    = "Failed"
	errored   = "Error"

	syncFailed = "SyncFailed"

	analysisRun = "AnalysisRun" // of argoproj.io

	// windowMessage is what a sync that was asked for says while a window
	// forbids it; an automated one is skipped without a trace in the Application.
	windowMessage = "blocked by sync window"
)

// maxReason bounds what is taken over from Argo CD's messages, in bytes.
const maxReason = 400

// TrackRefresh completes an Application's new state with what only the sequence of states tells:
// RefreshedAt, from the refresh annotation being there and then gone. prev is the state seen
// before, nil at first. A watcher of Applications calls it for each state in order; without it
// Judge still answers, only later.
func TrackRefresh(prev *App, next App) App {
	if prev == nil || prev.UID != next.UID {
		return next
	}
	next.RefreshedAt = prev.RefreshedAt
	if prev.RefreshPending && !next.RefreshPending {
		next.RefreshedAt = next.ReconciledAt
	}
	return next
}

// SyncsByItself says that the Application syncs without a request. It is automated, or its
// ApplicationSet's RollingSync, whose syncs Argo CD takes for automated too, has it in a step.
func (a *App) SyncsByItself() bool {
	return a.AutoSync || a.SetStep.Status != "" && !a.SetStep.isLeftOut()
}

// WasHealthy tells whether a target was certainly well: healthy, and Argo CD sure
// of it. It is asked before a merge; a degradation after it is only the
// promotion's doing if the answer was true. A nil App was not well.
func WasHealthy(app *App) bool {
	return app != nil && unclearReason(app) == "" && app.assessHealth() == healthy
}

// MarkAnnotation names, on a plain Application, the pipeline that may sync it.
const MarkAnnotation = "liftlock.dev/pipeline"

// UnreadableCondition is the condition of an Application that could not be read.
const UnreadableCondition = "UnreadableError"

// blindConditions are those with which Argo CD can't say how an Application is: what
// it reports beside them is left from before. Others tell of trouble without hiding
// anything, such as a DeletionError of a resource that can't be pruned.
var blindConditions = []string{"ComparisonError", "InvalidSpecError", "UnknownError", UnreadableCondition}

// unclearReason says why Argo CD can't tell how an Application is, empty when it can.
func unclearReason(a *App) string {
	if a.Deleting {
		return "the Application is being deleted"
	}
	for _, c := range a.Conditions {
		if slices.Contains(blindConditions, c.Type) {
			return clipMessage("Argo CD reports " + c.Type + messageSuffix(c.Message))
		}
	}
	if isBlockedByWindow(a) {
		return "a sync window keeps the sync from running"
	}
	if a.SyncStatus == unknown {
		return "Argo CD can't compare it: the sync status is Unknown"
	}
	return ""
}

func isBlockedByWindow(a *App) bool {
	return a.Operation != nil && isRunning(a.Operation) && strings.Contains(a.Operation.Message, windowMessage)
}

func syncError(a *App) string {
	for _, c := range a.Conditions {
		if c.Type == "SyncError" {
			return cmp.Or(c.Message, "no message")
		}
	}
	return ""
}

// normalizeTime is a time as JSON gives it back: UTC, without a monotonic reading.
func normalizeTime(t time.Time) time.Time { return t.UTC().Round(0) }

// formatDuration writes a duration without zero parts at its end: 10m, not 10m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func messageSuffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + clipMessage(message)
}

// clipMessage makes one bounded line of a message from outside.
func clipMessage(s string) string { return wording.ClipLine(s, maxReason) }

// settlingTime is how long after its own sync an Application may still turn Progressing or Unknown
// because of it: the controllers of its cluster take a moment to begin.
const settlingTime = time.Minute

// TurnedByItself says that the Application turned Progressing or Unknown without an operation of
// its own and without having just been made. It runs the same as before, so its surroundings have
// changed. All times are its Argo CD's. Where that doesn't report since when the health is so, this
// is unknown, and the answer is false.
func (a *App) TurnedByItself() bool {
	if h := a.assessHealth(); h != progressing && h != unknown {
		return false
	}
	return !a.Deleting && !a.isOperating() && !a.turnedByChange()
}

// turnedByChange says that the health is the same since the sync or the creation, or a moment after
// that, or that its time isn't reported.
func (a *App) turnedByChange() bool {
	changed := a.CreatedAt
	if op := a.Operation; op != nil && !op.DryRun {
		changed = latest(changed, op.FinishedAt)
	}
	for _, d := range a.Deployed {
		changed = latest(changed, d.At)
	}
	return !a.HealthSince.After(changed.Add(settlingTime))
}

// TurnedByChange says whether the Application's health is as it is by a change of its own:
// it was being synced, or had just been synced or made. nil: its Argo CD doesn't report
// since when the health is so.
func (a *App) TurnedByChange() *bool {
	if a.HealthSince.IsZero() {
		return nil
	}
	by := a.isOperating() || a.turnedByChange()
	return &by
}

// inconclusiveAnalysis names an AnalysisRun among the resources that is Unknown: Argo CD
// shows one that ended Inconclusive so. "" when there is none.
func (a *App) inconclusiveAnalysis() string {
	switch {
	case a.Inconclusive != "":
		return a.Inconclusive
	case a.Health == unknown:
		return findInconclusive(a.Unhealthy)
	}
	return ""
}

// findInconclusive names an AnalysisRun that is Unknown among resources and what they brought
// forth: a Rollout's own. "" when there is none.
func findInconclusive(list []Resource) string {
	for _, r := range list {
		if r.Group == "argoproj.io" && r.Kind == analysisRun && r.Health == unknown {
			return clipMessage(r.Kind+" "+r.Name) + messageSuffix(r.Message)
		}
		for _, d := range r.Descendants {
			if d.Kind == analysisRun && d.Health == unknown {
				return clipMessage(fmt.Sprintf("%s %s of %s %s", d.Kind, d.Name, r.Kind, r.Name)) + messageSuffix(d.Message)
			}
		}
	}
	return ""
}

// MayBeInconclusive says that an analysis without a result may be why the Application isn't
// well, and that only its resource tree would say so.
func (a *App) MayBeInconclusive() bool {
	mayWait := a.Health == suspended || a.Health == unknown || a.waitsInSync()
	return mayWait && a.inconclusiveAnalysis() == ""
}

// WithInconclusive is the Application with the analysis without a result that its unhealthy
// resources tell of; nil when they tell of none.
func (a *App) WithInconclusive(unhealthy []Resource) *App {
	run := findInconclusive(unhealthy)
	if run == "" {
		return nil
	}
	out := *a
	out.Inconclusive = run
	return &out
}

// HasBadHealth says that the Application is Degraded or lacks a resource that it needs.
func (a *App) HasBadHealth() bool {
	h := a.assessHealth()
	return h == degradedHealth || h == missing
}

// assessedKinds are the kinds that Argo CD itself assesses. Up to 3.3 one of these that is
// Missing makes its Application Missing; another kind that is Missing never did.
var assessedKinds = map[string][]string{
	"":                       {"Pod", "PersistentVolumeClaim", "Service"},
	"apiregistration.k8s.io": {"APIService"},
	"apps":                   {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"argoproj.io":            {"Workflow"},
	"autoscaling":            {"HorizontalPodAutoscaler"},
	"batch":                  {"CronJob", "Job"},
	"extensions":             {"Ingress"},
	"networking.k8s.io":      {"Ingress"},
}

// assessHealth is the Application's health as every Argo CD means it. From 3.4 on an
// Application is only Missing when all of its resources are (argo-cd#25962): one that
// lacks a Deployment stays Healthy, and OutOfSync. Here it is Missing, as it was before.
func (a *App) assessHealth() string {
	lesser := a.Health == healthy || a.Health == suspended || a.Health == progressing
	if lesser && a.SyncStatus == outOfSync && slices.ContainsFunc(a.Unhealthy, Resource.isAbsent) {
		return missing
	}
	return a.Health
}

// IsBusy says that something is under way, so that another state is due.
func (a *App) IsBusy() bool {
	return a.isOperating() || a.RefreshPending || a.Health == progressing
}

// IsSettled says that the Application is in sync and nothing is under way: what it shows is no
// step on the way to something else.
func (a *App) IsSettled() bool { return !a.IsBusy() && a.SyncStatus == synced }

// MayLackResource says that the Application may lack a needed resource without saying so. It is out
// of sync, calls itself anything but that, and doesn't keep the health of its resources itself.
func (a *App) MayLackResource() bool {
	lesser := a.Health == healthy || a.Health == suspended || a.Health == progressing
	differs := a.SyncStatus == outOfSync && a.Differing > 0
	return a.HealthInTree && lesser && differs && !a.isOperating()
}

// WithUnchecked is the Application with what was found out of resources without a health
// check, or with why that can't be told for the moment.
func (a *App) WithUnchecked(unchecked Unchecked, err error) *App {
	out := *a
	if err != nil {
		out.UncheckedError = err.Error()
		return &out
	}
	out.Unchecked, out.UncheckedKnown = unchecked, true
	return &out
}

// WithAbsent is the Application with those of its unhealthy resources that aren't in the
// cluster and should be, also among what differs; nil when there are none.
func (a *App) WithAbsent(unhealthy []Resource) *App {
	out := *a
	out.Unhealthy, out.Differences = nil, slices.Clone(a.Differences)
	found := false
	for _, r := range unhealthy {
		if r.Health != missing {
			continue
		}
		found = true
		if r.isAbsent() {
			out.Unhealthy = append(out.Unhealthy, r)
		}
		for i := range out.Differences {
			if d := &out.Differences[i]; d.isAbout(r) {
				d.How = IsMissing
			}
		}
	}
	if !found {
		return nil
	}
	slices.SortStableFunc(out.Differences, func(a, b Difference) int { return cmp.Compare(a.How.Rank(), b.How.Rank()) })
	return &out
}

// isAbout says that a difference is a resource's.
func (d *Difference) isAbout(r Resource) bool {
	return d.Group == r.Group && d.Kind == r.Kind && d.Namespace == r.Namespace && d.Name == r.Name
}

// isAbsent says that a resource that Argo CD assesses isn't in the cluster.
func (r Resource) isAbsent() bool {
	return r.Health == missing && slices.Contains(assessedKinds[r.Group], r.Kind)
}

// missingHealthChecks says which parts of a healthy Application may not be healthy, because Argo CD
// can't tell, and what to do about it; empty when it tells of all.
func (a *App) missingHealthChecks() string {
	switch {
	case a.HealthInTree && !a.UncheckedKnown:
		return "this Argo CD keeps the health of resources outside the Application, so which have no health check is not known; give " +
			"Liftlock its API (argocd[].api in the server's file), or set controller.resource.health.persist in argocd-cmd-params-cm"
	case a.Unchecked.Total > 0:
		return fmt.Sprintf("Argo CD has no health check for %s (%s); add one to argocd-cm", wording.Count(a.Unchecked.Total, "resource"),
			strings.Join(a.Unchecked.Kinds, ", "))
	}
	return ""
}
