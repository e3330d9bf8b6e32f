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
		p.writeParagraph("Moves **%s** %s into **%s**.", escapeText(componentOf(in), maxName), codeSpan(releaseNameOf(in), maxName),
			escapeText(in.Environment, maxName))
		return
	}
	p.writeParagraph("Moves **%s** into **%s** together: %s.", subjectOf(in), escapeText(in.Environment, maxName), listMembers(in))
	p.writeParagraph("All or nothing: it is merged when every one of them may be, goes on when all are verified, and is taken back as a " +
		"whole.")
}

// writeMoves is the table of what changes, a row a field.
func writeMoves(p *page, in Input) {
	p.writeParagraph("### What moves")
	if len(in.Changes) == 0 {
		p.writeParagraph("See the diff.")
		return
	}
	head := "| field | from | to | where |\n|---|---|---|---|"
	if in.Batch {
		head = "| component | field | from | to | where |\n|---|---|---|---|---|"
	}
	var rows []string
	for _, c := range orderChanges(in) {
		where := c.File
		if c.Line > 0 {
			where = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		row := fmt.Sprintf("| %s | %s | %s | %s |", describeField(c), describeValue(c, c.Old), describeValue(c, c.New),
			codeSpan(where, maxAddress))
		if in.Batch {
			row = "| " + cmp.Or(escapeText(c.Component, maxName), "*shared*") + " " + row
		}
		rows = append(rows, row)
	}
	p.writeFolded(head, rows)
}

// orderChanges are the changes, of a batch in the order of its components; what these
// share comes last.
func orderChanges(in Input) []Change {
	if !in.Batch {
		return in.Changes
	}
	at := func(c Change) int {
		i := slices.IndexFunc(in.Members, func(q Member) bool { return q.Component == c.Component })
		if i < 0 {
			return len(in.Members)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(in.Changes), func(a, b Change) int { return cmp.Compare(at(a), at(b)) })
}

// describeField is a field's address; a whole file has none.
func describeField(c Change) string {
	if c.Path == "" {
		return "*the whole file*"
	}
	return codeSpan(c.Path, maxAddress)
}

// describeValue is one side of a change. A whole file's is its mode and git's identity of
// its content, of which the beginning is enough, and the mode where it changes.
func describeValue(c Change, value string) string {
	if c.Path != "" {
		return codeSpan(value, maxValue)
	}
	mode, id, _ := strings.Cut(value, " ")
	oldMode, _, _ := strings.Cut(c.Old, " ")
	newMode, _, _ := strings.Cut(c.New, " ")
	switch {
	case value == "":
		return "*not there*"
	case c.Old != "" && c.New != "" && oldMode != newMode:
		return codeSpan(mode+" "+wording.Short(id), maxValue)
	}
	return codeSpan(wording.Short(id), maxValue)
}

const (
	openMembers  = 4 // rows of a batch's second table: a reviewer has one screen
	maxEnvColumn = 6
)

// writeMemberHistories says of each component in a row who made its release and how that
// fared where it has been.
func writeMemberHistories(p *page, in Input) {
	envs := historyColumns(in)
	head := "| component | made by |"
	for _, env := range envs {
		head += " " + escapeText(env, maxName) + " |"
	}
	head += "\n|---|---|" + strings.Repeat("---|", len(envs))
	var rows []string
	for i := range in.Members {
		q := &in.Members[i]
		row := "| " + escapeText(q.Component, maxName) + " " + codeSpan(cmp.Or(q.Name, wording.Short(q.Release)), maxName) + " | " +
			describeMemberCommits(in, q) + " |"
		for _, env := range envs {
			health := ""
			if e := q.envIn(env); e != nil {
				_, health = describeStay(e, q.Release)
			}
			row += " " + cmp.Or(health, "never there as far as is known") + " |"
		}
		rows = append(rows, row)
	}
	p.writeParagraph("### Who made them, and where they have been")
	p.writeFoldedAfter(openMembers, head, rows)
}

// describeMemberCommits is who made a component's release, for a table's cell.
func describeMemberCommits(in Input, q *Member) string {
	if q.CommitsErr != "" {
		return "can't be read: " + escapeText(q.CommitsErr, maxReason)
	}
	var parts []string
	for i := range q.Commits {
		parts = append(parts, describeReleaseCommits(in, &q.Commits[i], q.Name))
		if skipped := describeSkipped(in, q, &q.Commits[i]); skipped != "" {
			parts = append(parts, skipped)
		}
	}
	return cmp.Or(strings.Join(parts, ". "), "not known")
}

// historyColumns are the environments that the releases have been in or should have been
// in, in the pipeline's order: of many the last.
func historyColumns(in Input) []string {
	here := environmentOf(in)
	var out []string
	for _, e := range in.component().Envs {
		been := here != nil && slices.Contains(here.Spec.After, e.Name)
		for i := range in.Members {
			if at := in.Members[i].envIn(e.Name); at != nil {
				stay, _ := describeStay(at, in.Members[i].Release)
				been = been || stay != ""
			}
		}
		if been {
			out = append(out, e.Name)
		}
	}
	return out[max(0, len(out)-maxEnvColumn):]
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
			s = fmt.Sprintf("- %s: %s goes back with the others.", escapeText(q.Component, maxName),
				codeSpan(cmp.Or(q.Name, wording.Short(q.Release)), maxName))
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
		p.writeParagraph("What came together goes on together: no release of these is ready for the next environment before all are " +
			"verified here, and `/liftlock revert` takes all of them back.")
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
		out := fmt.Sprintf("**%s:** %d of %s", upperFirst(s), count[s], what)
		if revert > 0 && s == promotion.Degraded {
			out += fmt.Sprintf(". The revert %s of all of them is open", pullRef(revert))
		}
		return out + "."
	}
	return "**Verified:** " + what + "."
}
