package fieldedit

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RefusedError says that a file can't be read or edited surely. The file is
// untouched.
type RefusedError struct {
	File   string // from the repository's root; empty where the caller gave bytes only
	Line   int    // from 1; 0: the file as a whole
	Field  string // the path that was asked for; empty: none in particular
	Reason string // what is in the way and what to do
}

func (r *RefusedError) Error() string {
	var b strings.Builder
	switch {
	case r.File != "" && r.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", DisplayFileName(r.File), r.Line)
	case r.File != "":
		b.WriteString(DisplayFileName(r.File) + ": ")
	case r.Line > 0:
		fmt.Fprintf(&b, "line %d: ", r.Line)
	}
	if r.Field != "" {
		b.WriteString(r.Field + ": ")
	}
	return b.String() + r.Reason
}

// DisplayFileName is a file's name on one line, which a terminal shows and doesn't obey.
func DisplayFileName(file string) string {
	if utf8.ValidString(file) && !strings.ContainsFunc(file, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return file
	}
	return strconv.Quote(file)
}

func newRefusal(line int, format string, args ...any) error {
	return &RefusedError{Line: line, Reason: fmt.Sprintf(format, args...)}
}

// withLocation adds to a refusal where it happened, as far as that isn't known yet.
func withLocation(err error, file, field string) error {
	var r *RefusedError
	if !errors.As(err, &r) {
		return err
	}
	c := *r
	if c.File == "" {
		c.File = file
	}
	if c.Field == "" {
		c.Field = field
	}
	return &c
}

// MixedError says that the roots of one environment disagree about a field, so
// the environment has no one release.
type MixedError struct {
	Kind, Path string
	Found      []Location // at least two, with different values
}

func (m *MixedError) Error() string {
	at := joinTexts(m.Found, ", ", func(l Location) string {
		if l.Field.Kind == KindFile {
			return fmt.Sprintf("%s in %s", displayValue(l.Field.Kind, l.Field.Value), l.File)
		}
		return fmt.Sprintf("%q in %s:%d", l.Field.Value, l.File, l.Line)
	})
	what := m.Path
	if m.Kind == KindFile {
		what = m.Found[0].Field.File
	}
	return fmt.Sprintf("the environment's overlays disagree about %s: %s; make them the same", what, at)
}

// AbsentField is a field of a release that has no place in an environment.
type AbsentField struct {
	File   string // from the repository's root where the file exists, else relative to a root
	Field  Field
	Reason string
}

// AbsentError says which fields of a release the environment doesn't have,
// where the pipeline's whenAbsent refuses to add them or they can't be added.
type AbsentError struct{ Fields []AbsentField }

func (ae *AbsentError) Error() string {
	return joinTexts(ae.Fields, "; ", func(a AbsentField) string {
		what := a.File
		if a.Field.Path != "" {
			what += ": " + a.Field.Path
		}
		return what + " " + a.Reason
	})
}

// joinTexts is what a function says of every item, with a separator between.
func joinTexts[T any](all []T, sep string, text func(T) string) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = text(v)
	}
	return strings.Join(out, sep)
}

// ExtraError says which carried fields an environment has that the release
// doesn't, so that it can't come to carry exactly that release.
type ExtraError struct{ Found []Location }

func (e *ExtraError) Error() string {
	at := joinTexts(e.Found, "; ", func(l Location) string {
		if l.Field.Kind == KindFile {
			return l.File
		}
		return fmt.Sprintf("%s:%d: %s", l.File, l.Line, l.Path())
	})
	return fmt.Sprintf("the environment carries what the release doesn't: %s; add it at the source, remove it here, or (for whole files) "+
		"set whenAbsent: add", at)
}

// ChangedField is a field that was given another value after a promotion
// landed. The value of what wasn't there (New: before the promotion; Gone: now)
// is "". For a whole file the value "" says that it wasn't there.
type ChangedField struct {
	File, Kind, Path    string
	Line                int // in the file as it is now; 0 where the field is gone
	Before, Landed, Now string
	New, Gone           bool
}

func (c ChangedField) String() string {
	if c.Kind == KindFile {
		return fmt.Sprintf("%s: the file was %s before the promotion, %s with it, and is %s now",
			c.File, cmp.Or(c.Before, "absent"), cmp.Or(c.Landed, "absent"), cmp.Or(c.Now, "absent"))
	}
	before, now := fmt.Sprintf("was %q before", c.Before), fmt.Sprintf("is %q now", c.Now)
	if c.New {
		before = "wasn't there before"
	}
	if c.Gone {
		now = "is gone now"
	}
	place := c.File
	if c.Line > 0 {
		place = fmt.Sprintf("%s:%d", c.File, c.Line)
	}
	return fmt.Sprintf("%s: %s %s the promotion, %q with it, and %s", place, c.Path, before, c.Landed, now)
}

// ChangedError says that carried fields changed again since a promotion landed: undoing the
// promotion would undo another change.
type ChangedError struct{ Fields []ChangedField }

func (c *ChangedError) Error() string {
	return joinTexts(c.Fields, "; ", ChangedField.String) + ": decide by hand what it should be"
}
