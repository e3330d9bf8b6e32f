package checkout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
)

// maxKustomizations bounds those that are read to find out who builds on whom.
const maxKustomizations = 50_000

// kustomizations are those of a tree, and what they name in it.
type kustomizations struct {
	uses      map[string][]string // by folder: the folders and files of its resources and components
	users     map[string]int      // how many use a folder
	component map[string]bool     // folders that aren't built by themselves
	resources map[string]bool     // files that some take as they are
	patches   map[string]bool     // files that some patch with
}

// kustomization is what is read of one.
type kustomization struct {
	Kind                  string      `yaml:"kind"`
	Resources             []string    `yaml:"resources"`
	Bases                 []string    `yaml:"bases"`
	Components            []string    `yaml:"components"`
	Patches               []patchFile `yaml:"patches"`
	PatchesJSON6902       []patchFile `yaml:"patchesJson6902"`
	PatchesStrategicMerge []string    `yaml:"patchesStrategicMerge"`
}

type patchFile struct {
	Path string `yaml:"path"`
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// readKustomizations reads all kustomizations of a tree, as far as they can be read.
func (t *Tree) readKustomizations(ctx context.Context) (*kustomizations, error) {
	var names []string
	err := t.FS.List(ctx, func(name string, mode fs.FileMode, _ string) error {
		if appset.IsKustomization(path.Base(name)) && mode.IsRegular() && len(names) < maxKustomizations {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &kustomizations{uses: map[string][]string{}, users: map[string]int{}, component: map[string]bool{}, resources: map[string]bool{},
		patches: map[string]bool{}}
	for _, name := range names {
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			return nil, err
		}
		var k kustomization
		_ = yaml.Unmarshal(data, &k) // what can be read of it counts; building it says what is wrong
		out.add(path.Dir(name), &k)
	}
	return out, nil
}

func (ku *kustomizations) add(folder string, k *kustomization) {
	below := func(name string) string {
		at := path.Join(folder, name)
		if path.IsAbs(name) || !fs.ValidPath(at) {
			return "" // an address, or what is out of the tree
		}
		return at
	}
	ku.component[folder] = k.Kind == "Component"
	for _, name := range slices.Concat(k.Resources, k.Bases, k.Components) {
		if at := below(name); at != "" {
			ku.uses[folder] = append(ku.uses[folder], at)
			ku.users[at]++
			ku.resources[at] = true
		}
	}
	patches := slices.Clone(k.PatchesStrategicMerge)
	for _, p := range slices.Concat(k.Patches, k.PatchesJSON6902) {
		patches = append(patches, p.Path)
	}
	for _, name := range patches {
		if at := below(name); name != "" && at != "" {
			ku.patches[at] = true
		}
	}
}

// builtRoots are the kustomizations that nothing else builds on, as far as they have some files.
type builtRoots struct {
	folders []string            // sorted
	files   map[string][]string // of each
	of      map[string][]string // by file, the folders that have it
}

// rootsOf are the kustomizations that some files come out of.
func (ku *kustomizations) rootsOf(files []string) *builtRoots {
	out := &builtRoots{files: map[string][]string{}, of: map[string][]string{}}
	wanted := map[string]bool{}
	for _, file := range files {
		wanted[file] = true
	}
	for _, folder := range slices.Sorted(maps.Keys(ku.uses)) {
		if ku.users[folder] > 0 || ku.component[folder] {
			continue
		}
		seen := map[string]bool{}
		ku.follow(folder, seen)
		for _, at := range slices.Sorted(maps.Keys(seen)) {
			if wanted[at] {
				out.files[folder] = append(out.files[folder], at)
				out.of[at] = append(out.of[at], folder)
			}
		}
		if out.files[folder] != nil {
			out.folders = append(out.folders, folder)
		}
	}
	return out
}

// follow adds what a folder or file leads to.
func (ku *kustomizations) follow(at string, seen map[string]bool) {
	if seen[at] {
		return
	}
	seen[at] = true
	for _, next := range ku.uses[at] {
		ku.follow(next, seen)
	}
}
