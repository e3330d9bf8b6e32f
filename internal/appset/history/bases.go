package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

const (
	// maxBaseWays bounds the ways along which one folder's kustomizations build on each other: with more of
	// them it counts as if it built on nothing.
	maxBaseWays = 100
	// maxBaseDepth bounds a way's length likewise.
	maxBaseDepth = 50
	// maxKustomizationSize bounds the bytes that are read of one.
	maxKustomizationSize = 1 << 20
	// minBasesAhead are worth reading their kustomizations in one go.
	minBasesAhead = 8
)

// Bases says which folders the kustomizations of one commit build on, as far as targets lead to them. It doesn't change
// once read, and is safe for concurrent use. nil: they build on nothing.
type Bases struct {
	folders map[string]kustomized
}

// kustomized is what a folder's kustomization names; the zero one has none that can be read.
type kustomized struct {
	has  bool
	uses []string // folders from the root, whether they have one or not
}

// BaseFolders are the folders from which targets are built, by the branch that they are seen from; sorted.
func BaseFolders(fl *appset.TargetSet, branch string) map[string][]string {
	out := map[string][]string{}
	for _, t := range fl.Targets {
		for _, at := range appset.TargetBranches(t, branch) {
			out[at] = append(out[at], appset.Folders(appset.ViewFromBranch(t, at, branch))...)
		}
	}
	for at := range out {
		out[at] = appset.SortedUnique(out[at])
	}
	return out
}

// ReadBases reads what the kustomizations of folders build on. before is what they did in another tree, from which
// this one differs by the changed files; with nil all are read. Where nothing is different, before itself is returned. The
// error is that of a context that ended, or of a tree that can't be read.
func ReadBases(ctx context.Context, tree fs.FS, folders []string, before *Bases, changed []string) (*Bases, error) {
	stale := map[string]bool{}
	for _, file := range changed {
		if appset.IsKustomization(path.Base(file)) {
			stale[path.Dir(file)] = true
		}
	}
	out, isSame := &Bases{folders: map[string]kustomized{}}, before != nil
	for level := folders; len(level) > 0; {
		var missing, next []string
		for _, folder := range level {
			if _, known := out.folders[folder]; known {
				continue
			}
			k, known := before.folder(folder)
			if out.folders[folder] = k; !known || stale[folder] {
				missing = append(missing, folder)
			} else {
				next = append(next, k.uses...)
			}
		}
		files, err := aheadOf(ctx, tree, missing)
		if err != nil {
			return nil, err
		}
		for _, folder := range missing {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			k, err := readKustomized(files, folder)
			if err != nil {
				return nil, fmt.Errorf("read the kustomization of %s: %w", folder, err)
			}
			known, wasThere := before.folder(folder)
			isSame = isSame && wasThere && known.has == k.has && slices.Equal(known.uses, k.uses)
			out.folders[folder] = k
			next = append(next, k.uses...)
		}
		level = next
	}
	if isSame && len(out.folders) == len(before.folders) { // all that weren't read are those from before
		return before, nil
	}
	return out, nil
}

// aheadOf is a tree that has read the kustomizations of folders already, where it can in one go.
func aheadOf(ctx context.Context, tree fs.FS, folders []string) (fs.FS, error) {
	if t, ok := tree.(*git.Tree); ok && len(folders) >= minBasesAhead {
		return t.ReadAhead(ctx, folders, func(file string) bool { return appset.IsKustomization(path.Base(file)) })
	}
	return tree, nil
}

// readKustomized reads a folder's kustomization. One behind a link, one of several, and one that nobody can parse counts as
// none: kustomize says what is wrong with it.
func readKustomized(tree fs.FS, folder string) (kustomized, error) {
	file := ""
	for _, name := range appset.KustomizationNames {
		at := path.Join(folder, name)
		info, err := fs.Lstat(tree, at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, git.ErrNotFollowed):
			continue
		case err != nil:
			return kustomized{}, err
		case file != "", !info.Mode().IsRegular(), info.Size() > maxKustomizationSize:
			return kustomized{}, nil
		}
		file = at
	}
	if file == "" {
		return kustomized{}, nil
	}
	data, err := fs.ReadFile(tree, file)
	if err != nil {
		return kustomized{}, err
	}
	named, err := deps.Bases(data)
	if err != nil {
		return kustomized{}, nil
	}
	out := kustomized{has: true}
	for _, name := range named {
		at := path.Join(folder, name)
		if path.IsAbs(name) || at == "." || !fs.ValidPath(at) || slices.Contains(out.uses, at) {
			continue
		}
		out.uses = append(out.uses, at)
	}
	return out, nil
}

func (b *Bases) folder(name string) (kustomized, bool) {
	if b == nil {
		return kustomized{}, false
	}
	k, known := b.folders[name]
	return k, known
}

// below are the folders that a folder's kustomization builds on, by whatever way; sorted.
func (b *Bases) below(folder string) []string {
	seen := map[string]bool{}
	all := []string{folder}
	for i := 0; i < len(all); i++ {
		k, _ := b.folder(all[i])
		for _, next := range k.uses {
			if of, _ := b.folder(next); of.has && !seen[next] && next != folder {
				seen[next] = true
				all = append(all, next)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// ways are the paths from a folder to the folders that it builds on and that build on nothing
// themselves. Each begins at its end, because kustomize lets the last of several values of a field
// win. None where there are too many, or one is too long.
func (b *Bases) ways(folder string) [][]string {
	var out [][]string
	tooMany := false
	var walk func(way []string)
	walk = func(way []string) {
		end := true
		tooMany = tooMany || len(way) > maxBaseDepth
		k, _ := b.folder(way[len(way)-1])
		for _, next := range k.uses {
			if of, _ := b.folder(next); of.has && !slices.Contains(way, next) && !tooMany {
				end = false
				walk(append(slices.Clone(way), next))
			}
		}
		if tooMany = tooMany || len(out) >= maxBaseWays; end && !tooMany && len(way) > 1 {
			slices.Reverse(way)
			out = append(out, way)
		}
	}
	walk([]string{folder})
	if tooMany {
		return nil
	}
	return out
}

// owner is who alone has a folder; several: more than one has it.
type owner struct {
	name    string
	several bool
}

// owners say who has the folders of branches.
type owners map[branchFolder]owner

func (o owners) add(at branchFolder, name string) {
	known, ok := o[at]
	o[at] = owner{name, ok && (known.several || known.name != name)}
}

// isAlone says that nobody but the named one has a folder.
func (o owners) isAlone(at branchFolder, name string) bool { return o[at] == owner{name, false} }

// folderOwners say whose the folders of a pipeline's targets are.
type folderOwners struct {
	roots owners
	bases owners // of roots and of what they build on
	above owners // of the folders in which those lie
	// environments are the owners of bases by environment, whatever component's, and environmentsAbove those of
	// the folders in which they lie.
	environments, environmentsAbove owners
}

// ownerName is an environment of a component as the owner of folders.
func ownerName(t *appset.Target) string { return t.Component + "|" + t.Environment }

// findOwners says which environments of which components have a folder of a branch among their roots, or build on it.
// In one that several share only fields with a placeholder are any of theirs; the same folder of another branch is
// another one.
func findOwners(fl *appset.TargetSet, branch string, bases map[string]*Bases) *folderOwners {
	out := &folderOwners{roots: owners{}, bases: owners{}, above: owners{}, environments: owners{}, environmentsAbove: owners{}}
	below := map[branchFolder][]string{}
	for i := range fl.Targets {
		t, name := &fl.Targets[i], ownerName(&fl.Targets[i])
		for _, at := range appset.TargetBranches(*t, branch) {
			seen := appset.ViewFromBranch(*t, at, branch)
			for _, root := range appset.Roots(seen) {
				out.roots.add(branchFolder{at, root}, name)
				out.addBase(branchFolder{at, root}, t)
			}
			for _, folder := range appset.Folders(seen) {
				from := branchFolder{at, folder}
				if _, known := below[from]; !known {
					below[from] = bases[at].below(folder)
				}
				for _, base := range below[from] {
					out.addBase(branchFolder{at, base}, t)
				}
			}
		}
	}
	return out
}

func (f *folderOwners) addBase(at branchFolder, t *appset.Target) {
	addWithParents(f.environments, f.environmentsAbove, at, t.Environment)
	addWithParents(f.bases, f.above, at, ownerName(t))
}

// addWithParents adds the owner of a folder, and of those in which it lies.
func addWithParents(folders, above owners, at branchFolder, name string) {
	if folders.isAlone(at, name) {
		return
	}
	folders.add(at, name)
	for up := path.Dir(at.root); up != "." && at.root != "."; up = path.Dir(up) {
		above.add(branchFolder{at.branch, up}, name)
	}
}

// isOfEnvironment says that the components of one environment alone build on a folder, that it is no target's
// own, and that no other environment has anything below it.
func (f *folderOwners) isOfEnvironment(at branchFolder, environment string) bool {
	_, isRoot := f.roots[at]
	above, any := f.environmentsAbove[at]
	return !isRoot && f.environments.isAlone(at, environment) && (!any || above == owner{environment, false})
}

// isOwnBase says that a folder is built on by the named one alone, and by itself by nobody, and that nobody else
// has anything below it.
func (f *folderOwners) isOwnBase(at branchFolder, name string) bool {
	_, isRoot := f.roots[at]
	above, any := f.above[at]
	return !isRoot && f.bases.isAlone(at, name) && (!any || above == owner{name, false})
}
