package render

//lint:file-ignore SA1019 people have kustomizations with deprecated fields.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"sigs.k8s.io/kustomize/api/types"
)

// checkKustomization refuses a kustomization that refers to anything outside the tree:
// kustomize would fetch it. It reads the file as kustomize itself does.
func (k *kustomizeFS) checkKustomization(files *treeReader, name string, data []byte) error {
	var spec types.Kustomization
	if err := spec.Unmarshal(data); err != nil {
		return nil // kustomize says it better, and reads no further
	}
	if len(spec.OpenAPI) > 0 && !k.exclusive {
		return errOwnSchema
	}
	if len(spec.HelmCharts) > 0 || len(spec.HelmChartInflationGenerator) > 0 {
		return newUnrenderable(fmt.Sprintf("%s inflates Helm charts, which kustomize does with the helm program", name))
	}
	for _, ref := range listReferences(&spec) {
		if !isWebAddress(ref) && !isGitAddress(ref) {
			continue
		}
		missing := newUnrenderable(name+" refers to what is outside the repository", ref)
		if base, ok := parseRemoteBase(ref); ok && slices.Contains(slices.Concat(spec.Resources, spec.Components, spec.Bases), ref) {
			missing.Externals = []External{base.External}
		}
		return missing
	}
	for _, entry := range slices.Concat(spec.Generators, spec.Transformers, spec.Validators) {
		if err := k.checkPlugin(files, name, entry, 0); err != nil {
			return err
		}
	}
	return k.checkInlineYAML(name, &spec)
}

// listReferences lists every reference of a kustomization that kustomize loads,
// other than plugins' configurations.
func listReferences(spec *types.Kustomization) []string {
	out := slices.Concat(spec.Resources, spec.Components, spec.Bases, spec.Crds, spec.Configurations, []string{spec.OpenAPI["path"]})
	for _, p := range slices.Concat(spec.Patches, spec.PatchesJson6902) {
		out = append(out, p.Path)
	}
	for _, p := range spec.PatchesStrategicMerge {
		out = append(out, string(p))
	}
	for _, r := range spec.Replacements {
		out = append(out, r.Path)
	}
	for _, g := range spec.ConfigMapGenerator {
		out = append(out, listGeneratorFiles(g.KvPairSources)...)
	}
	for _, g := range spec.SecretGenerator {
		out = append(out, listGeneratorFiles(g.KvPairSources)...)
	}
	return out
}

// listGeneratorFiles lists the files of a generator, each also without its key=.
func listGeneratorFiles(s types.KvPairSources) []string {
	out := append([]string{s.EnvSource}, s.EnvSources...)
	for _, f := range s.FileSources {
		out = append(out, f)
		if _, p, ok := strings.Cut(f, "="); ok {
			out = append(out, p)
		}
	}
	return out
}

// isWebAddress says that kustomize takes a reference for a web address.
func isWebAddress(ref string) bool {
	lower := strings.ToLower(ref)
	return strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:")
}

// gitAddressPattern is how an address of a Git repository begins, over SSH also with a user.
var gitAddressPattern = regexp.MustCompile(`(?i)^(?:git::|ssh://|file://|github\.com[/:]|[a-z][a-z0-9-]*@)`)

// isGitAddress says that kustomize may take a reference for a Git repository. It
// looks at the beginning alone, so a folder of such a name counts too.
func isGitAddress(ref string) bool { return gitAddressPattern.MatchString(ref) }

// checkInlineYAML refuses alias bombs in the YAML that a kustomization holds as text.
func (k *kustomizeFS) checkInlineYAML(name string, spec *types.Kustomization) error {
	var texts []string
	for _, p := range slices.Concat(spec.Patches, spec.PatchesJson6902) {
		texts = append(texts, p.Patch)
	}
	for _, p := range spec.PatchesStrategicMerge {
		texts = append(texts, string(p))
	}
	for _, text := range texts {
		if err := checkAliases([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkPlugin checks one entry of a list of plugins: a configuration as text, in a file, or in a
// kustomization that only collects files. A kustomization could put its configuration together out
// of parts, which can't be known to stay in the tree.
func (k *kustomizeFS) checkPlugin(files *treeReader, name, entry string, depth int) error {
	const maxDepth = 10
	if depth > maxDepth {
		return fmt.Errorf("%s: %w: plugins' configurations more than %d folders deep", name, ErrLimit, maxDepth)
	}
	if isWebAddress(entry) || isGitAddress(entry) {
		return newUnrenderable(name+" refers to what is outside the repository", entry)
	}
	if isMapping([]byte(entry)) {
		return checkPluginConfig(name, []byte(entry))
	}
	at, ok := cleanTreePath(path.Join(path.Dir(name), entry))
	if !ok {
		return nil // kustomize refuses it
	}
	found, err := files.find(at)
	if err != nil || found.kind == kindMissing {
		return err
	}
	if found.kind == kindFile {
		data, err := files.read(found.path)
		if err != nil {
			return err
		}
		return checkPluginConfig(found.path, data)
	}
	return k.checkPluginFolder(files, found.path, depth)
}

func (k *kustomizeFS) checkPluginFolder(files *treeReader, dir string, depth int) error {
	for _, base := range kustomizationNames {
		p := path.Join(dir, base)
		data, is, err := files.readIfFile(p)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		var spec types.Kustomization
		if err := spec.Unmarshal(data); err != nil {
			return nil // kustomize says it better
		}
		resources := spec.Resources
		if spec.TypeMeta, spec.Resources = (types.TypeMeta{}), nil; spec.CheckEmpty() == nil {
			return newUnrenderable(p + " puts plugins' configurations together, so that what they read can't be told beforehand")
		}
		for _, r := range resources {
			if err := k.checkPlugin(files, p, r, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// isMapping says that text is YAML whose first document is a mapping: then
// kustomize takes it for a configuration, not for a path.
func isMapping(text []byte) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return bytes.IndexByte(text, '\n') >= 0 // not a path in any case
	}
	return doc.Content[0].Kind == yaml.MappingNode
}

// pluginPathKeys are the keys under which the built-in plugins name files, in
// lower case: they are read without regard to it.
var pluginPathKeys = map[string]bool{"path": true, "paths": true, "files": true, "file": true, "env": true, "envs": true,
	"targetfilepath": true}

// checkPluginConfig refuses a plugin's configuration that names a web address
// where a built-in plugin reads a file. Other plugins never run.
func checkPluginConfig(name string, data []byte) error {
	if err := checkAliases(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			// Readers differ in what they accept, so this one may not decide alone.
			if lower := bytes.ToLower(data); bytes.Contains(lower, []byte("http:")) || bytes.Contains(lower, []byte("https:")) {
				return newUnrenderable(name + " can't be read as YAML and mentions a web address")
			}
			return nil
		}
		if ref := findWebAddress(doc, false); ref != "" {
			return newUnrenderable(name+" refers to what is outside the repository", ref)
		}
	}
}

// findWebAddress finds a web address under a key that names files.
func findWebAddress(v any, file bool) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if ref := findWebAddress(value, file || pluginPathKeys[strings.ToLower(key)]); ref != "" {
				return ref
			}
		}
	case map[any]any:
		for _, value := range v { // with keys that aren't text no plugin can be configured
			if ref := findWebAddress(value, true); ref != "" {
				return ref
			}
		}
	case []any:
		for _, item := range v {
			if ref := findWebAddress(item, file); ref != "" {
				return ref
			}
		}
	case string:
		_, after, _ := strings.Cut(v, "=")
		if file && isWebAddress(v) {
			return v
		} else if file && isWebAddress(after) {
			return after
		}
	}
	return ""
}
