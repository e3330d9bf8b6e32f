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

// engine executes a chart's templates with the meaning that Helm's own engine gives them. Helm's
// own takes no context, has no limit but on include, and draws random values and the time. Here a
// loop ends with the context, text and nesting are bounded, and a template is a function of its
// values.
type engine struct {
	ctx          context.Context // one chart, one context
	steps        int
	depth        int
	stopErr      error                // a limit that was reached, or the context's end
	instrumented map[*parse.Tree]bool // trees that count their steps
	random       deterministicRandom

	nondeterministic bool // a stand-in took the place of a random value or the time
	usesCapabilities bool // .Capabilities was asked
	usesLookup       bool // lookup was called
}

func newEngine(ctx context.Context) *engine {
	return &engine{ctx: ctx, instrumented: map[*parse.Tree]bool{}}
}

// templateFile is one template file with the values that it sees.
type templateFile struct {
	text   string
	values chartutil.Values
	base   string // .Template.BasePath
}

// render gives each file's text by its path, e.g. chart/templates/web.yaml;
// files that only define templates are left out.
func (e *engine) render(c *chart.Chart, top chartutil.Values) (map[string]string, error) {
	units := map[string]templateFile{}
	e.collectTemplates(c, units, top)
	// Higher folders come first, so that a chart's definitions replace those
	// of the charts it depends on.
	order := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	t := template.New("gotpl").Option("missingkey=zero").Funcs(e.templateFuncs())
	e.bindFuncs(t)
	for _, name := range order {
		if _, err := parseTemplate(t.New(name), units[name].text); err != nil {
			return nil, fmt.Errorf("parsing a template: %w", err)
		}
	}
	e.instrumentTemplates(t)
	out := make(map[string]string, len(order))
	for _, name := range order {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		u := units[name]
		u.values["Template"] = chartutil.Values{"Name": name, "BasePath": u.base}
		e.random.startFile(name)
		text, err := executeTemplate(t.Lookup(name), u.values)
		if e.stopErr != nil { // without the whole chain of templates
			return nil, fmt.Errorf("executing %s: %w", name, e.stopErr)
		}
		if err != nil {
			return nil, fmt.Errorf("executing a template: %w", err)
		}
		out[name] = strings.ReplaceAll(text, noValue, "")
	}
	return out, nil
}

// collectTemplates gives every template of a chart and of the charts it depends on the
// values that it sees: a chart below sees its own part of them.
func (e *engine) collectTemplates(c *chart.Chart, units map[string]templateFile, outer chartutil.Values) map[string]any {
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
		sub[d.Name()] = e.collectTemplates(d, units, own)
	}
	library := strings.EqualFold(c.Metadata.Type, "library")
	for _, t := range c.Templates {
		if t == nil || library && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		text := string(t.Data)
		e.usesCapabilities = e.usesCapabilities || strings.Contains(text, ".Capabilities")
		units[path.Join(c.ChartFullPath(), t.Name)] = templateFile{text: text, values: own, base: path.Join(c.ChartFullPath(), "templates")}
	}
	return own
}

// bindFuncs gives a set of templates the functions that call its templates.
func (e *engine) bindFuncs(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			named := t.Lookup(name)
			if named == nil {
				return "", fmt.Errorf("include: there is no template %q", name)
			}
			return executeTemplate(named, data)
		},
		"tpl": func(text string, data any) (string, error) { return e.expandTpl(t, text, data) },
	})
}

// noValue is what text/template prints for a value that isn't there. In a
// chart's output it is nothing.
const noValue = "<no value>"

// executeTemplate runs one template.
func executeTemplate(t *template.Template, data any) (string, error) {
	w := &boundedOutput{}
	err := t.Execute(w, data)
	return w.text.String(), err
}

// parseTemplate parses text into a template. The names that count steps are not a
// template's to use.
func parseTemplate(t *template.Template, text string) (*template.Template, error) {
	for _, name := range []string{stepName, enterName, leaveName} {
		if strings.Contains(text, name) {
			return nil, fmt.Errorf("%s: the name %s is taken", t.Name(), name)
		}
	}
	return t.Parse(text)
}

// expandTpl runs text as a template that sees the definitions around it; what it
// defines itself ends with it.
func (e *engine) expandTpl(outer *template.Template, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") {
		return strings.ReplaceAll(text, noValue, ""), nil
	}
	set, err := outer.Clone()
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	// A clone forgets its options (golang/go#43022).
	set.Option("missingkey=zero")
	e.bindFuncs(set)
	t, err := parseTemplate(set.New(outer.Name()), text)
	if err != nil {
		return "", fmt.Errorf("tpl can't parse %q: %w", clipExcerpt(text), err)
	}
	e.instrumentTemplates(t)
	out, err := executeTemplate(t, data)
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	return strings.ReplaceAll(out, noValue, ""), nil
}

// boundedOutput is a template's output.
type boundedOutput struct{ text strings.Builder }

func (b *boundedOutput) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxTextBytes {
		return 0, fmt.Errorf("%w: a template wrote more than %d bytes", ErrLimit, maxTextBytes)
	}
	return b.text.Write(p)
}

// The functions that mark puts into templates.
const (
	stepName  = "liftlockStep"
	enterName = "liftlockEnter"
	leaveName = "liftlockLeave"
)

// instrumentTemplates makes templates count: each round of a loop calls step, each template
// enter and leave. So they end with the context and the limits, even where
// they write nothing.
func (e *engine) instrumentTemplates(t *template.Template) {
	for _, d := range append(t.Templates(), t) { // t itself isn't listed when it only defines others
		tree := d.Tree
		if tree == nil || tree.Root == nil || e.instrumented[tree] {
			continue
		}
		e.instrumented[tree] = true
		instrumentLoops(tree.Root)
		tree.Root.Nodes = slices.Concat([]parse.Node{newCallAction(enterName)}, tree.Root.Nodes, []parse.Node{newCallAction(leaveName)})
	}
}

func instrumentLoops(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			instrumentLoops(n.List)
			instrumentLoops(n.ElseList)
			n.List.Nodes = append([]parse.Node{newCallAction(stepName)}, n.List.Nodes...)
		case *parse.IfNode:
			instrumentLoops(n.List)
			instrumentLoops(n.ElseList)
		case *parse.WithNode:
			instrumentLoops(n.List)
			instrumentLoops(n.ElseList)
		}
	}
}

// newCallAction is the action {{name}}.
func newCallAction(name string) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
		{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(name)}},
	}}}
}

// countStep counts one round of a loop or one template.
func (e *engine) countStep() (string, error) {
	if e.steps++; e.steps > maxSteps {
		e.stopErr = fmt.Errorf("%w: the chart's templates take more than %d steps", ErrLimit, maxSteps)
	} else if e.steps%256 == 0 {
		e.stopErr = e.ctx.Err()
	}
	return "", e.stopErr
}

func (e *engine) enterTemplate() (string, error) {
	if e.depth++; e.depth > maxTemplateDepth {
		e.stopErr = fmt.Errorf("%w: templates call one another more than %d deep", ErrLimit, maxTemplateDepth)
		return "", e.stopErr
	}
	return e.countStep()
}

func (e *engine) leaveTemplate() string {
	e.depth--
	return ""
}
