package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/xanzy/go-gitlab"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// perPage is the most that GitLab gives.
	perPage = 100

	// maxPages bounds every list, as in the other drivers, to 10,000 entries.
	maxPages = 100

	// maxPullPages bounds the list of a project's merge requests, which grows for ever, to
	// 200,000 entries.
	maxPullPages = 20 * maxPages

	// cacheBytes is room for what GitLab answers with an ETag.
	cacheBytes = 16 << 20

	// maxProjects bounds how many projects' numbers are remembered.
	maxProjects = 10_000

	// maxHooks bounds how many hooks' numbers are remembered.
	maxHooks = 10_000

	// maxStatuses bounds of how many commits the pipeline, and the status that was set, are remembered.
	maxStatuses = 10_000
)

// Options say which GitLab, and who we are. URL is the server's root, https://git.example.com or with
// a path; with /api/v4 behind it is fine too. Token is a personal, project or group access token with
// the scope api.
type Options = rest.Options

// Driver talks to one GitLab with one identity. Safe for concurrent use.
type Driver struct {
	rest.NoDeployments

	//lint:ignore SA1019 its successor is of another module; to change to it is this folder's matter
	client   *sdk.Client
	budget   *rest.Budget
	base     *url.URL
	token    string
	now      func() time.Time
	account  rest.Account
	projects *cache.Cache[forge.Repo, int64] // numbers by path
	hooks    *cache.Cache[hookPlace, string] // likewise

	pipelines *cache.Cache[commitPlace, pipeline]     // by the head of the merge request that they go for
	statuses  *cache.Cache[statusPlace, placedStatus] // that were set

}

var _ forge.Forge = (*Driver)(nil)

// New makes a driver that keeps to the limits set, besides those that GitLab's answers tell of. It
// makes no call: whether the token is good shows at the first one.
func New(o Options, set CallLimits) (*Driver, error) {
	base, err := rest.ParseServerURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New("the GitLab driver needs a token")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/api/v4")
	api := base.JoinPath("api", "v4")
	calls, budget := rest.NewClient(rest.Protocol{
		Options: o, Base: api, Header: "PRIVATE-TOKEN", Authorization: o.Token, CacheBytes: cacheBytes, Identity: "token",
		Limits: limitsOf(base, o.PublicLimits, set), IsOfEndpoint: isOfEndpoint, IsIntermediary: rest.IsNotJSON,
	}, rest.Dialect{Message: readMessage, Refine: refine, Hide: hideLink})
	// The token is the transport's: the client would send it wherever it is led.
	//lint:ignore SA1019 as above
	client, err := sdk.NewClient("", sdk.WithBaseURL(api.String()), sdk.WithHTTPClient(calls), sdk.WithoutRetries(),
		sdk.WithCustomLimiter(noLimit{}))
	if err != nil {
		return nil, fmt.Errorf("making GitLab's client: %w", err)
	}
	return &Driver{
		NoDeployments: noDeployments,
		client:        client,
		budget:        budget,
		base:          base,
		token:         o.Token,
		now:           o.Now,
		projects:      cache.New(o.Caches, cache.Options[forge.Repo, int64]{Name: "gitlab-projects", Entries: maxProjects}),
		hooks:         cache.New(o.Caches, cache.Options[hookPlace, string]{Name: "gitlab-hooks", Entries: maxHooks}),

		pipelines: cache.New(o.Caches, cache.Options[commitPlace, pipeline]{Name: "gitlab-pipelines", Entries: maxStatuses}),
		statuses:  cache.New(o.Caches, cache.Options[statusPlace, placedStatus]{Name: "gitlab-statuses", Entries: maxStatuses}),
	}, nil
}

// noLimit keeps the client from limits of its own: who calls keeps to the forge's.
type noLimit struct{}

func (noLimit) Wait(context.Context) error { return nil }

// query is what the calls of this driver have in their address; what is empty is left out.
type query struct {
	Page           int    `url:"page,omitempty"`
	PerPage        int    `url:"per_page,omitempty"`
	Scope          string `url:"scope,omitempty"`
	State          string `url:"state,omitempty"`
	OrderBy        string `url:"order_by,omitempty"`
	Sort           string `url:"sort,omitempty"`
	SourceBranch   string `url:"source_branch,omitempty"`
	TargetBranch   string `url:"target_branch,omitempty"`
	UpdatedAfter   string `url:"updated_after,omitempty"`
	Before         string `url:"before,omitempty"` // a day
	Action         string `url:"action,omitempty"`
	ActivityFilter string `url:"activity_filter,omitempty"`
	All            bool   `url:"all,omitempty"`
	Username       string `url:"username,omitempty"`
	Search         string `url:"search,omitempty"`
	From           string `url:"from,omitempty"`
	To             string `url:"to,omitempty"`
	Stats          *bool  `url:"stats,omitempty"`
	WithProjects   *bool  `url:"with_projects,omitempty"`
}

// no is for what is on unless a call says otherwise.
var no = new(bool)

// call makes one call: options go into the address of a GET and into the body of any other,
// the answer into out, unless that is nil. The segments are escaped.
func (d *Driver) call(ctx context.Context, op, method string, options, out any, segments ...string) (*sdk.Response, error) {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		escaped[i] = sdk.PathEscape(s)
	}
	req, err := d.client.NewRequest(method, strings.Join(escaped, "/"), options, []sdk.RequestOptionFunc{sdk.WithContext(ctx)})
	if err != nil {
		return nil, rest.Wrap(op, err)
	}
	var into any
	if out != nil {
		into = &checkedJSON{out}
	}
	resp, err := d.client.Do(req, into)
	if err != nil && resp != nil { // a success, or it were a refusal
		return resp, unreadable(op, err)
	}
	return resp, rest.Wrap(op, err)
}

// unreadable is the error of an answer that isn't understood.
func unreadable(op string, err error) error {
	return &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "GitLab's answer can't be read: " +
		rest.ClipMessage(err.Error()), Err: err}
}

// callProject is call below a project.
func (d *Driver) callProject(ctx context.Context, op string, r forge.Repo, method string, options, out any,
	segments ...string) (*sdk.Response, error) {
	id, err := d.projectID(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := d.call(ctx, op, method, options, out, append([]string{"projects", strconv.FormatInt(id, 10)}, segments...)...)
	if isMissingProject(err) { // another may have its path by now
		d.projects.Remove(r)
	}
	return resp, err
}

// forEach reads a list below a project, page by page and at most so many, until each has
// enough.
func forEach[T any](ctx context.Context, d *Driver, op string, r forge.Repo, most int, q query,
	each func(T) (enough bool), segments ...string) error {
	q.PerPage = perPage
	var wrong error // with an entry
	err := rest.ForEach(op, rest.Bounds{PerPage: perPage, Pages: most, TooMany: forge.ErrTooMany}, func(page int) (rest.Page[T], error) {
		q.Page = page
		var entries []T
		resp, err := d.callProject(ctx, op, r, http.MethodGet, q, &entries, segments...)
		if err != nil {
			return rest.Page[T]{}, err
		}
		next, err := d.nextPage(op, resp, q, len(entries))
		return rest.Page[T]{Entries: entries, Next: next}, err
	}, func(entry T) bool {
		if wrong = complete(&entry); wrong != nil {
			return true
		}
		return each(entry)
	})
	if wrong != nil {
		return unreadable(op, wrong)
	}
	return err
}

// nextPage is the page of a list behind one of so many entries; 0: there is none. Where something in
// between takes off the header that says it, a full page has another behind it.
func (d *Driver) nextPage(op string, resp *sdk.Response, q query, entries int) (int, error) {
	next := resp.Header.Values("X-Next-Page")
	switch {
	case entries == 0, len(next) > 0 && next[0] == "", len(next) == 0 && entries < q.PerPage:
		return 0, nil
	case len(next) == 0:
		return q.Page + 1, nil
	}
	n, err := strconv.Atoi(next[0])
	if err != nil || n <= q.Page {
		return 0, unreadable(op, fmt.Errorf("behind page %d comes page %q", q.Page, next[0]))
	}
	return n, nil
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
