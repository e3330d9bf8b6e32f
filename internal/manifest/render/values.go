package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
)

// collectValues are what the Application gives a chart: values files in their order,
// then the values of the Application itself, then single parameters.
func (r *rendering) collectValues(dir string, o *helmOptions, env buildEnv) (map[string]any, error) {
	vals := map[string]any{}
	list, err := r.findValueFiles(dir, o, env)
	if err != nil {
		return nil, err
	}
	for _, file := range list {
		data, err := file.from.read(file.path)
		if err != nil {
			return nil, err
		}
		if vals, err = mergeYAMLValues(vals, data); err != nil {
			return nil, fmt.Errorf("the values file %s: %w", file.path, err)
		}
	}
	own := []byte(o.Values)
	if len(o.ValuesObject) > 0 && string(o.ValuesObject) != "null" {
		own = o.ValuesObject
	}
	if vals, err = mergeYAMLValues(vals, own); err != nil {
		return nil, fmt.Errorf("the Application's values: %w", err)
	}
	return vals, r.applyParameters(vals, dir, o, env)
}

// resolveValuePath is where a values file lies, from the root of the tree that is given
// with it. A leading slash and a $name of a source of this repository mean the
// root, the latter of the tree that its source is read at.
func (r *rendering) resolveValuePath(dir, name string, env buildEnv) (*treeReader, string, error) {
	if ref, rest, _ := strings.Cut(name, "/"); strings.HasPrefix(ref, "$") {
		if s := r.findRefSource(strings.TrimPrefix(ref, "$")); s != nil {
			from := r.trees[s.Branch]
			if !s.InTree {
				from = r.trees[s.external().key()]
			}
			if from == nil && s.InTree {
				return nil, "", newUnrenderable("it is in another repository or revision", s.RepoURL)
			} else if from == nil {
				return nil, "", newMissing(s.external(), "it is in another repository or revision", s.RepoURL)
			}
			return from, env.expand(rest), nil
		}
	}
	name = env.expand(name)
	switch scheme, _, ok := strings.Cut(name, "://"); {
	case ok && !strings.Contains(scheme, "/"):
		return nil, "", newUnrenderable("it is outside the repository", name)
	case path.IsAbs(name):
		return r.files, strings.TrimLeft(path.Clean(name), "/"), nil
	}
	return r.files, path.Join(dir, name), nil
}

// findRefSource finds the source that goes by a name.
func (r *rendering) findRefSource(name string) *Source {
	for i := range r.in.Sources {
		if s := &r.in.Sources[i]; s.Ref == name && name != "" {
			return s
		}
	}
	return nil
}

// mergeYAMLValues puts a YAML mapping over values.
func mergeYAMLValues(vals map[string]any, data []byte) (map[string]any, error) {
	over := map[string]any{}
	if err := decodeYAML(data, &over); err != nil {
		return nil, err
	}
	return mergeValues(vals, over), nil
}

// mergeValues merges mappings; anything else of over replaces what is under it.
func mergeValues(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		if a, ok := out[key].(map[string]any); ok {
			if b, ok := value.(map[string]any); ok {
				out[key] = mergeValues(a, b)
				continue
			}
		}
		out[key] = value
	}
	return out
}

// SetParameter sets one of a chart's values by its path, as --set does, or --set-string for a text.
func SetParameter(values map[string]any, name, value string, asText bool) error {
	if asText {
		return strvals.ParseIntoString(name+"="+escapeCommas(value), values)
	}
	return strvals.ParseInto(name+"="+escapeCommas(value), values)
}

// applyParameters sets single values, as --set, --set-string and --set-file do. Where parameters
// have one name the last counts. The repo server sets them in no particular order; here they go by
// their names.
func (r *rendering) applyParameters(vals map[string]any, dir string, o *helmOptions, env buildEnv) error {
	plain, text, named := map[string]string{}, map[string]string{}, map[string]string{}
	for _, p := range o.Parameters {
		if p.ForceString {
			text[p.Name] = env.expand(p.Value)
		} else {
			plain[p.Name] = env.expand(p.Value)
		}
	}
	for _, p := range o.FileParameters {
		named[p.Name] = p.Path
	}
	setFile := func(name, value string) error {
		from, p, err := r.resolveValuePath(dir, value, env)
		if err != nil {
			return err
		}
		read := func(p []rune) (any, error) {
			data, err := from.read(string(p))
			return string(data), err
		}
		return strvals.ParseIntoFile(name+"="+escapeCommas(p), vals, read)
	}
	for _, kind := range []struct {
		what   string
		values map[string]string
		set    func(name, value string) error
	}{
		{"parameter", plain, func(name, value string) error { return SetParameter(vals, name, value, false) }},
		{"parameter", text, func(name, value string) error { return SetParameter(vals, name, value, true) }},
		{"file parameter", named, setFile},
	} {
		for _, name := range slices.Sorted(maps.Keys(kind.values)) {
			if err := kind.set(name, kind.values[name]); err != nil {
				return fmt.Errorf("the %s %s: %w", kind.what, name, err)
			}
		}
	}
	return nil
}

// escapeCommas keeps a value's commas from ending it, as the repo server does; a
// {list} keeps its own.
func escapeCommas(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		return value
	}
	var b strings.Builder
	var last rune
	for _, c := range value {
		if c == ',' && last != '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
		last = c
	}
	return b.String()
}
