package gitlab

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/xanzy/go-gitlab"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

var _ forge.Inspector = (*Driver)(nil)

// limitWindow is how long the limit of all of an account's calls lasts (user/gitlab_com, and
// administration/settings/user_and_ip_rate_limits as it is set at first).
const limitWindow = time.Minute

// InspectCredentials reads the token's own scopes and end, where it is one that GitLab has
// something to say of: an OAuth token isn't.
func (d *Driver) InspectCredentials(ctx context.Context) (*forge.Credentials, error) {
	var a account
	resp, err := d.call(ctx, "read the token's own account", http.MethodGet, nil, &a, "user")
	if err != nil {
		return nil, err
	}
	c := &forge.Credentials{Limit: limitOf(resp)}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.ServerTime = at
	}
	token, err := d.readOwnToken(ctx)
	if err != nil || token == nil {
		return c, err
	}
	if c.Expires, err = token.end(); err != nil {
		return nil, err
	}
	if !slices.Contains(token.Scopes, "api") {
		c.Missing = append(c.Missing, forge.MissingGrant{Name: "api",
			Without: "merge requests, notes and statuses can't be written, nor branches pushed"})
	}
	return c, nil
}

// limitOf reads what an answer says of the account's limit.
func limitOf(resp *sdk.Response) forge.CallLimit {
	calls, err1 := strconv.Atoi(resp.Header.Get("RateLimit-Limit"))
	left, err2 := strconv.Atoi(resp.Header.Get("RateLimit-Remaining"))
	if err1 != nil || err2 != nil {
		return forge.CallLimit{}
	}
	return forge.CallLimit{Calls: calls, Left: left, Every: limitWindow}
}

// projectSettings are those of a project.
type projectSettings struct {
	project
	Path          string `json:"path_with_namespace"`
	DefaultBranch string `json:"default_branch"`
	Archived      bool   `json:"archived"`
	Requests      *bool  `json:"merge_requests_enabled"`
}

// InspectRepository reads a project's settings, and the account's level in it, by groups too.
func (d *Driver) InspectRepository(ctx context.Context, r forge.Repo) (*forge.RepositorySettings, error) {
	var p projectSettings
	if _, err := d.callProject(ctx, "read the project "+r.String(), r, http.MethodGet, nil, &p); err != nil {
		return nil, err
	}
	s := &forge.RepositorySettings{Name: p.Path, DefaultBranch: p.DefaultBranch, Archived: p.Archived,
		NoPulls: p.Requests != nil && !*p.Requests}
	for _, m := range []string{"merge", "squash", "rebase"} {
		if why, _ := refuseMethod(p.project, m); why == "" {
			s.Methods = append(s.Methods, m)
		}
	}
	me, err := d.Me(ctx)
	if err != nil {
		return nil, err
	}
	s.Permission, err = d.Permission(ctx, r, me.Login)
	return s, err
}

// InspectHooks reads the project's webhooks with the address of h, and what their newest
// deliveries were answered, which a GitLab before 17.3 doesn't tell.
func (d *Driver) InspectHooks(ctx context.Context, r forge.Repo, h forge.Hook) ([]forge.HookSettings, error) {
	wanted := h.Events
	if len(wanted) == 0 {
		wanted = DefaultEvents
	}
	ours, err := d.listHooks(ctx, r, h.URL)
	if err != nil {
		return nil, err
	}
	var out []forge.HookSettings
	for _, o := range ours {
		s := forge.HookSettings{URL: o.text("url"), Active: true, Insecure: !o.is("enable_ssl_verification")}
		if o.isDisabled() {
			s.Paused = o.text("alert_status")
		}
		for _, e := range wanted {
			if !o.is(e) {
				s.MissingEvents = append(s.MissingEvents, e)
			}
		}
		if filter := o.text("push_events_branch_filter"); filter != "" {
			s.WrongFormat = "it sends pushes of the branches " + rest.ClipMessage(filter) + " only"
		}
		// Somebody's own hook has no fingerprint in its description, which says nothing.
		if mark := o.text("description"); strings.HasPrefix(mark, rest.FingerprintPrefix) {
			s.OtherSecret = mark != rest.Fingerprint(h.Secret)
		}
		if err := d.readLastAnswer(ctx, r, o.id(), &s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// readLastAnswer reads what a hook's newest delivery was answered.
func (d *Driver) readLastAnswer(ctx context.Context, r forge.Repo, id string, s *forge.HookSettings) error {
	var newest []hookEvent
	_, err := d.callProject(ctx, "list the events of the webhook of "+r.String(), r, http.MethodGet, query{Page: 1, PerPage: eventsPerPage},
		&newest, "hooks", id, "events")
	switch {
	case rest.StatusOf(err) == http.StatusNotFound && !isMissingProject(err): // it is older
		return nil
	case err != nil:
		return err
	}
	if len(newest) > 0 {
		s.LastAnswer = newest[0].status()
		if n, err := strconv.Atoi(s.LastAnswer); err == nil {
			s.LastStatus = n
		}
	}
	return nil
}

// InspectTeam reads the first page of a group's members, by the groups above it too.
func (d *Driver) InspectTeam(ctx context.Context, t forge.Team) (logins []string, complete bool, err error) {
	op := "list who is in " + t.String()
	group, err := d.findGroup(ctx, t, op)
	if err != nil {
		return nil, false, err
	}
	var members []member
	first := query{Page: 1, PerPage: perPage}
	resp, err := d.call(ctx, op, http.MethodGet, first, &members, "groups", strconv.FormatInt(group, 10), "members", "all")
	if err != nil {
		return nil, false, rest.AddHint(err, groupHint)
	}
	for i := range members {
		if m := &members[i]; m.counts(d.now()) {
			logins = append(logins, m.Username)
		}
	}
	next, err := d.nextPage(op, resp, first, len(members))
	return logins, next == 0, err
}

// pushProtection is who may push to the branches that a name or a wildcard protects.
type pushProtection struct {
	Name   string `json:"name"`
	Levels []struct {
		Level  *int   `json:"access_level"` // null where it is an account's or a group's
		UserID *int64 `json:"user_id"`
	} `json:"push_access_levels"`
}

// InspectGuard reads the project's protected branches, by wildcards too. A branch is guarded where
// no role may push to it but accounts, groups or keys that are named; of those only our own account
// is known.
func (d *Driver) InspectGuard(ctx context.Context, r forge.Repo, branch string) (guard forge.BranchGuard, err error) {
	me, err := d.Me(ctx)
	if err != nil {
		return guard, err
	}
	byRole, own := false, false
	err = forEach(ctx, d, "list the protected branches of "+r.String(), r, maxPages, query{}, func(p pushProtection) bool {
		if !matchesWildcard(p.Name, branch) {
			return false
		}
		guard.Guarded = true
		for _, l := range p.Levels {
			byRole = byRole || l.Level != nil && *l.Level > 0 && l.UserID == nil
			own = own || l.UserID != nil && *l.UserID == me.ID
		}
		return false
	}, "protected_branches")
	if err != nil {
		return forge.BranchGuard{}, rest.AddHint(err, "make Liftlock's account a Maintainer of the project: only those see its protected "+
			"branches")
	}
	// Where several match, GitLab's most permissive counts
	// (user/project/repository/branches/protected).
	if byRole {
		return forge.BranchGuard{}, nil
	}
	guard.Excluded = guard.Guarded && !own
	return guard, nil
}

// matchesWildcard says whether a branch is one that a protection names; a * stands for any text.
func matchesWildcard(pattern, branch string) bool {
	parts := strings.Split(pattern, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	matched, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", branch)
	return err == nil && matched
}
