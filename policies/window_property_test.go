package policies

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "evaluate the windows of the property test at every minute of ten years")

// manyZones are zones whose clocks jump in all the ways that there are.
var manyZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Moscow", "Europe/Istanbul", "Europe/Chisinau", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo",
	"America/Santiago", "America/Havana", "America/Caracas", "America/St_Johns", "America/Scoresbysund", "Africa/Cairo", "Africa/Casablanca", "Africa/Johannesburg", "Asia/Kolkata", "Asia/Kathmandu",
	"Asia/Tehran", "Asia/Gaza", "Asia/Beirut", "Asia/Pyongyang", "Asia/Tokyo", "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll",
}

// fieldSets are the values of a cron expression's fields.
type fieldSets struct{ minute, hour, dom, month, dow map[int]bool }

// drawFields makes an expression that fires rarely enough to close, with its values.
func drawFields(rnd *rand.Rand) (expression string, sets fieldSets) {
	some := func(low, high, most int) (string, map[int]bool) {
		set, texts := map[int]bool{}, []string(nil)
		for range 1 + rnd.IntN(most) {
			v := low + rnd.IntN(high-low+1)
			set[v] = true
			texts = append(texts, strconv.Itoa(v))
		}
		return strings.Join(texts, ","), set
	}
	minute, minutes := some(0, 59, 2)
	hour, hours := some(0, 23, 3)
	dom, month, dow := "*", "*", "*"
	sets = fieldSets{minute: minutes, hour: hours}
	switch rnd.IntN(4) {
	case 0:
		dom, sets.dom = some(1, 28, 9)
	case 1:
		month, sets.month = some(1, 12, 8)
	case 2:
		dow, sets.dow = some(0, 7, 4)
		sets.dow[0] = sets.dow[0] || sets.dow[7]
	}
	return strings.Join([]string{minute, hour, dom, month, dow}, " "), sets
}

func (f *fieldSets) startsOn(day time.Time) bool {
	in := func(set map[int]bool, v int) bool { return set == nil || set[v] }
	return in(f.dom, day.Day()) && in(f.month, int(day.Month())) && in(f.dow, int(day.Weekday()))
}

// openMinutes says of every minute of days on a clock that never jumps whether a window
// is open. The days before the first, as many as a window may last, count too.
func (f *fieldSets) openMinutes(first time.Time, days, duration int) []bool {
	const day = 24 * 60
	open := make([]bool, days*day)
	for d := -7; d < days; d++ {
		if !f.startsOn(first.AddDate(0, 0, d)) {
			continue
		}
		for hour := range f.hour {
			for minute := range f.minute {
				for i := range duration {
					if at := d*day + hour*60 + minute + i; at >= 0 && at < len(open) {
						open[at] = true
					}
				}
			}
		}
	}
	return open
}

// TestWindowsEqualBruteForce compares windows in many zones with a model that marks every minute of
// the wall's calendar. In short it does so around all changes of the clocks and now and then in
// between, with -long at every minute of ten years.
func TestWindowsEqualBruteForce(t *testing.T) {
	from := time.Date(2017, time.January, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(10, 0, 0)
	const margin = 24 * 60 // how far a wall's clock may be from UTC, and more
	days := int(to.Sub(from)/(24*time.Hour)) + 2
	rnd := rand.New(rand.NewPCG(7, 11))
	for _, name := range manyZones {
		expression, sets := drawFields(rnd)
		duration := 1 + rnd.IntN([]int{90, 24 * 60, 7 * 24 * 60}[rnd.IntN(3)])
		t.Run(fmt.Sprintf("%s %s for %dm", name, expression, duration), func(t *testing.T) {
			w := Window{Cron: expression, Duration: time.Duration(duration) * time.Minute, Timezone: name}
			r, err := w.newRecurrence()
			if err != nil {
				t.Fatal(err)
			}
			open := sets.openMinutes(from.AddDate(0, 0, -1), days, duration)
			want := func(at time.Time) bool {
				_, offset := at.In(r.zone).Zone()
				return open[int(at.Sub(from)/time.Minute)+margin+offset/60]
			}
			for at := from; at.Before(to); at = at.Add(nextSample(r.zone, at, rnd)) {
				if r.isOpen(at) != want(at) {
					t.Fatalf("at %s it is open: %v, want %v", at.In(r.zone), !want(at), want(at))
				}
				if rnd.IntN(500) == 0 {
					checkChange(t, r, at, to, want)
				}
			}
		})
	}
}

// nextSample is how far to go: minute by minute near a change of the zone's clock.
func nextSample(zone *time.Location, at time.Time, rnd *rand.Rand) time.Duration {
	if *long {
		return time.Minute
	}
	start, end := at.In(zone).ZoneBounds()
	if near := 90 * time.Minute; at.Sub(start) < near || !end.IsZero() && end.Sub(at) < near {
		return time.Minute
	}
	step := time.Duration(1+rnd.IntN(1000)) * time.Minute
	if !end.IsZero() && end.Sub(at)-time.Hour < step {
		return max(time.Minute, end.Sub(at).Truncate(time.Minute)-80*time.Minute)
	}
	return step
}

// checkChange compares the next change with the model's.
func checkChange(t *testing.T, r *recurrence, at, to time.Time, want func(time.Time) bool) {
	t.Helper()
	change, known := r.findChange(at)
	if far := at.AddDate(0, 0, 40); far.Before(to) {
		to = far
	}
	for next := at.Add(time.Minute); next.Before(to); next = next.Add(time.Minute) {
		switch reached := !change.IsZero() && !next.Before(change); {
		case reached && !known:
			return
		case want(next) != want(at) && !next.Equal(change):
			t.Fatalf("at %s it changes at %s, want %s", at.In(r.zone), change.In(r.zone), next.In(r.zone))
		case want(next) != want(at):
			return
		case reached:
			t.Fatalf("at %s it changes at %s, but it doesn't", at.In(r.zone), change.In(r.zone))
		}
	}
}
