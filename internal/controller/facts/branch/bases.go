package branch

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
)

// pipelineBases are what the kustomizations of a pipeline's targets build on, by branch.
type pipelineBases struct {
	Folders map[string][]string // from which targets are built
	commits map[string]string   // at which it was read
	Of      map[string]*history.Bases
}

// readBases reads what kustomizations build on at the snapshot's commits. The bases of the snapshot
// before are brought up to date by the changes since. Most commits change no kustomization, and the
// bases of one hardly ever change.
func readBases(ctx context.Context, s *Snapshot, at *ResolvedPipeline, last *Snapshot, sameTargets bool) (pipelineBases, error) {
	before := last.pipelineBefore(at.Name()).Bases
	out := pipelineBases{Folders: before.Folders, commits: map[string]string{}, Of: map[string]*history.Bases{}}
	if !sameTargets {
		out.Folders = history.BaseFolders(at.TargetSet, s.Repo.Branch)
	}
	for _, head := range s.BranchHeads() {
		folders := out.Folders[head.Branch]
		if head.Commit == "" || len(folders) == 0 {
			continue
		}
		known, from := before.Of[head.Branch], before.commits[head.Branch]
		out.commits[head.Branch] = head.Commit
		if sameTargets && known != nil && from == head.Commit {
			out.Of[head.Branch] = known
			continue
		}
		var changes []git.FileChange
		var err error
		if known != nil && from != head.Commit {
			if changes, err = s.Repo.Mirror.Changed(ctx, from, head.Commit); err != nil {
				known = nil // the commit before may be gone
			}
		}
		if out.Of[head.Branch], err = history.ReadBases(ctx, s.Repo.Mirror.Tree(head.Commit), folders, known,
			pathsOf(changes)); err != nil {
			return out, err
		}
	}
	return out, nil
}
