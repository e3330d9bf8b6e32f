package console

import (
	"fmt"
	"time"
)

// stateTones group the states by what they ask of a reader; each has a colour and,
// so that colour is never the only sign, a shape.
var stateTones = map[string]string{
	"verified": "ok", "merged": "ok", "pass": "ok",
	"verifying": "busy", "open": "busy", "absent": "busy", "arriving": "busy", "queued": "busy", "syncing": "busy", "refreshing": "busy",
	"progressing": "busy", "soaking": "busy",
	"waiting": "wait", "wait": "wait", "suspended": "wait", "unclear": "wait",
	"held":     "hold",
	"degraded": "bad", "failed": "bad", "fail": "bad", "unreadable": "bad",
	"reverting": "undo", "reverted": "undo", "quarantined": "undo",
	"diverged": "hand", "mixed": "hand",
	"taken": "ok", "refused": "bad",
}

// stateTone is the tone of a state; what isn't known is quiet.
func stateTone(state string) string {
	if t, ok := stateTones[state]; ok {
		return t
	}
	return "quiet"
}

// formatAge says how long before now a time was: "12 s", "5 min", "3 h", "4 d". A time
// that is still to come is told with "in".
func formatAge(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + formatDuration(-d)
	}
	return formatDuration(d)
}

func formatDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	}
	return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
}
