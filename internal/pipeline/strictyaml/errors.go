package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxErrors bounds what is reported about one document: past it, a person reads
// the first ones and tries again.
const maxErrors = 100

// Error is one thing that is wrong at one place of a file.
type Error struct {
	File    string
	Line    int // from 1; 0 when it is about the whole file
	Column  int // from 1, in characters; 0 when unknown
	Message string
}

// Error is "file:line: message", or "file: message" about the whole file.
func (e Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Errors are all the errors of one or more files.
type Errors []Error

// Error is one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the errors as a person reads the files.
func (e Errors) Sort() {
	slices.SortFunc(e, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message))
	})
}

// Err sorts the errors and returns them as an error: nil when there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	e.Sort()
	e = slices.Compact(e) // a mapping that is merged twice reports its errors twice
	if len(e) > maxErrors {
		more := len(e) - maxErrors
		e = append(e[:maxErrors:maxErrors], Error{File: e[maxErrors].File, Message: fmt.Sprintf("and %d more errors", more)})
	}
	return e
}

// DropSameLineErrors leaves out the errors that are in a line of one of unread. An unreadable value
// there would be reported again as missing or out of bounds.
func DropSameLineErrors(errs, unread Errors) Errors {
	type line struct {
		file string
		line int
	}
	lines := map[line]bool{}
	for _, u := range unread {
		lines[line{u.File, u.Line}] = true
	}
	return slices.DeleteFunc(slices.Clone(errs), func(e Error) bool { return lines[line{e.File, e.Line}] })
}
