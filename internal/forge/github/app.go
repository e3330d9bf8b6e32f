package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// installationsAge is how long the list of installations is believed while all is well,
	// restInterval how long where something is missing in it. Events make it be read at once.
	installationsAge = 10 * time.Minute
	restInterval     = time.Minute

	// installationsKey locks the list, appKey the App's bot and webhook, and aboutKey GitHub's
	// description of the App: the holder of one of the others may want it.
	installationsKey, appKey, aboutKey = "installations", "app", "about"
)

// AppOptions say which App we are, and what it works for.
type AppOptions struct {
	ID             string       // the App's ID or its client ID; required
	PrivateKeyFile string       // its RSA key in PEM, or several; required
	Owners         []string     // whose installations are used; none: all
	InstallationID int64        // the one installation that is used, of any owner; 0: they are found
	Repositories   []forge.Repo // that Liftlock looks after: only these are written to
	ManageWebhook  bool         // the App's webhook is pointed at us
}

// App talks to one GitHub as a GitHub App, in the organisations where it is installed. It is a
// driver that makes every call with the token of the repository that the call is for. Tokens for a
// repository that Liftlock looks after are good for this one and for all that the App's manifest
// asks for. Others are read with tokens that only read. Calls of an installation share one budget,
// as GitHub counts them. Safe for concurrent use.
type App struct {
	*Driver
	options Options
	app     AppOptions
	own     *gh.Client // with the App's own token: no repository's
	answers *rest.AnswerCache
	locks   lock.Keyed[string]

	mu            sync.Mutex
	about         aboutApp
	installations map[string]*installation // by its owner in lower case, also a former name
	readAt        time.Time                // when they were; zero: they are to be read again
	sources       map[string]*tokenSource  // by installation and repository
	budgets       map[int64]*rest.Budget
	hookSet       string           // digest of the hook's configuration that this process has set
	log           recentDeliveries // guarded by the lock of deliveries
}

var (
	_ forge.Forge      = (*App)(nil)
	_ forge.BulkReader = (*App)(nil)

	_ forge.CommitSigner = (*App)(nil)
	_ rest.Credentials   = (*App)(nil)
)

// aboutApp is what GitHub says of the App itself.
type aboutApp struct {
	slug, page string
	events     []string
	me         forge.User // Login is empty until it is known
	readAt     time.Time
}

// NewApp makes a driver that works as an App. It makes no call, but reads the private key.
func NewApp(o Options, a AppOptions) (*App, error) {
	base, err := parseBase(o.URL)
	if err != nil {
		return nil, err
	}
	if a.ID == "" || a.PrivateKeyFile == "" {
		return nil, errors.New("a GitHub App needs its ID and its private key")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	keys, err := newAppKeys(a.PrivateKeyFile, a.ID, o.Now)
	if err != nil {
		return nil, err
	}
	p := &App{options: o, app: a, answers: rest.NewAnswerCache(o.Caches, cacheBytes),
		installations: map[string]*installation{}, sources: map[string]*tokenSource{}, budgets: map[int64]*rest.Budget{}}
	p.own, _ = newClient(rest.Protocol{Options: o, Base: base, Credentials: keys, Answers: p.answers, Identity: "app",
		Limits: limitsOf(base, o.PublicLimits)})
	api, _ := newClient(rest.Protocol{Options: o, Base: base, Credentials: p, Answers: p.answers})
	p.Driver = newDriver(base, o, api)
	p.Driver.account = p.Me
	p.Driver.token = func(ctx context.Context) (string, error) {
		s, err := p.tokensFor(ctx)
		if err != nil {
			return "", rest.Wrap("get a token for Git", err)
		}
		return s.token(ctx)
	}
	p.Driver.budget = func(ctx context.Context) (*rest.Budget, error) {
		s, err := p.tokensFor(ctx)
		if err != nil {
			return nil, rest.Wrap("read how many calls are left", err)
		}
		return s.budget, nil
	}
	return p, nil
}

// wrapAppError is wrapError for calls with the App's own token.
func (ap *App) wrapAppError(op string, err error) error {
	var e *forge.Error
	if !errors.As(wrapError(op, err), &e) {
		return err
	}
	if e.Status == http.StatusNotFound && rest.Says(e, "Integration not found") {
		e.Kind = forge.ErrUnauthorized // there is no App of this ID
	}
	if errors.Is(e, forge.ErrUnauthorized) {
		e.Hint = "check auth.app in the server's file: the App's ID and its private key belong together, and this key is none of the " +
			"App's (any more); it can be exchanged while Liftlock runs"
	}
	return e
}

// readAbout reads what GitHub says of the App itself, where that isn't known yet: once for those
// who want to know it at the same time.
func (ap *App) readAbout(ctx context.Context) error {
	unlock, err := ap.locks.Lock(ctx, aboutKey)
	if err != nil {
		return err
	}
	defer unlock()
	ap.mu.Lock()
	known := ap.about.slug != "" && ap.options.Now().Sub(ap.about.readAt) < installationsAge
	ap.mu.Unlock()
	if known {
		return nil
	}
	app, _, err := ap.own.Apps.Get(ctx, "")
	if err != nil {
		return ap.wrapAppError("read the App itself", err)
	}
	ap.mu.Lock()
	defer ap.mu.Unlock()
	ap.about.slug, ap.about.page, ap.about.events, ap.about.readAt = app.GetSlug(), app.GetHTMLURL(), app.Events, ap.options.Now()
	return nil
}

// Me is the App's bot. Its number is read with an installation's token: the App's own isn't
// taken for accounts.
func (ap *App) Me(ctx context.Context) (forge.User, error) {
	unlock, err := ap.locks.Lock(ctx, appKey)
	if err != nil {
		return forge.User{}, err
	}
	defer unlock()
	ap.mu.Lock()
	me := ap.about.me
	ap.mu.Unlock()
	if me.Login != "" {
		return me, nil
	}
	if err := ap.readAbout(ctx); err != nil {
		return forge.User{}, err
	}
	ap.mu.Lock()
	login := ap.about.slug + "[bot]"
	ap.mu.Unlock()
	u, _, err := ap.api.Users.Get(ctx, rest.Segment(login))
	if err != nil {
		return forge.User{}, wrapError("read the App's account "+login, err)
	}
	me = toUser(u)
	me.Email = fmt.Sprintf("%d+%s@users.noreply.%s", me.ID, me.Login, noReplyHost(ap.base))
	ap.mu.Lock()
	defer ap.mu.Unlock()
	ap.about.me = me
	return me, nil
}

// For gives a call the token for where it is made.
func (ap *App) For(ctx context.Context) (rest.Credential, error) {
	s, err := ap.tokensFor(ctx)
	if err != nil {
		return rest.Credential{}, err
	}
	return s.credential(ctx)
}

// tokensFor are those for where a call is made: of a repository its own where Liftlock looks after it,
// else such as only read. An error says where the App may not work, and not which call was to be made.
func (ap *App) tokensFor(ctx context.Context) (*tokenSource, error) {
	at := placeOf(ctx)
	if at == (callPlace{}) {
		return ap.anyTokens(ctx)
	}
	i, err := ap.findInstallation(ctx, at.owner, at.repo)
	own := slices.ContainsFunc(ap.app.Repositories, func(o forge.Repo) bool { return strings.EqualFold(o.String(), at.owner+"/"+at.repo) })
	isRefused := errors.Is(err, forge.ErrNotInstalled)
	switch {
	case err == nil && own:
		return ap.tokensOf(i, at.repo), nil
	case err == nil:
		return ap.tokensOf(i, ""), nil
	case isRefused && at.repo == "": // an account outside of an organisation sees no team of it
		rests := rest.ErrorOf(err)
		return nil, &forge.Error{Kind: forge.ErrNotFound, Message: rests.Message, Hint: rests.Hint}
	case isRefused && !own:
		return ap.anyTokens(ctx) // a public one can be read from anywhere
	}
	return nil, rest.KeepOperation(err)
}

// anyTokens are those to read with of whichever installation can be used.
func (ap *App) anyTokens(ctx context.Context) (*tokenSource, error) {
	var first error
	for _, r := range ap.app.Repositories {
		i, err := ap.findInstallation(ctx, r.Owner, r.Name)
		if err == nil {
			return ap.tokensOf(i, ""), nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return nil, &forge.Error{Kind: forge.ErrNotInstalled, Message: "the App looks after no repository"}
	}
	return nil, rest.KeepOperation(first)
}

// tokensOf are those for one of an installation's repositories; without a name, such as read all of
// them.
func (ap *App) tokensOf(i *installation, repo string) *tokenSource {
	ap.mu.Lock()
	defer ap.mu.Unlock()
	key := fmt.Sprintf("%d/%s", i.id, strings.ToLower(repo))
	if s := ap.sources[key]; s != nil {
		return s
	}
	if ap.budgets[i.id] == nil {
		ap.budgets[i.id] = rest.NewBudget(ap.options.Now, limitsOf(ap.base, ap.options.PublicLimits),
			ap.options.OnLimited).Share(fmt.Sprintf("installation %d", i.id), ap.options.Exchange)
	}
	ap.sources[key] = &tokenSource{app: ap, budget: ap.budgets[i.id], installation: i.id, owner: i.owner, repo: repo}
	return ap.sources[key]
}

// GitRefused records that Git's remote refused a token that GitAuth gave for a repository, and says
// whether GitAuth gives another one now. The App doesn't see Git's calls, and a token may have been
// revoked.
func (ap *App) GitRefused(r forge.Repo, token string) bool {
	ap.mu.Lock()
	var all []*tokenSource
	for _, s := range ap.sources {
		if strings.EqualFold(s.owner, r.Owner) && strings.EqualFold(s.repo, r.Name) {
			all = append(all, s)
		}
	}
	ap.mu.Unlock()
	return slices.ContainsFunc(all, func(s *tokenSource) bool { return s.refusedByGit(token) })
}
