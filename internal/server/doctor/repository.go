package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/forge"
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
	k := &repositoryCheck{doctor: d, forge: f, forgeOf: c, config: r, repo: forge.Repo{Owner: owner, Name: name}, where: "repository " + r.Name}
	if len(d.Config.Forges) > 1 {
		k.where += " on " + c.Name
	}
	if k.checkByAPI(ctx) {
		k.checkPipelines(ctx)
	}
	return k.found
}

// checkByAPI checks what needs no content of the repository; false: nothing else can be known.
func (k *repositoryCheck) checkByAPI(ctx context.Context) bool {
	ctx, cancel := k.limit(ctx)
	defer cancel()
	if !k.checkSettings(ctx) {
		return false
	}
	k.checkHooks(ctx)
	k.checkAccount(ctx)
	return true
}

// checkSettings checks the repository itself; false: nothing else can be known of it.
func (k *repositoryCheck) checkSettings(ctx context.Context) bool {
	s, err := k.forge.InspectRepository(ctx, k.repo)
	if err != nil {
		k.addUnread(err)
		return false
	}
	k.settings = s
	if !strings.EqualFold(s.Name, k.config.Name) && s.Name != "" {
		k.found.add("repository-renamed", k.where, "it is called "+s.Name+" now", "write that name in repositories: a former name leads to it only until somebody else uses it")
	}
	if s.Archived {
		k.found.add("repository-archived", k.where, "it is archived: nothing can be written", "unarchive it, or remove it from the server's file")
	}
	if s.NoPulls {
		k.found.add("pulls-off", k.where, "pull requests are switched off", "switch them on in its settings")
	}
	for _, m := range s.Missing {
		k.found.add("grant-missing", k.where, fmt.Sprintf("the App's installation lacks the permission %s: %s", m.Name, m.Without), "accept the App's permissions in the organisation's settings, under GitHub Apps")
	}
	switch {
	case s.Permission < forge.PermissionWrite:
		k.found.add("write-missing", k.where, "Liftlock's account may only read: no branch can be pushed and no promotion opened", "give the account the role that may write"+k.writeRole())
	case k.forgeOf.Type == config.Gitea && s.Permission < forge.PermissionAdmin:
		k.found.add("admin-missing", k.where, "Liftlock's account is no administrator: Gitea tells others nobody's permission, so that no command and no approval counts", "make the account an administrator of the repository")
	}
	k.checkBranch()
	k.found.addOK(0, CodeRepository, k.where, fmt.Sprintf("its branch is %s; the account may %s", k.config.Branch, describePermission(s.Permission)))
	return true
}

// checkBranch compares the branch that is tracked with the repository's own.
func (k *repositoryCheck) checkBranch() {
	switch of := k.settings.DefaultBranch; {
	case of == "":
		k.found.add("repository-empty", k.where, "it has no commit yet", "push the first one")
	case of != k.config.Branch:
		k.found.add("branch-other", k.where, fmt.Sprintf("the tracked branch is %s, and the repository's default branch %s", k.config.Branch, of), "if that isn't meant, correct repositories[].branch: people's pull requests go to the default branch")
	}
}

func (k *repositoryCheck) writeRole() string {
	switch k.forgeOf.Type {
	case config.GitLab:
		return " (Developer; Maintainer where the branch is protected)"
	case config.Gitea:
		return " (administrator: only those are told who may do what)"
	}
	return ""
}

// addUnread adds why the repository can't be read.
func (k *repositoryCheck) addUnread(err error) {
	var refusal *forge.Error
	switch {
	case errors.Is(err, forge.ErrNotInstalled) && errors.As(err, &refusal):
		k.found.add("app-unusable", k.where, refusal.Message, refusal.Hint)
	case errors.Is(err, forge.ErrNotFound):
		k.found.add("repository-missing", k.where, err.Error(), "correct repositories[].name, or give Liftlock's account access to it: what an account may not see looks as if it weren't there")
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUnauthorized):
		k.found.add("grant-missing", k.where, err.Error(), "give the token what is named, or use another one")
	default:
		k.found.add("repository-unread", k.where, err.Error(), "try again when the forge answers")
	}
}

func describePermission(p forge.Permission) string {
	return map[forge.Permission]string{forge.PermissionNone: "do nothing", forge.PermissionRead: "read", forge.PermissionWrite: "write", forge.PermissionAdmin: "administer it"}[p]
}
