package policies

import (
	"fmt"
	"regexp"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/liftlock/liftlock/internal/wording"
)

// These bound the work of matches(). CEL counts a pattern's length, whereas a{1000} is as good as a
// thousand characters. It compiles the pattern at each call, and checks the time between two steps
// of a comprehension only. So 155 bytes of expression took ten seconds and two gigabytes.
const (
	maxPatternLength = 2048    // in bytes
	maxPatternSize   = 2000    // in instructions, repeats written out
	maxPatternSteps  = 4 << 20 // a text's bytes times a pattern's instructions: some tens of milliseconds
)

// boundPatterns has no call of matches() take longer than that, and none begin once an evaluation's time is over.
func boundPatterns() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, is := i.(interpreter.InterpretableCall)
		if !is || call.Function() != overloads.Matches || len(call.Args()) != 2 {
			return i, nil
		}
		return boundedMatch{call}, nil
	})
}

// boundedMatch is a call of matches().
type boundedMatch struct{ interpreter.InterpretableCall }

// Exec evaluates the call as CEL does those of two arguments.
func (b boundedMatch) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	text := b.Args()[0].Exec(frame)
	if types.IsError(text) {
		return text
	}
	pattern := b.Args()[1].Exec(frame)
	if types.IsError(pattern) {
		return pattern
	}
	unknown, _ := types.MaybeMergeUnknowns(text, nil)
	if unknown, _ = types.MaybeMergeUnknowns(pattern, unknown); unknown != nil {
		return unknown
	}
	t, isText := text.(types.String)
	p, isPattern := pattern.(types.String)
	if !isText || !isPattern {
		return types.NewErr("no such overload: %s", overloads.Matches)
	}
	if frame.CheckInterrupt() {
		return types.NewErr("it takes longer than %s", maxExpressionTime)
	}
	matched, err := matchBounded(string(t), string(p))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(matched)
}

// Eval implements interpreter.Interpretable.
func (b boundedMatch) Eval(vars interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(vars))
}

// matchBounded says whether a text has a match of a pattern.
func matchBounded(text, pattern string) (bool, error) {
	size, err := sizeOfPattern(pattern)
	if err != nil {
		return false, err
	}
	if len(text)*size > maxPatternSteps {
		return false, fmt.Errorf("the pattern %.40q is too large for a text of %d bytes", pattern, len(text))
	}
	return regexp.MatchString(pattern, text)
}

// sizeOfPattern is about how many instructions a pattern compiles to; an error where that is too many.
func sizeOfPattern(pattern string) (int, error) {
	if len(pattern) > maxPatternLength {
		return 0, fmt.Errorf("a pattern is longer than %d bytes", maxPatternLength)
	}
	size, err := wording.PatternSize(pattern)
	if err != nil {
		return 0, err
	}
	if size > maxPatternSize {
		return 0, fmt.Errorf("the pattern %.40q is too large; repeat less", pattern)
	}
	return size, nil
}

// checkPatterns says which pattern that an expression spells out is too large.
func checkPatterns(checked *cel.Ast) error {
	var first error
	celast.PreOrderVisit(checked.NativeRep().Expr(), celast.NewExprVisitor(func(x celast.Expr) {
		if first != nil || x.Kind() != celast.CallKind || x.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := x.AsCall().Args()
		if len(args) == 0 || args[len(args)-1].Kind() != celast.LiteralKind {
			return
		}
		if pattern, is := args[len(args)-1].AsLiteral().(types.String); is {
			_, first = sizeOfPattern(string(pattern))
		}
	}))
	return first
}
