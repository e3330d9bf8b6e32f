package memoryforge

import (
	"cmp"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxDescription and maxStatuses (of a commit and context) are GitHub's limits.
	maxDescription = 140
	maxStatuses    = 1000
)

// status is the newest of a commit and context.
type status struct {
	info  forge.Status
	count int // how many there were
}

func (r *repository) findStatus(commit, context string) *status {
	i := slices.IndexFunc(r.statuses[commit], func(s *status) bool { return s.info.Context == context })
	if i < 0 {
		return nil
	}
	return r.statuses[commit][i]
}

func (c *call) addStatus(commit string, s forge.Status) error {
	if err := c.requireCommit(commit); err != nil {
		return err
	}
	if !slices.Contains([]forge.StatusState{forge.StatusPending, forge.StatusSuccess, forge.StatusFailure, forge.StatusError}, s.State) {
		return c.failure(forge.ErrInvalid, "Validation Failed: state is not included in the list")
	}
	if s.Context == "" {
		s.Context = "default"
	}
	s.Description, s.Creator = wording.ClipRunes(s.Description, maxDescription), c.by.user.Login
	made := &status{info: s, count: 1}
	if before := c.repo.findStatus(commit, s.Context); before != nil {
		made.count += before.count
	}
	if made.count > maxStatuses {
		return c.failure(forge.ErrInvalid, "Validation Failed: This SHA and context has reached the maximum number of statuses.")
	}
	others := slices.DeleteFunc(c.repo.statuses[commit], func(o *status) bool { return o.info.Context == s.Context })
	c.repo.statuses[commit] = slices.Insert(others, 0, made)
	c.repo.addCheck(commit, forge.CheckOfStatus(s.Context, s.Creator, string(s.State)))
	c.emitEvent(Event{Kind: StatusEvent, Action: string(s.State), Commit: commit, Branch: c.repo.findOnlyBranch(commit)}, c.by)
	return nil
}

// addCheck puts a check in the place of what the same account said by that name before.
func (r *repository) addCheck(commit string, added forge.Check) {
	same := func(o forge.Check) bool { return o.Name == added.Name && o.App == added.App }
	r.checks[commit] = append(slices.DeleteFunc(r.checks[commit], same), added)
	slices.SortFunc(r.checks[commit], func(a, b forge.Check) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App)) })
}

// findOnlyBranch is the branch whose tip the commit is, if there is one alone.
func (r *repository) findOnlyBranch(commit string) string {
	only := ""
	for branch, tip := range r.heads {
		if tip != commit {
			continue
		}
		if only != "" {
			return ""
		}
		only = branch
	}
	return only
}

func (c *call) requireCommit(commit string) error {
	has, err := c.repo.remote.Has(c.ctx, commit)
	if err != nil || !has { // also what is no commit's name
		return c.failure(forge.ErrNotFound, "No commit found for SHA: "+commit)
	}
	return nil
}
