package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// maxMembers is how many components one pull request moves at most: its body
// names each with its release, and forges bound a body at 64 KiB.
const maxMembers = 200

// batchPlanner joins what the components of a pipeline with batch: environment say of the
// pull requests that they share into what is done with those.
type batchPlanner struct {
	facts      *Facts
	decision   *Decision
	intents    [][]PullAction    // by component: what each would do if it were alone
	othersWork []map[string]bool // by component: the environments in which its release in the open one isn't known to be ours
	components map[string]int
	reverting  map[string]bool // component and release that this decision reverts
}

// batchPlan is what the components say of the one pull request into an environment.
type batchPlan struct {
	env            string
	pull           *Pull // the open one; nil without
	tip            string
	current        []Member // in it
	next           []Member // that should be
	replaceReasons []string // why it is composed anew
	leaveReasons   []string // why components leave it
	merges         map[string]Merge
	wanted         bool // a component says that something else than a merge is to be done with it
	othersWork     bool // what it brings of a component isn't known to be ours
	recompose      bool // composed anew also where the same move
	blocked        string
}

// planBatches plans environment by environment, the first of the pipeline first.
func (d *Decision) planBatches(f *Facts, intents [][]PullAction, othersWork []map[string]bool) {
	b := &batchPlanner{facts: f, decision: d, intents: intents, othersWork: othersWork, components: map[string]int{},
		reverting: map[string]bool{}}
	var envs []string
	for i := range f.Components {
		b.components[f.Components[i].Unit.Component] = i
		for k := range f.Components[i].Envs {
			if name := f.Components[i].Envs[k].Name; f.Components[i].isBatched() && !slices.Contains(envs, name) {
				envs = append(envs, name)
			}
		}
	}
	for _, env := range envs {
		b.joinOpenReverts(env)
		b.joinNewReverts(env)
		b.planPromotion(env)
	}
}

func (b *batchPlanner) addAction(a Action) { b.decision.Actions = append(b.decision.Actions, a) }

// takeIntents removes what a component says of certain pull requests into an environment,
// and gives it.
func (b *batchPlanner) takeIntents(i int, env string, is func(PullAction) bool) (out []PullAction) {
	b.intents[i] = slices.DeleteFunc(b.intents[i], func(a PullAction) bool {
		mine := a.environment() == env && is(a)
		if mine {
			out = append(out, a)
		}
		return mine
	})
	return out
}

// isAbout says that an action changes, merges or closes an open pull request.
func isAbout(a PullAction, pull *Pull) bool {
	number, _ := a.Subject() // of a revert to be opened the promotion's, which isn't open
	return pull != nil && number == pull.Number
}

// addReason adds a reason to what is said of a component in an environment that it has.
func (b *batchPlanner) addReason(component, env string, code cause.Code, text string) {
	st := b.decision.Components[b.components[component]].Env(env)
	if !slices.ContainsFunc(st.Why, func(w Reason) bool { return w.Code == code && w.Text == text }) {
		st.addReason(code, text)
	}
}

// planPromotion joins what the components say of the pull request into an environment.
func (b *batchPlanner) planPromotion(env string) {
	j := b.gatherPlan(env)
	if j == nil {
		return
	}
	b.limitMembers(j)
	for {
		if len(j.current) > 0 && !j.recompose && BatchID(j.current) == BatchID(j.next) {
			b.mergeWhenAllReady(j)
			return
		}
		if len(j.next) == 0 {
			if len(j.leaveReasons) > 0 {
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
		if !b.dropRefusedMembers(j) {
			break
		}
	}
	if j.pull == nil {
		b.addAction(Open{Environment: env, Tip: j.tip, Release: BatchID(j.next), Name: formatMembers(j.next), Members: j.next, Batch: true})
		return
	}
	b.addAction(Replace{Environment: env, Pull: j.pull.Number, Head: j.pull.Head, Tip: j.tip, Release: BatchID(j.next),
		Name: formatMembers(j.next),
		Why:  strings.Join(append(j.leaveReasons, j.replaceReasons...), "; "), Members: j.next, Batch: true})
}

// limitMembers leaves those behind for whom there is no room; who is in it already stays.
func (b *batchPlanner) limitMembers(j *batchPlan) {
	byName := func(x, y Member) int { return cmp.Compare(x.Component, y.Component) }
	slices.SortFunc(j.next, byName)
	if len(j.next) <= maxMembers {
		return
	}
	joins := func(p Member) int {
		if _, in := FindMember(j.current, p.Component); in {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(j.next, func(x, y Member) int { return cmp.Compare(joins(x), joins(y)) })
	for _, p := range j.next[maxMembers:] {
		b.addReason(p.Component, j.env, cause.Limit, fmt.Sprintf("one pull request moves at most %d components; it goes with the next",
			maxMembers))
	}
	j.next = j.next[:maxMembers]
	slices.SortFunc(j.next, byName)
}

// gatherPlan gathers what the components say; nil when there is nothing to join.
func (b *batchPlanner) gatherPlan(env string) *batchPlan {
	j := &batchPlan{env: env, merges: map[string]Merge{}}
	for i := range b.facts.Components {
		f := &b.facts.Components[i]
		e := f.findEnv(env)
		if e == nil || e.Source() {
			continue
		}
		j.tip = cmp.Or(j.tip, e.Tip)
		said := b.takeIntents(i, env, func(a PullAction) bool { _, opens := a.(Open); return opens || isAbout(a, e.Open) })
		if e.Open != nil {
			j.pull = e.Open
			j.addMember(f, e, said, b.othersWork[i][env])
			continue
		}
		if j.pull == nil {
			j.pull = e.BatchPull
		}
		for _, a := range said {
			p := a.(Open).Members[0]
			j.next = append(j.next, p)
			j.replaceReasons = append(j.replaceReasons, p.String()+" is ready too")
		}
	}
	j.next = slices.DeleteFunc(j.next, func(p Member) bool {
		reverting := b.reverting[p.Component+" "+p.Release]
		if reverting && j.pull != nil {
			// Its revert opens now: the next look drops it with the reason.
			j.blocked = p.String() + " is being taken back"
		}
		return reverting && j.pull == nil
	})
	for _, a := range b.decision.Actions {
		o, _ := a.(OpenRevert)
		for _, p := range o.Members {
			if _, in := FindMember(j.current, p.Component); in && o.Environment == env {
				// Merged over it, what goes back could no longer be put back.
				j.blocked = fmt.Sprintf("%s of #%d is being taken back", p, o.Pull)
			}
		}
	}
	switch {
	case j.pull == nil && len(j.next) == 0:
		return nil
	case j.pull == nil:
	case (j.othersWork || j.pull.HeadState == HeadModified) && !j.wanted:
		return nil // another account's work, and no command takes it over
	case len(j.current) == 0 && len(j.next) == 0:
		j.leaveReasons = append(j.leaveReasons, "it moves nothing any more")
	}
	return j
}

// addMember takes up what one that is in the pull request says of it.
func (b *batchPlan) addMember(f *ComponentFacts, e *Env, said []PullAction, othersWork bool) {
	p := Member{Component: f.Unit.Component, Release: e.Open.Release, Name: e.Open.Name}
	b.current = append(b.current, p)
	b.othersWork = b.othersWork || othersWork
	if othersWork || e.Open.HeadState == HeadModified {
		// Another account's content of its head isn't carried on; ours is.
		p.Release, p.Name = e.Open.DeclaredRelease.Value, ""
	}
	for _, a := range said {
		if _, merges := a.(Merge); !merges {
			b.wanted = true
		}
		switch a := a.(type) {
		case Close:
			b.leaveReasons = append(b.leaveReasons, f.Unit.Component+": "+a.Why)
			return
		case Replace:
			b.recompose = true
			p = a.Members[0]
			why := a.Why
			if a.Release != e.Open.Release {
				why = f.Unit.Component + ": " + why
			}
			if !slices.Contains(b.replaceReasons, why) {
				b.replaceReasons = append(b.replaceReasons, why)
			}
		case Merge:
			b.merges[p.Component] = a
		}
	}
	if p.Release == "" {
		b.leaveReasons = append(b.leaveReasons, fmt.Sprintf("which release of %s Liftlock put there can't be told", p.Component))
		return
	}
	b.next = append(b.next, p)
}

// reportBlocked says that nothing may be composed now, and to the components why.
func (b *batchPlanner) reportBlocked(j *batchPlan) bool {
	why := j.blocked
	for _, p := range j.next {
		f := &b.facts.Components[b.components[p.Component]]
		if f.PipelineErr != "" {
			why = "the pipeline file on the default branch is broken: " + f.PipelineErr
		}
		for _, problem := range f.Problems {
			why = problem
		}
	}
	if why == "" {
		return false
	}
	for _, p := range j.next {
		b.addReason(p.Component, j.env, cause.BatchMembers, "what moves together can't be composed now: "+why)
	}
	return true
}

// composition is what moving all that should move changes; false when it isn't known.
func (b *batchPlanner) composition(j *batchPlan) (Composition, bool) {
	c, ok := b.facts.Compositions[j.env][BatchID(j.next)]
	return c, ok && c.Tip == j.tip
}

// dropJoiners leaves joiners behind where it can't be told whose part keeps the joint edit from
// being made. The present members go on without them. True when it did.
func (b *batchPlanner) dropJoiners(j *batchPlan) bool {
	c, ok := b.composition(j)
	isRefusedAsWhole := ok && c.State == EditRefused && len(c.RefusedByMember) == 0
	if !isRefusedAsWhole || j.recompose || len(j.current) == 0 {
		return false
	}
	for _, p := range j.current {
		if _, in := FindMember(j.next, p.Component); !in {
			return false
		}
	}
	for _, p := range j.next {
		if _, in := FindMember(j.current, p.Component); !in {
			b.refuseMember(j, p, c.Reason)
		}
	}
	j.next = slices.Clone(j.current)
	return true
}

// refuseMember says to a component, and to the author of its command, why it doesn't come along.
func (b *batchPlanner) refuseMember(j *batchPlan, p Member, why string) {
	b.addReason(p.Component, j.env, cause.Refused, why)
	if p.CommandID != 0 {
		d := &b.decision.Components[b.components[p.Component]]
		d.Actions = append(d.Actions, FinishCommand{Environment: j.env, ID: p.CommandID, Outcome: why})
	}
}

// hasComposition says that what moving together changes is known; it requests it
// where it isn't.
func (b *batchPlanner) hasComposition(j *batchPlan) bool {
	c, ok := b.composition(j)
	if !ok {
		b.addAction(FactRequest{What: RequestComposition, Environment: j.env, Release: BatchID(j.next), Members: j.next})
		return false
	}
	if c.State == EditRefused && len(c.RefusedByMember) == 0 {
		for _, p := range j.next {
			b.addReason(p.Component, j.env, cause.Refused, c.Reason)
		}
		return false
	}
	return true
}

// dropRefusedMembers drops those whose own part can't be made; true when there were any.
func (b *batchPlanner) dropRefusedMembers(j *batchPlan) bool {
	c, _ := b.composition(j)
	var kept []Member
	for _, p := range j.next {
		why := c.RefusedByMember[p.Component]
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

// mergeWhenAllReady merges what every member says may be merged, and says to those that
// are ready whom they wait for.
func (b *batchPlanner) mergeWhenAllReady(j *batchPlan) {
	if j.blocked != "" {
		return
	}
	late := slices.IndexFunc(j.current, func(p Member) bool { _, ready := j.merges[p.Component]; return !ready })
	if late < 0 {
		m := j.merges[j.current[0].Component]
		m.Members = j.current
		for _, p := range j.current {
			m.Until = earliest(m.Until, j.merges[p.Component].Until)
		}
		b.addAction(m)
		return
	}
	for component := range j.merges {
		b.addReason(component, j.env, cause.BatchMembers, fmt.Sprintf("#%d also moves %s, which may not be merged yet: %s", j.pull.Number,
			j.current[late].Component, b.firstObstacle(j, j.current[late].Component)))
	}
}

// firstObstacle is the first thing that keeps a component's part from merging.
func (b *batchPlanner) firstObstacle(j *batchPlan, component string) string {
	st := b.decision.Components[b.components[component]].Env(j.env)
	for _, g := range st.Gates {
		if g.Outcome != "pass" {
			return string(g.Gate) + ": " + g.Reason
		}
	}
	if len(st.Why) > 0 {
		return st.Why[0].Text
	}
	return "it is looked at again"
}
