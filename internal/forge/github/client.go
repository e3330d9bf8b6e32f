package github

import (
	"context"
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
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// DefaultURL is the API of the public service.
const DefaultURL = "https://api.github.com/"

const (
	// perPage is the most that GitHub gives at once.
	perPage = 100

	// maxPages bounds every list to 10,000 entries.
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

// Options say which GitHub, and who we are. URL is the API's root: https://api.github.com,
// https://ghe.example/api/v3; empty: the public service. Token is a personal access token, classic or
// fine-grained.
type Options = rest.Options

// Driver talks to one GitHub with one identity. Safe for concurrent use.
type Driver struct {
	api     *gh.Client
	budget  func(ctx context.Context) (*rest.Budget, error) // of the calls that are made with it
	base    *url.URL
	token   func(ctx context.Context) (string, error)     // that is good now
	account func(ctx context.Context) (forge.User, error) // whose it is
	hooks   *cache.Cache[hookPlace, int64]                // their numbers

	mu      sync.Mutex
	known   rest.Account     // of a token, whose owner doesn't change
	secrets map[int64]string // hook: digest of the secret that this process has set

	noLateEvents atomic.Bool // GitHub has refused them

	now       func() time.Time
	bulkAgain map[string]time.Time // until when pull requests aren't read together, by owner in lower case
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
	api, budget := newClient(rest.Protocol{
		Options: o, Base: base, Authorization: "Bearer " + o.Token, CacheBytes: cacheBytes, Identity: "token", Limits: limitsOf(base,
			o.PublicLimits),
	})
	d := newDriver(base, o, api)
	d.budget = func(context.Context) (*rest.Budget, error) { return budget, nil }
	d.token = func(context.Context) (string, error) { return o.Token, nil }
	d.account = d.readAccount
	return d, nil
}

// parseBase reads the address of an API; empty: the public service's.
func parseBase(text string) (*url.URL, error) {
	if text == "" {
		text = DefaultURL
	}
	base, err := url.Parse(text)
	if err != nil || !rest.IsServerURL(base) {
		return nil, fmt.Errorf("forge url %q is not the address of an API: write https://HOST/api/v3 (or omit it for github.com)",
			redactURL(base, text))
	}
	base.Path = strings.TrimRight(base.Path, "/") + "/"
	return base, nil
}

// newClient makes a client of the API, whose calls go out by p.
func newClient(p rest.Protocol) (*gh.Client, *rest.Budget) {
	p.Headers, p.IsIntermediary = http.Header{versionHeader: {apiVersion}}, rest.IsWebPage
	calls, budget := rest.NewClient(p, dialect)
	client := gh.NewClient(calls)
	client.BaseURL = p.Base
	return client, budget
}

// newDriver makes a driver of a client. The caller chooses the budget, the token and the account.
func newDriver(base *url.URL, o Options, api *gh.Client) *Driver {
	d := &Driver{
		api: api, base: base, secrets: map[int64]string{}, now: o.Now, bulkAgain: map[string]time.Time{},
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
	return rest.Segment(r.Owner), rest.Segment(r.Name)
}

// callPlace is where a call is made: by it an App is known which of its installations makes it. The zero
// one is nowhere in particular, as what is asked of accounts.
type callPlace struct{ owner, repo string }

type placeKey struct{}

// placeOf is where a call with a context is made.
func placeOf(ctx context.Context) callPlace {
	at, _ := ctx.Value(placeKey{}).(callPlace)
	return at
}

// inRepo gives the context of calls about a repository, and its owner and name as path segments.
func inRepo(ctx context.Context, r forge.Repo) (in context.Context, owner, name string) {
	owner, name = repoPath(r)
	return context.WithValue(ctx, placeKey{}, callPlace{r.Owner, r.Name}), owner, name
}

// inTeam gives the context of calls about a team, and its organisation and name as path segments.
func inTeam(ctx context.Context, t forge.Team) (in context.Context, organisation, name string) {
	return context.WithValue(ctx, placeKey{}, callPlace{owner: t.Organisation}), rest.Segment(t.Organisation), rest.Segment(t.Name)
}

// bounds are those of every list; maxPullPages is more.
var bounds = rest.Bounds{PerPage: perPage, Pages: maxPages, TooMany: forge.ErrInvalid}

// forEach reads a list page by page, until it ends or each has enough.
func forEach[T any](op string, b rest.Bounds, list func(gh.ListOptions) ([]T, *gh.Response, error), each func(T) (enough bool)) error {
	return rest.ForEach(op, b, func(page int) (rest.Page[T], error) {
		o := gh.ListOptions{PerPage: b.PerPage}
		if page > 1 {
			o.Page = page
		}
		entries, resp, err := list(o)
		if err != nil {
			return rest.Page[T]{}, wrapError(op, err)
		}
		return rest.Page[T]{Entries: entries, Next: resp.NextPage}, nil
	}, each)
}
