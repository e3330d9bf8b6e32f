package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
)

// pipelineBases are what the kustomizations of a pipeline's targets build on, by branch.
type pipelineBases struct {
	folders map[string][]string // from which targets are built
	commits map[string]string   // at which it was read
	of      map[string]*history.Bases
}

// readBases reads what kustomizations build on at the snapshot's commits. What the snapshot before read is brought up to
// date by what changed since: most commits change no kustomization, and what one builds on hardly ever.
func readBases(ctx context.Context, s *Snapshot, at *ResolvedPipeline, last *Snapshot, sameTargets bool) (pipelineBases, error) {
	before := last.pipelineBefore(at.Name()).bases
	out := pipelineBases{folders: before.folders, commits: map[string]string{}, of: map[string]*history.Bases{}}
	if !sameTargets {
		out.folders = history.BaseFolders(at.TargetSet, s.Repo.Branch)
	}
	for _, head := range s.BranchHeads() {
		folders := out.folders[head.Branch]
		if head.Commit == "" || len(folders) == 0 {
			continue
		}
		known, from := before.of[head.Branch], before.commits[head.Branch]
		out.commits[head.Branch] = head.Commit
		if sameTargets && known != nil && from == head.Commit {
			out.of[head.Branch] = known
			continue
		}
		var changes []git.FileChange
		var err error
		if known != nil && from != head.Commit {
			if changes, err = s.Repo.Mirror.Changed(ctx, from, head.Commit); err != nil {
				known = nil // the commit before may be gone
			}
		}
		if out.of[head.Branch], err = history.ReadBases(ctx, s.Repo.Mirror.Tree(head.Commit), folders, known,
			pathsOf(changes)); err != nil {
			return out, err
		}
	}
	return out, nil
}
