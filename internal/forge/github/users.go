package github

import (
	"context"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// GitAuth is how GitHub takes a token over HTTP.
func (d *Driver) GitAuth(ctx context.Context, r forge.Repo) (username, password string, err error) {
	ctx, _, _ = inRepo(ctx, r)
	token, err := d.token(ctx)
	return "x-access-token", token, err
}

// Permission is the user's effective permission; teams and the organisation's
// default count. GitHub answers 404 for somebody it doesn't know.
func (d *Driver) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	ctx, owner, name := inRepo(ctx, r)
	level, _, err := d.api.Repositories.GetPermissionLevel(ctx, owner, name, rest.Segment(login))
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return forge.PermissionNone, nil
	case err != nil:
		return forge.PermissionNone, wrapError("read the permission of "+login+" in "+r.String(), err)
	}
	switch level.GetPermission() { // maintain is shown as write, triage as read
	case "admin":
		return forge.PermissionAdmin, nil
	case "write":
		return forge.PermissionWrite, nil
	case "read":
		return forge.PermissionRead, nil
	default:
		return forge.PermissionNone, nil
	}
}

// IsTeamMember says whether an account is in a team or in one below it; a person who was
// invited and hasn't accepted isn't. GitHub answers 404 for who isn't in it and for a team
// that it doesn't show, so then the team itself is looked for.
func (d *Driver) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	op := "read whether " + login + " is in " + t.String()
	if strings.Trim(login, ".") == "" {
		return false, nil // no account's name, but a path's
	}
	inOrganisation, org, slug := inTeam(ctx, t)
	m, _, err := d.api.Teams.GetTeamMembershipBySlug(inOrganisation, org, slug, rest.Segment(login))
	switch {
	case err == nil:
		return m.GetState() == "active", nil
	case rest.StatusOf(err) != http.StatusNotFound:
		return false, wrapError(op, err)
	}
	_, err = d.readTeam(ctx, t, op)
	return false, err
}

// TeamNumber is GitHub's id of the team.
func (d *Driver) TeamNumber(ctx context.Context, t forge.Team) (int64, error) {
	team, err := d.readTeam(ctx, t, "read the number of the team "+t.String())
	return team.GetID(), err
}

// readTeam reads what has a team's name. ErrNotFound where it isn't there or can't be seen.
func (d *Driver) readTeam(ctx context.Context, t forge.Team, op string) (*gh.Team, error) {
	ctx, org, slug := inTeam(ctx, t)
	team, _, err := d.api.Teams.GetTeamBySlug(ctx, org, slug)
	switch {
	case err == nil:
		return team, nil
	case rest.StatusOf(err) == http.StatusNotFound:
		return nil, forge.MissingTeam(t, op)
	default:
		return nil, wrapError(op, err)
	}
}

// isBot says whether an account is an app's.
func isBot(u *gh.User) bool { return u.GetType() == "Bot" }

// Me is the account that the driver works as.
func (d *Driver) Me(ctx context.Context) (forge.User, error) { return d.account(ctx) }

// readAccount reads the token's own account; once read it is remembered.
func (d *Driver) readAccount(ctx context.Context) (forge.User, error) {
	return d.known.Read(func() (forge.User, error) {
		u, _, err := d.api.Users.Get(ctx, "")
		return toUser(u), wrapError("read the token's own account", err)
	})
}

// toUser translates an account; none is the zero one, also where GitHub sends an empty
// object.
func toUser(u *gh.User) forge.User {
	if u.GetLogin() == "" {
		return forge.User{}
	}
	return forge.User{ID: u.GetID(), Login: u.GetLogin(), Bot: isBot(u)}
}
