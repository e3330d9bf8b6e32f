package appset

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/valyala/fasttemplate"

	"github.com/liftlock/liftlock/internal/wording"
)

// maxRendered bounds what one string of a template may become. An Application
// can't pass etcd's 1.5 MiB.
const maxRendered = 4 << 20

// parsedString is one string of an ApplicationSet, parsed once.
type parsedString struct {
	raw    string
	plain  bool               // it renders to itself, whatever the parameters
	parts  []templatePart     // a Go template of nothing but text and fields
	tmpl   *template.Template // any Go template
	fast   []fastPart         // what isn't a Go template
	err    error              // it doesn't parse
	limits *templateLimits
}

// templatePart is a piece of a simple template: a field's path, or literal text.
type templatePart struct {
	literal string
	field   []string
}

// fastForm is what the controller takes for a template: both brackets on one line.
var fastForm = regexp.MustCompile(`{{.*}}`)

// newParsedString parses a string as the controller would.
func newParsedString(raw string, goTemplate bool, options []string, g *templateLimits) *parsedString {
	t := &parsedString{raw: raw, limits: g}
	if goTemplate {
		if t.err = unknownOption(options); t.err != nil {
			return t // text that holds no template is parsed with them too
		}
	}
	switch {
	case !strings.Contains(raw, "{{"):
		t.plain = true
	case goTemplate:
		if t.tmpl, t.err = g.parseTemplate("", raw, options...); t.err != nil {
			t.err = fmt.Errorf("failed to parse template %s: %w", wording.Clip(raw, maxQuoted), t.err)
			break
		}
		t.parts = simpleParts(t.tmpl)
	case !fastForm.MatchString(raw):
		t.plain = true
	default:
		if _, t.err = fasttemplate.NewTemplate(raw, "{{", "}}"); t.err != nil {
			t.err = fmt.Errorf("invalid template: %w", t.err)
			break
		}
		t.fast = splitFast(raw)
	}
	return t
}

// unknownOption says which of goTemplateOptions there isn't: the template
// package panics on it, but only once something is rendered.
func unknownOption(options []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("goTemplateOptions: %v", p)
		}
	}()
	template.New("").Option(options...)
	return nil
}

// render gives the string for one set of parameters.
func (p *parsedString) render(params map[string]any) (string, error) {
	switch {
	case p.plain:
		return p.raw, nil
	case p.err != nil:
		return "", p.err
	case p.fast != nil:
		return fillFast(p.fast, params), nil
	}
	if out, ok := fillParts(p.parts, params); ok {
		return out, nil
	}
	if err := p.limits.checkParams(params); err != nil {
		return "", fmt.Errorf("failed to execute go template %s: its parameters: %w", wording.Clip(p.raw, maxQuoted), err)
	}
	p.limits.depth = 0
	w := &boundedBuffer{ctx: p.limits.ctx, most: maxRendered}
	if err := p.tmpl.Execute(w, params); err != nil {
		return "", fmt.Errorf("failed to execute go template %s: %w", wording.Clip(p.raw, maxQuoted), err)
	}
	return w.String(), nil
}

// fastPart is a piece of a string that isn't a Go template: literal text, or a parameter. The text
// stays as it is where no parameter of that name is a string.
type fastPart struct{ literal, name string }

// splitFast takes a string apart as fasttemplate does, which took it.
func splitFast(raw string) []fastPart {
	var out []fastPart
	for {
		text, rest, found := strings.Cut(raw, "{{")
		if text != "" {
			out = append(out, fastPart{literal: text})
		}
		if !found {
			return out
		}
		var tag string
		tag, raw, _ = strings.Cut(rest, "}}")
		out = append(out, fastPart{literal: "{{" + tag + "}}", name: strings.TrimSpace(tag)})
	}
}

func fillFast(parts []fastPart, params map[string]any) string {
	size := 0
	var few [8]string
	values := few[:0]
	for i := range parts {
		value := parts[i].literal
		if name := parts[i].name; name != "" {
			if s, ok := params[name].(string); ok {
				value = s
			}
		}
		size += len(value)
		values = append(values, value)
	}
	if len(values) == 1 {
		return values[0]
	}
	var b strings.Builder
	b.Grow(size)
	for _, value := range values {
		b.WriteString(value)
	}
	return b.String()
}

// fillParts renders a template of nothing but text and fields, if each of them is there and is a
// string. The template package renders all else.
func fillParts(parts []templatePart, params map[string]any) (string, bool) {
	switch len(parts) {
	case 0:
		return "", false
	case 1:
		return lookupString(params, parts[0].field)
	}
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		value, ok := p.literal, true
		if p.field != nil {
			value, ok = lookupString(params, p.field)
		}
		if !ok || b.Len()+len(value) > maxRendered {
			return "", false
		}
		b.WriteString(value)
	}
	return b.String(), true
}

// lookupString follows a path of names through maps to a string.
func lookupString(params map[string]any, path []string) (string, bool) {
	var at any = params
	for _, name := range path {
		switch m := at.(type) {
		case map[string]any:
			at = m[name]
		case map[string]string:
			value, ok := m[name]
			if !ok {
				return "", false
			}
			at = value
		default:
			return "", false
		}
	}
	s, ok := at.(string)
	return s, ok
}

// simpleParts takes a template apart that is nothing but text and fields like
// {{ .path.basename }}; nil for any other.
func simpleParts(t *template.Template) []templatePart {
	if len(t.Templates()) > 1 || t.Tree == nil || t.Root == nil {
		return nil
	}
	var parts []templatePart
	for _, n := range t.Root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			parts = append(parts, templatePart{literal: string(n.Text)})
		case *parse.CommentNode:
		case *parse.ActionNode:
			if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
				return nil
			}
			f, ok := n.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
			if !ok {
				return nil
			}
			parts = append(parts, templatePart{field: f.Ident})
		default:
			return nil
		}
	}
	if len(parts) == 1 && parts[0].field == nil {
		return nil
	}
	return parts
}

// boundedBuffer ends a template that writes past its bound or its time.
type boundedBuffer struct {
	bytes.Buffer
	ctx  context.Context // an io.Writer has no other way
	most int
	over error // it wrote more than that
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.Len()+len(p) > b.most {
		b.over = fmt.Errorf("it writes more than %d bytes", b.most)
		return 0, b.over
	}
	return b.Buffer.Write(p)
}
