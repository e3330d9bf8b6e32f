package policies

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChecks(t *testing.T) {
	ci := Checks{Require: []string{"ci/*"}}
	fromBot := Checks{Require: []string{"ci/*"}, From: []string{"CI-bot"}}
	check := func(name, app string, state CheckState) Check {
		return Check{Name: name, App: app, State: state, Word: string(state)}
	}
	build, test := check("ci/build", "ci-bot", CheckPassed), check("ci/test", "ci-bot", CheckPassed)
	const nothing = "no check named ci/* has reported; is it spelt so?"
	for name, c := range map[string]struct {
		gate   Checks
		checks []Check
		want   Outcome
		reason string
	}{
		"all passed":                         {ci, []Check{test, build, check("lint", "x", CheckFailed)}, Pass, "passed: ci/build, ci/test"},
		"none":                               {ci, nil, Wait, nothing},
		"none of that name":                  {ci, []Check{check("lint", "x", CheckPassed)}, Wait, nothing},
		"one pattern of two matches":         {Checks{Require: []string{"ci/*", "e2e"}}, []Check{build}, Wait, "no check named e2e has reported; is it spelt so?"},
		"one isn't done":                     {ci, []Check{build, check("ci/test", "ci-bot", CheckPending)}, Wait, "not done: ci/test (pending)"},
		"one failed":                         {ci, []Check{build, check("ci/test", "ci-bot", CheckFailed), check("ci/x", "ci-bot", CheckPending)}, Fail, "failed: ci/test (failed); not done: ci/x (pending)"},
		"a state that nobody knows":          {ci, []Check{{Name: "ci/test", State: "odd", Word: "odd"}}, Fail, "failed: ci/test (odd)"},
		"skipped":                            {ci, []Check{check("ci/test", "ci-bot", CheckSkipped)}, Wait, "not done: ci/test (skipped), which needs allowSkipped"},
		"not done, where skipped is allowed": {Checks{Require: []string{"ci/*"}, AllowSkipped: true}, []Check{check("ci/test", "ci-bot", CheckPending)}, Wait, "not done: ci/test (pending)"},
		"skipped, which is allowed":          {Checks{Require: []string{"ci/*"}, AllowSkipped: true}, []Check{check("ci/test", "ci-bot", CheckSkipped)}, Pass, "passed: ci/test (skipped)"},
		"by whom it is asked for":            {fromBot, []Check{build}, Pass, "passed: ci/build"},
		"by somebody else":                   {fromBot, []Check{check("ci/build", "mallory", CheckPassed)}, Wait, "no check named ci/* from CI-bot has reported; is it spelt so?; by nobody who is asked: ci/build by mallory"},
		"somebody else's failure":            {fromBot, []Check{build, check("ci/build", "mallory", CheckFailed)}, Pass, "passed: ci/build"},
		"anybody's failure, from anybody":    {ci, []Check{build, check("ci/build", "mallory", CheckFailed)}, Fail, "failed: ci/build (failed)"},
		"Liftlock's own doesn't count":       {Checks{Require: []string{"*"}}, []Check{check("liftlock", "bot", CheckPending)}, Wait, "no check named * has reported; is it spelt so?"},
		"Liftlock's own doesn't block":       {Checks{Require: []string{"*"}}, []Check{check("liftlock", "bot", CheckPending), build}, Pass, "passed: ci/build"},
		"an app isn't a person of its name":  {Checks{Require: []string{"ci/*"}, From: []string{"ci[bot]"}}, []Check{check("ci/build", "ci", CheckPassed)}, Wait, "no check named ci/* from ci[bot] has reported; is it spelt so?; by nobody who is asked: ci/build by ci"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Gate{Checks: &c.gate}).Evaluate(Facts{Checks: c.checks, ChecksRead: true})
			if got.Gate != "checks" || got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %+v, want %s: %s", got, c.want, c.reason)
			}
			for want, doubt := range map[string]Facts{"the checks aren't read yet": {Checks: c.checks}, "the checks can't be read: 403": {Checks: c.checks, ChecksRead: true, ChecksErr: "403"}} {
				if got := (&Gate{Checks: &c.gate}).Evaluate(doubt); got.Outcome != Wait || got.Reason != want {
					t.Errorf("on doubt it says %+v, want %q", got, want)
				}
			}
		})
	}
}

// TestReleaseChecks holds what the commits by which a release landed before come to: all
// must pass, and whatever isn't known waits.
func TestReleaseChecks(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	on := func(environment string, minutes int, states ...CheckState) ReleaseChecks {
		c := ReleaseChecks{Environment: environment, Commit: "0123456789abcdef-of-" + environment, NextAt: at.Add(time.Duration(minutes) * time.Minute)}
		for _, s := range states {
			c.Checks = append(c.Checks, Check{Name: "smoke", App: "ci-bot", State: s, Word: string(s)})
		}
		return c
	}
	unknown := ReleaseChecks{Environment: "qa", Err: "403", NextAt: at.Add(5 * time.Minute)}
	untimed := on("eu", 0, CheckPending)
	untimed.NextAt = time.Time{}
	for name, c := range map[string]struct {
		known  []ReleaseChecks
		want   Outcome
		reason string
		next   int // in minutes; 0: never
	}{
		"nothing is read":             {nil, Wait, "the checks aren't read yet", 0},
		"passed":                      {[]ReleaseChecks{on("qa", 1, CheckPassed)}, Pass, "passed on 0123456789ab in qa", 0},
		"passed in both":              {[]ReleaseChecks{on("qa", 1, CheckPassed), on("perf", 2, CheckPassed)}, Pass, "passed on 0123456789ab in qa, 0123456789ab in perf", 0},
		"nothing has reported":        {[]ReleaseChecks{on("qa", 1)}, Wait, "0123456789ab in qa: no check named smoke has reported; is it spelt so?", 1},
		"passed in one of two":        {[]ReleaseChecks{on("qa", 1, CheckPassed), on("perf", 2, CheckPending)}, Wait, "0123456789ab in perf: not done: smoke (pending)", 2},
		"failed in one, not done yet": {[]ReleaseChecks{on("qa", 2, CheckFailed), on("perf", 1, CheckPending)}, Fail, "0123456789ab in qa: failed: smoke (failed); 0123456789ab in perf: not done: smoke (pending)", 1},
		"can't be read":               {[]ReleaseChecks{unknown}, Wait, "the checks can't be read: 403", 5},
		"it isn't said when again":    {[]ReleaseChecks{on("qa", 1, CheckPending), untimed}, Wait, "0123456789ab in qa: not done: smoke (pending); 0123456789ab in eu: not done: smoke (pending)", 1},
		"can't be read in one":        {[]ReleaseChecks{on("perf", 1, CheckPassed), unknown}, Wait, "the checks can't be read: 403", 5},
	} {
		t.Run(name, func(t *testing.T) {
			gate := &Gate{Checks: &Checks{Require: []string{"smoke"}, On: OnRelease}}
			// A status of the head is nothing to it.
			got := gate.Evaluate(Facts{ReleaseChecks: c.known, ChecksRead: true, Checks: []Check{{Name: "smoke", State: CheckPassed}}})
			if got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %+v, want %s: %s", got, c.want, c.reason)
			}
			next := time.Time{}
			if c.next > 0 {
				next = at.Add(time.Duration(c.next) * time.Minute)
			}
			if !got.Next.Equal(next) {
				t.Errorf("it is evaluated again at %s, want %s", got.Next, next)
			}
			if got := (&Gate{Checks: &Checks{Require: []string{"smoke"}}}).Evaluate(Facts{ReleaseChecks: c.known}); got.Outcome != Wait {
				t.Errorf("of the head it says %+v", got)
			}
		})
	}
}

func TestCheckPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"ci", "ci", true}, {"ci", "ci/x", false}, {"ci/*", "ci/", true}, {"ci/*", "ci/a/b", true}, {"ci/*", "xci/a", false}, {"*", "", true}, {"*/test", "a/test", true}, {"*/test", "a/tests", false},
		{"a*b*c", "a1b2c", true}, {"a*b*c", "a1c2b", false}, {"a*b*c", "axc", false}, {"a*a", "a", false}, {"a*a", "aa", true}, {"**", "x", true}, {"ci.", "cix", false}, {"[c]i", "ci", false},
	} {
		if got := matchesPattern(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
}

// TestUnmatchedChecks names the patterns for which a gate would wait for ever: what Liftlock itself
// says of a commit is no check that counts.
func TestUnmatchedChecks(t *testing.T) {
	c := &Checks{Require: []string{"ci/*", "smoke", "*"}}
	for name, given := range map[string]struct{ names, want []string }{
		"nothing reports":       {nil, []string{"ci/*", "smoke", "*"}},
		"one does":              {[]string{"ci/build"}, []string{"smoke"}},
		"all do":                {[]string{"smoke", "ci/build"}, nil},
		"only Liftlock reports": {[]string{ownCheck}, []string{"ci/*", "smoke", "*"}},
	} {
		if got := c.Unmatched(given.names); !slices.Equal(got, given.want) {
			t.Errorf("%s: nothing matches %q, want %q", name, got, given.want)
		}
	}
}

func TestCheckProblems(t *testing.T) {
	many := make([]string, 51)
	for i := range many {
		many[i] = "c" + strings.Repeat("i", i)
	}
	for want, gate := range map[string]Checks{
		"checks.require: at least one check's name is needed, like ci/*":                  {},
		"checks.require: 51 names are too many; at most 50":                               {Require: many},
		"checks.from: 51 logins are too many; at most 50":                                 {Require: []string{"ci"}, From: many},
		`checks.require[0]: " " is not a check's name`:                                    {Require: []string{" "}},
		`checks.require[0]: "c i" is not a check's name`:                                  {Require: []string{"c\ti"}},
		`checks.from[1]: " " is not a login; write it without @ and spaces`:               {Require: []string{"ci"}, From: []string{"ci-bot", ""}},
		`checks.on: "upstream" is neither head nor release`:                               {Require: []string{"ci"}, On: "upstream"},
		`checks.require[1]: "ci" is given twice`:                                          {Require: []string{"ci", "ci"}},
		"checks.require[0]: liftlock is Liftlock's own status, which waits for the gates": {Require: []string{"liftlock"}},
		`checks.from[0]: "@ci" is not a login; write it without @ and spaces`:             {Require: []string{"ci"}, From: []string{"@ci"}},
		"": {Require: []string{"ci"}, From: []string{"github-actions[bot]"}},
	} {
		got := ""
		if err := (&Gate{Checks: &gate}).Validate(); err != nil {
			got = err.Error()
		}
		if strings.ReplaceAll(got, `"" is not`, `" " is not`) != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

func FuzzChecks(f *testing.F) {
	f.Add("ci/*", "ci/build", "ci-bot", "passed")
	f.Add("a*b*c", "abc", "", "")
	f.Fuzz(func(t *testing.T, pattern, name, app, state string) {
		gate := Gate{Checks: &Checks{Require: []string{pattern}, From: []string{app}}}
		got := gate.Evaluate(Facts{ChecksRead: true, Checks: []Check{{Name: name, App: app, State: CheckState(state), Word: state}}})
		if got.Reason == "" || got.Outcome == Pass && (CheckState(state) != CheckPassed || name == ownCheck) {
			t.Fatalf("it says %+v", got)
		}
	})
}
