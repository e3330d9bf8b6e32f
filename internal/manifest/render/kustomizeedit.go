package render

//lint:file-ignore SA1019 what `kustomize edit add label` writes is deprecated.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/pkg/util"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// applyOptions puts the Application's options into the kustomization, as the repo
// server does with `kustomize edit` before it builds.
func (k *kustomizeFS) applyOptions(dir string, o *kustomizeOptions, env buildEnv) error {
	if o.isEmpty() {
		return nil
	}
	name, data, err := k.readKustomization(dir)
	if err != nil {
		return err
	}
	var spec types.Kustomization
	if err := spec.Unmarshal(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	spec.FixKustomization()
	e := kustomizationEdit{spec: &spec, options: o, env: env}
	for _, step := range []func() error{e.editNames, e.editImages, e.editReplicas, e.editLabels, e.editAnnotations, e.editPatches} {
		if err := step(); err != nil {
			return fmt.Errorf("the Application's kustomize options: %w", err)
		}
	}
	if err := k.addComponents(dir, &spec, o.Components); err != nil {
		return fmt.Errorf("the Application's kustomize options: %w", err)
	}
	out, err := yaml.Marshal(&spec)
	if err != nil {
		return fmt.Errorf("%s with the Application's options: %w", name, err)
	}
	k.edited[name] = out
	return nil
}

func (k *kustomizeOptions) isEmpty() bool {
	renames := k.NamePrefix != "" || k.NameSuffix != "" || k.Namespace != ""
	marks := len(k.CommonLabels) > 0 || len(k.CommonAnnotations) > 0
	edits := len(k.Images) > 0 || len(k.Replicas) > 0 || len(k.Patches) > 0 || len(k.Components) > 0
	return !renames && !marks && !edits
}

// readKustomization finds a folder's kustomization and reads it.
func (k *kustomizeFS) readKustomization(dir string) (string, []byte, error) {
	name := ""
	for _, base := range kustomizationNames {
		at, err := k.files.find(path.Join(dir, base))
		if err != nil {
			return "", nil, err
		}
		if at.kind != kindFile {
			continue
		}
		if name != "" {
			return "", nil, errors.New("there is more than one kustomization")
		}
		name = at.path
	}
	if name == "" {
		return "", nil, errors.New("there is no kustomization for the Application's options")
	}
	data, err := k.files.read(name)
	if err != nil {
		return "", nil, err
	}
	if err := checkAliases(data); err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return name, data, nil
}

// kustomizationEdit puts one Application's options into one kustomization.
type kustomizationEdit struct {
	spec    *types.Kustomization
	options *kustomizeOptions
	env     buildEnv
}

func (k *kustomizationEdit) editNames() error {
	k.spec.NamePrefix = cmp.Or(k.options.NamePrefix, k.spec.NamePrefix)
	k.spec.NameSuffix = cmp.Or(k.options.NameSuffix, k.spec.NameSuffix)
	k.spec.Namespace = cmp.Or(k.options.Namespace, k.spec.Namespace)
	return nil
}

// editImages replaces the kustomization's entries of the same names. An asterisk
// keeps what the kustomization says.
func (k *kustomizationEdit) editImages() error {
	if len(k.options.Images) == 0 {
		return nil
	}
	byName := map[string]types.Image{}
	for _, text := range k.options.Images {
		img, err := parseImage(k.env.expand(text))
		if err != nil {
			return err
		}
		byName[img.Name] = img
	}
	for _, old := range k.spec.Images {
		if img, ok := byName[old.Name]; ok {
			old = resolveAsterisks(img, old)
		}
		byName[old.Name] = old
	}
	k.spec.Images = nil
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		k.spec.Images = append(k.spec.Images, resolveAsterisks(byName[name], types.Image{}))
	}
	return nil
}

// resolveAsterisks is an image with what the old one has in place of asterisks.
func resolveAsterisks(img, old types.Image) types.Image {
	for _, part := range []struct {
		value *string
		old   string
	}{{&img.NewName, old.NewName}, {&img.NewTag, old.NewTag}, {&img.Digest, old.Digest}} {
		if *part.value == "*" {
			*part.value = part.old
		}
	}
	return img
}

// parseImage reads NAME[=NEWNAME][:TAG][@DIGEST].
func parseImage(text string) (types.Image, error) {
	key, value, renamed := strings.Cut(text, "=")
	if !renamed {
		key, value = "", text
	}
	name, tag, digest := util.SplitImageName(value)
	switch {
	case name == text:
		return types.Image{}, fmt.Errorf("the image %q has no new name, tag or digest", text)
	case key == "":
		return types.Image{Name: name, NewTag: tag, Digest: digest}, nil
	}
	return types.Image{Name: key, NewName: name, NewTag: tag, Digest: digest}, nil
}

func (k *kustomizationEdit) editReplicas() error {
	if len(k.options.Replicas) == 0 {
		return nil
	}
	byName := map[string]types.Replica{}
	for _, r := range slices.Backward(k.spec.Replicas) { // of two of a name the first counts
		byName[r.Name] = r
	}
	for _, r := range k.options.Replicas {
		count, err := strconv.ParseInt(r.Count.String(), 10, 64)
		if err != nil {
			return fmt.Errorf("the replicas of %s: %q is no number", r.Name, r.Count)
		}
		byName[r.Name] = types.Replica{Name: r.Name, Count: count}
	}
	k.spec.Replicas = nil
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		k.spec.Replicas = append(k.spec.Replicas, byName[name])
	}
	return nil
}

func (k *kustomizationEdit) editLabels() error {
	if len(k.options.CommonLabels) == 0 {
		return nil
	}
	to := map[string]string{}
	if k.options.LabelWithoutSelector {
		k.spec.Labels = append(k.spec.Labels, types.Label{Pairs: to})
	} else {
		if k.spec.CommonLabels == nil {
			k.spec.CommonLabels = to
		}
		to = k.spec.CommonLabels
	}
	return addPairs("label", to, k.options.CommonLabels, k.options.ForceCommonLabels, k.env.expand)
}

func (k *kustomizationEdit) editAnnotations() error {
	if len(k.options.CommonAnnotations) == 0 {
		return nil
	}
	if k.spec.CommonAnnotations == nil {
		k.spec.CommonAnnotations = map[string]string{}
	}
	expand := func(s string) string { return s }
	if k.options.CommonAnnotationsEnvsubst {
		expand = k.env.expand
	}
	return addPairs("annotation", k.spec.CommonAnnotations, k.options.CommonAnnotations, k.options.ForceCommonAnnotations, expand)
}

// addPairs adds labels or annotations. One pair of quotes around a value is
// the command line's, on which the repo server puts it.
func addPairs(what string, to, pairs map[string]string, force bool, expand func(string) string) error {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		key, value, _ := strings.Cut(key+":"+expand(pairs[key]), ":")
		if key == "" {
			return fmt.Errorf("a %s has no name", what)
		}
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		if _, there := to[key]; there && !force {
			return fmt.Errorf("the %s %s is already in the kustomization", what, key)
		}
		to[key] = value
	}
	return nil
}

func (k *kustomizationEdit) editPatches() error {
	for _, raw := range k.options.Patches {
		var p types.Patch
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("a patch: %w", err)
		}
		k.spec.Patches = append(k.spec.Patches, p)
	}
	return nil
}

// addComponents adds kustomize components by their paths from the source's
// folder; a path may have wildcards.
func (k *kustomizeFS) addComponents(dir string, spec *types.Kustomization, patterns []string) error {
	for _, pattern := range patterns {
		if isWebAddress(pattern) || isGitAddress(pattern) {
			return newUnrenderable("a component is outside the repository", pattern)
		}
		found, err := k.Glob(path.Join(mountPoint, dir, pattern))
		if err != nil {
			return fmt.Errorf("the component %s: %w", pattern, err)
		}
		if len(found) == 0 {
			return fmt.Errorf("the component %s is not there", pattern)
		}
		for _, p := range found {
			rel, err := filepath.Rel(path.Join(mountPoint, dir), p)
			if err != nil {
				return fmt.Errorf("the component %s: %w", p, err)
			}
			if !slices.Contains(spec.Components, rel) {
				spec.Components = append(spec.Components, rel)
			}
		}
	}
	return nil
}
