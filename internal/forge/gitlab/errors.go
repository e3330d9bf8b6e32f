package gitlab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/xanzy/go-gitlab"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/transport"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxMessage bounds what is repeated of the server's words.
const maxMessage = 500

// scopeHint is what to do where the token's scopes are too small.
const scopeHint = "the token needs the scope api"

// wrapError gives an error of the client its kind. resp may be nil; said is the answer's body.
func (d *Driver) wrapError(op string, resp *sdk.Response, said []byte, err error) error {
	if resp != nil && resp.Response != nil && resp.StatusCode/100 != 2 {
		return classifyResponse(op, resp.Response, d.clipMessage(readMessage(resp.Response, said)), err)
	}
	if refused := transport.RefusedCall(op, err); refused != nil {
		return refused
	}
	e := &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	switch {
	case errors.Is(err, context.Canceled):
		e.Message = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "no answer in time"
	case resp != nil:
		e.Message = "GitLab's answer can't be read: " + d.clipMessage(err.Error())
	default:
		e.Message = d.clipMessage(err.Error())
	}
	return e
}

// readMessage reads GitLab's words out of a refusal: a text, a list of them, or either by field. Of
// a web page it is what that is.
func readMessage(resp *http.Response, body []byte) string {
	var said map[string]any
	if json.Unmarshal(body, &said) != nil {
		if transport.ContentType(resp) == "text/html" {
			return transport.DescribeAnswer(resp, body)
		}
		return string(body)
	}
	for _, name := range []string{"message", "error_description", "error"} {
		if v, ok := said[name]; ok {
			return flatten(v)
		}
	}
	return ""
}

// flatten writes a value of JSON as people read it.
func flatten(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, x := range v {
			parts = append(parts, flatten(x))
		}
	case map[string]any:
		for name, x := range v {
			parts = append(parts, name+" "+flatten(x))
		}
		slices.Sort(parts)
	default:
		return fmt.Sprint(v)
	}
	return strings.Join(parts, ", ")
}

// classifyResponse reads the kind out of an answer.
func classifyResponse(op string, resp *http.Response, message string, cause error) *forge.Error {
	e := &forge.Error{Op: op, Kind: forge.ErrInvalid, Status: resp.StatusCode, Message: message, Err: cause}
	switch e.Status {
	case http.StatusUnauthorized:
		e.Kind, e.Hint = forge.ErrUnauthorized, "give Liftlock a valid token; this one is wrong, expired or revoked"
	case http.StatusForbidden:
		e.Kind = forge.ErrForbidden
		if strings.Contains(message, "insufficient_scope") || strings.Contains(message, "higher privileges") {
			e.Hint = scopeHint
		}
	case http.StatusNotFound, http.StatusGone:
		e.Kind = forge.ErrNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		e.Kind = forge.ErrConflict
	case http.StatusTooManyRequests:
		e.Kind, e.OnlyLower = forge.ErrRateLimited, isOfEndpoint(resp, []byte(message))
	default:
		if e.Status >= 500 {
			e.Kind = forge.ErrRetryable
		}
	}
	if e.Kind == forge.ErrRateLimited || e.Kind == forge.ErrRetryable {
		e.RetryAfter = transport.RetryTime(resp.Header)
	}
	return e
}

// clipMessage makes one bounded line of a text from outside, without our own token.
func (d *Driver) clipMessage(s string) string {
	return wording.ClipLine(strings.ReplaceAll(s, d.token, "(the token)"), maxMessage)
}

// asError is the forge's error behind one; a zero one where there is none.
func asError(err error) *forge.Error {
	var e *forge.Error
	errors.As(err, &e)
	return cmp.Or(e, &forge.Error{})
}

// statusOf is the HTTP status behind an error; 0 when there was no answer.
func statusOf(err error) int { return asError(err).Status }

// isMissingProject says that an answer is about the project, not about something in it.
func isMissingProject(err error) bool {
	return statusOf(err) == http.StatusNotFound && strings.Contains(asError(err).Message, "Project Not Found")
}

// withHint adds to a call what would allow it, where GitLab itself doesn't say so.
func withHint(err error, hint string) error {
	if e := asError(err); e.Kind == forge.ErrForbidden && e.Hint == "" {
		e.Hint = hint
	}
	return err
}
