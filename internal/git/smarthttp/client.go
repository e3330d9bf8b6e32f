// Package smarthttp speaks as much of Git's smart HTTP protocol as fits in one request, where git's
// own programs take two or three and a connection of their own for each. By version 2
// (gitprotocol-v2(5)) it asks where a remote's branches are and fetches a commit. It also pushes
// one branch (gitprotocol-http(5), gitprotocol-pack(5)). It doesn't first ask what a server can do,
// which the protocol allows. Each request stands by itself, and asks only for what every version 2
// server has. A caller that gets ErrNotSpoken lets git's programs do it.
package smarthttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"

	agent = "git/liftlock" // hosts know a Git client by how this begins

	// maxAnswer bounds everything but a pack: a repository with 200,000 refs has less.
	maxAnswer = 64 << 20

	// idleConnectionFor is less than most hosts and proxies keep one for.
	idleConnectionFor = 50 * time.Second

	// A connection that several calls share is asked for a sign of life where none has come for so
	// long. Behind a proxy that failed over it would be silent until the system gives up.
	pingAfter   = 15 * time.Second
	pingTimeout = 15 * time.Second

	// maxRest bounds what is read of an answer's rest, so that its connection can be used again.
	maxRest = 64 << 10
	restFor = time.Second

	maxRepeated = 200 + len("…") // of a server's words
)

var (
	// ErrNotSpoken: the server's answer isn't of the protocol, or not of its version 2. Git's
	// programs may manage, or say what the matter is.
	ErrNotSpoken = errors.New("the answer isn't of Git's protocol")
	// ErrTooLarge: the answer is past what is read of one.
	ErrTooLarge = errors.New("the answer is too large")
	// errStalled: nothing came for Options.Stalled.
	errStalled = errors.New("the server stopped answering")
)

// StatusError is an answer with another status than 200. Redirects are not followed.
type StatusError struct{ Status int }

func (s *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", s.Status, http.StatusText(s.Status))
}

// RefusedError is what the server says itself, in the protocol's own place for it, of why it
// doesn't do what was asked.
type RefusedError struct{ Reason string }

func (r *RefusedError) Error() string { return "the server refuses: " + r.Reason }

// Options say how to reach a repository.
type Options struct {
	URL     string        // http or https, without credentials
	CAFile  string        // of the authorities of its certificate, in PEM; empty: the system's
	Stalled time.Duration // how long nothing may come while an answer is awaited
}

// Credentials go along with one call; both empty: none.
type Credentials struct{ User, Password string }

// Client asks one repository. It keeps connections open, and is safe for concurrent use.
type Client struct {
	url     string
	stalled time.Duration
	http    *http.Client
}

// New makes a client; it talks to nobody yet. It fails where the authorities can't be read.
func New(o Options) (*Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the environment's proxies
	transport.IdleConnTimeout = idleConnectionFor
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	keep := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{url: strings.TrimSuffix(o.URL, "/"), stalled: o.Stalled, http: &http.Client{Transport: transport, CheckRedirect: keep}},
		nil
}

// Close closes the connections that aren't in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// post makes one request of a service. The caller closes the answer.
func (c *Client) post(ctx context.Context, service string, who Credentials, version2 bool, body []byte) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(c.stalled, func() { cancel(errStalled) })
	answer := &watchedAnswer{watch: watch, patience: c.stalled, cancel: cancel, ctx: ctx}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/"+service, bytes.NewReader(body))
	if err != nil {
		answer.end()
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-"+service+"-request")
	req.Header.Set("Accept", "application/x-"+service+"-result")
	req.Header.Set("User-Agent", agent)
	if version2 {
		req.Header.Set("Git-Protocol", "version=2")
		req.Header["Idempotency-Key"] = nil // it reads: net/http may send it again where a kept connection was just closed
	}
	send := req.Body
	req.Body = readCloser{answer.watched(send), send}
	if who != (Credentials{}) {
		req.SetBasicAuth(who.User, who.Password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		answer.end()
		return nil, answer.explain(err)
	}
	answer.body = resp.Body
	switch {
	case resp.StatusCode != http.StatusOK:
		err = &StatusError{resp.StatusCode}
	case mediaType(resp) != "application/x-"+service+"-result":
		err = fmt.Errorf("%w: it is %q", ErrNotSpoken, clip(resp.Header.Get("Content-Type")))
	default:
		return answer, nil
	}
	answer.Close()
	return nil, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

// mediaType is an answer's content type without parameters.
func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// watchedAnswer is an answer's body that breaks off where nothing comes for too long.
type watchedAnswer struct {
	body     io.ReadCloser
	watch    *time.Timer
	patience time.Duration
	cancel   context.CancelCauseFunc
	ctx      context.Context
}

func (w *watchedAnswer) Read(p []byte) (int, error) {
	w.watch.Reset(w.patience)
	n, err := w.body.Read(p)
	if err != nil && err != io.EOF {
		err = w.explain(err)
	}
	return n, err
}

// Close reads what little is left, which is the end: without it the connection would be closed.
func (w *watchedAnswer) Close() error {
	defer w.end()
	w.watch.Reset(restFor)
	_, _ = io.CopyN(io.Discard, w.body, maxRest)
	return w.body.Close()
}

// watched is what is sent: the patience begins anew with each piece.
func (w *watchedAnswer) watched(r io.Reader) io.Reader { return &watchedRequest{r, w} }

type watchedRequest struct {
	io.Reader
	answer *watchedAnswer
}

func (w *watchedRequest) Read(p []byte) (int, error) {
	w.answer.watch.Reset(w.answer.patience)
	return w.Reader.Read(p)
}

func (w *watchedAnswer) end() {
	w.watch.Stop()
	w.cancel(nil)
}

// explain puts the reason in the place of "context canceled".
func (w *watchedAnswer) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, errStalled) {
		return fmt.Errorf("%w: nothing came for %s", errStalled, w.patience)
	}
	return err
}

// clip bounds what a server says, for errors.
func clip(s string) string { return wording.Clip(s, maxRepeated) }
