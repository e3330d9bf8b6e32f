package facts

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// inspectMerges says why a head that merges its branch with the environment's isn't ours brought up
// to date, whatever it differs in from its base. It is "" when it is, or is no merge. A merge can
// be made of anything. It may have a commit of the environment's branch that is newer than its
// base, which it undoes without showing it there. Or, where the forge rebases, it may have commits
// that land without the merge's own changes.
func inspectMerges(ctx context.Context, ev *Evaluation, env *promotion.Env, base, head string) (why string, err error) {
	m := ev.Snapshot.Repo.Mirror
	if landed, err := m.IsAncestor(ctx, head, env.Tip); err != nil || landed {
		return "", err // the forge is about to say that it is merged
	}
	brought, err := m.Log(ctx, git.LogQuery{From: head, Until: base, Limit: branch.MaxBroughtCommits + 1})
	if err != nil || len(brought) == 1 {
		return "", err
	}
	if len(brought) > branch.MaxBroughtCommits {
		return fmt.Sprintf("its head %s is more than %d commits on top of %s", wording.Short(head), branch.MaxBroughtCommits, env.Branch), nil
	}
	for i := range brought {
		c := &brought[i]
		switch landed, err := m.IsAncestor(ctx, c.SHA, env.Tip); {
		case err != nil:
			return "", err
		case landed:
			return fmt.Sprintf("its head %s is based on %s, and takes back %s, which is on %s since", wording.Short(head),
				wording.Short(base), wording.Short(c.SHA), env.Branch), nil
		case len(c.Parents) != 1 || ev.Pipeline.Spec.Merge.Method != pipeline.MethodRebase:
			continue
		}
		same, err := changesTheSame(ctx, m, c.Parents[0], c.SHA, base, head)
		if err != nil {
			return "", err
		}
		if !same {
			return fmt.Sprintf("its commit %s, which lands by itself where the forge rebases, changes something else than its head %s",
				wording.Short(c.SHA), wording.Short(head)), nil
		}
	}
	return "", nil
}

// changesTheSame says that two pairs of commits differ in the same.
func changesTheSame(ctx context.Context, m *git.Mirror, a, b, c, d string) (bool, error) {
	one, err := m.PatchID(ctx, a, b)
	if err != nil {
		return false, err
	}
	other, err := m.PatchID(ctx, c, d)
	return one == other, err
}
