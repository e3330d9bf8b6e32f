package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// statusMarker is the hidden mark of the one comment that is kept up to date. It
// is always the first line, where nothing from outside can stand.
const statusMarker = "<!-- liftlock:status -->"

// IsStatusComment recognises our one comment. Whether it is ours, its author
// says: the caller checks that.
func IsStatusComment(body string) bool { return strings.HasPrefix(body, statusMarker) }

// newComment begins the one comment.
func newComment() *page {
	p := new(page)
	p.writeLine("%s", statusMarker)
	return p
}

// endComment ends it with a link to the console.
func (p *page) endComment(in Input) string {
	if in.ConsoleURL != "" {
		p.writeLine("[Console](%s)", escapeURL(in.ConsoleURL))
	}
	return truncateBody(p.String())
}

// openComment tells where an open pull request stands.
func openComment(in Input) string {
	st, s := stateOf(in), summarizeGates(in)
	p := newComment()
	p.writeParagraph("%s", openSummary(in, s))
	writeGateTable(p, in, s.gates)
	var also []promotion.Reason
	for _, w := range st.Why {
		if w.Code != cause.Manual { // the summary says so
			also = append(also, w)
		}
	}
	writeReasons(p, in, "Also", also)
	if r := currentReleaseLine(in, st); r != "" {
		p.writeParagraph("%s", r)
	}
	return p.endComment(in)
}

// openSummary is the one sentence for who reads nothing else: the headline, and what happens next.
func openSummary(in Input, s gateSummary) string {
	h := promotion.JudgeHeadline(s.gates)
	switch {
	case s.headModified != "" && in.Revert:
		return "**Stopped:** the branch is not as Liftlock made it. Merge it by hand or close it; Liftlock does neither."
	case s.headModified != "":
		return "**Stopped:** the branch is not as Liftlock made it. `/liftlock retry` composes it anew and drops what others pushed to " +
			"it; or close it."
	case h.Kind == promotion.HeadlineBlocked:
		return writeHeadline(in, h) + " The pull request or the rules must change."
	case h.Kind == promotion.HeadlineHeld:
		return writeHeadline(in, h) + " It isn't merged until the hold is lifted."
	case h.Kind == promotion.HeadlineWaiting:
		return writeHeadline(in, h)
	case !s.evaluated && isDryRun(in):
		return "**Only watched:** the pipeline's mode is observe, so Liftlock does nothing here."
	case h.Kind == promotion.HeadlinePassing, !s.evaluated:
		return "**Being looked at:** nothing is merged before its gates are known."
	case h.Kind == promotion.HeadlineForge:
		return writeHeadline(in, h)
	case s.byHand:
		return "**Ready:** nothing stands in the way. A person merges it."
	}
	return "**Ready:** nothing stands in the way. Liftlock merges it."
}

// writeHeadline is a headline as a sentence, with what else it waits for.
func writeHeadline(in Input, h promotion.Headline) string {
	// The part up to the reason is in bold: that is ours, and the rest may hold anything.
	head, reason, hasReason := strings.Cut(h.Text, ": ")
	s := "**" + escapeText(strings.ToUpper(head[:1])+head[1:], maxReason)
	if hasReason {
		s += ":** " + strings.TrimSuffix(linkReason(in, reason), ".")
	} else {
		s += "**"
	}
	if len(h.Also) > 0 {
		s += "; also waiting for " + escapeText(wording.JoinFew(h.Also, openRows), maxLine)
	}
	return s + "."
}

// writeReasons lists what else stands in the way.
func writeReasons(p *page, in Input, heading string, why []promotion.Reason) {
	if len(why) == 0 {
		return
	}
	p.writeParagraph("%s:", heading)
	for i, w := range why {
		if i == maxRows {
			p.writeLine("- and %d more", len(why)-i)
			break
		}
		s := linkReason(in, w.Text)
		if w.Who != "" {
			s += " (" + escapeText(w.Who, maxName) + ")"
		}
		if at := formatTime(w.When); at != "" {
			s += ", at " + at
		}
		p.writeLine("- %s", s)
	}
	p.writeGap()
}

// currentReleaseLine says what the environment carries while this waits.
func currentReleaseLine(in Input, st *promotion.EnvState) string {
	if st.Name == "" && st.Release == "" {
		return ""
	}
	s := escapeText(in.Environment, maxName) + " carries " + codeSpan(promotion.Release{ID: st.Release, Name: st.Name}.String(), maxName) +
		" now: " + escapeText(st.State, maxName)
	if at := formatTime(st.Since); at != "" {
		s += ", there since " + at
	}
	return s + "."
}

// ClosedComment is the comment's last text when Liftlock closes the pull request.
func ClosedComment(in Input, why string) string {
	p := newComment()
	p.writeParagraph("**Closed by Liftlock:** %s.", strings.TrimSuffix(linkReason(in, why), "."))
	if in.Revert {
		p.writeLine("There is nothing left to take back. If %s degrades again, Liftlock judges it anew.",
			escapeText(in.Environment, maxName))
	} else {
		p.writeLine("This is no veto: when a release may move into %s, Liftlock opens a pull request again.",
			escapeText(in.Environment, maxName))
	}
	if in.ConsoleURL != "" {
		p.writeGap()
	}
	return p.endComment(in)
}
