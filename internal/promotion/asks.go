package promotion

// ask finds a person's command that waits for this environment; the oldest first.
func (j *judge) ask(verb, env string) *Ask {
	return j.firstAsk(func(a *Ask) bool { return a.Verb == verb && a.Environment == env })
}

// unbound is a command that is not about any release yet.
func (j *judge) unbound(verb, env string) *Ask {
	return j.firstAsk(func(a *Ask) bool { return a.Verb == verb && a.Environment == env && a.Release == "" })
}

// bound is a command that is in force for a release.
func (j *judge) bound(verb, env, release string) *Ask {
	return j.firstAsk(func(a *Ask) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release == release
	})
}

// boundElsewhere is a command that is in force for another release than this one.
func (j *judge) boundElsewhere(verb, env, release string) *Ask {
	return j.firstAsk(func(a *Ask) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release != release
	})
}

func (j *judge) firstAsk(is func(*Ask) bool) *Ask {
	for i := range j.f.Asks {
		if a := &j.f.Asks[i]; !j.asked[a.ID] && is(a) {
			return a
		}
	}
	return nil
}

func (j *judge) finish(a *Ask, done bool, outcome string) {
	j.asked[a.ID] = true
	j.do(FinishAsk{Environment: a.Environment, ID: a.ID, Done: done, Outcome: outcome})
}

// bind ties a command to a release, for the rest of this decision too.
func (j *judge) bind(a *Ask, release string) {
	j.do(Bind{Environment: a.Environment, ID: a.ID, Release: release})
	a.Release = release
}

// leftoverAsks answers commands that nothing else does: for environments that
// the pipeline doesn't have, or into which nothing is promoted.
func (j *judge) leftoverAsks() {
	for i := range j.f.Asks {
		a := &j.f.Asks[i]
		if j.asked[a.ID] {
			continue
		}
		e := j.env(a.Environment)
		switch {
		case e == nil:
			j.finish(a, false, "this component has no environment "+a.Environment)
		case a.Verb != "promote" && a.Verb != "revert" && a.Verb != "retry":
			j.finish(a, false, "there is no command "+a.Verb)
		case e.Source() && a.Verb != "retry":
			j.finish(a, false, a.Environment+" is a source environment: releases arrive there by commits, not by promotions")
		}
	}
}
