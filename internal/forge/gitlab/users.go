package gitlab

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Me reads the token's own account; once read it is remembered.
func (d *Driver) Me(ctx context.Context) (forge.User, error) {
	return d.account.Read(func() (forge.User, error) {
		var a account
		_, err := d.call(ctx, "read the token's own account", http.MethodGet, nil, &a, "user")
		return a.user(), err
	})
}

// GitAuth is how GitLab takes an access token over HTTP: as a password, of whatever name.
func (d *Driver) GitAuth(context.Context, forge.Repo) (username, password string, err error) {
	return "liftlock", d.token, nil
}

// findUser finds an account by its login, in whatever letters; nil when nobody has it.
func (d *Driver) findUser(ctx context.Context, login string) (*account, error) {
	if strings.Trim(login, ".") == "" {
		return nil, nil // no account's name
	}
	var found []account
	if _, err := d.call(ctx, "find the account "+login, http.MethodGet, query{Username: login}, &found, "users"); err != nil {
		return nil, err
	}
	for i := range found {
		if strings.EqualFold(found[i].Username, login) {
			return &found[i], nil
		}
	}
	return nil, nil
}

// privateAddress is one that GitLab gives to an account for its commits.
var privateAddress = regexp.MustCompile(`(?i)^([0-9]{1,18})-([^@]+)@users\.noreply\.(.+)$`)

// findUserByEmail finds the account that shows an address, or that GitLab gave it to; the zero
// user when none does.
func (d *Driver) findUserByEmail(ctx context.Context, email string) (forge.User, error) {
	if m := privateAddress.FindStringSubmatch(email); m != nil && strings.EqualFold(m[3], d.base.Hostname()) {
		if id, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			a := account{ID: id, Username: m[2]}
			return a.user(), nil
		}
	}
	if local, _, ok := strings.Cut(email, "@"); !ok || local == "" {
		return forge.User{}, nil
	}
	var found []account
	_, err := d.call(ctx, "find the account of an address", http.MethodGet, query{Search: email}, &found, "users")
	if forge.IsRetryable(err) || rest.StatusOf(err) == http.StatusUnauthorized || err != nil && rest.StatusOf(err) == 0 {
		return forge.User{}, err
	}
	for i := range found {
		if err == nil && strings.EqualFold(found[i].PublicEmail, email) {
			return found[i].user(), nil
		}
	}
	return forge.User{}, nil
}

// member is an account in a project or a group, by itself or by a group above.
type member struct {
	account
	AccessLevel int    `json:"access_level"`
	ExpiresAt   string `json:"expires_at"`       // a day; empty: never
	State       string `json:"state"`            // of the account
	Membership  string `json:"membership_state"` // not shown by all versions
	Locked      bool   `json:"locked"`
}

// counts says whether a membership is one now.
func (m *member) counts(now time.Time) bool {
	isBlocked := m.State != "" && m.State != "active"
	isAwaited := m.Membership != "" && m.Membership != "active"
	if isBlocked || isAwaited || m.Locked {
		return false
	}
	if m.ExpiresAt == "" {
		return true
	}
	day, err := time.Parse(time.DateOnly, m.ExpiresAt[:min(len(m.ExpiresAt), len(time.DateOnly))])
	return err == nil && now.Before(day)
}

// The levels of access with which more is allowed. Between them are those that differ in what
// doesn't matter here, and roles of one's own have the level that they are made from.
const (
	guestLevel      = 10
	developerLevel  = 30
	maintainerLevel = 40
)

// permission is what a member may do.
func (m *member) permission(now time.Time) forge.Permission {
	switch {
	case !m.counts(now) || m.AccessLevel < guestLevel:
		return forge.PermissionNone
	case m.AccessLevel >= maintainerLevel:
		return forge.PermissionAdmin
	case m.AccessLevel >= developerLevel:
		return forge.PermissionWrite
	}
	return forge.PermissionRead
}

// Permission is the user's effective permission, by groups too. An administrator of the whole
// GitLab who is no member has none.
func (d *Driver) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	a, err := d.findUser(ctx, login)
	if err != nil || a == nil {
		return forge.PermissionNone, err
	}
	var m member
	_, err = d.callProject(ctx, "read the permission of "+login+" in "+r.String(), r, http.MethodGet, nil, &m, "members", "all",
		strconv.FormatInt(a.ID, 10))
	switch {
	case rest.StatusOf(err) == http.StatusNotFound && !isMissingProject(err):
		return forge.PermissionNone, nil
	case err != nil:
		return forge.PermissionNone, rest.AddHint(err, "make Liftlock's account a member of the project: GitLab doesn't tell others who "+
			"is one")
	}
	return m.permission(d.now()), nil
}

// IsTeamMember says whether an account is in a group, which is organisation/name, by itself or
// by a group above it. GitLab's groups give their members to those below, not above.
func (d *Driver) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	op := "read whether " + login + " is in " + t.String()
	if strings.Trim(login, ".") == "" {
		return false, nil // no account's name
	}
	group, err := d.findGroup(ctx, t, op)
	if err != nil {
		return false, err
	}
	a, err := d.findUser(ctx, login)
	if err != nil || a == nil {
		return false, err
	}
	var m member
	_, err = d.call(ctx, op, http.MethodGet, nil, &m, "groups", strconv.FormatInt(group, 10), "members", "all", strconv.FormatInt(a.ID, 10))
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, rest.AddHint(err, groupHint)
	}
	return m.counts(d.now()), nil
}

// TeamNumber is GitLab's id of the group.
func (d *Driver) TeamNumber(ctx context.Context, t forge.Team) (int64, error) {
	return d.findGroup(ctx, t, "read the number of the group "+t.String())
}

const groupHint = "make Liftlock's account a member of the group: GitLab doesn't tell others who is one"

// group is what is read of a group.
type group struct {
	ID int64 `json:"id"`
}

func (g *group) missing() string {
	if g.ID <= 0 {
		return "a group's number"
	}
	return ""
}

// findGroup is the number of a team's group. ErrNotFound where it isn't there or can't be seen.
func (d *Driver) findGroup(ctx context.Context, t forge.Team, op string) (int64, error) {
	var group group
	_, err := d.call(ctx, op, http.MethodGet, query{WithProjects: no}, &group, "groups", t.String())
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return 0, forge.MissingTeam(t, op)
	case err != nil:
		return 0, err
	}
	return group.ID, nil
}

// account is an account as GitLab shows it.
type account struct {
	ID          int64  `json:"id"`
	Username    string `json:"username"`
	PublicEmail string `json:"public_email"`
	Bot         bool   `json:"bot"` // shown of few
}

// botName are the names that GitLab gives to the accounts of access tokens and of services.
var botName = regexp.MustCompile(`^(?:project|group)_[0-9]+_bot(?:_[0-9a-z]+)?$|^service_account_`)

func (a *account) missing() string {
	if a.ID <= 0 || a.Username == "" {
		return "an account's number and name"
	}
	return ""
}

func (a *account) isBot() bool { return a != nil && (a.Bot || botName.MatchString(a.Username)) }

func (a *account) login() string {
	if a == nil {
		return ""
	}
	return a.Username
}

func (a *account) id() int64 {
	if a == nil {
		return 0
	}
	return a.ID
}

func (a *account) user() forge.User {
	return forge.User{ID: a.id(), Login: a.login(), Bot: a.isBot()}
}
