package emulator

import (
	"slices"
	"strings"
)

// noticeRefs compares the repository's branches and tags with the last known ones and applies all
// consequences of a push. These are the event, new heads of pull requests, their closing and their
// merging. Callers hold refsMu and mu. Only here the forge learns of a moved reference, whoever
// moved it.
func (f *Forge) noticeRefs(r *repository, by *account) error {
	now, err := r.git.listRefs()
	if err != nil {
		return err
	}
	before := r.refs
	r.refs = now
	for _, name := range changedRefs(before, now) {
		r.pushed = f.now()
		f.recordActivity(r, by, name, before[name], now[name])
		if err := f.emitPush(r, by, name, before[name], now[name]); err != nil {
			return err
		}
		branch, ok := strings.CutPrefix(name, "refs/heads/")
		if !ok {
			continue
		}
		if err := f.followHead(r, by, branch, now[name]); err != nil {
			return err
		}
		if now[name] != "" && before[name] != "" {
			if err := f.followBase(r, by, branch, before[name], now[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func changedRefs(before, now map[string]string) []string {
	var names []string
	for name, id := range now {
		if before[name] != id {
			names = append(names, name)
		}
	}
	for name := range before {
		if now[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// followHead follows a pull request's branch. One that is gone, or has nothing
// left to merge, closes its pull request.
func (f *Forge) followHead(r *repository, by *account, branch, tip string) error {
	for _, p := range f.pullsFrom(r, branch) {
		if tip == "" {
			f.closePull(p, by)
			continue
		}
		before := p.head
		if err := f.setHead(p, tip); err != nil {
			return err
		}
		if f.face == GitLab {
			f.followPushedHead(p, by, before)
			continue
		}
		f.dequeue(p, by, "MANUAL") // a queue merges what joined it
		updated, err := f.isUpdate(p, before)
		if err != nil {
			return err
		}
		if p.repo.protections[p.base].DismissStale && !updated {
			for _, v := range p.reviews {
				if v.state == "APPROVED" {
					v.state = "DISMISSED"
					f.emitReview(p, by, v, "dismissed")
				}
			}
		}
		f.markUpdated(p)
		f.emitPull(p, by, "synchronize", map[string]any{"before": before, "after": tip})
		if len(p.commits) == 0 {
			f.closePull(p, by)
		}
	}
	return nil
}

// isUpdate says whether a pull request's new head only brings the one before up to date: it
// merges a commit of the base branch into it. That dismisses no approval.
func (f *Forge) isUpdate(p *pull, before string) (bool, error) {
	head, err := p.repo.git.readCommit(p.head)
	if err != nil || len(head.Parents) != 2 || head.Parents[0] != before {
		return false, err
	}
	return p.repo.git.isAncestor(head.Parents[1], p.repo.branchHead(p.base))
}

// pullsFrom lists the open pull requests whose head is the branch, by number.
func (f *Forge) pullsFrom(r *repository, branch string) []*pull {
	var found []*pull
	for _, in := range []*repository{r, r.parent} {
		if in == nil {
			continue
		}
		for _, p := range in.pulls {
			if p.open && p.headRepo == r && p.branch == branch {
				found = append(found, p)
			}
		}
	}
	slices.SortFunc(found, func(a, b *pull) int { return a.number - b.number })
	return found
}

// followBase finds the pull requests that somebody merged by pushing: their head
// has become reachable from the base branch.
func (f *Forge) followBase(r *repository, by *account, branch, before, tip string) error {
	var open []*pull
	for _, n := range sortedKeys(r.pulls) {
		if p := r.pulls[n]; p.open && p.base == branch {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return nil
	}
	reachable, err := r.git.listMergedRefs(r.pullRefs, tip)
	if err != nil {
		return err
	}
	for _, p := range open {
		if !reachable[p.headRef()] {
			continue
		}
		landed, err := r.git.findLandedCommit(p.head, before, tip)
		if err != nil {
			return err
		}
		f.markMerged(p, by, landed)
	}
	return nil
}

func (f *Forge) markMerged(p *pull, by *account, commit string) {
	p.open, p.merged, p.mergedBy, p.mergeSHA = false, true, by, commit
	p.mergedAt = f.now()
	p.closed, p.gitlab.autoMerge = p.mergedAt, nil
	p.repo.queue = slices.DeleteFunc(p.repo.queue, func(e *queueEntry) bool { return e.pull == p })
	if o := p.findCar(); o != nil && o.active() && o.status != "merging" { // it went past its train
		o.status, o.updated, o.mergedAt = "skip_merged", p.mergedAt, p.mergedAt
	}
	f.markUpdated(p)
	f.emitPull(p, by, "closed", nil)
}

// findLandedCommit finds the commit of a branch's own line, between before and tip, with
// which head came in.
func (b *bareRepo) findLandedCommit(head, before, tip string) (string, error) {
	out, err := b.runGit("rev-list", "--reverse", "--first-parent", "--end-of-options", tip, "^"+before)
	if err != nil {
		return "", err
	}
	for _, sha := range strings.Fields(out) {
		in, err := b.isAncestor(head, sha)
		if err != nil {
			return "", err
		}
		if in {
			return sha, nil
		}
	}
	return tip, nil
}
