package doctor

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/liftlock/liftlock/internal/wording"
)

// Level says how bad a finding is.
type Level string

// The levels. Warn works, but less well, later or less safely than it could. Fail doesn't work.
// Unknown couldn't be read, so that nothing is known of it.
const (
	OK      Level = "ok"
	Warn    Level = "warn"
	Fail    Level = "fail"
	Unknown Level = "unknown"
)

// Finding is what was found of one thing.
type Finding struct {
	Code    Code   `json:"code"`
	Level   Level  `json:"level"`
	Where   string `json:"where"`          // what it is about: host, forge hub, repository acme/fleet
	Message string `json:"message"`        // how it is
	Cure    string `json:"cure,omitempty"` // what to change; empty: nothing
}

// Report is all that was found, in the order of the parts.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Count is how many findings have a level.
func (r *Report) Count(l Level) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Level == l {
			n++
		}
	}
	return n
}

// Codes are the codes of the findings that aren't ok, sorted, each once.
func (r *Report) Codes() []Code {
	var codes []Code
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Level != OK {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// The exit codes of a report.
const (
	ExitWell    = 0 // nothing fails, and all could be read
	ExitFails   = 1 // something doesn't work
	ExitUnknown = 3 // nothing fails of what could be read
)

// ExitCode is the program's.
func (r *Report) ExitCode() int {
	switch {
	case r.Count(Fail) > 0:
		return ExitFails
	case r.Count(Unknown) > 0:
		return ExitUnknown
	}
	return ExitWell
}

// maxShown bounds a line of text.
const maxShown = 1000

// printable makes one line of a text that a terminal can't act on: names and words come from
// outside.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, wording.ClipLine(text, maxShown))
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	word := map[Level]string{OK: "ok", Warn: "warn", Fail: "FAIL", Unknown: "unknown"}
	for i := range r.Findings {
		f := &r.Findings[i]
		if _, err := fmt.Fprintf(w, "%-8s%s: %s", word[f.Level], printable(f.Where), printable(f.Message)); err != nil {
			return err
		}
		if f.Level != OK {
			if _, err := fmt.Fprintf(w, " [%s]", f.Code); err != nil {
				return err
			}
		}
		if f.Cure != "" {
			if _, err := fmt.Fprintf(w, "\n        → %s", printable(f.Cure)); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d warn, %d FAIL, %d unknown\n", r.Count(OK), r.Count(Warn), r.Count(Fail), r.Count(Unknown))
	return err
}

// Document is the report for programs.
type Document struct {
	Report
	Counts map[Level]int `json:"counts"` // of findings; every level is there
}

// Document is the report as JSON has it.
func (r *Report) Document() Document {
	return Document{*r, map[Level]int{OK: r.Count(OK), Warn: r.Count(Warn), Fail: r.Count(Fail), Unknown: r.Count(Unknown)}}
}
