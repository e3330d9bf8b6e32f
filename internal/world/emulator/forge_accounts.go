package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Permission is what somebody may do in a repository, in rising order.
type Permission int

// GitHub's permissions that have names of their own in its older API.
const (
	NoPermission Permission = iota
	Read
	Write
	Admin
)

// String is GitHub's word for it.
func (p Permission) String() string {
	return [...]string{"none", "read", "write", "admin"}[p]
}

// UserOptions are what an account can have beyond a login and a token.
type UserOptions struct {
	Email  string   // connects commits to the account; empty: login@users.example
	Bot    bool     // the account is an app's: its type is "Bot"
	Scopes []string // the token's scopes; nil: repo (GitHub) or api (GitLab), without which every write is 403

	TokenExpires time.Time // GitLab: when the token ends; zero: never
}

// account is a user, a bot or an organisation.
type account struct {
	id     int64
	login  string
	email  string
	kind   string // User, Bot or Organization
	token  string
	scopes []string
	app    *app // whose bot it is; nil: no app's

	tokenID                    int64
	tokenCreated, tokenExpires time.Time
	tokenUsed                  time.Time
}

// tokenEnded says whether the account's token has come to its end.
func (a *account) tokenEnded(now time.Time) bool {
	return !a.tokenExpires.IsZero() && !now.Before(a.tokenExpires)
}

// mayPush says whether the account's token may push over HTTP.
func (a *account) mayPush() bool {
	return a.mayWrite() || slices.Contains(a.scopes, "write_repository")
}

// mayRead says whether the account's token may be used for GitLab's API.
func (a *account) mayRead() bool { return a.mayWrite() || slices.Contains(a.scopes, "read_api") }

// mayWrite says whether the account's token may change anything at all.
func (a *account) mayWrite() bool {
	return slices.Contains(a.scopes, "repo") || slices.Contains(a.scopes, "api")
}

// AddUser creates an account. The token is its password for Git and its bearer token for the API.
// An account with an empty one can't sign in, but can act through this package's methods. A login
// that exists is an error.
func (f *Forge) AddUser(login, token string, o UserOptions) error {
	if login == "" || strings.ContainsAny(login, "/ \n<>") {
		return fmt.Errorf("adding a user: %q is not a login", login)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.users[strings.ToLower(login)]; ok {
		return fmt.Errorf("adding user %s: the login is taken", login)
	}
	for _, u := range f.users {
		if token != "" && u.token == token {
			return fmt.Errorf("adding user %s: its token is already %s's", login, u.login)
		}
	}
	a := &account{id: f.nextID(), login: login, email: o.Email, kind: "User", token: token, scopes: o.Scopes, tokenID: f.nextID(),
		tokenCreated: f.now(), tokenExpires: o.TokenExpires}
	if a.email == "" {
		a.email = login + "@users.example"
	}
	if o.Bot {
		a.kind = "Bot"
	}
	if a.scopes == nil {
		a.scopes = []string{"repo"}
		if f.face == GitLab {
			a.scopes = []string{"api"}
		}
	}
	f.users[strings.ToLower(login)] = a
	return nil
}

// SetToken gives an account another token: the old one is refused from now on.
// An empty one revokes it.
func (f *Forge) SetToken(login, token string, scopes ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.findAccount(login)
	if err != nil {
		return err
	}
	a.token, a.tokenID, a.tokenCreated, a.tokenExpires = token, f.nextID(), f.now(), time.Time{}
	if len(scopes) > 0 {
		a.scopes = scopes
	}
	return nil
}

// EndToken gives an account's token an end; the zero time: it has none.
func (f *Forge) EndToken(login string, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.findAccount(login)
	if err != nil {
		return err
	}
	a.tokenExpires = at
	return nil
}

func (f *Forge) findAccount(login string) (*account, error) {
	a, ok := f.users[strings.ToLower(login)]
	if !ok {
		return nil, fmt.Errorf("the forge has no user %q: AddUser it first", login)
	}
	return a, nil
}

// noReplyHost is the host of the addresses that the forge makes for accounts.
func (f *Forge) noReplyHost() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(f.url, "http://"), ":")
	return "users.noreply." + host
}

// noReplySign is what stands between an account's number and its login in those addresses.
func (f *Forge) noReplySign() string {
	if f.face == GitLab {
		return "-"
	}
	return "+"
}

// NoReply is the address that the forge made for an account; it is known by its number
// also under another login.
func (f *Forge) NoReply(login string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.findAccount(login)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d%s%s@%s", a.id, f.noReplySign(), a.login, f.noReplyHost()), nil
}

// RenameUser gives an account another login.
func (f *Forge) RenameUser(login, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.findAccount(login)
	if err != nil {
		return err
	}
	if f.users[strings.ToLower(to)] != nil {
		return fmt.Errorf("renaming user %s: the login %s is taken", login, to)
	}
	delete(f.users, strings.ToLower(login))
	a.login = to
	f.users[strings.ToLower(to)] = a
	return nil
}

func (f *Forge) accountByToken(token string) *account {
	if token == "" {
		return nil
	}
	for _, a := range f.users {
		if a.token == token {
			return a
		}
	}
	return nil
}

// webFlowEmail is that of GitHub's own account, the committer of what is done in its
// pages.
const webFlowEmail = "noreply@github.com"

// accountByEmail connects a commit to an account, as GitHub does by e-mail: one of the
// account's, or one that GitHub made for it ("Setting your commit email address").
func (f *Forge) accountByEmail(email string) *account {
	if email == webFlowEmail {
		return &account{id: 19864447, login: "web-flow", kind: "User"}
	}
	if local, ok := strings.CutSuffix(strings.ToLower(email), "@"+f.noReplyHost()); ok {
		id, _, numbered := strings.Cut(local, f.noReplySign())
		if !numbered {
			return f.users[local]
		}
		for _, a := range f.users {
			if strconv.FormatInt(a.id, 10) == id {
				return a
			}
		}
		return nil
	}
	for _, a := range f.users {
		if strings.EqualFold(a.email, email) {
			return a
		}
	}
	return nil
}

// ensureOwner gives the account that a repository's owner names; one that nobody has
// becomes an organisation.
func (f *Forge) ensureOwner(login string) *account {
	if a, ok := f.users[strings.ToLower(login)]; ok {
		return a
	}
	a := &account{id: f.nextID(), login: login, kind: "Organization"}
	f.users[strings.ToLower(login)] = a
	return a
}

func (f *Forge) commitIdent(a *account) gitIdent {
	return gitIdent{Name: a.login, Email: a.email, When: f.now()}
}
