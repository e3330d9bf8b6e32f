package pipeline

import (
	"time"
)

// SetDefaults fills in what a pipeline file may leave out.
func (p *Pipeline) SetDefaults() {
	p.Spec.Mode = ModeAct
	p.Spec.Adopt = AdoptBaseline
	p.Spec.Layout = LayoutDirectories
	p.Spec.Batch = BatchComponent
	p.Spec.Merge.Method = MethodMerge
	p.Spec.Impact.FailOn = FailOnNothing
	p.Spec.Limits = Limits{OpenPerEnvironment: 10, MergesPerHour: 20, RevertsPer10Minutes: 3}
}

// liveNamespace is where Argo CD's own manifests put it.
const liveNamespace = "argocd"

// SetDefaults fills in what the name of a live ApplicationSet may leave out.
func (l *LiveApplicationSet) SetDefaults() { l.Namespace = liveNamespace }

// SetDefaults fills in what a selection of live Applications may leave out.
func (l *LiveApplications) SetDefaults() { l.Namespace = liveNamespace }

// SetDefaults fills in what an entry of carry may leave out.
func (c *Carry) SetDefaults() { c.WhenAbsent = WhenAbsentRefuse }

// SetDefaults fills in what an environment may leave out.
func (e *Environment) SetDefaults() {
	e.Open = Auto
	e.Merge = Manual
	e.OnDegraded = OnDegraded{Action: OnDegradedRevert}
	e.Effect = EffectRequired
	e.Verify = Verify{
		ArriveWithin: Duration(15 * time.Minute),
		Timeout:      Duration(10 * time.Minute),
		HealthyFor:   Duration(time.Minute),
		Watch:        Duration(30 * time.Minute),
		Debounce:     Duration(30 * time.Second),
		Sync:         SyncWait,
		Prune:        PruneAuto,
		QueueFor:     Duration(24 * time.Hour),
		Suspended:    SuspendedWait,
		SuspendedFor: Duration(24 * time.Hour),

		IgnoreMissingHealth: true,
		Runs:                Runs{Images: RunsRequired},
	}
}

// applyDependentDefaults fills in what depends on other keys.
func (p *Pipeline) applyDependentDefaults() {
	for i := range p.Spec.Environments {
		if e := &p.Spec.Environments[i]; e.IsSource() {
			e.OnDegraded = OnDegraded{Action: OnDegradedHold} // there is no promotion of ours to revert
		}
	}
}
