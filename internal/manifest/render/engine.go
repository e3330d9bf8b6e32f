package render

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// engine executes a chart's templates with the meaning that Helm's own engine
// gives them. It isn't Helm's because that one takes no context, has no limit
// but on include, and draws random values and the time: here a loop ends with
// the context, text and nesting are bounded, and a template is a function of
// its values.
type engine struct {
	ctx     context.Context //nolint:containedctx // one chart, one context
	steps   int
	nested  int
	stopped error                // a limit that was reached, or the context's end
	marked  map[*parse.Tree]bool // trees that count their steps
	standIn standIn

	stoodIn     bool // a stand-in took the place of a random value or the time
	asksCluster bool // .Capabilities was asked
	looksUp     bool // lookup was called
}

func newEngine(ctx context.Context) *engine {
	return &engine{ctx: ctx, marked: map[*parse.Tree]bool{}}
}

// unit is one template file with the values that it sees.
type unit struct {
	text   string
	values chartutil.Values
	base   string // .Template.BasePath
}

// render gives each file's text by its path, e.g. chart/templates/web.yaml;
// files that only define templates are left out.
func (e *engine) render(c *chart.Chart, top chartutil.Values) (map[string]string, error) {
	units := map[string]unit{}
	e.collect(c, units, top)
	// Higher folders come first, so that a chart's definitions replace those
	// of the charts it depends on.
	order := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	t := template.New("gotpl").Option("missingkey=zero").Funcs(e.functions())
	e.bind(t)
	for _, name := range order {
		if _, err := parsed(t.New(name), units[name].text); err != nil {
			return nil, fmt.Errorf("parsing a template: %w", err)
		}
	}
	e.mark(t)
	out := make(map[string]string, len(order))
	for _, name := range order {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		u := units[name]
		u.values["Template"] = chartutil.Values{"Name": name, "BasePath": u.base}
		e.standIn.file(name)
		text, err := execute(t.Lookup(name), u.values)
		if e.stopped != nil { // without the whole chain of templates
			return nil, fmt.Errorf("executing %s: %w", name, e.stopped)
		}
		if err != nil {
			return nil, fmt.Errorf("executing a template: %w", err)
		}
		out[name] = strings.ReplaceAll(text, noValue, "")
	}
	return out, nil
}

// collect gives every template of a chart and of the charts it depends on the
// values that it sees: a chart below sees its own part of them.
func (e *engine) collect(c *chart.Chart, units map[string]unit, outer chartutil.Values) map[string]any {
	sub := map[string]any{}
	own := map[string]any{
		"Chart": struct {
			chart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        newChartFiles(c.Files),
		"Release":      outer["Release"],
		"Capabilities": outer["Capabilities"],
		"Values":       chartutil.Values{},
		"Subcharts":    sub,
	}
	if c.IsRoot() {
		own["Values"] = outer["Values"]
	} else if v, err := outer.Table("Values." + c.Name()); err == nil {
		own["Values"] = v
	}
	for _, d := range c.Dependencies() {
		sub[d.Name()] = e.collect(d, units, own)
	}
	library := strings.EqualFold(c.Metadata.Type, "library")
	for _, t := range c.Templates {
		if t == nil || library && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		text := string(t.Data)
		e.asksCluster = e.asksCluster || strings.Contains(text, ".Capabilities")
		units[path.Join(c.ChartFullPath(), t.Name)] = unit{text: text, values: own, base: path.Join(c.ChartFullPath(), "templates")}
	}
	return own
}

// bind gives a set of templates the functions that call its templates.
func (e *engine) bind(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			named := t.Lookup(name)
			if named == nil {
				return "", fmt.Errorf("include: there is no template %q", name)
			}
			return execute(named, data)
		},
		"tpl": func(text string, data any) (string, error) { return e.tpl(t, text, data) },
	})
}

// noValue is what text/template prints for a value that isn't there. In a
// chart's output it is nothing.
const noValue = "<no value>"

// execute runs one template.
func execute(t *template.Template, data any) (string, error) {
	w := &bounded{}
	err := t.Execute(w, data)
	return w.text.String(), err
}

// parsed parses text into a template. The names that count steps are not a
// template's to use.
func parsed(t *template.Template, text string) (*template.Template, error) {
	for _, name := range []string{stepName, enterName, leaveName} {
		if strings.Contains(text, name) {
			return nil, fmt.Errorf("%s: the name %s is taken", t.Name(), name)
		}
	}
	return t.Parse(text)
}

// tpl runs text as a template that sees the definitions around it; what it
// defines itself ends with it.
func (e *engine) tpl(outer *template.Template, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") {
		return strings.ReplaceAll(text, noValue, ""), nil
	}
	set, err := outer.Clone()
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	// A clone forgets its options (golang/go#43022).
	set.Option("missingkey=zero")
	e.bind(set)
	t, err := parsed(set.New(outer.Name()), text)
	if err != nil {
		return "", fmt.Errorf("tpl can't parse %q: %w", excerpt([]byte(text)), err)
	}
	e.mark(t)
	out, err := execute(t, data)
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	return strings.ReplaceAll(out, noValue, ""), nil
}

// bounded is a template's output.
type bounded struct{ text strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxText {
		return 0, fmt.Errorf("%w: a template wrote more than %d bytes", ErrLimit, maxText)
	}
	return b.text.Write(p)
}

// The functions that mark puts into templates.
const (
	stepName  = "liftlockStep"
	enterName = "liftlockEnter"
	leaveName = "liftlockLeave"
)

// mark makes templates count: each round of a loop calls step, each template
// enter and leave. So they end with the context and the limits, even where
// they write nothing.
func (e *engine) mark(t *template.Template) {
	for _, d := range append(t.Templates(), t) { // t itself isn't listed when it only defines others
		tree := d.Tree
		if tree == nil || tree.Root == nil || e.marked[tree] {
			continue
		}
		e.marked[tree] = true
		markLoops(tree.Root)
		tree.Root.Nodes = slices.Concat([]parse.Node{call(enterName)}, tree.Root.Nodes, []parse.Node{call(leaveName)})
	}
}

func markLoops(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			markLoops(n.List)
			markLoops(n.ElseList)
			n.List.Nodes = append([]parse.Node{call(stepName)}, n.List.Nodes...)
		case *parse.IfNode:
			markLoops(n.List)
			markLoops(n.ElseList)
		case *parse.WithNode:
			markLoops(n.List)
			markLoops(n.ElseList)
		}
	}
}

// call is the action {{name}}.
func call(name string) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
		{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(name)}},
	}}}
}

// step counts one round of a loop or one template.
func (e *engine) step() (string, error) {
	if e.steps++; e.steps > maxSteps {
		e.stopped = fmt.Errorf("%w: the chart's templates take more than %d steps", ErrLimit, maxSteps)
	} else if e.steps%256 == 0 {
		e.stopped = e.ctx.Err()
	}
	return "", e.stopped
}

func (e *engine) enter() (string, error) {
	if e.nested++; e.nested > maxNested {
		e.stopped = fmt.Errorf("%w: templates call one another more than %d deep", ErrLimit, maxNested)
		return "", e.stopped
	}
	return e.step()
}

func (e *engine) leave() string {
	e.nested--
	return ""
}
