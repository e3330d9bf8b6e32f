package prtext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Landed is the comment after the merge: where the release is on the way, and
// what a person can do where it is stuck.
func Landed(in Input) string {
	if several(in) {
		return landedTogether(in)
	}
	st := state(in)
	var p page
	p.line("%s", statusMark)
	p.line("%s", landedSummary(in, st))
	p.gap()
	merged := "Merged"
	if at := stamp(st.Since); at != "" {
		merged += " " + at
	}
	if st.Commit != "" {
		merged += " as " + code(promotion.Short(st.Commit), maxName)
	}
	if r := linked(in, st.Reason); r != "" {
		merged += ". Now: " + strings.TrimSuffix(r, ".")
	}
	p.line("%s.", merged)
	p.gap()
	targets(&p, in, st)
	reasons(&p, in, "Why it isn't taken back", holds(st))
	if next := landedNext(in, st); next != "" {
		p.line("%s", next)
		p.gap()
	}
	downstream(&p, in)
	if in.Console != "" {
		p.line("[Console](%s)", address(in.Console))
	}
	return bound(p.String())
}

// holds are the reasons why a release that is unwell stays; what else the
// decision says is about the release that wants to come in next.
func holds(st *promotion.EnvState) []promotion.Reason {
	if st.State != promotion.Degraded || st.Undo > 0 {
		return nil
	}
	var out []promotion.Reason
	for _, w := range st.Why {
		if w.Code == codeHold || w.Code == codeStorm {
			out = append(out, w)
		}
	}
	return out
}

func landedSummary(in Input, st *promotion.EnvState) string {
	what := code(name(in), maxName) + " in " + text(in.Environment, maxName)
	if in.Revert {
		what = text(in.Environment, maxName) + " back at " + code(name(in), maxName)
	}
	switch {
	case st.Undo > 0:
		return fmt.Sprintf("**Degraded:** %s. The revert %s is open.", what, ref(st.Undo))
	case st.State == promotion.Verified:
		s := "**Verified:** " + what
		if at := stamp(st.VerifiedAt); at != "" {
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
		return "**Changed by hand since:** " + text(in.Environment, maxName) + " is no longer as this pull request left it."
	case st.State == promotion.Mixed:
		return "**Mixed:** the overlays of " + text(in.Environment, maxName) + " disagree."
	case st.State == promotion.Unreadable:
		return "**Not readable:** how " + text(in.Environment, maxName) + " is can't be told."
	}
	return "**" + text(st.State, maxName) + ":** " + what + "."
}

// targets is the table of the environment's targets, sorted by name.
func targets(p *page, in Input, st *promotion.EnvState) {
	if len(st.Targets) == 0 {
		return
	}
	var rows []string
	for _, n := range slices.Sorted(maps.Keys(st.Targets)) {
		t := st.Targets[n]
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", code(n, maxName), text(t.State, maxName), stamp(t.Since), linked(in, t.Reason)))
	}
	p.folded("| target | state | since | |\n|---|---|---|---|", rows)
}

// landedNext is what happens next by itself, or what a person can do.
func landedNext(in Input, st *promotion.EnvState) string {
	env := text(in.Environment, maxName)
	switch {
	case st.Undo > 0:
		return ""
	case st.State == promotion.Verifying:
		return "Nothing to do: Liftlock watches until every target is synced and healthy for long enough."
	case st.State == promotion.Verified && !in.Revert:
		if until := watchEnd(in, st); until != "" {
			return fmt.Sprintf("Liftlock keeps watching until %s; after that a degradation asks a person instead of opening a revert.", until)
		}
	case st.State == promotion.Failed:
		s := "A person is asked: mend the cause and say `/liftlock retry`, which verifies again"
		if !in.Revert {
			s += ", or say `/liftlock revert`, which takes it back"
		}
		return s + "."
	case st.State == promotion.Degraded && in.Revert:
		return fmt.Sprintf("A person is asked: %s is unwell with the release that was well before, so the cause is likely elsewhere. When it is mended, `/liftlock retry` verifies again.", env)
	case st.State == promotion.Degraded && len(holds(st)) > 0:
		return "A person is asked: `/liftlock revert` takes it back; when the cause lay elsewhere and is mended, `/liftlock retry` verifies again."
	case st.State == promotion.Degraded:
		return "Liftlock looks whether this promotion did it and opens a revert if so."
	}
	return ""
}

// watchEnd is until when a degradation is answered with a revert.
func watchEnd(in Input, st *promotion.EnvState) string {
	e := environment(in)
	if e == nil || st.Since.IsZero() || e.Spec.OnDegraded == "hold" {
		return ""
	}
	v := e.Spec.Verify
	return stamp(st.Since.Add(time.Duration(v.ArriveWithin) + time.Duration(v.Timeout) + time.Duration(v.HealthyFor) + time.Duration(v.Watch)))
}

// downstream says how it goes on behind this environment.
func downstream(p *page, in Input) {
	if in.Facts == nil || in.Decision == nil || in.Revert {
		return
	}
	var lines []string
	for i := range in.Facts.Envs {
		e := &in.Facts.Envs[i]
		if !slices.Contains(e.Spec.After, in.Environment) {
			continue
		}
		st := in.Decision.Env(e.Name)
		if st == nil || st.Candidate != in.Release {
			continue
		}
		s := text(e.Name, maxName) + ": "
		if st.Pull > 0 {
			s += ref(st.Pull) + " is open"
		} else {
			s += text(st.Promotion, maxName)
			if len(st.Why) > 0 {
				s += ", " + linked(in, st.Why[0].Text)
			}
		}
		lines = append(lines, s)
	}
	if len(lines) == 0 {
		return
	}
	p.line("Next:")
	p.gap()
	for _, l := range lines[:min(len(lines), maxRows)] {
		p.line("- %s", l)
	}
	p.gap()
}
