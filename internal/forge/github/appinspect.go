package github

import (
	"context"
	"slices"
	"strconv"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

var _ forge.Inspector = (*App)(nil)

// InspectCredentials reads whether GitHub takes the App's key. Whatever installation can be used
// shows the limit; its permissions are its repositories' matter.
func (ap *App) InspectCredentials(ctx context.Context) (*forge.Credentials, error) {
	_, resp, err := ap.own.Apps.Get(ctx, "")
	if err != nil {
		return nil, ap.wrapAppError("read the App itself", err)
	}
	c := credentialsOf(resp)
	if _, err := ap.anyTokens(ctx); err != nil {
		return c, nil // which one can't be used, and why, is said of its repositories
	}
	me, err := ap.Me(ctx)
	if err != nil {
		return nil, err
	}
	_, resp, err = ap.api.Users.Get(ctx, rest.Segment(me.Login))
	if err != nil {
		return nil, wrapError("read the App's account "+me.Login, err)
	}
	c.Limit = credentialsOf(resp).Limit
	return c, nil
}

// InspectRepository reads a repository's settings, and which permissions the installation lacks.
// GitHub shows an App no role of its own: what it may do follows from those.
func (ap *App) InspectRepository(ctx context.Context, r forge.Repo) (*forge.RepositorySettings, error) {
	i, err := ap.findInstallation(ctx, r.Owner, r.Name)
	if err != nil {
		return nil, err
	}
	s, err := ap.Driver.InspectRepository(ctx, r)
	if err != nil {
		return nil, err
	}
	s.Permission = forge.PermissionRead
	if grants(i.permissions["contents"], "write") {
		s.Permission = forge.PermissionWrite
	}
	lacking := i.missing()
	for _, q := range Permissions() {
		if name := q.Name + ": " + q.Level; slices.Contains(lacking, name) {
			s.Missing = append(s.Missing, forge.MissingGrant{Name: name, Without: "it can't " + q.Why})
		}
	}
	return s, nil
}

// InspectHooks reads the App's one webhook, and what became of its newest delivery, whichever
// repository that was about.
func (ap *App) InspectHooks(ctx context.Context, _ forge.Repo, h forge.Hook) ([]forge.HookSettings, error) {
	config, _, err := ap.own.Apps.GetHookConfig(ctx)
	if err != nil {
		return nil, ap.wrapAppError("read the App's webhook", err)
	}
	if config.GetURL() == "" {
		return nil, nil
	}
	app, _, err := ap.own.Apps.Get(ctx, "")
	if err != nil {
		return nil, ap.wrapAppError("read the App itself", err)
	}
	s := hookSettings(config, app.Events, h.Events)
	s.Active = true // one that is switched off isn't shown as such
	newest, _, err := ap.listDeliveries(ctx, &gh.ListCursorOptions{PerPage: perPage})
	if err != nil {
		return nil, ap.wrapAppError("list the deliveries of the App's webhook", err)
	}
	if len(newest) > 0 {
		s.LastStatus = newest[0].GetStatusCode()
		s.LastAnswer = rest.ClipMessage(strconv.Itoa(s.LastStatus) + " " + newest[0].GetStatus())
	}
	return []forge.HookSettings{s}, nil
}
