package git

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/liftlock/liftlock/internal/proc"
)

// The kinds of failure that callers tell apart with errors.Is.
var (
	// ErrLeaseLost: the remote branch is not what the push expected. Look
	// again and decide again.
	ErrLeaseLost = errors.New("the remote branch has moved")
	// ErrUnknownCommit: the mirror has no such commit (yet); a fetch may bring it.
	ErrUnknownCommit = errors.New("unknown commit")
	// ErrRemote: the remote can't be reached or does not answer as it should;
	// the same call may succeed later.
	ErrRemote = errors.New("the remote can't be used now")
	// ErrAuth: the credentials are missing, wrong or lack a permission. Needs a person.
	ErrAuth = errors.New("credentials refused")
	// ErrNoRepository: there is no repository at the URL, or these credentials
	// may not see it. Needs a person.
	ErrNoRepository = errors.New("no such repository")
	// ErrRejected: the remote refuses this push (branch protection, a hook), or
	// sends objects that git's own checks refuse. Needs a person.
	ErrRejected = errors.New("refused")
	// ErrCorrupt: the repository on this machine is damaged. A mirror is made
	// anew by the next Fetch.
	ErrCorrupt = errors.New("the repository on this machine is damaged")
	// ErrTooLarge: past one of this package's limits.
	ErrTooLarge = errors.New("too large")
	// ErrNotFollowed: a symbolic link or a submodule, or a path through one.
	ErrNotFollowed = errors.New("a symbolic link or submodule, which is not followed")
	// ErrInvalid: an argument that can't be meant: not a full commit id, not a
	// branch name, not a path that may be written.
	ErrInvalid = errors.New("invalid")
)

// Error is a failed operation on a mirror.
type Error struct {
	Op   string // "push liftlock/shop/qa/web to https://git.example/acme/fleet.git"
	Kind error  // one of the Err values above; nil when it is none of them
	Hint string // what to do, where that is known
	Err  error  // the cause, without secrets; may be nil
}

// Error says what failed, why, and what to do.
func (e *Error) Error() string {
	parts := []string{e.Op}
	if e.Kind != nil {
		parts = append(parts, e.Kind.Error())
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	s := strings.Join(parts, ": ")
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// HintOf is what an error's hint says; empty where there is none.
func HintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// Is matches the error's kind.
func (e *Error) Is(target error) bool { return e.Kind != nil && target == e.Kind }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// These say what to do about a remote's refusals.
const (
	authHint         = "check that the token is valid and may read and write this repository"
	noRepositoryHint = "check the repository's name and that the token may see it"
	redirectHint     = "redirects are not followed, because credentials would go along: configure the address that it redirects to"
	tooLongHint      = "it took longer than the timeout of one git call"
)

// remoteFailures tell by git's messages (in English, LC_ALL is C) what kind of
// failure a fetch or push met. The first that matches counts.
var remoteFailures = []struct {
	match *regexp.Regexp
	kind  error
	hint  string
}{
	{regexp.MustCompile(`fsck error`), ErrRejected,
		"the repository holds objects that git's own checks refuse; see git help fsck"},
	{regexp.MustCompile(
		`Authentication failed|could not read (Username|Password)|returned error: (401|403|407)|HTTP Basic: Access denied|Permission denied`), ErrAuth,
		authHint},
	{regexp.MustCompile(`repository '.*' not found|returned error: 404|does not appear to be a git repository|Repository not found`),
		ErrNoRepository,
		noRepositoryHint},
	{regexp.MustCompile(`returned error: 30[12378]|unable to update url base from redirection`), ErrRemote,
		redirectHint},
}

// damagePattern are messages that can come from a damaged mirror. They can also come
// from a damaged remote, so they are only a reason to check.
var damagePattern = regexp.MustCompile(
	`is corrupt|object file .* is empty|bad object|unable to read|missing (blob|tree|commit)|necessary objects|loose object|inflate|packfile|unable to resolve reference|bad pack|index file|unable to (find|parse|load)|broken ref|bad signature|commit-graph`)

// remoteError classifies the failure of a git command that talks to the
// remote. A context that the caller has ended stays recognisable.
func remoteError(ctx context.Context, op string, err error) *Error {
	e := &Error{Op: op, Kind: ErrRemote, Err: err}
	if ctx.Err() != nil {
		e.Kind = nil
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Hint = tooLongHint
		return e
	}
	text := stderrOf(err)
	for _, f := range remoteFailures {
		if f.match.MatchString(text) {
			e.Kind, e.Hint = f.kind, f.hint
			return e
		}
	}
	return e
}

// maybeDamaged says whether a failed command's own words (not the remote's)
// hint at a damaged mirror.
func maybeDamaged(err error) bool {
	for line := range strings.Lines(stderrOf(err)) {
		if !strings.HasPrefix(line, "remote:") && damagePattern.MatchString(line) {
			return true
		}
	}
	return false
}

func stderrOf(err error) string {
	var pe *proc.Error
	if errors.As(err, &pe) {
		return pe.Stderr
	}
	return ""
}

func exitCode(err error) int {
	var pe *proc.Error
	if errors.As(err, &pe) {
		return pe.ExitCode
	}
	return -1
}

func signalOf(err error) string {
	var pe *proc.Error
	if errors.As(err, &pe) {
		return pe.Signal
	}
	return ""
}
