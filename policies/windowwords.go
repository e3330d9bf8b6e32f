package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// weekdays are cron's names of the days, by its numbers.
var weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// maxDescribedStarts bounds the starts a day that are written one by one.
const maxDescribedStarts = 4

// describeTimes says in words when a window is open: "Mon–Thu 09:00–17:00". Empty where its expression has
// none: days of the month, months, steps, or very many starts a day.
func describeTimes(expression string, duration time.Duration) string {
	fields := strings.Fields(expression)
	if len(fields) != 5 || !isEvery(fields[2]) || !isEvery(fields[3]) {
		return ""
	}
	minute, err := strconv.Atoi(fields[0])
	if err != nil {
		return ""
	}
	days, ok := describeDays(fields[4])
	hours := strings.Split(fields[1], ",")
	if !ok || len(hours) > maxDescribedStarts {
		return ""
	}
	var times []string
	for _, text := range hours {
		hour, err := strconv.Atoi(text)
		if err != nil {
			return ""
		}
		times = append(times, describeStretch(hour, minute, duration))
	}
	return days + " " + strings.Join(times, ", ")
}

// describeStretch is from when to when; one of a day and more, from when and for how long.
func describeStretch(hour, minute int, duration time.Duration) string {
	start := fmt.Sprintf("%02d:%02d", hour, minute)
	if duration >= 24*time.Hour || duration%time.Minute != 0 {
		return "from " + start + " for " + formatDuration(duration)
	}
	end := (hour*60 + minute + int(duration/time.Minute)) % (24 * 60)
	return fmt.Sprintf("%s–%02d:%02d", start, end/60, end%60)
}

// describeDays says in words on which days of the week something begins; false where it has none.
func describeDays(field string) (words string, ok bool) {
	if isEvery(field) {
		return "daily", true
	}
	var all []string
	for _, part := range strings.Split(field, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, known := describeDay(first)
		if !known {
			return "", false
		}
		if isRange {
			to, known := describeDay(last)
			if !known {
				return "", false
			}
			from += "–" + to
		}
		all = append(all, from)
	}
	return strings.Join(all, ", "), true
}

// describeDay is a day's short name; false for what is none.
func describeDay(text string) (name string, ok bool) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= len(weekdays) {
		text = weekdays[n%len(weekdays)] // 7 is Sunday too
	}
	text = strings.ToUpper(text)
	if !slices.Contains(weekdays, text) {
		return "", false
	}
	return text[:1] + strings.ToLower(text[1:]), true
}
