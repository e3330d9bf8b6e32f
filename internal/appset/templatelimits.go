package appset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxElements bounds a list or map that a template's function makes, and
	// the nodes of all that is in it.
	maxElements = 1 << 18
	// maxNesting bounds how deep lists and maps may be in each other: writing
	// them recurses, and a map may be put into itself.
	maxNesting = 100
	// maxRecursion bounds how deep templates may invoke each other. The
	// template package's own bound, 100,000, doesn't hold the stack in.
	maxRecursion = 1000
)

// templateLimits keeps Go templates within bounds. The template package has none, and can't be
// interrupted. A template can make a gigabyte of a few bytes before it writes the first, or go
// round a loop for days. Below the bounds a guarded template is as the controller's.
type templateLimits struct {
	ctx   context.Context  // template functions have no other way
	funcs template.FuncMap // what templates may call
	depth int              // of templates that invoke each other
	bound map[string]any   // functions in use
	// mutates says that a template was parsed that may write into its
	// parameters.
	mutates bool
}

// The functions that instrumented templates call. A template can't call them
// by itself: it is parsed without them.
const (
	tickName  = "liftlockTick"
	enterName = "liftlockEnter"
	leaveName = "liftlockLeave"
	writeName = "liftlockWrite"
)

// parseTemplate parses a template with the guard's functions. Every turn of its loops looks at the
// clock, and every template that is invoked counts its depth.
func (tl *templateLimits) parseTemplate(name, raw string, options ...string) (*template.Template, error) {
	trees, err := parse.Parse(name, raw, "", "", tl.funcs, unboundedFunctions)
	if err != nil {
		return nil, err
	}
	funcs := template.FuncMap{tickName: tl.checkTime, enterName: tl.enterTemplate, leaveName: tl.leaveTemplate, writeName: checkWritten}
	mutates := false
	for _, word := range identifierPattern.FindAllString(raw, -1) { // words of its text do no harm
		if tl.funcs[word] != nil {
			funcs[word] = tl.boundFunction(word)
			mutates = mutates || mutatingFunctions[word]
		}
	}
	tl.mutates = tl.mutates || mutates
	t := template.New(name).Funcs(funcs)
	invokes := len(trees) > 1 || strings.Contains(raw, "template")
	for name, tree := range trees {
		addTicks(tree.Root)
		if mutates {
			measureWritten(tree.Root)
		}
		if invokes {
			nodes := append([]parse.Node{callNode(enterName)}, tree.Root.Nodes...)
			tree.Root.Nodes = append(nodes, callNode(leaveName))
		}
		if _, err := t.AddParseTree(name, tree); err != nil {
			return nil, err
		}
	}
	return t.Option(options...), nil
}

// boundFunction is one that templates may call, within bounds.
func (tl *templateLimits) boundFunction(name string) any {
	if fn, made := tl.bound[name]; made {
		return fn
	}
	if tl.bound == nil {
		tl.bound = map[string]any{}
	}
	fn := tl.wrapFunction(tl.funcs[name], argumentChecks[name])
	tl.bound[name] = fn
	return fn
}

func (tl *templateLimits) checkTime() (string, error) { return "", tl.ctx.Err() }

func (tl *templateLimits) enterTemplate() (string, error) {
	if tl.depth++; tl.depth > maxRecursion {
		return "", fmt.Errorf("templates invoke each other more than %d deep", maxRecursion)
	}
	return "", tl.ctx.Err()
}

func (tl *templateLimits) leaveTemplate() string {
	tl.depth--
	return ""
}

// unboundedFunctions are the template package's own functions that need no bounds.
var unboundedFunctions = map[string]any{
	"and": true, "call": true, "eq": true, "ge": true, "gt": true, "index": true, "le": true, "len": true, "lt": true,
	"ne": true, "not": true, "or": true, "slice": true,
}

// mutatingFunctions are the functions that write into an argument.
var mutatingFunctions = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

// identifierPattern matches whatever may be a function's name.
var identifierPattern = regexp.MustCompile(`[A-Za-z_][0-9A-Za-z_]*`)

// addTicks puts a call into every loop.
func addTicks(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			addTicks(n.List)
			addTicks(n.ElseList)
		case *parse.WithNode:
			addTicks(n.List)
			addTicks(n.ElseList)
		case *parse.RangeNode:
			addTicks(n.List)
			addTicks(n.ElseList)
			n.List.Nodes = append([]parse.Node{callNode(tickName)}, n.List.Nodes...)
		}
	}
}

// measureWritten has everything that a template writes measured first. A function's result was
// within bounds when the function returned, but something may have been written into it since. A
// value that contains itself ends the process when it is printed.
func measureWritten(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, callNode(writeName).(*parse.ActionNode).Pipe.Cmds...)
			}
		case *parse.IfNode:
			measureWritten(n.List)
			measureWritten(n.ElseList)
		case *parse.WithNode:
			measureWritten(n.List)
			measureWritten(n.ElseList)
		case *parse.RangeNode:
			measureWritten(n.List)
			measureWritten(n.ElseList)
		}
	}
}

// checkWritten gives a value that may be written.
func checkWritten(value any) (any, error) {
	_, err := measureValue(reflect.ValueOf(value))
	return value, err
}

// checkParams refuses parameters that another template has written too much into, or themselves.
func (tl *templateLimits) checkParams(params map[string]any) error {
	if !tl.mutates {
		return nil
	}
	_, err := measureValue(reflect.ValueOf(params))
	return err
}

// checkArguments refuses what has grown since a function gave it, before another one walks it.
func (tl *templateLimits) checkArguments(args []reflect.Value) error {
	for i := 0; tl.mutates && i < len(args); i++ {
		if _, err := measureValue(args[i]); err != nil {
			return err
		}
	}
	return nil
}

// callNode is a node that calls a function that writes nothing.
func callNode(name string) parse.Node {
	trees, err := parse.Parse(name, "{{"+name+"}}", "", "", map[string]any{name: callNode})
	if err != nil {
		panic(err) // the text is ours
	}
	return trees[name].Root.Nodes[0]
}

// wrapFunction bounds a template function: it isn't called once time is up or when
// check refuses its arguments, and what it returns stays within bounds.
func (tl *templateLimits) wrapFunction(fn any, check func(args []reflect.Value) error) any {
	v := reflect.ValueOf(fn)
	t := v.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	failure := reflect.TypeFor[error]()
	call := v.Call
	if t.IsVariadic() {
		call = v.CallSlice
	}
	refuse := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	wrapped := reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{t.Out(0), failure}, t.IsVariadic()),
		func(args []reflect.Value) []reflect.Value {
			err := cmp.Or(tl.ctx.Err(), tl.checkArguments(args))
			if err == nil && check != nil {
				err = check(args)
			}
			if err != nil {
				return refuse(err)
			}
			out := call(args)
			if _, err = measureValue(out[0]); err != nil {
				return refuse(err)
			}
			if len(out) == 1 {
				out = append(out, reflect.Zero(failure))
			}
			return out
		})
	return wrapped.Interface()
}

var (
	errTooMuch = fmt.Errorf("that would be more than %d bytes", maxRendered)
	errTooMany = fmt.Errorf("that would be more than %d elements", maxElements)
	errTooSlow = fmt.Errorf("that would be more than %d comparisons", maxElementComparisons)
	errRegex   = errors.New("that regular expression is too large for what it is matched with")
	errTooDeep = fmt.Errorf("that would be nested more than %d deep", maxNesting)
)

// measureValue is about how many bytes a value is when it is written. A value that
// holds others many times, or itself, is an error before anyone writes it.
func measureValue(v reflect.Value) (int, error) {
	s := valueMeter{bytes: maxRendered, nodes: maxElements}
	err := s.addValue(v, 0)
	return maxRendered - s.bytes, err
}

type valueMeter struct{ bytes, nodes int }

func (vm *valueMeter) addValue(v reflect.Value, depth int) error {
	// Nested values are indented when they are written.
	if vm.nodes, vm.bytes = vm.nodes-1, vm.bytes-2*depth; vm.nodes < 0 {
		return errTooMany
	}
	if depth > maxNesting {
		return errTooDeep
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if v.Kind() == reflect.Pointer {
			depth++
		}
		return vm.addValue(v.Elem(), depth)
	case reflect.String:
		vm.bytes -= v.Len()
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.Interface, reflect.Pointer, reflect.String, reflect.Slice, reflect.Map, reflect.Struct:
			for i := range v.Len() {
				if err := vm.addValue(v.Index(i), depth+1); err != nil {
					return err
				}
			}
		default:
			vm.bytes -= v.Len()
			vm.nodes -= v.Len()
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if err := errors.Join(vm.addValue(iter.Key(), depth+1), vm.addValue(iter.Value(), depth+1)); err != nil {
				return err
			}
		}
	}
	if vm.nodes < 0 {
		return errTooMany
	}
	if vm.bytes < 0 {
		return errTooMuch
	}
	return nil
}
