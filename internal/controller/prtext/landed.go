package prtext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// LandedComment is the comment after the merge: where the release is on the way, and
// what a person can do where it is stuck.
func LandedComment(in Input) string {
	if in.Batch {
		return landedBatch(in)
	}
	st := stateOf(in)
	p := newComment()
	p.writeParagraph("%s", landedSummary(in, st))
	merged := "Merged"
	if at := formatTime(st.Since); at != "" {
		merged += " " + at
	}
	if st.Commit != "" {
		merged += " as " + codeSpan(wording.Short(st.Commit), maxName)
	}
	if r := linkReason(in, st.Reason); r != "" {
		merged += ". Now: " + strings.TrimSuffix(r, ".")
	}
	p.writeParagraph("%s.", merged)
	writeUngated(p, in)
	writeTargets(p, in, st)
	writeReasons(p, in, "Why it isn't taken back", holdReasons(st))
	writeNext(p, in, st)
	writeDownstream(p, in)
	return p.endComment(in)
}

// writeUngated says that a person merged it past its gates.
func writeUngated(p *page, in Input) {
	if in.Ungated != "" {
		p.writeParagraph("It was %s. It is verified all the same.", escapeText(in.Ungated, maxReason))
	}
}

// holdReasons are the reasons why a release that is unhealthy stays; what else the
// decision says is about the release that wants to come in next.
func holdReasons(st *promotion.EnvState) []promotion.Reason {
	if st.State != promotion.Degraded || st.Revert > 0 {
		return nil
	}
	var out []promotion.Reason
	for _, w := range st.Why {
		if w.Code == cause.Hold || w.Code == cause.RevertLimit {
			out = append(out, w)
		}
	}
	return out
}

func landedSummary(in Input, st *promotion.EnvState) string {
	what := codeSpan(releaseNameOf(in), maxName) + " in " + escapeText(in.Environment, maxName)
	if in.Revert {
		what = escapeText(in.Environment, maxName) + " back at " + codeSpan(releaseNameOf(in), maxName)
	}
	switch {
	case st.Revert > 0:
		return fmt.Sprintf("**Degraded:** %s. The revert %s is open.", what, pullRef(st.Revert))
	case st.State == promotion.Verified:
		s := "**Verified:** " + what
		if at := formatTime(st.VerifiedAt); at != "" {
			s += ", since " + at
		}
		return s + "."
	case st.State == promotion.Verifying:
		return "**Verifying:** " + what + "."
	case st.State == promotion.Degraded:
		return "**Degraded:** " + what + "."
	case st.State == promotion.Failed:
		return "**Failed:** " + what + " didn't get where it should."
	case st.State == promotion.Diverged:
		return "**Changed by hand since:** " + escapeText(in.Environment, maxName) + " is no longer as this pull request left it."
	case st.State == promotion.Mixed:
		return "**Mixed:** the overlays of " + escapeText(in.Environment, maxName) + " disagree."
	case st.State == promotion.Unreadable:
		return "**Not readable:** how " + escapeText(in.Environment, maxName) + " is can't be told."
	}
	return "**" + escapeText(st.State, maxName) + ":** " + what + "."
}

// writeTargets is the table of the environment's targets, sorted by name.
func writeTargets(p *page, in Input, st *promotion.EnvState) {
	if len(st.Targets) == 0 {
		return
	}
	var rows []string
	for _, n := range slices.Sorted(maps.Keys(st.Targets)) {
		t := st.Targets[n]
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", codeSpan(n, maxName), escapeText(t.State, maxName), formatTime(t.Since),
			linkReason(in, t.Reason)))
	}
	p.writeFolded("| target | state | since | |\n|---|---|---|---|", rows)
}

func writeNext(p *page, in Input, st *promotion.EnvState) {
	if next := landedNext(in, st); next != "" {
		p.writeParagraph("%s", next)
	}
}

// landedNext is what happens next by itself, or what a person can do.
func landedNext(in Input, st *promotion.EnvState) string {
	env := escapeText(in.Environment, maxName)
	switch {
	case st.Revert > 0:
		return ""
	case isUntold(st):
		return "A person is asked: Liftlock can't learn from Argo CD how it is. Look at the Application there, and at whether Argo CD " +
			"reaches its cluster; nothing is taken back by this, and it goes on by itself once that can be told again."
	case st.State == promotion.Verifying:
		return "Nothing to do: Liftlock watches until every target is synced and healthy for long enough."
	case st.State == promotion.Verified && !in.Revert:
		if until := watchEnd(in, st); until != "" {
			return fmt.Sprintf("Liftlock keeps watching until %s; after that a degradation asks a person instead of opening a revert.",
				until)
		}
	case st.State == promotion.Failed:
		s := "A person is asked: mend the cause and say `/liftlock retry`, which verifies again"
		if !in.Revert {
			s += ", or say `/liftlock revert`, which takes it back"
		}
		return s + "."
	case st.State == promotion.Degraded && in.Revert:
		return fmt.Sprintf("A person is asked: %s is unwell with the release that was well before, so the cause is likely elsewhere. "+
			"When it is mended, `/liftlock retry` verifies again.", env)
	case st.State == promotion.Degraded && len(holdReasons(st)) > 0:
		return "A person is asked: `/liftlock revert` takes it back; when the cause lay elsewhere and is mended, `/liftlock retry` " +
			"verifies again."
	case st.State == promotion.Degraded:
		return "Liftlock looks whether this promotion did it and opens a revert if so."
	}
	return ""
}

// isUntold says that of some target nobody has been able to tell for long how it is, and that
// nothing worse is known of the others.
func isUntold(st *promotion.EnvState) bool {
	return (st.State == promotion.Verifying || st.State == promotion.Verified) && len(st.UntoldTargets()) > 0
}

// watchEnd is until when a degradation is answered with a revert.
func watchEnd(in Input, st *promotion.EnvState) string {
	e := environmentOf(in)
	if e == nil || st.Since.IsZero() || e.Spec.OnDegraded.Action == "hold" {
		return ""
	}
	v := e.Spec.Verify
	return formatTime(st.Since.Add(time.Duration(v.ArriveWithin) + time.Duration(v.Timeout) + time.Duration(
		v.HealthyFor) + time.Duration(v.Watch)))
}

// writeDownstream says how it goes on behind this environment.
func writeDownstream(p *page, in Input) {
	if in.Revert {
		return
	}
	var lines []string
	for _, e := range in.component().Envs {
		if !slices.Contains(e.Spec.After, in.Environment) {
			continue
		}
		st := in.Members[0].stateIn(e.Name)
		if st == nil || st.Candidate != in.Release {
			continue
		}
		s := escapeText(e.Name, maxName) + ": "
		if st.Pull > 0 {
			s += pullRef(st.Pull) + " is open"
		} else {
			s += escapeText(st.Promotion, maxName)
			if len(st.Why) > 0 {
				s += ", " + linkReason(in, st.Why[0].Text)
			}
		}
		lines = append(lines, s)
	}
	if len(lines) == 0 {
		return
	}
	p.writeParagraph("Next:")
	for _, l := range lines[:min(len(lines), maxRows)] {
		p.writeLine("- %s", l)
	}
	p.writeGap()
}
