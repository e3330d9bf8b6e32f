package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// recurrence is a stretch of time that begins again and again by the clock on the wall of a zone.
// Schedules of cron work on instants. They skip a time that the clocks jump over, and fire twice
// for one in the hour that comes twice. So the wall's clock is taken for one that never jumps
// (UTC), and asked for that.
type recurrence struct {
	starts   cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// maxZoneChanges bounds how many changes of a zone's clock are followed: cron looks five
// years ahead, and a zone changes twice a year, few of them four times.
const maxZoneChanges = 30

// earliest is the first of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	if b.IsZero() {
		return a
	}
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}

// readWall is what the clock on the wall of a zone shows, as if it were UTC.
func readWall(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

func (r *recurrence) isOpen(at time.Time) bool { return r.isOpenOnWall(readWall(at, r.zone)) }

// isOpenOnWall says whether there is a start that is no later, and less than the duration
// earlier.
func (r *recurrence) isOpenOnWall(wall time.Time) bool {
	start := r.starts.Next(wall.Add(-r.duration))
	return !start.IsZero() && !start.After(wall)
}

// findChangeOnWall is when, on a clock that never jumps, it closes or opens next; zero:
// never. Not known: it is open for so long that nobody needs to know for how long.
func (r *recurrence) findChangeOnWall(wall time.Time) (change time.Time, known bool) {
	start := r.starts.Next(wall.Add(-r.duration))
	if start.IsZero() || start.After(wall) {
		return start, true
	}
	end := start.Add(r.duration)
	for r.isOpenOnWall(end) {
		if end.Sub(wall) > maxWindowChain {
			return end, false
		}
		end = r.starts.Next(end.Add(-r.duration)).Add(r.duration)
	}
	return end, true
}

// findChange is the first instant after now at which it is open where it isn't now, or
// the other way round; zero: none is known. The zone's clock runs evenly between two
// changes of its own, and such a change may itself open or close it.
func (r *recurrence) findChange(now time.Time) (change time.Time, known bool) {
	open := r.isOpen(now)
	for range maxZoneChanges {
		wall := readWall(now, r.zone)
		next, known := r.findChangeOnWall(wall)
		_, jump := now.In(r.zone).ZoneBounds()
		if at := now.Add(next.Sub(wall)); !next.IsZero() && (jump.IsZero() || at.Before(jump)) {
			return at, known
		}
		if jump.IsZero() {
			break
		}
		if r.isOpen(jump) != open {
			return jump, true
		}
		now = jump
	}
	return time.Time{}, false
}

// maxCronLength bounds a cron expression.
const maxCronLength = 200

// cronEpoch is from when a schedule is tried for whether it ever starts: it has a leap
// year within the five years that are looked ahead.
var cronEpoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// parseCron reads a cron expression of five fields.
func parseCron(text string) (cron.Schedule, error) {
	fields := strings.Fields(text)
	switch {
	case len(fields) == 0:
		return nil, fmt.Errorf(`is missing; write it like "0 9 * * MON-THU"`)
	case len(text) > maxCronLength:
		return nil, fmt.Errorf("is longer than %d characters", maxCronLength)
	case strings.HasPrefix(fields[0], "@"):
		return nil, fmt.Errorf("%q is a descriptor, which says no hour; write five fields: minute, hour, day of the month, month, day of "+
			"the week", fields[0])
	case strings.HasPrefix(fields[0], "TZ=") || strings.HasPrefix(fields[0], "CRON_TZ="):
		return nil, fmt.Errorf("has a zone in it; give it as timezone")
	case len(fields) != 5:
		return nil, fmt.Errorf("has %d fields instead of five: minute, hour, day of the month, month, day of the week", len(fields))
	case !isEvery(fields[2]) && !isEvery(fields[4]):
		return nil, fmt.Errorf("sets the day of the month and the day of the week, of which cron takes either; set one of them, and use " +
			"two windows for both")
	}
	fields[4] = replaceSeven(fields[4])
	schedule, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron expression: %w", text, err)
	}
	if schedule.Next(cronEpoch).IsZero() {
		return nil, fmt.Errorf("%q never comes: there is no such day", text)
	}
	return schedule, nil
}

// isEvery says that a field leaves its days open.
func isEvery(field string) bool { return field == "*" || field == "?" }

// replaceSeven writes the days of the week without 7, which is Sunday like 0.
func replaceSeven(field string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		days, step, stepped := strings.Cut(item, "/")
		from, to, _ := strings.Cut(days, "-")
		first, err := strconv.Atoi(from)
		every := 1
		if stepped {
			if every, err = parseStep(step, err); err != nil {
				continue
			}
		}
		switch {
		case days == "7" && !stepped:
			items[i] = "0"
		case to == "7" && err == nil && first >= 0 && first <= 7:
			items[i] = listDays(first, every)
		}
	}
	return strings.Join(items, ",")
}

// parseStep is a step of days; before is what was wrong until then.
func parseStep(text string, before error) (int, error) {
	step, err := strconv.Atoi(text)
	if step < 1 {
		err = strconv.ErrRange
	}
	if before != nil {
		err = before
	}
	return step, err
}

// listDays lists the days of the week from one to Sunday.
func listDays(first, every int) string {
	var days []string
	for d := first; d <= 7; d += every {
		if day := strconv.Itoa(d % 7); !slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	return strings.Join(days, ",")
}

// loadZone finds a zone by the name that the IANA database has for it.
func loadZone(name string) (*time.Location, error) {
	switch name {
	case "":
		return nil, fmt.Errorf("is missing; write the zone like Europe/Berlin, or UTC")
	case "Local":
		return nil, fmt.Errorf("\"Local\" is another zone on every machine; write the zone like Europe/Berlin, or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q; write it as the IANA database has it, like Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// formatInstant is a time for people, by the clock of a zone.
func formatInstant(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2006-01-02 15:04 MST")
}
