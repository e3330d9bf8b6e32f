package gateclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxConnections is how many calls of one server may be under way at a time.
	maxConnections = 4
	// maxRetryAfter bounds how long a server's own wish is heeded.
	maxRetryAfter = time.Hour
)

// TLS is whose certificates are believed, and what we show.
type TLS struct {
	CA       []byte           // authorities besides the system's, in PEM; nil: none
	Insecure bool             // any server that answers is believed
	Client   *tls.Certificate // nil: none
}

// newHTTPClient makes a client that follows no redirects: credentials and signatures are
// for whom the server's file names.
func newHTTPClient(o TLS) (*http.Client, error) {
	transport, err := NewTransport(o)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		nil
}

// NewTransport makes what calls one server, a few times at once. The error says what is wrong
// with the certificates.
func NewTransport(o TLS) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure} // #nosec G402 -- the server's file says so
	if o.Client != nil {
		config.Certificates = []tls.Certificate{*o.Client}
	}
	if o.CA != nil {
		var err error
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("there is no certificate in caFile")
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConnections, maxConnections
	return transport, nil
}

// reachError is an error of a call that got no whole answer, without the address.
func reachError(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &callError{text: "it doesn't answer in time", away: true}
	}
	return &callError{text: "it can't be reached: " + clipAnswer(err.Error()), away: true}
}

// statusError is what a status other than success means: 429 and 5xx that it isn't well or
// wants a pause, all else that this call is refused.
func statusError(res *http.Response, text string, now time.Time) error {
	e := &callError{text: fmt.Sprintf("it answers %d: %s", res.StatusCode, cmp.Or(clipAnswer(text), "nothing")),
		after: parseRetryAfter(res.Header.Get("Retry-After"), now)}
	switch {
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		e.text = fmt.Sprintf("it answers %d, a redirect, which isn't followed; correct its url in the server's file", res.StatusCode)
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode >= 500:
		e.away = true
	}
	return e
}

// parseRetryAfter reads Retry-After: seconds or a date; 0 when there is none.
func parseRetryAfter(v string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(n, 0), int(maxRetryAfter.Seconds()))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
