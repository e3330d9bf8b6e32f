package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/transport"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxMessage bounds what is repeated of the server's words.
const maxMessage = 500

// wrapError gives an error of the SDK its kind. resp may be nil.
func wrapError(op string, resp *sdk.Response, err error) error {
	var known *forge.Error
	if errors.As(err, &known) {
		return err
	}
	if refused := transport.RefusedCall(op, err); refused != nil {
		return refused
	}
	if between := transport.IntermediaryAnswer(op, err); between != nil {
		between.Message = clipMessage(between.Message)
		return between
	}
	if resp != nil && resp.Response != nil && resp.StatusCode/100 != 2 {
		return classifyResponse(op, resp, clipMessage(err.Error()), err)
	}
	e := &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	switch {
	case errors.Is(err, context.Canceled):
		e.Message = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "no answer in time"
	default:
		e.Message = clipMessage(err.Error())
	}
	return e
}

// responseError makes the error of an answer that the SDK only told the status of. The
// body can still be read: the transport has put it in memory.
func responseError(op string, resp *sdk.Response) *forge.Error {
	var said struct {
		Message string `json:"message"`
	}
	data, err := io.ReadAll(resp.Body)
	if err == nil && json.Unmarshal(data, &said) != nil {
		said.Message = string(data)
	}
	return classifyResponse(op, resp, clipMessage(said.Message), nil)
}

// classifyResponse reads the kind out of an answer.
func classifyResponse(op string, resp *sdk.Response, message string, cause error) *forge.Error {
	e := &forge.Error{Op: op, Kind: forge.ErrInvalid, Status: resp.StatusCode, Message: message, Err: cause}
	switch e.Status {
	case http.StatusUnauthorized:
		e.Kind, e.Hint = forge.ErrUnauthorized, "give Liftlock a valid token; this one is wrong, expired or revoked"
	case http.StatusForbidden, http.StatusLocked: // 423: the repository is archived
		e.Kind = forge.ErrForbidden
		if _, scopes, ok := strings.Cut(message, "required scope(s):"); ok {
			e.Hint = "the token needs the scope " + strings.TrimSpace(scopes)
		}
	case http.StatusNotFound, http.StatusGone:
		e.Kind = forge.ErrNotFound
	case http.StatusConflict, http.StatusPreconditionFailed: // 412: merged meanwhile
		e.Kind = forge.ErrConflict
	case http.StatusTooManyRequests:
		e.Kind = forge.ErrRateLimited // Gitea has no limits of its own; a proxy before it may
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

// clipMessage makes one bounded line of a text from outside.
func clipMessage(s string) string { return wording.ClipLine(s, maxMessage) }

// statusOf is the HTTP status behind an error; 0 when there was no answer.
func statusOf(err error) int {
	var e *forge.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
