package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/config"
)

// repositoryCheck is the check of one repository.
type repositoryCheck struct {
	*doctor
	forge    Forge
	forgeOf  *config.Forge
	config   *config.Repository
	repo     forge.Repo
	where    string
	settings *forge.RepositorySettings
	found    findings

	pulls     []forge.PullRequest // of the last days; once pullsRead
	pullsRead bool
}

func (d *doctor) checkRepository(ctx context.Context, c *config.Forge, r *config.Repository, f Forge) findings {
	owner, name := r.Split()
	k := &repositoryCheck{doctor: d, forge: f, forgeOf: c, config: r, repo: forge.Repo{Owner: owner, Name: name},
		where: "repository " + r.Name}
	if len(d.Config.Forges) > 1 {
		k.where += " on " + c.Name
	}
	if k.checkByAPI(ctx) {
		k.checkPipelines(ctx)
	}
	return k.found
}

// checkByAPI checks what needs no content of the repository; false: nothing else can be known.
func (r *repositoryCheck) checkByAPI(ctx context.Context) bool {
	ctx, cancel := r.limit(ctx)
	defer cancel()
	if !r.checkSettings(ctx) {
		return false
	}
	r.checkHooks(ctx)
	r.checkAccount(ctx)
	return true
}

// checkSettings checks the repository itself; false: nothing else can be known of it.
func (r *repositoryCheck) checkSettings(ctx context.Context) bool {
	s, err := r.forge.InspectRepository(ctx, r.repo)
	if err != nil {
		r.addUnread(err)
		return false
	}
	r.settings = s
	if !strings.EqualFold(s.Name, r.config.Name) && s.Name != "" {
		r.found.add("repository-renamed", r.where, "it is called "+s.Name+" now",
			"write that name in repositories: a former name leads to it only until somebody else uses it")
	}
	if s.Archived {
		r.found.add("repository-archived", r.where, "it is archived: nothing can be written",
			"unarchive it, or remove it from the server's file")
	}
	if s.NoPulls {
		r.found.add("pulls-off", r.where, "pull requests are switched off", "switch them on in its settings")
	}
	for _, m := range s.Missing {
		r.found.add("grant-missing", r.where, fmt.Sprintf("the App's installation lacks the permission %s: %s", m.Name, m.Without),
			"accept the App's permissions in the organisation's settings, under GitHub Apps")
	}
	switch {
	case s.Permission < forge.PermissionWrite:
		r.found.add("write-missing", r.where, "Liftlock's account may only read: no branch can be pushed and no promotion opened",
			"give the account the role that may write"+r.writeRole())
	case r.forgeOf.Type == config.Gitea && s.Permission < forge.PermissionAdmin:
		r.found.add("admin-missing", r.where, "Liftlock's account is no administrator: Gitea tells others nobody's permission, so that "+
			"no command and no approval counts", "make the account an administrator of the repository")
	}
	r.checkBranch()
	r.found.addOK(0, CodeRepository, r.where, fmt.Sprintf("its branch is %s; the account may %s", r.config.Branch,
		describePermission(s.Permission)))
	return true
}

// checkBranch compares the branch that is tracked with the repository's own.
func (r *repositoryCheck) checkBranch() {
	switch of := r.settings.DefaultBranch; {
	case of == "":
		r.found.add("repository-empty", r.where, "it has no commit yet", "push the first one")
	case of != r.config.Branch:
		r.found.add("branch-other", r.where, fmt.Sprintf("the tracked branch is %s, and the repository's default branch %s",
			r.config.Branch, of), "if that isn't meant, correct repositories[].branch: people's pull requests go to the default branch")
	}
}

func (r *repositoryCheck) writeRole() string {
	switch r.forgeOf.Type {
	case config.GitLab:
		return " (Developer; Maintainer where the branch is protected)"
	case config.Gitea:
		return " (administrator: only those are told who may do what)"
	}
	return ""
}

// addUnread adds why the repository can't be read.
func (r *repositoryCheck) addUnread(err error) {
	var refusal *forge.Error
	switch {
	case errors.Is(err, forge.ErrNotInstalled) && errors.As(err, &refusal):
		r.found.add("app-unusable", r.where, refusal.Message, refusal.Hint)
	case errors.Is(err, forge.ErrNotFound):
		r.found.add("repository-missing", r.where, err.Error(), "correct repositories[].name, or give Liftlock's account access to it: "+
			"what an account may not see looks as if it weren't there")
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUnauthorized):
		r.found.add("grant-missing", r.where, err.Error(), "give the token what is named, or use another one")
	default:
		r.found.add("repository-unread", r.where, err.Error(), "try again when the forge answers")
	}
}

func describePermission(p forge.Permission) string {
	return map[forge.Permission]string{forge.PermissionNone: "do nothing", forge.PermissionRead: "read", forge.PermissionWrite: "write",
		forge.PermissionAdmin: "administer it"}[p]
}
