package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/golang-jwt/jwt/v4"
)

const (
	// callTimeout bounds a call, its answer read, but for lists and streams.
	callTimeout = 30 * time.Second
	// headerTimeout is how long the server may take to begin an answer. Argo CD puts a
	// whole list together before.
	headerTimeout = time.Minute
	// maxAnswer bounds an answer that is read at once. The largest are resource trees:
	// 10,000 resources are some 6 MB.
	maxAnswer = 32 << 20
	// maxConnections is how many calls may be under way at a time.
	maxConnections = 8
	// firstWait is the wait before a failed read is tried again, which doubles;
	// maxTries bounds how often, and maxWait how long a server's own wish is heeded.
	firstWait = 300 * time.Millisecond
	maxTries  = 3
	maxWait   = 5 * time.Second
)

// Options say how to reach an Argo CD.
type Options struct {
	URL      string // of argocd-server, with its root path where it has one
	Token    string // of an account or a project's role
	CA       []byte // authorities besides the system's, in PEM; nil: none
	Insecure bool   // any server that answers is believed
	// Source is where people said all that, for what is wrong with it; empty: argocd[].api in
	// the server's file.
	Source string
	// Wait is the first wait before a read is tried again; 0: 300 ms. Idle is after how long
	// without a sign of life a stream counts as broken; 0: 45 s.
	Wait, Idle time.Duration
}

// Client calls the API of one Argo CD. All methods may be called concurrently.
type Client struct {
	base       *url.URL
	token      string
	source     string // for people
	wait, idle time.Duration
	http       *http.Client
	streams    *http.Client // which wait for an answer's beginning for as long as it takes; patient calls are made by it, too
}

// New makes a client. It doesn't dial.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(o.URL, "/"))
	if err != nil || base.Host == "" || base.User != nil {
		return nil, errors.New("the API's address is no URL of a server, or has credentials in it")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure} // #nosec G402 -- argocd[].api.insecure says so
	if o.CA != nil {
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("there is no certificate in the file of the API's authority")
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.ResponseHeaderTimeout = config, headerTimeout
	// A stream that stays open on one HTTP/2 connection would share its flow control, and
	// its death, with everything else.
	transport.ForceAttemptHTTP2, transport.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConnections, maxConnections
	patient := transport.Clone()
	patient.ResponseHeaderTimeout = 0
	newClient := func(t http.RoundTripper) *http.Client {
		return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{base: base, token: o.Token, source: cmp.Or(o.Source, "argocd[].api in the server's file"),
		wait: cmp.Or(o.Wait, firstWait), idle: cmp.Or(o.Idle, streamIdle), http: newClient(transport), streams: newClient(patient)}, nil
}

// Source is where people said how to reach it, for people.
func (c *Client) Source() string { return c.source }

// TokenExpiry is when the token ends, as it says itself: Argo CD's are JWTs with a claim for
// that. The zero time: it doesn't end, or says nothing. It asks nobody, and never fails.
func (c *Client) TokenExpiry(context.Context) (time.Time, error) {
	var claims jwt.RegisteredClaims
	// Whether it is genuine is for Argo CD to say.
	if _, _, err := jwt.NewParser().ParseUnverified(c.token, &claims); err != nil || claims.ExpiresAt == nil {
		return time.Time{}, nil
	}
	return claims.ExpiresAt.Time, nil
}

// maxCAFile bounds a file of certificates; the system's own bundle has 250 kB.
const maxCAFile = 4 << 20

// ReadCAFile reads a file of authorities for Options.CA; nil where there is no name.
func ReadCAFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the file of the API's authority: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCAFile))
	if err != nil {
		return nil, fmt.Errorf("read the file of the API's authority: %w", err)
	}
	return raw, nil
}

// Host is where the API is, for people.
func (c *Client) Host() string { return c.base.Scheme + "://" + c.base.Host + c.base.Path }

// request is one call.
type request struct {
	method  string // GET when empty
	address string // escaped, below the root path
	query   url.Values
	stream  bool // of server-sent events
	patient bool // its answer may take longer to begin than others
	body    any  // nil: none
}

// open sends a request and gives the body of a successful answer, which the caller reads
// with a bound and closes.
func (c *Client) open(ctx context.Context, r request) (io.ReadCloser, error) {
	var payload io.Reader
	if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(raw)
	}
	u := *c.base
	u.RawPath = c.base.EscapedPath() + r.address
	plain, err := url.PathUnescape(u.RawPath)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawQuery = plain, r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), u.String(), payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "liftlock")
	client := c.http
	req.Header.Set("Accept", "application/json")
	if r.stream || r.patient {
		client = c.streams
	}
	if r.stream {
		req.Header.Set("Accept", "text/event-stream")
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, shortenURLError(err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.readError(resp)
	}
	return resp.Body, nil
}

// shortenURLError leaves out the request's long address: the caller names the call.
func shortenURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// read asks for one thing, again after failures that pass, and decodes the answer.
func (c *Client) read(ctx context.Context, address string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.retry(ctx, func() error {
		body, err := c.open(ctx, request{address: address, query: query})
		if err != nil {
			return err
		}
		return decodeAnswer(body, into)
	})
}

// decodeAnswer reads a whole answer, of at most maxAnswer bytes, and closes it.
func decodeAnswer(body io.ReadCloser, into any) error {
	raw, err := readAnswer(body, maxAnswer)
	if err != nil {
		return err
	}
	return unmarshalAnswer(raw, into)
}

// ErrTooLarge is of an answer that is larger than any may be.
var ErrTooLarge = errors.New("the answer is larger than")

// readAnswer reads a whole answer of so many bytes at most, and closes it.
func readAnswer(body io.ReadCloser, most int64) ([]byte, error) {
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case int64(len(raw)) > most:
		return nil, backoff.Permanent(fmt.Errorf("%w %d bytes", ErrTooLarge, most))
	}
	return raw, nil
}

func unmarshalAnswer(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return backoff.Permanent(fmt.Errorf("the answer is not what an Argo CD says: %w", err))
	}
	return nil
}

// retry calls until it works, what is wrong doesn't pass, or it was tried often enough.
func (c *Client) retry(ctx context.Context, call func() error) error {
	growing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.wait), backoff.WithMaxElapsedTime(0))
	wait := &serverBackOff{BackOff: backoff.WithMaxRetries(growing, maxTries-1)}
	var last error
	err := backoff.Retry(func() error {
		last = call()
		var s *StatusError
		if errors.As(last, &s) {
			wait.atLeast = s.RetryAfter
		}
		if last != nil && !isPassing(last) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(wait, ctx))
	var permanent *backoff.PermanentError
	switch {
	case err == nil:
		return nil
	case errors.As(last, &permanent):
		return permanent.Err
	}
	return cmp.Or(last, err) // what went wrong says more than that the time is over
}

// serverBackOff waits as long as a server wants, where that isn't long.
type serverBackOff struct {
	backoff.BackOff
	atLeast time.Duration
}

// NextBackOff is the wait before the next try.
func (s *serverBackOff) NextBackOff() time.Duration {
	wait := s.BackOff.NextBackOff()
	if wait == backoff.Stop {
		return wait
	}
	return max(wait, min(s.atLeast, maxWait))
}

// applicationPath is the address of one Application, or of something below it.
func applicationPath(name string, below ...string) string {
	return path.Join(append([]string{"/api/v1/applications", escapeSegment(name)}, below...)...)
}

// escapeSegment makes one segment of a name from outside: it can't leave its place.
func escapeSegment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// applicationQuery says which Application of a name it is. With the project Argo CD says
// of one that isn't there that it isn't, and not that it may not be seen.
func applicationQuery(namespace, project string) url.Values {
	q := url.Values{}
	for key, value := range map[string]string{"appNamespace": namespace, "project": project} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return q
}
