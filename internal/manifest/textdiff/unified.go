package textdiff

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// context is how many lines around a difference are shown, as in git.
	context = 3
	// binaryLook is how far into a file git looks for a NUL, which makes it binary.
	binaryLook = 8000
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
	same := bytes.Equal(was.Data, is.Data)
	if same && was.Mode == is.Mode {
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
	switch {
	case same: // the mode alone, or an empty file
		return b.String()
	case binary(was.Data) || binary(is.Data):
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", from, to)
		return b.String()
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", title(from), title(to))
	old, recent := lines(was.Data), lines(is.Data)
	for _, group := range grouped(Hunks(old, recent)) {
		group.write(&b, old, recent)
	}
	return b.String()
}

// title is a name on a line of its own. git ends one with a space in it by a
// tab, so that it can't be taken for a time stamp.
func title(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func binary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryLook)], 0) >= 0
}

// lines keep their ends, so that a last line without one is another line.
func lines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// group is hunks that are shown together, because their contexts touch.
type group []Hunk

func grouped(hunks []Hunk) []group {
	var out []group
	for _, h := range hunks {
		if n := len(out); n > 0 {
			if last := out[n-1][len(out[n-1])-1]; h.OldFrom-last.OldTo <= 2*context {
				out[n-1] = append(out[n-1], h)
				continue
			}
		}
		out = append(out, group{h})
	}
	return out
}

func (g group) write(b *strings.Builder, old, recent []string) {
	first, last := g[0], g[len(g)-1]
	before, after := min(context, first.OldFrom), min(context, len(old)-last.OldTo)
	oldFrom, oldTo := first.OldFrom-before, last.OldTo+after
	newFrom, newTo := first.NewFrom-before, last.NewTo+after
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldFrom, oldTo), span(newFrom, newTo))
	at := oldFrom
	for _, h := range g {
		put(b, " ", old[at:h.OldFrom])
		put(b, "-", old[h.OldFrom:h.OldTo])
		put(b, "+", recent[h.NewFrom:h.NewTo])
		at = h.OldTo
	}
	put(b, " ", old[at:oldTo])
}

// span is a range of lines as git writes it: a length of 1 is left out, and an
// empty range is named by the line before it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func put(b *strings.Builder, mark string, lines []string) {
	for _, l := range lines {
		b.WriteString(mark)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
