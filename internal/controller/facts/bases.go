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
		changed, err := changedSince(ctx, s.Repo.Mirror, from, head.Commit)
		if err != nil {
			known = nil // the commit before may be gone
		}
		if out.of[head.Branch], err = history.ReadBases(ctx, s.Repo.Mirror.Tree(head.Commit), folders, known, changed); err != nil {
			return out, err
		}
	}
	return out, nil
}

// changedSince lists the files that differ between two commits; none without a first one.
func changedSince(ctx context.Context, m *git.Mirror, from, to string) ([]string, error) {
	if from == "" || from == to {
		return nil, nil
	}
	changes, err := m.Changed(ctx, from, to)
	if err != nil {
		return nil, err
	}
	files := make([]string, len(changes))
	for i, c := range changes {
		files[i] = c.Path
	}
	return files, nil
}
