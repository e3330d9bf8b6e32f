package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/valyala/fasttemplate"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

const (
	// maxRendered bounds what one string of a template may become. An
	// Application can't pass etcd's 1.5 MiB.
	maxRendered = 16 << 20
	// resourcesFinalizer is what the controller adds unless told to preserve resources.
	resourcesFinalizer = argov1alpha1.ResourcesFinalizerName
)

// renderer renders ApplicationSet templates to the same bytes as the
// library's, which parses every string of every Application anew, each time
// with a copy of 200 functions: most of its time and memory. This one parses
// a string once for a set. It is used by one goroutine.
type renderer struct {
	ctx    context.Context //nolint:containedctx // the library has none to pass on
	parsed map[string]parsed
}

// parsed is a string as a template: none of the fields for plain text.
type parsed struct {
	tmpl *template.Template
	fast *fasttemplate.Template
	err  error
}

var _ utils.Renderer = (*renderer)(nil)

func newRenderer(ctx context.Context) *renderer {
	return &renderer{ctx: ctx, parsed: map[string]parsed{}}
}

// setTemplate is the empty template with the controller's functions.
var setTemplate = sync.OnceValue(func() *template.Template {
	funcs := sprig.GenericFuncMap()
	// These look into the machine, or ask the network.
	maps.DeleteFunc(funcs, func(name string, _ any) bool {
		return name == "env" || name == "expandenv" || name == "getHostByName"
	})
	funcs["normalize"] = utils.SanitizeName
	funcs["slugify"] = utils.SlugifyName
	funcs["toYaml"] = func(v any) (string, error) {
		data, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(data), "\n"), err
	}
	funcs["fromYaml"] = func(text string) (map[string]any, error) {
		out := map[string]any{}
		err := yaml.Unmarshal([]byte(text), &out)
		return out, err
	}
	funcs["fromYamlArray"] = func(text string) ([]any, error) {
		out := []any{}
		err := yaml.Unmarshal([]byte(text), &out)
		return out, err
	}
	return template.New("").Funcs(funcs)
})

// RenderTemplateParams renders an Application from a template and one set of parameters.
func (r *renderer) RenderTemplateParams(tmpl *argov1alpha1.Application, policy *argov1alpha1.ApplicationSetSyncPolicy, params map[string]any, goTemplate bool, options []string) (*argov1alpha1.Application, error) {
	if tmpl == nil {
		return nil, errors.New("the Application template is empty")
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if len(params) == 0 {
		return tmpl, nil
	}
	// Everything that isn't a string is as in the template.
	app := tmpl.DeepCopy()
	s := substitution{r, params, goTemplate, options}
	if err := s.value(reflect.ValueOf(app).Elem()); err != nil {
		return nil, err
	}
	if (policy == nil || !policy.PreserveResourcesOnDeletion) && len(app.Finalizers) == 0 {
		app.Finalizers = []string{resourcesFinalizer}
	}
	return app, nil
}

// Replace renders one string.
func (r *renderer) Replace(text string, params map[string]any, goTemplate bool, options []string) (string, error) {
	// Plain text is most of a template, and never an error.
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	p, known := r.parsed[text]
	if !known {
		p = parseText(text, goTemplate, options)
		r.parsed[text] = p
	}
	switch {
	case p.err != nil:
		return "", p.err
	case p.tmpl != nil:
		w := &guardedBuffer{ctx: r.ctx, left: maxRendered}
		if err := p.tmpl.Execute(w, params); err != nil {
			return "", fmt.Errorf("failed to execute go template %s: %w", text, err)
		}
		return w.String(), nil
	case p.fast != nil:
		return p.fast.ExecuteFuncString(func(w io.Writer, tag string) (int, error) {
			name := strings.TrimSpace(tag)
			value, ok := params[name].(string)
			if name == "" || !ok {
				return io.WriteString(w, "{{"+tag+"}}")
			}
			return io.WriteString(w, value)
		}), nil
	}
	return text, nil
}

// fastForm is what the controller takes for a template: both brackets on one line.
var fastForm = regexp.MustCompile(`{{.*}}`)

// parseText parses a string that has brackets. All strings of a set have the
// same options.
func parseText(text string, goTemplate bool, options []string) parsed {
	if goTemplate {
		tmpl, err := setTemplate().Clone()
		if err == nil {
			tmpl, err = tmpl.Parse(text)
		}
		if err != nil {
			return parsed{err: fmt.Errorf("failed to parse template %s: %w", text, err)}
		}
		return parsed{tmpl: tmpl.Option(options...)}
	}
	if !fastForm.MatchString(text) {
		return parsed{}
	}
	fast, err := fasttemplate.NewTemplate(text, "{{", "}}")
	if err != nil {
		return parsed{err: fmt.Errorf("invalid template: %w", err)}
	}
	return parsed{fast: fast}
}

// guardedBuffer ends a template that writes past its bound or its time.
type guardedBuffer struct {
	bytes.Buffer
	ctx  context.Context //nolint:containedctx // an io.Writer has no other way
	left int
}

func (b *guardedBuffer) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p) > b.left {
		return 0, fmt.Errorf("it writes more than %d bytes", maxRendered)
	}
	b.left -= len(p)
	return b.Buffer.Write(p)
}

// substitution replaces every string below a value, in place.
type substitution struct {
	r          *renderer
	params     map[string]any
	goTemplate bool
	options    []string
}

func (s *substitution) text(in string) (string, error) {
	return s.r.Replace(in, s.params, s.goTemplate, s.options)
}

func (s *substitution) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return s.value(v.Elem())
	case reflect.Struct:
		return s.structure(v)
	case reflect.Slice:
		for i := range v.Len() {
			if err := s.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return s.mapping(v)
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		inner := reflect.New(v.Elem().Type()).Elem()
		inner.Set(v.Elem())
		if err := s.value(inner); err != nil {
			return err
		}
		v.Set(inner)
	case reflect.String:
		out, err := s.text(v.String())
		if err != nil {
			return err
		}
		v.SetString(out)
	}
	return nil
}

// structure goes through the exported fields; unexported ones of the API's
// types hold no text. Raw JSON is rendered string by string, keys included.
func (s *substitution) structure(v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		field := v.Field(i)
		if !t.Field(i).IsExported() {
			continue
		}
		if t.Field(i).Name == "Raw" && field.Type() == reflect.TypeFor[[]byte]() {
			if err := s.raw(field); err != nil {
				return err
			}
			continue
		}
		if err := s.value(field); err != nil {
			return err
		}
	}
	return nil
}

func (s *substitution) raw(field reflect.Value) error {
	text, err := utils.ConvertYAMLToJSON(string(field.Bytes()))
	if err != nil {
		return fmt.Errorf("error while converting template to json %q: %w", text, err)
	}
	var decoded any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return fmt.Errorf("failed to unmarshal JSON field: %w", err)
	}
	if err := s.value(reflect.ValueOf(&decoded)); err != nil {
		return fmt.Errorf("failed to deeply replace JSON field contents: %w", err)
	}
	out, err := json.Marshal(decoded)
	if err != nil {
		return fmt.Errorf("failed to marshal templated JSON field: %w", err)
	}
	field.SetBytes(out)
	return nil
}

// mapping renders values and string keys.
func (s *substitution) mapping(v reflect.Value) error {
	if v.IsNil() {
		return nil
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key, value := iter.Key(), reflect.New(v.Type().Elem()).Elem()
		value.Set(iter.Value())
		if err := s.value(value); err != nil {
			return err
		}
		if key.Kind() == reflect.String {
			name, err := s.text(key.String())
			if err != nil {
				return err
			}
			key = reflect.ValueOf(name).Convert(key.Type())
		}
		out.SetMapIndex(key, value)
	}
	v.Set(out)
	return nil
}
