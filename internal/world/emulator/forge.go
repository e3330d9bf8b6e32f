package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ForgeOptions say how a Forge is made.
type ForgeOptions struct {
	Dir          string           // where the bare repositories go; created when missing; required
	Now          func() time.Time // the clock; nil: time.Now
	Log          *zap.Logger      // nil: silent
	WholeSeconds bool             // times without fractions of a second, as GitHub's are
	// REST calls of a user, an hour on GitHub and a minute on GitLab; 0: DefaultRateLimit or
	// DefaultGitLabRateLimit
	RateLimit int

	// SecondaryShare says which part of GitHub's secondary limits is enforced: 1, as they are
	// published; 10, a tenth; 0: none.
	SecondaryShare int

	Face         Face   // whose API it has; empty: GitHub's
	Path         string // GitLab: the path of its relative URL, such as "/git"; empty: none
	PublicLimits bool   // GitLab: also the limits that gitlab.com sets to single calls
	KeepHooks    bool   // GitLab: hooks that fail aren't disabled, as self-managed ones do at first
	OldGitLab    bool   // GitLab: it is a 17.0, which doesn't know what came since, and not a 19.4
	// Record is given every REST call that was answered, one after the other; nil: nobody
	// is. It must not call the forge.
	Record func(Exchange)
}

// Face says whose API a Forge has. World, Git and people's actions are the same.
type Face string

// The faces.
const (
	GitHub Face = "github"
	GitLab Face = "gitlab"
	// GitHubApp is GitHub's, for those who are going to work there as a GitHub App. A forge
	// that has it says that it is GitHub's.
	GitHubApp Face = "github-app"
)

// DefaultRateLimit is GitHub Enterprise Cloud's: high enough for any story.
const DefaultRateLimit = 15000

// Exchange is one REST call and its answer.
type Exchange struct {
	Method, Route string // Route is the pattern of the path, such as /projects/{id}
	Query         url.Values
	Body          []byte
	Status        int
	Answer        []byte // JSON; empty: no body
}

// readHeaderTimeout ends connections that never ask anything.
const readHeaderTimeout = 10 * time.Second

// Forge is a Git hosting service that answers as GitHub or GitLab does, on a port of
// 127.0.0.1. Its state is in memory, its repositories are on disk. All methods
// may be called concurrently, and do not return before their effect is there;
// only webhooks come later (WaitIdle).
type Forge struct {
	dir            string
	clock          func() time.Time
	wholeSeconds   bool
	rateLimit      int
	publicLimits   bool
	secondaryShare int
	oldGitLab      bool
	face           Face
	path           string // of the relative URL
	routes         router
	record         func(Exchange)
	log            *zap.Logger
	url            string
	signingSecret  []byte       // of its own signatures of commits
	serving        sync.RWMutex // read-locked by every request that may write into a repository
	server         *http.Server
	sender         *webhookSender
	done           chan struct{} // closed when the server has stopped

	advertisedMu sync.Mutex
	advertised   []byte // what git-upload-pack can do by protocol version 2; nil: not asked yet

	// mu guards everything below and the state of accounts, repositories and
	// pull requests. Lock order: repository.refsMu, then mu.
	mu                 sync.Mutex
	users              map[string]*account    // by lower-case login
	repos              map[string]*repository // by lower-case owner/name
	formerNames        map[string]*repository // likewise, by names that they had before
	teams              map[string]*team       // by lower-case organisation/slug
	apps               map[string]*app        // by slug
	installationTokens map[string]*installationToken
	lastID             int64
	quotas             map[int64]*quota        // by account
	past               map[int64][][]time.Time // what counts against GitHub's secondary limits, by account
	limited            int                     // calls that were refused for the number of them
	limits             map[string]*quota       // GitLab's for single calls, by call and account
	cause              *eventCause             // what a GitLab call's webhooks have in common; nil: nothing
	faults             []*activeFault
	calls              map[string]int

	latency, gitLatency time.Duration
}

// NewForge starts a forge. The caller closes it.
func NewForge(o ForgeOptions) (*Forge, error) {
	if o.Dir == "" {
		return nil, errors.New("starting the forge: no folder was given for its repositories")
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("starting the forge: %w", err)
	}
	f := &Forge{
		dir: o.Dir, clock: o.Now, wholeSeconds: o.WholeSeconds, rateLimit: o.RateLimit, log: o.Log,
		users: map[string]*account{}, repos: map[string]*repository{}, teams: map[string]*team{}, apps: map[string]*app{},
		installationTokens: map[string]*installationToken{},
		signingSecret:      newSigningSecret(), quotas: map[int64]*quota{}, calls: map[string]int{}, done: make(chan struct{}),
		formerNames: map[string]*repository{},
		face:        cmp.Or(o.Face, GitHub), path: o.Path, record: o.Record, publicLimits: o.PublicLimits, secondaryShare: o.SecondaryShare,
		past: map[int64][][]time.Time{}, oldGitLab: o.OldGitLab, limits: map[string]*quota{}, routes: routes,
	}
	defaultLimit := DefaultRateLimit
	switch f.face {
	case GitHub:
	case GitHubApp:
		f.face = GitHub
	case GitLab:
		f.routes, defaultLimit = gitlabRoutes, DefaultGitLabRateLimit
	default:
		return nil, fmt.Errorf("starting the forge: it has no face %q", o.Face)
	}
	if f.clock == nil {
		f.clock = time.Now
	}
	if f.log == nil {
		f.log = zap.NewNop()
	}
	if f.rateLimit <= 0 {
		f.rateLimit = defaultLimit
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the forge: %w", err)
	}
	f.url = "http://" + listener.Addr().String() + f.path
	f.sender = newWebhookSender(f.log, f.now, f.url)
	f.sender.keepHooks = o.KeepHooks
	f.server = &http.Server{Handler: http.HandlerFunc(f.serveHTTP), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: zap.NewStdLog(f.log)}
	go func() {
		defer close(f.done)
		if err := f.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			f.log.Error("the forge's server stopped", zap.Error(err))
		}
	}()
	return f, nil
}

// URL is the forge's address, without a slash at the end. Its REST API answers
// under URL()+"/api/v3", GitHub's also under URL() itself, and GitLab's under
// URL()+"/api/v4"; a repository's clone address is URL()+"/owner/name.git".
func (f *Forge) URL() string { return f.url }

// Face says whose API the forge has.
func (f *Forge) Face() Face { return f.face }

// APIURL is the address of its REST API, as a client of such a forge is given it.
func (f *Forge) APIURL() string {
	if f.face == GitLab {
		return f.url + gitlabAPI
	}
	return f.url + "/api/v3"
}

// PullName is how people name a pull request: #7, on GitLab !7.
func (f *Forge) PullName(number int) string {
	return f.face.pullSign() + strconv.Itoa(number)
}

func (f Face) pullSign() string {
	if f == GitLab {
		return "!"
	}
	return "#"
}

// Close stops the server and the webhooks, and breaks open connections. The
// repositories stay on disk.
func (f *Forge) Close() error {
	f.sender.close()
	err := f.server.Close()
	<-f.done
	f.serving.Lock() // what is being served may still write into a repository
	defer f.serving.Unlock()
	if err != nil {
		return fmt.Errorf("stopping the forge: %w", err)
	}
	return nil
}

func (f *Forge) now() time.Time {
	t := f.clock().UTC().Round(0)
	if f.wholeSeconds {
		t = t.Truncate(time.Second)
	}
	return t
}

func (f *Forge) nextID() int64 {
	f.lastID++
	return f.lastID
}

// withRepository runs fn under the forge's lock, on a repository and as a user.
func (f *Forge) withRepository(repo, login string, fn func(r *repository, u *account) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	u, err := f.findAccount(login)
	if err != nil {
		return err
	}
	return fn(r, u)
}

// withRepositoryRefs is locked for what moves references: pushes over HTTP to the same
// repository wait meanwhile.
func (f *Forge) withRepositoryRefs(repo, login string, fn func(r *repository, u *account) error) error {
	f.mu.Lock()
	r, err := f.findRepository(repo)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	r.refsMu.Lock()
	defer r.refsMu.Unlock()
	return f.withRepository(repo, login, fn)
}
