package policies

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// maxExpressionText is the longest text that a function of an expression makes, in bytes. CEL
// counts the cost of a call when it is over, and takes one that makes a text for one unit. A few
// replaces in a row, each of which makes the text ten times as long, would take all memory within 2
// KiB of expression and a cost of ten.
const maxExpressionText = 64 << 10

// textSizes says, by the functions of the strings extension whose text may be longer than what
// they are given, how long it gets at the most.
var textSizes = map[string]func(args []ref.Val) int{
	"replace":       sizeOfReplaced,
	"join":          sizeOfJoined,
	"format":        func(args []ref.Val) int { return addSizes(args[0], args[1]) },
	"strings.quote": func(args []ref.Val) int { return 2 + 4*addSizes(args[0]) },
}

// boundedStrings are the functions of the strings extension, of which none makes a text that
// is longer than maxExpressionText.
func boundedStrings() (cel.EnvOption, error) {
	library := ext.Strings(ext.StringsVersion(2))
	env, err := cel.NewCustomEnv(library)
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{library}
	for name, size := range textSizes {
		f := env.Functions()[name]
		if f == nil {
			return nil, fmt.Errorf("the strings extension has no %s", name)
		}
		calls, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			for _, o := range f.OverloadDecls() {
				if o.ID() == call.Operator {
					options = append(options, cel.Function(name, boundOverload(name, o, call, size)))
				}
			}
		}
	}
	return func(e *cel.Env) (*cel.Env, error) {
		for _, option := range options {
			if e, err = option(e); err != nil {
				return nil, err
			}
		}
		return e, nil
	}, nil
}

// boundOverload declares a function anew that refuses to make too long a text.
func boundOverload(name string, o *decls.OverloadDecl, call *functions.Overload, size func([]ref.Val) int) cel.FunctionOpt {
	refuse := func(args ...ref.Val) ref.Val {
		if size(args) > maxExpressionText {
			return types.NewErr("%s makes a text of more than %d bytes", name, maxExpressionText)
		}
		return nil
	}
	var binding cel.OverloadOpt
	switch { // it has one of the three forms
	case call.Unary != nil:
		binding = cel.UnaryBinding(func(a ref.Val) ref.Val {
			if refused := refuse(a); refused != nil {
				return refused
			}
			return call.Unary(a)
		})
	case call.Binary != nil:
		binding = cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			if refused := refuse(a, b); refused != nil {
				return refused
			}
			return call.Binary(a, b)
		})
	default:
		binding = cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			if refused := refuse(args...); refused != nil {
				return refused
			}
			return call.Function(args...)
		})
	}
	declare := cel.Overload
	if o.IsMemberFunction() {
		declare = cel.MemberOverload
	}
	return declare(o.ID(), o.ArgTypes(), o.ResultType(), binding)
}

// sizeOfReplaced is how long text.replace(old, new) gets, whatever its limit is.
func sizeOfReplaced(args []ref.Val) int {
	text, before, after := textOf(args[0]), textOf(args[1]), textOf(args[2])
	count := strings.Count(text, before)
	if before == "" {
		count = utf8.RuneCountInString(text) + 1
	}
	return max(len(text), len(text)+count*(len(after)-len(before)))
}

// sizeOfJoined is how long list.join(separator) gets.
func sizeOfJoined(args []ref.Val) int {
	total, separator := addSizes(args[0]), 0
	if len(args) > 1 {
		separator = len(textOf(args[1]))
	}
	if l, is := args[0].(traits.Lister); is {
		if n, is := l.Size().(types.Int); is {
			total += int(min(n, maxExpressionText+1)) * separator
		}
	}
	return total
}

func textOf(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// maxSizedDepth is how deep lists and maps are gone into to tell how long they are written.
const maxSizedDepth = 10

// addSizes is about how long values are when they are written, and no more than is needed to
// see that it is too much.
func addSizes(values ...ref.Val) int { return addSizesTo(0, maxSizedDepth, values) }

func addSizesTo(total, depth int, values []ref.Val) int {
	for _, v := range values {
		switch x := v.(type) {
		case types.String:
			total += len(x)
		case types.Bytes:
			total += 4 * len(x)
		case traits.Iterable: // a list or a map
			if depth == 0 {
				return maxExpressionText + 1
			}
			m, isMap := v.(traits.Mapper)
			for i := x.Iterator(); i.HasNext() == types.True && total <= maxExpressionText; {
				entry := i.Next()
				parts := []ref.Val{entry}
				if isMap {
					parts = append(parts, m.Get(entry))
				}
				total = addSizesTo(total+2*len(parts), depth-1, parts)
			}
		default:
			total += 32 // a number, a time
		}
		if total > maxExpressionText {
			return total
		}
	}
	return total
}
