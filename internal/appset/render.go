package appset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// resourcesFinalizer is what the controller adds unless it is to preserve resources.
const resourcesFinalizer = argov1alpha1.ResourcesFinalizerName

// renderer renders one ApplicationSet's templates to the same bytes as the library's. That one
// parses every string of every Application anew, each time with a copy of 200 functions: most of
// its time and memory. This one parses a string once. It is used by one goroutine.
type renderer struct {
	goTemplate bool
	options    []string
	limits     *templateLimits
	parsed     map[string]*parsedString

	lastTemplate *argov1alpha1.Application // the template that app is the plan of
	lastPlan     *renderPlan[argov1alpha1.Application]
}

var _ utils.Renderer = (*renderer)(nil)

func newRenderer(ctx context.Context, set *argov1alpha1.ApplicationSet) *renderer {
	return &renderer{
		goTemplate: set.Spec.GoTemplate, options: set.Spec.GoTemplateOptions,
		limits: &templateLimits{ctx: ctx, funcs: templateFunctions()}, parsed: map[string]*parsedString{},
	}
}

// parseText parses a string, unless it was parsed before.
func (r *renderer) parseText(raw string) *parsedString {
	t, known := r.parsed[raw]
	if !known {
		t = newParsedString(raw, r.goTemplate, r.options, r.limits)
		// In a matrix another template's output is parsed too: each time something else, perhaps.
		if len(r.parsed) < maxParsed {
			r.parsed[raw] = t
		}
	}
	return t
}

// maxParsed bounds how many strings are kept parsed.
const maxParsed = 10_000

// renderPlan is a whole value with its filler.
type renderPlan[T any] struct {
	value *T
	fill  templateFiller
}

// newRenderPlan prepares a copy of the value.
func newRenderPlan[T any](r *renderer, copied *T) *renderPlan[T] {
	p := renderPlanner{parse: r.parseText}
	return &renderPlan[T]{copied, p.planValue(reflect.ValueOf(copied).Elem())}
}

// newGeneratorPlan is newRenderPlan for a generator whose values block keeps the
// templates that the parameters can't fill in: the generator's own may.
func newGeneratorPlan(r *renderer, copied *argov1alpha1.ApplicationSetGenerator) *renderPlan[argov1alpha1.ApplicationSetGenerator] {
	options := append(slices.DeleteFunc(slices.Clone(r.options), func(o string) bool { return strings.HasPrefix(o, "missingkey=") }),
		"missingkey=error")
	p := renderPlanner{parse: r.parseText, parseOwn: func(raw string) *parsedString {
		return newParsedString(raw, r.goTemplate, options, r.limits)
	}}
	return &renderPlan[argov1alpha1.ApplicationSetGenerator]{copied, p.planValue(reflect.ValueOf(copied).Elem())}
}

// render makes a value for one set of parameters. Only its top level is its own.
func (r *renderPlan[T]) render(params map[string]any) (*T, error) {
	out := new(T)
	if err := r.renderInto(out, params); err != nil {
		return nil, err
	}
	return out, nil
}

// renderInto is render into a value of the caller's, whatever that was before.
func (r *renderPlan[T]) renderInto(out *T, params map[string]any) error {
	*out = *r.value
	if r.fill == nil {
		return nil
	}
	return r.fill(reflect.ValueOf(out).Elem(), params)
}

// RenderTemplateParams renders an Application from a template and one set of
// parameters. The set's own options count; those passed are the same.
func (r *renderer) RenderTemplateParams(tmpl *argov1alpha1.Application, policy *argov1alpha1.ApplicationSetSyncPolicy,
	params map[string]any, _ bool, _ []string) (*argov1alpha1.Application, error) {
	if tmpl == nil {
		return nil, errors.New("the Application template is empty")
	}
	if len(params) == 0 {
		return tmpl, r.limits.ctx.Err()
	}
	app := &argov1alpha1.Application{}
	if err := r.renderInto(app, tmpl, policy, params); err != nil {
		return nil, err
	}
	return app, nil
}

// renderInto renders an Application into one of the caller's, whatever that was before.
// There must be parameters.
func (r *renderer) renderInto(app, tmpl *argov1alpha1.Application, policy *argov1alpha1.ApplicationSetSyncPolicy,
	params map[string]any) error {
	if err := r.limits.ctx.Err(); err != nil {
		return err
	}
	if r.lastTemplate != tmpl {
		r.lastTemplate, r.lastPlan = tmpl, newRenderPlan(r, tmpl.DeepCopy())
	}
	if err := r.lastPlan.renderInto(app, params); err != nil {
		return err
	}
	if (policy == nil || !policy.PreserveResourcesOnDeletion) && len(app.Finalizers) == 0 {
		app.Finalizers = []string{resourcesFinalizer}
	}
	return nil
}

// withoutMetadata is a template without its labels and annotations, where no caller needs these. It
// leaves them out only if rendering them could neither fail nor report anything else: a newer field
// may be among the annotations.
func (r *renderer) withoutMetadata(tmpl *argov1alpha1.Application) *argov1alpha1.Application {
	if r.goTemplate {
		return tmpl
	}
	for _, texts := range []map[string]string{tmpl.Labels, tmpl.Annotations} {
		for key, value := range texts {
			if name := r.parseText(key); !name.plain || r.parseText(value).err != nil || strings.HasPrefix(key, newerField) {
				return tmpl
			}
		}
	}
	out := *tmpl
	out.Labels, out.Annotations = nil, nil
	return &out
}

// mutatesParams says that a template may write into its parameters, parsing the
// templates for that.
func (r *renderer) mutatesParams(set, over *argov1alpha1.ApplicationSetTemplate, patch *string) bool {
	newRenderPlan(r, set.DeepCopy())
	newRenderPlan(r, over.DeepCopy())
	if patch != nil {
		r.parseText(*patch)
	}
	return r.limits.mutates
}

// Replace renders a templatePatch, the only string that the library renders by itself.
func (r *renderer) Replace(raw string, params map[string]any, _ bool, _ []string) (string, error) {
	patch, err := r.parseText(raw).render(params)
	if err != nil {
		return "", err
	}
	return movePatchFields(patch), nil
}

// renderValues adds a generator's values block to parameters: the controller
// renders each over the parameters without the block.
func (r *renderer) renderValues(values map[string]string, params map[string]any) error {
	if len(values) == 0 {
		return nil
	}
	rendered := make(map[string]string, len(values))
	for key, raw := range values {
		out, err := r.parseText(raw).render(params)
		if err != nil {
			return fmt.Errorf("failed to append templated values: %w", err)
		}
		rendered[key] = out
	}
	if r.goTemplate {
		params["values"] = rendered
		return nil
	}
	for key, value := range rendered {
		params["values."+key] = value
	}
	return nil
}
