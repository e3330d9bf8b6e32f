package forge

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of failure that callers tell apart with errors.Is.
var (
	// ErrRetryable: the same call may succeed later (5xx, a broken connection).
	ErrRetryable = errors.New("the forge can't answer now")
	// ErrRateLimited: the same call may succeed after RetryAfter.
	ErrRateLimited = errors.New("the forge limits the rate of calls")
	// ErrConflict: the world moved; look again and decide again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrNotMergeable: the forge refuses the merge and says why.
	ErrNotMergeable = errors.New("not mergeable")
	// ErrForbidden: the credentials lack a permission. Needs a person.
	ErrForbidden = errors.New("forbidden")
	// ErrNotInstalled: Liftlock works there as an app, which isn't installed where the repository
	// is, isn't given it, or is suspended. It needs a person; RetryAfter is when the driver checks
	// again.
	ErrNotInstalled = errors.New("the app may not work there")
	// ErrUnauthorized: the credentials are wrong or expired. Needs a person.
	ErrUnauthorized = errors.New("credentials refused")
	// ErrNotFound: the thing does not exist (any more), or may not be seen.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the forge refuses the request as such.
	ErrInvalid = errors.New("refused by the forge")
	// ErrUnsupported: this forge, or its version, has no such thing.
	ErrUnsupported = errors.New("not supported by the forge")
	// ErrTooMany: there is more of it than is read.
	ErrTooMany = errors.New("more than can be read")
)

// Error is a failed call with what was being done and the forge's own words.
type Error struct {
	Op         string // "merge acme/fleet#12"
	Kind       error  // one of the Err values above
	Status     int    // HTTP status, 0 when there was no answer
	Message    string // the forge's words, bounded, without secrets
	Hint       string // what a person can do, where that is known ("the token needs the scope repo")
	RetryAfter time.Time
	OnlyLower  bool  // with ErrRateLimited: calls of a higher priority, or of another kind, may be made before RetryAfter
	Err        error // the cause; may be nil
}

// Error says what failed, why, and what to do.
func (e *Error) Error() string {
	s := e.Op + ": " + e.Kind.Error()
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is matches the error's kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// RetryAfter is when a failed call may be tried again, as the forge said it;
// zero when it said nothing.
func RetryAfter(err error) time.Time {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return time.Time{}
}

// LeavesHigher says that an error doesn't keep all calls from being made until RetryAfter: those
// of a higher priority, or of another kind, can be.
func LeavesHigher(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.OnlyLower
}

// IsRetryable says that the same call may succeed later without anybody's doing.
func IsRetryable(err error) bool {
	return errors.Is(err, ErrRetryable) || errors.Is(err, ErrRateLimited) || errors.Is(err, ErrConflict)
}
