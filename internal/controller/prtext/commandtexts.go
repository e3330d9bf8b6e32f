package prtext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// HelpText answers /liftlock help; bare: the pipeline takes commands without
// /liftlock too. The text is for Answer, and readable as it is.
func HelpText(bare bool) string {
	var p page
	p.writeParagraph("Liftlock takes these commands, each on a line of its own:")
	for _, h := range command.ListHelp() {
		p.writeLine("- `/liftlock %s`: %s", h.Usage, h.Text)
	}
	p.writeGap()
	p.writeLine("Readers may ask (`help`, `status`, `why`, `diff`); who may write may `hold` and `retry`; `unhold`, `promote` and " +
		"`revert` also take an approver where the environment has an approvals gate, but whoever set a hold may lift it; `skip` takes a " +
		"second person whom the pipeline's `breakGlass` names.")
	p.writeLine("Only new comments count: no edits, quotes or code blocks.")
	if bare {
		p.writeLine("In this pipeline the word `/liftlock` may be left out: `/promote`.")
	}
	return p.String()
}

// UserHelpText answers /liftlock help on a pull request that isn't Liftlock's.
func UserHelpText() string {
	var p page
	p.writeParagraph("This pull request is none of Liftlock's. These commands are answered here, each on a line of its own:")
	for _, h := range command.ListUserHelp() {
		p.writeLine("- `/liftlock %s`: %s", h.Usage, h.Text)
	}
	p.writeGap()
	p.writeLine("What is about a promotion is said in the promotion's pull request, the console or the command line.")
	return p.String()
}

// StatusText answers /liftlock status: a line an environment.
func StatusText(envs []promotion.EnvState) string {
	if len(envs) == 0 {
		return "This component has no environments."
	}
	var p page
	for i := range envs {
		p.writeLine("- %s", statusLine(&envs[i]))
	}
	return p.String()
}

func statusLine(st *promotion.EnvState) string {
	s := quoteName(st.Environment) + ": "
	if st.Release != "" || st.Name != "" {
		s += quoteName(promotion.Release{ID: st.Release, Name: st.Name}.String()) + " "
	}
	s += replyText(st.State)
	switch {
	case st.State == promotion.Verified && !st.VerifiedAt.IsZero():
		s += " since " + formatTime(st.VerifiedAt)
	case st.Reason != "":
		s += ": " + replyText(st.Reason)
	}
	if st.Revert > 0 {
		s += fmt.Sprintf("; the revert #%d is open%s", st.Revert, headlinePhrase(st, true))
	}
	switch {
	case st.Pull > 0:
		s += fmt.Sprintf("; #%d brings %s%s", st.Pull, quoteName(st.CandidateName), headlinePhrase(st, false))
	case st.CandidateName != "" && st.Candidate != st.Release:
		s += "; " + quoteName(st.CandidateName) + " would come: " + replyText(st.Promotion)
	}
	return s
}

// headlinePhrase is where a pull request stands, behind its name; empty where that isn't known.
func headlinePhrase(st *promotion.EnvState, revert bool) string {
	text := st.JudgePull(revert).String()
	if text == "" && !revert && st.Promotion == promotion.Held {
		return ", held"
	}
	if text == "" {
		return ""
	}
	return ": " + replyText(text)
}

// WhyText answers /liftlock why about one environment, or, with an empty name,
// about all.
func WhyText(envs []promotion.EnvState, environment string) string {
	var p page
	var names []string
	found := false
	for i := range envs {
		st := &envs[i]
		names = append(names, quoteName(st.Environment))
		if environment != "" && st.Environment != environment {
			continue
		}
		if found {
			p.writeGap()
		}
		found = true
		writeWhy(&p, st)
	}
	switch {
	case len(envs) == 0:
		return "This component has no environments."
	case !found:
		return fmt.Sprintf("This component has no environment %s; it has %s.", quoteName(environment), strings.Join(names, ", "))
	}
	return p.String()
}

func writeWhy(p *page, st *promotion.EnvState) {
	p.writeParagraph("%s.", strings.TrimSuffix(statusLine(st), "."))
	for i, n := range slices.Sorted(maps.Keys(st.Targets)) {
		if i == openRows {
			p.writeLine("- and %s", wording.Count(len(st.Targets)-i, "more target"))
			break
		}
		t := st.Targets[n]
		s := quoteName(n) + " " + replyText(t.State)
		if at := formatTime(t.Since); at != "" {
			s += " since " + at
		}
		if t.Reason != "" {
			s += ": " + replyText(t.Reason)
		}
		p.writeLine("- %s", s)
	}
	writeGateLines(p, "the promotion", st.Gates)
	writeGateLines(p, "the revert", st.RevertGates)
	for i, w := range st.Why {
		if i == maxRows {
			break
		}
		s := replyText(w.Text)
		if w.Who != "" {
			s += " (" + replyText(w.Who) + ")"
		}
		if at := formatTime(w.When); at != "" {
			s += ", at " + at
		}
		p.writeLine("- %s", s)
	}
	if len(st.Gates)+len(st.RevertGates)+len(st.Why) == 0 {
		p.writeLine("- nothing waits: %s", whyNothingWaits(st))
	}
}

func whyNothingWaits(st *promotion.EnvState) string {
	switch {
	case st.Pull > 0:
		return fmt.Sprintf("#%d is being worked on", st.Pull)
	case st.Promotion == promotion.Waiting:
		return "its pull request is about to be opened"
	case st.State == promotion.Verifying:
		return "it goes on when every target is synced and healthy"
	}
	return "no newer release was verified before it"
}

// writeGateLines are the gates of an open pull request; those that pass in one line.
func writeGateLines(p *page, of string, gates []policies.Result) {
	var pass []string
	for i, g := range gates {
		if i == maxRows {
			p.writeLine("- and %d more gates", len(gates)-i)
			break
		}
		if g.Outcome == policies.Pass {
			name := replyText(string(g.Gate))
			if g.SkippedBy != "" {
				name += " (skipped by " + replyText(g.SkippedBy) + ")"
			}
			pass = append(pass, name)
			continue
		}
		s := fmt.Sprintf("%s %s on %s: %s", of, outcomeVerb(g.Outcome), replyText(string(g.Gate)), replyText(g.Reason))
		if len(g.Who) > 0 {
			s += " (" + replyText(strings.Join(g.Who, ", ")) + ")"
		}
		if at := formatTime(g.Until); at != "" {
			s += ", at " + at
		}
		p.writeLine("- %s", s)
	}
	if len(pass) > 0 {
		p.writeLine("- passed for %s: %s", of, strings.Join(pass, ", "))
	}
}

func outcomeVerb(o policies.Outcome) string {
	if o == policies.Fail {
		return "fails"
	}
	return "waits"
}

// replyText is an outside text inside an answer, where a backtick would be markup.
func replyText(s string) string { return strings.ReplaceAll(cleanLine(s, maxReason), "`", "'") }

// quoteName is an outside name as the answers' code.
func quoteName(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return "`" + strings.ReplaceAll(cleanLine(s, maxName), "`", "'") + "`"
}

// HoldEnds answers who set a hold that was to have an end, or that joined one which has
// none: whose it is, and until when it stands.
func HoldEnds(by string, until time.Time) string {
	who := "by hand, by its label,"
	if by != "" {
		who = "by " + escapeText(by, maxReason)
	}
	if until.IsZero() {
		return "It is on hold " + who + " without an end; `/liftlock unhold` lifts it."
	}
	return "On hold " + who + " until " + formatTime(until) + "; `/liftlock unhold` lifts it before."
}

// HoldRemains answers who lifted a hold what others hold still.
func HoldRemains(by string, until time.Time) string {
	who, end := "somebody", "without an end"
	if by != "" {
		who = escapeText(by, maxReason)
	}
	if !until.IsZero() {
		end = "until " + formatTime(until)
	}
	return "It stays on hold by " + who + ", " + end + ": what somebody else holds is lifted by whoever set it, or who could promote " +
		"here, and what was set after this was written stays."
}

// SkippedText says on a pull request that one of its gates is skipped.
func SkippedText(s promotion.Skip, head string) string {
	return fmt.Sprintf("%s skipped the gate %s of this promotion as it is (`%s`), until %s: %s", quoteName(s.By), quoteName(string(s.Gate)),
		wording.Short(head), formatTime(s.Until), escapeText(s.Reason, maxReason))
}

// CommandGiven says in a pull request who gave a command about it, written as a comment would,
// where that isn't seen: in the console.
func CommandGiven(by, command, reason string) string {
	text := quoteName(by) + " gave " + codeSpan(command, maxValue)
	if reason != "" {
		text += ": " + escapeText(reason, maxReason)
	}
	return text + "\n"
}

// HoldIsBack says on a pull request why its label that somebody took off is back.
func HoldIsBack(by string) string {
	who := "somebody"
	if by != "" {
		who = escapeText(by, maxReason)
	}
	return "The label `liftlock/hold` is back: " + who + " set this hold by a command, so it is lifted by one. Whoever set it may give " +
		"`/liftlock unhold`, and so may who could promote here.\n"
}
