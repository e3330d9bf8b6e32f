package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
)

// statusMark is the hidden mark of the one comment that is kept up to date. It
// is always the first line, where nothing from outside can stand.
const statusMark = "<!-- liftlock:status -->"

// IsStatusComment recognises our one comment. Whether it is ours, its author
// says: the caller checks that.
func IsStatusComment(body string) bool { return strings.HasPrefix(body, statusMark) }

// openComment tells where an open pull request stands.
func openComment(in Input) string {
	st, s := state(in), stand(in)
	var p page
	p.line("%s", statusMark)
	p.line("%s", summary(in, s))
	p.gap()
	gateTable(&p, in, s.gates)
	var also []promotion.Reason
	for _, w := range st.Why {
		if w.Code != codeManual { // the summary says so
			also = append(also, w)
		}
	}
	reasons(&p, in, "Also", also)
	if r := present(in, st); r != "" {
		p.line("%s", r)
		p.gap()
	}
	if in.Console != "" {
		p.line("[Console](%s)", address(in.Console))
	}
	return p.String()
}

// Promotion's words that a text treats on its own: codes of reasons, and a gate.
const (
	codeManual = "manual"
	codeHold   = "hold"
	codeStorm  = "storm" // more reverts than the limit: a hold too
	gateHold   = "hold"

	gateTogether = "together" // what came by the same pull request upstream isn't all verified
)

// summary is the one sentence for who reads nothing else: what happens next.
func summary(in Input, s standing) string {
	fails, waits := s.split()
	switch {
	case s.alien != "" && in.Revert:
		return "**Stopped:** the branch is not as Liftlock made it. Merge it by hand or close it; Liftlock does neither."
	case s.alien != "":
		return "**Stopped:** the branch is not as Liftlock made it. `/liftlock retry` composes it anew and drops what others pushed to it; or close it."
	case len(fails) > 0:
		return "**Blocked by " + list(fails) + ".** The pull request or the rules must change."
	case s.held():
		return "**On hold.** It isn't merged until the hold is lifted."
	case len(waits) > 0:
		return "**Waiting for " + list(waits) + ".**"
	case !s.judged && observes(in):
		return "**Only watched:** the pipeline's mode is observe, so Liftlock does nothing here."
	case !s.judged:
		return "**Being looked at:** nothing is merged before its gates are known."
	case s.byHand:
		return "**Ready:** nothing stands in the way. A person merges it."
	}
	return "**Ready:** nothing stands in the way. Liftlock merges it."
}

// reasons lists what else stands in the way.
func reasons(p *page, in Input, heading string, why []promotion.Reason) {
	if len(why) == 0 {
		return
	}
	p.line("%s:", heading)
	p.gap()
	for i, w := range why {
		if i == maxRows {
			p.line("- and %d more", len(why)-i)
			break
		}
		s := linked(in, w.Text)
		if w.Who != "" {
			s += " (" + text(w.Who, maxName) + ")"
		}
		if at := stamp(w.When); at != "" {
			s += ", at " + at
		}
		p.line("- %s", s)
	}
	p.gap()
}

// present says what the environment carries while this waits.
func present(in Input, st *promotion.EnvState) string {
	if st.Name == "" && st.Release == "" {
		return ""
	}
	s := text(in.Environment, maxName) + " carries " + code(promotion.Release{ID: st.Release, Name: st.Name}.String(), maxName) + " now: " + text(st.State, maxName)
	if at := stamp(st.Since); at != "" {
		s += ", there since " + at
	}
	return s + "."
}

// Closed is the comment's last text when Liftlock closes the pull request.
func Closed(in Input, why string) string {
	var p page
	p.line("%s", statusMark)
	p.line("**Closed by Liftlock:** %s.", strings.TrimSuffix(linked(in, why), "."))
	p.gap()
	if in.Revert {
		p.line("There is nothing left to take back. If %s degrades again, Liftlock judges it anew.", text(in.Environment, maxName))
	} else {
		p.line("This is no veto: when a release may move into %s, Liftlock opens a pull request again.", text(in.Environment, maxName))
	}
	if in.Console != "" {
		p.gap()
		p.line("[Console](%s)", address(in.Console))
	}
	return bound(p.String())
}
