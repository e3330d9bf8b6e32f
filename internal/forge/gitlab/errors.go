package gitlab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// scopeHint is what to do where the token's scopes are too small.
const scopeHint = "the token needs the scope api"

// readMessage reads GitLab's words out of a refusal: a text, a list of them, or either by field.
// For a web page it says that it is one.
func readMessage(resp *http.Response, body []byte) string {
	var said map[string]any
	if json.Unmarshal(body, &said) != nil {
		if rest.ContentType(resp) == "text/html" {
			return rest.DescribeAnswer(resp, body)
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

// refine says what a token lacks, and of which calls a limit is.
func refine(e *forge.Error, resp *http.Response) {
	switch {
	case e.Kind == forge.ErrRateLimited:
		e.OnlyLower = isOfEndpoint(resp, []byte(e.Message))
	case e.Kind == forge.ErrForbidden &&
		(strings.Contains(e.Message, "insufficient_scope") || strings.Contains(e.Message, "higher privileges")):
		e.Hint = scopeHint
	}
}

// hideLink keeps the client from a header that nothing here goes by, and on which it panics where a
// proxy wrote it.
func hideLink(h http.Header) { h.Del("Link") }

// isMissingProject says that an answer is about the project, not about something in it.
func isMissingProject(err error) bool {
	return rest.StatusOf(err) == http.StatusNotFound && rest.Says(err, "Project Not Found")
}
