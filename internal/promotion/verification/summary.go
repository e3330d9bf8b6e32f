package verification

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// maxReasons bounds how many targets a Summary names.
const maxReasons = 10

// slowness orders the states of targets on their way: the first is the furthest
// from being verified. What can't be told is slower than anything that can.
var slowness = []State{Unclear, Absent, Arriving, Queued, Syncing, Refreshing, Progressing, Suspended, Soaking}

// Summary is the state of several targets together, by name: Degraded if any
// is, else Failed if any is, Verified if all are, else the slowest one's. The
// reasons are those of the targets in that state, sorted by name and bounded.
// Without any target there is nothing that could be verified: Absent.
func Summary(verdicts map[string]Verdict) (State, []string) {
	if len(verdicts) == 0 {
		return Absent, []string{"there is no target"}
	}
	state := Verified
	for _, s := range append([]State{Degraded, Failed}, slowness...) {
		if anyIn(verdicts, s) {
			state = s
			break
		}
	}
	var reasons []string
	for name, v := range verdicts {
		if v.State == state {
			reasons = append(reasons, name+": "+v.Reason)
		}
	}
	sort.Strings(reasons)
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return state, reasons
}

func anyIn(verdicts map[string]Verdict, s State) bool {
	for _, v := range verdicts {
		if v.State == s {
			return true
		}
	}
	return false
}

// Account is what is known about one target, for people who must judge a
// degradation: a revert's body, the console.
type Account struct {
	Target, Cluster string
	State           State
	Since           time.Time // since when the State holds; zero: unknown
	Sync, Health    string    // Argo CD's words; empty when there is no Application
	HealthMessage   string
	Revisions       []string
	Operation       string        // phase and message of the last sync; empty: none
	Conditions      []string      // type and message
	Resources       []Resource    // what is not healthy, worst first, bounded
	MoreResources   int           // how many were left out
	Timeline        []StateChange // oldest first
}

// maxResources bounds the resources in an Account.
const maxResources = 20

// Evidence collects what is known about a target from its Application, nil when
// there is none, and what was remembered. Messages are one bounded line each.
func Evidence(app *App, mem Memory) Account {
	e := Account{State: mem.State, Since: mem.Since, Timeline: slices.Clone(mem.Timeline)}
	if app == nil {
		return e
	}
	e.Target, e.Cluster = app.Name, app.Destination.Cluster()
	e.Sync, e.Health, e.HealthMessage = app.SyncStatus, app.Health, clipMessage(app.HealthMessage)
	e.Revisions = slices.Clone(app.Revisions)
	if op := app.Operation; op != nil {
		e.Operation = op.Phase + messageSuffix(op.Message)
	}
	for _, c := range app.Conditions {
		e.Conditions = append(e.Conditions, c.Type+messageSuffix(c.Message))
	}
	e.Resources = slices.Clone(app.Unhealthy)
	slices.SortStableFunc(e.Resources, func(a, b Resource) int {
		if d := healthSeverity(b.Health) - healthSeverity(a.Health); d != 0 {
			return d
		}
		return strings.Compare(a.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind+"/"+b.Namespace+"/"+b.Name)
	})
	if more := len(e.Resources) - maxResources; more > 0 {
		e.Resources, e.MoreResources = e.Resources[:maxResources], more
	}
	for i := range e.Resources {
		e.Resources[i].Message = clipMessage(e.Resources[i].Message)
	}
	return e
}

func healthSeverity(health string) int {
	return slices.Index([]string{unknown, suspended, progressing, missing, degradedHealth}, health)
}
