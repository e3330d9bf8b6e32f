package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

//go:embed templates assets
var files embed.FS

// Token is an API token.
type Token struct {
	Name   string // who it is, in the audit trail
	Role   string // command.RoleViewer, RoleOperator or RoleBreakGlass
	Secret string
}

// Order is a command that came in over the API, authenticated and well-formed:
// its component and environment exist where they are named.
type Order struct {
	Repo, Pipeline string
	Component      string // empty: a hold on an environment or the pipeline
	Environment    string // empty: a hold on the component or the pipeline
	Pull           int    // the promotion's pull request; 0: it is about none
	Verb           string // promote, hold, unhold, retry or revert
	Scope          string // hold and unhold: pr, component, environment or pipeline
	Reason         string
	By             string // the token's name
	Role           string // the token's role
	Via            string // "api"
	Source         string // unique; the same when a client sends the same command again
}

// Refusal is the error of a command that is not carried out, with the reason
// for whoever gave it.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// ErrNotReady is the error of a command that came before Liftlock could take it.
var ErrNotReady = errors.New("the server has not reached its repositories yet; try again in a moment")

// Options are what the console shows and to whom commands go. Store is required.
type Options struct {
	Store *store.Store
	// Health tells what is not well: an unreachable Argo CD, a repository that
	// can't be fetched, a broken pipeline file. Nil: nothing is. It is called
	// often and must answer from memory.
	Health func(context.Context) []api.Trouble
	// Command carries an order out and returns an answer for people. Its errors:
	// *Refusal, ErrNotReady, or what went wrong. Nil: no commands are taken.
	Command func(context.Context, Order) (answer string, err error)
	// Differences compares what a pipeline resolves to with what runs. It may take
	// a while: its answers are remembered for a moment. Its errors: *Refusal when
	// there is no such pipeline, ErrNotReady, or what went wrong. Nil: nothing is compared.
	Differences func(ctx context.Context, repo, pipeline string) (*api.Differences, error)
	// Diff renders what a promotion that has a pull request changes; who it is of
	// is filled in by the console, and its answers are remembered for a while. Its
	// errors: *Refusal with why it can't be shown, ErrNotReady, or what went wrong.
	// Nil: nothing is rendered.
	Diff   func(context.Context, store.Promotion) (*api.RenderedDiff, error)
	Tokens []Token // empty: everything only reads
	// ExternalURL is where people reach the server; its path, if it has one, is
	// the prefix of every link. The prefix is expected to be gone from requests.
	ExternalURL string
	Version     string
	Now         func() time.Time // nil: time.Now
	Log         *zap.Logger      // nil: nothing is logged

	Streams   int           // how many event streams may be open at once; 0: 128
	Heartbeat time.Duration // between signs of life on a silent stream; 0: 15 s
	Poll      time.Duration // between looks for changes that are no event; 0: 2 s
}

const (
	defaultStreams   = 128
	defaultHeartbeat = 15 * time.Second
	defaultPoll      = 2 * time.Second
)

// console is the handler's state.
type console struct {
	o     Options
	base  string // prefix of links, without a trailing slash
	auth  *authority
	read  *reader
	hub   *hub
	pages *pages
	diffs *comparisons

	rendered *costly[*api.RenderedDiff]
}

// New makes the handler of /, /pipelines/, /differences/, /promotions, /diff, /assets/ and /api/v1/.
// It is safe for concurrent use and needs no closing: streams end with their
// requests' contexts.
func New(o Options) (http.Handler, error) {
	if o.Store == nil {
		return nil, errors.New("build the console: a store is required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Health == nil {
		o.Health = func(context.Context) []api.Trouble { return nil }
	}
	if o.Streams <= 0 {
		o.Streams = defaultStreams
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	u, err := url.Parse(o.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("build the console: externalURL: %w", err)
	}
	c := &console{o: o, base: strings.TrimRight(u.EscapedPath(), "/")}
	if c.auth, err = newAuthority(o.Tokens); err != nil {
		return nil, fmt.Errorf("build the console: %w", err)
	}
	c.read = newReader(o.Store, o.Health)
	c.hub = newHub(c.read, o.Streams, o.Poll)
	c.diffs = newComparisons(o.Differences, o.Now)
	c.rendered = newCostly[*api.RenderedDiff]("render what it changes", renderTime, maxRendered, o.Now)
	if c.pages, err = newPages(c.base, o.Version, o.Now, c.read.twice); err != nil {
		return nil, fmt.Errorf("build the console: %w", err)
	}
	return secured(c.routes()), nil
}

// routes lists every address that the console answers.
func (c *console) routes() http.Handler {
	r := newRouter()
	r.api("GET", "/api/v1/pipelines", c.getPipelines)
	r.api("GET", "/api/v1/pipelines/{pipeline}", c.getPipeline)
	r.api("GET", "/api/v1/pipelines/{pipeline}/differences", c.getDifferences)
	r.api("GET", "/api/v1/pipelines/{pipeline}/compare", c.getComparison)
	r.api("GET", "/api/v1/promotions", c.getPromotions)
	r.api("GET", "/api/v1/promotions/{id}", c.getPromotion)
	r.api("GET", "/api/v1/promotions/{id}/diff", c.getDiff)
	r.api("GET", "/api/v1/why", c.getWhy)
	r.api("GET", "/api/v1/events", c.getEvents)
	for _, verb := range []string{command.Promote, command.Hold, command.Unhold} {
		r.api("POST", "/api/v1/pipelines/{pipeline}/"+verb, c.onPipeline(verb))
	}
	for _, verb := range []string{command.Hold, command.Unhold, command.Retry, command.Revert, command.Skip} {
		r.api("POST", "/api/v1/promotions/{id}/"+verb, c.onPromotion(verb))
	}
	r.page("/{$}", c.home)
	r.page("/pipelines/{pipeline}", c.pipelinePage)
	r.page("/pipelines/{pipeline}/{component}", c.componentPage)
	r.page("/pipelines/{pipeline}/{component}/compare", c.comparisonPage)
	r.page("/differences/{pipeline}", c.differencesPage)
	r.page("/promotions", c.promotionsPage)
	r.page("/promotions/{id}", c.promotionPage)
	r.page("/promotions/{id}/diff", c.diffPage)
	r.page("/diff", c.findDiff)
	r.page("/assets/{name}", c.pages.asset)
	return r.done(c.noPage)
}
