package api

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// TestUrgency holds what a component asks of people, by what asks most of them.
func TestUrgency(t *testing.T) {
	well, pull := Environment{State: "verified"}, &Pull{Number: 7}
	open := func(gates ...Gate) Environment {
		return Environment{State: "verified", Incoming: &Incoming{State: "open", Pull: pull, Gates: gates}}
	}
	approvals := Gate{Gate: "approvals", Outcome: "wait", Person: true}
	for name, c := range map[string]struct {
		environments []Environment
		want         Urgency
	}{
		"nothing":                {nil, UrgencyWell},
		"at rest":                {[]Environment{well}, UrgencyWell},
		"not there":              {[]Environment{{State: "not-here"}}, UrgencyWell},
		"closed by a person":     {[]Environment{{State: "verified", Incoming: &Incoming{State: "closed"}}}, UrgencyWell},
		"being verified":         {[]Environment{{State: "verifying"}, well}, UrgencyMoving},
		"waits for its window":   {[]Environment{open(Gate{Gate: "window", Outcome: "wait"})}, UrgencyMoving},
		"waits for approvals":    {[]Environment{well, open(approvals)}, UrgencyWaiting},
		"waits for a merge":      {[]Environment{{State: "verified", Incoming: &Incoming{State: "open", Pull: pull}, Why: []Reason{{Code: cause.Manual}}}}, UrgencyWaiting},
		"waits, and one moves":   {[]Environment{{State: "verifying"}, open(approvals)}, UrgencyWaiting},
		"held":                   {[]Environment{open(approvals), {State: "verified", Incoming: &Incoming{State: "held", Pull: pull}}}, UrgencyHeld},
		"held before it opens":   {[]Environment{{State: "verified", Incoming: &Incoming{State: "waiting"}, Why: []Reason{{Code: cause.Hold}}}}, UrgencyHeld},
		"a gate fails":           {[]Environment{open(Gate{Gate: "checks", Outcome: "fail"})}, UrgencyBroken},
		"degraded and held":      {[]Environment{{State: "verified", Incoming: &Incoming{State: "held", Pull: pull}}, {State: "degraded"}}, UrgencyBroken},
		"a revert is open":       {[]Environment{{State: "verified", Revert: &OpenRevert{Pull: *pull}}}, UrgencyBroken},
		"quarantined":            {[]Environment{{State: "verified", Why: []Reason{{Code: cause.Quarantined}}}}, UrgencyBroken},
		"nobody knows its state": {[]Environment{{State: "verified", Targets: []Target{{Untold: true}}}}, UrgencyBroken},
	} {
		k := Component{Environments: c.environments}
		if got := k.Urgency(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got := k.Attention(); got != (c.want == UrgencyBroken || c.want == UrgencyHeld) {
			t.Errorf("%s: needs a look: %t", name, got)
		}
	}
}

// TestCountsAddUp holds that each component is counted once, and that what is open is the sum.
func TestCountsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum Counts
		n := 0
		for range rapid.IntRange(0, 4).Draw(t, "pipelines") {
			var c Counts
			for _, s := range rapid.SliceOfN(rapid.SampledFrom(Urgencies), 0, 20).Draw(t, "components") {
				c.Add(s)
				n++
			}
			sum.Sum(c)
		}
		if sum.Components != n || sum.Open != sum.Moving+sum.Waiting+sum.Held+sum.Broken || sum.Open > n || sum.Attention != sum.Held+sum.Broken {
			t.Fatalf("of %d components: %+v", n, sum)
		}
	})
}
