package branch

import (
	"context"
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// WhoMoved says how a release came to an environment whose folder begins with the commit that
// brought it. A release in a folder that has just begun counts as there since before the pipeline.
// But where the commit moved the folder from another place, the environment's record tells. Another
// release that came with the move is its author's. The same one keeps its origin, only that no
// promotion of it can be reverted any more.
func (g *GitGatherer) WhoMoved(ctx context.Context, c *ComponentBasis, env *promotion.Env, m OriginMemo) (string, error) {
	commit, now := m.Origin.Commit, env.Release.Value.ID
	isSelf := func(a promotion.Arrival) bool { return a.Commit == commit.SHA && a.Release == now }
	if i := slices.IndexFunc(env.History, isSelf); i >= 0 {
		return env.History[i].By, nil // as it was found when it was first seen
	}
	if len(env.History) == 0 || len(commit.Parents) == 0 {
		return promotion.ByBaseline, nil
	}
	before := &env.History[0]
	if before.Release != now && !haveSameFields(c.Contents[before.Release], c.Contents[now]) {
		return promotion.ByBaseline, nil // what is carried has changed
	}
	changed, err := c.Snapshot.Repo.Mirror.Changed(ctx, commit.Parents[0], commit.SHA)
	if err != nil || !movesFile(changed, m.scope) {
		return promotion.ByBaseline, err
	}
	switch {
	case before.Release != now:
		return promotion.ByPerson, nil
	case before.By == promotion.ByPromotion:
		return promotion.ByHand, nil
	}
	return before.By, nil
}

// haveSameFields says that two releases are values of the same fields.
func haveSameFields(a, b fieldedit.Release) bool {
	return slices.EqualFunc(a.Fields, b.Fields, func(x, y fieldedit.Field) bool { return x.Key() == y.Key() })
}

// movesFile says that a file that may have an environment's carried fields took the place of one of
// the same name in another folder.
func movesFile(changed []git.FileChange, scope fieldedit.Scope) bool {
	return slices.ContainsFunc(changed, func(c git.FileChange) bool {
		return scope.Covers(c.Path) && slices.ContainsFunc(changed, func(old git.FileChange) bool {
			return old.Path != c.Path && old.Status == 'D' && path.Base(old.Path) == path.Base(c.Path)
		})
	})
}
