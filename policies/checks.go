package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/liftlock/liftlock/internal/wording"
)

// Checks asks for commit statuses and check runs. Every pattern must match at least one, and
// all that match must have passed. Liftlock's own status never counts.
type Checks struct {
	// Names of checks: ci/*. A * matches any text, also none.
	Require []string `yaml:"require" json:"require" jsonschema:"required,minItems=1"`
	// Whose checks count, by login: github-actions[bot]. Not set: those of anybody who may write.
	From []string `yaml:"from" json:"from,omitempty"`
	// head: of the pull request's head. release: of the commits by which the release landed in each
	// environment of after.
	On string `yaml:"on" json:"on,omitempty" jsonschema:"enum=head,enum=release,default=head"`
	// A skipped check counts as passed.
	AllowSkipped bool `yaml:"allowSkipped" json:"allowSkipped,omitempty"`
}

// OnRelease reads the checks of the commits by which the release landed before.
const OnRelease = "release"

// ReleaseChecks are those on the commit by which the release landed in an environment.
type ReleaseChecks struct {
	Environment string
	Commit      string // empty where Err says that it isn't known
	Checks      []Check
	Err         string    // why they could not be read; then the gate waits
	NextAt      time.Time // when they are read again
}

// Check is what a program says of a commit. There is at most one of a name and app: the
// newest.
type Check struct {
	Name  string
	App   string // login of the account; of an app with its [bot]
	State CheckState
	Word  string // the forge's own for the state
}

// CheckState is how a check stands.
type CheckState string

// The states of a check. Any other counts as failed.
const (
	CheckPending CheckState = "pending"
	CheckPassed  CheckState = "passed"
	CheckSkipped CheckState = "skipped"
	CheckFailed  CheckState = "failed"
)

const (
	// ownCheck is Liftlock's own status, which says what the gates say.
	ownCheck = "liftlock"
	// maxCheckPatterns and maxCheckLength bound what is required, maxNamedChecks how many
	// are named in a reason.
	maxCheckPatterns = 50
	maxCheckLength   = 200
	maxNamedChecks   = 5
)

var _ evaluator = (*Checks)(nil)

func (*Checks) kindName() GateName { return GateChecks }

func (c *Checks) describe() string {
	s := "checks that pass: "
	if c.On == OnRelease {
		s = "checks that pass where the release landed before: "
	}
	s += strings.Join(c.Require, ", ")
	if len(c.From) > 0 {
		s += " from " + strings.Join(c.From, ", ")
	}
	return s
}

func (c *Checks) validate() []Problem {
	var problems []Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch n := len(c.Require); {
	case n == 0:
		add("checks.require", "at least one check's name is needed, like ci/*")
	case n > maxCheckPatterns:
		add("checks.require", "%d names are too many; at most %d", n, maxCheckPatterns)
	}
	for i, pattern := range c.Require {
		at := fmt.Sprintf("checks.require[%d]", i)
		switch {
		case strings.TrimSpace(pattern) == "" || len(pattern) > maxCheckLength || strings.ContainsFunc(pattern, unicode.IsControl):
			add(at, "%q is not a check's name", wording.ClipLine(pattern, maxCheckLength))
		case pattern == ownCheck:
			add(at, "%s is Liftlock's own status, which waits for the gates", ownCheck)
		case slices.Index(c.Require, pattern) < i:
			add(at, "%q is given twice", pattern)
		}
	}
	if c.On != "" && c.On != "head" && c.On != OnRelease {
		add("checks.on", "%q is neither head nor release", wording.ClipLine(c.On, maxCheckLength))
	}
	if len(c.From) > maxCheckPatterns {
		add("checks.from", "%d logins are too many; at most %d", len(c.From), maxCheckPatterns)
	}
	for i, login := range c.From {
		if login == "" || len(login) > maxCheckLength || strings.ContainsAny(login, " \t\r\n@/,") {
			add(fmt.Sprintf("checks.from[%d]", i), "%q is not a login; write it without @ and spaces",
				wording.ClipLine(login, maxCheckLength))
		}
	}
	return problems
}

// checkTally are the checks that count, by how they stand, and what is missing.
type checkTally struct {
	passed, pending, failed []string
	missing                 []string // patterns without a check
	notFrom                 []string // checks that match and are by nobody who is asked
}

func (c *Checks) evaluate(f Facts) Result {
	r := Result{Gate: c.kindName(), Outcome: Wait}
	switch {
	case c.On == OnRelease:
		c.evaluateOnRelease(f, &r)
	case f.ChecksErr != "":
		r.Reason = "the checks can't be read: " + f.ChecksErr
	case !f.ChecksRead:
		r.Reason = "the checks aren't read yet"
	default:
		r.Outcome, r.Reason = c.judgeChecks(f.Checks)
	}
	return r
}

// evaluateOnRelease passes where the checks of every commit by which the release landed
// before do. One that failed fails it, whatever is said of the others.
func (c *Checks) evaluateOnRelease(f Facts, r *Result) {
	if len(f.ReleaseChecks) == 0 {
		r.Reason = "the checks aren't read yet"
		return
	}
	outcome := Pass
	var reasons []string
	for _, on := range f.ReleaseChecks {
		one, why := Wait, "the checks can't be read: "+on.Err
		if on.Err == "" {
			one, why = c.judgeChecks(on.Checks)
			why = fmt.Sprintf("%s in %s: %s", wording.Short(on.Commit), on.Environment, why)
		}
		if one == Pass {
			continue
		}
		if reasons = append(reasons, why); outcome != Fail {
			outcome = one
		}
		r.Next = earliest(r.Next, on.NextAt)
	}
	if r.Outcome, r.Reason = outcome, strings.Join(reasons, "; "); outcome == Pass {
		commits := make([]string, len(f.ReleaseChecks))
		for i, on := range f.ReleaseChecks {
			commits[i] = fmt.Sprintf("%s in %s", wording.Short(on.Commit), on.Environment)
		}
		r.Reason = "passed on " + wording.JoinFew(commits, maxNamedChecks)
	}
}

// judgeChecks says what the checks on one commit come to, and why.
func (c *Checks) judgeChecks(checks []Check) (Outcome, string) {
	t := c.countChecks(checks)
	var reasons []string
	say := func(names []string, format string) {
		if len(names) > 0 {
			reasons = append(reasons, fmt.Sprintf(format, wording.JoinFew(names, maxNamedChecks)))
		}
	}
	say(t.failed, "failed: %s")
	say(t.pending, "not done: %s")
	if len(t.missing) > 0 {
		from := ""
		if len(c.From) > 0 {
			from = " from " + wording.JoinFew(c.From, maxNamedChecks)
		}
		reasons = append(reasons, fmt.Sprintf("no check named %s%s has reported; is it spelt so?",
			wording.JoinFew(t.missing, maxNamedChecks), from))
	}
	say(t.notFrom, "by nobody who is asked: %s")
	outcome := Wait
	switch {
	case len(t.failed) > 0:
		outcome = Fail
	case len(t.pending)+len(t.missing) == 0:
		return Pass, "passed: " + wording.JoinFew(t.passed, maxNamedChecks)
	}
	return outcome, strings.Join(reasons, "; ")
}

func (c *Checks) countChecks(checks []Check) checkTally {
	var t checkTally
	matched := make([]bool, len(c.Require))
	for _, k := range checks {
		wanted := false
		for i, pattern := range c.Require {
			if k.Name == ownCheck || !matchesPattern(pattern, k.Name) {
				continue
			}
			wanted = true
			matched[i] = matched[i] || c.isFrom(k.App)
		}
		name := fmt.Sprintf("%s (%s)", wording.ClipLine(k.Name, maxCheckLength), wording.ClipLine(k.Word, maxCheckLength))
		switch {
		case !wanted:
		case !c.isFrom(k.App):
			t.notFrom = append(t.notFrom, fmt.Sprintf("%s by %s", wording.ClipLine(k.Name, maxCheckLength),
				wording.ClipLine(k.App, maxCheckLength)))
		case k.State == CheckPassed:
			t.passed = append(t.passed, wording.ClipLine(k.Name, maxCheckLength))
		case k.State == CheckSkipped && c.AllowSkipped:
			t.passed = append(t.passed, name)
		case k.State == CheckPending:
			t.pending = append(t.pending, name)
		case k.State == CheckSkipped:
			t.pending = append(t.pending, name+", which needs allowSkipped")
		default:
			t.failed = append(t.failed, name)
		}
	}
	for i, pattern := range c.Require {
		if !matched[i] {
			t.missing = append(t.missing, pattern)
		}
	}
	for _, list := range []([]string){t.passed, t.pending, t.failed, t.notFrom} {
		slices.Sort(list)
	}
	return t
}

// isFrom says whether an account's checks count.
func (c *Checks) isFrom(app string) bool { return len(c.From) == 0 || containsLogin(c.From, app) }

// Unmatched are the patterns that none of some checks' names matches: such a gate waits.
func (c *Checks) Unmatched(names []string) []string {
	var out []string
	for _, pattern := range c.Require {
		if !slices.ContainsFunc(names, func(name string) bool { return name != ownCheck && matchesPattern(pattern, name) }) {
			out = append(out, pattern)
		}
	}
	return out
}

// matchesPattern says whether a name is as a pattern has it, in which each * stands for
// any text. The slash is no border: what isn't matched isn't required.
func matchesPattern(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, last)
}
