package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/cache/lock"
)

const (
	// callTimeout bounds one call, its answer read. Forges give up themselves
	// after 10 s (GitHub) to 60 s (usual proxies).
	callTimeout = 60 * time.Second

	// maxResponseBytes is the largest answer that is read. A page of a hundred pull
	// requests with the longest bodies (64 kB each) stays below.
	maxResponseBytes = 16 << 20

	// maxRedirects is enough for a repository that was renamed twice.
	maxRedirects = 3
)

// ErrTooLarge is an answer beyond the limit.
var ErrTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxResponseBytes)

// Credentials are the value that proves to a forge who calls it, where one doesn't do for
// ever. It may be used concurrently.
type Credentials interface {
	// For gives the credential of the next call, by the context that it is made with. It may call
	// the forge for one.
	For(ctx context.Context) (Credential, error)
}

// Credential is what proves to a forge who makes a call.
type Credential struct {
	Value string // the header's; empty: none
	// Identity says whose answers are kept apart, in a shared room; empty: the client's.
	Identity string
	Budget   *Budget // the identity's; nil: the client's
	// Answered takes note of the answer to a call that was made with the value. renew says that the
	// forge did nothing because it doesn't take that value (any more), and that the next one may
	// do. nil: nobody does.
	Answered func(resp *http.Response, body []byte) (renew bool)
}

// placeError is an error of credentials that says itself what they are wanted for.
type placeError struct{ error }

func (p placeError) Unwrap() error { return p.error }

// KeepOperation has Wrap leave an error of Credentials its operation.
func KeepOperation(err error) error { return placeError{err} }

// maxValues is how many values of the credentials a call is tried with.
const maxValues = 3

// AnswerCache is room for answers that can be asked for again with their ETags.
type AnswerCache struct {
	answers *cache.Cache[string, *conditionalAnswer] // by identity, address and accepted content
}

// NewAnswerCache makes one of so many bytes, counted in the group, which may be nil.
func NewAnswerCache(group *cache.Group, bytes int64) *AnswerCache {
	return &AnswerCache{cache.New(group, cache.Options[string, *conditionalAnswer]{Name: "forge-answers", Entries: maxAnswers, Bytes: bytes,
		Size: func(key string, a *conditionalAnswer) int64 {
			return int64(len(key) + len(a.etag) + len(a.body) + answerOverhead)
		}})}
}

// New makes the client that a driver hands to its SDK, and gives the budget that its calls are
// taken out of.
func New(o Protocol) (*http.Client, *Budget) {
	t := &roundTripper{Protocol: o}
	if t.Now == nil {
		t.Now = time.Now
	}
	if t.Budget == nil {
		t.Budget = NewBudget(t.Now, o.Limits, o.OnLimited).Share(o.Identity, o.Exchange)
		t.Budget.isOfEndpoint = o.IsOfEndpoint
	}
	if o.HTTPClient != nil && o.HTTPClient.Transport != nil {
		t.next = o.HTTPClient.Transport
	} else {
		base := http.DefaultTransport.(*http.Transport).Clone()
		base.MaxIdleConnsPerHost = 16 // the default of 2 reconnects all the time
		base.MaxConnsPerHost = 32     // GitHub: no more than 100 calls at once
		base.ResponseHeaderTimeout = callTimeout
		if o.RootCAs != nil {
			base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs}
		}
		t.next = base
	}
	if o.Answers == nil && o.CacheBytes > 0 {
		t.Answers = NewAnswerCache(o.Caches, o.CacheBytes)
	}
	if t.UserAgent == "" {
		t.UserAgent = "liftlock"
	}
	if t.Header == "" {
		t.Header = "Authorization"
	}
	return &http.Client{Transport: t, Timeout: callTimeout, CheckRedirect: t.checkRedirect}, t.Budget
}

type roundTripper struct {
	Protocol
	next http.RoundTripper
}

const (
	maxAnswers     = 100_000
	answerOverhead = 512 // about what the headers and the entry itself take
	// maxAnswerBytes keeps one large answer from emptying the cache of all others.
	maxAnswerBytes = 1 << 20
)

// conditionalAnswer is an answer that can be asked for again with its ETag. It is
// never changed.
type conditionalAnswer struct {
	etag   string
	header http.Header
	body   []byte
}

// checkRedirect follows a forge's redirects within itself (a renamed repository)
// and refuses those to anywhere else.
func (r *roundTripper) checkRedirect(req *http.Request, via []*http.Request) error {
	if !r.isForgeURL(req.URL) {
		return errors.New("the forge redirects to another host, which is not followed: correct the forge's url in the server's file")
	}
	if first := via[0].Method; req.Method != first {
		// 301, 302 and 303 make a GET of what was to change something; its answer would look
		// like success.
		return fmt.Errorf("the forge redirects a %s to a %s, which would change nothing: correct the forge's url or the repository's "+
			"name in the server's file", first, req.Method)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// isForgeURL says whether the URL is on the forge itself.
func (r *roundTripper) isForgeURL(u *url.URL) bool {
	return u.Scheme == r.Base.Scheme && u.Host == r.Base.Host
}

// RoundTrip sends one request. The answer's body has been read and is in memory. A
// RefusedError is a request that wasn't sent. One that the forge did nothing about because
// its credentials had come to their end is sent again with the next ones.
func (r *roundTripper) RoundTrip(original *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		req, err := cloneRequest(original, try)
		if err != nil {
			return nil, err
		}
		by, err := r.authorize(req)
		if err != nil {
			return nil, err
		}
		resp, body, err := r.send(req, by)
		if err != nil {
			return nil, err
		}
		again := by.Answered != nil && by.Answered(resp, body)
		if !again || try == maxValues || original.Body != nil && original.GetBody == nil {
			return resp, nil
		}
	}
}

// cloneRequest is the request for another try: a RoundTripper must not change its own.
func cloneRequest(original *http.Request, try int) (*http.Request, error) {
	req := original.Clone(original.Context())
	if try > 1 && original.GetBody != nil {
		body, err := original.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	return req, nil
}

// authorize gives a request on the forge itself its credentials, and takes any others off.
func (r *roundTripper) authorize(req *http.Request) (by Credential, err error) {
	by = Credential{Identity: r.Identity, Budget: r.Budget}
	for name, values := range r.Headers {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", r.UserAgent)
	req.Header.Del("Authorization")
	req.Header.Del(r.Header)
	if !r.isForgeURL(req.URL) {
		return by, nil
	}
	by.Value = r.Authorization
	if r.Credentials != nil {
		given, err := r.Credentials.For(req.Context())
		if err != nil {
			return by, err
		}
		by.Value, by.Answered = given.Value, given.Answered
		by.Identity = cmp.Or(given.Identity, by.Identity)
		by.Budget = cmp.Or(given.Budget, by.Budget)
	}
	if by.Value != "" {
		req.Header.Set(r.Header, by.Value)
	}
	return by, nil
}

// send sends a request, conditionally where its answer has been seen before.
func (r *roundTripper) send(req *http.Request, by Credential) (*http.Response, []byte, error) {
	key := ""
	var seen *conditionalAnswer
	if r.Answers != nil && req.Method == http.MethodGet && req.Header.Get("If-None-Match") == "" {
		key = by.Identity + "\n" + req.URL.String() + "\n" + req.Header.Get("Accept")
		if seen, _ = r.Answers.answers.Get(key); seen != nil {
			req.Header.Set("If-None-Match", seen.etag)
		}
	}

	endpoint := Endpoint(req.Method, r.Base.Path, req.URL.Path)
	end, err := by.Budget.begin(req.Context(), endpoint)
	if refused := refusedCall("", err); refused != nil {
		return nil, nil, refused
	}
	if err != nil {
		return nil, nil, err
	}
	// Last of all: it may have waited for long, or its process was stopped.
	if err := checkLease(req); err != nil {
		end(nil, nil)
		return nil, nil, err
	}
	start := time.Now()
	resp, err := r.next.RoundTrip(req)
	status := 0
	var body []byte
	if err == nil {
		status = resp.StatusCode
		body, err = readAll(resp.Body)
	}
	again := end(resp, body)
	if r.OnCall != nil {
		r.OnCall(endpoint, status, time.Since(start))
	}
	if err != nil {
		return nil, nil, err
	}
	if r.IsIntermediary != nil && again.IsZero() && r.IsIntermediary(resp) {
		return nil, nil, intermediaryAnswer(resp.StatusCode, r.redact(DescribeAnswer(resp, body)))
	}
	noteRetryTime(resp, again, r.Now())

	switch {
	case seen != nil && status == http.StatusNotModified:
		// The limits in the headers are this answer's, the content is the one seen.
		for name, values := range seen.header {
			if resp.Header.Get(name) == "" {
				resp.Header[name] = values
			}
		}
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		body = seen.body
	case key != "" && status == http.StatusOK:
		if etag := resp.Header.Get("ETag"); etag != "" && len(body) <= maxAnswerBytes {
			r.Answers.answers.Put(key, &conditionalAnswer{etag: etag, header: contentHeaders(resp.Header), body: body})
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, body, nil
}

// checkLease refuses a request that may change something once the lease of what it is for is over.
func checkLease(req *http.Request) error {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return nil
	}
	return lock.CheckLease(req.Context())
}

// contentHeaders are the headers that belong to the content.
func contentHeaders(h http.Header) http.Header {
	kept := http.Header{}
	for _, name := range []string{"Content-Type", "Link", "X-Next-Page", "X-Total-Count"} {
		if v := h.Values(name); len(v) > 0 {
			kept[http.CanonicalHeaderKey(name)] = v
		}
	}
	return kept
}

func readAll(body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxResponseBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxResponseBytes {
		return nil, ErrTooLarge
	}
	return data, nil
}
