package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
)

// stateBranch has the holds.
const stateBranch = "liftlock-state"

// checkGuards checks who may push to the branches that promotions and reverts come from, and to
// that of the holds. Others' pushes to the former are noticed and wait for a person; that nobody
// else can push is better. The latter's files are believed.
func (r *repositoryCheck) checkGuards(ctx context.Context, pipes []*pipeline.Pipeline) {
	sample := sampleUnit(pipes)
	if sample == "" {
		return
	}
	var open []string
	patterns := branchPatterns(r.forgeOf.Type)
	for i, branch := range []string{"liftlock/" + sample, "liftlock-revert/" + sample, stateBranch} {
		where := fmt.Sprintf("branches %s in %s", patterns[i], r.config.Name)
		guard, err := r.forge.InspectGuard(ctx, r.repo, branch)
		switch {
		case err != nil:
			r.found.add("branches-unread", where, "who may push to them can't be read: "+err.Error(),
				"see yourself that only Liftlock's account may, or let it read the repository's rules")
			return // the others would say the same
		case guard.Excluded:
			r.found.add("branches-closed", where, "they are guarded, and Liftlock's account isn't let past: nothing can be pushed",
				"add Liftlock's account to those who may (on GitHub the ruleset's bypass list, always and not for pull requests only)")
		case !guard.Guarded:
			open = append(open, patterns[i])
		}
	}
	if len(open) > 0 {
		r.found.add("branches-open", "branches of "+r.config.Name, "whoever may write may make or move "+strings.Join(open, ", ")+": "+
			describeOpen(open), "let only Liftlock's account create and update them: "+guardCure(r.forgeOf.Type))
	}
}

// branchPatterns are those of Liftlock's branches as a forge takes them in its rules: promotions',
// reverts' and that of the holds. On GitHub a star stays within one level unless it is **/, on
// GitLab it doesn't.
func branchPatterns(forgeType string) [3]string {
	below := map[string]string{config.GitLab: "/*", config.Gitea: "/**"}[forgeType]
	if below == "" {
		below = "/**/*"
	}
	return [3]string{"liftlock" + below, "liftlock-revert" + below, stateBranch}
}

// guardPatterns are the patterns in words.
func guardPatterns(forgeType string) string {
	p := branchPatterns(forgeType)
	return p[0] + ", " + p[1] + " and " + p[2]
}

// guardCure is how a forge is told that only one account may push there.
func guardCure(forgeType string) string {
	if forgeType == config.GitLab || forgeType == config.Gitea {
		return "protect the branches " + guardPatterns(forgeType) + ", with it alone allowed to push"
	}
	return "a ruleset for " + guardPatterns(forgeType) + " that restricts creations and updates, with it on the bypass list"
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
