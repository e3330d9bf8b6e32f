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
func (s *tokenSource) credential(ctx context.Context) (rest.Credential, error) {
	token, err := s.token(ctx)
	return rest.Credential{Value: "Bearer " + token, Identity: s.key(), Budget: s.budget, Answered: func(resp *http.Response, body []byte) bool {
		return s.answered(token, resp, body)
	}}, err
}

// token gives a token that is good for minTokenLife at least.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	if _, err := s.app.findInstallation(ctx, s.owner, s.repo); err != nil {
		return "", err // it rests: no token would be taken
	}
	token, left := s.current()
	if wrong := s.refusal(); wrong != nil && s.app.options.Now().Before(wrong.RetryAfter) {
		return "", wrong // it would be refused again
	}
	switch {
	case left > renewBefore:
		return token, nil
	case left > minTokenLife:
		s.renewInBackground(ctx)
		return token, nil
	}
	unlock, err := s.app.locks.Lock(ctx, s.key())
	if err != nil {
		return "", err
	}
	defer unlock()
	if token, left = s.current(); left > renewBefore { // somebody else has got one meanwhile
		return token, nil
	}
	return s.renew(ctx)
}

func (s *tokenSource) key() string {
	return fmt.Sprintf("token %d/%s", s.installation, strings.ToLower(s.repo))
}

// current is the token, and for how long it is good.
func (s *tokenSource) current() (token string, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value == "" {
		return "", 0
	}
	return s.value, s.expires.Sub(s.app.options.Now())
}

// refusal is why there was no token when one was last asked for; nil: there was.
func (s *tokenSource) refusal() *forge.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// renewInBackground gets the next token while this one is used. A failure is left to who needs
// the next one.
func (s *tokenSource) renewInBackground(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewing {
		return
	}
	s.renewing = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
	go func() {
		defer cancel()
		unlock, err := s.app.locks.Lock(ctx, s.key())
		if err == nil {
			defer unlock()
			_, _ = s.renew(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.renewing = false
	}()
}

// drop forgets a token that isn't taken any more; an empty one: whichever there is.
func (s *tokenSource) drop(token string) (dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && token != s.value {
		return false
	}
	s.keepFormer()
	s.value, s.refused = "", nil
	return true
}

// keepFormer remembers the token that another one is to follow. Callers hold mu.
func (s *tokenSource) keepFormer() {
	if s.value != "" {
		s.former = s.value
	}
}

// minRefusedAge is how old a token is at least that Git's refusal is put down to: a new one that is
// refused lacks a permission, as the next would.
const minRefusedAge = time.Minute

// refusedByGit drops a token that Git's remote has refused, and says whether the next one may do:
// also where somebody else has found that out meanwhile.
func (s *tokenSource) refusedByGit(token string) bool {
	s.mu.Lock()
	fresh, known := s.app.options.Now().Sub(s.gotAt) < minRefusedAge, token == s.former
	s.mu.Unlock()
	return token != "" && (known || !fresh && s.drop(token))
}

// answered drops a token that GitHub takes no more. After 401 nothing was done, so the call may
// be made again with the next one; of a suspended installation that says why there is none.
func (s *tokenSource) answered(token string, resp *http.Response, body []byte) (renew bool) {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
	case resp.StatusCode == http.StatusForbidden && bytes.Contains(body, []byte("suspended")):
		s.app.expireInstallations()
	default:
		return false
	}
	s.drop(token)
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
func (s *tokenSource) renew(ctx context.Context) (string, error) {
	i, err := s.app.findInstallation(ctx, s.owner, s.repo)
	if err != nil {
		return "", err
	}
	op := "get a token of the App's installation in " + s.owner
	in := tokenRequest{Permissions: permissionsOf(i, s.repo == "")}
	if s.repo != "" {
		in.Repositories = []string{s.repo}
	}
	req, err := s.app.own.NewRequest(http.MethodPost, fmt.Sprintf("app/installations/%d/access_tokens", i.id), in)
	if err != nil {
		return "", wrapError(op, err)
	}
	var out gh.InstallationToken
	resp, err := s.app.own.Do(ctx, req, &out)
	if err != nil {
		err = s.wrapTokenError(op, i, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if errors.Is(err, forge.ErrNotInstalled) {
			errors.As(err, &s.refused)
		}
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
	s.keepFormer()
	s.value, s.expires, s.gotAt = out.GetToken(), out.GetExpiresAt().Time, s.app.options.Now()
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		s.expires = s.expires.Add(s.app.options.Now().Sub(at)) // by our clock
	}
	if at := slices.IndexFunc(out.Repositories, func(r *gh.Repository) bool { return strings.EqualFold(r.GetName(), s.repo) }); at >= 0 {
		s.repositoryID = out.Repositories[at].GetID()
	}
	return s.value, nil
}

// wrapTokenError says why there is no token: an installation that is gone or suspended since
// it was last looked for, or a repository that it wasn't given.
func (s *tokenSource) wrapTokenError(op string, i *installation, err error) error {
	e := &forge.Error{Op: op, Kind: forge.ErrNotInstalled, Err: err, RetryAfter: s.app.options.Now().Add(restInterval)}
	switch {
	case rest.StatusOf(err) == http.StatusUnprocessableEntity && s.repo != "":
		e.Message, e.Hint = "the App isn't given "+s.owner+"/"+s.repo, "add the repository on "+i.page+", or correct repositories[].name"
	case rest.StatusOf(err) == http.StatusNotFound:
		s.app.expireInstallations()
		e.Message, e.Hint = "the App isn't installed in "+s.owner+" any more", "install it there, or take its repositories out of the server's file"
	case rest.StatusOf(err) == http.StatusForbidden && rest.Says(err, "suspended"):
		s.app.expireInstallations()
		e.Message, e.Hint = "the App's installation in "+s.owner+" is suspended", "an owner can end that on "+i.page
	default:
		return s.app.wrapAppError(op, err)
	}
	return e
}
