package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// stateBranch has the holds.
const stateBranch = "liftlock-state"

// checkGuards checks who may push to the branches that promotions and reverts come from, and to
// that of the holds. What somebody else pushes to the former is noticed and waits for a person;
// that nobody can is better. The latter's files are believed.
func (k *repositoryCheck) checkGuards(ctx context.Context, pipes []*pipeline.Pipeline) {
	sample := sampleUnit(pipes)
	if sample == "" {
		return
	}
	var open []string
	for _, g := range []struct{ pattern, branch string }{{"liftlock/**", "liftlock/" + sample}, {"liftlock-revert/**", "liftlock-revert/" + sample}, {stateBranch, stateBranch}} {
		where := fmt.Sprintf("branches %s in %s", g.pattern, k.config.Name)
		guard, err := k.forge.InspectGuard(ctx, k.repo, g.branch)
		switch {
		case err != nil:
			k.found.add("branches-unread", where, "who may push to them can't be read: "+err.Error(), "see yourself that only Liftlock's account may, or let it read the repository's rules")
			return // the others would say the same
		case guard.Excluded:
			k.found.add("branches-closed", where, "they are guarded, and Liftlock's account isn't let past: nothing can be pushed", "add Liftlock's account to those who may (on GitHub the ruleset's bypass list, always and not for pull requests only)")
		case !guard.Guarded:
			open = append(open, g.pattern)
		}
	}
	if len(open) > 0 {
		k.found.add("branches-open", "branches of "+k.config.Name, "whoever may write may make or move "+strings.Join(open, ", ")+": "+describeOpen(open), "let only Liftlock's account create and update them: on GitHub by a ruleset that restricts both (for liftlock/**/*, liftlock-revert/**/* and liftlock-state) with it on the bypass list, on GitLab and Gitea by protected branches (liftlock/*, liftlock-revert/*, on Gitea with /**, and liftlock-state)")
	}
}

// describeOpen says what comes of it that everybody may push to these.
func describeOpen(open []string) string {
	var effects []string
	if open[0] != stateBranch {
		effects = append(effects, "a promotion waits for a person then")
	}
	if slices.Contains(open, stateBranch) {
		effects = append(effects, "whoever pushes there sets and lifts holds")
	}
	return strings.Join(effects, ", and ")
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
