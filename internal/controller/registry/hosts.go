package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Host is a registry that may be read.
type Host struct {
	Name          string // as image names have it: ghcr.io, registry.example.com:5000, docker.io
	Username      string // empty: nobody logs in
	Password      string
	IdentityToken string            // in place of the two, as some registries' logins leave it
	PlainHTTP     bool              // it is spoken to without TLS
	Transport     http.RoundTripper // nil: the default one
	// OnCall is told of each answer: its status, 0 where there was none; nil: nobody is.
	OnCall func(status int)
	// OnLimit is told how many requests of how many are left, as an answer says; nil: nobody is.
	OnLimit func(remaining, limit int)
}

// host is a registry, and when it may be asked.
type host struct {
	auth      authn.Authenticator
	transport http.RoundTripper
	options   []remote.Option
	names     []name.Option // by which its images' names are read

	mu      sync.Mutex
	until   time.Time // when it may be asked again
	limited bool      // the registry said so itself
}

func newHost(h Host, now func() time.Time) *host {
	next := h.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	out := &host{auth: authn.Anonymous}
	switch {
	case h.IdentityToken != "":
		out.auth = authn.FromConfig(authn.AuthConfig{IdentityToken: h.IdentityToken})
	case h.Username != "":
		out.auth = &authn.Basic{Username: h.Username, Password: h.Password}
	}
	if h.PlainHTTP {
		out.names = []name.Option{name.Insecure}
	}
	out.transport = &guardedTransport{next: next, host: out, plainHTTP: h.PlainHTTP, now: now, onCall: h.OnCall,
		onLimit: h.OnLimit}
	out.options = []remote.Option{remote.WithTransport(out.transport), remote.WithAuth(out.auth), remote.WithUserAgent(userAgent),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryStatusCodes()}
	return out
}

const userAgent = "liftlock"

// hostOf is a registry's name as the library has it: Docker Hub has several.
func hostOf(text string) string {
	switch text = strings.ToLower(text); text {
	case "docker.io", "registry-1.docker.io":
		return name.DefaultRegistry
	}
	return text
}

// awayError says why the registry isn't asked now; nil: it may be.
func (h *host) awayError(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !now.Before(h.until):
		return nil
	case h.limited:
		return waitError{h.until}
	}
	return ErrAway
}

// leaveAlone keeps the registry from being asked before a time; limited says that the registry said so itself.
func (h *host) leaveAlone(now, until time.Time, limited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	isWaiting := h.limited && now.Before(h.until)
	if until.After(h.until) {
		h.until, h.limited = until, limited || isWaiting
	}
}

// guardedTransport bounds each answer, keeps to what the registry says of its limits, and speaks plain HTTP only where
// that is wanted: the library would do so by itself with registries in private networks (go-containerregistry: Scheme in
// pkg/name).
type guardedTransport struct {
	next      http.RoundTripper
	host      *host
	plainHTTP bool
	now       func() time.Time
	onCall    func(status int)
	onLimit   func(remaining, limit int)
}

func (g *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.plainHTTP {
		return nil, fmt.Errorf("%s isn't asked without TLS", req.URL.Host)
	}
	res, err := g.next.RoundTrip(req)
	status := 0
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" && !g.plainHTTP {
		err = fmt.Errorf("%w (%w)", ErrPlainHTTP, err)
	}
	if err == nil {
		status = res.StatusCode
		res.Body = http.MaxBytesReader(nil, res.Body, maxAnswer)
		now := g.now()
		if until := restUntil(res, now); !until.IsZero() {
			g.host.leaveAlone(now, until, true)
		}
		limit, _, isLimited := parseQuota(res.Header.Get("RateLimit-Limit"))
		if remaining, _, ok := parseQuota(res.Header.Get("RateLimit-Remaining")); ok && isLimited && g.onLimit != nil {
			g.onLimit(remaining, limit)
		}
	}
	if g.onCall != nil {
		g.onCall(status)
	}
	return res, err
}
