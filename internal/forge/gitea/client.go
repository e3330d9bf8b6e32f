package gitea

import (
	"context"
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
	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
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

	// defaultCheckTime is for how long a pull request that Gitea calls not mergeable may be still
	// checked for conflicts. It is far beyond the second or so that this takes.
	defaultCheckTime = 30 * time.Second
)

// Options say which Gitea, and who we are. URL is the server's root, https://git.example.com; with
// /api/v1 behind it is fine too. Token is an access token with the scopes read:user and
// write:repository. Gitea itself limits no calls.
type Options = rest.Options

// Driver talks to one Gitea with one identity. Safe for concurrent use.
type Driver struct {
	rest.NoDeployments

	http      *http.Client
	budget    *rest.Budget
	base      *url.URL
	token     string
	checkTime time.Duration
	now       func() time.Time
	account   rest.Account

	labels lock.Keyed[forge.Repo] // one at a time looks for labels and creates them: Gitea allows several of one name

	mu          sync.Mutex
	heads       *cache.Cache[headKey, string]    // see correctHead
	mergeChecks *cache.Cache[string, mergeCheck] // see toMergeable
	branches    map[forge.Repo]*branchList       // see PullRequestsByBranch
	unsupported map[string]bool                  // hook events that this server doesn't have
}

var _ forge.Forge = (*Driver)(nil)

// New makes a driver. It makes no call: whether the token is good shows at the
// first one.
func New(o Options) (*Driver, error) {
	base, err := rest.ParseServerURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New("the Gitea driver needs a token")
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/api/v1")
	client, budget := rest.NewClient(rest.Protocol{
		Options: o, Base: base.JoinPath("api", "v1"), Authorization: "token " + o.Token, CacheBytes: cacheBytes, Identity: "token",
		IsIntermediary: rest.IsWebPage,
	}, rest.Dialect{Message: readMessage, Refine: refine})
	return &Driver{
		NoDeployments: noDeployments,
		http:          client,
		budget:        budget,
		base:          base,
		token:         o.Token,
		checkTime:     defaultCheckTime,
		now:           time.Now,
		heads:         cache.New(o.Caches, cache.Options[headKey, string]{Name: "gitea-heads", Entries: maxRemembered}),
		mergeChecks:   cache.New(o.Caches, cache.Options[string, mergeCheck]{Name: "gitea-merge-checks", Entries: maxRemembered}),
		branches:      map[forge.Repo]*branchList{},
		unsupported:   map[string]bool{},
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
		segments[i] = rest.Segment(s)
	}
	u := d.base.JoinPath("api", "v1").String() + "/" + strings.Join(segments, "/") + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, rest.Wrap(op, err)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, rest.Wrap(op, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return nil, rest.Wrap(op, err)
	}
	return &sdk.Response{Response: resp}, nil
}

// bounds are those of every list.
var bounds = rest.Bounds{PerPage: perPage, Pages: maxPages, TooMany: forge.ErrInvalid}

// forEach reads a list page by page, until each has enough. It ends when everything that the server
// counts has come, or when a page is empty.
func forEach[T any](op string, b rest.Bounds, list func(sdk.ListOptions) ([]T, *sdk.Response, error), each func(T) (enough bool)) error {
	seen := 0
	return rest.ForEach(op, b, func(page int) (rest.Page[T], error) {
		entries, resp, err := list(sdk.ListOptions{Page: page, PageSize: b.PerPage})
		if err != nil {
			return rest.Page[T]{}, err
		}
		seen += len(entries)
		total, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
		if isCounted := err == nil; len(entries) == 0 || isCounted && seen >= total {
			return rest.Page[T]{Entries: entries}, nil
		}
		return rest.Page[T]{Entries: entries, Next: page + 1}, nil
	}, each)
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
