package gitea

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/transport"
	"github.com/liftlock/liftlock/internal/lock"
)

const (
	// perPage is what a server gives at most unless its MAX_RESPONSE_ITEMS says
	// otherwise; a smaller limit there is noticed and respected.
	perPage = 50

	// maxPages bounds every list, as in the other drivers, to 10,000 entries.
	maxPages = 200

	// maxPullPages bounds the list of a repository's pull requests, which grows for
	// ever, to 200,000 entries.
	maxPullPages = 20 * maxPages

	// cacheBytes is small: Gitea itself sends no ETags for most of its API, a
	// caching proxy in front may.
	cacheBytes = 4 << 20

	// defaultCheckTime is far beyond the second or so that Gitea's conflict check
	// takes; after it, "not mergeable" is taken for a conflict.
	defaultCheckTime = 30 * time.Second
)

// Options say which Gitea, and who we are.
type Options struct {
	URL        string         // the server's root, https://git.example.com; with /api/v1 behind it is fine too; required
	Token      string         // an access token with the scopes read:user and write:repository; required
	HTTPClient *http.Client   // its Transport is used (proxies, certificates); nil: the default one
	RootCAs    *x509.CertPool // whose certificates are believed where HTTPClient has no Transport; nil: the system\'s
	UserAgent  string         // empty: "liftlock"
	Caches     *cache.Group   // where its caches are counted; nil: nowhere

	// CheckTime is for how long a pull request that Gitea calls not mergeable is
	// thought to be still checked for conflicts; 0: 30 s.
	CheckTime time.Duration

	// OnCall is told every call, for metrics: a name of bounded cardinality such
	// as "GET pulls/reviews", the HTTP status (0 without an answer), how long it
	// took. It may be nil and is called concurrently.
	OnCall func(endpoint string, status int, d time.Duration)

	// OnLimited is told when the forge refuses a call for the number of them, once for
	// all those that were under way, and until when nothing is called. It may be nil.
	OnLimited func(until time.Time, endpoint string)
	// Exchange is of what is known of the limits, with other processes that go by the same
	// clock, Now; nil: there are none.
	Exchange forge.Exchange
	Now      func() time.Time // nil: time.Now
}

// Driver talks to one Gitea with one identity. Safe for concurrent use.
type Driver struct {
	http      *http.Client
	budget    *transport.Budget
	base      *url.URL
	token     string
	checkTime time.Duration
	now       func() time.Time

	labels lock.Keyed[forge.Repo] // one at a time looks for labels and creates them: Gitea allows several of one name

	mu          sync.Mutex
	me          forge.User                       // once it is known
	heads       *cache.Cache[headKey, string]    // see correctHead
	mergeChecks *cache.Cache[string, mergeCheck] // see toMergeable
	branches    map[forge.Repo]*branchList       // see PullRequestsByBranch
	unsupported map[string]bool                  // hook events that this server doesn't have
}

var _ forge.Forge = (*Driver)(nil)

// New makes a driver. It makes no call: whether the token is good shows at the
// first one.
func New(o Options) (*Driver, error) {
	base, err := transport.ParseServerURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New("the Gitea driver needs a token")
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/api/v1")
	if o.CheckTime == 0 {
		o.CheckTime = defaultCheckTime
	}
	api := base.JoinPath("api", "v1")
	client, budget := transport.New(transport.Options{
		Base:           api,
		Authorization:  "token " + o.Token,
		UserAgent:      o.UserAgent,
		HTTPClient:     o.HTTPClient,
		RootCAs:        o.RootCAs,
		CacheBytes:     cacheBytes,
		Caches:         o.Caches,
		OnCall:         o.OnCall,
		OnLimited:      o.OnLimited,
		Identity:       "token",
		RefuseWebPages: true,
		Exchange:       o.Exchange,
		Now:            o.Now,
	})
	return &Driver{
		http:        client,
		budget:      budget,
		base:        base,
		token:       o.Token,
		checkTime:   o.CheckTime,
		now:         time.Now,
		heads:       cache.New(o.Caches, cache.Options[headKey, string]{Name: "gitea-heads", Entries: maxRemembered}),
		mergeChecks: cache.New(o.Caches, cache.Options[string, mergeCheck]{Name: "gitea-merge-checks", Entries: maxRemembered}),
		branches:    map[forge.Repo]*branchList{},
		unsupported: map[string]bool{},
	}, nil
}

// newClient is the SDK's client for one call. The SDK keeps the context in the client,
// so a client that is shared can't have one a call; making one costs nothing,
// the connections are the driver's. An empty version keeps it from asking the
// server for its own.
func (d *Driver) newClient(ctx context.Context) *sdk.Client {
	c, err := sdk.NewClient(d.base.String(), sdk.SetGiteaVersion(""), sdk.SetContext(ctx), sdk.SetHTTPClient(d.http))
	if err != nil {
		// NewClient can only fail by asking for the version, which it doesn't.
		panic(fmt.Sprintf("gitea: making a client: %v", err))
	}
	return c
}

// getJSON reads what the SDK has no call for. The segments are escaped.
func (d *Driver) getJSON(ctx context.Context, op string, query url.Values, out any, segments ...string) error {
	_, err := d.getPage(ctx, op, query, out, segments...)
	return err
}

// getPage is getJSON, and gives the answer itself, of which the body has been read.
func (d *Driver) getPage(ctx context.Context, op string, query url.Values, out any, segments ...string) (*sdk.Response, error) {
	for i, s := range segments {
		segments[i] = transport.Segment(s)
	}
	u := d.base.JoinPath("api", "v1").String() + "/" + strings.Join(segments, "/") + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, wrapError(op, nil, err)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, wrapError(op, nil, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, responseError(op, &sdk.Response{Response: resp})
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return nil, wrapError(op, &sdk.Response{Response: resp}, err)
	}
	return &sdk.Response{Response: resp}, nil
}

// forEachPage calls list with one page after the other. It ends when everything that
// the server counts has come, when a page is empty, or when list has enough.
func forEachPage(op string, list func(o sdk.ListOptions) (got int, enough bool, resp *sdk.Response, err error)) error {
	return forEachPageUpTo(op, maxPages, list)
}

// forEachPageUpTo is forEachPage with a bound of its own.
func forEachPageUpTo(op string, most int, list func(o sdk.ListOptions) (got int, enough bool, resp *sdk.Response, err error)) error {
	seen := 0
	for page := 1; page <= most; page++ {
		got, enough, resp, err := list(sdk.ListOptions{Page: page, PageSize: perPage})
		if err != nil {
			return wrapError(op, resp, err)
		}
		seen += got
		total, counted := 0, false
		if resp != nil {
			n, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
			total, counted = n, err == nil
		}
		if enough || got == 0 || counted && seen >= total {
			return nil
		}
	}
	return &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: fmt.Sprintf("there are more than %d", most*perPage)}
}

// isBot says whether an account is one of Gitea's own (the actions, the ghost):
// they have negative numbers. Accounts of type bot aren't shown as such.
func isBot(u *sdk.User) bool { return u != nil && u.ID < 0 }

func toUser(u *sdk.User) forge.User {
	return forge.User{ID: idOf(u), Login: loginOf(u), Bot: isBot(u)}
}

func idOf(u *sdk.User) int64 {
	if u == nil {
		return 0
	}
	return u.ID
}

func loginOf(u *sdk.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
