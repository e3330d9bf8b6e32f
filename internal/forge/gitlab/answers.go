package gitlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"regexp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// answerKeeper keeps what the client doesn't give out of an answer: what a refusal says, which it
// leaves out of a 404, and what is said where no answer of GitLab's is. It is kept for the call
// whose context carries an answerKey. It also takes off the header Link, which nothing here goes by
// and on which the client panics where a proxy wrote it.
type answerKeeper struct{ next http.RoundTripper }

type answerKey struct{}

func (k answerKeeper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Link")
	kept, ok := req.Context().Value(answerKey{}).(*[]byte)
	if !ok || resp.StatusCode < http.StatusBadRequest && !isNotGitLabs(resp) {
		return resp, nil
	}
	if *kept, err = io.ReadAll(resp.Body); err != nil { // it is in memory already
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(*kept))
	return resp, nil
}

// isNotGitLabs says that an answer comes from something in between, a proxy's login page, say: all
// that GitLab's API says is JSON, but for what its own proxy refuses (429, 5xx).
func isNotGitLabs(resp *http.Response) bool {
	switch {
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode/100 == 3,
		resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return false
	}
	return contentType(resp) != "application/json"
}

// contentType is an answer's, without its parameters; empty: it has none that can be read.
func contentType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// notGitLabError is what becomes of an answer that isn't GitLab's. It has no Status: none of what
// GitLab means by it is meant, least of all that something isn't there.
func (d *Driver) notGitLabError(op string, resp *http.Response, said []byte) error {
	e := &forge.Error{Op: op, Kind: forge.ErrRetryable,
		Message: fmt.Sprintf("%s instead of GitLab's answer (HTTP %d)", d.clipMessage(describeBody(resp, said)), resp.StatusCode),
		Hint:    "see that the forge's url in the server's file is GitLab's own, and that what is in between lets Liftlock through to its API",
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		e.Kind = forge.ErrUnauthorized
	case http.StatusForbidden:
		e.Kind = forge.ErrForbidden
	}
	return e
}

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)<`)

// maxTitle bounds what is repeated of a page's title, or of a text.
const maxTitle = 80

// describeBody says what an answer is that isn't GitLab's.
func describeBody(resp *http.Response, said []byte) string {
	switch t := contentType(resp); {
	case len(said) == 0:
		return "nothing"
	case t == "text/html":
		if m := pageTitle.FindSubmatch(said); m != nil {
			return fmt.Sprintf("the web page %q", wording.ClipLine(html.UnescapeString(string(m[1])), maxTitle))
		}
		return "a web page"
	case t == "text/plain": // as GitLab's own Rack Attack forbids an address
		return fmt.Sprintf("the text %q", wording.ClipLine(string(said), maxTitle))
	case t == "":
		return "something of no type"
	default:
		return t
	}
}

// checkedJSON reads an answer into what it is to fill, and refuses one that leaves that empty: what
// GitLab doesn't say would be taken for what isn't so.
type checkedJSON struct{ into any }

func (a *checkedJSON) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return errors.New("it is null")
	}
	if err := json.Unmarshal(data, a.into); err != nil {
		return err
	}
	return complete(a.into)
}

// complete says what a part of an answer lacks of what it can't be understood without.
func complete(part any) error {
	p, ok := part.(interface{ missing() string })
	if !ok {
		return nil
	}
	if what := p.missing(); what != "" {
		return errors.New("it lacks " + what)
	}
	return nil
}
