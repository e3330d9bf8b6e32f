package promotion

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// checkOnePullEach holds that there is at most one of each kind of pull request (2).
func (si *simulation) checkOnePullEach(t *rapid.T) {
	n := map[string]int{}
	for _, p := range si.pulls {
		if p.open && p.ours {
			key := fmt.Sprintf("%s revert=%t", p.env, p.revert)
			if n[key]++; n[key] > 1 {
				t.Fatalf("two open pull requests: %s", key)
			}
		}
	}
}

// check holds a decision's actions to the invariants.
func (si *simulation) check(t *rapid.T, f *ComponentFacts, d *ComponentDecision) {
	seen, forgiven := map[string]bool{}, 0
	si.adopting = map[string]bool{}
	for _, a := range d.Actions {
		if r, ok := a.(Record); ok && r.ByHand {
			si.adopting[r.Commit] = true
		}
	}
	for _, a := range d.Actions {
		key := fmt.Sprintf("%T %s", a, EnvironmentOf(a))
		if c, ok := a.(Close); ok {
			key += fmt.Sprint(" #", c.Pull)
		}
		switch a.(type) {
		case FactRequest, Record, BindCommand, FinishCommand, Refresh, Sync: // several of an environment may be due
		default:
			if seen[key] {
				t.Fatalf("twice in one decision: %s", a.Describe())
			}
			seen[key] = true
		}
		switch a := a.(type) {
		case Open:
			if e := simEnv(f, a.Environment); e.Open != nil {
				t.Fatalf("%s while #%d is open (2)", a.Describe(), e.Open.Number)
			}
			si.mayCome(t, f, a, a.Environment, a.Release)
			si.notVetoed(t, a, a.Environment, a.Release, forgiven)
			si.mayStart(t, f, a, a.Environment)
			si.isWanted(t, f, a, a.Environment, a.Release)
		case Replace:
			if a.Release == si.pull(a.Pull).declared {
				continue // what we put there, on a newer commit
			}
			si.mayCome(t, f, a, a.Environment, a.Release)
			if e := simEnv(f, a.Environment); a.Release != e.Open.Release {
				si.notVetoed(t, a, a.Environment, a.Release, forgiven)
				si.mayStart(t, f, a, a.Environment)
				si.isWanted(t, f, a, a.Environment, a.Release)
			}
		case Merge:
			si.mayMerge(t, f, a)
			if release := si.pull(a.Pull).release; !a.Revert { // may merge = may be opened now (10)
				si.notVetoed(t, a, a.Environment, release, forgiven)
				si.isWanted(t, f, a, a.Environment, release)
			}
		case OpenRevert:
			si.mayRevert(t, f, a, forgiven)
		case LiftVeto:
			if !slices.ContainsFunc(f.PendingCommands, func(k PendingCommand) bool { return k.Verb == "retry" && k.Environment == a.Environment }) {
				t.Fatalf("%s: nobody asked (8)", a.Describe())
			}
			forgiven = a.Pull
		}
	}
	for _, env := range si.sources(false) {
		e := simEnv(f, env)
		if seen["promotion.Merge "+env] && (seen["promotion.OpenRevert "+env] || e.Revert != nil && !e.Source() && seen["promotion.Open "+env]) {
			t.Fatalf("merges into %s and reverts it at once", env)
		}
	}
}

// mayCome holds 1 and 6. A release was verified by all before it, and is healthy and not
// quarantined in any upstream. It isn't brought back where it was reverted unless a person said so.
func (si *simulation) mayCome(t *rapid.T, f *ComponentFacts, a Action, env, release string) {
	e := simEnv(f, env)
	for _, u := range e.Spec.After {
		if !si.truth.verified[u+"|"+release] {
			t.Fatalf("%s: %s never verified it (1)", a.Describe(), u)
		}
	}
	for _, name := range upstreamOf(f, env) {
		u := simEnv(f, name)
		if at := si.quarantinedAt(name, release); !at.IsZero() {
			t.Fatalf("%s: quarantined in %s since %s (1)", a.Describe(), name, at)
		}
		if u.Release.Value.ID == release && slices.ContainsFunc(u.Targets, func(t Target) bool { return t.Verdict.State == verification.Degraded }) {
			t.Fatalf("%s: degraded in %s (1)", a.Describe(), name)
		}
	}
	if at := si.quarantinedAt(env, release); !at.IsZero() && !si.truth.promotedAt[env].After(at) {
		t.Fatalf("%s: it was reverted at %s and nobody asked for it since (6)", a.Describe(), at)
	}
	if l := e.Landed.Value; l.By == ByPerson && si.truth.promotedAt[env].Before(l.At) {
		t.Fatalf("%s: over a person's change (6)", a.Describe())
	}
	if e.BranchState == BranchUnmanaged {
		t.Fatalf("%s: a stranger has the branch", a.Describe())
	}
}

// quarantinedAt is when a revert of the release was last opened or merged in env
// and nothing brought it back since; zero when none was.
func (si *simulation) quarantinedAt(env, release string) time.Time {
	var open, reverted, back time.Time
	for _, p := range si.pulls {
		if p.env != env || !p.ours || p.release != release {
			continue
		}
		switch at := p.ended; {
		case p.revert && p.open && p.made.After(open):
			open = p.made
		case p.revert && p.merged && at.After(reverted):
			reverted = at
		case !p.revert && p.merged && at.After(back): // maybe made before the revert was
			back = at
		}
	}
	if open.IsZero() && back.After(reverted) {
		return time.Time{}
	}
	if open.After(reverted) {
		return open
	}
	return reverted
}

func upstreamOf(f *ComponentFacts, env string) []string {
	var out []string
	for _, a := range simEnv(f, env).Spec.After {
		out = append(append(out, a), upstreamOf(f, a)...)
	}
	return out
}

// notVetoed holds 8 for what people closed.
func (si *simulation) notVetoed(t *rapid.T, a Action, env, release string, forgiven int) {
	var veto *simPull
	for _, p := range si.pulls {
		switch {
		case p.env != env || !p.ours || p.revert || p.open || p.release != release:
		case p.merged:
			veto = nil
		case p.number != forgiven && !p.super && p.ended.After(si.truth.promotedAt[env]):
			veto = p
		}
	}
	if veto != nil {
		t.Fatalf("%s: #%d was closed by a person (8)", a.Describe(), veto.number)
	}
}

// isWanted holds that what comes is newer than what is there, and that nobody took it back from an
// environment before, as it really happened.
func (si *simulation) isWanted(t *rapid.T, f *ComponentFacts, a Action, env, release string) {
	e := simEnv(f, env)
	takesOver := e.Landed.Value.By == ByPerson && si.truth.promotedAt[env].After(e.Landed.Value.At)
	if there := si.cameUpstream(f, env, e.Release.Value.ID, true); there >= si.cameUpstream(f, env, release, false) && there >= 0 && !takesOver {
		t.Fatalf("%s: what is there, %.4s, came upstream later (10)\n%s", a.Describe(), e.Release.Value.ID, si.story())
	}
	for _, name := range upstreamOf(f, env) {
		if i := si.withdrawn(simEnv(f, name), release); i >= 0 {
			t.Fatalf("%s: taken back from %s by %s (10)\n%s", a.Describe(), name, si.log[i].sha, si.story())
		}
	}
}

// cameUpstream is when a release came last to an environment right before env, or, with seen, that it did
// as far as somebody looked; -1: never.
func (si *simulation) cameUpstream(f *ComponentFacts, env, release string, seen bool) int {
	last := -1
	for i, c := range si.log {
		came := slices.Contains(simEnv(f, env).Spec.After, c.env) && c.after == release && (c.moves() || c.by == "")
		if came && c.kind != KindRevert && (!seen || si.seen[c.sha]) {
			last = i
		}
	}
	return last
}

// withdrawn is the commit that withdrew a release from an environment where it hasn't been since.
// It brought the release before again, or is a person's in an environment to which promotions bring
// releases. -1: none did, or the record of it is lost.
func (si *simulation) withdrawn(e *Env, release string) int {
	came := -1
	before := map[string]bool{}
	for i, c := range si.log {
		if c.env == e.Name && (c.moves() || c.by == "") && c.after == release {
			if came = i; !si.seen[c.sha] {
				came = -1
			}
		}
	}
	for i, c := range si.log {
		switch {
		case came < 0, c.env != e.Name, !c.moves() && c.by != "", !si.seen[c.sha]:
		case i <= came:
			before[c.after] = true
		case before[c.after], c.before == release && c.by == "person" && !e.Source() && !si.adopted[c.sha] && !si.adopting[c.sha]:
			return i
		}
	}
	return -1
}

// story lists what happened.
func (si *simulation) story() string {
	out := ""
	for i, c := range si.log {
		if c.moves() || c.by == "" {
			out += fmt.Sprintf("  %d %s: %.4s -> %.4s by %q %s\n", i, c.env, c.before, c.after, c.by, c.kind)
		}
	}
	for _, p := range si.pulls {
		out += fmt.Sprintf("  #%d %s revert %t: %.4s, put %.4s, open %t merged %t ours closed %t\n", p.number, p.env, p.revert, p.release, p.declared, p.open, p.merged, p.super)
	}
	for env, arrivals := range si.store.history {
		for _, a := range arrivals {
			out += fmt.Sprintf("  %s has %d %.4s by %s, verified %t, taken back %t\n", env, a.Seq, a.Release, a.By, a.IsVerified(), !a.WithdrawnAt.IsZero())
		}
	}
	return out
}

// mayStart holds what keeps a release from setting out.
func (si *simulation) mayStart(t *rapid.T, f *ComponentFacts, a Action, env string) {
	e := simEnv(f, env)
	requested := slices.ContainsFunc(f.PendingCommands, func(k PendingCommand) bool { return k.Verb == "promote" && k.Environment == env })
	held := slices.ContainsFunc(f.Holds.Value, func(h Hold) bool { return h.Scope != "environment" || h.Environment == env })
	if f.PipelineErr != "" || len(f.Problems) > 0 || held || e.Revert != nil && e.Open == nil || e.Spec.Open == pipeline.Manual && !requested {
		t.Fatalf("%s: broken %q, problems %q, held %t, revert open %t, open %s, asked %t", a.Describe(), f.PipelineErr, f.Problems, held, e.Revert != nil, e.Spec.Open, requested)
	}
}

// mayMerge holds 4, and for a revert 5 and 6.
func (si *simulation) mayMerge(t *rapid.T, f *ComponentFacts, a Merge) {
	e, p := simEnv(f, a.Environment), si.pull(a.Pull)
	held := slices.ContainsFunc(f.Holds.Value, func(h Hold) bool {
		return (h.Reverts || !a.Revert) && (h.Scope != "environment" || h.Environment == a.Environment)
	})
	if f.PipelineErr != "" || len(f.Problems) > 0 || !f.Holds.OK || held || p.held {
		t.Fatalf("%s: broken %q, problems %q, holds %q, held %t (4)", a.Describe(), f.PipelineErr, f.Problems, f.Holds.Err, held || p.held)
	}
	mergeable := MergeClean
	if a.Behind { // it is composed anew, and no more
		mergeable = MergeBehind
	}
	if moved, any := si.changedSince(p.env, p.base); moved || any || a.Head != p.head || a.Tip != e.Tip || p.headModified != "" || si.mergeability(p) != mergeable || !p.ours || !p.open {
		t.Fatalf("%s: not what was judged: stale %t, spoilt %q, %s, ours %t, open %t (4)", a.Describe(), any, p.headModified, p.mergeable, p.ours, p.open)
	}
	l := e.Landed.Value
	if a.Revert {
		if l.By != ByPromotion || e.Release.Value.ID != p.release || e.Spec.OnDegraded.Action != pipeline.OnDegradedRevertAndMerge {
			t.Fatalf("%s: what is there is by %s (5, 6)", a.Describe(), l.By)
		}
		if requested := slices.ContainsFunc(f.PendingCommands, func(k PendingCommand) bool { return k.Verb == "revert" && k.Environment == e.Name }); !requested && !degradedEnough(e) {
			t.Fatalf("%s: with fewer degraded targets than the quorum %s of %d", a.Describe(), e.Spec.OnDegraded.Quorum, len(e.Targets))
		}
		if before := si.log[si.landed(e.Name)].before; before != p.back {
			t.Fatalf("%s: restores %s, before was %s (5)", a.Describe(), p.back, before)
		}
		return
	}
	si.mayCome(t, f, a, a.Environment, p.release)
	if e.Spec.Merge != pipeline.Auto || e.Revert != nil {
		t.Fatalf("%s: merge is %s, a revert is open: %t (4)", a.Describe(), e.Spec.Merge, e.Revert != nil)
	}
	for _, g := range e.Gates {
		n := 0
		if g.Settled != nil {
			if tg := slices.IndexFunc(si.targets[e.Name], func(tg *simTarget) bool { return tg.drift != "" }); tg >= 0 && g.Settled.Drift == policies.DriftBlock {
				t.Fatalf("%s: %s is %s (4)", a.Describe(), si.targets[e.Name][tg].name, si.targets[e.Name][tg].drift)
			}
			continue
		}
		for _, what := range p.approvals {
			if what == p.release {
				n++
			}
		}
		if n < g.Approvals.Count {
			t.Fatalf("%s: %d of %d approvals (4)", a.Describe(), n, g.Approvals.Count)
		}
	}
}

// mayRevert holds 5 and 6 for a revert that opens.
func (si *simulation) mayRevert(t *rapid.T, f *ComponentFacts, a OpenRevert, forgiven int) {
	e := simEnv(f, a.Environment)
	l := e.Landed.Value
	if e.Revert != nil || l.By != ByPromotion || l.Pull != a.Pull || l.Commit != a.Commit || e.Release.Value.ID != a.Release {
		t.Fatalf("%s: it carries %s by %s of #%d, revert open %t (2, 5, 6)", a.Describe(), wording.Short(e.Release.Value.ID), l.By, l.Pull, e.Revert != nil)
	}
	if a.Members[0].CommandID != 0 {
		return
	}
	for _, p := range si.pulls {
		if p.number != forgiven && p.ours && p.revert && !p.open && !p.merged && !p.super && p.env == e.Name && p.release == a.Release && p.ended.After(l.At) {
			t.Fatalf("%s: a person closed #%d (8)", a.Describe(), p.number)
		}
	}
	for _, tg := range e.Targets {
		if tg.Verdict.State == verification.Degraded {
			if !tg.HealthyBefore.OK || !tg.HealthyBefore.Value || !tg.ChangedSince.OK || len(tg.ChangedSince.Value) > 0 {
				t.Fatalf("%s: on doubt about %s", a.Describe(), tg.Name)
			}
			if incident := slices.ContainsFunc(f.ClusterIncidents, func(x ClusterIncident) bool {
				return x.Cluster == tg.Cluster && !x.Since.Before(l.At.Add(-incidentClockSkew))
			}); incident && (!tg.ChangedObjects.OK || !slices.Contains(tg.ChangedObjects.Value, Object{Kind: "Deployment", Name: "web"})) {
				t.Fatalf("%s: in an incident that %s may not be the cause of", a.Describe(), tg.Name)
			}
		}
	}
	if bad := degradedEnough(e); !bad || e.Spec.OnDegraded.Action == pipeline.OnDegradedHold || f.Now.Sub(l.At) > e.Spec.Verify.WatchWindow() || f.Limits.RevertsByEnv[e.Name] >= 3 {
		t.Fatalf("%s: degraded %t, onDegraded %s, landed %s ago", a.Describe(), bad, e.Spec.OnDegraded, f.Now.Sub(l.At))
	}
}

// degradedEnough says that a target is degraded, and as many of them as the quorum says.
func degradedEnough(e *Env) bool {
	n, quorum := 0, e.Spec.OnDegraded.Quorum
	for _, tg := range e.Targets {
		if tg.Verdict.State == verification.Degraded {
			n++
		}
	}
	switch {
	case n == 0 || n == len(e.Targets):
		return n > 0
	case quorum.Percent > 0:
		return n*100 >= quorum.Percent*len(e.Targets)
	}
	return n >= quorum.Targets
}
