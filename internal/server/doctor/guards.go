package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// checkGuards checks who may push to the branches that promotions and reverts come from. What
// somebody else pushes there is noticed and waits for a person; that nobody can is better.
func (k *repositoryCheck) checkGuards(ctx context.Context, pipes []*pipeline.Pipeline) {
	sample := sampleUnit(pipes)
	if sample == "" {
		return
	}
	var open []string
	for _, prefix := range []string{"liftlock/", "liftlock-revert/"} {
		where := fmt.Sprintf("branches %s** in %s", prefix, k.config.Name)
		guard, err := k.forge.InspectGuard(ctx, k.repo, prefix+sample)
		switch {
		case err != nil:
			k.found.add("branches-unread", where, "who may push to them can't be read: "+err.Error(), "see yourself that only Liftlock's account may, or let it read the repository's rules")
			return // the other would say the same
		case guard.Excluded:
			k.found.add("branches-closed", where, "they are guarded, and Liftlock's account isn't let past: no branch can be pushed", "add Liftlock's account to those who may (on GitHub the ruleset's bypass list)")
		case !guard.Guarded:
			open = append(open, prefix+"**")
		}
	}
	if len(open) > 0 {
		k.found.add("branches-open", "branches of "+k.config.Name, "whoever may write may push to "+strings.Join(open, " and ")+": a promotion waits for a person then", "let only Liftlock's account create and update them: on GitHub by a ruleset (for liftlock/**/* and liftlock-revert/**/*) with it on the bypass list, on GitLab and Gitea by protected branches (liftlock/*, on Gitea liftlock/**)")
	}
}

// sampleUnit is what follows the prefix in the name of a branch of the first pipeline that acts;
// empty: none does.
func sampleUnit(pipes []*pipeline.Pipeline) string {
	for _, p := range pipes {
		for i := range p.Spec.Environments {
			if e := &p.Spec.Environments[i]; !e.IsSource() && p.Spec.Mode != pipeline.ModeDryRun {
				return p.Name() + "/" + e.Name + "/component"
			}
		}
	}
	return ""
}
