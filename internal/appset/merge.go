package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/imdario/mergo"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// mergeGenerator is the merge generator. The library's writes into what its children give, doesn't
// say what came of which, and gives the result in random order. This one gives the same parameters
// in the first child's order, and merges again only changed ones: a merge depends on the parameters
// with the same merge keys alone.
type mergeGenerator struct {
	generators.Generator // the library's, for all but the parameters

	children map[string]generators.Generator
	// fresh are children that give parameters to nobody else.
	fresh   map[string]generators.Generator
	inner   bool // the caller is a merge too, which writes into the result
	origins *origins
	cache   *resultCache
	version Version
}

func newMergeGenerator(g *generatorRun, children, fresh map[string]generators.Generator, inner bool) *mergeGenerator {
	return &mergeGenerator{generators.NewMergeGenerator(fresh), children, fresh, inner, g.origins, g.cache, g.version}
}

// mergeGroup is what is merged into one set of parameters.
type mergeGroup struct {
	key    string           // the values of the merge keys, and how they are merged
	parts  []map[string]any // the first child's, and those of others that have the same keys
	merged map[string]any
}

// GenerateParams gives the merged parameters.
func (m *mergeGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil || spec.Merge == nil {
		return nil, generators.EmptyAppSetGeneratorError
	}
	all := spec.Merge.Generators
	if len(all) < 2 {
		return nil, generators.ErrLessThanTwoGeneratorsInMerge
	}
	// Children that combine others share maps among what they give, which the
	// controller's merge writes into one after the other, and so must this one.
	inPlace := m.inner || slices.ContainsFunc(all, func(n argov1alpha1.ApplicationSetNestedGenerator) bool {
		return n.Matrix != nil ||
			n.Merge != nil
	})
	children := m.children
	if inPlace {
		children = m.fresh
	}
	given := make([][]map[string]any, len(all))
	for i := range all {
		child, err := newChildGenerator(&all[i], set)
		if err == nil {
			given[i], err = childParams(child, children, set, m.version, c)
		}
		if err != nil {
			return nil, fmt.Errorf("error getting param sets from generators: error getting params from generator %d of %d: %w", i+1,
				len(all), err)
		}
		if !inPlace && child.Git == nil {
			given[i] = m.cache.reuseParams(given[i])
		}
	}
	groups, err := groupParams(given, spec.Merge.MergeKeys, set.Spec.GoTemplate)
	if err != nil {
		return nil, fmt.Errorf("error getting param sets by merge key: %w", err)
	}
	out := make([]map[string]any, 0, len(groups))
	for _, one := range groups {
		if old := m.cache.findGroup(one); old != nil {
			one = old
		} else if err := one.mergeParts(set.Spec.GoTemplate, m.version.mergesTyped(), inPlace); err != nil {
			return nil, err
		}
		if !inPlace {
			m.cache.storeGroup(one)
		}
		m.origins.recordJoined(one.merged, one.parts...)
		out = append(out, one.merged)
	}
	return out, nil
}

// groupParams groups the children's parameters by the values of the merge keys, in the order of the
// first child's. Parameters that the first child lacks are left out.
func groupParams(given [][]map[string]any, keys []string, goTemplate bool) ([]*mergeGroup, error) {
	if len(keys) == 0 {
		return nil, generators.ErrNoMergeKeys
	}
	how, err := json.Marshal([]any{goTemplate, keys, len(given)})
	if err != nil {
		return nil, err
	}
	sorted := SortedUnique(slices.Clone(keys))
	out := make([]*mergeGroup, 0, len(given[0]))
	by := make(map[string]*mergeGroup, len(given[0]))
	for i, list := range given {
		seen := make(map[string]bool, len(list))
		for _, params := range list {
			key, err := appendMergeKey(how, sorted, params)
			if err != nil {
				return nil, fmt.Errorf("error marshalling param set key json: %w", err)
			}
			if seen[key] {
				return nil, fmt.Errorf("%w. Duplicate key was %s", generators.ErrNonUniqueParamSets, key[len(how):])
			}
			seen[key] = true
			one := by[key]
			if one == nil && i == 0 {
				one = &mergeGroup{key: key, parts: make([]map[string]any, 0, len(given))}
				by[key] = one
				out = append(out, one)
			}
			if one != nil {
				one.parts = append(one.parts, params)
			}
		}
	}
	return out, nil
}

// appendMergeKey appends an object of parameters' values, by sorted keys, as encoding/json
// writes it.
func appendMergeKey(prefix []byte, sorted []string, params map[string]any) (string, error) {
	out := append(make([]byte, 0, len(prefix)+64), prefix...)
	next := byte('{')
	for _, key := range sorted {
		out = append(out, next)
		next = ','
		for i, value := range [...]any{key, params[key]} {
			if i > 0 {
				out = append(out, ':')
			}
			if s, ok := value.(string); ok && isPlainText(s) {
				out = append(append(append(out, '"'), s...), '"')
				continue
			}
			raw, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			out = append(out, raw...)
		}
	}
	return string(append(out, '}')), nil
}

// isPlainText says that encoding/json writes a text as it is, in quotation marks.
func isPlainText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// mergeParts merges as the controller does, into the first part if inPlace. Without Go
// templates, typed keeps the values that aren't strings.
func (m *mergeGroup) mergeParts(goTemplate, typed, inPlace bool) error {
	m.merged = m.parts[0]
	if goTemplate && !inPlace && len(m.parts) > 1 {
		m.merged = make(map[string]any, len(m.parts[0]))
		maps.Copy(m.merged, m.parts[0])
	}
	for _, part := range m.parts[1:] {
		switch {
		case !goTemplate && typed:
			flat := make(map[string]any, len(m.merged)+len(part))
			maps.Copy(flat, m.merged)
			maps.Copy(flat, part)
			m.merged = flat
		case !goTemplate:
			flat, err := utils.CombineStringMapsAllowDuplicates(m.merged, part)
			if err != nil {
				return fmt.Errorf("error combining string maps: %w", err)
			}
			m.merged = utils.ConvertToMapStringInterface(flat)
		case inPlace:
			if err := mergo.Merge(&m.merged, part, mergo.WithOverride); err != nil {
				return fmt.Errorf("error merging base param set with override param set: %w", err)
			}
		default:
			if err := overrideParams(m.merged, part); err != nil {
				return err
			}
		}
	}
	return nil
}
