package gitea

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

var _ forge.Inspector = (*Driver)(nil)

// InspectCredentials reads whether Gitea takes the token. Its scopes and its end it shows to
// nobody: a call that needs another scope names it.
func (d *Driver) InspectCredentials(ctx context.Context) (*forge.Credentials, error) {
	_, resp, err := d.newClient(ctx).GetMyUserInfo()
	if err != nil {
		return nil, rest.Wrap("read the token's own account", err)
	}
	c := &forge.Credentials{}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.ServerTime = at
	}
	return c, nil
}

// RepositoryNumber reads a repository's number. Gitea redirects a former name to what had it.
func (d *Driver) RepositoryNumber(ctx context.Context, r forge.Repo) (int64, error) {
	repo, _, err := d.newClient(ctx).GetRepo(r.Owner, r.Name)
	if err != nil {
		return 0, rest.Wrap("read the number of the repository "+r.String(), err)
	}
	return repo.ID, nil
}

// InspectRepository reads a repository's settings, and what the token's account may do there.
func (d *Driver) InspectRepository(ctx context.Context, r forge.Repo) (*forge.RepositorySettings, error) {
	repo, _, err := d.newClient(ctx).GetRepo(r.Owner, r.Name)
	if err != nil {
		return nil, rest.Wrap("read the repository "+r.String(), err)
	}
	s := &forge.RepositorySettings{Name: repo.FullName, DefaultBranch: repo.DefaultBranch, Archived: repo.Archived,
		NoPulls: !repo.HasPullRequests}
	for _, m := range []struct {
		name    string
		allowed bool
	}{{"merge", repo.AllowMerge}, {"squash", repo.AllowSquash}, {"rebase", repo.AllowRebase}} {
		if m.allowed {
			s.Methods = append(s.Methods, m.name)
		}
	}
	if may := repo.Permissions; may != nil {
		switch {
		case may.Admin:
			s.Permission = forge.PermissionAdmin
		case may.Push:
			s.Permission = forge.PermissionWrite
		case may.Pull:
			s.Permission = forge.PermissionRead
		}
	}
	return s, nil
}

// InspectHooks reads the repository's webhooks with the address of h. Gitea shows the answers to
// their deliveries on its pages only.
func (d *Driver) InspectHooks(ctx context.Context, r forge.Repo, h forge.Hook) ([]forge.HookSettings, error) {
	wanted := h.Events
	if len(wanted) == 0 {
		wanted = DefaultEvents
	}
	hooks, err := d.hooksOf(ctx, r, h.URL)
	if err != nil {
		return nil, err
	}
	var out []forge.HookSettings
	for _, hook := range hooks {
		out = append(out, d.hookSettings(hook, wanted, h.Secret))
	}
	return out, nil
}

func (d *Driver) hookSettings(hook *sdk.Hook, wanted []string, secret string) forge.HookSettings {
	s := forge.HookSettings{URL: hook.Config["url"], Active: hook.Active, MissingEvents: d.missingEvents(wanted, hook.Events)}
	switch {
	case hook.Config["content_type"] != "json":
		s.WrongFormat = "its content type is " + rest.ClipMessage(hook.Config["content_type"]) + ", not application/json"
	case hook.BranchFilter != "" && hook.BranchFilter != "*":
		s.WrongFormat = "it sends what happens on the branches " + rest.ClipMessage(hook.BranchFilter) + " only"
	}
	// Somebody's own hook has no fingerprint in its header, which says nothing.
	if strings.HasPrefix(hook.AuthorizationHeader, rest.FingerprintPrefix) {
		s.OtherSecret = hook.AuthorizationHeader != rest.Fingerprint(secret)
	}
	return s
}

// InspectTeam reads the first page of a team's members.
func (d *Driver) InspectTeam(ctx context.Context, t forge.Team) (logins []string, complete bool, err error) {
	op := "list who is in " + t.String()
	id, err := d.findTeam(ctx, t, op)
	if err != nil {
		return nil, false, err
	}
	members, resp, err := d.newClient(ctx).ListTeamMembers(id, sdk.ListTeamMembersOptions{ListOptions: sdk.ListOptions{Page: 1,
		PageSize: perPage}})
	if err != nil {
		return nil, false, rest.AddHint(rest.Wrap(op, err), teamHint)
	}
	for _, m := range members {
		logins = append(logins, loginOf(m))
	}
	total, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
	return logins, err == nil && total <= len(members), nil
}

// pushProtection is who may push to the branches that a rule's name matches.
type pushProtection struct {
	Name      string   `json:"rule_name"`
	Push      bool     `json:"enable_push"`
	Whitelist bool     `json:"enable_push_whitelist"`
	Users     []string `json:"push_whitelist_usernames"`
	Teams     []string `json:"push_whitelist_teams"`
}

// InspectGuard reads the repository's branch protections, which only its administrators see. The
// first whose name matches counts; a team that is named may have our account in it.
func (d *Driver) InspectGuard(ctx context.Context, r forge.Repo, branch string) (guard forge.BranchGuard, err error) {
	op := "list the branch protections of " + r.String()
	var all []pushProtection
	if err := d.getJSON(ctx, op, nil, &all, "repos", r.Owner, r.Name, "branch_protections"); err != nil {
		return guard, rest.AddHint(err, "make Liftlock's account an administrator of the repository")
	}
	me, err := d.Me(ctx)
	if err != nil {
		return guard, err
	}
	for _, p := range all {
		if matched, err := doublestar.Match(p.Name, branch); err != nil || !matched {
			continue
		}
		named := slices.ContainsFunc(p.Users, func(login string) bool { return strings.EqualFold(login, me.Login) })
		guard.Guarded = !p.Push || p.Whitelist
		guard.Excluded = !p.Push || p.Whitelist && !named && len(p.Teams) == 0
		return guard, nil
	}
	return guard, nil
}
