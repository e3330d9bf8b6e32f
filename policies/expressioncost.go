package policies

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// These are the most that an expression goes through, for the estimate of its cost.
// maxExpressionCost stops an expression with more than that at the evaluation.
var (
	// estimatedEntries are a list's, by how many lists are gone through one within another:
	// an estimate multiplies them, and nobody has a thousand of each.
	estimatedEntries = [maxExpressionNesting + 1]uint64{200, 200, 40, 12}
	estimatedText    = uint64(128)
	// estimatedMessage is a commit's message, which is longer than names are.
	estimatedMessage = uint64(4096)
)

// expressionSizes says how large what an expression knows may be.
type expressionSizes struct{ entries uint64 }

// EstimateSize is the most that a value is taken to have.
func (e expressionSizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	size := checker.SizeEstimate{Max: e.entries}
	switch node.Type().Kind() {
	case types.StringKind, types.BytesKind:
		size.Max = estimatedText
		if path := node.Path(); len(path) > 0 && path[len(path)-1] == "message" {
			size.Max = estimatedMessage
		}
	}
	return &size
}

// EstimateCallCost leaves what calls cost to CEL.
func (expressionSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// checkCost says that an expression may cost more than an evaluation may.
func checkCost(env *cel.Env, checked *cel.Ast) error {
	nesting := countNesting(checked)
	sizes := expressionSizes{entries: estimatedEntries[min(nesting, maxExpressionNesting)]}
	cost, err := env.EstimateCost(checked, sizes)
	if err != nil {
		return fmt.Errorf("can't be estimated: %w", err)
	}
	if cost.Max > maxExpressionCost {
		return fmt.Errorf("costs too much: up to %d where its lists have %d entries and its texts %d characters, and an evaluation stops "+
			"at %d; go through fewer lists within one another, or match shorter patterns",
			cost.Max, sizes.entries, estimatedText, maxExpressionCost)
	}
	return nil
}

// countNesting counts how many lists are gone through one within another at the most.
func countNesting(checked *cel.Ast) int {
	deepest := 0
	for _, x := range celast.MatchDescendants(celast.NavigateAST(checked.NativeRep()), celast.KindMatcher(celast.ComprehensionKind)) {
		depth := 1
		for below := x; ; {
			above, ok := below.Parent()
			if !ok {
				break
			}
			// The expression that gives the list is evaluated once.
			if above.Kind() == celast.ComprehensionKind && above.AsComprehension().IterRange().ID() != below.ID() {
				depth++
			}
			below = above
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

// expressionNames are what expressions know.
var expressionNames = []string{"pipeline", "environment", "component", "release", "upstream", "pull", "targets", "diff", "now"}

// Warnings are what is worth a second look in a valid gate's settings: it means something,
// and most likely not what was meant. None for a gate that isn't valid.
func (g *Gate) Warnings() []Problem {
	if g.Expression == nil || g.Validate() != nil {
		return nil
	}
	r, is := g.Expression.findConstant()
	switch {
	case !is:
		return nil
	case r.Outcome == Pass:
		return []Problem{{Path: string(g.Name()), Message: "is true whatever is promoted, so this gate keeps nothing from merging"}}
	}
	return []Problem{{Path: string(g.Name()), Message: fmt.Sprintf("gives %s whatever is promoted, so nothing ever merges", r.Outcome)}}
}

// findConstant is what the expression answers whatever is true; false where that hangs on
// something, or on nothing that can be evaluated.
func (e *Expression) findConstant() (Result, bool) {
	c, err := e.compile()
	if err != nil {
		return Result{}, false
	}
	patterns := make([]*cel.AttributePatternType, len(expressionNames))
	for i, name := range expressionNames {
		patterns[i] = cel.AttributePattern(name)
	}
	nothing, err := cel.PartialVars(map[string]any{}, patterns...)
	if err != nil {
		return Result{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxExpressionTime)
	defer cancel()
	out, _, err := c.program.ContextEval(ctx, nothing)
	if err != nil || types.IsUnknown(out) {
		return Result{}, false
	}
	r := Result{Gate: e.kindName(), Outcome: Wait}
	r.setAnswer(out)
	return r, true
}
