package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// joinOpenReverts joins what is done to the open reverts: composed anew or closed when one
// component says so, merged when all do. One that can't take all of them back any more takes
// none back, and would keep their next releases out for as long as it is open.
func (b *batchPlanner) joinOpenReverts(env string) {
	type open struct {
		pull                       *Pull
		components, overtaken      []string
		recompose, merges, closing []PullAction
	}
	byNumber := map[int]*open{}
	for i := range b.facts.Components {
		f := &b.facts.Components[i]
		e := f.findEnv(env)
		if e == nil || e.Revert == nil {
			continue
		}
		u := byNumber[e.Revert.Number]
		if u == nil {
			u = &open{pull: e.Revert}
			byNumber[e.Revert.Number] = u
		}
		u.components = append(u.components, f.Unit.Component)
		for _, a := range b.takeIntents(i, env, func(a PullAction) bool { return isAbout(a, u.pull) }) {
			switch a.(type) {
			case RecomposeRevert:
				u.recompose = append(u.recompose, a)
			case Merge:
				u.merges = append(u.merges, a)
			case Close:
				u.closing = append(u.closing, a)
				u.overtaken = append(u.overtaken, f.Unit.Component)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		u := byNumber[n]
		switch all := len(u.components); {
		case len(u.closing) == all, len(u.closing) > 0 && u.pull.HeadState == HeadModified:
			b.addAction(u.closing[0])
		case len(u.closing) > 0:
			c := u.closing[0].(Close)
			c.Why = fmt.Sprintf("it takes several back at once, and of %s it no longer can: %s", strings.Join(u.overtaken, ", "), c.Why)
			b.addAction(c)
		case len(u.recompose) > 0:
			b.addAction(u.recompose[0])
		case len(u.merges) == all:
			b.addAction(u.merges[0])
		}
	}
}

// joinNewReverts joins the reverts of what one pull request brought: one for all of
// it, with what speaks against each.
func (b *batchPlanner) joinNewReverts(env string) {
	joined := map[int]*OpenRevert{}
	for i := range b.facts.Components {
		for _, a := range b.takeIntents(i, env, func(a PullAction) bool { _, opens := a.(OpenRevert); return opens }) {
			o := a.(OpenRevert)
			all := joined[o.Pull]
			if all == nil {
				joined[o.Pull] = &o
				continue
			}
			all.Evidence = append(all.Evidence, o.Evidence...)
			if all.By == "" {
				all.By, all.Reason = o.By, o.Reason
			}
			for k := range all.Members {
				p, _ := FindMember(o.Members, all.Members[k].Component)
				all.Members[k].CommandID = cmp.Or(all.Members[k].CommandID, p.CommandID)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(joined)) {
		for _, p := range joined[n].Members {
			b.reverting[p.Component+" "+p.Release] = true
		}
		b.addAction(*joined[n])
	}
}
