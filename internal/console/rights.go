package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
)

// Readers says who reads which repositories. One that no rule names, every reader reads; one that
// rules name, only whom one of them names.
type Readers struct {
	Rules []ReaderRule
	// OnForge says whether an account may read a repository on its forge. It may take a call, and
	// is asked seldom. Needed where a rule asks the forge.
	OnForge func(ctx context.Context, repository, account string) (bool, error)
}

// ReaderRule names readers of repositories.
type ReaderRule struct {
	Repositories []string // globs on owner/name, or on forge:owner/name
	Groups       []string // of the identity provider; AnyGroup is everybody who has logged in
	Tokens       []string // API tokens, by name
	Forge        bool     // accounts that may read the repository on its forge, where the account there is known
}

const (
	// rightsKept is for how long it is believed that an account may read, refusalsKept that it may
	// not, unknownKept that the forge couldn't be asked.
	rightsKept   = 5 * time.Minute
	refusalsKept = time.Minute
	unknownKept  = 15 * time.Second
	// maxRights bounds what is remembered of it.
	maxRights = 20_000
	// rightsTimeout bounds one question to the forge, maxRightsCalls how many run at once.
	rightsTimeout  = 5 * time.Second
	maxRightsCalls = 8
)

// forgeRight is whether an account may read a repository, until when that is believed.
type forgeRight struct {
	mayRead bool
	until   time.Time
}

// accessRules tells who reads what.
type accessRules struct {
	rules   []ReaderRule // none: every reader reads all
	onForge func(context.Context, string, string) (bool, error)
	now     func() time.Time
	log     *zap.Logger

	shared sharedReads[bool]
	calls  chan struct{}
	known  *cache.Cache[string, forgeRight] // by repository and account
}

func newAccessRules(o *Options) *accessRules {
	j := &accessRules{now: o.Now, log: o.Log, shared: sharedReads[bool]{operation: "ask the forge who may read", timeout: rightsTimeout,
		log: o.Log},
		calls: make(chan struct{}, maxRightsCalls), known: cache.New(o.Caches, cache.Options[string, forgeRight]{Name: "console-rights",
			Entries: maxRights})}
	if o.Readers != nil {
		j.rules, j.onForge = o.Readers.Rules, o.Readers.OnForge
	}
	return j
}

// names says whether a rule names a repository. Forges tell no two repositories apart by case.
func (r *ReaderRule) names(repository string) bool {
	id := strings.ToLower(repository)
	_, path, _ := strings.Cut(id, ":")
	return slices.ContainsFunc(r.Repositories, func(glob string) bool {
		glob = strings.ToLower(glob)
		return doublestar.MatchUnvalidated(glob, path) || doublestar.MatchUnvalidated(glob, id)
	})
}

// reading is what one reader may read. It may be used concurrently.
type reading struct {
	access *accessRules
	key    string                         // the same: may read the same; empty: all
	all    bool                           // whatever the rules say: it is for no reader
	named  []bool                         // by rule: it names the reader
	login  func(repository string) string // the reader's account on a repository's forge; empty: not known
}

// allReading reads everything, for what is read once for all readers.
func (a *accessRules) allReading() *reading { return &reading{access: a, all: true} }

// readingOf is what somebody may read by a token, or by who has logged in; nil: neither.
func (se *server) readingOf(token *tokenHolder, u *user) *reading {
	if token == nil && u != nil {
		token = u.token
	}
	j := se.access
	out := &reading{access: j, named: make([]bool, len(j.rules)), login: func(string) string { return "" }}
	if len(j.rules) == 0 {
		return out
	}
	needsForge := false
	var key strings.Builder
	key.WriteString("r")
	for i := range j.rules {
		rule := &j.rules[i]
		switch {
		case token != nil:
			out.named[i] = slices.Contains(rule.Tokens, token.name)
		case u != nil:
			out.named[i] = slices.ContainsFunc(rule.Groups, func(g string) bool { return g == AnyGroup || slices.Contains(u.Groups, g) })
		}
		needsForge = needsForge || rule.Forge && !out.named[i]
		fmt.Fprintf(&key, "%t|", out.named[i])
	}
	if token == nil && u != nil {
		out.login = func(repository string) string { return se.accountOn(u, repository) }
		if needsForge {
			fmt.Fprintf(&key, "%q", se.digestUser(u.Subject))
		}
	}
	out.key = key.String()
	return out
}

type readingKey struct{}

// withReading has what is read in a context be what a reader may read.
func withReading(ctx context.Context, r *reading) context.Context {
	return context.WithValue(ctx, readingKey{}, r)
}

// reading is what may be read in a context. A context without it reads what readers may read whom
// no rule names.
func (a *accessRules) reading(ctx context.Context) *reading {
	if r, ok := ctx.Value(readingKey{}).(*reading); ok {
		return r
	}
	return &reading{access: a, key: "nobody", named: make([]bool, len(a.rules)), login: func(string) string { return "" }}
}

// readsAll says whether somebody may read whatever there is, without asking anybody.
func (r *reading) readsAll() bool {
	return r.all || !slices.Contains(r.named, false)
}

// mayRead says whether a repository may be read. Where the forge can't be asked it may not.
func (r *reading) mayRead(ctx context.Context, repository string) bool {
	if r.readsAll() {
		return true
	}
	isNamed, needsForge := false, false
	for i := range r.access.rules {
		rule := &r.access.rules[i]
		if !rule.names(repository) {
			continue
		}
		if r.named[i] {
			return true
		}
		isNamed, needsForge = true, needsForge || rule.Forge
	}
	if !isNamed {
		return true
	}
	account := r.login(repository)
	return needsForge && account != "" && r.access.mayReadOnForge(ctx, repository, account)
}

// mayReadEach is mayRead for several repositories at once.
func (r *reading) mayReadEach(ctx context.Context, repositories []string) map[string]bool {
	out := make(map[string]bool, len(repositories))
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, maxRightsCalls)
	for _, repo := range repositories {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			may := r.mayRead(ctx, repo)
			mu.Lock()
			defer mu.Unlock()
			out[repo] = may
		})
	}
	all.Wait()
	return out
}

// mayReadOnForge asks the forge, or gives its answer of a moment ago.
func (a *accessRules) mayReadOnForge(ctx context.Context, repository, account string) bool {
	key := repository + "\x00" + strings.ToLower(account)
	if known, ok := a.known.Get(key); ok && a.now().Before(known.until) {
		return known.mayRead
	}
	may, err := a.shared.do(ctx, key, func(ctx context.Context) (bool, error) {
		select {
		case a.calls <- struct{}{}:
			defer func() { <-a.calls }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
		begun := a.now()
		may, err := a.onForge(ctx, repository, account)
		switch {
		case err != nil:
			a.log.Warn("the forge can't be asked who may read a repository, so it isn't shown", zap.String("repository", repository),
				zap.String("account", account), zap.Error(err))
			a.known.Put(key, forgeRight{false, begun.Add(unknownKept)})
		case may:
			a.known.Put(key, forgeRight{true, begun.Add(rightsKept)})
		default:
			a.known.Put(key, forgeRight{false, begun.Add(refusalsKept)})
		}
		return may && err == nil, nil
	})
	return may && err == nil
}

// withReader has a request read what its sender may: the holder of a token, who has logged in, or
// neither.
func (se *server) withReader(r *http.Request, token *tokenHolder, u *user) *http.Request {
	ctx := withReading(r.Context(), se.readingOf(token, u))
	if u != nil {
		ctx = context.WithValue(ctx, userKey{}, u)
	}
	return r.WithContext(ctx)
}
