package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// addMissingSignatures says of an environment whether the forge merges nothing into its branch that
// isn't signed, where Liftlock's commits aren't. Rules that can't be read say nothing, and neither do
// those that the account may bypass.
func (ga *Gatherer) addMissingSignatures(ctx context.Context, ev *Evaluation, i int) error {
	env, r := &ev.envs[i], ev.Snapshot.Repo
	if r.Unsigned == "" || env.Tip == "" || env.Source() || ev.Pipeline.Spec.Mode == pipeline.ModeDryRun {
		return nil
	}
	known, err := ga.Rules.branchRules(ctx, r, env.Branch)
	if err != nil {
		return fmt.Errorf("read what the forge demands of merges into %s: %w", env.Branch, err)
	}
	if known.Rules == nil {
		return nil
	}
	k := slices.IndexFunc(known.Rules.Sets, func(s forge.RuleSet) bool { return s.Signatures && !s.Bypassed && !s.MaybeBypassed })
	if k < 0 {
		return nil
	}
	why := fmt.Sprintf("the forge merges only signed commits into %s (%s), and %s", env.Branch, known.Rules.Sets[k].Name, r.Unsigned)
	for _, c := range ev.Components {
		c.Facts.Envs[i].MissingSignatures = why
	}
	return nil
}
