package prtext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// ofMember is the input for one of the components alone.
func (in Input) ofMember(p Member) Input {
	in.Members, in.Batch, in.Release, in.Name = []Member{p}, false, p.Release, p.Name
	return in
}

// component is the facts of what the pull request moves, of several the first: they
// share all that isn't a component's own. Never nil.
func (in Input) component() *promotion.ComponentFacts {
	if len(in.Members) == 0 || in.Members[0].Facts == nil {
		return &promotion.ComponentFacts{}
	}
	return in.Members[0].Facts
}

// subjectOf is what moves, for people: the component, or how many.
func subjectOf(in Input) string {
	if in.Batch {
		return wording.Count(len(in.Members), "component")
	}
	return componentOf(in)
}

// listMembers are the components with their releases, for a sentence.
func listMembers(in Input) string {
	return joinAnd(listSome(in.Members, openRows, func(p Member) string {
		return escapeText(p.Component, maxName) + " " + codeSpan(cmp.Or(p.Name, wording.Short(p.Release)), maxName)
	}))
}

// writeOpening is the first sentence of a promotion's body.
func writeOpening(p *page, in Input) {
	if !in.Batch {
		p.writeParagraph("Moves **%s** %s into **%s**.", escapeText(componentOf(in), maxName), codeSpan(releaseNameOf(in), maxName), escapeText(in.Environment, maxName))
		return
	}
	p.writeParagraph("Moves **%s** into **%s** together: %s.", subjectOf(in), escapeText(in.Environment, maxName), listMembers(in))
	p.writeParagraph("All or nothing: it is merged when every one of them may be, goes on when all are verified, and is taken back as a whole.")
}

// writeMoves is the table of what changes, a row a field; of a batch a table for each
// component.
func writeMoves(p *page, in Input) {
	p.writeParagraph("### What moves")
	if !in.Batch {
		p.writeChanges(in.Changes)
		return
	}
	of := map[string][]Change{}
	for _, c := range in.Changes {
		of[c.Component] = append(of[c.Component], c)
	}
	p.writeMembers(in.Members, func(q Member) {
		p.writeParagraph("**%s**", escapeText(q.Component, maxName))
		p.writeChanges(of[q.Component])
	})
	if shared := of[""]; len(shared) > 0 {
		p.writeParagraph("In files that they share")
		p.writeChanges(shared)
	}
}

func (p *page) writeChanges(changes []Change) {
	if len(changes) == 0 {
		p.writeParagraph("See the diff.")
		return
	}
	var rows []string
	for _, c := range changes {
		where := c.File
		if c.Line > 0 {
			where = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", codeSpan(c.Path, maxAddress), codeSpan(c.Old, maxValue), codeSpan(c.New, maxValue), codeSpan(where, maxAddress)))
	}
	p.writeFolded("| field | from | to | where |\n|---|---|---|---|", rows)
}

// writeMemberHistories says of each component where its release has been.
func writeMemberHistories(p *page, in Input) {
	p.writeParagraph("### Where these releases have been")
	p.writeMembers(in.Members, func(q Member) {
		lines := historyLines(in.ofMember(q))
		if len(lines) == 0 {
			return
		}
		p.writeParagraph("**%s** %s", escapeText(q.Component, maxName), codeSpan(cmp.Or(q.Name, wording.Short(q.Release)), maxName))
		p.writeFolded("", lines)
	})
}

// openParts is how many components' parts are written openly: a reviewer has one
// screen.
const openParts = 4

// writeMembers writes a part for each component, the first ones openly and the rest in a
// fold.
func (p *page) writeMembers(all []Member, write func(Member)) {
	for i, q := range all {
		if i == openParts {
			p.writeParagraph("<details><summary>%s</summary>", wording.Count(len(all)-i, "more component"))
		}
		write(q)
	}
	if len(all) > openParts {
		p.writeParagraph("</details>")
	}
}

// isOfComponent says that a target is of a component that moves.
func isOfComponent(in Input, componentName string) bool {
	return slices.ContainsFunc(in.Members, func(p Member) bool { return p.Component == componentName })
}

// landedBatch is the comment after the merge of several: how each is, and
// what a person can do.
func landedBatch(in Input) string {
	p := newComment()
	p.writeParagraph("%s", landedBatchSummary(in))
	st := stateOf(in)
	if at := formatTime(st.Since); at != "" {
		p.writeParagraph("Merged %s as %s.", at, codeSpan(wording.Short(st.Commit), maxName))
	}
	writeUngated(p, in)
	for _, q := range in.Members {
		one := in.ofMember(q)
		own := stateOf(one)
		if own.LandedPull != in.Number {
			p.writeLine("- %s: %s carries something else by now.", escapeText(q.Component, maxName), escapeText(in.Environment, maxName))
			continue
		}
		s := "- " + escapeText(q.Component, maxName) + ": " + landedSummary(one, own)
		if own.Revert > 0 && own.State != promotion.Degraded {
			s = fmt.Sprintf("- %s: %s goes back with the others.", escapeText(q.Component, maxName), codeSpan(cmp.Or(q.Name, wording.Short(q.Release)), maxName))
		}
		if r := linkReason(in, own.Reason); r != "" {
			s += " " + strings.TrimSuffix(r, ".") + "."
		}
		p.writeLine("%s", s)
	}
	p.writeGap()
	for _, q := range in.Members {
		one := in.ofMember(q)
		own := stateOf(one)
		if own.LandedPull != in.Number || own.State == promotion.Verified || own.State == promotion.Idle {
			continue
		}
		p.writeParagraph("%s:", escapeText(q.Component, maxName))
		writeTargets(p, one, own)
		writeReasons(p, in, "Why it isn't taken back", holdReasons(own))
		writeNext(p, one, own)
	}
	if !in.Revert {
		p.writeParagraph("What came together goes on together: no release of these is ready for the next environment before all are verified here, and `/liftlock revert` takes all of them back.")
	}
	return p.endComment(in)
}

// landedBatchSummary is the one sentence for who reads nothing else: how the worst
// of them is.
func landedBatchSummary(in Input) string {
	order := []string{promotion.Degraded, promotion.Failed, promotion.Mixed, promotion.Unreadable, promotion.Diverged, promotion.Verifying}
	count := map[string]int{}
	revert := 0
	for _, q := range in.Members {
		st := stateOf(in.ofMember(q))
		if st.LandedPull == in.Number {
			count[st.State]++
			revert = max(revert, st.Revert)
		}
	}
	what := fmt.Sprintf("%s in %s", subjectOf(in), escapeText(in.Environment, maxName))
	if in.Revert {
		what += ", back as before"
	}
	for _, s := range order {
		if count[s] == 0 {
			continue
		}
		out := fmt.Sprintf("**%s:** %d of %s", strings.ToUpper(s[:1])+s[1:], count[s], what)
		if revert > 0 && s == promotion.Degraded {
			out += fmt.Sprintf(". The revert %s of all of them is open", pullRef(revert))
		}
		return out + "."
	}
	return "**Verified:** " + what + "."
}
