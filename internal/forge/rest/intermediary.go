package rest

import (
	"fmt"
	"html"
	"mime"
	"net/http"
	"regexp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// IntermediaryError is an answer of something between here and a forge's API: the login page of a proxy,
// say, often with status 200, or a firewall's that forbids.
type IntermediaryError struct {
	Status int
	What   string // what it is, in words
}

func (i *IntermediaryError) Error() string {
	return fmt.Sprintf("%s instead of the forge's answer (HTTP %d)", i.What, i.Status)
}

// intermediaryAnswer is the error of an answer that something in between gave. It has no Status: none of
// what the forge means by it is meant, least of all that something isn't there.
func intermediaryAnswer(status int, what string) *forge.Error {
	page := &IntermediaryError{status, what}
	return &forge.Error{Kind: intermediaryKind(status), Message: ClipMessage(page.Error()), Hint: intermediaryHint, Err: page}
}

// intermediaryHint is what to do where something in between answers.
const intermediaryHint = "see that the forge's url in the server's file is the forge's own, and that what is in between lets Liftlock " +
	"through to its API"

func intermediaryKind(status int) error {
	switch status {
	case http.StatusUnauthorized:
		return forge.ErrUnauthorized
	case http.StatusForbidden:
		return forge.ErrForbidden
	}
	return forge.ErrRetryable
}

// isOwnRefusal says that an answer may be what a forge's own proxy gives, in whatever form: that it is
// down, or asked for too much.
func isOwnRefusal(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError
}

// IsWebPage says that an answer is a web page, as nothing is that the API of GitHub or Gitea says.
func IsWebPage(resp *http.Response) bool {
	return resp.StatusCode/100 != 3 && !isOwnRefusal(resp) && ContentType(resp) == "text/html"
}

// IsNotJSON says that an answer with a content isn't JSON, which all is that the API of GitLab says.
func IsNotJSON(resp *http.Response) bool {
	isEmpty := resp.StatusCode == http.StatusNoContent || resp.StatusCode/100 == 3
	return !isEmpty && !isOwnRefusal(resp) && ContentType(resp) != "application/json"
}

// ContentType is an answer's, without its parameters; empty: it has none that can be read.
func ContentType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)<`)

// maxTitle bounds what is repeated of a page's title, or of a text.
const maxTitle = 80

// DescribeAnswer says in words what an answer is that isn't the forge's.
func DescribeAnswer(resp *http.Response, body []byte) string {
	switch t := ContentType(resp); {
	case len(body) == 0:
		return "nothing"
	case t == "text/html":
		if m := pageTitle.FindSubmatch(body); m != nil {
			return fmt.Sprintf("the web page %q", wording.ClipLine(html.UnescapeString(string(m[1])), maxTitle))
		}
		return "a web page"
	case t == "text/plain": // as GitLab's own Rack Attack forbids an address
		return fmt.Sprintf("the text %q", wording.ClipLine(string(body), maxTitle))
	case t == "":
		return "something of no type"
	default:
		return t
	}
}
