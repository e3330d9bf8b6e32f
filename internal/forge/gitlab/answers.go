package gitlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge/transport"
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
	return transport.ContentType(resp) != "application/json"
}

// notGitLabError is what becomes of an answer that isn't GitLab's.
func (d *Driver) notGitLabError(op string, resp *http.Response, said []byte) error {
	return transport.IntermediaryAnswer(op, &transport.IntermediaryError{Status: resp.StatusCode, What: d.clipMessage(transport.DescribeAnswer(resp, said))})
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
