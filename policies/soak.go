package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Soak asks that the release was verified in an environment for a while without a break. A
// degradation, a failed verification, another release and a change by hand are breaks.
type Soak struct {
	// The environment. Not set: each of this one's after.
	Environment string `yaml:"environment" json:"environment,omitempty"`
	// How long: 2h.
	For time.Duration `yaml:"for" json:"for" jsonschema:"required"`
}

// Soaked is for how long a release was verified in an environment without a break.
type Soaked struct {
	Environment string
	Direct      bool          // the environment is in this one's after
	Running     time.Duration // of the stretch that goes on or stands still
	Goes        bool          // it goes on right now
	Longest     time.Duration // of the stretches that ended
	Err         string        // why none counts, or why it stands still; empty: nothing is wrong
}

// maxSoak bounds how long may be asked for; more is a slip of the keyboard that would
// block an environment for good.
const maxSoak = 90 * 24 * time.Hour

var _ evaluator = (*Soak)(nil)

func (*Soak) kindName() GateName { return GateSoak }

func (s *Soak) describe() string {
	where := "each environment before"
	if s.Environment != "" {
		where = s.Environment
	}
	return fmt.Sprintf("verified in %s for %s without a break", where, formatDuration(s.For))
}

func (s *Soak) validate() []Problem {
	switch {
	case s.For <= 0:
		return []Problem{{Path: "soak.for", Message: fmt.Sprintf("must be longer than 0; it is %s", s.For)}}
	case s.For > maxSoak:
		return []Problem{{Path: "soak.for", Message: fmt.Sprintf("must be at most 90 days (2160h); it is %s", formatDuration(s.For))}}
	}
	return nil
}

func (s *Soak) evaluate(f Facts) Result {
	r := Result{Gate: s.kindName(), Outcome: Wait}
	if f.Now.IsZero() {
		r.Reason = "what time it is isn't known"
		return r
	}
	about := slices.Clone(f.Soaked)
	about = slices.DeleteFunc(about, func(x Soaked) bool {
		return s.Environment != "" && x.Environment != s.Environment || s.Environment == "" && !x.Direct
	})
	if len(about) == 0 {
		r.Reason = "for how long the release was verified before isn't known"
		return r
	}
	r.Outcome = Pass
	var waits, passes []string
	for _, x := range about {
		reason, rest := s.explainMissing(x, f.Now)
		if reason == "" {
			passes = append(passes, x.Environment)
			continue
		}
		r.Outcome = Wait
		waits = append(waits, reason)
		if f.Now.Add(rest).After(r.Until) {
			r.Until = f.Now.Add(rest)
		}
	}
	if r.Outcome == Pass {
		r.Reason = fmt.Sprintf("verified in %s for %s without a break", strings.Join(passes, ", "), formatDuration(s.For))
		return r
	}
	if slices.ContainsFunc(about, func(x Soaked) bool { return !x.Goes && s.rest(x) > 0 }) {
		r.Until = time.Time{} // when the others are done it waits for this one
	}
	r.Reason = strings.Join(waits, "; ")
	return r
}

// rest is what is missing of the soak; 0 or less: nothing.
func (s *Soak) rest(x Soaked) time.Duration { return s.For - max(x.Running, x.Longest) }

// explainMissing says why one environment's time isn't enough, empty when it is, and how much is
// missing of a stretch that goes on.
func (s *Soak) explainMissing(x Soaked, now time.Time) (reason string, rest time.Duration) {
	switch {
	case s.rest(x) <= 0:
		return "", 0
	case x.Goes:
		// The running stretch is what can still become long enough.
		rest = s.For - x.Running
		return fmt.Sprintf("%s in %s without a break is full at %s", formatDuration(s.For), x.Environment,
			formatInstant(now.Add(rest), time.UTC)), rest
	case x.Running > 0:
		return fmt.Sprintf("%s of %s in %s; it stands still: %s", formatSoaked(x.Running), formatDuration(s.For), x.Environment, x.Err), 0
	case x.Err != "":
		return fmt.Sprintf("%s in %s: %s", formatDuration(s.For), x.Environment, x.Err), 0
	case x.Longest > 0:
		return fmt.Sprintf("it was verified in %s for %s without a break, %s needed", x.Environment, formatSoaked(x.Longest),
			formatDuration(s.For)), 0
	}
	return fmt.Sprintf("it has to be verified in %s for %s without a break, and isn't yet", x.Environment, formatDuration(s.For)), 0
}

// formatSoaked writes a time that was counted, by the minute.
func formatSoaked(d time.Duration) string {
	if d < time.Minute {
		return "less than a minute"
	}
	return formatDuration(d.Truncate(time.Minute))
}
