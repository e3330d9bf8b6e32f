package emulator

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GitLab's levels of access.
const (
	reporterLevel   = 20
	developerLevel  = 30
	maintainerLevel = 40
	ownerLevel      = 50
)

// accessLevel is GitLab's number for what an account may do in a project; 0: nothing.
func accessLevel(r *repository, a *account) int {
	if a.id == r.owner.id {
		return ownerLevel
	}
	return levelOf(r.permissionOf(a))
}

func levelOf(p Permission) int {
	return map[Permission]int{Read: reporterLevel, Write: developerLevel, Admin: maintainerLevel}[p]
}

// gitlabUser is an account as others show it; nil is null.
func (f *Forge) gitlabUser(a *account) any {
	if a == nil {
		return nil
	}
	return f.gitlabUserObject(a)
}

func (f *Forge) gitlabUserObject(a *account) restObject {
	return restObject{
		"id": a.id, "username": a.login, "public_email": a.email, "name": a.login, "state": "active", "locked": false,
		"avatar_url": nil, "web_url": f.url + "/" + a.login,
	}
}

func (f *Forge) gitlabUsers(all []*account) []restObject {
	shown := []restObject{}
	for _, a := range all {
		shown = append(shown, f.gitlabUserObject(a))
	}
	return shown
}

// gitlabUserWithBot also says whether the account is a program's: a project's or group's
// access token's, or a service account.
func (f *Forge) gitlabUserWithBot(a *account) restObject {
	u := f.gitlabUserObject(a)
	u["bot"], u["created_at"] = a.kind == "Bot", formatGitLabTime(a.tokenCreated)
	return u
}

// gitlabUserInFull is an account as it sees itself.
func (f *Forge) gitlabUserInFull(a *account) restObject {
	u := f.gitlabUserWithBot(a)
	u["email"], u["commit_email"], u["external"], u["two_factor_enabled"] = a.email, a.email, false, false
	return u
}

func (f *Forge) accountByID(id string) *account {
	for _, a := range f.users {
		if strconv.FormatInt(a.id, 10) == id && a.kind != "Organization" {
			return a
		}
	}
	return nil
}

func getGitLabUser(c *call) (any, error) {
	a := c.accountByID(c.r.PathValue("id"))
	if a == nil {
		return nil, gitlabNotFound("User")
	}
	return c.gitlabUserWithBot(a), nil
}

// listGitLabUsers finds accounts by username or by what is public of them (api/users.md).
func listGitLabUsers(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	var found []*account
	for _, login := range sortedKeys(c.users) {
		a := c.users[login]
		search := p.text("search")
		switch {
		case a.kind == "Organization", p.has("username") && !strings.EqualFold(a.login, p.text("username")):
		case search != "" && !strings.EqualFold(a.email, search) && !strings.Contains(strings.ToLower(a.login), strings.ToLower(search)):
		default:
			found = append(found, a)
		}
	}
	return pageOf(c, found, c.gitlabUserObject), nil
}

func getOwnToken(c *call) (any, error) {
	a := c.user
	var expires any
	if !a.tokenExpires.IsZero() {
		expires = a.tokenExpires.UTC().Format(time.DateOnly)
	}
	return restObject{
		"id": a.tokenID, "name": a.login + "'s token", "revoked": false, "created_at": formatGitLabTime(a.tokenCreated), "scopes": a.scopes,
		"user_id": a.id, "last_used_at": formatGitLabTime(a.tokenUsed), "active": true, "expires_at": expires,
	}, nil
}

func getGitLabVersion(c *call) (any, error) {
	version := "19.4.0-ee"
	if c.oldGitLab {
		version = "17.0.0-ee"
	}
	return restObject{"version": version, "revision": "emulated", "enterprise": true}, nil
}

// withGroup finds the group of the path: one that owns projects, or a team.
func withGroup(answer func(c *call, path string, t *team) (any, error)) handler {
	return func(c *call) (any, error) {
		id := c.r.PathValue("id")
		for _, name := range sortedKeys(c.teams) {
			if t := c.teams[name]; strings.EqualFold(id, name) || strconv.FormatInt(t.id, 10) == id {
				return answer(c, t.organisation+"/"+t.slug, t)
			}
		}
		for _, login := range sortedKeys(c.users) {
			if a := c.users[login]; a.kind == "Organization" && (strings.EqualFold(id, login) || strconv.FormatInt(a.id, 10) == id) {
				return answer(c, a.login, &team{id: a.id})
			}
		}
		return nil, gitlabNotFound("Group")
	}
}

func getGroup(c *call, path string, t *team) (any, error) {
	short := path[strings.LastIndex(path, "/")+1:]
	return restObject{"id": t.id, "web_url": c.url + "/groups/" + path, "name": short, "path": short,
		"full_name": strings.ReplaceAll(path, "/", " / "),
		"full_path": path, "visibility": "private", "parent_id": nil}, nil
}

// getGroupMember also finds who is in a group above: members are inherited downwards.
func getGroupMember(c *call, _ string, t *team) (any, error) {
	a := c.accountByID(c.r.PathValue("user_id"))
	for ; t != nil && a != nil; t = t.parent {
		if t.members[strings.ToLower(a.login)] {
			return c.gitlabMember(a, developerLevel), nil
		}
	}
	return nil, gitlabNotFound("")
}

// listGroupMembers lists those too who are in a group above.
func listGroupMembers(c *call, _ string, t *team) (any, error) {
	var members []*account
	for _, login := range sortedKeys(c.users) {
		for at := t; at != nil; at = at.parent {
			if at.members[login] {
				members = append(members, c.users[login])
				break
			}
		}
	}
	return pageOf(c, members, func(a *account) restObject { return c.gitlabMember(a, developerLevel) }), nil
}

func getProjectMember(c *call) (any, error) {
	a := c.accountByID(c.r.PathValue("user_id"))
	if a == nil || accessLevel(c.repo, a) == 0 {
		return nil, gitlabNotFound("")
	}
	return c.gitlabMember(a, accessLevel(c.repo, a)), nil
}

func (f *Forge) gitlabMember(a *account, level int) restObject {
	m := f.gitlabUserObject(a)
	m["access_level"], m["created_at"], m["expires_at"], m["membership_state"] = level, formatGitLabTime(a.tokenCreated), nil, "active"
	return m
}

// gitlabMethod is how the project merges: merge, rebase_merge or ff.
func (r *repository) gitlabMethod() string {
	if r.gitlab.MergeMethod == "" && slices.Equal(r.methods, []string{"rebase"}) {
		return "ff"
	}
	return cmp.Or(r.gitlab.MergeMethod, "merge")
}

// squashOption is whether the project squashes: never, always, default_on or default_off.
func (r *repository) squashOption() string {
	switch {
	case r.gitlab.Squash != "":
		return r.gitlab.Squash
	case slices.Equal(r.methods, []string{"squash"}):
		return "always"
	case !slices.Contains(r.methods, "squash"):
		return "never"
	}
	return "default_off"
}

// needsPipeline says whether a merge into a branch needs a pipeline that succeeded.
func (r *repository) needsPipeline(branch string) bool {
	return r.gitlab.PipelineMustSucceed || len(r.protections[branch].Contexts) > 0
}

func (f *Forge) projectURL(r *repository) string {
	return f.url + gitlabAPI + "/projects/" + strconv.FormatInt(r.id, 10)
}

// gitlabProject is a project, shown to an account.
func (f *Forge) gitlabProject(r *repository, to *account) restObject {
	page, self := f.url+"/"+r.fullName(), f.projectURL(r)
	ownerShort := r.owner.login[strings.LastIndex(r.owner.login, "/")+1:]
	kind := "user"
	if r.owner.kind == "Organization" {
		kind = "group"
	}
	spaced := strings.ReplaceAll(r.fullName(), "/", " / ")
	p := restObject{
		"id": r.id, "description": nil, "name": r.name, "name_with_namespace": spaced, "path": r.name, "path_with_namespace": r.fullName(),
		"created_at": formatGitLabTime(r.created), "default_branch": r.branch, "tag_list": []string{}, "topics": []string{},
		"ssh_url_to_repo": "git@127.0.0.1:" + r.fullName() + ".git", "http_url_to_repo": page + ".git", "web_url": page, "readme_url": nil,
		"forks_count": 0, "avatar_url": nil, "star_count": 0, "last_activity_at": formatGitLabTime(r.pushed), "visibility": "private",
		"namespace": restObject{"id": r.owner.id, "name": ownerShort, "path": ownerShort, "kind": kind, "full_path": r.owner.login,
			"parent_id":  nil,
			"avatar_url": nil, "web_url": f.url + "/" + r.owner.login},
		"_links": restObject{"self": self, "merge_requests": self + "/merge_requests", "repo_branches": self + "/repository/branches",
			"labels": self + "/labels", "events": self + "/events", "members": self + "/members"},
		"empty_repo": len(r.refs) == 0, "archived": r.archived, "merge_requests_enabled": true, "merge_requests_access_level": "enabled",
		"can_create_merge_request_in": true, "import_status": "none", "updated_at": formatGitLabTime(r.pushed),
		"only_allow_merge_if_pipeline_succeeds": r.needsPipeline(r.branch), "allow_merge_on_skipped_pipeline": false,
		"only_allow_merge_if_all_discussions_are_resolved": r.gitlab.DiscussionsMustBeResolved,
		"remove_source_branch_after_merge":                 r.deleteMerged, "merge_method": r.gitlabMethod(),
		"squash_option": r.squashOption(),
		"permissions":   restObject{"project_access": nil, "group_access": nil},
	}
	if !r.gitlab.Free {
		p["merge_trains_enabled"], p["merge_pipelines_enabled"], p["merge_trains_skip_train_allowed"] = r.gitlab.QueueMerges,
			r.gitlab.QueueMerges, false
		p["approvals_before_merge"] = r.protections[r.branch].Approvals
	}
	if level := accessLevel(r, to); level > 0 {
		p["permissions"] = restObject{"project_access": restObject{"access_level": level, "notification_level": "global"},
			"group_access": nil}
	}
	if r.parent != nil {
		p["forked_from_project"] = restObject{"id": r.parent.id, "name": r.parent.name, "path": r.parent.name,
			"path_with_namespace": r.parent.fullName(),
			"http_url_to_repo":    f.url + "/" + r.parent.fullName() + ".git", "web_url": f.url + "/" + r.parent.fullName()}
	}
	return p
}

// getProtectedBranch is 404 for a branch without protection.
func getProtectedBranch(c *call) (any, error) {
	name := c.r.PathValue("name")
	if c.repo.protections[name].MergeRole == NoPermission {
		return nil, gitlabNotFound("")
	}
	return c.gitlabProtection(name), nil
}

func (c *call) gitlabProtection(name string) restObject {
	role := c.repo.protections[name].MergeRole
	levels := []restObject{{"id": 1, "access_level": levelOf(role), "access_level_description": map[Permission]string{
		Write: "Developers + Maintainers", Admin: "Maintainers"}[role], "user_id": nil, "group_id": nil}}
	return restObject{"id": c.repo.id, "name": name, "push_access_levels": levels, "merge_access_levels": levels,
		"allow_force_push": false, "code_owner_approval_required": false}
}

// listProtectedBranches lists those by wildcards too, which only who is named may push to.
func listProtectedBranches(c *call) (any, error) {
	var all []restObject
	for _, name := range sortedKeys(c.repo.protections) {
		if c.repo.protections[name].MergeRole != NoPermission {
			all = append(all, c.gitlabProtection(name))
		}
	}
	for _, g := range c.repo.guards {
		wildcard, ok := g.wildcard()
		if !ok {
			continue
		}
		levels := []restObject{}
		for i, login := range g.pushers {
			if a, err := c.findAccount(login); err == nil {
				levels = append(levels, restObject{"id": i + 1, "access_level": nil, "access_level_description": a.login, "user_id": a.id,
					"group_id": nil})
			}
		}
		all = append(all, restObject{"id": g.id, "name": wildcard, "push_access_levels": levels, "merge_access_levels": []restObject{},
			"allow_force_push": true, "code_owner_approval_required": false})
	}
	return pageOf(c, all, func(o restObject) restObject { return o }), nil
}

// mayMergeInto says whether an account may merge into a branch.
func mayMergeInto(r *repository, branch string, a *account) bool {
	return r.permissionOf(a) >= max(Write, r.protections[branch].MergeRole)
}

func getGitLabBranch(c *call) (any, error) {
	name := c.r.PathValue("branch")
	sha := c.repo.branchHead(name)
	if sha == "" {
		return nil, gitlabNotFound("Branch")
	}
	found, err := c.repo.git.readCommit(sha)
	if err != nil {
		return nil, err
	}
	merged := false
	if tip := c.repo.branchHead(c.repo.branch); tip != "" && name != c.repo.branch {
		if merged, err = c.repo.git.isAncestor(sha, tip); err != nil {
			return nil, err
		}
	}
	role := c.repo.protections[name].MergeRole
	may := c.repo.permissionOf(c.user) >= max(Write, role)
	return restObject{"name": name, "commit": c.gitlabCommit(c.repo, found), "merged": merged, "protected": role != NoPermission,
		"developers_can_push": role == Write, "developers_can_merge": role == Write, "can_push": may, "default": name == c.repo.branch,
		"web_url": c.url + "/" + c.repo.fullName() + "/-/tree/" + name}, nil
}

func deleteGitLabBranch(c *call) (any, error) {
	name := c.r.PathValue("branch")
	sha := c.repo.branchHead(name)
	switch {
	case sha == "":
		return nil, gitlabNotFound("Branch")
	case name == c.repo.branch, c.repo.protections[name].MergeRole != NoPermission:
		return nil, gitlabForbidden()
	}
	if err := c.repo.git.deleteRef("refs/heads/"+name, sha); err != nil {
		return nil, err
	}
	c.status = http.StatusNoContent
	return nil, c.noticeRefs(c.repo, c.user)
}
