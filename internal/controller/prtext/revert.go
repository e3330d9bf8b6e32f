package prtext

import (
	"github.com/liftlock/liftlock/internal/promotion"
)

func revertBody(in Input) string {
	var p page
	if in.Mark != "" {
		p.line("%s", in.Mark)
		p.gap()
	}
	env, unit := text(in.Environment, maxName), text(subject(in), maxName)
	s := "Takes **" + unit + "** in **" + env + "** back from " + code(name(in), maxName)
	if several(in) {
		s = "Takes **" + unit + "** in **" + env + "** back together, " + listed(in)
	} else if to := before(in); to != "" {
		s += " to " + code(to, maxName)
	}
	p.line("%s: undoes %s.", s, ref(in.Of))
	p.gap()
	p.line("### Why")
	p.gap()
	if in.By != "" {
		p.line("%s asked for it.", text(in.By, maxName))
		if in.Reason != "" {
			p.gap()
			p.line("Reason given: %s", text(in.Reason, maxReason))
		}
	} else {
		p.line("%s degraded after %s was merged.", env, ref(in.Of))
	}
	p.gap()
	evidence(&p, in)
	if in.By == "" {
		p.line("### What was ruled out")
		p.gap()
		p.line("- That it was unwell before: every degraded target was well just before %s was merged.", ref(in.Of))
		p.line("- That another commit did it: none has changed what those targets read since.")
		p.line("- That the cluster is in trouble: no target that %s didn't touch degraded there in the same window, or what is degraded here is what %[1]s changed.", ref(in.Of))
		p.gap()
	}
	moves(&p, in)
	p.line("These are exactly the bytes from before %s.", ref(in.Of))
	p.gap()
	reach(&p, in)
	rendered(&p, in)
	p.line("### What it waits for")
	p.gap()
	for _, rule := range rules(in) {
		p.line("- %s", rule)
	}
	p.gap()
	p.line("The gates of %s don't apply: what comes back has passed them before.", env)
	p.gap()
	p.line("### Afterwards")
	p.gap()
	if several(in) {
		p.line("%s are quarantined: none of them comes back to %s nor goes past it until it changes, or somebody who may says %s.", listed(in), env, promoteAgain(in))
	} else {
		p.line("%s is quarantined: it doesn't come back to %s nor go past it until it changes, or somebody who may says %s.", code(name(in), maxName), env, promoteAgain(in))
	}
	if in.By == "" {
		p.line("Is this not %s's doing? Close this pull request: it stays closed until `/liftlock retry`.", ref(in.Of))
	}
	footer(&p, in)
	return p.String()
}

// evidence lists what speaks against the release; a long list is folded.
func evidence(p *page, in Input) {
	if len(in.Evidence) == 0 {
		if in.By == "" {
			p.line("The record of the evidence is gone.")
			p.gap()
		}
		return
	}
	var rows []string
	for _, s := range in.Evidence {
		rows = append(rows, "- "+text(s, maxReason))
	}
	p.folded("", rows)
}

// Reverted is the comment of a promotion that was taken back: by the revert
// in.Of, and what that means for the release.
func Reverted(in Input) string {
	var p page
	p.line("%s", statusMark)
	env := text(in.Environment, maxName)
	p.line("**Reverted:** %s took %s in %s back.", ref(in.Of), code(name(in), maxName), env)
	p.gap()
	p.line("%s (release %s) is quarantined: it doesn't come back to %s nor go past it until it changes. To bring it back all the same, somebody who may says %s on a pull request of ours.",
		code(name(in), maxName), code(promotion.Short(in.Release), maxName), env, promoteAgain(in))
	if in.Of > 0 {
		p.gap()
		p.line("Why, and how the revert is doing: %s.", ref(in.Of))
	}
	return bound(p.String())
}
