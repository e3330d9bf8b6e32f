package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server/config"
)

// checkAccount looks for signs that a person works with Liftlock's account too. Their actions are
// Liftlock's own then, and are neither commands nor approvals nor vetoes. No forge says whether a
// token is a person's or a machine user's, so what counts are pull requests that Liftlock would not
// open.
func (r *repositoryCheck) checkAccount(ctx context.Context) {
	me, err := r.forge.Me(ctx)
	if err != nil || me.Bot {
		return // which the credentials' check says, or nobody works as
	}
	pulls, err := r.readRecentPulls(ctx)
	if err != nil {
		r.found.add("account-unread", r.where, "whether a person works with Liftlock's account can't be seen, as its pull requests can't "+
			"be read: "+err.Error(), "try again when the forge answers")
		return
	}
	for i := range pulls {
		p := &pulls[i]
		if _, ours := promotion.ParseBranch(p.Branch); strings.EqualFold(p.Author, me.Login) && (!ours || p.Fork) {
			r.found.add("account-personal", r.where, fmt.Sprintf("%s was opened by %s, as whom Liftlock works, from a branch that isn't "+
				"Liftlock's: a person seems to work with this account, and what they comment, review, label or close there is taken for "+
				"Liftlock's own and not acted on", r.repo.Number(p.Number), me.Login), r.ownAccount())
			return
		}
	}
}

// ownAccount says what an account of Liftlock's own can be.
func (r *repositoryCheck) ownAccount() string {
	switch r.forgeOf.Type {
	case config.GitHub:
		return "have Liftlock work as a GitHub App, or with the token of an account that nobody else uses"
	case config.GitLab:
		return "give Liftlock an access token of the project or the group, or a service account's"
	}
	return "give Liftlock the token of an account that nobody else uses"
}

// readRecentPulls reads the pull requests of the last days, once.
func (r *repositoryCheck) readRecentPulls(ctx context.Context) ([]forge.PullRequest, error) {
	if !r.pullsRead {
		pulls, err := r.forge.PullRequests(ctx, r.repo, r.Now().Add(-recentDays*24*time.Hour))
		if err != nil {
			return nil, err
		}
		r.pulls, r.pullsRead = pulls, true
	}
	return r.pulls, nil
}
