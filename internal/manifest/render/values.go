package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// values are what the Application gives a chart: values files in their order,
// then the values of the Application itself, then single parameters.
func (r *rendering) values(dir string, o *helmOptions, env environment) (map[string]any, error) {
	vals := map[string]any{}
	for _, name := range o.ValueFiles {
		from, p, err := r.valuePath(dir, name, env)
		if err != nil {
			return nil, fmt.Errorf("the values file %s: %w", name, err)
		}
		found, err := from.find(p)
		if err != nil {
			return nil, fmt.Errorf("the values file %s: %w", name, err)
		}
		if found.kind == missing && o.IgnoreMissingValueFiles {
			continue
		}
		if found.kind != file {
			return nil, fmt.Errorf("the values file %s is not there", p)
		}
		data, err := from.read(p)
		if err != nil {
			return nil, err
		}
		if vals, err = overlaid(vals, data); err != nil {
			return nil, fmt.Errorf("the values file %s: %w", p, err)
		}
	}
	own := []byte(o.Values)
	if len(o.ValuesObject) > 0 && string(o.ValuesObject) != "null" {
		own = o.ValuesObject
	}
	vals, err := overlaid(vals, own)
	if err != nil {
		return nil, fmt.Errorf("the Application's values: %w", err)
	}
	return vals, r.parameters(vals, dir, o, env)
}

// valuePath is where a values file lies, from the root of the tree that is given
// with it. A leading slash and a $name of a source of this repository mean the
// root, the latter of the tree that its source is read at.
func (r *rendering) valuePath(dir, name string, env environment) (*files, string, error) {
	if ref, rest, _ := strings.Cut(name, "/"); strings.HasPrefix(ref, "$") {
		if s := r.ref(strings.TrimPrefix(ref, "$")); s != nil {
			from := r.trees[s.Branch]
			if !s.Here || from == nil {
				return nil, "", unrenderable("it is in another repository or revision", s.RepoURL)
			}
			return from, env.expand(rest), nil
		}
	}
	name = env.expand(name)
	switch scheme, _, ok := strings.Cut(name, "://"); {
	case ok && !strings.Contains(scheme, "/"):
		return nil, "", unrenderable("it is outside the repository", name)
	case path.IsAbs(name):
		return r.files, strings.TrimLeft(path.Clean(name), "/"), nil
	}
	return r.files, path.Join(dir, name), nil
}

// ref finds the source that goes by a name.
func (r *rendering) ref(name string) *Source {
	for i := range r.in.Sources {
		if s := &r.in.Sources[i]; s.Ref == name && name != "" {
			return s
		}
	}
	return nil
}

// overlaid puts a YAML mapping over values.
func overlaid(vals map[string]any, data []byte) (map[string]any, error) {
	if err := checkAliases(data); err != nil {
		return nil, err
	}
	over := map[string]any{}
	if err := yaml.Unmarshal(data, &over); err != nil {
		return nil, err
	}
	return overlay(vals, over), nil
}

// overlay merges mappings; anything else of over replaces what is under it.
func overlay(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		if a, ok := out[key].(map[string]any); ok {
			if b, ok := value.(map[string]any); ok {
				out[key] = overlay(a, b)
				continue
			}
		}
		out[key] = value
	}
	return out
}

// parameters sets single values, as --set, --set-string and --set-file do.
// Of parameters of one name the last counts; the repo server sets them in no
// particular order, here they go by their names.
func (r *rendering) parameters(vals map[string]any, dir string, o *helmOptions, env environment) error {
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
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		if err := strvals.ParseInto(name+"="+escaped(plain[name]), vals); err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(text)) {
		if err := strvals.ParseIntoString(name+"="+escaped(text[name]), vals); err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		from, p, err := r.valuePath(dir, named[name], env)
		if err != nil {
			return fmt.Errorf("the file parameter %s: %w", name, err)
		}
		read := func(p []rune) (any, error) {
			data, err := from.read(string(p))
			return string(data), err
		}
		if err := strvals.ParseIntoFile(name+"="+escaped(p), vals, read); err != nil {
			return fmt.Errorf("the file parameter %s: %w", name, err)
		}
	}
	return nil
}

// escaped keeps a value's commas from ending it, as the repo server does; a
// {list} keeps its own.
func escaped(value string) string {
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
