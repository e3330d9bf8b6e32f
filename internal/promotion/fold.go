package promotion

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// fold is one run of DecideBatch.
type fold struct {
	facts    []Facts
	together map[string]map[string]Together
	out      BatchDecision
	doomed   map[string]bool // component and release that this decision takes back
}

func (b *fold) do(a Action) { b.out.Actions = append(b.out.Actions, a) }

func (b *fold) at(t time.Time) {
	if !t.IsZero() && (b.out.Next.IsZero() || t.Before(b.out.Next)) {
		b.out.Next = t
	}
}

// take removes the actions of a component that are about a pull request of
// several, and gives them.
func (b *fold) take(i int, is func(Action) bool) []Action {
	d := &b.out.Components[i]
	var taken, kept []Action
	for _, a := range d.Actions {
		if is(a) {
			taken = append(taken, a)
		} else {
			kept = append(kept, a)
		}
	}
	d.Actions = kept
	return taken
}

// why adds a reason to what is said of a component in an environment.
func (b *fold) why(i int, env, code, text string) {
	st := b.out.Components[i].Env(env)
	if st != nil && !slices.ContainsFunc(st.Why, func(w Reason) bool { return w.Code == code && w.Text == text }) {
		st.why(code, text)
	}
}

// reverts joins what is done to the open reverts of several: composed anew when
// one of them says so, merged or closed when all do.
func (b *fold) reverts(env string) {
	type open struct {
		pull                   *Pull
		members                []int
		anew, merges, closings []Action
	}
	byNumber := map[int]*open{}
	for i := range b.facts {
		e := envNamed(&b.facts[i], env)
		if e == nil || e.Undo == nil || len(e.Undo.Passengers) == 0 {
			continue
		}
		u := byNumber[e.Undo.Number]
		if u == nil {
			u = &open{pull: e.Undo}
			byNumber[e.Undo.Number] = u
		}
		u.members = append(u.members, i)
		for _, a := range b.take(i, func(a Action) bool { return aboutPull(a, env, u.pull.Number) }) {
			switch a.(type) {
			case RestoreUndo:
				u.anew = append(u.anew, a)
			case Merge:
				u.merges = append(u.merges, a)
			case Close:
				u.closings = append(u.closings, a)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		u := byNumber[n]
		switch all := len(u.members); {
		case len(u.closings) == all, len(u.closings) > 0 && u.pull.Unsound != "":
			c := u.closings[0].(Close)
			c.Passengers = u.pull.Passengers
			b.do(c)
		case len(u.closings) > 0:
			for _, i := range u.members {
				b.why(i, env, "hold", fmt.Sprintf("the revert #%d takes several back at once, and of one of them it no longer can: %s; a person has to decide", n, u.closings[0].(Close).Why))
			}
		case len(u.anew) > 0:
			r := u.anew[0].(RestoreUndo)
			r.Passengers = u.pull.Passengers
			b.do(r)
		case len(u.merges) == all:
			m := u.merges[0].(Merge)
			m.Passengers = u.pull.Passengers
			b.do(m)
		}
	}
}

// aboutPull says that an action changes, merges or closes a pull request.
func aboutPull(a Action, env string, number int) bool {
	switch a := a.(type) {
	case RestoreUndo:
		return a.Environment == env && a.Pull == number
	case Merge:
		return a.Environment == env && a.Pull == number
	case Close:
		return a.Environment == env && a.Pull == number
	case Replace:
		return a.Environment == env && a.Pull == number
	}
	return false
}

// takeBack joins the reverts of what one pull request brought: one way back for
// all of it, with what speaks against each.
func (b *fold) takeBack(env string) {
	joined := map[int]*OpenRevert{}
	for i := range b.facts {
		e := envNamed(&b.facts[i], env)
		if e == nil || !e.Landed.OK || len(e.Landed.Value.Passengers) == 0 {
			continue
		}
		for _, a := range b.take(i, func(a Action) bool { o, ok := a.(OpenRevert); return ok && o.Environment == env }) {
			o := a.(OpenRevert)
			j := joined[o.Pull]
			if j == nil {
				first := o
				first.Release, first.Ask, first.Evidence = "", 0, nil
				first.Passengers = slices.Clone(e.Landed.Value.Passengers)
				j = &first
				joined[o.Pull] = j
			}
			j.Evidence = append(j.Evidence, o.Evidence...)
			if j.By == "" {
				j.By, j.Reason = o.By, o.Reason
			}
			for k := range j.Passengers {
				if p := &j.Passengers[k]; p.Component == b.facts[i].Unit.Component {
					p.Ask = o.Ask
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(joined)) {
		o := joined[n]
		o.Release = BatchID(o.Passengers)
		for _, p := range o.Passengers {
			b.doomed[p.Component+" "+p.Release] = true
		}
		b.do(*o)
	}
}
