package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what govulncheck says of one hole: its package linked in, and called or not.
func said(called bool) string {
	out := `{"config": {"go_version": "go1.26.11"}}
{"osv": {"id": "GO-2026-1", "summary": "A hole"}}
{"finding": {"osv": "GO-2026-1", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/a", "version": "v1.1.0"}]}}
{"finding": {"osv": "GO-2026-1", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b"}]}}
`
	if called {
		out += `{"finding": {"osv": "GO-2026-1", "fixed_version": "v1.2.0", "trace": [
			{"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b", "function": "Read", "receiver": "*R"},
			{"module": "example.com/own", "package": "example.com/own", "function": "main"}]}}
`
	}
	return out
}

func TestFindProblems(t *testing.T) {
	entry := allowed{ID: "GO-2026-1", Module: "example.com/a", Reason: "it is not reached", Until: "a 1.2 builds", Fixed: "v1.2.0"}
	change := func(f func(*allowed)) []allowed {
		e := entry
		f(&e)
		return []allowed{e}
	}
	const hole = "GO-2026-1 in example.com/a v1.1.0: A hole; fixed in v1.2.0"
	const moduleOnly = `{"config": {"go_version": "go1.26.11"}}
{"finding": {"osv": "GO-2026-1", "trace": [{"module": "example.com/a", "version": "v1.1.0"}]}}`
	for name, c := range map[string]struct {
		said string
		list []allowed
		want []string
	}{
		"linked in, and not let be":       {said(false), nil, []string{hole + "; it is linked in"}},
		"linked in, and let be":           {said(false), []allowed{entry}, nil},
		"called, and not let be":          {said(true), nil, []string{hole + "; it is called: example.com/a/b.*R.Read, by example.com/own..main"}},
		"called, and let be as linked in": {said(true), []allowed{entry}, []string{hole + "; it is called: example.com/a/b.*R.Read, by example.com/own..main"}},
		"called, and let be":              {said(true), change(func(a *allowed) { a.Called = true }), nil},
		"let be in another module": {said(false), change(func(a *allowed) { a.Module = "example.com/c" }), []string{hole + "; it is linked in",
			"GO-2026-1 in example.com/c is let be and isn't linked in any more: take it out of the list"}},
		"let be while there was no fix": {said(false), change(func(a *allowed) { a.Fixed = "" }), []string{hole + `; when it was let be the fix was "": upgrade, or say why not`}},
		"nothing of its module linked":  {moduleOnly, nil, nil},
		"let be, and nothing linked":    {moduleOnly, []allowed{entry}, []string{"GO-2026-1 in example.com/a is let be and isn't linked in any more: take it out of the list"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := parseReport(strings.NewReader(c.said))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, findProblems(r, c.list)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReportOfAScanThatDidNotRun(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "no configuration": "{}", "cut off": `{"config": {"go_ver`} {
		t.Run(name, func(t *testing.T) {
			if r, err := parseReport(strings.NewReader(text)); err == nil {
				t.Errorf("it counts as a report: %+v", r)
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	raw, err := os.ReadFile("allowed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseAllowed(raw); err != nil {
		t.Error(err)
	}
	const whole = "{id: GO-1, module: a, reason: because, until: then}"
	for name, text := range map[string]string{
		"no reason":   "- {id: GO-1, module: a, until: then}",
		"no end":      "- {id: GO-1, module: a, reason: because}",
		"unknown key": "- {id: GO-1, module: a, reason: because, until: then, forever: true}",
		"twice":       "- " + whole + "\n- " + whole,
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := parseAllowed([]byte(text)); err == nil {
				t.Errorf("it is taken: %+v", list)
			}
		})
	}
}
