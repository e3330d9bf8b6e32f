package policies

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Freeze keeps promotions from merging for a while. Pull requests still open, and reverts are
// never stopped.
type Freeze struct {
	// When it begins: a date (2026-12-20, midnight at its start in timezone) or a time with offset
	// (2026-12-20T18:00:00+01:00).
	From Moment `yaml:"from" json:"from" jsonschema:"required"`
	// When it ends, likewise; the day of a date is no longer frozen.
	To Moment `yaml:"to" json:"to" jsonschema:"required"`
	// The IANA time zone of dates. Required with a date.
	Timezone string `yaml:"timezone" json:"timezone,omitempty"`
	// The reason, for people.
	Reason string `yaml:"reason" json:"reason,omitempty"`
}

// Moment is a date or a time with its offset, as it was written.
type Moment string

// UnmarshalText takes any text, also what YAML takes for a date; [Freeze] says what is
// wrong with it.
func (m *Moment) UnmarshalText(text []byte) error {
	*m = Moment(text)
	return nil
}

// maxFreezeReason bounds the reason of a freeze, in bytes.
const maxFreezeReason = 200

var _ evaluator = (*Freeze)(nil)

func (*Freeze) kindName() GateName { return GateFreeze }

func (f *Freeze) describe() string {
	s := fmt.Sprintf("no freeze: from %s to %s", f.From, f.To)
	if f.Timezone != "" {
		s += " (" + f.Timezone + ")"
	}
	if f.Reason != "" {
		s += ": " + f.Reason
	}
	return s
}

func (f *Freeze) validate() []Problem { return f.findProblems(string(f.kindName()) + ".") }

// Problems are the things that are wrong with a freeze that is no gate's; their paths
// begin at its keys.
func (f *Freeze) Problems() []Problem { return f.findProblems("") }

func (f *Freeze) findProblems(prefix string) []Problem {
	var problems []Problem
	add := func(key string, err error) {
		if err != nil {
			problems = append(problems, Problem{Path: prefix + key, Message: err.Error()})
		}
	}
	zone, zoneErr := time.UTC, error(nil)
	if f.Timezone != "" || f.From.isDate() || f.To.isDate() {
		if zone, zoneErr = loadZone(f.Timezone); zoneErr != nil {
			add("timezone", zoneErr)
			zone = time.UTC // what else is wrong is said too
		}
	}
	from, fromErr := f.From.instant(zone)
	add("from", fromErr)
	to, toErr := f.To.instant(zone)
	add("to", toErr)
	if toErr == nil && !from.Before(to) { // a from that is wrong is before all
		add("to", fmt.Errorf("%s is not after from, %s", f.To, f.From))
	}
	switch {
	case len(f.Reason) > maxFreezeReason:
		add("reason", fmt.Errorf("is longer than %d bytes", maxFreezeReason))
	case strings.ContainsFunc(f.Reason, unicode.IsControl):
		add("reason", fmt.Errorf("must be one line"))
	}
	return problems
}

func (f *Freeze) evaluate(facts Facts) Result {
	r := Result{Gate: f.kindName(), Outcome: Wait}
	if facts.Now.IsZero() {
		r.Reason = "what time it is isn't known"
		return r
	}
	zone := time.UTC
	if f.Timezone != "" {
		var err error
		if zone, err = loadZone(f.Timezone); err != nil {
			r.Reason = "the freeze can't be evaluated: " + err.Error()
			return r
		}
	}
	from, fromErr := f.From.instant(zone)
	to, toErr := f.To.instant(zone)
	switch {
	case fromErr != nil || toErr != nil:
		r.Reason = "the freeze can't be evaluated: its beginning or end can't be told"
	case facts.Now.Before(from):
		r.Outcome, r.Until, r.Reason = Pass, from, "not frozen before "+formatInstant(from, zone)
	case facts.Now.Before(to):
		r.Until, r.Reason = to, "frozen until "+formatInstant(to, zone)
		if f.Reason != "" {
			r.Reason += ": " + f.Reason
		}
	default:
		r.Outcome, r.Reason = Pass, "not frozen since "+formatInstant(to, zone)
	}
	return r
}

var datePattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

func (m Moment) isDate() bool { return datePattern.MatchString(string(m)) }

// instant is the moment as a time; a date is the first instant of that day in the zone.
func (m Moment) instant(zone *time.Location) (time.Time, error) {
	if m == "" {
		return time.Time{}, fmt.Errorf("is missing; write a date like 2026-12-20, or a time with its offset like 2026-12-20T18:00:00+01:00")
	}
	if at, err := time.Parse(time.RFC3339, string(m)); err == nil {
		return at, nil
	}
	day, err := time.Parse(time.DateOnly, string(m))
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00",
			string(m))
	}
	return findDayStart(day, zone), nil
}

// findDayStart is the first instant of a day in a zone. Where the clocks skip midnight
// that is the jump, and where midnight comes twice the first of both.
func findDayStart(day time.Time, zone *time.Location) time.Time {
	wall := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
	// No zone's clock is more than a day from UTC, and none changes twice in that time.
	at := wall.Add(-26 * time.Hour)
	for range maxZoneChanges {
		// Times that the clocks skipped in the jump at this time would have come before it.
		start := at.Add(max(0, wall.Sub(readWall(at, zone))))
		_, jump := at.In(zone).ZoneBounds()
		if jump.IsZero() || start.Before(jump) {
			return start
		}
		at = jump
	}
	return wall
}
