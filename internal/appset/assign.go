package appset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxName is a component's longest name, as for every name in a pipeline.
	maxName = 63
	// maxOutput bounds what a template may write before it is cut short.
	maxOutput = 4 << 10
	// maxQuoted bounds what a message quotes.
	maxQuoted = 80
)

// isName says that a text is [a-z0-9][a-z0-9-]*.
func isName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-' && i > 0:
		default:
			return false
		}
	}
	return text != ""
}

// assigner evaluates one of a pipeline's two templates for targets.
type assigner struct {
	what   string // "component" or "environment"
	text   string
	tmpl   *template.Template
	parts  []templatePart // of a template of nothing but fields
	fixed  *string        // what a template without anything to fill in gives; nil: there is something
	limits templateLimits
	// Building these costs more than the template itself, so only if asked for.
	usesApplication, usesSet bool
}

// newAssigner parses a template; an error names it and what is wrong. It is
// used by one goroutine, and its loops end with the context.
func newAssigner(ctx context.Context, what, text string) (*assigner, error) {
	a := &assigner{
		what: what, text: text, limits: templateLimits{ctx: ctx, funcs: assignFunctions()},
		usesApplication: strings.Contains(text, ".application"),
		usesSet:         strings.Contains(text, ".applicationSet"),
	}
	var err error
	if a.tmpl, err = a.limits.parseTemplate(what, text, "missingkey=error"); err != nil {
		return nil, fmt.Errorf("the %s template %q: %w", what, text, err)
	}
	a.parts = simpleParts(a.tmpl)
	if a.parts == nil && !strings.Contains(text, "{{") {
		a.fixed = &a.text
	}
	return a, nil
}

// String is the template; empty for none.
func (a *assigner) String() string {
	if a == nil {
		return ""
	}
	return a.text
}

// templateData is what the templates see of one Application: the generator's
// parameters, and the two objects in their own manifests' shape.
func templateData(g *generatedApp, s *appSet, application, applicationSet bool) (map[string]any, error) {
	params := g.params
	if !s.spec.Spec.GoTemplate {
		params = nestParams(params)
	}
	if !application && !applicationSet {
		return params, nil
	}
	data := make(map[string]any, len(params)+2)
	maps.Copy(data, params)
	if application {
		object, err := g.asMap()
		if err != nil {
			return nil, err
		}
		addFile(object, s.spec.Name, s.file)
		data["application"] = object
	}
	if applicationSet {
		data["applicationSet"] = map[string]any{
			"file": s.file,
			"metadata": map[string]any{
				"name": s.spec.Name, "namespace": s.spec.Namespace,
				"labels": stringMap(s.spec.Labels), "annotations": stringMap(s.spec.Annotations),
			},
		}
	}
	return data, nil
}

// addFile says of a plain Application in which file it is, as of an ApplicationSet.
func addFile(application map[string]any, set, file string) {
	if set == "" && file != "" {
		application["file"] = file
	}
}

func stringMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func asMap(app *argov1alpha1.Application) (map[string]any, error) {
	raw, err := json.Marshal(app)
	if err != nil {
		return nil, fmt.Errorf("writing the Application: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("reading the Application back: %w", err)
	}
	return out, nil
}

// evaluateTemplate returns the template's answer, trimmed; empty means not managed.
func (a *assigner) evaluateTemplate(data map[string]any) (string, error) {
	out, ok := fillParts(a.parts, data)
	if a.fixed != nil {
		out, ok = *a.fixed, true
	}
	if !ok {
		if a.limits.mutates { // into what others share
			data = copyValue(data).(map[string]any)
		}
		a.limits.depth = 0
		w := &boundedBuffer{ctx: a.limits.ctx, most: maxOutput}
		if err := a.tmpl.Execute(w, data); err != nil {
			return "", fmt.Errorf("the %s template %q: %w", a.what, a.text, cmp.Or(w.over, explainError(shortTemplateError(err), data)))
		}
		out = w.String()
	}
	out = strings.TrimSpace(out)
	switch {
	case out == "":
		return "", nil
	case strings.Contains(out, "<no value>"), strings.Contains(out, "<nil>"):
		return "", fmt.Errorf("the %s template %q asks for a parameter that is not there (it gave %q)", a.what, a.text, out)
	case len(out) > maxName || !isName(out):
		return "", fmt.Errorf("the %s template %q gave %q, which is not a name: [a-z0-9][a-z0-9-]*, at most %d; `| normalize` makes one "+
			"of most", a.what, a.text, wording.Clip(out, maxQuoted), maxName)
	}
	return out, nil
}

// missingKey is what the template package says of a key that isn't there, after the expression.
var missingKey = regexp.MustCompile(`^<([\w.]+)>: map has no entry for key "`)

// maxParameters bounds the parameters that a message names.
const maxParameters = 12

// missingIndex is what the template package says of a part of the path that isn't there.
var missingIndex = regexp.MustCompile(`^<index \.path\.segments [^>]*>: .*index out of range`)

// explainError adds to a template's error what is there instead of what it asks for.
func explainError(err error, data map[string]any) error {
	if !missingIndex.MatchString(err.Error()) {
		return explainMissing(err, data)
	}
	parameters, _ := data["path"].(map[string]any)
	path, _ := parameters["path"].(string)
	if path == "" {
		return err
	}
	return fmt.Errorf("%w; its path has the segments 0 to %d", err, strings.Count(path, "/"))
}

// explainMissing adds to an error of a key that isn't there which ones are, at the same place.
func explainMissing(err error, data map[string]any) error {
	found := missingKey.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	at := data
	keys := strings.Split(strings.TrimPrefix(found[1], "."), ".")
	for _, key := range keys[:len(keys)-1] {
		value, found := at[key]
		if !found {
			break // it is this one that isn't there
		}
		next, ok := value.(map[string]any)
		if !ok {
			return err
		}
		at = next
	}
	// those aren't parameters
	there := slices.DeleteFunc(slices.Sorted(maps.Keys(at)), func(key string) bool {
		return key == "application" ||
			key == "applicationSet"
	})
	if len(there) == 0 {
		return err
	}
	for i := range there { // the author of a generator's file names them
		there[i] = wording.ClipLine(there[i], maxQuoted)
	}
	return fmt.Errorf("%w; there are %s", err, wording.JoinFew(there, maxParameters))
}

// shortTemplateError drops the template package's own prefix of name and
// position, which repeats what the message says already.
func shortTemplateError(err error) error {
	if _, rest, found := strings.Cut(err.Error(), " at <"); found {
		return errors.New("<" + rest)
	}
	return err
}
