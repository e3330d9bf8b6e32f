package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// mergeGenerator is the library's merge generator, at the outermost of merges
// in each other. What is merged depends on the parameters with the same merge
// keys alone, so that the library is asked again only for those that changed.
type mergeGenerator struct {
	generators.Generator // over children that give copies

	children map[string]generators.Generator
	origins  *origins
	cache    *resultCache // nil: nothing is remembered
}

func newMergeGenerator(g *generatorRun, children, fresh map[string]generators.Generator) *mergeGenerator {
	return &mergeGenerator{generators.NewMergeGenerator(fresh), children, g.origins, g.cache}
}

// mergeGroup is what is merged into one set of parameters.
type mergeGroup struct {
	key    string             // the values of the merge keys, and how they are merged
	parts  [][]map[string]any // of each child; more than one is an error
	merged map[string]any     // nil: the first child has none
}

// GenerateParams gives the merged parameters.
func (g *mergeGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet, c client.Client) ([]map[string]any, error) {
	groups, err := g.groupParams(spec, set, c)
	if err != nil {
		return nil, err
	}
	if groups == nil {
		out, err := g.Generator.GenerateParams(spec, set, c)
		for _, params := range out {
			g.origins.extractMarks(params)
		}
		return out, err
	}
	var changed []*mergeGroup
	for i, one := range groups {
		if old := g.cache.findGroup(one); old != nil {
			groups[i] = old
		} else {
			changed = append(changed, one)
		}
	}
	if err := mergeGroups(changed, spec.Merge.MergeKeys, set, c); err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, one := range groups {
		g.cache.storeGroup(one)
		if one.merged != nil {
			g.origins.recordJoined(one.merged, slices.Concat(one.parts...)...)
			out = append(out, one.merged)
		}
	}
	return out, nil
}

// groupParams asks the children; nil if it takes the library to do so: children
// that combine others share maps among what they give, which a merge writes
// into one after the other.
func (g *mergeGenerator) groupParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet, c client.Client) ([]*mergeGroup, error) {
	if spec == nil || spec.Merge == nil || len(spec.Merge.Generators) < 2 || len(spec.Merge.MergeKeys) == 0 {
		return nil, nil
	}
	all := spec.Merge.Generators
	if slices.ContainsFunc(all, func(n argov1alpha1.ApplicationSetNestedGenerator) bool { return n.Matrix != nil || n.Merge != nil }) {
		return nil, nil
	}
	how, err := json.Marshal([]any{set.Spec.GoTemplate, spec.Merge.MergeKeys, len(all)})
	if err != nil {
		return nil, err
	}
	out, by := []*mergeGroup{}, map[string]*mergeGroup{}
	for i := range all {
		child, err := newChildGenerator(&all[i], set)
		if err != nil {
			return nil, err
		}
		results, err := runGenerator(child, g.children, set, c)
		if err != nil {
			return nil, fmt.Errorf("error getting param sets from generators: error getting params from generator %d of %d: %w", i+1, len(all), err)
		}
		if len(results) != 1 {
			return nil, nil // the library says what is wrong with it
		}
		params := results[0].params
		if child.Git == nil {
			params = g.cache.reuseParams(params)
		}
		for _, p := range params {
			values := map[string]any{}
			for _, key := range spec.Merge.MergeKeys {
				values[key] = p[key]
			}
			key, err := json.Marshal(values)
			if err != nil {
				return nil, nil // likewise
			}
			one := by[string(key)]
			if one == nil {
				one = &mergeGroup{key: string(how) + string(key), parts: make([][]map[string]any, len(all))}
				by[string(key)] = one
				out = append(out, one)
			}
			one.parts[i] = append(one.parts[i], p)
		}
	}
	return out, nil
}

// groupKey is a parameter that tells, through a merge, which group it is.
const groupKey = "\x00group"

// mergeGroups has the library merge groups.
func mergeGroups(groups []*mergeGroup, keys []string, set *argov1alpha1.ApplicationSet, c client.Client) error {
	if len(groups) == 0 {
		return nil
	}
	children := &numberedGenerator{params: make([][]map[string]any, len(groups[0].parts))}
	for n, one := range groups {
		for i, part := range one.parts {
			for _, params := range copyParams(part) {
				if params == nil {
					params = map[string]any{}
				}
				params[groupKey] = strconv.Itoa(n)
				children.params[i] = append(children.params[i], params)
			}
		}
	}
	spec := &argov1alpha1.MergeGenerator{MergeKeys: keys}
	for i := range children.params {
		spec.Generators = append(spec.Generators, argov1alpha1.ApplicationSetNestedGenerator{List: &argov1alpha1.ListGenerator{ElementsYaml: strconv.Itoa(i)}})
	}
	all, err := generators.NewMergeGenerator(map[string]generators.Generator{"List": children}).
		GenerateParams(&argov1alpha1.ApplicationSetGenerator{Merge: spec}, set, c)
	if err != nil {
		return err
	}
	for _, params := range all {
		text, _ := params[groupKey].(string)
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(groups) {
			return fmt.Errorf("merged parameters come of group %q", text)
		}
		delete(params, groupKey)
		groups[n].merged = shareValues(params, groups[n].parts[0])
	}
	return nil
}

// shareValues gives merged parameters those maps and lists of the first child's
// that are as they were, to hold them in memory once.
func shareValues(merged map[string]any, base []map[string]any) map[string]any {
	for _, own := range base {
		for key, value := range maps.All(merged) {
			if old, there := own[key]; there && isTree(value) && equalValues(value, old) {
				merged[key] = old
			}
		}
	}
	return merged
}

func isTree(v any) bool {
	_, list := v.([]any)
	return list || isMap(v)
}

// numberedGenerator is a list generator whose elementsYaml says which of some
// parameters it gives.
type numberedGenerator struct {
	generators.Generator
	params [][]map[string]any
}

// GenerateParams returns the parameters of a number.
func (g *numberedGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, _ *argov1alpha1.ApplicationSet, _ client.Client) ([]map[string]any, error) {
	n, err := strconv.Atoi(spec.List.ElementsYaml)
	if err != nil {
		return nil, err
	}
	return g.params[n], nil
}

// GetTemplate is the entry's own.
func (g *numberedGenerator) GetTemplate(spec *argov1alpha1.ApplicationSetGenerator) *argov1alpha1.ApplicationSetTemplate {
	return &spec.List.Template
}
