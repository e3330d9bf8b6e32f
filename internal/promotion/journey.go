package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// journey is what the components say of the one pull request into an environment.
type journey struct {
	env     string
	pull    *Pull // the open one; nil without
	tip     string
	now     []Passenger // in it
	next    []Passenger // that should be
	who     map[string]int
	moves   []string // why it is composed anew
	leaving []string // why components leave it
	merges  map[string]Merge
	told    bool // a component says that something is to be done with it
	anew    bool // composed anew also where the same move
	blocked string
}

// promotion joins what the components say of the pull request into an environment.
func (b *fold) promotion(env string) {
	j := b.journey(env)
	if j == nil {
		return
	}
	b.seat(j)
	slices.SortFunc(j.next, func(x, y Passenger) int { return cmp.Compare(x.Component, y.Component) })
	for {
		if len(j.now) > 0 && !j.anew && samePassengers(j.now, j.next) {
			b.merge(j)
			return
		}
		if len(j.next) == 0 {
			if j.pull != nil && len(j.leaving) > 0 {
				b.do(Close{Environment: env, Pull: j.pull.Number, Why: strings.Join(j.leaving, "; "), Passengers: j.now})
			}
			return
		}
		if b.stopped(j) {
			return
		}
		if b.stayBehind(j) {
			continue
		}
		if !b.composable(j) {
			return
		}
		if refused := b.refusedOf(j); !refused {
			break
		}
	}
	if j.pull == nil {
		b.do(Open{Environment: env, Tip: j.tip, Release: BatchID(j.next), Name: named(j.next), Passengers: j.next})
		return
	}
	b.do(Replace{Environment: env, Pull: j.pull.Number, Head: j.pull.Head, Tip: j.tip, Release: BatchID(j.next), Name: named(j.next),
		Why: strings.Join(append(j.leaving, j.moves...), "; "), Passengers: j.next})
}

// maxPassengers is how many components one pull request moves at most: its body
// names each with its release, and forges bound a body at 64 KiB.
const maxPassengers = 200

// seat leaves those behind for whom there is no room; who is in it already stays.
func (b *fold) seat(j *journey) {
	if len(j.next) <= maxPassengers {
		return
	}
	slices.SortFunc(j.next, func(x, y Passenger) int {
		_, xIn := Riding(j.now, x.Component)
		_, yIn := Riding(j.now, y.Component)
		switch {
		case xIn && !yIn:
			return -1
		case yIn && !xIn:
			return 1
		}
		return cmp.Compare(x.Component, y.Component)
	})
	for _, p := range j.next[maxPassengers:] {
		b.why(j.who[p.Component], j.env, "limit", fmt.Sprintf("one pull request moves at most %d components; it goes with the next", maxPassengers))
	}
	j.next = j.next[:maxPassengers]
}

// named is what people call what moves together.
func named(passengers []Passenger) string {
	out := make([]string, len(passengers))
	for i, p := range passengers {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}

// journey gathers what the components say; nil when there is nothing to join.
func (b *fold) journey(env string) *journey {
	j := &journey{env: env, who: map[string]int{}, merges: map[string]Merge{}}
	for i := range b.facts {
		f := &b.facts[i]
		e := envNamed(f, env)
		if e == nil || e.Source() {
			continue
		}
		j.tip = firstNonEmpty(j.tip, e.Tip)
		j.who[f.Unit.Component] = i
		rides := e.Open != nil && len(e.Open.Passengers) > 0
		if rides {
			j.pull = e.Open
		} else if e.Train != nil && j.pull == nil {
			j.pull = e.Train
		}
		taken := b.take(i, func(a Action) bool {
			o, opens := a.(Open)
			return opens && o.Environment == env || rides && aboutPull(a, env, e.Open.Number)
		})
		if rides {
			j.passenger(f, e, taken)
		} else {
			j.newcomer(f, taken)
		}
	}
	var kept []Passenger
	for _, p := range j.next {
		if !b.doomed[p.Component+" "+p.Release] {
			kept = append(kept, p)
			continue
		}
		if j.pull != nil {
			// Its way back opens now: the next look drops it with the reason.
			j.blocked = p.String() + " is being taken back"
		}
	}
	for _, a := range b.out.Actions {
		o, undoes := a.(OpenRevert)
		for _, p := range o.Passengers {
			if _, in := Riding(j.now, p.Component); in && undoes && o.Environment == env {
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
	case j.pull.Unsound != "" && !j.told:
		return nil // somebody else's work, and nobody asked for it to be taken over
	case len(j.now) == 0 && len(j.next) == 0:
		j.leaving = append(j.leaving, "it moves nothing any more")
	}
	return j
}

// passenger notes what one that is in the pull request says of it.
func (j *journey) passenger(f *Facts, e *Env, said []Action) {
	p := Passenger{Component: f.Unit.Component, Release: e.Open.Release, Name: e.Open.Name}
	j.now = append(j.now, p)
	if e.Open.Unsound != "" {
		// What somebody made of its head isn't carried on; what we put there is.
		p.Release, p.Name = e.Open.Claimed, ""
	}
	j.told = j.told || len(said) > 0
	for _, a := range said {
		switch a := a.(type) {
		case Close:
			j.leaving = append(j.leaving, f.Unit.Component+": "+a.Why)
			return
		case Replace:
			j.anew = true
			p.Release, p.Name, p.Ask = a.Release, a.Name, a.Ask
			why := a.Why
			if a.Release != e.Open.Release {
				why = f.Unit.Component + ": " + why
			}
			if !slices.Contains(j.moves, why) {
				j.moves = append(j.moves, why)
			}
		case Merge:
			j.merges[p.Component] = a
		}
	}
	if p.Release == "" {
		j.leaving = append(j.leaving, fmt.Sprintf("which release of %s Liftlock put there can't be told", p.Component))
		return
	}
	j.next = append(j.next, p)
}

// newcomer notes one that is ready and not in the pull request.
func (j *journey) newcomer(f *Facts, said []Action) {
	for _, a := range said {
		o := a.(Open)
		p := Passenger{Component: f.Unit.Component, Release: o.Release, Name: o.Name, Ask: o.Ask}
		j.next = append(j.next, p)
		j.moves = append(j.moves, p.String()+" is ready too")
	}
}

// samePassengers says that the same releases of the same components move.
func samePassengers(a, b []Passenger) bool { return BatchID(a) == BatchID(b) }

// stopped says that nothing may be composed now, and tells the components why.
func (b *fold) stopped(j *journey) bool {
	why := j.blocked
	for _, p := range j.next {
		f := &b.facts[j.who[p.Component]]
		if f.Broken != "" {
			why = "the pipeline file on the default branch is broken: " + f.Broken
		}
		for _, problem := range f.Problems {
			why = problem
		}
	}
	for _, p := range j.next {
		if why != "" {
			b.why(j.who[p.Component], j.env, "together", "what moves together can't be composed now: "+why)
		}
	}
	return why != ""
}

// stayBehind leaves newcomers behind where it can't be told whose part keeps what
// would move together from being made: who is in the pull request already goes on
// without them. True when it did.
func (b *fold) stayBehind(j *journey) bool {
	t, ok := b.together[j.env][BatchID(j.next)]
	if !ok || t.Tip != j.tip || t.Refused == "" || len(t.Of) > 0 || j.anew || len(j.now) == 0 || len(j.next) <= len(j.now) {
		return false
	}
	for _, p := range j.now {
		if q, in := Riding(j.next, p.Component); !in || q.Release != p.Release {
			return false
		}
	}
	for _, p := range j.next {
		if _, in := Riding(j.now, p.Component); !in {
			b.refuse(j, p, t.Refused)
		}
	}
	j.next = slices.Clone(j.now)
	return true
}

// refuse tells a component why it doesn't come along, and whoever asked for it.
func (b *fold) refuse(j *journey, p Passenger, why string) {
	i := j.who[p.Component]
	b.why(i, j.env, "refused", why)
	if p.Ask != 0 {
		d := &b.out.Components[i]
		d.Actions = append(d.Actions, FinishAsk{Environment: j.env, ID: p.Ask, Outcome: why})
	}
}

// composable says that what moving together changes is known; it asks for it
// where it isn't.
func (b *fold) composable(j *journey) bool {
	t, ok := b.together[j.env][BatchID(j.next)]
	if !ok || t.Tip != j.tip {
		b.do(Look{What: LookTogether, Environment: j.env, Passengers: j.next})
		return false
	}
	if t.Refused != "" && len(t.Of) == 0 {
		for _, p := range j.next {
			b.why(j.who[p.Component], j.env, "refused", t.Refused)
		}
		return false
	}
	return true
}

// refusedOf drops those whose own part can't be made; true when there were any.
func (b *fold) refusedOf(j *journey) bool {
	t := b.together[j.env][BatchID(j.next)]
	var kept []Passenger
	for _, p := range j.next {
		why := t.Of[p.Component]
		if why == "" {
			kept = append(kept, p)
			continue
		}
		b.refuse(j, p, why)
		if _, in := Riding(j.now, p.Component); in {
			j.leaving = append(j.leaving, p.String()+" can't be composed: "+why)
		}
	}
	dropped := len(kept) < len(j.next)
	j.next = kept
	return dropped
}

// merge merges what every passenger says may be merged, and tells those that
// are ready for whom they wait.
func (b *fold) merge(j *journey) {
	if j.blocked != "" {
		return
	}
	var late string
	for _, p := range j.now {
		if _, ok := j.merges[p.Component]; !ok && late == "" {
			late = p.Component
		}
	}
	if late == "" {
		m := j.merges[j.now[0].Component]
		m.Passengers = j.now
		b.do(m)
		return
	}
	for component := range j.merges {
		b.why(j.who[component], j.env, "together", fmt.Sprintf("#%d also moves %s, which may not be merged yet: %s", j.pull.Number, late, b.standsBy(j, late)))
	}
}

// standsBy is the first thing that keeps a component's part from merging.
func (b *fold) standsBy(j *journey, component string) string {
	st := b.out.Components[j.who[component]].Env(j.env)
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
