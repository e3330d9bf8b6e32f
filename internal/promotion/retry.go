package promotion

import "fmt"

// retry answers /liftlock retry. In this order: it takes over a head that is not
// ours any more, takes back a person's close, or starts a verification again.
func (j *judge) retry(e *Env, st *EnvState) {
	ask := j.ask("retry", e.Name)
	if ask == nil {
		return
	}
	switch {
	case e.Undo != nil && e.Undo.Unsound != "":
		j.do(Close{Environment: e.Name, Pull: e.Undo.Number, Revert: true, Why: "its branch was changed by somebody else; where it is still needed it is opened anew"})
		j.finish(ask, true, fmt.Sprintf("#%d is closed; where it is still needed it is opened anew", e.Undo.Number))
	case e.Open != nil && e.Open.Unsound != "":
		j.takeOver(e, st, ask)
	case j.forgive(e, ask):
	case e.Now.OK && e.Landed.OK && (st.State == Failed || st.State == Degraded):
		j.do(Forget{Environment: e.Name})
		j.roll[e.Name] = rollup{state: Verifying, reason: "the verification starts again"}
		j.finish(ask, true, "the verification starts again")
	default:
		j.finish(ask, false, "there is nothing to retry in "+e.Name+": "+firstNonEmpty(e.Foreign, e.ForeignUndo, "nothing failed and nothing was closed"))
	}
}

// takeOver composes an open promotion anew whose head somebody else changed.
func (j *judge) takeOver(e *Env, st *EnvState, ask *Ask) {
	p := e.Open
	switch {
	case e.Foreign != "":
		j.finish(ask, false, e.Foreign)
		return
	case j.f.Broken != "":
		j.finish(ask, false, "the pipeline file on the default branch is broken: "+j.f.Broken)
		return
	case len(j.f.Problems) > 0:
		j.finish(ask, false, j.f.Problems[0])
		return
	}
	// What is composed is the release that we put there, not what somebody made of it.
	why, release := "", p.Claimed
	if release == "" && Proven(j.f.Envs, e.Spec.After, p.Release) {
		release = p.Release
	}
	if release == "" {
		why = "which release Liftlock put there can't be told"
	} else {
		c, ok := e.Composed[release]
		switch {
		case !ok || c.Tip != e.Tip:
			j.do(Look{What: LookCompose, Environment: e.Name, Release: release})
			return
		case c.Refused != "":
			why = c.Refused
		case c.Empty:
			why = "there is nothing to change"
		}
	}
	if why != "" {
		j.do(Close{Environment: e.Name, Pull: p.Number, Why: "its head can't be composed anew: " + why})
		j.finish(ask, true, fmt.Sprintf("#%d is closed; its head can't be composed anew: %s", p.Number, why))
		return
	}
	j.do(Replace{Environment: e.Name, Pull: p.Number, Head: p.Head, Release: release, Name: j.nameOf(release), Tip: e.Tip, Why: "taken over by /liftlock retry"})
	j.finish(ask, true, "the pull request is composed anew")
	st.Promotion = Opened
}

// forgive takes back what a person closed: the newest since the last merge,
// else the veto that keeps the next release out.
func (j *judge) forgive(e *Env, ask *Ask) bool {
	p := j.forgivable(e)
	if p == nil {
		return false
	}
	j.do(Forgive{Environment: e.Name, Pull: p.Number})
	p.Superseded = true
	j.finish(ask, true, fmt.Sprintf("the closed #%d no longer counts", p.Number))
	return true
}

func (j *judge) forgivable(e *Env) *Past {
	for i := range e.Past {
		p := &e.Past[i]
		if p.Merged && !p.Revert {
			break
		}
		if !p.Merged && !p.Superseded {
			return p
		}
	}
	if e.Source() || !e.Now.OK || !e.Landed.OK {
		return nil
	}
	var sub EnvState
	_, veto := j.pick(e, &sub, nil)
	return veto
}
