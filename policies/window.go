package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window lets a promotion merge only within recurring times. It has cron, duration and
// timezone, or argocd alone. Its start is inside, its end is not. It follows local time: 22:00
// for 8h ends at 06:00, also when the clocks change.
type Window struct {
	// When it opens, as in cron: minute, hour, day of the month, month, day of the week (0 or 7 is
	// Sunday). Only one of the two days may be restricted.
	Cron string `yaml:"cron" json:"cron,omitempty" jsonschema:"minLength=1"`
	// How long it stays open, in local time, at most 168h.
	Duration time.Duration `yaml:"duration" json:"duration,omitempty"`
	// An IANA time zone: Europe/Berlin, UTC.
	Timezone string `yaml:"timezone" json:"timezone,omitempty" jsonschema:"minLength=1"`
	// Open while Argo CD's sync windows let every target of the environment sync.
	ArgoCD bool `yaml:"argocd" json:"argocd,omitempty" jsonschema:"enum=true"`
}

// Windows is open while any of its windows is.
type Windows []Window

const (
	// maxWindows bounds the windows of one gate.
	maxWindows = 20
	// maxWindowDuration is the longest window: a longer one overlaps itself every week.
	maxWindowDuration = 7 * 24 * time.Hour
	// maxWindowChain bounds how far a window that opens again before it closes is followed.
	maxWindowChain = 48 * time.Hour
)

var (
	_ evaluator = (*Window)(nil)
	_ evaluator = Windows(nil)
)

func (*Window) kindName() GateName { return GateWindow }
func (Windows) kindName() GateName { return GateWindows }

func (w *Window) describe() string { return "a window: " + w.String() }

func (w Windows) describe() string {
	texts := make([]string, len(w))
	for i := range w {
		texts[i] = w[i].String()
	}
	return "one of several windows: " + strings.Join(texts, ", or ")
}

// String is the window as people say it: Mon–Thu 09:00–17:00 Europe/Berlin. One whose cron expression has
// no such words is written as it is: 0 9 1 */3 * for 8h (Europe/Berlin).
func (w *Window) String() string {
	if w.ArgoCD {
		return "Argo CD's sync windows"
	}
	if words := describeTimes(w.Cron, w.Duration); words != "" {
		return words + " " + w.Timezone
	}
	return fmt.Sprintf("%s for %s (%s)", w.Cron, formatDuration(w.Duration), w.Timezone)
}

func (w *Window) validate() []Problem { return w.findProblems(string(w.kindName())) }

func (w *Window) evaluate(f Facts) Result {
	return evaluateWindows(w.kindName(), []Window{*w}, f)
}

func (w Windows) validate() []Problem {
	switch n := len(w); {
	case n == 0:
		return []Problem{{Path: string(w.kindName()), Message: "at least one window is needed"}}
	case n > maxWindows:
		return []Problem{{Path: string(w.kindName()), Message: fmt.Sprintf("%d windows are too many; at most %d", n, maxWindows)}}
	}
	var problems []Problem
	for i := range w {
		problems = append(problems, w[i].findProblems(fmt.Sprintf("%s[%d]", w.kindName(), i))...)
	}
	return problems
}

func (w Windows) evaluate(f Facts) Result { return evaluateWindows(w.kindName(), w, f) }

// findProblems says what is wrong with the window's settings.
func (w *Window) findProblems(path string) []Problem {
	var problems []Problem
	add := func(key string, err error) {
		if err != nil {
			problems = append(problems, Problem{Path: path + "." + key, Message: err.Error()})
		}
	}
	if w.ArgoCD {
		if w.Cron != "" || w.Duration != 0 || w.Timezone != "" {
			add("argocd", errors.New("stands alone: Argo CD's sync windows have their own schedules, and another window is another gate"))
		}
		return problems
	}
	_, err := parseCron(w.Cron)
	add("cron", err)
	switch {
	case w.Duration <= 0:
		add("duration", fmt.Errorf("must be longer than 0; it is %s", w.Duration))
	case w.Duration > maxWindowDuration:
		add("duration", fmt.Errorf("must be at most seven days (168h); it is %s", w.Duration))
	}
	_, err = loadZone(w.Timezone)
	add("timezone", err)
	return problems
}

// newRecurrence is the window as something that can be asked for times.
func (w *Window) newRecurrence() (*recurrence, error) {
	starts, err := parseCron(w.Cron)
	if err != nil {
		return nil, err
	}
	zone, err := loadZone(w.Timezone)
	if err != nil {
		return nil, err
	}
	return &recurrence{starts: starts, duration: w.Duration, zone: zone}, nil
}

// evaluateWindows answers for several windows of which one that is open is enough.
func evaluateWindows(gate GateName, windows []Window, f Facts) Result {
	timed := slices.DeleteFunc(slices.Clone(windows), func(w Window) bool { return w.ArgoCD })
	switch len(timed) {
	case len(windows):
		return evaluateTimes(gate, timed, f.Now)
	case 0:
		return evaluateSyncWindows(gate, f)
	}
	r, other := evaluateTimes(gate, timed, f.Now), evaluateSyncWindows(gate, f)
	switch {
	case r.Outcome == Pass:
		return r
	case other.Outcome == Pass:
		return other
	}
	r.Reason += "; " + other.Reason
	r.Until = earliest(r.Until, other.Until)
	return r
}

// evaluateTimes answers for several windows with times of their own.
func evaluateTimes(gate GateName, windows []Window, now time.Time) Result {
	r := Result{Gate: gate, Outcome: Wait}
	if now.IsZero() {
		r.Reason = "what time it is isn't known"
		return r
	}
	all := make([]*recurrence, len(windows))
	for i := range windows {
		var err error
		if all[i], err = windows[i].newRecurrence(); err != nil {
			r.Reason = "the window can't be evaluated: " + err.Error()
			return r
		}
	}
	if findOpen(all, now) != nil {
		r.Outcome = Pass
		closes, zone, known := findClosing(all, now)
		r.Until, r.Reason = closes, "open"
		if known {
			r.Reason += " until " + formatInstant(closes, zone)
		}
		return r
	}
	opens, zone := findOpening(all, now)
	r.Until, r.Reason = opens, "closed"
	if !opens.IsZero() {
		r.Reason += " until " + formatInstant(opens, zone)
	}
	return r
}

// findOpen is a window that is open at a time; nil when none is.
func findOpen(all []*recurrence, at time.Time) *recurrence {
	for _, r := range all {
		if r.isOpen(at) {
			return r
		}
	}
	return nil
}

// findOpening is when the first of windows that are all closed opens, and its zone.
func findOpening(all []*recurrence, now time.Time) (opens time.Time, zone *time.Location) {
	for _, r := range all {
		if at, _ := r.findChange(now); !at.IsZero() && (opens.IsZero() || at.Before(opens)) {
			opens, zone = at, r.zone
		}
	}
	return opens, zone
}

// findClosing is when none of several windows is open any more, and the zone of the one that closes
// last. Not known, and without a zone: one or another is open for so long that it doesn't matter
// for how long; then closes is when to look again.
func findClosing(all []*recurrence, now time.Time) (closes time.Time, zone *time.Location, known bool) {
	closes = now
	for open := findOpen(all, now); open != nil; open = findOpen(all, closes) {
		zone = open.zone
		if closes, known = open.findChange(closes); closes.IsZero() {
			return time.Time{}, nil, false
		}
		if !known || closes.Sub(now) > maxWindowDuration+maxWindowChain {
			return closes, nil, false
		}
	}
	return closes, zone, true
}

// formatDuration writes a duration without the zero units at its end: 8h.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
