package prtext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

func revertBody(in Input) string {
	var p page
	if in.BodyMarker != "" {
		p.writeParagraph("%s", in.BodyMarker)
	}
	if call := revertCall(in); call != "" {
		p.writeParagraph("**%s**", linkReason(in, call))
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
	writeMergeRules(&p, in)
	p.writeParagraph("The gates of %s don't apply: what comes back has passed them before.", env)
	writeEvidence(&p, in)
	writeMoves(&p, in)
	p.writeParagraph("These are exactly the bytes from before %s.", pullRef(in.RevertedPull))
	writeReach(&p, in)
	writeRendered(&p, in)
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

// revertCall begins the body of a revert: who asked for it and why, or since when the environment is
// down and what this brings back. It is empty where neither is known.
func revertCall(in Input) string {
	if in.By != "" {
		if in.Reason != "" {
			return in.By + " asked for it: " + in.Reason
		}
		return in.By + " asked for it"
	}
	if len(promotion.DescribeAll(in.Evidence)) == 0 {
		return ""
	}
	s := in.Environment + " is down"
	if first, _ := firstDegraded(in); first != nil && !first.Since.IsZero() {
		s += " since " + first.Since.UTC().Format("15:04 UTC")
	}
	who := "Merge this"
	if !needsPerson(in) {
		who = "Liftlock merges this"
	}
	back := "to take " + releaseNameOf(in) + " back"
	if in.Batch {
		back = "to take it back as a whole"
	} else if to := previousReleaseName(in); to != "" {
		back = "to bring " + to + " back"
	}
	return s + ". " + who + " " + back + "."
}

// firstDegraded is the target that was degraded first, with how many are; nil where the evidence names
// none.
func firstDegraded(in Input) (first *promotion.TargetEvidence, all int) {
	for i := range in.Evidence {
		e := &in.Evidence[i]
		all += len(e.Targets) + e.MoreTargets
		for k := range e.Targets {
			if t := &e.Targets[k]; first == nil || !t.Since.IsZero() && t.Since.Before(first.Since) {
				first = t
			}
		}
	}
	return first, all
}

const (
	// openEvidence is how many lines of the evidence are shown before the rest is folded.
	openEvidence = 6
	// openPods is how many of what the unhealthy resources brought forth are among them.
	openPods = 2
)

// writeEvidence shows what speaks against the release in a few lines: the cause, when it began, the
// pods, and what was ruled out. All else is folded.
func writeEvidence(p *page, in Input) {
	all := promotion.DescribeAll(in.Evidence)
	if len(all) == 0 {
		if in.By == "" {
			p.writeParagraph("The record of the evidence is gone.")
		}
		return // who asked, and why, leads the body
	}
	p.writeParagraph("### Evidence")
	lines := []string{"- **Cause:** " + linkReason(in, all[0])}
	if first, n := firstDegraded(in); first != nil && !first.Since.IsZero() {
		s := fmt.Sprintf("- **First bad:** %s, %s", formatTime(first.Since), escapeText(first.Target, maxName))
		if first.Cluster != "" {
			s += " on " + escapeText(first.Cluster, maxName)
		}
		if n > 1 {
			s += fmt.Sprintf("; %d are degraded", n)
		}
		lines = append(lines, s)
	}
	lines = append(lines, describePods(in)...)
	lines = append(lines, ruledOut(in)...)
	shown := lines[:min(len(lines), openEvidence)]
	p.writeBlock("", shown)
	rest := lines[len(shown):]
	for _, s := range all[1:] {
		rest = append(rest, "- "+linkReason(in, s))
	}
	if len(rest) == 0 {
		return
	}
	p.writeParagraph("<details><summary>%s more</summary>", wording.Count(len(rest), "line"))
	p.writeBlock("", rest[:min(len(rest), maxFolded)])
	if cut := len(rest) - maxFolded; cut > 0 {
		p.writeParagraph("And %d that don't fit here.", cut)
	}
	p.writeParagraph("</details>")
}

// describePods says how what the unhealthy resources brought forth fares, the most telling first.
func describePods(in Input) []string {
	var out []string
	for i := range in.Evidence {
		for k := range in.Evidence[i].Targets {
			for _, r := range in.Evidence[i].Targets[k].Resources {
				for _, c := range r.Children {
					why := cmp.Or(strings.TrimSuffix(c.Reason+": "+c.Message, ": "), c.Health)
					row := "- **" + escapeText(c.Kind, maxName) + "** " + escapeText(c.Name, maxName) + ": " +
						linkReason(in, strings.TrimPrefix(why, ": "))
					if len(out) < openPods && !slices.Contains(out, row) {
						out = append(out, row)
					}
				}
			}
		}
	}
	return out
}

// ruledOutPhrase says what a check is about.
func ruledOutPhrase(check string) string {
	switch check {
	case promotion.CheckQuorum:
		return "a few targets' own matter"
	case promotion.CheckUnhealthyBefore:
		return "unwell before"
	case promotion.CheckOtherCommit:
		return "another commit"
	case promotion.CheckSelfRunning:
		return "failed by itself"
	case promotion.CheckIncident:
		return "the cluster in trouble"
	case promotion.CheckImagePull:
		return "the registry away"
	}
	return ""
}

// ruledOut lists what else was looked into.
func ruledOut(in Input) []string {
	var rows []string
	for i := range in.Evidence {
		for _, r := range in.Evidence[i].RuledOut {
			row := "- **Ruled out**"
			if about := ruledOutPhrase(r.Check); about != "" {
				row += ", " + about
			}
			if row += ": " + linkReason(in, r.Answer) + "."; !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	return rows
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
