package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// dialect is how GitHub refuses.
var dialect = rest.Dialect{Message: readMessage, Refine: refine, Hide: hideLimits}

// wrapError is rest.Wrap, and knows what go-github makes an error of that is none: an answer that
// says that there will be one.
func wrapError(op string, err error) error {
	if isAccepted(err) {
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Status: http.StatusAccepted,
			Message: "GitHub is still computing it", Err: err}
	}
	return rest.Wrap(op, err)
}

// isAccepted says that GitHub does what it was told, but hasn't yet.
func isAccepted(err error) bool {
	var accepted *gh.AcceptedError
	return errors.As(err, &accepted)
}

// readMessage is GitHub's own explanation: the message and what it says per field.
func readMessage(_ *http.Response, body []byte) string {
	var said gh.ErrorResponse
	if json.Unmarshal(body, &said) != nil {
		return said.Message
	}
	parts := []string{said.Message}
	for _, e := range said.Errors {
		switch {
		case e.Message != "":
			parts = append(parts, e.Message)
		case e.Field != "":
			parts = append(parts, e.Field+" "+e.Code)
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// refine tells what isn't there from what is refused, and what the credentials lack: GitHub hides
// what they may not see behind 404.
func refine(e *forge.Error, resp *http.Response) {
	switch {
	case e.Kind == forge.ErrForbidden, e.Kind == forge.ErrNotFound:
		e.Hint = scopeHint(resp.Header)
	case e.Kind == forge.ErrInvalid && strings.HasPrefix(e.Message, "No commit found"): // 422
		e.Kind = forge.ErrNotFound
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
			return fmt.Sprintf("the token has the scopes [%s] and needs one of [%s]", rest.ClipMessage(strings.Join(has, " ")),
				rest.ClipMessage(strings.Join(accepted, " ")))
		}
		return ""
	}
	if p := h.Get("X-Accepted-GitHub-Permissions"); p != "" {
		return "the token needs the permission " + rest.ClipMessage(p)
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
