package prtext

import (
	"slices"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

func revertBody(in Input) string {
	var p page
	if in.BodyMarker != "" {
		p.writeParagraph("%s", in.BodyMarker)
	}
	if cause := causeOf(in); cause != "" {
		p.writeParagraph("**%s**", linkReason(in, cause))
	}
	env, unit := escapeText(in.Environment, maxName), escapeText(subjectOf(in), maxName)
	s := "Takes **" + unit + "** in **" + env + "** back from " + codeSpan(releaseNameOf(in), maxName)
	if in.Batch {
		s = "Takes **" + unit + "** in **" + env + "** back together, " + listMembers(in)
	} else if to := previousReleaseName(in); to != "" {
		s += " to " + codeSpan(to, maxName)
	}
	s += ": undoes " + pullRef(in.RevertedPull)
	if in.By == "" {
		s += ", after which " + env + " degraded"
	}
	p.writeParagraph("%s.", s)
	writeEvidence(&p, in)
	writeRuledOut(&p, in)
	writeMoves(&p, in)
	p.writeParagraph("These are exactly the bytes from before %s.", pullRef(in.RevertedPull))
	writeReach(&p, in)
	writeRendered(&p, in)
	p.writeParagraph("### What it waits for")
	for _, rule := range mergeRules(in) {
		p.writeLine("- %s", rule)
	}
	p.writeGap()
	p.writeParagraph("The gates of %s don't apply: what comes back has passed them before.", env)
	p.writeParagraph("### Afterwards")
	if in.Batch {
		p.writeLine("%s are quarantined: none of them comes back to %s nor goes past it until it changes, or somebody who may says %s.",
			listMembers(in), env, promoteCommand(in))
	} else {
		p.writeLine("%s is quarantined: it doesn't come back to %s nor go past it until it changes, or somebody who may says %s.",
			codeSpan(releaseNameOf(in), maxName), env, promoteCommand(in))
	}
	if in.By == "" {
		p.writeLine("Is this not %s's doing? Close this pull request: it stays closed until `/liftlock retry`.", pullRef(in.RevertedPull))
	}
	writeFooter(&p, in)
	return p.String()
}

// causeOf is what the body of a revert begins with: who asked for it and why, or what
// broke, as the first line of the evidence says it; empty where the evidence is gone.
func causeOf(in Input) string {
	if in.By != "" {
		if in.Reason != "" {
			return in.By + " asked for it: " + in.Reason
		}
		return in.By + " asked for it"
	}
	if lines := promotion.DescribeAll(in.Evidence); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// openEvidence is how many of its lines are shown before the rest is folded.
const openEvidence = 6

// writeEvidence lists what speaks against the release; a long list is folded.
func writeEvidence(p *page, in Input) {
	lines := promotion.DescribeAll(in.Evidence)
	if len(lines) == 0 {
		if in.By == "" {
			p.writeParagraph("The record of the evidence is gone.")
		}
		return // who asked, and why, leads the body
	}
	if in.By == "" {
		lines = lines[1:] // it leads the body
	}
	p.writeParagraph("### Evidence")
	var rows []string
	for _, s := range lines {
		rows = append(rows, "- "+linkReason(in, s))
	}
	p.writeFoldedAfter(openEvidence, "", rows)
}

// ruledOutPhrase says what a check is about.
func ruledOutPhrase(check string) string {
	switch check {
	case promotion.CheckQuorum:
		return "That it is a few targets' own matter: "
	case promotion.CheckUnhealthyBefore:
		return "That it was unwell before: "
	case promotion.CheckOtherCommit:
		return "That another commit did it: "
	case promotion.CheckSelfRunning:
		return "That it failed by itself: "
	case promotion.CheckIncident:
		return "That the cluster is in trouble: "
	}
	return ""
}

// writeRuledOut lists what else was looked into.
func writeRuledOut(p *page, in Input) {
	var rows []string
	for i := range in.Evidence {
		for _, r := range in.Evidence[i].RuledOut {
			if row := "- " + ruledOutPhrase(r.Check) + escapeText(r.Answer, maxReason) + "."; !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) > 0 {
		p.writeParagraph("### What was ruled out")
		p.writeFolded("", rows)
	}
}

// RevertedComment is the comment of a promotion that was taken back: by the revert
// in.RevertedPull, and what that means for the release.
func RevertedComment(in Input) string {
	p := newComment()
	env := escapeText(in.Environment, maxName)
	p.writeParagraph("**Reverted:** %s took %s in %s back.", pullRef(in.RevertedPull), codeSpan(releaseNameOf(in), maxName), env)
	p.writeLine("%s (release %s) is quarantined: it doesn't come back to %s nor go past it until it changes. To bring it back all the "+
		"same, somebody who may says %s on a pull request of ours.",
		codeSpan(releaseNameOf(in), maxName), codeSpan(wording.Short(in.Release), maxName), env, promoteCommand(in))
	if in.RevertedPull > 0 {
		p.writeGap()
		p.writeLine("Why, and how the revert is doing: %s.", pullRef(in.RevertedPull))
	}
	return truncateBody(p.String())
}
