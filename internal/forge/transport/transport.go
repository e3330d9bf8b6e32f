package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
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

// Options say how to reach a forge.
type Options struct {
	Base          *url.URL       // the API's root; credentials are sent below its scheme and host only
	Authorization string         // the header's value; empty sends none
	Header        string         // which carries it; empty: Authorization
	UserAgent     string         // empty: "liftlock"
	HTTPClient    *http.Client   // its Transport is used (proxies, certificates); nil: the default one
	RootCAs       *x509.CertPool // whose certificates are believed where HTTPClient has no Transport; nil: the system's
	CacheBytes    int64          // room for conditional requests; 0 switches them off
	Caches        *cache.Group   // where that is counted; nil: nowhere

	// OnCall is told every call that went out: a name of bounded cardinality
	// ("GET pulls/reviews"), the HTTP status as it came over the wire (0 without
	// an answer) and how long it took with its body read. It may be nil and is
	// called concurrently.
	OnCall func(endpoint string, status int, d time.Duration)

	// Limits are the forge's published ones; none: what its answers say is kept to alone.
	Limits []Limit
	// OnLimited is told when the forge refuses a call for the number of them, once for
	// all those that were under way, and until when nothing is called. It must not call
	// back and may be nil.
	OnLimited func(until time.Time)
	Now       func() time.Time // the clock of the limits; nil: time.Now
}

// New makes the client that a driver hands to its SDK.
func New(o Options) *http.Client {
	t := &roundTripper{Options: o}
	if t.Now == nil {
		t.Now = time.Now
	}
	t.budget = newBudget(t.Now, o.Limits, o.OnLimited)
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
	if o.CacheBytes > 0 {
		t.answers = cache.New(o.Caches, cache.Options[string, *conditionalAnswer]{Name: "forge-answers", Entries: maxAnswers, Bytes: o.CacheBytes,
			Size: func(key string, a *conditionalAnswer) int64 {
				return int64(len(key) + len(a.etag) + len(a.body) + answerOverhead)
			}})
	}
	if t.UserAgent == "" {
		t.UserAgent = "liftlock"
	}
	if t.Header == "" {
		t.Header = "Authorization"
	}
	return &http.Client{Transport: t, Timeout: callTimeout, CheckRedirect: t.checkRedirect}
}

type roundTripper struct {
	Options
	next    http.RoundTripper
	budget  *budget
	answers *cache.Cache[string, *conditionalAnswer] // by address; nil: requests aren't conditional
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
func (t *roundTripper) checkRedirect(req *http.Request, via []*http.Request) error {
	if !t.isForgeURL(req.URL) {
		return errors.New("the forge redirects to another host, which is not followed: correct the forge's url in the server's file")
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// isForgeURL says whether the URL is on the forge itself.
func (t *roundTripper) isForgeURL(u *url.URL) bool {
	return u.Scheme == t.Base.Scheme && u.Host == t.Base.Host
}

// RoundTrip sends one request. The answer's body has been read and is in memory. A
// RefusedError is a request that wasn't sent.
func (t *roundTripper) RoundTrip(original *http.Request) (*http.Response, error) {
	req := original.Clone(original.Context()) // a RoundTripper must not change its request
	req.Header.Set("User-Agent", t.UserAgent)
	req.Header.Del("Authorization")
	req.Header.Del(t.Header)
	if t.Authorization != "" && t.isForgeURL(req.URL) {
		req.Header.Set(t.Header, t.Authorization)
	}
	key := ""
	var seen *conditionalAnswer
	if t.answers != nil && req.Method == http.MethodGet && req.Header.Get("If-None-Match") == "" {
		key = req.URL.String() + "\n" + req.Header.Get("Accept")
		if seen, _ = t.answers.Get(key); seen != nil {
			req.Header.Set("If-None-Match", seen.etag)
		}
	}

	endpoint := Endpoint(req.Method, t.Base.Path, req.URL.Path)
	end, err := t.budget.begin(req.Context(), endpoint)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	resp, err := t.next.RoundTrip(req)
	status := 0
	var body []byte
	if err == nil {
		status = resp.StatusCode
		body, err = readAll(resp.Body)
	}
	end(resp, body)
	if t.OnCall != nil {
		t.OnCall(endpoint, status, time.Since(start))
	}
	if err != nil {
		return nil, err
	}

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
			t.answers.Put(key, &conditionalAnswer{etag: etag, header: contentHeaders(resp.Header), body: body})
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
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
