package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	maxErrorBody    = 64 << 10
	maxErrorMessage = 500
)

// StatusError is an answer that isn't a success.
type StatusError struct {
	Code       int // HTTP's
	Message    string
	RetryAfter time.Duration // 0: the server didn't say
	source     string        // of the address and the token, for people
}

// Error says what Argo CD answered, and what to do about it.
func (s *StatusError) Error() string {
	text := fmt.Sprintf("Argo CD answers %d %s", s.Code, http.StatusText(s.Code))
	if s.Message != "" {
		text += ": " + s.Message
	}
	switch {
	case s.Code == http.StatusUnauthorized:
		text += "; the token of " + s.source + " is not accepted"
	case s.Code == http.StatusForbidden:
		text += "; allow it to Liftlock's account in argocd-rbac-cm"
	case s.Code >= 300 && s.Code < 400:
		text += "; the address of " + s.source + " is not where the API is"
	}
	return text
}

// IsNotFound says that there is no such thing.
func IsNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// IsForbidden says that the token may not do it.
func IsForbidden(err error) bool { return hasCode(err, http.StatusForbidden) }

func hasCode(err error, code int) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Code == code
}

// isPassing says that the same call may work a moment later.
func isPassing(err error) bool {
	var s *StatusError
	var permanent *backoff.PermanentError
	switch {
	case errors.As(err, &permanent), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &s):
		return s.Code == http.StatusTooManyRequests || s.Code >= 500
	}
	return true // the network's
}

// readError makes an error of an answer, without the token, should it be repeated there.
func (c *Client) readError(resp *http.Response) error {
	e := &StatusError{Code: resp.StatusCode, source: c.source}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return e // how it ended is known all the same
	}
	e.Message = c.hideToken(errorMessage(raw))
	return e
}

// hideToken takes the token out of a text from outside, and bounds the text.
func (c *Client) hideToken(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "[secret]")
	}
	return wording.ClipLine(text, maxErrorMessage)
}

// errorMessage reads the gateway's JSON; nothing of another's answer, such as a proxy's page.
func errorMessage(raw []byte) string {
	var e struct {
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return ""
	}
	if e.Message != "" {
		return e.Message
	}
	return e.Error
}
