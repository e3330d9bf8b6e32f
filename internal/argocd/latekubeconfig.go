package argocd

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// AwaitedRESTConfig is for a kubeconfig that [RESTConfig] can't read yet. It is read again with
// each request until it can be. Until then every request fails with the reason, and so a caller
// that retries waits for it. Nothing is read or dialled at once.
func AwaitedRESTConfig(kubeconfig, kubeContext string) *rest.Config {
	silenceClientGo()
	return &rest.Config{Host: awaitedHost, Transport: &awaitedTransport{read: func() (*rest.Config, error) {
		return RESTConfig(kubeconfig,
			kubeContext)
	}}}
}

// awaitedHost stands in addresses where the kubeconfig's own host will be.
const awaitedHost = "https://as-the-kubeconfig-says"

// awaitedTransport sends requests where a kubeconfig says, as soon as that can be read.
type awaitedTransport struct {
	read func() (*rest.Config, error)

	mu     sync.Mutex
	next   http.RoundTripper // nil: it couldn't be read yet
	scheme string
	host   string
	prefix string // of every path, without a trailing slash
}

// RoundTrip implements http.RoundTripper.
func (a *awaitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := a.connect(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // it is never sent
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = a.scheme, a.host, ""
	if r.URL.Path = a.prefix + r.URL.Path; r.URL.RawPath != "" {
		r.URL.RawPath = a.prefix + r.URL.RawPath
	}
	return a.next.RoundTrip(r)
}

// connect reads the kubeconfig unless that was done.
func (a *awaitedTransport) connect() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		return nil
	}
	config, err := a.read()
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	a.next, a.scheme, a.host, a.prefix = next, base.Scheme, base.Host, strings.TrimSuffix(base.EscapedPath(), "/")
	return nil
}
