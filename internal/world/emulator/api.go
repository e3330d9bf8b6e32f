package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// maxRequest bounds a REST call's body.
const maxRequest = 32 << 20

// call is one REST call while it is answered, with the forge's lock held.
type call struct {
	*Forge
	r      *http.Request
	user   *account
	app    *app               // whose own token it is made with; nil: it isn't
	token  *installationToken // it is made with; nil: with an account's own
	repo   *repository
	body   []byte
	status int
	header http.Header
	quota  *quota
}

// handler answers a call with a value for JSON; nil is an empty body.
type handler func(*call) (any, error)

// route is one REST call: what it needs, and who answers it.
type route struct {
	pattern    string     // see router
	permission Permission // in the repository of the path
	movesRefs  bool       // it moves references: pushes wait
	byApp      bool       // it is an App's own, also where the path has a repository
	handle     handler
}

// isApps says whether an App's own token is what the call is made with.
func (rt *route) isApps() bool {
	_, path, _ := strings.Cut(rt.pattern, " ")
	return rt.byApp || path == "/app" || strings.HasPrefix(path, "/app/")
}

// serveHTTP is the forge's front door: Git or REST, counted, and with its faults.
func (f *Forge) serveHTTP(w http.ResponseWriter, r *http.Request) {
	r, rest := f.cutPrefixes(r)
	git := f.parseGitCall(r)
	var rt *route
	name := r.Method + " " + r.URL.Path
	if git != nil {
		name = git.routeName()
	} else if rt = f.routes.findRoute(r); rt != nil && rest {
		name = rt.pattern
	}
	w.Header().Set("Date", f.now().UTC().Format(http.TimeFormat)) // which limits are told by
	f.mu.Lock()
	f.countCall(name)
	broken := f.takeFault(r.Method, r.URL.Path)
	f.mu.Unlock()

	if broken != nil && !broken.After {
		f.answerFault(w, broken)
		return
	}
	out := w
	if broken != nil {
		out = &discardWriter{header: http.Header{}}
	}
	switch {
	case git != nil:
		f.serveGit(out, r, git)
	case rt != nil && rest && f.face == GitLab:
		f.serveGitLab(out, r, rt)
	case rt != nil && rest:
		f.serveREST(out, r, rt)
	case !f.servePage(out, r):
		f.writeError(out, notFound())
	}
	if broken != nil {
		f.answerFault(w, broken)
	}
}

// cutPrefixes takes off a call's path what is before the routes of its API; rest says that
// it can be a call of it. GitHub's API answers without a prefix, too.
func (f *Forge) cutPrefixes(r *http.Request) (cut *http.Request, rest bool) {
	take := func(prefix string) bool {
		if after, ok := strings.CutPrefix(r.URL.Path, prefix); prefix == "" || !ok || after != "" && after[0] != '/' {
			return false
		}
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, prefix), strings.TrimPrefix(r.URL.RawPath, prefix)
		return true
	}
	take(f.path)
	if f.face == GitLab {
		return r, take(gitlabAPI)
	}
	take("/api/v3")
	f.resolveNumber(r)
	if r.URL.Path == "/api/graphql" { // beside the REST API, as on GitHub Enterprise
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/graphql", ""
	}
	return r, true
}

// discardWriter takes the answer of a call whose client is going to see a fault.
type discardWriter struct{ header http.Header }

func (d *discardWriter) Header() http.Header         { return d.header }
func (d *discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (d *discardWriter) WriteHeader(int)             {}

// SetLatency sets how long every REST call takes besides, as over a distance. Git's own
// requests take no longer.
func (f *Forge) SetLatency(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency = d
}

// SetGitLatency sets it for Git's own requests.
func (f *Forge) SetGitLatency(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gitLatency = d
}

// awaitLatency lets a REST call, or a request of Git's, take as long as it is to; false when its
// client is gone.
func (f *Forge) awaitLatency(ctx context.Context, git bool) bool {
	f.mu.Lock()
	d := f.latency
	if git {
		d = f.gitLatency
	}
	f.mu.Unlock()
	if d == 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// serveREST answers a REST call.
func (f *Forge) serveREST(w http.ResponseWriter, r *http.Request, rt *route) {
	if !f.awaitLatency(r.Context(), false) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		f.writeError(w, newAPIError(http.StatusBadRequest, "Problems reading the request"))
		return
	}
	f.serving.RLock()
	defer f.serving.RUnlock()
	if f.record != nil {
		recorder := &answerRecorder{ResponseWriter: w, status: http.StatusOK}
		w = recorder
		defer func() { f.recordREST(r, rt, body, recorder) }()
	}
	if rt.movesRefs {
		f.mu.Lock()
		repo := f.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("repo"))]
		f.mu.Unlock()
		if repo != nil {
			repo.refsMu.Lock()
			defer repo.refsMu.Unlock()
		}
	}
	c := &call{Forge: f, r: r, body: body, status: http.StatusOK, header: w.Header()}
	answer, err := c.handleRoute(rt)
	if err != nil {
		f.writeError(w, err)
		return
	}
	c.writeAnswer(w, answer)
}

// handleRoute authenticates and authorises the call and answers it, under the lock.
func (c *call) handleRoute(rt *route) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setHeaders()
	if err := c.signIn(); err != nil {
		return nil, err
	}
	if err := c.chargeSecondary(rt.pattern); err != nil {
		return nil, err
	}
	if c.app != nil && !rt.isApps() {
		return nil, notPermitted(c)
	}
	if owner := c.r.PathValue("owner"); owner != "" && !rt.byApp {
		c.repo = c.repos[strings.ToLower(owner+"/"+c.r.PathValue("repo"))]
		if moved := c.formerNames[strings.ToLower(owner+"/"+c.r.PathValue("repo"))]; c.repo == nil && moved != nil &&
			moved.permissionOf(c.user) >= Read {
			return nil, c.redirectTo(moved)
		}
		if c.repo == nil || c.repo.permissionOf(c.user) < Read {
			return nil, notFound() // what may not be read isn't said to exist
		}
		switch have := c.repo.permissionOf(c.user); {
		case have >= rt.permission:
		case rt.permission == Admin:
			return nil, notFound()
		default:
			return nil, newAPIError(http.StatusForbidden, "Must have %s access to Repository.", rt.permission)
		}
		if c.repo.archived && c.r.Method != http.MethodGet {
			return nil, newAPIError(http.StatusForbidden, "Repository was archived so is read-only.")
		}
	}
	if c.token != nil {
		if err := c.requireToken(rt); err != nil {
			return nil, err
		}
	}
	if c.r.Method != http.MethodGet && !c.user.mayWrite() {
		return nil, notPermitted(c)
	}
	return rt.handle(c)
}

// setHeaders sets the headers that every answer has.
func (c *call) setHeaders() {
	c.header.Set("X-GitHub-Request-Id", fmt.Sprintf("EMUL:%X:%X", time.Now().UnixNano()&0xffffff, c.nextID()))
	c.header.Set("Date", c.now().UTC().Format(http.TimeFormat))
	c.header.Set("X-GitHub-Media-Type", "github.v3; format=json")
	c.header.Set("Content-Type", "application/json; charset=utf-8")
}

// signIn finds the account that the call's credentials belong to.
func (c *call) signIn() error {
	_, token, ok := c.r.BasicAuth()
	if !ok {
		kind, value, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
		if strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token") {
			token = strings.TrimSpace(value)
		}
	}
	if token == "" {
		return newAPIError(http.StatusUnauthorized, "Requires authentication")
	}
	if isSigned(token) {
		return c.signInApp(token)
	}
	if t := c.installationTokens[token]; t != nil {
		return c.signInInstallation(t)
	}
	c.user = c.accountByToken(token)
	if c.user == nil {
		return newAPIError(http.StatusUnauthorized, "Bad credentials")
	}
	c.header.Set("X-OAuth-Scopes", strings.Join(c.user.scopes, ", "))
	c.header.Set("X-Accepted-OAuth-Scopes", "repo")
	if at := c.user.tokenExpires; !at.IsZero() {
		c.header.Set("GitHub-Authentication-Token-Expiration", at.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return c.chargeQuota()
}

// writeAnswer sends the answer; a GET that the client has already seen is a 304.
func (c *call) writeAnswer(w http.ResponseWriter, answer any) {
	if answer == nil {
		w.Header().Del("Content-Type")
		w.WriteHeader(c.status)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		c.writeError(w, err)
		return
	}
	if c.r.Method == http.MethodGet && c.status == http.StatusOK {
		// Another token has other tags for the same content, as installations' tokens show.
		sum := sha256.Sum256(append([]byte(c.r.Header.Get("Accept")+":"+c.r.Header.Get("Authorization")+":"), body...))
		tag := `W/"` + hex.EncodeToString(sum[:16]) + `"`
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
		w.Header().Set("Vary", "Accept, Authorization, Cookie, X-GitHub-OTP")
		if c.r.Header.Get("If-None-Match") == tag {
			c.refundQuota()
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(c.status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func (f *Forge) writeError(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		f.log.Error("the forge failed", zap.Error(err))
		e = newAPIError(http.StatusInternalServerError, "Server Error")
	}
	for k, v := range e.Header {
		w.Header()[k] = v
	}
	if f.face == GitLab {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.Status)
		_ = json.NewEncoder(w).Encode(e.gitlabBody()) // a client that is gone needs no answer
		return
	}
	shown := *e
	shown.Code = strconv.Itoa(e.Status)
	if shown.Docs == "" {
		shown.Docs = docsURL
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(shown) // a client that is gone needs no answer
}

// decodeBody reads the call's body; unknown fields are GitHub's business to ignore.
func (c *call) decodeBody(v any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return newAPIError(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}

// pathNumber reads a number of the path; what isn't one is not found.
func (c *call) pathNumber(name string) (int64, error) {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, notFound()
	}
	return n, nil
}

// withPull finds the pull request of the path.
func withPull(answer func(*call, *pull) (any, error)) handler {
	return func(c *call) (any, error) {
		n, err := c.pathNumber("number")
		if err != nil {
			return nil, err
		}
		p := c.repo.pulls[int(n)]
		if p == nil {
			return nil, notFound()
		}
		return answer(c, p)
	}
}
