package facts

import (
	"context"
	"fmt"
	"reflect"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// lastTargetsDepth bounds how far back targets are looked for that could still
// be resolved.
const lastTargetsDepth = 20

// lastGoodTargets finds the targets that are to stay in force for what can't be
// resolved at tip: those of the snapshot before or, after a start, of the newest
// commit at which the same could be. Empty: there are none that anybody knows of.
func (o *targetGatherer) lastGoodTargets(ctx context.Context, sur *inputCollector, p *pipeline.Pipeline, problems []appset.Problem, tip string, last *Snapshot) (*appset.TargetSet, error) {
	if last != nil {
		if before := last.Pipeline(p.Name()); before != nil && reflect.DeepEqual(before.Spec, p.Spec) {
			return before.TargetSet, nil
		}
	}
	log, err := sur.repo.Mirror.Log(ctx, git.LogQuery{From: tip, FirstParent: true, Limit: lastTargetsDepth})
	if err != nil {
		return nil, fmt.Errorf("look for the last good targets of %s: %w", p.Name(), err)
	}
	for _, c := range log {
		if c.SHA == tip {
			continue
		}
		then, err := o.resolveTargets(ctx, sur, p, c.SHA)
		if err != nil {
			return nil, err
		}
		if history.UnrelatedProblems(then.Problems, problems, p.File) {
			return then, nil
		}
	}
	return &appset.TargetSet{}, nil
}

// ProblemsOf are the problems that concern a component.
func (p *ResolvedPipeline) ProblemsOf(component string) []string {
	return p.componentProblems.For(component)
}
