package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/wording"
)

// Onboarding is what the pull request that proposes a pipeline file is made from.
type Onboarding struct {
	*onboard.Proposal
	Branch string // the tracked one
	Marker string // hidden; by which it is known again
}

// OnboardingTitle is the title of the pull request that proposes a pipeline file, and the subject of
// its commit.
const OnboardingTitle = "Propose a pipeline file for Liftlock"

// modifiedNotice begins the text of a proposal to whose branch somebody has pushed.
const modifiedNotice = "**Somebody has pushed to this branch, so Liftlock leaves it and this text as they are.** Merging and closing " +
	"count as before."

// Body is the body of the pull request.
func (o Onboarding) Body() string {
	var p page
	p.writeParagraph("Liftlock can move releases from environment to environment in this repository. It needs a pipeline file, and this "+
		"pull request proposes one: %s, in `mode: observe`.", codeSpan(o.File, maxAddress))
	p.writeLine("- **Merge it**, and Liftlock says what it would do, and does nothing.")
	p.writeLine("- **Change it** on this branch: from then on Liftlock leaves the branch alone. Until then it keeps the file up to date "+
		"with %s.", codeSpan(o.Branch, maxName))
	p.writeLine("- **Close it**, and that is a no: Liftlock opens no other one. Opened again, it is kept up to date again.")
	p.writeGap()
	o.writeOpen(&p)
	o.writeUnderstood(&p)
	o.writePlan(&p)
	o.writeNext(&p)
	if len(o.Notes) > 0 {
		p.writeParagraph("### To know")
		p.writeFolded("", listItems(o.Notes))
	}
	return truncateBody(p.String()) + "\n" + o.Marker + "\n"
}

// ModifiedBody is a body that says that somebody has pushed to the branch; the same where it says so already.
func ModifiedBody(body string) string {
	if strings.Contains(body, modifiedNotice) {
		return body
	}
	return modifiedNotice + "\n\n" + body
}

// RetiredBody is the body of a proposal that Liftlock closes.
func (o Onboarding) RetiredBody() string {
	var p page
	p.writeParagraph("Closed by Liftlock: %s has a pipeline file by now, and that one counts.", codeSpan(o.Branch, maxName))
	return p.String() + o.Marker + "\n"
}

// CommitMessage is the message of the commit with the file. It depends on nothing, so that the same
// file on the same commit is the same commit.
func (o Onboarding) CommitMessage() string {
	return OnboardingTitle + "\n\nIt is in mode: observe: Liftlock says what it would do, and does nothing.\n\n"
}

// writeOpen says what a person has to say before the file can be used.
func (o Onboarding) writeOpen(p *page) {
	if o.Open == nil {
		return
	}
	p.writeParagraph("### What is open")
	p.writeParagraph("The file is a draft: what is missing is marked TODO in it.")
	p.writeParagraph("%s", escapeText(upperFirst(o.Open.Question), maxLine))
	p.writeFolded("", listItems(o.Open.Options))
	if len(o.Open.Seen) > 0 {
		p.writeParagraph("Seen for it:")
		p.writeFolded("", listItems(o.Open.Seen))
	}
	if o.Open.Other != "" {
		p.writeParagraph("%s.", escapeText(upperFirst(o.Open.Other), maxLine))
	}
}

// upperFirst begins a sentence with a text.
func upperFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func listItems(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "- " + escapeText(line, maxLine)
	}
	return out
}

// writeUnderstood says what was made out, and that the order is a guess.
func (o Onboarding) writeUnderstood(p *page) {
	p.writeParagraph("### What was understood")
	if len(o.Components) == 0 {
		p.writeParagraph("Neither components nor environments could be made out.")
		return
	}
	p.writeLine("- %s: %s", wording.Count(len(o.Components), "component"), codeSpans(o.Components))
	switch {
	case len(o.Steps) > 0:
		p.writeLine("- %s: %s. The order is a guess: it is %s.", wording.Count(len(o.Environments), "environment"), describeOrder(o.Steps),
			escapeText(o.OrderWhy, maxReason))
	default:
		p.writeLine("- %s, in an order that isn't known: %s", wording.Count(len(o.Environments), "environment"), codeSpans(o.Environments))
	}
	for _, c := range o.Carry[:min(len(o.Carry), openRows)] {
		p.writeLine("- a promotion moves %s", codeSpan(c, maxLine))
	}
	p.writeGap()
}

// describeOrder is the environments' order.
func describeOrder(steps [][]string) string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = codeSpans(s)
	}
	return strings.Join(out, " → ")
}

// codeSpans are names as code.
func codeSpans(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = codeSpan(n, maxName)
	}
	return wording.JoinFew(out, openRows)
}

// writePlan says what liftlock plan says with the file.
func (o Onboarding) writePlan(p *page) {
	p.writeParagraph("### What `liftlock plan` says now")
	switch {
	case o.Open != nil && len(o.Promotions)+len(o.Waiting) == 0:
		p.writeParagraph("There is no plan while something is open.")
		return
	case o.PlanErr != "":
		p.writeParagraph("There is no plan: %s", escapeText(o.PlanErr, maxReason))
		return
	case len(o.Promotions) == 0:
		p.writeParagraph("No promotion would open now.")
	default:
		p.writeParagraph("%s would open now. In `mode: observe` none does.", wording.Count(len(o.Promotions), "promotion"))
	}
	var rows []string
	for _, m := range o.Promotions {
		rows = append(rows, "- "+codeSpan(m.Component, maxName)+" to "+codeSpan(m.Environment, maxName)+": "+codeSpan(m.From, maxName)+
			" → "+codeSpan(m.To, maxName)+", in "+codeSpans(m.Files))
	}
	p.writeFolded("", rows)
	rows = nil
	for _, w := range o.Waiting {
		rows = append(rows, "- "+codeSpan(w.Component, maxName)+" in "+codeSpan(w.Environment, maxName)+": "+escapeText(w.Why, maxReason))
	}
	if len(rows) > 0 && len(o.Promotions) == 0 {
		p.writeFolded("", rows)
	} else if len(rows) > 0 {
		p.writeParagraph("<details><summary>Why nothing else would</summary>")
		p.writeFoldedAfter(maxFolded, "", rows)
		p.writeParagraph("</details>")
	}
}

// writeNext says what the next release would lead to.
func (o Onboarding) writeNext(p *page) {
	p.writeParagraph("### What the next release would do")
	switch {
	case len(o.Steps) == 0:
		p.writeParagraph("That follows from what is open.")
		return
	case len(o.Steps) == 1:
		p.writeParagraph("Nothing: no environment is behind another.")
		return
	}
	p.writeParagraph("A release of a component that comes to %s and is healthy there would get a pull request into %s. It would change "+
		"only what a promotion moves, in the files of that environment.", codeSpans(o.Steps[0]), codeSpans(o.Steps[1]))
	if len(o.Steps) > 2 {
		p.writeParagraph("Merged and healthy there, it would go on to %s.", describeOrder(o.Steps[2:]))
	}
	p.writeParagraph("A person merges each of them: gates and `merge: auto` are yours to add. Without the line `mode: observe` Liftlock " +
		"opens them.")
}
