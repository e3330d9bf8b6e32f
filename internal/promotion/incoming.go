package promotion

import (
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// incoming judges what wants to come into an environment: the open promotion,
// if there is one, and the newest release that may move.
func (j *judge) incoming(e *Env, st *EnvState) {
	forced := j.unbound("promote", e.Name)
	if e.Mixed != "" || !e.Now.OK || !e.Landed.OK {
		if forced != nil {
			j.finish(forced, false, e.Name+" can't be promoted to: "+st.Reason)
		}
		if e.Open != nil {
			st.Promotion = Held
			st.why("unreadable", st.Reason)
		}
		return
	}
	if e.Foreign != "" {
		if e.Open != nil {
			st.Promotion = Held
		}
		st.why("foreign", e.Foreign)
		if forced != nil {
			j.finish(forced, false, e.Foreign)
		}
		return
	}
	if e.Stray != nil {
		j.stray(e, st)
		return
	}
	if j.overtaken(e) {
		forced = j.unbound("promote", e.Name)
	}
	if e.Open != nil {
		j.open(e, st)
		return
	}
	if a := j.boundElsewhere("promote", e.Name, e.Now.Value.ID); a != nil {
		j.finish(a, false, "its pull request is no longer open")
	}
	if a := j.bound("promote", e.Name, e.Now.Value.ID); a != nil {
		j.finish(a, true, e.Name+" carries it")
	}
	if st.State == Diverged && forced == nil {
		st.why("diverged", st.Reason)
		return
	}
	c, _ := j.pick(e, st, forced)
	if c == nil {
		if forced != nil && !j.stillVerifying(e) {
			why := "there is nothing to promote to " + e.Name
			if len(st.Why) > 0 {
				why += ": " + st.Why[len(st.Why)-1].Text
			}
			j.finish(forced, false, why)
		}
		return
	}
	st.Promotion, st.Candidate, st.Coming, st.ReadySince = Waiting, c.Release, c.Name, c.Since
	if !j.mayOpen(e, st, forced) {
		return
	}
	if !j.composed(e, st, c.Release, c.Name, forced) {
		return
	}
	open := Open{Environment: e.Name, Release: c.Release, Name: c.Name, Tip: e.Tip}
	if forced != nil {
		open.Ask = forced.ID
		j.asked[forced.ID] = true
	}
	j.do(open)
}

// overtaken answers the promotes that were given before a person changed e by
// hand: only one that was given since takes that over. Both times are ours.
func (j *judge) overtaken(e *Env) bool {
	l := e.Landed.Value
	if l.By != ByPerson {
		return false
	}
	since, any := l.At, false
	if a := e.current(); a != nil {
		since = a.At
	}
	for {
		a := j.firstAsk(func(a *Ask) bool { return a.Verb == "promote" && a.Environment == e.Name && a.At.Before(since) })
		if a == nil {
			return any
		}
		j.finish(a, false, fmt.Sprintf("%s changed %s by hand since (%s); /liftlock promote %s again takes that over", orSomebody(l.Who), e.Name, Short(l.Commit), e.Name))
		any = true
	}
}

// stillVerifying says whether an `after` environment may yet verify what it carries.
func (j *judge) stillVerifying(e *Env) bool {
	for _, name := range e.Spec.After {
		u := j.env(name)
		if u != nil && u.Now.OK && e.Now.OK && u.Now.Value.ID != e.Now.Value.ID && j.roll[name].state == Verifying && len(u.Targets) > 0 {
			return true
		}
	}
	return false
}

// placeAgain is when a unit that waits for a place looks again: nobody tells it
// that another unit's pull request was closed. It costs no call to the forge.
const placeAgain = 5 * time.Minute

// underRevert says that what e carries is being taken back; "" when it isn't.
func (j *judge) underRevert(e *Env) string {
	switch {
	case e.Undo != nil:
		return fmt.Sprintf("the revert #%d is open", e.Undo.Number)
	case j.reverting[e.Name] != "":
		return "a revert is being opened"
	}
	return ""
}

// mayOpen says whether a pull request may be opened now, else why not.
func (j *judge) mayOpen(e *Env, st *EnvState, forced *Ask) bool {
	n := len(st.Why)
	if j.f.Broken != "" {
		st.why("pipeline-file", "the pipeline file on the default branch is broken: "+j.f.Broken)
	}
	for _, p := range j.f.Problems {
		st.why("targets", p)
	}
	for _, h := range j.holdsOn(e) {
		st.Promotion = Held
		st.why("hold", h)
	}
	if why := closedTo(e, forced); why != "" {
		st.why("together", why)
	}
	if why := j.underRevert(e); why != "" {
		st.why("reverting", why)
	}
	if e.Spec.Open == pipeline.Manual && forced == nil {
		st.why("manual", fmt.Sprintf("open: manual; /liftlock promote %s opens it", e.Name))
	}
	limit := j.spec.Limits.OpenPerEnvironment
	if limit > 0 && len(st.Why) == n {
		open, ahead := j.f.Limits.OpenElsewhere[e.Name], j.f.Limits.Ahead[e.Name]
		if open+ahead >= limit {
			j.at(j.f.Now.Add(placeAgain))
			st.why("limit", fmt.Sprintf("%d of %d pull requests are open in %s (limits.openPerEnvironment), %d wait ahead of this one", open, limit, e.Name, ahead))
		}
	}
	return len(st.Why) == n
}

// composed says whether the edit is known and can be made on the current tip;
// it asks for it where it isn't known.
func (j *judge) composed(e *Env, st *EnvState, release, name string, forced *Ask) bool {
	c, ok := e.Composed[release]
	if !ok || c.Tip != e.Tip {
		j.do(Look{What: LookCompose, Environment: e.Name, Release: release})
		return false
	}
	if c.Refused != "" {
		st.why("refused", c.Refused)
		if forced != nil {
			j.finish(forced, false, c.Refused)
		}
		return false
	}
	if c.Empty {
		st.Promotion = Idle
		st.why("no-diff", "the edit would change nothing")
		if forced != nil {
			j.finish(forced, false, "there is nothing to change")
		}
		return false
	}
	return true
}

// open judges an open promotion: still right, to be replaced, or to be merged.
func (j *judge) open(e *Env, st *EnvState) {
	p := e.Open
	st.Promotion, st.Candidate, st.Coming = Opened, p.Release, p.Name
	if p.Unsound != "" {
		st.Promotion = Held
		st.why("foreign", p.Unsound)
		return
	}
	if a := j.boundElsewhere("promote", e.Name, p.Release); a != nil {
		j.finish(a, e.Now.Value.ID == a.Release, "another release took its place")
	}
	mine, forced := j.bound("promote", e.Name, p.Release), j.unbound("promote", e.Name)
	if p.Release == e.Now.Value.ID {
		j.do(Close{Environment: e.Name, Pull: p.Number, Why: fmt.Sprintf("%s already carries %s", e.Name, p.Name)})
		if mine != nil {
			j.finish(mine, true, e.Name+" already carries it")
		}
		return
	}
	why := j.barredUpstream(e, p.Release)
	if why == "" && mine == nil && forced == nil {
		why, _ = j.quarantined(e, p.Release)
	}
	if why != "" {
		j.do(Close{Environment: e.Name, Pull: p.Number, Why: fmt.Sprintf("%s %s", p.Name, why)})
		return
	}
	if why := j.leaves(e); why != "" {
		j.do(Close{Environment: e.Name, Pull: p.Number, Why: why})
		st.Promotion = Held
		st.why("hold", why)
		return
	}
	if forced != nil && !j.asksForNewer(e, forced) {
		j.bind(forced, p.Release)
		mine, forced = forced, nil
	}
	if j.replace(e, st, mine, forced) {
		return
	}
	st.Gates = j.gates(e, p, false)
	if p.Held || len(j.holdsOn(e)) > 0 || st.State == Diverged && mine == nil {
		st.Promotion = Held
	}
	if !allPass(st.Gates) {
		return
	}
	if e.Spec.Merge == pipeline.Manual {
		st.why("manual", "every gate passes; merge: manual, so a person merges it")
		return
	}
	j.do(Merge{Environment: e.Name, Pull: p.Number, Head: p.Head, Tip: e.Tip})
}

// asksForNewer says whether a promote that was given while a pull request is open
// means another release than that one's: there is a newer one, and nobody has
// put the open one on hold.
func (j *judge) asksForNewer(e *Env, forced *Ask) bool {
	if e.Open.Held || len(j.holdsOn(e)) > 0 {
		return false
	}
	var sub EnvState
	c, _ := j.pick(e, &sub, forced)
	return c != nil && c.Release != e.Open.Release && c.Rank > j.rank(e, e.Open.Release)
}

// replace composes the open promotion anew where it must be: a newer release is
// there and may take its place, or its files moved on the branch. mine is the
// command by which the open one came, forced one that asks for a newer.
func (j *judge) replace(e *Env, st *EnvState, mine, forced *Ask) bool {
	p := e.Open
	release, name, why := p.Release, p.Name, ""
	var sub EnvState
	if c, _ := j.pick(e, &sub, forced); c != nil && c.Release != p.Release && c.Rank > j.rank(e, p.Release) {
		keeps := j.keepsPlace(e)
		switch {
		case forced != nil:
			release, name, why = c.Release, c.Name, fmt.Sprintf("%s asked for %s", orSomebody(forced.By), c.Name)
		case keeps != "":
			st.why("newer-waits", fmt.Sprintf("%s is newer and waits its turn behind this one: %s", c.Name, keeps))
		default:
			release, name, why = c.Release, c.Name, fmt.Sprintf("%s is newer", c.Name)
		}
	}
	if why == "" && p.Stale {
		why = "the files it edits changed on the tracked branch"
	}
	if why == "" || j.f.Broken != "" || len(j.f.Problems) > 0 {
		return false
	}
	if st.State == Diverged && mine == nil && forced == nil {
		return false
	}
	if !j.composed(e, st, release, name, forced) {
		if c, ok := e.Composed[release]; ok && c.Tip == e.Tip {
			return false // refused or nothing to change: said in st; gates will show it stale
		}
		return true
	}
	rep := Replace{Environment: e.Name, Pull: p.Number, Head: p.Head, Release: release, Name: name, Tip: e.Tip, Why: why}
	if mine != nil && release != p.Release {
		j.finish(mine, false, "a newer release took its place")
	}
	if forced != nil {
		rep.Ask = forced.ID
		j.asked[forced.ID] = true
	}
	j.do(rep)
	return true
}

// keepsPlace says why an open promotion isn't replaced by a newer release of its
// own accord; "" when it is.
func (j *judge) keepsPlace(e *Env) string {
	switch {
	case approved(e.Open):
		return "it is approved"
	case e.Open.Held || len(j.holdsOn(e)) > 0:
		return "it is on hold"
	case e.Spec.Open == pipeline.Manual:
		return fmt.Sprintf("open: manual; /liftlock promote %s brings the newer in", e.Name)
	}
	return ""
}

// approved says whether anybody's approval counts for the pull request as it is.
func approved(p *Pull) bool {
	for _, a := range p.Review.Approvals {
		if a.Current && a.MayWrite {
			return true
		}
	}
	return false
}

// holdsOn lists the holds that cover an environment, for people.
func (j *judge) holdsOn(e *Env) []string {
	var out []string
	for _, h := range j.f.Holds {
		if h.Scope == "environment" && h.Environment != e.Name {
			continue
		}
		s := fmt.Sprintf("%s is on hold by %s since %s", holdWhat(h, j.f.Unit.Component), orSomebody(h.By), h.At.UTC().Format(time.RFC3339))
		if h.Reason != "" {
			s += ": " + h.Reason
		}
		out = append(out, s+"; /liftlock unhold "+h.Scope+" lifts it")
	}
	return out
}

func holdWhat(h Hold, component string) string {
	switch h.Scope {
	case "environment":
		return "environment " + h.Environment
	case "component":
		return "component " + component
	}
	return "the pipeline"
}
