package github

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

var _ forge.Inspector = (*Driver)(nil)

const (
	// expiryHeader has the end of a token that ends ("Token expiration and revocation").
	expiryHeader = "Github-Authentication-Token-Expiration"
	// limitWindow is how long the limits last that answers carry.
	limitWindow = time.Hour
)

// expiryLayouts are how GitHub has been seen to write a token's end.
var expiryLayouts = []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"}

// InspectCredentials reads what answers carry of a token: a classic one's scopes, its end, and what
// is left of the limit. It shows no permission of a fine-grained token.
func (d *Driver) InspectCredentials(ctx context.Context) (*forge.Credentials, error) {
	_, resp, err := d.api.Users.Get(ctx, "")
	if err != nil {
		return nil, wrapError("read the token's own account", err)
	}
	c := credentialsOf(resp)
	if _, classic := resp.Header["X-Oauth-Scopes"]; classic {
		has := splitList(resp.Header.Get("X-OAuth-Scopes"))
		if !slices.Contains(has, "repo") {
			c.Missing = append(c.Missing, forge.MissingGrant{Name: "repo",
				Without: "private repositories can't be read, and branches, pull requests and statuses not be written"})
		}
	}
	return c, nil
}

// credentialsOf reads the headers of an answer.
func credentialsOf(resp *gh.Response) *forge.Credentials {
	c := &forge.Credentials{}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.ServerTime = at
	}
	for _, layout := range expiryLayouts {
		if end, err := time.Parse(layout, resp.Header.Get(expiryHeader)); err == nil {
			c.Expires = end
		}
	}
	if resp.Rate.Limit > 0 {
		c.Limit = forge.CallLimit{Calls: resp.Rate.Limit, Left: resp.Rate.Remaining, Every: limitWindow}
	}
	return c
}

// RepositoryNumber reads a repository's number. GitHub redirects a former name to what had it.
func (d *Driver) RepositoryNumber(ctx context.Context, r forge.Repo) (int64, error) {
	ctx, owner, name := inRepo(ctx, r)
	repo, _, err := d.api.Repositories.Get(ctx, owner, name)
	if err != nil {
		return 0, wrapError("read the number of the repository "+r.String(), err)
	}
	return repo.GetID(), nil
}

// InspectRepository reads a repository's settings, and what the token may do there.
func (d *Driver) InspectRepository(ctx context.Context, r forge.Repo) (*forge.RepositorySettings, error) {
	ctx, owner, name := inRepo(ctx, r)
	repo, _, err := d.api.Repositories.Get(ctx, owner, name)
	if err != nil {
		return nil, wrapError("read the repository "+r.String(), err)
	}
	s := &forge.RepositorySettings{Name: repo.GetFullName(), DefaultBranch: repo.GetDefaultBranch(), Archived: repo.GetArchived(),
		Methods: methodsOf(repo)}
	switch may := repo.GetPermissions(); {
	case may["admin"]:
		s.Permission = forge.PermissionAdmin
	case may["push"], may["maintain"]:
		s.Permission = forge.PermissionWrite
	case may["pull"], may["triage"]:
		s.Permission = forge.PermissionRead
	}
	return s, nil
}

// methodsOf are the ways of merging that a repository allows. GitHub shows them to who may write
// only: all of them where it doesn't.
func methodsOf(repo *gh.Repository) []string {
	var methods []string
	for _, m := range []struct {
		name    string
		allowed *bool
	}{{"merge", repo.AllowMergeCommit}, {"squash", repo.AllowSquashMerge}, {"rebase", repo.AllowRebaseMerge}} {
		if m.allowed == nil || *m.allowed {
			methods = append(methods, m.name)
		}
	}
	return methods
}

// InspectHooks reads the repository's webhook with the address of h. GitHub doesn't show its
// secret: a wrong one has its deliveries refused.
func (d *Driver) InspectHooks(ctx context.Context, r forge.Repo, h forge.Hook) ([]forge.HookSettings, error) {
	hook, err := d.findHook(ctx, r, h.URL)
	if err != nil || hook == nil {
		return nil, err
	}
	s := hookSettings(hook.Config, hook.Events, h.Events)
	if len(h.Events) == 0 {
		s.LateEvents = missingEvents(lateEvents, hook.Events)
	}
	s.Active = hook.GetActive()
	// go-github has the last response as a map: code is a number, or null before there was one.
	if code, ok := hook.LastResponse["code"].(float64); ok {
		s.LastStatus = int(code)
		s.LastAnswer = rest.ClipMessage(strings.TrimSpace(strconv.Itoa(s.LastStatus) + " " + http.StatusText(s.LastStatus)))
	}
	return []forge.HookSettings{s}, nil
}

// hookSettings reads what a webhook's configuration and events say; needed empty: DefaultEvents.
func hookSettings(config *gh.HookConfig, has, needed []string) forge.HookSettings {
	if len(needed) == 0 {
		needed = DefaultEvents
	}
	s := forge.HookSettings{URL: config.GetURL(), Insecure: config.GetInsecureSSL() == "1", MissingEvents: missingEvents(needed, has)}
	if t := config.GetContentType(); t != "json" {
		s.WrongFormat = "its content type is " + rest.ClipMessage(t) + ", not application/json"
	}
	return s
}

// InspectTeam reads the first page of a team's members, which are those of the teams below it too
// ("List team members").
func (d *Driver) InspectTeam(ctx context.Context, t forge.Team) (logins []string, complete bool, err error) {
	op := "list who is in " + t.String()
	ctx, org, slug := inTeam(ctx, t)
	members, resp, err := d.api.Teams.ListTeamMembersBySlug(ctx, org, slug,
		&gh.TeamListTeamMembersOptions{ListOptions: gh.ListOptions{PerPage: perPage}})
	switch {
	case rest.StatusOf(err) == http.StatusNotFound:
		return nil, false, forge.MissingTeam(t, op)
	case err != nil:
		return nil, false, wrapError(op, err)
	}
	for _, m := range members {
		logins = append(logins, m.GetLogin())
	}
	return logins, resp.NextPage == 0, nil
}

// InspectGuard reads whether rulesets restrict who makes a branch and who moves it, and whether
// they let the credentials past. Each of the two is a rule of its own. Classic protection isn't
// read: it can't keep others from making a branch.
func (d *Driver) InspectGuard(ctx context.Context, r forge.Repo, branch string) (guard forge.BranchGuard, err error) {
	var restricting []int64
	var creation, update bool
	if _, err := d.forEachRule(ctx, r, branch, func(rule activeRule) bool {
		switch rule.Type {
		case "creation":
			creation = true
		case "update":
			update = true
		default:
			return false
		}
		restricting = append(restricting, rule.RulesetID)
		return false
	}); err != nil {
		return guard, err
	}
	slices.Sort(restricting)
	for _, id := range slices.Compact(restricting) {
		ruleset, err := d.readRuleset(ctx, r, id)
		if err != nil {
			return guard, err
		}
		guard.Excluded = guard.Excluded || ruleset != nil && !ruleset.bypassesPush()
	}
	guard.Guarded = creation && update
	return guard, nil
}
