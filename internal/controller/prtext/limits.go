package prtext

import (
	"strings"
	"time"
)

// All texts are bounded, whatever they are made from.
const (
	maxBody   = 65536 // GitHub's limit for bodies and comments, in characters; bytes are never fewer
	maxTitle  = 200   // GitHub takes 256 characters, Gitea 255 bytes
	maxStatus = 140   // GitHub's limit for a status description
	maxLabel  = 50    // GitHub's limit for a label's name

	maxName    = 100 // characters of a name: a release, a target, a cluster, a login
	maxValue   = 120 // of a field's value: a digest with its algorithm has 71
	maxAddress = 200 // of a field's address or a file's path
	// of who gave the commands for a promotion: where the store is lost, only they say so
	maxRequesters = 1000
	maxReason     = 600 // of a reason or a message
	maxLine       = 1000
	maxLines      = 300

	maxRows   = 50 // of a table or a list in a comment
	openRows  = 12 // of a body's, before the rest is folded: a reviewer has one screen
	maxFolded = 100
)

const cutNote = "\n\n*The rest was cut: a forge takes no longer text.*\n"

// truncateBody cuts a body at a line's end. Every line that this package writes stands
// for itself but for folds, which are closed.
func truncateBody(s string) string {
	if len(s) <= maxBody {
		return s
	}
	const closing = "\n\n</details>"
	const nested = 2 // folds in one another, at most
	s = s[:maxBody-len(cutNote)-nested*len(closing)]
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	open := strings.Count(s, "<details>") - strings.Count(s, "</details>")
	return s + strings.Repeat(closing, min(max(0, open), nested)) + cutNote
}

// formatTime is an absolute time for people; empty when it isn't known.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// formatDay is the day of a time for people; empty when it isn't known.
func formatDay(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// formatDuration is a length of time between two facts, in whole minutes.
func formatDuration(d time.Duration) string {
	d = d.Round(time.Minute)
	if d < time.Minute {
		return "less than a minute"
	}
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
