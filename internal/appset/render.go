package appset

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// resourcesFinalizer is what the controller adds unless told to preserve resources.
const resourcesFinalizer = argov1alpha1.ResourcesFinalizerName

// renderer renders one ApplicationSet's templates to the same bytes as the
// library's, which parses every string of every Application anew, each time
// with a copy of 200 functions: most of its time and memory. This one parses
// a string once. It is used by one goroutine.
type renderer struct {
	goTemplate bool
	options    []string
	guard      *guard
	parsed     map[string]*parsed

	last *argov1alpha1.Application // the template that app is the plan of
	app  *plan[argov1alpha1.Application]
}

var _ utils.Renderer = (*renderer)(nil)

func newRenderer(ctx context.Context, set *argov1alpha1.ApplicationSet) *renderer {
	return &renderer{
		goTemplate: set.Spec.GoTemplate, options: set.Spec.GoTemplateOptions,
		guard: &guard{ctx: ctx, funcs: functions()}, parsed: map[string]*parsed{},
	}
}

// text parses a string, unless it was parsed before.
func (r *renderer) text(raw string) *parsed {
	t, known := r.parsed[raw]
	if !known {
		t = newParsed(raw, r.goTemplate, r.options, r.guard)
		// What another template rendered is parsed too, in a matrix: each time
		// something else, perhaps.
		if len(r.parsed) < maxParsed {
			r.parsed[raw] = t
		}
	}
	return t
}

// maxParsed bounds how many strings are kept parsed.
const maxParsed = 10_000

// plan is a whole value with its filler.
type plan[T any] struct {
	value *T
	fill  filler
}

// newPlan prepares a copy of the value.
func newPlan[T any](r *renderer, copied *T) *plan[T] {
	p := planner{text: r.text}
	return &plan[T]{copied, p.plan(reflect.ValueOf(copied).Elem())}
}

// render makes a value for one set of parameters. Only its top level is its own.
func (p *plan[T]) render(params map[string]any) (*T, error) {
	out := *p.value
	if p.fill != nil {
		if err := p.fill(reflect.ValueOf(&out).Elem(), params); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// RenderTemplateParams renders an Application from a template and one set of
// parameters. The set's own options count; those passed are the same.
func (r *renderer) RenderTemplateParams(tmpl *argov1alpha1.Application, policy *argov1alpha1.ApplicationSetSyncPolicy, params map[string]any, _ bool, _ []string) (*argov1alpha1.Application, error) {
	if tmpl == nil {
		return nil, errors.New("the Application template is empty")
	}
	if err := r.guard.ctx.Err(); err != nil {
		return nil, err
	}
	if len(params) == 0 {
		return tmpl, nil
	}
	if r.last != tmpl {
		r.last, r.app = tmpl, newPlan(r, tmpl.DeepCopy())
	}
	app, err := r.app.render(params)
	if err != nil {
		return nil, err
	}
	if (policy == nil || !policy.PreserveResourcesOnDeletion) && len(app.Finalizers) == 0 {
		app.Finalizers = []string{resourcesFinalizer}
	}
	return app, nil
}

// writes says that a template may write into its parameters, parsing the
// templates for that.
func (r *renderer) writes(set, over *argov1alpha1.ApplicationSetTemplate, patch *string) bool {
	newPlan(r, set.DeepCopy())
	newPlan(r, over.DeepCopy())
	if patch != nil {
		r.text(*patch)
	}
	return r.guard.writes
}

// Replace renders one string.
func (r *renderer) Replace(raw string, params map[string]any, _ bool, _ []string) (string, error) {
	return r.text(raw).render(params)
}

// values adds a generator's values block to parameters: the controller
// renders each over the parameters without the block.
func (r *renderer) values(values map[string]string, params map[string]any) error {
	if len(values) == 0 {
		return nil
	}
	rendered := make(map[string]string, len(values))
	for key, raw := range values {
		out, err := r.text(raw).render(params)
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
