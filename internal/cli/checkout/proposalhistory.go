package checkout

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/git"
)

// maxHistory bounds the commits that are read.
const maxHistory = 300

// findBranches finds out whether each environment's targets follow a branch of their own.
func (d *deployed) findBranches(ctx context.Context, managed *appset.TargetSet) error {
	heads, err := d.repository.git.Branches(ctx)
	if err != nil {
		return err
	}
	branches, distinct := map[string]string{}, map[string]bool{}
	for _, t := range managed.Targets {
		for _, s := range t.Sources {
			if !t.Managed() || !s.Here {
				continue
			}
			branch := strings.TrimPrefix(s.TargetRevision, "refs/heads/")
			if branch == "" || branch == "HEAD" {
				branch = d.branch()
			}
			if old, ok := branches[t.Environment]; heads[branch] == "" || ok && old != branch {
				return nil // not a branch for each
			}
			branches[t.Environment] = branch
		}
	}
	for _, b := range branches {
		distinct[b] = true
	}
	if len(distinct) == len(branches) && len(branches) == len(d.proposal.Assignment.Environments) {
		d.proposal.Branches = branches
	}
	return nil
}

// readHistory gives the inference its trees: the working tree for the tracked branch, the
// heads of the others, and what the commits on them changed.
func (d *deployed) readHistory(ctx context.Context, s *propose.Source) error {
	heads, err := d.repository.git.Branches(ctx)
	if err != nil {
		return err
	}
	s.Tree = func(branch string) fs.FS {
		if branch == "" || heads[branch] == "" {
			return d.tree.FS
		}
		return d.repository.git.Tree(heads[branch])
	}
	branches := []string{""}
	if len(d.proposal.Branches) > 0 {
		branches = slices.Sorted(maps.Values(d.proposal.Branches))
	}
	key := strings.Join(branches, " ")
	if d.histories == nil {
		d.histories = map[string][]propose.Moment{}
	}
	if _, ok := d.histories[key]; !ok {
		if d.histories[key], err = d.readMoments(ctx, heads, branches); err != nil {
			return err
		}
	}
	s.History = d.histories[key]
	return nil
}

// readMoments is what the commits of some branches changed, oldest first.
func (d *deployed) readMoments(ctx context.Context, heads map[string]string, branches []string) ([]propose.Moment, error) {
	type dated struct {
		propose.Moment
		when time.Time
	}
	var all []dated
	for _, branch := range branches {
		from, err := d.repository.git.Resolve(ctx, cmp.Or(heads[branch], "HEAD"))
		if errors.Is(err, git.ErrUnknownCommit) {
			continue // nothing has been committed yet
		}
		if err != nil {
			return nil, err
		}
		log, err := d.repository.git.Log(ctx, git.LogQuery{From: from, FirstParent: true, Limit: maxHistory})
		if err != nil {
			return nil, err
		}
		log[len(log)-1].Parents = nil // what was there before came with it
		changed, err := d.repository.git.PathsChanged(ctx, log)
		if err != nil {
			return nil, err
		}
		for i := len(log) - 1; i >= 0; i-- {
			all = append(all, dated{propose.Moment{Branch: branch, Tree: d.repository.git.Tree(log[i].SHA), Changed: changed[i]},
				log[i].CommitTime})
		}
	}
	if len(branches) > 1 {
		slices.SortStableFunc(all, func(a, b dated) int { return a.when.Compare(b.when) })
	}
	var out []propose.Moment
	for _, m := range all {
		out = append(out, m.Moment)
	}
	return out, nil
}
