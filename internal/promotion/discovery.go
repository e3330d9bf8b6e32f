package promotion

import (
	"fmt"
	"slices"
)

// KindDiscovery is the kind of a commit that brought new tags or versions into a source environment.
const KindDiscovery = "discovery"

// AuditDiscover is the verb, in the audit trail, of a commit that brought something in by itself.
const AuditDiscover = "discover"

// WhyKeptOut says why a release isn't brought into a source environment by itself; empty: it may be. A hold keeps
// everything out, and what was reverted or refused anywhere in the pipeline stays out until somebody brings it.
func WhyKeptOut(f *ComponentFacts, environment, release string) string {
	ev := &evaluator{facts: f, spec: &f.Pipeline.Spec}
	source := ev.facts.findEnv(environment)
	switch {
	case source == nil:
		return fmt.Sprintf("there is no environment %s", environment)
	case !f.Holds.OK:
		return "the holds can't be read: " + f.Holds.Err
	}
	if holds := ev.listHolds(source); len(holds) > 0 {
		return holds[0]
	}
	for i := range f.Envs {
		e := &f.Envs[i]
		isBehind := e.Name == environment || slices.ContainsFunc(ev.listUpstream(e), func(u *Env) bool { return u.Name == environment })
		if !isBehind {
			continue
		}
		if why, _ := ev.quarantineReason(e, release); why != "" {
			return "it " + why
		}
		if v := findVeto(e, release); v != nil && v.Release != "" {
			return fmt.Sprintf("#%d, which would have brought it into %s, was closed by a person", v.Number, e.Name)
		}
	}
	return ""
}
