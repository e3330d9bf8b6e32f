package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// validation is what was found in files that were checked, and what it is as JSON.
type validation struct {
	Files    []string  `json:"files"`    // that were checked
	Problems []finding `json:"problems"` // with one, the exit code is 1
	Warnings []finding `json:"warnings"` // valid, and most likely not meant
	Notes    []finding `json:"notes"`    // what the checkout alone doesn't tell

	invalid map[string]error             // what is wrong with a file, in its words
	warned  map[string]strictyaml.Errors // by file
	found   []appset.Problem             // resolving; likewise unresolved
	left    []appset.Problem
}

// finding is one thing that was found.
type finding struct {
	File           string `json:"file"`           // as it was named, or from the checkout's root
	Line           int    `json:"line,omitempty"` // from 1; absent where it is about the whole file
	ApplicationSet string `json:"applicationSet,omitempty"`
	Application    string `json:"application,omitempty"`
	Message        string `json:"message"`
}

func newValidation() *validation {
	return &validation{Files: []string{}, Problems: []finding{}, Warnings: []finding{}, Notes: []finding{}, invalid: map[string]error{},
		warned: map[string]strictyaml.Errors{}}
}

// addFile notes what a file's check gave.
func (v *validation) addFile(file string, invalid error, warnings strictyaml.Errors) {
	v.Files = append(v.Files, file)
	v.warned[file] = warnings
	v.Warnings = append(v.Warnings, lineFindings(warnings)...)
	var lines strictyaml.Errors
	switch {
	case invalid == nil:
		return
	case errors.As(invalid, &lines):
		v.Problems = append(v.Problems, lineFindings(lines)...)
	default:
		v.Problems = append(v.Problems, finding{File: file, Message: invalid.Error()})
	}
	v.invalid[file] = invalid
}

// addResolution notes what resolving the files' pipelines gave.
func (v *validation) addResolution(problems, unresolved []appset.Problem) {
	v.found, v.left = problems, unresolved
	v.Problems = append(v.Problems, problemFindings(problems)...)
	v.Notes = append(v.Notes, problemFindings(unresolved)...)
}

func lineFindings(list strictyaml.Errors) []finding {
	var out []finding
	for _, e := range list {
		out = append(out, finding{File: e.File, Line: e.Line, Message: e.Message})
	}
	return out
}

func problemFindings(list []appset.Problem) []finding {
	var out []finding
	for _, p := range list {
		out = append(out, finding{File: p.File, ApplicationSet: p.ApplicationSet, Application: p.Application, Message: p.Message})
	}
	return out
}

// print writes it for people: what is well to out, the rest to errOut.
func (v *validation) print(out, errOut io.Writer) {
	for _, file := range v.Files {
		if err := v.invalid[file]; err != nil {
			fmt.Fprintln(errOut, err)
			continue
		}
		if len(v.found) == 0 {
			fmt.Fprintf(out, "%s: ok\n", file)
		}
		for _, e := range v.warned[file] {
			e.Message = "warning: " + e.Message
			fmt.Fprintln(errOut, e)
		}
	}
	for _, p := range appset.GroupProblems(v.found, appset.NameFew) {
		fmt.Fprintln(errOut, appset.PrintableLine(p.String()))
	}
	for _, p := range appset.GroupProblems(v.left, appset.NameFew) {
		fmt.Fprintln(errOut, "note: not resolved from the checkout alone: "+appset.PrintableLine(p.String()))
	}
}
