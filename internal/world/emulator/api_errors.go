package emulator

import (
	"fmt"
	"net/http"
)

// docsURL is what GitHub puts into every error.
const docsURL = "https://docs.github.com/rest"

// apiError is a refusal in GitHub's shape. Errors holds fieldErrors, or plain
// strings where GitHub's own validation answers with strings.
type apiError struct {
	Status  int         `json:"-"`
	Header  http.Header `json:"-"`
	Message string      `json:"message"`
	Errors  []any       `json:"errors,omitempty"`
	Docs    string      `json:"documentation_url"`
	Code    string      `json:"status"`
	body    any         // all of it, in GitLab's shape; nil: none was made
}

type fieldError struct {
	Resource string `json:"resource"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message,omitempty"`
}

// Error is the forge's words, for the callers of this package's methods.
func (a *apiError) Error() string {
	s := fmt.Sprintf("the forge answers %d: %s", a.Status, a.Message)
	for _, d := range a.Errors {
		if fe, ok := d.(fieldError); ok {
			s += fmt.Sprintf("; %s %s %s %s", fe.Resource, fe.Field, fe.Code, fe.Message)
		} else {
			s += fmt.Sprintf("; %v", d)
		}
	}
	return s
}

func newAPIError(status int, format string, args ...any) *apiError {
	return &apiError{Status: status, Message: fmt.Sprintf(format, args...)}
}

func notFound() *apiError { return newAPIError(http.StatusNotFound, "Not Found") }

func notPermitted(c *call) *apiError {
	by := "personal access token"
	if c.app != nil || c.token != nil {
		by = "integration"
	}
	return newAPIError(http.StatusForbidden, "Resource not accessible by %s", by)
}

// invalidField is GitHub's answer to a field that fails its validation.
func invalidField(resource, field, code, message string) *apiError {
	return &apiError{
		Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
		Errors: []any{fieldError{Resource: resource, Field: field, Code: code, Message: message}},
	}
}
