package policies

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/wording"
)

// Expression is a condition in CEL, the Common Expression Language. It gives true (pass)
// or false (wait), or a map of the outcome (pass, wait or fail) and the reason. It is
// checked for its types where the pipeline file is read; what goes wrong later waits.
type Expression string

// Bounds on an expression, on what it may cost, and on what it says.
const (
	maxExpressionLength = 2048
	maxExpressionDepth  = 50
	// maxExpressionNesting bounds macros within macros, whose cost multiplies.
	maxExpressionNesting = 3
	maxExpressionCost    = 100_000 // in CEL's own units; a call is about one
	maxExpressionTime    = 50 * time.Millisecond
	maxExpressionReason  = 400 // in characters
	// expressionInterval is how often an expression that depends on the time is asked.
	expressionInterval = time.Minute
	// interruptEvery is how many steps of a comprehension pass between two checks of the time. Each
	// step may take as long as a text of maxExpressionText, or a pattern, does.
	interruptEvery = 1
)

var _ evaluator = (*Expression)(nil)

func (*Expression) kindName() GateName { return GateExpression }

func (e *Expression) describe() string { return "an expression: " + string(*e) }

func (e *Expression) validate() []Problem {
	if _, err := e.compile(); err != nil {
		return []Problem{{Path: string(e.kindName()), Message: err.Error()}}
	}
	return nil
}

// compiledExpression can be evaluated.
type compiledExpression struct {
	program cel.Program
	moves   bool // what it says may change with nothing but the time
	vacuous bool // it looks at all images, and nowhere at whether there is one
}

// newExpressionEnv is what expressions know.
func newExpressionEnv() (*cel.Env, error) {
	list := func(name string) *cel.Type { return cel.ListType(cel.ObjectType("policies." + name)) }
	texts, err := boundedStrings()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[Release](), reflect.TypeFor[UpstreamEnvironment](),
			reflect.TypeFor[PullRequest](), reflect.TypeFor[Target](), reflect.TypeFor[Diff]()),
		texts,
		cel.HomogeneousAggregateLiterals(),
		cel.ParserExpressionSizeLimit(maxExpressionLength),
		cel.ParserRecursionLimit(maxExpressionDepth),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(maxExpressionNesting)),
		cel.Variable("pipeline", cel.StringType),
		cel.Variable("environment", cel.StringType),
		cel.Variable("component", cel.StringType),
		cel.Variable("release", cel.ObjectType("policies.Release")),
		cel.Variable("upstream", list("UpstreamEnvironment")),
		cel.Variable("pull", cel.ObjectType("policies.PullRequest")),
		cel.Variable("targets", list("Target")),
		cel.Variable("diff", cel.ObjectType("policies.Diff")),
		cel.Variable("now", cel.TimestampType),
	)
}

// maxCompiledExpressions bounds how many compiled expressions are remembered.
const maxCompiledExpressions = 200

var (
	expressionEnv = sync.OnceValues(newExpressionEnv)
	// compiledExpressions are what expressions compile to, by their text: that takes a
	// thousand times as long as an evaluation, and every look evaluates.
	compiledExpressions = cache.New(nil, cache.Options[Expression, *compiledExpression]{Name: "expressions",
		Entries: maxCompiledExpressions})
)

// compile gives what the expression compiles to. Its error says what is wrong with it.
func (e *Expression) compile() (*compiledExpression, error) {
	return compiledExpressions.GetOrLoad(*e, e.compileAnew)
}

func (e *Expression) compileAnew() (*compiledExpression, error) {
	switch {
	case strings.TrimSpace(string(*e)) == "":
		return nil, errors.New("is empty; write a condition, like size(release.images) > 0")
	case len(*e) > maxExpressionLength:
		return nil, fmt.Errorf("is longer than %d bytes", maxExpressionLength)
	}
	env, err := expressionEnv()
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	checked, issues := env.Compile(string(*e))
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("can't be compiled: line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1,
			wording.ClipLine(first.Message, maxExpressionReason))
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.MapType(cel.StringType, cel.StringType)) {
		return nil, fmt.Errorf(`must give true or false, or {"outcome": …, "reason": …}; it gives %s`,
			wording.ClipLine(out.String(), maxExpressionReason))
	}
	if err := checkPatterns(checked); err != nil {
		return nil, fmt.Errorf("can't be compiled: %s", wording.ClipLine(err.Error(), maxExpressionReason))
	}
	program, err := env.Program(checked, cel.CostLimit(maxExpressionCost), cel.InterruptCheckFrequency(interruptEvery),
		cel.EvalOptions(cel.OptPartialEval), boundPatterns())
	if err != nil {
		return nil, fmt.Errorf("can't be compiled: %s", wording.ClipLine(err.Error(), maxExpressionReason))
	}
	c := &compiledExpression{program: program}
	images, ranges := 0, 0
	celast.PreOrderVisit(checked.NativeRep().Expr(), celast.NewExprVisitor(func(x celast.Expr) {
		switch {
		case x.AsIdent() == "now", x.AsSelect().FieldName() == "healthyFor": // of anything else both are empty
			c.moves = true
		case isReleaseImages(x):
			images++
		case x.Kind() == celast.ComprehensionKind && isReleaseImages(x.AsComprehension().IterRange()):
			ranges++
		}
	}))
	c.vacuous = ranges > 0 && ranges == images
	return c, checkCost(env, checked)
}

// isReleaseImages says that a part of an expression is release.images: nothing else has a field
// of that name, and of what is no field it is empty.
func isReleaseImages(x celast.Expr) bool { return x.AsSelect().FieldName() == "images" }

func (e *Expression) evaluate(f Facts) Result {
	r := Result{Gate: e.kindName(), Outcome: Wait}
	p := f.Promotion
	switch {
	case f.Now.IsZero():
		r.Reason = "what time it is isn't known"
		return r
	case p == nil:
		r.Reason = "what is promoted isn't known"
		return r
	case p.Release == nil:
		r.Reason = "what is promoted can't be read: " + p.ReleaseErr
		return r
	}
	c, err := e.compile()
	if err != nil {
		r.Reason = "the expression " + err.Error()
		return r
	}
	if c.moves {
		r.Next = f.Now.Add(expressionInterval)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxExpressionTime)
	defer cancel()
	vars, unknown, err := newExpressionVariables(&f)
	if err != nil {
		r.Reason = "the expression can't be evaluated: " + err.Error()
		return r
	}
	out, _, err := c.program.ContextEval(ctx, vars)
	if err == nil && types.IsUnknown(out) {
		r.Reason = "the expression can't be evaluated: " + explainUnknown(string(*e), unknown)
		return r
	}
	if err != nil {
		r.Reason = "the expression can't be evaluated: " + wording.ClipLine(err.Error(), maxExpressionReason)
		if ctx.Err() != nil {
			r.Next = f.Now.Add(expressionInterval) // the machine was busy
		}
		return r
	}
	r.setAnswer(out)
	if r.Outcome == Pass && c.vacuous && len(p.Release.Images) == 0 {
		r.Outcome, r.Reason = Wait, "no image in this release, so the expression would be true of nothing; where that is meant, say so "+
			"with size(release.images) == 0"
	}
	return r
}

// setAnswer takes what an expression gives for the answer.
func (r *Result) setAnswer(out ref.Val) {
	if passed, is := out.Value().(bool); is {
		r.Reason = "the expression is false"
		if passed {
			r.Outcome, r.Reason = Pass, "the expression is true"
		}
	} else if said, err := out.ConvertToNative(reflect.TypeFor[map[string]string]()); err != nil {
		r.Reason = "the expression can't be evaluated: it gives neither true nor false nor an outcome"
	} else {
		r.setOutcome(said.(map[string]string))
	}
}

// setOutcome takes an expression's map for the answer.
func (r *Result) setOutcome(said map[string]string) {
	reason := wording.ClipLine(said["reason"], maxExpressionReason)
	switch o := Outcome(said["outcome"]); o {
	case Pass, Wait, Fail:
		if reason == "" {
			reason = "the expression says " + string(o)
		}
		r.Outcome, r.Reason = o, reason
	default:
		r.Reason = fmt.Sprintf("the expression gives the outcome %q; it must be pass, wait or fail",
			wording.ClipLine(said["outcome"], maxExpressionReason))
	}
}
