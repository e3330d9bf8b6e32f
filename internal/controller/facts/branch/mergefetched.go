package branch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// MaxMergeTries is how often a run waits for a merge that the forge reports and
// Git doesn't show. After that the branch was rewritten since, or so it is taken.
const MaxMergeTries = 5

// mergeShownWithin is how long after a merge Git may not show it yet. One that is longer ago isn't waited
// for: a server that was just started would fail that often again for each branch that was rewritten once.
const mergeShownWithin = 10 * time.Minute

// mergeState is the newest merge of ours in an environment.
type mergeState struct {
	tries   int
	fetched bool // or no longer waited for
}

// EnsureMergeFetched makes sure that the newest merge of ours in an environment is in
// what is judged. A pull request's news may come before the branch's; judged on
// the branch as it was, what was just merged would be opened a second time. The
// error makes the run start again.
func (g *GitGatherer) EnsureMergeFetched(ctx context.Context, r *Repository, env *promotion.Env, newest *forge.PullRequest,
	at time.Time) error {
	if newest == nil {
		return nil
	}
	key := r.ID + "|" + env.Branch + "|" + newest.MergeCommit // Git's to say, whosever it is
	seen, _ := g.merges.Get(key)
	if seen.fetched {
		return nil
	}
	ok, err := r.Mirror.IsAncestor(ctx, newest.MergeCommit, env.Tip)
	if err != nil && !errors.Is(err, git.ErrUnknownCommit) {
		return err
	}
	if !ok {
		if _, err := r.Mirror.Fetch(ctx); err != nil {
			return err
		}
		head, _, err := r.Mirror.Head(ctx, env.Branch)
		if err != nil {
			return err
		}
		if head != env.Tip {
			return fmt.Errorf("%w: #%d was merged since %s was fetched", forge.ErrConflict, newest.Number, env.Branch)
		}
		seen.tries++
	}
	isLongAgo := !newest.MergedAt.IsZero() && at.Sub(newest.MergedAt) > mergeShownWithin
	seen.fetched = ok || isLongAgo || seen.tries >= MaxMergeTries
	g.merges.Put(key, seen)
	if !seen.fetched {
		return fmt.Errorf("%w: #%d was merged as %s, which is not on %s yet", forge.ErrRetryable, newest.Number,
			wording.Short(newest.MergeCommit), env.Branch)
	}
	return nil
}
