package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// callTimeout bounds each call of the provider: somebody waits in front of a browser.
	callTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer; ID tokens with hundreds of groups have
	// some ten kilobytes.
	maxAnswer = 1 << 20
	// retryDelay is how long a provider that couldn't be reached is left alone.
	retryDelay = 3 * time.Second
	// maxErrorText is how many characters of an error are kept.
	maxErrorText = 300
	// failureMemory is for how long that is said; nobody may have tried since.
	failureMemory = 10 * time.Minute
)

// ErrUnreachable: the provider can't be reached, or answers nonsense. It may be better later.
var ErrUnreachable = errors.New("the login can't be reached")

// RefusedError is a login that isn't one, with the reason for its user.
type RefusedError struct{ Why string }

// Error is the reason.
func (r *RefusedError) Error() string { return r.Why }

func newRefusal(format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}

// Options say which provider is asked, and as what.
type Options struct {
	Issuer       string // the provider's address, as its tokens have it
	ClientID     string
	ClientSecret string // empty: a public client
	RedirectURL  string // where the provider sends browsers back to
	Scopes       []string
	GroupsClaim  string
	// NameClaim is what users are called by; empty: preferred_username, else an e-mail
	// address that the provider has verified, else the subject.
	NameClaim string
	// AccountClaims are the claims that have a user's login on each forge, by the forge's name in
	// the server's file. On a forge without one no user has a login.
	AccountClaims map[string]string
	// Secrets sign what a browser keeps of a login that it has begun; all replicas have the same.
	// The first signs, all are believed. Empty: ClientSecret does.
	Secrets   []string
	Transport http.RoundTripper // nil: http.DefaultTransport
	Now       func() time.Time  // nil: time.Now
}

// Provider is an OpenID Connect provider. It is looked up when somebody first logs in, so
// that one that is away keeps nothing else from starting. It is safe for concurrent use.
type Provider struct {
	opts   Options
	client *http.Client
	// attemptKeys sign attempts.
	attemptKeys [][]byte
	turn        chan struct{} // to look it up; full while somebody does

	mu    sync.Mutex
	found *metadata
	trial failure // the last, where it failed
}

// metadata is what the provider says of itself.
type metadata struct {
	provider   *oidc.Provider
	endSession string // where its users log out of it; empty: nowhere
	keys       string // where its keys are
	algorithms []string
}

type failure struct {
	err   error
	since time.Time // of the first one in a row
	at    time.Time
}

// New makes a provider; nothing is called yet.
func New(o Options) (*Provider, error) {
	for what, value := range map[string]string{"an issuer": o.Issuer, "a client ID": o.ClientID, "a redirect URL": o.RedirectURL,
		"a groups claim": o.GroupsClaim} {
		if value == "" {
			return nil, fmt.Errorf("log in by OpenID Connect: %s is required", what)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if len(o.Secrets) == 0 && o.ClientSecret != "" {
		o.Secrets = []string{o.ClientSecret}
	}
	if len(o.Secrets) == 0 {
		return nil, errors.New("log in by OpenID Connect: a secret is required that signs logins' cookies")
	}
	keys, err := deriveAttemptKeys(o.Secrets, o.Issuer, o.ClientID)
	if err != nil {
		return nil, fmt.Errorf("log in by OpenID Connect: %w", err)
	}
	return &Provider{opts: o, attemptKeys: keys, turn: make(chan struct{}, 1), client: &http.Client{
		Transport: limitedTransport{o.Transport}, Timeout: callTimeout,
		// secrets go where the server's file says
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// limitedTransport reads no more of an answer than maxAnswer.
type limitedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// Issuer is the provider's address.
func (p *Provider) Issuer() string { return p.opts.Issuer }

// Failure is why the provider couldn't be reached when it was last tried, and since when;
// empty: it could, or nobody has tried lately.
func (p *Provider) Failure() (why string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trial.err == nil || p.opts.Now().Sub(p.trial.at) >= failureMemory {
		return "", time.Time{}
	}
	return p.trial.err.Error(), p.trial.since
}

// noteTrial remembers how a call of the provider went.
func (p *Provider) noteTrial(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	switch {
	case err == nil:
		p.trial = failure{}
	case p.trial.err == nil:
		p.trial = failure{err, now, now}
	default:
		p.trial.err, p.trial.at = err, now
	}
}

// noteUnreachable remembers that a call of the provider failed, and gives that as ErrUnreachable:
// on one line, as errors of the libraries hold the whole answer.
func (p *Provider) noteUnreachable(did string, err error) error {
	err = fmt.Errorf("%w: %s: %s", ErrUnreachable, did, oneLine(err.Error(), maxErrorText))
	p.noteTrial(err)
	return err
}

// lookUp reads what the provider says of itself, once. The error is ErrUnreachable.
func (p *Provider) lookUp(ctx context.Context) (*metadata, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
	}
	p.mu.Lock()
	found, last := p.found, p.trial
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if last.err != nil && p.opts.Now().Sub(last.at) < retryDelay {
		return nil, last.err
	}
	// Another caller that waits for it isn't to fail because this one went away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(p.with(ctx), p.opts.Issuer)
	var more struct {
		EndSession string   `json:"end_session_endpoint"`
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err == nil {
		err = provider.Claims(&more)
	}
	if err != nil {
		return nil, p.noteUnreachable("read what "+p.opts.Issuer+" says of itself", err)
	}
	p.noteTrial(nil)
	found = &metadata{provider: provider, endSession: more.EndSession, keys: more.Keys,
		algorithms: slices.DeleteFunc(more.Algorithms, func(a string) bool { return !slices.Contains(publicKeyAlgorithms, a) })}
	p.mu.Lock()
	p.found = found
	p.mu.Unlock()
	return found, nil
}

// Discover reads anew what the provider calls itself: the issuer that it puts into its tokens,
// which is believed only where it is Issuer. The error is ErrUnreachable.
func (p *Provider) Discover(ctx context.Context) (issuer string, err error) {
	_, err = oidc.NewProvider(p.with(ctx), p.opts.Issuer)
	var other *oidc.IssuerMismatchError
	switch {
	case errors.As(err, &other):
		return other.Discovered, nil
	case err != nil:
		return "", fmt.Errorf("%w: read what %s says of itself: %w", ErrUnreachable, p.opts.Issuer, err)
	}
	return p.opts.Issuer, nil
}

// with has the provider called by our own client.
func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

func (p *Provider) oauth(m *metadata) *oauth2.Config {
	return &oauth2.Config{ClientID: p.opts.ClientID, ClientSecret: p.opts.ClientSecret, Endpoint: m.provider.Endpoint(),
		RedirectURL: p.opts.RedirectURL, Scopes: p.opts.Scopes}
}

// AuthURL is where a browser goes to log in. The error is ErrUnreachable.
func (p *Provider) AuthURL(ctx context.Context, a *Attempt) (string, error) {
	m, err := p.lookUp(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(m).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// EndSessionURL is where a user logs out of the provider too and then comes back to an address. It
// is empty where the provider has no such place, or isn't known yet.
func (p *Provider) EndSessionURL(returnTo string) string {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found == nil || found.endSession == "" {
		return ""
	}
	u, err := url.Parse(found.endSession)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.opts.ClientID)
	q.Set("post_logout_redirect_uri", returnTo)
	u.RawQuery = q.Encode()
	return u.String()
}
