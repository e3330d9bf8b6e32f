package backtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// State is what was known of a component at one time, as far as decisions depend on it. What moves on
// with every look, such as counted time and the branch's head, isn't in it.
type State struct {
	Rules    string                               `json:"r"` // the digest of the Rules in force
	Broken   string                               `json:"b"` // why the pipeline file can't be used; empty: it can
	Problems []string                             `json:"p"`
	Holds    promotion.Known[[]promotion.Hold]    `json:"h"`
	Commands map[string]*promotion.PendingCommand `json:"c"` // by ID
	Envs     map[string]*EnvironmentState         `json:"e"` // by name
}

// EnvironmentState is the part of a State about one environment.
type EnvironmentState struct {
	Release      promotion.Known[promotion.Release] `json:"r"`
	Fields       promotion.FieldState               `json:"f"`
	FieldsReason string                             `json:"fr"`
	Landed       promotion.Known[promotion.Landed]  `json:"l"`
	Targets      map[string]*promotion.Target       `json:"t"` // by name
	HasNoTarget  bool                               `json:"n"`
	SyncWindows  []policies.TargetWindow            `json:"w"`
	Open         *promotion.Pull                    `json:"o"`
	Revert       *promotion.Pull                    `json:"v"`
	Past         map[string]*promotion.PastPull     `json:"pp"` // by number
	Arrivals     map[string]*promotion.Arrival      `json:"a"`  // by Seq
	// Edits are those that can't be made as they should, by the release that would come.
	Edits map[string]*promotion.Composition `json:"ed"`
	// BranchReason says whose work is on the branch of promotions; empty: ours.
	BranchReason string `json:"br"`
	// RevertBranchReason is the same of the branch of reverts.
	RevertBranchReason string `json:"rb"`
	MissingSignatures  string `json:"ms"`
	// Held is why a degradation is left to people by what was found out about it; empty where the
	// rules alone say so, or it isn't.
	Held string `json:"d"`
}

// Change is what became different at one look at a component.
type Change struct {
	At time.Time `json:"t"`
	// Patch has what changed of the State: a field that is left out is as before, null is its zero
	// value.
	Patch json.RawMessage `json:"d"`
}

// NextChange is the state at a look, and what is different from the state before; nil where nothing
// is. A nil state before gives all. rules is the digest of RulesOf the facts. The facts and the
// decision stay as they are. An error says which value can't be written as JSON.
func NextChange(before *State, c *promotion.ComponentFacts, d *promotion.ComponentDecision, rules string) (*State, *Change, error) {
	now := stateOf(c, d, rules)
	if before == nil {
		before = &State{}
	}
	patch, err := diffValues(before, now)
	if err != nil || patch == nil {
		return now, nil, err
	}
	return now, &Change{At: c.Now.UTC().Round(0), Patch: patch}, nil
}

// MarshalJSON writes a state as the change from nothing.
func (s *State) MarshalJSON() ([]byte, error) {
	patch, err := diffValues(&State{}, s)
	if patch == nil && err == nil {
		return []byte("{}"), nil
	}
	return patch, err
}

// UnmarshalJSON implements json.Unmarshaler. An error says what isn't as MarshalJSON writes it.
func (s *State) UnmarshalJSON(raw []byte) error {
	*s = State{}
	return applyPatch(s, raw)
}

// stateOf is what facts and the decision say, without what moves on with every look.
func stateOf(c *promotion.ComponentFacts, d *promotion.ComponentDecision, rules string) *State {
	s := &State{Rules: rules, Broken: c.PipelineErr, Problems: c.Problems, Holds: c.Holds,
		Commands: map[string]*promotion.PendingCommand{}, Envs: map[string]*EnvironmentState{}}
	for i := range c.PendingCommands {
		k := c.PendingCommands[i]
		s.Commands[strconv.FormatInt(k.ID, 10)] = &k
	}
	for i := range c.Envs {
		e := environmentStateOf(&c.Envs[i])
		if st := d.Env(c.Envs[i].Name); st != nil {
			e.Held = heldReason(st.Evidence)
		}
		s.Envs[c.Envs[i].Name] = e
	}
	return s
}

// heldReason is why what was found out about a degradation leaves it to people. Before that is looked
// into, the rules may say so by themselves; then it is empty.
func heldReason(e *promotion.Evidence) string {
	if e == nil || e.Held == nil {
		return ""
	}
	if !slices.ContainsFunc(e.RuledOut, func(r promotion.RuledOut) bool { return r.Check == promotion.CheckUnhealthyBefore }) {
		return ""
	}
	return e.Held.Text
}

func environmentStateOf(e *promotion.Env) *EnvironmentState {
	s := &EnvironmentState{Release: e.Release, Fields: e.Fields, FieldsReason: e.FieldsReason, Landed: e.Landed,
		Targets: map[string]*promotion.Target{}, HasNoTarget: e.HasNoTarget, SyncWindows: e.SyncWindows,
		Open: keptPull(e.Open), Revert: keptPull(e.Revert), Past: map[string]*promotion.PastPull{},
		Arrivals: map[string]*promotion.Arrival{}, Edits: map[string]*promotion.Composition{},
		BranchReason: e.BranchReason, RevertBranchReason: e.RevertBranchReason, MissingSignatures: e.MissingSignatures}
	s.Landed.Value.Parent = ""
	for i := range e.Targets {
		s.Targets[e.Targets[i].Name] = keptTarget(&e.Targets[i])
	}
	for i := range e.PastPulls {
		p := e.PastPulls[i]
		s.Past[strconv.Itoa(p.Number)] = &p
	}
	for i := range e.History {
		a := e.History[i]
		a.Soak = promotion.Soak{} // follows from when it was verified
		s.Arrivals[strconv.FormatInt(a.Seq, 10)] = &a
	}
	for release, c := range e.Compositions {
		if c.State != promotion.EditPossible || c.Incomplete != "" {
			s.Edits[release] = &promotion.Composition{State: c.State, Reason: c.Reason, Incomplete: c.Incomplete}
		}
	}
	return s
}

// keptTarget is a target without what moves on by itself, and what only people read.
func keptTarget(t *promotion.Target) *promotion.Target {
	v := t.Verdict
	k := &promotion.Target{Name: t.Name, Cluster: t.Cluster, Namespace: t.Namespace, HealthyBefore: t.HealthyBefore,
		Verdict: verification.Verdict{State: v.State, Lapsed: v.Lapsed, UnhealthyBefore: v.UnhealthyBefore,
			OnlyMissingBefore: v.OnlyMissingBefore, HeldUpAt: v.HeldUpAt.Truncate(time.Hour), RunsFormer: v.RunsFormer,
			InSync: v.InSync, DriftUntold: v.DriftUntold}}
	if v.Drift != nil {
		k.Verdict.Drift = &verification.Drift{Since: v.Drift.Since, Total: v.Drift.Total}
	}
	switch v.State {
	case verification.Absent, verification.Syncing, verification.Refreshing, verification.Progressing, verification.Soaking:
		k.Verdict.State = verification.Arriving // how far it is on its way decides nothing
	case verification.Degraded:
		k.Verdict.Since, k.Verdict.Reason = v.Since, v.Reason
	case verification.Failed:
		k.Verdict.Reason = v.Reason
	}
	return k
}

// keptPull is an open pull request without what moves on by itself, such as its head, and what only
// people read; nil of none.
func keptPull(p *promotion.Pull) *promotion.Pull {
	if p == nil {
		return nil
	}
	k := *p
	k.URL, k.Head, k.HeadSince, k.UpdatedAt, k.UncomputedSince = "", "", time.Time{}, time.Time{}, time.Time{}
	k.Stale, k.MergeUnread, k.UpdatedFirst, k.AwaitsTurn, k.SentUpdate, k.Queued = false, false, 0, false, nil, false
	k.JoinedQueueAt, k.MergeNote, k.Rules.UnreadSince, k.EffectFacts.Disagreements = time.Time{}, "", time.Time{}, nil
	if k.Mergeable != promotion.MergeBlocked {
		k.Mergeable = promotion.MergeClean // the forge computes it, and conflicts are composed anew
	}
	r := &k.Review
	r.Now, r.Soaked, r.SyncWindows, r.Drift, r.ApprovalGates = time.Time{}, nil, nil, nil, nil
	if r.Promotion != nil {
		about := *r.Promotion
		about.Upstream, about.Targets, about.Pipeline, about.Environment, about.Component = nil, nil, "", "", ""
		r.Promotion = &about
	}
	r.Metrics = keptMetrics(r.Metrics)
	r.Endpoints = slices.Clone(r.Endpoints)
	for i := range r.Endpoints {
		r.Endpoints[i].NextAt = time.Time{}
	}
	return &k
}

// keptMetrics are readings without the samples that say the same as the one before.
func keptMetrics(all []policies.MetricReading) []policies.MetricReading {
	out := slices.Clone(all)
	for i := range out {
		out[i].NextAt = time.Time{}
		out[i].Samples = slices.CompactFunc(slices.Clone(out[i].Samples), func(a, b policies.MetricSample) bool {
			return slices.Equal(a.Values, b.Values) && a.Problem == b.Problem && a.Warning == b.Warning
		})
	}
	return out
}
