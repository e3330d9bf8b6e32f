package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// MaxMessage bounds what is repeated of a forge's words, in bytes.
const MaxMessage = 500

// ClipMessage makes one bounded line of a text from outside.
func ClipMessage(s string) string { return wording.ClipLine(s, MaxMessage) }

// Dialect is how a forge's own answers differ from the others'.
type Dialect struct {
	// Message reads the forge's words out of a refusal.
	Message func(resp *http.Response, body []byte) string
	// Refine corrects what the table says of a refusal, and says what a person can do about it.
	Refine func(e *forge.Error, resp *http.Response)
	// Hide changes the headers that the SDK would make of an answer what it is not; nil: none.
	Hide func(http.Header)
}

// NewClient is New for an SDK that needs no refusals: what isn't a success, nor a redirect, is the
// error that Wrap gives an operation.
func NewClient(p Protocol, d Dialect) (*http.Client, *Budget) {
	client, budget := New(p)
	client.Transport = &refuser{next: client.Transport, dialect: d, redact: p.redact}
	return client, budget
}

// redact takes the token out of a text.
func (o *Options) redact(s string) string {
	if o.Token == "" {
		return s
	}
	return strings.ReplaceAll(s, o.Token, "(the token)")
}

// refuser makes errors of refusals.
type refuser struct {
	next    http.RoundTripper
	dialect Dialect
	redact  func(string) string
}

// RoundTrip implements http.RoundTripper.
func (r *refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	isRedirect := resp.StatusCode/100 == 3 && resp.Header.Get("Location") != ""
	if resp.StatusCode/100 == 2 || isRedirect {
		if r.dialect.Hide != nil {
			r.dialect.Hide(resp.Header)
		}
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body) // it is in memory already
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	e := classify(resp)
	e.Message = ClipMessage(r.redact(r.dialect.Message(resp, body)))
	r.dialect.Refine(e, resp)
	return nil, e
}

// invalidToken is what to do where the credentials aren't taken.
const invalidToken = "give Liftlock a valid token; this one is wrong, expired or revoked"

// classify is the table of refusals: what each status means, whichever forge it comes from.
func classify(resp *http.Response) *forge.Error {
	e := &forge.Error{Kind: forge.ErrInvalid, Status: resp.StatusCode, RetryAfter: RetryTime(resp.Header)}
	switch e.Status {
	case http.StatusUnauthorized:
		e.Kind, e.Hint = forge.ErrUnauthorized, invalidToken
	case http.StatusForbidden:
		e.Kind = forge.ErrForbidden
	case http.StatusNotFound, http.StatusGone: // also what the credentials may not see
		e.Kind = forge.ErrNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		e.Kind = forge.ErrConflict
	}
	switch {
	case IsLimited(resp) || e.Status == http.StatusTooManyRequests:
		// Not every refusal for the number of calls has a status of its own: GitHub's is often 403.
		e.Kind, e.Hint = forge.ErrRateLimited, ""
	case e.Status >= http.StatusInternalServerError:
		e.Kind = forge.ErrRetryable
	}
	return e
}

// Wrap is the error of an operation that failed; nil where err is. A refusal of the forge, and the
// reason why a call wasn't made, have their kind already; an error that has its operation keeps it.
// Any other failure may pass.
func Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *forge.Error
	var own placeError
	if errors.As(err, &own) {
		return own.error
	}
	if errors.As(err, &known) {
		if known.Op != "" && err == error(known) {
			return known
		}
		of := *known // credentials name the operation of theirs
		of.Op = op
		return &of
	}
	e := &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	switch {
	case errors.Is(err, context.Canceled):
		e.Message = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "no answer in time"
	default:
		e.Message = ClipMessage(err.Error())
	}
	return e
}

// ErrorOf is the forge's error behind one, to be read or to be corrected; a zero one where there is
// none.
func ErrorOf(err error) *forge.Error {
	var e *forge.Error
	if errors.As(err, &e) {
		return e
	}
	return &forge.Error{}
}

// StatusOf is the HTTP status of a refusal; 0 where there was none.
func StatusOf(err error) int { return ErrorOf(err).Status }

// Says tells whether the words of a refusal contain a phrase, without regard to case.
func Says(err error, phrase string) bool {
	return strings.Contains(strings.ToLower(ErrorOf(err).Message), strings.ToLower(phrase))
}

// AddHint says what would allow a call that is forbidden, where the forge itself doesn't.
func AddHint(err error, hint string) error {
	if e := ErrorOf(err); e.Kind == forge.ErrForbidden && e.Hint == "" {
		e.Hint = hint
	}
	return err
}
