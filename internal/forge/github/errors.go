package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/transport"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxMessage bounds what is repeated of GitHub's words.
const maxMessage = 500

// wrapError gives an error of go-github its kind. resp may be nil.
func wrapError(op string, resp *gh.Response, err error) error {
	if refused := transport.RefusedCall(op, err); refused != nil {
		return refused
	}
	if between := transport.IntermediaryAnswer(op, err); between != nil {
		between.Message = clipMessage(between.Message)
		return between
	}
	var own *forge.Error // of the credentials, before there was a call
	if errors.As(err, &own) {
		of := *own
		of.Op = op
		return &of
	}
	e := &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	var limited *gh.RateLimitError
	var secondary *gh.AbuseRateLimitError
	var accepted *gh.AcceptedError
	var answer *gh.ErrorResponse
	var otp *gh.TwoFactorAuthError
	switch {
	case errors.As(err, &limited):
		e.Kind, e.Status, e.Message, e.RetryAfter = forge.ErrRateLimited, http.StatusForbidden, clipMessage(limited.Message), transport.RetryTime(limited.Response.Header)
	case errors.As(err, &secondary):
		e.Kind, e.Status, e.Message, e.RetryAfter = forge.ErrRateLimited, http.StatusForbidden, clipMessage(secondary.Message), transport.RetryTime(secondary.Response.Header)
	case errors.As(err, &accepted):
		e.Status, e.Message = http.StatusAccepted, "GitHub is still computing it"
	case errors.As(err, &otp):
		e.Kind, e.Status, e.Message = forge.ErrUnauthorized, http.StatusUnauthorized, clipMessage(otp.Message)
	case errors.As(err, &answer):
		classifyResponse(e, answer)
	case errors.Is(err, context.Canceled):
		e.Message = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "no answer in time"
	default:
		if resp != nil && resp.Response != nil {
			e.Status = resp.StatusCode
		}
		e.Message = clipMessage(err.Error())
	}
	if e.Kind == forge.ErrUnauthorized {
		e.Hint = "give Liftlock a valid token; this one is wrong, expired or revoked"
	}
	return e
}

// classifyResponse reads the kind out of an answer.
func classifyResponse(e *forge.Error, answer *gh.ErrorResponse) {
	h := answer.Response.Header
	e.Status, e.Message, e.RetryAfter = answer.Response.StatusCode, errorMessage(answer), transport.RetryTime(h)
	if transport.IsLimited(answer.Response) {
		// Not every refusal carries the documentation link that go-github looks for.
		e.Kind = forge.ErrRateLimited
		return
	}
	switch e.Status {
	case http.StatusUnauthorized:
		e.Kind = forge.ErrUnauthorized
	case http.StatusForbidden:
		e.Kind, e.Hint = forge.ErrForbidden, scopeHint(h)
	case http.StatusNotFound, http.StatusGone:
		// GitHub hides what a token may not see behind 404.
		e.Kind, e.Hint = forge.ErrNotFound, scopeHint(h)
	case http.StatusConflict:
		e.Kind = forge.ErrConflict
	default:
		e.Kind = forge.ErrInvalid
		if e.Status >= 500 {
			e.Kind = forge.ErrRetryable
		} else if strings.HasPrefix(e.Message, "No commit found") { // 422
			e.Kind = forge.ErrNotFound
		}
	}
}

// scopeHint says which scope or permission the token lacks, where the headers
// allow it: classic tokens carry X-OAuth-Scopes, fine-grained ones are answered
// with X-Accepted-GitHub-Permissions.
func scopeHint(h http.Header) string {
	accepted := splitList(h.Get("X-Accepted-OAuth-Scopes"))
	if _, classic := h["X-Oauth-Scopes"]; classic && len(accepted) > 0 {
		has := splitList(h.Get("X-OAuth-Scopes"))
		if !slices.ContainsFunc(accepted, func(s string) bool { return slices.Contains(has, s) || coversScope(s, has) }) {
			return fmt.Sprintf("the token has the scopes [%s] and needs one of [%s]", clipMessage(strings.Join(has, " ")), clipMessage(strings.Join(accepted, " ")))
		}
		return ""
	}
	if p := h.Get("X-Accepted-GitHub-Permissions"); p != "" {
		return "the token needs the permission " + clipMessage(p)
	}
	return ""
}

// coversScope says whether a broader scope that the token has includes this one:
// "repo" includes "repo:status", "admin:repo_hook" includes "write:repo_hook".
func coversScope(scope string, has []string) bool {
	before, after, _ := strings.Cut(scope, ":")
	return slices.Contains(has, before) || after != "" && slices.Contains(has, "admin:"+after)
}

func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// errorMessage is GitHub's own explanation: the message and what it says per field.
func errorMessage(answer *gh.ErrorResponse) string {
	parts := []string{answer.Message}
	for _, e := range answer.Errors {
		switch {
		case e.Message != "":
			parts = append(parts, e.Message)
		case e.Field != "":
			parts = append(parts, e.Field+" "+e.Code)
		}
	}
	return clipMessage(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": "))
}

// clipMessage makes one bounded line of a text from outside.
func clipMessage(s string) string { return wording.ClipLine(s, maxMessage) }

// hasStatus says whether an error is an answer with this status.
func hasStatus(err error, status int) bool {
	var answer *gh.ErrorResponse
	return errors.As(err, &answer) && answer.Response.StatusCode == status
}

// messageContains tells whether GitHub's words contain a phrase, without regard to case.
func messageContains(err error, phrase string) bool {
	var answer *gh.ErrorResponse
	return errors.As(err, &answer) && strings.Contains(strings.ToLower(errorMessage(answer)), strings.ToLower(phrase))
}
