package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
)

// companions is what a component must know of those that move together with it.
type companions struct {
	// blockedBy says, by environment and commit, which component that came by the same
	// pull request keeps an arrival from moving on.
	blockedBy map[string]string
	// revertCauses says, by environment, why the open revert of several is wanted, where
	// that may be another component's doing.
	revertCauses map[string]string
	// overtaken says, by environment and commit, of which of those that came by a pull
	// request a revert can no longer take back what it brought. All components share it.
	overtaken map[string]string
}

func arrivalKey(env, commit string) string { return env + "|" + commit }

// batchArrival is one of those that came by one pull request.
type batchArrival struct {
	component int
	env       *Env
	arrival   *Arrival
}

// relateComponents finds the facts that the components of a pipeline with batch: environment need
// of each other. They are which of those that came in one pull request are not verified, and which
// degradation a revert of several is for.
func relateComponents(components []ComponentFacts) []companions {
	out := make([]companions, len(components))
	byPull := map[string][]batchArrival{}
	causes := map[int]string{} // by number of the open revert
	overtaken := listOvertaken(components)
	for i := range components {
		f := &components[i]
		out[i] = companions{blockedBy: map[string]string{}, revertCauses: map[string]string{}, overtaken: overtaken}
		if !f.isBatched() {
			continue
		}
		for k := range f.Envs {
			e := &f.Envs[k]
			for h := range e.History {
				if a := &e.History[h]; a.By == ByPromotion {
					key := arrivalKey(e.Name, a.Commit)
					byPull[key] = append(byPull[key], batchArrival{i, e, a})
				}
			}
			if r := e.Revert; r != nil && r.Batch && causes[r.Number] == "" {
				causes[r.Number] = revertCause(f, e)
			}
		}
	}
	for i := range components {
		for k := range components[i].Envs {
			if e := &components[i].Envs[k]; e.Revert != nil {
				out[i].revertCauses[e.Name] = causes[e.Revert.Number]
			}
		}
	}
	for key, batch := range byPull {
		for i, w := range batch {
			for k, other := range batch {
				if why := unverifiedReason(&components[other.component], other.env, other.arrival); k != i && why != "" {
					out[w.component].blockedBy[key] = why
					break
				}
			}
		}
	}
	return out
}

func (c *ComponentFacts) isBatched() bool {
	return c.Pipeline != nil && c.Pipeline.Spec.BatchesByEnvironment()
}

// listOvertaken looks through what came by the pull requests of several that are still in
// force in an environment, for what their reverts can no longer take back.
func listOvertaken(components []ComponentFacts) map[string]string {
	out, byName := map[string]string{}, map[string]*ComponentFacts{}
	for i := range components {
		byName[components[i].Unit.Component] = &components[i]
	}
	for i := range components {
		for k := range components[i].Envs {
			e := &components[i].Envs[k]
			key := arrivalKey(e.Name, e.Landed.Value.Commit)
			if _, done := out[key]; done || e.Landed.Value.By != ByPromotion {
				continue
			}
			out[key] = ""
			for _, m := range e.Landed.Value.Members {
				f := byName[m.Component]
				if f == nil {
					continue
				}
				at := f.findEnv(e.Name)
				if at == nil || !at.Release.OK || !at.Landed.OK {
					continue
				}
				why := overtakenReason(at, m.Release, true)
				if l := at.Landed.Value; why == "" && l.By == ByPromotion && l.Commit != e.Landed.Value.Commit {
					why = fmt.Sprintf("#%d has brought it anew", l.Pull)
				}
				if why != "" {
					out[key] = m.Component + ": " + why
					break
				}
			}
		}
	}
	return out
}

// revertCause says why a component wants the open revert in which it goes back with
// others; "" when it doesn't.
func revertCause(f *ComponentFacts, e *Env) string {
	if r := rollUpTargets(e); r.state == Degraded && e.reachesQuorum() {
		return f.Unit.Component + " is degraded: " + r.reason
	}
	if slices.ContainsFunc(f.PendingCommands, func(a PendingCommand) bool {
		return a.Verb == command.Revert && a.Environment == e.Name && a.Release != "" && a.Release == e.Revert.Release
	}) {
		return f.Unit.Component + " was asked to go back"
	}
	return ""
}

// closeWrongKind closes an open promotion from when spec.batch said otherwise: nothing is
// carried by two pull requests at once. A held one is left to who holds it.
func (ev *evaluator) closeWrongKind(e *Env, st *EnvState) {
	p := e.WrongKind
	if p.Held {
		st.Promotion = Held
		st.addReason(cause.Hold, fmt.Sprintf("#%d from before spec.batch became %s has the label liftlock/hold; nothing else opens until it "+
			"is lifted or #%d is closed", p.Number, ev.spec.Batch, p.Number))
		return
	}
	if p.HeadState == HeadModified {
		st.addReason(cause.HeadModified, fmt.Sprintf("%s; spec.batch is %s by now, and nothing else opens until #%d is closed", p.HeadReason,
			ev.spec.Batch, p.Number))
		return
	}
	st.addReason(cause.Batch, fmt.Sprintf("#%d is closed first: spec.batch is %s by now", p.Number, ev.spec.Batch))
	ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p),
		Why: fmt.Sprintf("spec.batch is %s by now: what is ready opens anew that way", ev.spec.Batch)})
}

// reasonNotToJoin says why a component that is ready can't join the open pull request
// of the others; "" when it can, or when none is open.
func (ev *evaluator) reasonNotToJoin(e *Env, forced *PendingCommand) string {
	t := e.BatchPull
	switch {
	case t == nil:
	case t.HeadState == HeadModified:
		return t.HeadReason
	case forced != nil:
	case ev.isApproved(e, t):
		return fmt.Sprintf("it waits its turn behind #%d, which is approved without it", t.Number)
	case t.Held:
		return fmt.Sprintf("it waits its turn behind #%d, which is on hold", t.Number)
	}
	return ""
}

// reasonToLeave says why a component leaves the pull request in which it moves with others: it is
// itself on hold, and the others needn't wait for it. An approved or held pull request stays as it
// is, and its gates keep it.
func (ev *evaluator) reasonToLeave(e *Env) string {
	p := e.Open
	if !p.Batch || p.Held || ev.isApproved(e, p) || !ev.facts.Holds.OK {
		return ""
	}
	why := ""
	for _, h := range ev.activeHolds() {
		switch h.Scope {
		case "component":
			why = fmt.Sprintf("it is on hold by %s since %s", orSomebody(h.By), h.At.UTC().Format(time.RFC3339))
		case "pipeline":
			return ""
		case "environment":
			if h.Environment == e.Name {
				return ""
			}
		}
	}
	return why
}

// unverifiedReason says which component that came by the same pull request is not verified where an
// arrival is, so that it doesn't move on alone; "" when all are. Where one moved on since, the
// release in its place counts.
func unverifiedReason(member *ComponentFacts, e *Env, a *Arrival) string {
	name := member.Unit.Component + " " + cmp.Or(a.Name, wording.Short(a.Release))
	if !e.Release.OK || !e.Landed.OK {
		return fmt.Sprintf("%s came with it, and %s can't be read now: %s", name, e.Name,
			cmp.Or(e.Release.Err, e.Landed.Err, "not read yet"))
	}
	r, l := rollUpTargets(e), e.Landed.Value
	if l.Commit == a.Commit {
		if a.IsVerified() && r.state != Degraded {
			return ""
		}
		return fmt.Sprintf("%s came with it and is not verified in %s: %s", name, e.Name, r.reason)
	}
	if a.IsVerified() || l.By != ByPromotion {
		return ""
	}
	if now := e.currentArrival(); now == nil || !now.IsVerified() || r.state == Degraded {
		return fmt.Sprintf("%s came with it, and %s, which took its place in %s, is not verified: %s", name, e.Release.Value,
			e.Name, r.reason)
	}
	return ""
}
