package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

//go:embed templates assets
var embeddedFiles embed.FS

// Token is an API token.
type Token struct {
	Name   string // who it is, in the audit trail
	Role   string // command.RoleViewer, RoleOperator or RoleBreakGlass
	Secret string
	Digest []byte // the secret's SHA-256; nil: Secret is given
}

// Command is a command that came in over the API or from a page, authenticated and well-formed:
// its component and environment exist where they are named.
type Command struct {
	Repo, Pipeline string
	Component      string        // empty: a hold on an environment or the pipeline
	Environment    string        // empty: a hold on the component or the pipeline
	Pull           int           // the promotion's pull request; 0: it is about none
	Verb           command.Verb  // promote, hold, unhold, retry, revert or skip
	Gate           string        // skip: which
	Head           string        // skip: the head that it is about, or how that begins; empty: what is there
	Reverts        bool          // hold: reverts stand still too
	For            time.Duration // hold: how long; 0: until somebody lifts it
	Until          time.Time     // hold: until when; zero: as For says
	Scope          string        // hold and unhold: pr, component, environment or pipeline
	Reason         string
	By             string // the token's name, or, of a user in the console, user.By
	Subject        string // a user's of the console, whom its name doesn't tell from others; else empty
	Account        string // the login of a user of the console on the repository's forge; empty: not known
	Role           string // the token's, or the user's
	Via            string // "api" or "console"
	Source         string // unique; the same when a client sends the same command again
}

// Refusal is the error of a command that is not carried out, with the reason for its author.
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
	Command func(context.Context, Command) (answer string, err error)
	// Differences compares what a pipeline resolves to with what runs. It may take
	// a while: its answers are remembered for a moment. Its errors: *Refusal when
	// there is no such pipeline, ErrNotReady, or what went wrong. Nil: nothing is compared.
	Differences func(ctx context.Context, repo, pipeline string) (*api.Differences, error)
	// Diff renders the changes of a promotion that has a pull request. The console fills in whose
	// it is, and remembers its answers for a while. Its errors: *Refusal with why it can't be
	// shown, ErrNotReady, or what went wrong. Nil: nothing is rendered.
	Diff func(context.Context, store.Promotion) (*api.RenderedDiff, error)
	// CommitURL is the address of a commit's page on the forge or, with a base, of the page that
	// compares it with the base; empty: not known. Nil: none is.
	CommitURL func(repository, base, commit string) string
	// ApplicationURL is the address of an Application's page in an Argo CD, given as
	// namespace/name; empty: not known. Nil: none is.
	ApplicationURL func(argocd, application string) string
	Tokens         []Token // empty: the API only reads
	// Login lets people log in and give commands on the pages; nil: the pages only read. At an
	// identity provider it needs ExternalURL.
	Login *Login
	// Readers says who of those who may read reads which repositories; nil: each all.
	Readers *Readers
	// ReadToken: only who has one of the tokens, or has logged in, may read.
	ReadToken bool
	// Client says whose request it is, in any form; nil: the address that the
	// connection comes from.
	Client func(*http.Request) string
	// ExternalURL is where people reach the server; its path, if it has one, is
	// the prefix of every link. The prefix is expected to be gone from requests.
	ExternalURL string
	Version     string
	Now         func() time.Time // nil: time.Now
	Log         *zap.Logger      // nil: nothing is logged
	Caches      *cache.Group     // where what is kept is counted; nil: nowhere

	Streams   int           // how many event streams may be open at once; 0: 512. A quarter of them by one client
	Heartbeat time.Duration // between signs of life on a silent stream; 0: 15 s
	Poll      time.Duration // between looks for changes that are no event; 0: 2 s
	// Recheck is how long a stream goes on for somebody who reads because they have logged
	// in, until it has to begin anew; 0: 5 min.
	Recheck time.Duration
}

const (
	defaultStreams   = 512
	defaultHeartbeat = 15 * time.Second
	defaultPoll      = 2 * time.Second
	defaultRecheck   = 5 * time.Minute
)

// Console answers /, /pipelines/, /differences/, /apart/, /promotions, /diff, /overview, /audit, /live,
// /assets/ and /api/v1/, and, where people log in, /login, /logout, /account and /act/. Its answers are to go
// through WithSecurityHeaders. It is safe for concurrent use and needs no closing: streams end with their
// requests' contexts.
type Console struct {
	server *server
	router *router
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.router.mux.ServeHTTP(w, r)
}

// Routes lists every address that is answered, and to whom.
func (c *Console) Routes() []Route { return slices.Clone(c.router.routes) }

// ReadersOnly puts another handler, which tells of all repositories, behind the rights that reading
// all of the console needs.
func (c *Console) ReadersOnly(next http.Handler) http.Handler {
	return c.server.readersOnly(func(w http.ResponseWriter, r *http.Request) {
		if !c.server.access.reading(r.Context()).readsAll() {
			http.Error(w, "this tells of all repositories, and access in the server's file doesn't let you read all that it names",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// MayRead says whether a request may read all of the console.
func (c *Console) MayRead(r *http.Request) bool { return c.server.mayReadAll(r) }

// server is the handlers' state.
type server struct {
	opts       Options
	linkPrefix string // prefix of links, without a trailing slash
	origin     string // where people reach the server, as browsers name it; empty: originFor says it
	auth       *authenticator
	access     *accessRules
	records    *readableStore
	reader     *reader
	changes    *changeNotifier
	pages      *pages
	comparer   *liveComparer

	diffCache     *resultCache[*api.RenderedDiff]
	deliveryCache *resultCache[*api.Delivery]
	rendered      *cache.Cache[string, renderedPage] // by who may read them and their addresses

	auditExports  chan struct{}      // a place for each export that runs
	refusedLogins *command.RateLimit // how many come into the audit trail
	redemptions   *redemptions       // how often the identity provider is asked
}

// New makes a console.
func New(o Options) (*Console, error) {
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
	if o.CommitURL == nil {
		o.CommitURL = func(string, string, string) string { return "" }
	}
	if o.ApplicationURL == nil {
		o.ApplicationURL = func(string, string) string { return "" }
	}
	if o.Client == nil {
		o.Client = peerOf
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
	if o.Recheck <= 0 {
		o.Recheck = defaultRecheck
	}
	u, err := url.Parse(o.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("build the console: externalURL: %w", err)
	}
	c := &server{opts: o, linkPrefix: strings.TrimRight(u.EscapedPath(), "/"), auditExports: make(chan struct{}, maxAuditExports),
		refusedLogins: command.NewRateLimit(o.Now), redemptions: newRedemptions(&o)}
	if o.Login != nil {
		if err := o.Login.check(u); err != nil {
			return nil, fmt.Errorf("build the console: %w", err)
		}
		if u.Host != "" {
			c.origin = originOf(u)
		}
	}
	if c.auth, err = newAuthenticator(o.Tokens); err != nil {
		return nil, fmt.Errorf("build the console: %w", err)
	}
	c.access = newAccessRules(&o)
	c.records = &readableStore{o.Store, c.access}
	c.reader = newReader(&o, c.records)
	c.changes = &changeNotifier{reader: c.reader, interval: o.Poll, maxSubscribers: o.Streams, subs: map[chan struct{}]string{},
		byClient: map[string]int{}}
	c.comparer = newLiveComparer(&o)
	c.diffCache = newResultCache[*api.RenderedDiff](&o, "render what it changes", renderTimeout, maxRenderedDiffs)
	c.rendered = cache.New(o.Caches, cache.Options[string, renderedPage]{Name: "console-pages", Entries: maxRenderedPages})
	c.deliveryCache = newResultCache[*api.Delivery](&o, "measure how well releases are delivered", deliveryTimeout, 1)
	if c.pages, err = newPages(c.linkPrefix, o.Version, o.Login != nil, o.Now, c.reader.isAmbiguous); err != nil {
		return nil, fmt.Errorf("build the console: %w", err)
	}
	routes, err := c.buildRoutes()
	if err != nil {
		return nil, fmt.Errorf("build the console: %w", err)
	}
	return &Console{server: c, router: routes}, nil
}

// buildRoutes lists every address that the console answers.
func (se *server) buildRoutes() (*router, error) {
	r, err := newRouter(se.readersOnly, se.streamReadersOnly, se.shareRendering)
	if err != nil {
		return nil, err
	}
	r.handleQuestion("/api/v1/pipelines", se.getPipelines)
	r.handleQuestion("/api/v1/pipelines/{pipeline}", se.getPipeline)
	r.handleQuestion("/api/v1/pipelines/{pipeline}/differences", se.getDifferences)
	r.handleQuestion("/api/v1/pipelines/{pipeline}/compare", se.getComparison)
	r.handleQuestion("/api/v1/pipelines/{pipeline}/apart", se.getEnvironmentComparison)
	r.handleQuestion("/api/v1/promotions", se.getPromotions)
	r.handleQuestion("/api/v1/promotions/{id}", se.getPromotion)
	r.handleQuestion("/api/v1/promotions/{id}/diff", se.getDiff)
	r.handleQuestion("/api/v1/overview", se.getOverview)
	r.handleQuestion("/api/v1/why", se.getWhy)
	r.handleLongQuestion("/api/v1/audit", se.getAudit)
	r.handleLongQuestion("/api/v1/events", se.getEvents)
	for _, verb := range command.OnPipeline() {
		r.handleCommand("/api/v1/pipelines/{pipeline}/"+string(verb), se.handlePipelineCommand(verb))
	}
	for _, verb := range command.OnPromotion() {
		r.handleCommand("/api/v1/promotions/{id}/"+string(verb), se.handlePromotionCommand(verb))
	}
	r.handleOpen("/api/v1/openapi.json", r.compress(http.HandlerFunc(se.getOpenAPI)))
	r.handlePage("/{$}", se.homePage)
	r.handlePage("/pipelines/{pipeline}", se.pipelinePage)
	r.handlePage("/pipelines/{pipeline}/{component}", se.componentPage)
	r.handlePage("/pipelines/{pipeline}/{component}/compare", se.comparisonPage)
	r.handlePage("/differences/{pipeline}", se.differencesPage)
	r.handlePage("/apart/{pipeline}", se.apartPage)
	r.handlePage("/promotions", se.promotionsPage)
	r.handlePage("/promotions/{id}", se.promotionPage)
	r.handlePage("/promotions/{id}/diff", se.diffPage)
	r.handlePage("/diff", se.findDiff)
	r.handlePage("/overview", se.overviewPage)
	r.handlePage("/audit", se.auditPage)
	r.handleStream("/live", se.followPage)
	r.handleOpen("/assets/{name}", r.compress(http.HandlerFunc(se.pages.serveAsset)))
	if se.opts.Login != nil {
		se.addLoginRoutes(r)
	}
	r.handleRest(se.pageNotFound)
	return r, nil
}

// addLoginRoutes lists the routes that are answered only where people log in. A page with a form's
// token on it is not compressed.
func (se *server) addLoginRoutes(r *router) {
	r.handleOpen("/login", se.beginLogin)
	if se.opts.Login.Provider != nil {
		r.handleOpen("/login/callback", se.finishLogin)
	}
	r.handleOpen("/login/token", se.tokenPage)
	r.handle(Route{http.MethodPost, "/login/token", ForAnybody}, se.logInByToken)
	r.handleOpen("/logged-out", se.loggedOutPage)
	r.handleUser(http.MethodPost, "/logout", se.usersOnly(se.logout))
	r.handleUser(http.MethodGet, "/account", se.usersOnly(se.accountPage))
	r.handleUser(http.MethodPost, "/account/sessions/{id}", se.usersOnly(se.endSession))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r.handleUser(method, "/act/promotions/{id}/{verb}", se.usersOnly(se.actOnPromotion))
		r.handleUser(method, "/act/pipelines/{pipeline}/{verb}", se.usersOnly(se.actOnPipeline))
	}
}
