package promotion

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// batchPlanner is one run of DecideBatch.
type batchPlanner struct {
	facts        []Facts
	compositions map[string]map[string]BatchComposition
	out          BatchDecision
	reverting    map[string]bool // component and release that this decision takes back
}

func (b *batchPlanner) addAction(a Action) { b.out.Actions = append(b.out.Actions, a) }

func (b *batchPlanner) recheckAt(t time.Time) {
	if !t.IsZero() && (b.out.Next.IsZero() || t.Before(b.out.Next)) {
		b.out.Next = t
	}
}

// takeActions removes the actions of a component that are about a pull request of
// several, and gives them.
func (b *batchPlanner) takeActions(i int, is func(Action) bool) []Action {
	d := &b.out.Components[i]
	var removed, kept []Action
	for _, a := range d.Actions {
		if is(a) {
			removed = append(removed, a)
		} else {
			kept = append(kept, a)
		}
	}
	d.Actions = kept
	return removed
}

// addReason adds a reason to what is said of a component in an environment.
func (b *batchPlanner) addReason(i int, env, code, text string) {
	st := b.out.Components[i].Env(env)
	if st != nil && !slices.ContainsFunc(st.Why, func(w Reason) bool { return w.Code == code && w.Text == text }) {
		st.addReason(code, text)
	}
}

// joinOpenReverts joins what is done to the open reverts of several: composed anew when
// one of them says so, merged or closed when all do.
func (b *batchPlanner) joinOpenReverts(env string) {
	type open struct {
		pull                        *Pull
		members                     []int
		recompose, merges, closings []Action
	}
	byNumber := map[int]*open{}
	for i := range b.facts {
		e := findEnv(&b.facts[i], env)
		if e == nil || e.Revert == nil || len(e.Revert.Members) == 0 {
			continue
		}
		u := byNumber[e.Revert.Number]
		if u == nil {
			u = &open{pull: e.Revert}
			byNumber[e.Revert.Number] = u
		}
		u.members = append(u.members, i)
		for _, a := range b.takeActions(i, func(a Action) bool { return isAboutPull(a, env, u.pull.Number) }) {
			switch a.(type) {
			case RecomposeRevert:
				u.recompose = append(u.recompose, a)
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
		case len(u.closings) == all, len(u.closings) > 0 && u.pull.HeadModified != "":
			c := u.closings[0].(Close)
			c.Members = u.pull.Members
			b.addAction(c)
		case len(u.closings) > 0:
			for _, i := range u.members {
				b.addReason(i, env, "hold", fmt.Sprintf("the revert #%d takes several back at once, and of one of them it no longer can: %s; a person has to decide", n, u.closings[0].(Close).Why))
			}
		case len(u.recompose) > 0:
			r := u.recompose[0].(RecomposeRevert)
			r.Members = u.pull.Members
			b.addAction(r)
		case len(u.merges) == all:
			m := u.merges[0].(Merge)
			m.Members = u.pull.Members
			b.addAction(m)
		}
	}
}

// isAboutPull says that an action changes, merges or closes a pull request.
func isAboutPull(a Action, env string, number int) bool {
	switch a := a.(type) {
	case RecomposeRevert:
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

// openRevert joins the reverts of what one pull request brought: one way back for
// all of it, with what speaks against each.
func (b *batchPlanner) joinNewReverts(env string) {
	joined := map[int]*OpenRevert{}
	for i := range b.facts {
		e := findEnv(&b.facts[i], env)
		if e == nil || !e.Landed.OK || len(e.Landed.Value.Members) == 0 {
			continue
		}
		for _, a := range b.takeActions(i, func(a Action) bool { o, ok := a.(OpenRevert); return ok && o.Environment == env }) {
			o := a.(OpenRevert)
			j := joined[o.Pull]
			if j == nil {
				first := o
				first.Release, first.CommandID, first.Evidence = "", 0, nil
				first.Members = slices.Clone(e.Landed.Value.Members)
				j = &first
				joined[o.Pull] = j
			}
			j.Evidence = append(j.Evidence, o.Evidence...)
			if j.By == "" {
				j.By, j.Reason = o.By, o.Reason
			}
			for k := range j.Members {
				if p := &j.Members[k]; p.Component == b.facts[i].Unit.Component {
					p.CommandID = o.CommandID
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(joined)) {
		o := joined[n]
		o.Release = BatchID(o.Members)
		for _, p := range o.Members {
			b.reverting[p.Component+" "+p.Release] = true
		}
		b.addAction(*o)
	}
}
