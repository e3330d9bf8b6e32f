package branch

import (
	"context"

	"github.com/liftlock/liftlock/internal/git"
)

// ChangedPaths are the files that differ between two commits, within bounds; from is empty for nothing.
func ChangedPaths(ctx context.Context, m *git.Mirror, from, to string) ([]string, error) {
	list, err := m.BoundedChanges(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return pathsOf(list), nil
}

// pathsOf are the paths of changes, in their order.
func pathsOf(changes []git.FileChange) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Path
	}
	return out
}

// MaxBroughtCommits bounds the commits of a head that was brought up to date again and again.
const MaxBroughtCommits = 100
