package history

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Environment is one environment of a component.
type Environment struct {
	Component, Name string
	Targets         []appset.Target
	Roots           []string // the folders that are its alone, sorted
	Bases           []string // the folders of kustomizations that its own build on, and nobody else's, sorted
	// Shared are its sources' paths that other environments or components have as well, and the folders of
	// kustomizations that other components of the environment build on, too; sorted.
	Shared []string
	Files  []string // the values files, generator files and ApplicationSets that are in none of Roots, sorted
	// Layers are the values files of its targets' sources, and the folders of its kustomizations.
	// Each values file comes after those over which Helm lays it, where two of a source have one
	// name or one is a glob. Each folder comes after those that it builds on.
	Layers [][]string
}

// Overlay is where the environment has what a pipeline carries.
func (e *Environment) Overlay(p *pipeline.Pipeline) fieldedit.Overlay {
	return fieldedit.Overlay{
		Roots: e.Roots, Bases: e.Bases, Shared: e.Shared, Files: e.Files, Layers: e.Layers, Carry: p.Spec.Carry, Environment: e.Name,
		Component: e.Component,
	}
}

// NothingCarried begins what [Environment.NothingCarried] says.
const NothingCarried = "no carried field is found"

// NothingCarried says for people that no carried field was found, and where they
// were looked for.
func (e *Environment) NothingCarried() string {
	text := NothingCarried + ": no folder is this environment's alone"
	if len(e.Roots) > 0 {
		text = fmt.Sprintf(NothingCarried+" below %v", slices.Concat(e.Roots, e.Bases))
	}
	if others := slices.Concat(e.Shared, e.Files); len(others) > 0 {
		text += fmt.Sprintf(", and none with a placeholder in %v, which others may have as well", others)
	}
	return text
}

// Components groups managed targets by component and environment.
// Each is as the branch sees it that its environment lives on: branch is the
// tracked one, for environments that have none of their own. bases are what the kustomizations of
// [BaseFolders] build on, by branch; in those of one that is missing nothing is looked for.
func Components(fl *appset.TargetSet, branch string, bases map[string]*Bases) map[string]map[string]*Environment {
	out := map[string]map[string]*Environment{}
	owned := findOwners(fl, branch, bases)
	for _, t := range fl.Targets {
		if !t.Managed() {
			continue
		}
		envs := out[t.Component]
		if envs == nil {
			envs = map[string]*Environment{}
			out[t.Component] = envs
		}
		e := envs[t.Environment]
		if e == nil {
			e = &Environment{Component: t.Component, Name: t.Environment}
			envs[t.Environment] = e
		}
		at := cmp.Or(t.Branch, branch)
		t = appset.ViewFromBranch(t, at, branch)
		e.Targets = append(e.Targets, t)
		for _, root := range appset.Roots(t) {
			if owned.roots.isAlone(branchFolder{at, root}, ownerName(&t)) {
				e.Roots = append(e.Roots, root)
			}
		}
		e.addBases(t, at, bases[at], owned)
		e.Shared = append(e.Shared, appset.Folders(t)...)
		e.Files = append(e.Files, targetFiles(t)...)
		e.addLayers(t)
	}
	for _, envs := range out {
		for _, e := range envs {
			own := func(folder string) bool { return slices.Contains(e.Roots, folder) }
			e.Roots, e.Bases = appset.SortedUnique(e.Roots), appset.SortedUnique(e.Bases)
			e.Shared = slices.DeleteFunc(appset.SortedUnique(e.Shared), own)
			e.Files = slices.DeleteFunc(appset.SortedUnique(e.Files), func(file string) bool { return own(path.Dir(file)) })
		}
	}
	return out
}

// addBases adds the folders that the kustomizations of a target's folders build on. A folder of
// this environment of this component alone is its own. A folder of this environment of several
// components, such as a kustomize Component with all images, is shared.
func (e *Environment) addBases(t appset.Target, at string, bases *Bases, owned *folderOwners) {
	for _, folder := range appset.Folders(t) {
		if !slices.Contains(e.Roots, folder) {
			continue
		}
		for _, way := range bases.ways(folder) {
			// From the folder on down to the first that isn't its alone: what that builds on is others' as well.
			first := len(way) - 1
			for first > 0 && owned.isOwnBase(branchFolder{at, way[first-1]}, ownerName(&t)) {
				first--
			}
			for _, base := range way[:first] {
				if owned.isOfEnvironment(branchFolder{at, base}, e.Name) {
					e.Shared = append(e.Shared, base)
				}
			}
			way = way[first:]
			e.Bases = append(e.Bases, way[:len(way)-1]...)
			isNew := !slices.ContainsFunc(e.Layers, func(known []string) bool { return slices.Equal(known, way) })
			if len(way) > 1 && isNew {
				e.Layers = append(e.Layers, way)
			}
		}
	}
}

// addLayers adds the values files of a target's sources.
func (e *Environment) addLayers(t appset.Target) {
	for _, s := range t.Sources {
		layers := appset.LayeredValues(t, s)
		names := map[string]bool{}
		for _, file := range layers {
			names[path.Base(file)] = true
		}
		isNew := !slices.ContainsFunc(e.Layers, func(known []string) bool { return slices.Equal(known, layers) })
		hasGlob := len(layers) > 1 && slices.ContainsFunc(layers, appset.IsValueGlob) // it may name any
		if isNew && (hasGlob || len(names) < len(layers)) {
			e.Layers = append(e.Layers, layers)
		}
	}
}

// FindVersions finds the carried fields that have a version of an image or a chart which the files name, at the tree of
// the environment's branch. The errors are those of [fieldedit.FindVersions].
func (e *Environment) FindVersions(tree fs.FS, p *pipeline.Pipeline) ([]fieldedit.NamedVersion, error) {
	var layers [][]string
	for _, t := range e.Targets {
		for _, s := range t.Sources {
			layers = append(layers, appset.LayeredValues(t, s))
		}
	}
	return fieldedit.FindVersions(tree, e.Overlay(p), layers)
}

// targetFiles are the single files that a target is made from.
func targetFiles(t appset.Target) []string {
	out := slices.Concat(t.GeneratorFiles, t.SetFiles)
	for _, s := range t.Sources {
		out = append(out, appset.FilesOf(t, s).Values...)
	}
	if t.ApplicationSetFile != "" {
		out = append(out, t.ApplicationSetFile)
	}
	return out
}

// branchFolder is a folder of a branch.
type branchFolder struct{ branch, root string }
