package proc

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	shownArgs   = 6    // arguments named in an error
	shownArg    = 80   // bytes of each
	shownStderr = 2000 // bytes of standard error named in an error
	minSecret   = 4    // shorter ones can't be replaced without garbling the text
)

// Error is a program that could not be started or did not end well.
type Error struct {
	Program string
	Args    []string // the first few, each cut, without secrets
	// ExitCode is the program's own; -1 when it was not started or was ended
	// by a signal.
	ExitCode   int
	Signal     string // the signal that ended it; empty when none did
	Stderr     string // the end of standard error, bounded, without secrets
	StderrHead string // its beginning, likewise; not part of the text
	Err        error  // why it was ended or not started; nil when it ended by itself
}

func newError(c Command, exit int, signal, stderr string, err error) *Error {
	e := &Error{Program: c.Program, ExitCode: exit, Signal: signal, Err: err}
	for i, a := range c.Args {
		if i == shownArgs {
			e.Args = append(e.Args, "…")
			break
		}
		// Redact first: a secret that is cut in half is not found any more.
		e.Args = append(e.Args, wording.Clip(Redact(a, c.Secrets), shownArg))
	}
	stderr = strings.TrimSpace(stderr)
	if len(stderr) > shownStderr {
		stderr = "…" + strings.ToValidUTF8(stderr[len(stderr)-shownStderr:], "")
	}
	e.Stderr = stderr
	return e
}

// Error names the program, how it ended and its last words.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(strings.Join(append([]string{e.Program}, quoteAll(e.Args)...), " "))
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	case e.Signal != "":
		fmt.Fprintf(&b, ": ended by signal %s", e.Signal)
	default:
		fmt.Fprintf(&b, ": exit code %d", e.ExitCode)
	}
	if e.Stderr != "" {
		b.WriteString(": " + e.Stderr)
	}
	return b.String()
}

// Unwrap gives the reason for the end: the context's error, ErrTooMuchOutput
// or the operating system's.
func (e *Error) Unwrap() error { return e.Err }

// quoteAll quotes what would otherwise not be readable as one argument.
func quoteAll(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
			out[i] = fmt.Sprintf("%q", a)
		}
	}
	return out
}

// Credentials that programs print without having been given them by us.
var (
	userinfoPattern      = regexp.MustCompile(`(://)[^/\s@'"]+@`)
	authorizationPattern = regexp.MustCompile(`(?i)(authorization:\s*)(\S+\s+)?\S+`)
)

// Redact replaces the secrets, the user information of URLs and the value of
// Authorization headers in s by "***".
func Redact(s string, secrets []string) string {
	all := append(environSecrets(), secrets...)
	// The longest first: a secret may contain another.
	sort.SliceStable(all, func(i, j int) bool { return len(all[i]) > len(all[j]) })
	for _, secret := range all {
		if len(secret) >= minSecret {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	s = authorizationPattern.ReplaceAllString(s, "${1}***")
	return userinfoPattern.ReplaceAllString(s, "${1}***@")
}
