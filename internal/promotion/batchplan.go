package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// batchPlan is what the components say of the one pull request into an environment.
type batchPlan struct {
	env            string
	pull           *Pull // the open one; nil without
	tip            string
	current        []Member // in it
	next           []Member // that should be
	componentIndex map[string]int
	replaceReasons []string // why it is composed anew
	leaveReasons   []string // why components leave it
	merges         map[string]Merge
	hasActions     bool // a component says that something is to be done with it
	recompose      bool // composed anew also where the same move
	blocked        string
}

// planPromotion joins what the components say of the pull request into an environment.
func (b *batchPlanner) planPromotion(env string) {
	j := b.gatherPlan(env)
	if j == nil {
		return
	}
	b.limitMembers(j)
	slices.SortFunc(j.next, func(x, y Member) int { return cmp.Compare(x.Component, y.Component) })
	for {
		if len(j.current) > 0 && !j.recompose && sameMembers(j.current, j.next) {
			b.mergeWhenAllReady(j)
			return
		}
		if len(j.next) == 0 {
			if j.pull != nil && len(j.leaveReasons) > 0 {
				b.addAction(Close{Environment: env, Pull: j.pull.Number, Why: strings.Join(j.leaveReasons, "; "), Members: j.current})
			}
			return
		}
		if b.reportBlocked(j) {
			return
		}
		if b.dropJoiners(j) {
			continue
		}
		if !b.hasComposition(j) {
			return
		}
		if refused := b.dropRefusedMembers(j); !refused {
			break
		}
	}
	if j.pull == nil {
		b.addAction(Open{Environment: env, Tip: j.tip, Release: BatchID(j.next), Name: joinMemberNames(j.next), Members: j.next})
		return
	}
	b.addAction(Replace{Environment: env, Pull: j.pull.Number, Head: j.pull.Head, Tip: j.tip, Release: BatchID(j.next), Name: joinMemberNames(j.next),
		Why: strings.Join(append(j.leaveReasons, j.replaceReasons...), "; "), Members: j.next})
}

// maxMembers is how many components one pull request moves at most: its body
// names each with its release, and forges bound a body at 64 KiB.
const maxMembers = 200

// limitMembers leaves those behind for whom there is no room; who is in it already stays.
func (b *batchPlanner) limitMembers(j *batchPlan) {
	if len(j.next) <= maxMembers {
		return
	}
	slices.SortFunc(j.next, func(x, y Member) int {
		_, xIn := FindMember(j.current, x.Component)
		_, yIn := FindMember(j.current, y.Component)
		switch {
		case xIn && !yIn:
			return -1
		case yIn && !xIn:
			return 1
		}
		return cmp.Compare(x.Component, y.Component)
	})
	for _, p := range j.next[maxMembers:] {
		b.addReason(j.componentIndex[p.Component], j.env, "limit", fmt.Sprintf("one pull request moves at most %d components; it goes with the next", maxMembers))
	}
	j.next = j.next[:maxMembers]
}

// joinMemberNames is what people call what moves together.
func joinMemberNames(members []Member) string {
	out := make([]string, len(members))
	for i, p := range members {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}

// gatherPlan gathers what the components say; nil when there is nothing to join.
func (b *batchPlanner) gatherPlan(env string) *batchPlan {
	j := &batchPlan{env: env, componentIndex: map[string]int{}, merges: map[string]Merge{}}
	for i := range b.facts {
		f := &b.facts[i]
		e := findEnv(f, env)
		if e == nil || e.Source() {
			continue
		}
		j.tip = cmp.Or(j.tip, e.Tip)
		j.componentIndex[f.Unit.Component] = i
		isMember := e.Open != nil && len(e.Open.Members) > 0
		if isMember {
			j.pull = e.Open
		} else if e.BatchPull != nil && j.pull == nil {
			j.pull = e.BatchPull
		}
		actions := b.takeActions(i, func(a Action) bool {
			o, opens := a.(Open)
			return opens && o.Environment == env || isMember && isAboutPull(a, env, e.Open.Number)
		})
		if isMember {
			j.addMember(f, e, actions)
		} else {
			j.addJoiner(f, actions)
		}
	}
	var kept []Member
	for _, p := range j.next {
		if !b.reverting[p.Component+" "+p.Release] {
			kept = append(kept, p)
			continue
		}
		if j.pull != nil {
			// Its way back opens now: the next look drops it with the reason.
			j.blocked = p.String() + " is being taken back"
		}
	}
	for _, a := range b.out.Actions {
		o, reverts := a.(OpenRevert)
		for _, p := range o.Members {
			if _, in := FindMember(j.current, p.Component); in && reverts && o.Environment == env {
				// Merged over it, what goes back could no longer be put back.
				j.blocked = fmt.Sprintf("%s of #%d is being taken back", p, o.Pull)
			}
		}
	}
	switch {
	case j.pull == nil:
		j.next = kept
		if len(j.next) == 0 {
			return nil
		}
	case j.pull.HeadModified != "" && !j.hasActions:
		return nil // somebody else's work, and nobody asked for it to be taken over
	case len(j.current) == 0 && len(j.next) == 0:
		j.leaveReasons = append(j.leaveReasons, "it moves nothing any more")
	}
	return j
}

// addMember notes what one that is in the pull request says of it.
func (j *batchPlan) addMember(f *Facts, e *Env, said []Action) {
	p := Member{Component: f.Unit.Component, Release: e.Open.Release, Name: e.Open.Name}
	j.current = append(j.current, p)
	if e.Open.HeadModified != "" {
		// What somebody made of its head isn't carried on; what we put there is.
		p.Release, p.Name = e.Open.DeclaredRelease, ""
	}
	j.hasActions = j.hasActions || len(said) > 0
	for _, a := range said {
		switch a := a.(type) {
		case Close:
			j.leaveReasons = append(j.leaveReasons, f.Unit.Component+": "+a.Why)
			return
		case Replace:
			j.recompose = true
			p.Release, p.Name, p.CommandID = a.Release, a.Name, a.CommandID
			why := a.Why
			if a.Release != e.Open.Release {
				why = f.Unit.Component + ": " + why
			}
			if !slices.Contains(j.replaceReasons, why) {
				j.replaceReasons = append(j.replaceReasons, why)
			}
		case Merge:
			j.merges[p.Component] = a
		}
	}
	if p.Release == "" {
		j.leaveReasons = append(j.leaveReasons, fmt.Sprintf("which release of %s Liftlock put there can't be told", p.Component))
		return
	}
	j.next = append(j.next, p)
}

// addJoiner notes one that is ready and not in the pull request.
func (j *batchPlan) addJoiner(f *Facts, said []Action) {
	for _, a := range said {
		o := a.(Open)
		p := Member{Component: f.Unit.Component, Release: o.Release, Name: o.Name, CommandID: o.CommandID}
		j.next = append(j.next, p)
		j.replaceReasons = append(j.replaceReasons, p.String()+" is ready too")
	}
}

// sameMembers says that the same releases of the same components move.
func sameMembers(a, b []Member) bool { return BatchID(a) == BatchID(b) }

// reportBlocked says that nothing may be composed now, and tells the components why.
func (b *batchPlanner) reportBlocked(j *batchPlan) bool {
	why := j.blocked
	for _, p := range j.next {
		f := &b.facts[j.componentIndex[p.Component]]
		if f.PipelineErr != "" {
			why = "the pipeline file on the default branch is broken: " + f.PipelineErr
		}
		for _, problem := range f.Problems {
			why = problem
		}
	}
	for _, p := range j.next {
		if why != "" {
			b.addReason(j.componentIndex[p.Component], j.env, "together", "what moves together can't be composed now: "+why)
		}
	}
	return why != ""
}

// dropJoiners leaves newcomers behind where it can't be told whose part keeps what
// would move together from being made: who is in the pull request already goes on
// without them. True when it did.
func (b *batchPlanner) dropJoiners(j *batchPlan) bool {
	t, ok := b.compositions[j.env][BatchID(j.next)]
	if !ok || t.Tip != j.tip || t.Refused == "" || len(t.RefusedByMember) > 0 || j.recompose || len(j.current) == 0 || len(j.next) <= len(j.current) {
		return false
	}
	for _, p := range j.current {
		if q, in := FindMember(j.next, p.Component); !in || q.Release != p.Release {
			return false
		}
	}
	for _, p := range j.next {
		if _, in := FindMember(j.current, p.Component); !in {
			b.refuseMember(j, p, t.Refused)
		}
	}
	j.next = slices.Clone(j.current)
	return true
}

// refuseMember tells a component why it doesn't come along, and whoever asked for it.
func (b *batchPlanner) refuseMember(j *batchPlan, p Member, why string) {
	i := j.componentIndex[p.Component]
	b.addReason(i, j.env, "refused", why)
	if p.CommandID != 0 {
		d := &b.out.Components[i]
		d.Actions = append(d.Actions, FinishCommand{Environment: j.env, ID: p.CommandID, Outcome: why})
	}
}

// hasComposition says that what moving together changes is known; it asks for it
// where it isn't.
func (b *batchPlanner) hasComposition(j *batchPlan) bool {
	t, ok := b.compositions[j.env][BatchID(j.next)]
	if !ok || t.Tip != j.tip {
		b.addAction(FactRequest{What: RequestBatchComposition, Environment: j.env, Members: j.next})
		return false
	}
	if t.Refused != "" && len(t.RefusedByMember) == 0 {
		for _, p := range j.next {
			b.addReason(j.componentIndex[p.Component], j.env, "refused", t.Refused)
		}
		return false
	}
	return true
}

// dropRefusedMembers drops those whose own part can't be made; true when there were any.
func (b *batchPlanner) dropRefusedMembers(j *batchPlan) bool {
	t := b.compositions[j.env][BatchID(j.next)]
	var kept []Member
	for _, p := range j.next {
		why := t.RefusedByMember[p.Component]
		if why == "" {
			kept = append(kept, p)
			continue
		}
		b.refuseMember(j, p, why)
		if _, in := FindMember(j.current, p.Component); in {
			j.leaveReasons = append(j.leaveReasons, p.String()+" can't be composed: "+why)
		}
	}
	dropped := len(kept) < len(j.next)
	j.next = kept
	return dropped
}

// mergeWhenAllReady merges what every passenger says may be merged, and tells those that
// are ready for whom they wait.
func (b *batchPlanner) mergeWhenAllReady(j *batchPlan) {
	if j.blocked != "" {
		return
	}
	var late string
	for _, p := range j.current {
		if _, ok := j.merges[p.Component]; !ok && late == "" {
			late = p.Component
		}
	}
	if late == "" {
		m := j.merges[j.current[0].Component]
		m.Members = j.current
		b.addAction(m)
		return
	}
	for component := range j.merges {
		b.addReason(j.componentIndex[component], j.env, "together", fmt.Sprintf("#%d also moves %s, which may not be merged yet: %s", j.pull.Number, late, b.firstObstacle(j, late)))
	}
}

// firstObstacle is the first thing that keeps a component's part from merging.
func (b *batchPlanner) firstObstacle(j *batchPlan, component string) string {
	st := b.out.Components[j.componentIndex[component]].Env(j.env)
	if st == nil {
		return "it is not judged yet"
	}
	for _, g := range st.Gates {
		if g.Outcome != "pass" {
			return g.Gate + ": " + g.Reason
		}
	}
	if len(st.Why) > 0 {
		return st.Why[0].Text
	}
	return "it is looked at again"
}
