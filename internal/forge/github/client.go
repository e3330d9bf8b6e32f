package github

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/transport"
)

// DefaultURL is the API of the public service.
const DefaultURL = "https://api.github.com/"

const (
	// perPage is the most that GitHub gives at once.
	perPage = 100

	// maxPages bounds every list: beyond 10,000 entries something is wrong, and
	// an error is better than an hour of calls.
	maxPages = 100

	// maxPullPages bounds the list of a repository's pull requests, which grows for
	// ever, to 200,000 entries.
	maxPullPages = 20 * maxPages

	// apiVersion is the version of the API that this driver is written for: the next one,
	// 2026-03-10, no longer says which commit a pull request landed as (merge_commit_sha).
	apiVersion    = "2022-11-28"
	versionHeader = "X-Github-Api-Version"

	// cacheBytes holds the conditional answers of some hundred pull requests.
	cacheBytes = 32 << 20

	// maxHooks bounds how many hooks' numbers are remembered.
	maxHooks = 10_000
)

// Options say which GitHub, and who we are.
type Options struct {
	URL        string         // the API's root: https://api.github.com, https://ghe.example/api/v3; empty: the public service
	Token      string         // a personal access token, classic or fine-grained; required
	HTTPClient *http.Client   // its Transport is used (proxies, certificates); nil: the default one
	RootCAs    *x509.CertPool // whose certificates are believed where HTTPClient has no Transport; nil: the system\'s
	UserAgent  string         // empty: "liftlock"
	Caches     *cache.Group   // where its caches are counted; nil: nowhere

	// OnCall is told every call, for metrics: a name of bounded cardinality such
	// as "GET pulls/reviews", the HTTP status (0 without an answer), how long it
	// took. It may be nil and is called concurrently.
	OnCall func(endpoint string, status int, d time.Duration)

	// OnLimited is told when the forge refuses a call for the number of them, once for
	// all those that were under way, and until when nothing is called. It may be nil.
	OnLimited    func(until time.Time, endpoint string)
	Exchange     forge.Exchange   // of what is known of the limits, with other processes that go by the same clock; nil: there are none
	PublicLimits bool             // keep to the public service's published limits, whichever GitHub it is
	Now          func() time.Time // the clock of limits and of an App's tokens; nil: time.Now
}

// Driver talks to one GitHub with one identity. Safe for concurrent use.
type Driver struct {
	api     *gh.Client
	budget  *transport.Budget
	base    *url.URL
	token   func(ctx context.Context) (string, error)     // that is good now
	account func(ctx context.Context) (forge.User, error) // whose it is
	hooks   *cache.Cache[hookPlace, int64]                // their numbers

	mu      sync.Mutex
	me      forge.User       // once it is known; a token's owner doesn't change
	secrets map[int64]string // hook: digest of the secret that this process has set

	noLateEvents atomic.Bool // GitHub has refused them

	now       func() time.Time
	bulkAgain time.Time // until when pull requests aren't read together
}

var (
	_ forge.Forge      = (*Driver)(nil)
	_ forge.BulkReader = (*Driver)(nil)

	_ forge.CommitSigner = (*Driver)(nil)
)

// New makes a driver. It makes no call: whether the token is good shows at the
// first one.
func New(o Options) (*Driver, error) {
	base, err := parseBase(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New("the GitHub driver needs a token")
	}
	api, budget := newClient(o, base, transport.Options{
		Authorization: "Bearer " + o.Token, CacheBytes: cacheBytes, Identity: "token", Limits: limitsOf(base, o.PublicLimits), OnLimited: o.OnLimited,
	})
	d := newDriver(base, o, api, budget, func(context.Context) (string, error) { return o.Token, nil }, nil)
	d.account = d.readAccount
	return d, nil
}

// parseBase reads the address of an API; empty: the public service's.
func parseBase(text string) (*url.URL, error) {
	if text == "" {
		text = DefaultURL
	}
	base, err := url.Parse(text)
	if err != nil || (base.Scheme != "https" && base.Scheme != "http") || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("forge url %q is not the address of an API: write https://HOST/api/v3 (or omit it for github.com)", redactURL(base, text))
	}
	base.Path = strings.TrimRight(base.Path, "/") + "/"
	return base, nil
}

// newClient makes a client of the API over a transport of t, and what o says of every one.
func newClient(o Options, base *url.URL, t transport.Options) (*gh.Client, *transport.Budget) {
	t.Base, t.UserAgent, t.HTTPClient, t.RootCAs, t.Caches, t.OnCall, t.Exchange, t.Now = base, o.UserAgent, o.HTTPClient, o.RootCAs, o.Caches, o.OnCall, o.Exchange, o.Now
	t.Headers, t.RefuseWebPages = http.Header{versionHeader: {apiVersion}}, true
	calls, budget := transport.New(t)
	calls.Transport = limitsHidden{calls.Transport}
	client := gh.NewClient(calls)
	client.BaseURL = base
	return client, budget
}

func newDriver(base *url.URL, o Options, api *gh.Client, budget *transport.Budget, token func(context.Context) (string, error), account func(context.Context) (forge.User, error)) *Driver {
	d := &Driver{
		api: api, budget: budget, base: base, token: token, account: account, secrets: map[int64]string{}, now: o.Now,
		hooks: cache.New(o.Caches, cache.Options[hookPlace, int64]{Name: "github-hooks", Entries: maxHooks}),
	}
	if d.now == nil {
		d.now = time.Now
	}
	return d
}

// redactURL is an address that can be shown: somebody may have put credentials in.
func redactURL(u *url.URL, raw string) string {
	if u == nil {
		return "(unreadable)"
	}
	if u.User != nil {
		return u.Redacted()
	}
	return raw
}

// repoPath gives a repository's owner and name as path segments.
func repoPath(r forge.Repo) (owner, name string) {
	return transport.Segment(r.Owner), transport.Segment(r.Name)
}

// forEachPage calls list with one page after the other. It ends when there are no
// more, or when list says that it has enough.
func forEachPage(op string, list func(o gh.ListOptions) (resp *gh.Response, enough bool, err error)) error {
	return forEachPageUpTo(op, maxPages, list)
}

// forEachPageUpTo is forEachPage with a bound of its own.
func forEachPageUpTo(op string, most int, list func(o gh.ListOptions) (resp *gh.Response, enough bool, err error)) error {
	o := gh.ListOptions{PerPage: perPage}
	for range most {
		resp, enough, err := list(o)
		if err != nil {
			return wrapError(op, resp, err)
		}
		if enough || resp.NextPage == 0 {
			return nil
		}
		o.Page = resp.NextPage
	}
	return &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: fmt.Sprintf("there are more than %d", most*perPage)}
}

// isBot says whether an account is an app's.
func isBot(u *gh.User) bool { return u.GetType() == "Bot" }

// Me is the account that the driver works as.
func (d *Driver) Me(ctx context.Context) (forge.User, error) { return d.account(ctx) }

// readAccount reads the token's own account; once read it is remembered.
func (d *Driver) readAccount(ctx context.Context) (forge.User, error) {
	d.mu.Lock()
	me := d.me
	d.mu.Unlock()
	if me.Login != "" {
		return me, nil
	}
	u, resp, err := d.api.Users.Get(ctx, "")
	if err != nil {
		return forge.User{}, wrapError("read the token's own account", resp, err)
	}
	me = toUser(u)
	d.mu.Lock()
	d.me = me
	d.mu.Unlock()
	return me, nil
}
