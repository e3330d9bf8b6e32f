package gitea

import (
	"context"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Me reads the token's own account; once read it is remembered.
func (d *Driver) Me(ctx context.Context) (forge.User, error) {
	return d.account.Read(func() (forge.User, error) {
		u, _, err := d.newClient(ctx).GetMyUserInfo()
		return toUser(u), rest.Wrap("read the token's own account", err)
	})
}

// GitAuth is how Gitea takes a token over HTTP: as the password of its owner.
func (d *Driver) GitAuth(ctx context.Context, _ forge.Repo) (username, password string, err error) {
	me, err := d.Me(ctx)
	if err != nil {
		return "", "", err
	}
	return me.Login, d.token, nil
}

// Permission is the user's effective permission; teams count. Gitea tells it to
// the repository's administrators only, and answers 404 for somebody it doesn't
// know.
func (d *Driver) Permission(ctx context.Context, r forge.Repo, user string) (forge.Permission, error) {
	if strings.Trim(user, ".") == "" {
		return forge.PermissionNone, nil // no account's name, but a path's
	}
	level, _, err := d.newClient(ctx).CollaboratorPermission(r.Owner, r.Name, user)
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return forge.PermissionNone, nil
	case err != nil:
		err = rest.Wrap("read the permission of "+user+" in "+r.String(), err)
		return forge.PermissionNone, rest.AddHint(err, "make Liftlock's account an administrator of the repository: Gitea tells others "+
			"nobody's permission")
	}
	switch level.Permission {
	case sdk.AccessModeOwner, sdk.AccessModeAdmin:
		return forge.PermissionAdmin, nil
	case sdk.AccessModeWrite:
		return forge.PermissionWrite, nil
	case sdk.AccessModeRead:
		return forge.PermissionRead, nil
	default:
		return forge.PermissionNone, nil
	}
}

// IsTeamMember says whether an account is in a team; Gitea's aren't nested.
func (d *Driver) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	op := "read whether " + login + " is in " + t.String()
	if strings.Trim(login, ".") == "" {
		return false, nil // no account's name, but a path's
	}
	id, err := d.findTeam(ctx, t, op)
	if err != nil {
		return false, err
	}
	_, _, err = d.newClient(ctx).GetTeamMember(id, login)
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, rest.AddHint(rest.Wrap(op, err), teamHint)
	}
	return true, nil
}

// TeamNumber is Gitea's id of the team.
func (d *Driver) TeamNumber(ctx context.Context, t forge.Team) (int64, error) {
	return d.findTeam(ctx, t, "read the number of the team "+t.String())
}

const teamHint = "add Liftlock's account to the team: Gitea tells only its members, and the organisation's owners, who is in one"

// findTeam is a team's number, by which the API knows it: the organisation's are looked through
// for the name. ErrNotFound where it isn't there or can't be seen.
func (d *Driver) findTeam(ctx context.Context, t forge.Team, op string) (id int64, err error) {
	err = forEach(op, bounds, func(o sdk.ListOptions) ([]*sdk.Team, *sdk.Response, error) {
		return d.newClient(ctx).ListOrgTeams(t.Organisation, sdk.ListTeamsOptions{ListOptions: o})
	}, func(team *sdk.Team) bool {
		if strings.EqualFold(team.Name, t.Name) {
			id = team.ID
		}
		return id != 0
	})
	if rest.StatusOf(err) == http.StatusNotFound || err == nil && id == 0 {
		return 0, forge.MissingTeam(t, op)
	}
	return id, err
}

// isBot says whether an account is one of Gitea's own (the actions, the ghost):
// they have negative numbers. Accounts of type bot aren't shown as such.
func isBot(u *sdk.User) bool { return u != nil && u.ID < 0 }

func toUser(u *sdk.User) forge.User {
	return forge.User{ID: idOf(u), Login: loginOf(u), Bot: isBot(u)}
}

func idOf(u *sdk.User) int64 {
	if u == nil {
		return 0
	}
	return u.ID
}

func loginOf(u *sdk.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}
