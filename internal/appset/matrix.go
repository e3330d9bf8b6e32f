package appset

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// maxParams bounds the sets of parameters that one generator gives. A set's
// selectors may leave fewer Applications than that.
const maxParams = 4 * maxApplications

// matrixGenerator is the matrix generator. The library's puts the first child's parameters into the
// second's strings with a renderer that parses each string every time. It also asks the second
// child again even if it has no templates. This one gives the same parameters, in the same order.
type matrixGenerator struct {
	generators.Generator // the library's, for all but the parameters

	render   *renderer
	origins  *origins
	cache    *resultCache
	version  Version
	children map[string]generators.Generator
	// fresh has every parameter set share no maps with another one that comes
	// of another value of the first child: a merge writes into them.
	fresh bool
}

func newMatrixGenerator(g *generatorRun, children map[string]generators.Generator, fresh bool) *matrixGenerator {
	return &matrixGenerator{Generator: generators.NewMatrixGenerator(children), render: g.render, origins: g.origins, cache: g.cache,
		version: g.version, children: children, fresh: fresh}
}

// GenerateParams combines every set of the first child's parameters with every
// one of the second's.
func (m *matrixGenerator) GenerateParams(g *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	switch {
	case g == nil || g.Matrix == nil:
		return nil, generators.EmptyAppSetGeneratorError
	case len(g.Matrix.Generators) < 2:
		return nil, generators.ErrLessThanTwoGenerators
	case len(g.Matrix.Generators) > 2:
		return nil, generators.ErrMoreThanTwoGenerators
	}
	first, err := newChildGenerator(&g.Matrix.Generators[0], set)
	if err != nil {
		return nil, fmt.Errorf("error failed to get params for first generator in matrix generator: %w", err)
	}
	as, err := m.childParams(first, set, c)
	if err != nil {
		return nil, fmt.Errorf("error failed to get params for first generator in matrix generator: %w", err)
	}
	out := make([]map[string]any, 0, len(as))
	second := secondChild{matrix: m, spec: &g.Matrix.Generators[1], set: set, client: c}
	for _, a := range as {
		if err := m.render.limits.ctx.Err(); err != nil {
			return nil, err
		}
		written, bs, err := second.paramsFor(a)
		if err != nil {
			return nil, fmt.Errorf("failed to get params for second generator in the matrix generator: %w", err)
		}
		if len(out)+len(bs) > maxParams {
			return nil, fmt.Errorf("the matrix generator gives more than %d sets of parameters", maxParams)
		}
		for _, b := range bs {
			both, known := m.cache.findJoined(written, b, set.Spec.GoTemplate)
			if !known {
				if both, err = joinParams(written, b, set.Spec.GoTemplate); err != nil {
					return nil, err
				}
				if !m.fresh && !m.render.limits.mutates { // which would be written into
					m.cache.storeJoined(written, b, both, set.Spec.GoTemplate)
				}
			}
			m.origins.recordJoined(both, a, b)
			out = append(out, both)
		}
	}
	return out, nil
}

// secondChild gives a matrix's second child's parameters for the first's.
type secondChild struct {
	matrix *matrixGenerator
	spec   *argov1alpha1.ApplicationSetNestedGenerator
	set    *argov1alpha1.ApplicationSet
	client client.Client

	child     *argov1alpha1.ApplicationSetGenerator
	plan      *renderPlan[argov1alpha1.ApplicationSetGenerator]
	known     []map[string]any // what a child without templates gives
	evaluated bool
}

// paramsFor returns the first child's as well, because templates may write into them.
func (s *secondChild) paramsFor(a map[string]any) (first map[string]any, second []map[string]any, err error) {
	if s.child == nil {
		if s.child, err = newChildGenerator(s.spec, s.set); err != nil {
			return nil, nil, err
		}
	}
	if len(a) == 0 { // the controller leaves the templates as they are
		second, err = s.matrix.childParams(s.child, s.set, s.client)
		return a, second, err
	}
	if s.plan == nil {
		s.plan = s.newPlan()
	}
	if s.plan.fill == nil {
		second, err = s.untemplatedParams()
		return a, second, err
	}
	seen := a
	if s.matrix.render.limits.mutates {
		seen = copyValue(a).(map[string]any)
	}
	rendered, err := s.plan.render(seen)
	if err != nil {
		return nil, nil, fmt.Errorf("child generator returned an error on parameter generation: failed to replace parameters in "+
			"generator: %w", err)
	}
	// The selector is applied as it is written.
	rendered.Selector = s.child.Selector
	second, err = s.matrix.childParams(rendered, s.set, s.client)
	return seen, second, err
}

// newPlan prepares the child's templates. Its values block may be left for the child
// itself, as far as the first child's parameters don't fill it in.
func (s *secondChild) newPlan() *renderPlan[argov1alpha1.ApplicationSetGenerator] {
	if s.matrix.version.keepsOwnValues() {
		return newGeneratorPlan(s.matrix.render, s.child.DeepCopy())
	}
	return newRenderPlan(s.matrix.render, s.child.DeepCopy())
}

// untemplatedParams is what a child without templates gives, whatever the first child does.
func (s *secondChild) untemplatedParams() ([]map[string]any, error) {
	if !s.evaluated {
		known, err := s.matrix.childParams(s.plan.value, s.set, s.client)
		if err != nil {
			return nil, err
		}
		s.known, s.evaluated = known, true
	}
	if s.matrix.fresh {
		return s.matrix.origins.copyParams(s.known), nil
	}
	return s.known, nil
}

// newChildGenerator is a nested generator in the shape of a top-level one. Selectors
// of what it nests in turn count only where the set says so.
func newChildGenerator(n *argov1alpha1.ApplicationSetNestedGenerator,
	set *argov1alpha1.ApplicationSet) (*argov1alpha1.ApplicationSetGenerator, error) {
	out := &argov1alpha1.ApplicationSetGenerator{
		List: n.List, Clusters: n.Clusters, Git: n.Git, SCMProvider: n.SCMProvider,
		ClusterDecisionResource: n.ClusterDecisionResource, PullRequest: n.PullRequest, Plugin: n.Plugin, Selector: n.Selector,
	}
	if n.Matrix != nil {
		matrix, err := argov1alpha1.ToNestedMatrixGenerator(n.Matrix)
		if err != nil {
			return nil, err
		}
		out.Matrix = matrix.ToMatrixGenerator()
		dropSelectors(out.Matrix.Generators, set)
	}
	if n.Merge != nil {
		merge, err := argov1alpha1.ToNestedMergeGenerator(n.Merge)
		if err != nil {
			return nil, fmt.Errorf("error retrieving merge generator: %w", err)
		}
		out.Merge = merge.ToMergeGenerator()
		dropSelectors(out.Merge.Generators, set)
	}
	return out, nil
}

func dropSelectors(nested []argov1alpha1.ApplicationSetNestedGenerator, set *argov1alpha1.ApplicationSet) {
	if set.Spec.ApplyNestedSelectors {
		return
	}
	for i := range nested {
		nested[i].Selector = nil
	}
}

func (m *matrixGenerator) childParams(child *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	params, err := childParams(child, m.children, set, m.version, c)
	isNested := child.Matrix != nil || child.Merge != nil
	if err == nil && !m.fresh && !isNested && child.Git == nil {
		params = m.cache.reuseParams(params)
	}
	return params, err
}

// childParams asks the one generator that a child is.
func childParams(child *argov1alpha1.ApplicationSetGenerator, all map[string]generators.Generator, set *argov1alpha1.ApplicationSet,
	v Version, c client.Client) ([]map[string]any, error) {
	results, err := runGenerator(child, all, set, v, c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("child generator returned an error on parameter generation: %w", err)
	case len(results) == 0:
		return nil, errors.New("child generator generated no parameters")
	case len(results) > 1:
		return nil, generators.ErrMoreThenOneInnerGenerators
	}
	return results[0].params, nil
}

// generatorResult is what one generator gives, and its template, which goes over the
// set's.
type generatorResult struct {
	params   []map[string]any
	template *argov1alpha1.ApplicationSetTemplate
}

// runGenerator asks every generator that an entry of a set's generators names,
// as generators.Transform does. That one also flattens every parameter set,
// whether or not there is a selector to match it with.
func runGenerator(g *argov1alpha1.ApplicationSetGenerator, all map[string]generators.Generator, set *argov1alpha1.ApplicationSet, v Version,
	c client.Client) ([]generatorResult, error) {
	var out []generatorResult
	for _, one := range selectGenerators(g, all) {
		params, err := one.GenerateParams(g, set, c)
		if err != nil {
			return nil, err
		}
		if g.Selector != nil {
			if params, err = filterParams(params, g, set, v, c); err != nil {
				return nil, err
			}
		}
		out = append(out, generatorResult{params, one.GetTemplate(g)})
	}
	return out, nil
}

// selectGenerators lists the generators that an entry names, in the library's order.
func selectGenerators(g *argov1alpha1.ApplicationSetGenerator, all map[string]generators.Generator) []generators.Generator {
	var out []generators.Generator
	v := reflect.ValueOf(g).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Selector" && !v.Field(i).IsNil() {
			out = append(out, all[name])
		}
	}
	return out
}

// filterParams has the library match parameters with an entry's selector.
func filterParams(params []map[string]any, g *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet, v Version,
	c client.Client) ([]map[string]any, error) {
	entry := argov1alpha1.ApplicationSetGenerator{List: &argov1alpha1.ListGenerator{}, Selector: g.Selector}
	seen, original := params, map[uintptr]map[string]any{}
	if v.selectsInMaps() {
		seen = make([]map[string]any, len(params))
		for i := range params {
			seen[i] = openStringMaps(params[i])
			original[mapAddress(seen[i])] = params[i]
		}
	}
	out, err := generators.Transform(entry, map[string]generators.Generator{"List": &fixedGenerator{params: seen}},
		argov1alpha1.ApplicationSetTemplate{}, set, nil, c)
	if err != nil {
		return nil, err
	}
	selected := out[0].Params
	for i := range selected {
		if params, other := original[mapAddress(selected[i])]; other {
			selected[i] = params
		}
	}
	return selected, nil
}

// openStringMaps makes maps of strings, which the library's selectors see as one text,
// maps of anything, which they look into.
func openStringMaps(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		switch value := value.(type) {
		case map[string]string:
			inner := make(map[string]any, len(value))
			for k, v := range value {
				inner[k] = v
			}
			out[key] = inner
		case map[string]any:
			out[key] = openStringMaps(value)
		default:
			out[key] = value
		}
	}
	return out
}

// fixedGenerator is a list generator that gives what it has.
type fixedGenerator struct {
	generators.Generator
	params []map[string]any
}

// GenerateParams returns the parameters.
func (f *fixedGenerator) GenerateParams(*argov1alpha1.ApplicationSetGenerator, *argov1alpha1.ApplicationSet,
	client.Client) ([]map[string]any, error) {
	return f.params, nil
}

// GetTemplate is the entry's own.
func (f *fixedGenerator) GetTemplate(entry *argov1alpha1.ApplicationSetGenerator) *argov1alpha1.ApplicationSetTemplate {
	return &entry.List.Template
}

// joinParams combines one set of parameters of each child.
func joinParams(a, b map[string]any, goTemplate bool) (map[string]any, error) {
	if !goTemplate {
		return joinFlat(a, b)
	}
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, b)
	if err := overrideParams(out, a); err != nil {
		return nil, fmt.Errorf("failed to merge params from the second generator in the matrix generator with the first: %w", err)
	}
	return out, nil
}

// joinFlat combines strings; the same key with two values is an error, of several the first
// by name.
func joinFlat(a, b map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(a)+len(b))
	for k, v := range a {
		out[k] = flattenValue(v)
	}
	var twice *string
	for k, v := range b {
		v := flattenValue(v)
		if have, there := out[k]; there && have != v {
			if twice == nil || k < *twice {
				twice = &k
			}
			continue
		}
		out[k] = v
	}
	if twice != nil {
		return nil, fmt.Errorf("failed to combine string maps with merging params for the matrix generator: found duplicate key %s with "+
			"different value, a: %s ,b: %s", *twice, out[*twice], flattenValue(b[*twice]))
	}
	return out, nil
}

func flattenValue(v any) any {
	if _, ok := v.(string); ok {
		return v
	}
	return fmt.Sprintf("%v", v)
}

// overrideParams puts src over dst as the controller's merging does: maps into
// maps, anything else in place of what is there. Maps below dst are not
// written into but replaced.
func overrideParams(dst, src map[string]any) error {
	for key, value := range src {
		if !isMap(value) || !isMap(dst[key]) {
			dst[key] = value
			continue
		}
		both, err := overrideMap(dst[key], value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		dst[key] = both
	}
	return nil
}

func isMap(v any) bool {
	switch v.(type) {
	case map[string]any, map[string]string:
		return true
	}
	return false
}

func overrideMap(dst, src any) (any, error) {
	switch d := dst.(type) {
	case map[string]any:
		out := make(map[string]any, len(d))
		maps.Copy(out, d)
		switch s := src.(type) {
		case map[string]any:
			return out, overrideParams(out, s)
		case map[string]string:
			for k, v := range s {
				out[k] = v
			}
		}
		return out, nil
	case map[string]string:
		s, ok := src.(map[string]string)
		if more, other := src.(map[string]any); other && len(more) > 0 {
			// The library panics (argo-cd#16417).
			return nil, fmt.Errorf("%w: it can't merge a map of anything into a map of strings", errPanicked)
		}
		out := maps.Clone(d)
		if ok && len(s) > 0 && out == nil {
			out = map[string]string{}
		}
		maps.Copy(out, s)
		return out, nil
	}
	return dst, nil
}
