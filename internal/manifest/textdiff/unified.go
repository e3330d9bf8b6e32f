package textdiff

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// contextLines is how many lines around a difference are shown, as in git.
	contextLines = 3
	// binaryProbeBytes is how far into a file git looks for a NUL, which makes it binary.
	binaryProbeBytes = 8000
)

// Mode is a file's mode as git writes it; 0: the file isn't there.
type Mode uint32

// File is one side of a file: its content and its mode.
type File struct {
	Data []byte
	Mode Mode
}

// Unified is what git diff prints for a file that changed from one state to
// another, without the line with the contents' ids: git apply takes it. It is
// empty where nothing differs. Contents come as they are: who shows them on a
// terminal makes them printable.
func Unified(name string, was, is File) string {
	if was.Mode == is.Mode && bytes.Equal(was.Data, is.Data) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git a/%s b/%s\n", name, name)
	from, to := "a/"+name, "b/"+name
	switch {
	case was.Mode == 0:
		fmt.Fprintf(&b, "new file mode %06o\n", is.Mode)
		from = "/dev/null"
	case is.Mode == 0:
		fmt.Fprintf(&b, "deleted file mode %06o\n", was.Mode)
		to = "/dev/null"
	case was.Mode != is.Mode:
		fmt.Fprintf(&b, "old mode %06o\nnew mode %06o\n", was.Mode, is.Mode)
	}
	b.WriteString(Contents(from, to, was.Data, is.Data))
	return b.String()
}

// Contents is the part of Unified that shows how contents differ, under the names
// "a/…" and "b/…", or "/dev/null". It is empty where nothing differs.
func Contents(from, to string, was, is []byte) string {
	switch {
	case bytes.Equal(was, is): // the mode alone, or an empty file
		return ""
	case isBinary(was) || isBinary(is):
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", formatHeaderName(from), formatHeaderName(to))
	old, recent := SplitLines(was), SplitLines(is)
	for _, group := range groupHunks(Hunks(old, recent)) {
		group.writeHunks(&b, old, recent)
	}
	return b.String()
}

// formatHeaderName is a name on a line of its own. git ends one with a space in it by a
// tab, so that it can't be taken for a time stamp.
func formatHeaderName(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryProbeBytes)], 0) >= 0
}

// SplitLines gives lines with their ends, so that a last line without one is another line.
func SplitLines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// hunkGroup is hunks that are shown together, because their contexts touch.
type hunkGroup []Hunk

func groupHunks(hunks []Hunk) []hunkGroup {
	var out []hunkGroup
	for _, h := range hunks {
		if n := len(out); n > 0 {
			if last := out[n-1][len(out[n-1])-1]; h.OldFrom-last.OldTo <= 2*contextLines {
				out[n-1] = append(out[n-1], h)
				continue
			}
		}
		out = append(out, hunkGroup{h})
	}
	return out
}

func (hg hunkGroup) writeHunks(b *strings.Builder, old, recent []string) {
	first, last := hg[0], hg[len(hg)-1]
	before, after := min(contextLines, first.OldFrom), min(contextLines, len(old)-last.OldTo)
	oldFrom, oldTo := first.OldFrom-before, last.OldTo+after
	newFrom, newTo := first.NewFrom-before, last.NewTo+after
	fmt.Fprintf(b, "@@ -%s +%s @@\n", formatRange(oldFrom, oldTo), formatRange(newFrom, newTo))
	at := oldFrom
	for _, h := range hg {
		writeLines(b, " ", old[at:h.OldFrom])
		writeLines(b, "-", old[h.OldFrom:h.OldTo])
		writeLines(b, "+", recent[h.NewFrom:h.NewTo])
		at = h.OldTo
	}
	writeLines(b, " ", old[at:oldTo])
}

// formatRange is a range of lines as git writes it: a length of 1 is left out, and an
// empty range is named by the line before it.
func formatRange(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(b *strings.Builder, mark string, lines []string) {
	for _, l := range lines {
		b.WriteString(mark)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
