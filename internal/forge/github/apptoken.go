package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// An installation's token is good for an hour. It is exchanged while the one before can
	// still be used, and never handed out with less than minTokenLife left: no Git command
	// takes longer.
	renewBefore  = 15 * time.Minute
	minTokenLife = 10 * time.Minute

	// renewTimeout bounds an exchange that nobody waits for.
	renewTimeout = time.Minute
)

// tokenSource has the tokens for one repository of an installation, or for reading all of
// them.
type tokenSource struct {
	app          *App
	budget       *rest.Budget // the installation's
	installation int64
	owner        string
	repo         string // empty: all that the installation was given, to read

	mu           sync.Mutex
	value        string // the token; GitHub says nothing of its form
	former       string // the one before, which what is under way may still have
	expires      time.Time
	gotAt        time.Time
	repositoryID int64 // once it is known
	renewing     bool
	refused      *forge.Error // why there was none when one was last asked for; nil: there was
}

// credential is the token that is good now.
func (t *tokenSource) credential(ctx context.Context) (rest.Credential, error) {
	token, err := t.token(ctx)
	return rest.Credential{Value: "Bearer " + token, Identity: t.key(), Budget: t.budget,
		Answered: func(resp *http.Response, body []byte) bool {
			return t.answered(token, resp, body)
		}}, err
}

// token gives a token that is good for minTokenLife at least.
func (t *tokenSource) token(ctx context.Context) (string, error) {
	if _, err := t.app.findInstallation(ctx, t.owner, t.repo); err != nil {
		return "", err // it rests: no token would be taken
	}
	token, left := t.current()
	if wrong := t.refusal(); wrong != nil && t.app.options.Now().Before(wrong.RetryAfter) {
		return "", wrong // it would be refused again
	}
	switch {
	case left > renewBefore:
		return token, nil
	case left > minTokenLife:
		t.renewInBackground(ctx)
		return token, nil
	}
	unlock, err := t.app.locks.Lock(ctx, t.key())
	if err != nil {
		return "", err
	}
	defer unlock()
	if token, left = t.current(); left > renewBefore { // somebody else has got one meanwhile
		return token, nil
	}
	return t.renew(ctx)
}

func (t *tokenSource) key() string {
	return fmt.Sprintf("token %d/%s", t.installation, strings.ToLower(t.repo))
}

// current is the token, and for how long it is good.
func (t *tokenSource) current() (token string, left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == "" {
		return "", 0
	}
	return t.value, t.expires.Sub(t.app.options.Now())
}

// refusal is why there was no token when one was last asked for; nil: there was.
func (t *tokenSource) refusal() *forge.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}

// renewInBackground gets the next token while this one is used. A failure is left to who needs
// the next one.
func (t *tokenSource) renewInBackground(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewing {
		return
	}
	t.renewing = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
	go func() {
		defer cancel()
		unlock, err := t.app.locks.Lock(ctx, t.key())
		if err == nil {
			defer unlock()
			_, _ = t.renew(ctx)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.renewing = false
	}()
}

// drop forgets a token that isn't taken any more; an empty one: whichever there is.
func (t *tokenSource) drop(token string) (dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token != "" && token != t.value {
		return false
	}
	t.keepFormer()
	t.value, t.refused = "", nil
	return true
}

// keepFormer remembers the token that another one is to follow. Callers hold mu.
func (t *tokenSource) keepFormer() {
	if t.value != "" {
		t.former = t.value
	}
}

// minRefusedAge is the least age of a token at which it is blamed for Git's refusal. A new one that
// is refused lacks a permission, as the next would.
const minRefusedAge = time.Minute

// refusedByGit drops a token that Git's remote has refused, and says whether the next one may do:
// also where somebody else has found that out meanwhile.
func (t *tokenSource) refusedByGit(token string) bool {
	t.mu.Lock()
	fresh, known := t.app.options.Now().Sub(t.gotAt) < minRefusedAge, token == t.former
	t.mu.Unlock()
	return token != "" && (known || !fresh && t.drop(token))
}

// answered drops a token that GitHub takes no more. After 401 nothing was done, so the call may
// be made again with the next one; of a suspended installation that says why there is none.
func (t *tokenSource) answered(token string, resp *http.Response, body []byte) (renew bool) {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
	case resp.StatusCode == http.StatusForbidden && bytes.Contains(body, []byte("suspended")):
		t.app.expireInstallations()
	default:
		return false
	}
	t.drop(token)
	return true
}

// tokenRequest is what a token is to be good for. go-github's type doesn't know all
// permissions.
type tokenRequest struct {
	Repositories []string          `json:"repositories,omitempty"`
	Permissions  map[string]string `json:"permissions"`
}

// permissionsOf are those of Permissions that an installation was granted; to read only where
// a repository isn't one that Liftlock looks after.
func permissionsOf(i *installation, readOnly bool) map[string]string {
	out := map[string]string{}
	for _, p := range Permissions() {
		level := p.Level
		if readOnly {
			level = "read"
		}
		if grants(i.permissions[p.Name], level) {
			out[p.Name] = level
		}
	}
	return out
}

// renew gets another token. Callers hold the lock of its key.
func (t *tokenSource) renew(ctx context.Context) (string, error) {
	i, err := t.app.findInstallation(ctx, t.owner, t.repo)
	if err != nil {
		return "", err
	}
	op := "get a token of the App's installation in " + t.owner
	in := tokenRequest{Permissions: permissionsOf(i, t.repo == "")}
	if t.repo != "" {
		in.Repositories = []string{t.repo}
	}
	req, err := t.app.own.NewRequest(http.MethodPost, fmt.Sprintf("app/installations/%d/access_tokens", i.id), in)
	if err != nil {
		return "", wrapError(op, err)
	}
	var out gh.InstallationToken
	resp, err := t.app.own.Do(ctx, req, &out)
	if err != nil {
		err = t.wrapTokenError(op, i, err)
		t.mu.Lock()
		defer t.mu.Unlock()
		if errors.Is(err, forge.ErrNotInstalled) {
			errors.As(err, &t.refused)
		}
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = nil
	t.keepFormer()
	t.value, t.expires, t.gotAt = out.GetToken(), out.GetExpiresAt().Time, t.app.options.Now()
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.expires = t.expires.Add(t.app.options.Now().Sub(at)) // by our clock
	}
	if at := slices.IndexFunc(out.Repositories, func(r *gh.Repository) bool { return strings.EqualFold(r.GetName(), t.repo) }); at >= 0 {
		t.repositoryID = out.Repositories[at].GetID()
	}
	return t.value, nil
}

// wrapTokenError says why there is no token: an installation that is gone or suspended since
// it was last looked for, or a repository that it wasn't given.
func (t *tokenSource) wrapTokenError(op string, i *installation, err error) error {
	e := &forge.Error{Op: op, Kind: forge.ErrNotInstalled, Err: err, RetryAfter: t.app.options.Now().Add(restInterval)}
	switch {
	case rest.StatusOf(err) == http.StatusUnprocessableEntity && t.repo != "":
		e.Message, e.Hint = "the App isn't given "+t.owner+"/"+t.repo, "add the repository on "+i.page+", or correct repositories[].name"
	case rest.StatusOf(err) == http.StatusNotFound:
		t.app.expireInstallations()
		e.Message, e.Hint = "the App isn't installed in "+t.owner+" any more",
			"install it there, or take its repositories out of the server's file"
	case rest.StatusOf(err) == http.StatusForbidden && rest.Says(err, "suspended"):
		t.app.expireInstallations()
		e.Message, e.Hint = "the App's installation in "+t.owner+" is suspended", "an owner can end that on "+i.page
	default:
		return t.app.wrapAppError(op, err)
	}
	return e
}
