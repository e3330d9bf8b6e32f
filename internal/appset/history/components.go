package history

import (
	"cmp"
	"fmt"
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
	Shared          []string // its sources' paths that other environments or components have as well, sorted
	Files           []string // the values files, generator files and ApplicationSets that are in none of Roots, sorted
	// Layers are the values files of its targets' sources, each after those over which Helm lays it, where two of
	// a source have one name.
	Layers [][]string
}

// Overlay is where the environment has what a pipeline carries.
func (e *Environment) Overlay(p *pipeline.Pipeline) fieldedit.Overlay {
	return fieldedit.Overlay{
		Roots: e.Roots, Shared: e.Shared, Files: e.Files, Layers: e.Layers, Carry: p.Spec.Carry, Environment: e.Name, Component: e.Component,
	}
}

// NothingCarried begins what [Environment.NothingCarried] says.
const NothingCarried = "no carried field is found"

// NothingCarried says for people that no carried field was found, and where they
// were looked for.
func (e *Environment) NothingCarried() string {
	text := NothingCarried + ": no folder is this environment's alone"
	if len(e.Roots) > 0 {
		text = fmt.Sprintf(NothingCarried+" below %v", e.Roots)
	}
	if others := slices.Concat(e.Shared, e.Files); len(others) > 0 {
		text += fmt.Sprintf(", and none with a placeholder in %v, which others may have as well", others)
	}
	return text
}

// Components groups managed targets by component and environment.
// Each is as the branch sees it that its environment lives on: branch is the
// tracked one, for environments that have none of their own.
func Components(fl *appset.TargetSet, branch string) map[string]map[string]*Environment {
	out := map[string]map[string]*Environment{}
	owners := rootOwners(fl, branch)
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
			if len(owners[branchFolder{at, root}]) == 1 {
				e.Roots = append(e.Roots, root)
			}
		}
		e.Shared = append(e.Shared, appset.Folders(t)...)
		e.Files = append(e.Files, targetFiles(t)...)
		e.addLayers(t)
	}
	for _, envs := range out {
		for _, e := range envs {
			own := func(folder string) bool { return slices.Contains(e.Roots, folder) }
			e.Roots = appset.SortedUnique(e.Roots)
			e.Shared = slices.DeleteFunc(appset.SortedUnique(e.Shared), own)
			e.Files = slices.DeleteFunc(appset.SortedUnique(e.Files), func(file string) bool { return own(path.Dir(file)) })
		}
	}
	return out
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
		if len(names) < len(layers) && isNew {
			e.Layers = append(e.Layers, layers)
		}
	}
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

// rootOwners says which environments of which components have a folder of a
// branch among their roots. In one that several share only fields with a
// placeholder are any of theirs; the same folder of another branch is another one.
func rootOwners(fl *appset.TargetSet, branch string) map[branchFolder]map[string]bool {
	owners := map[branchFolder]map[string]bool{}
	for _, t := range fl.Targets {
		for _, at := range appset.TargetBranches(t, branch) {
			for _, root := range appset.Roots(appset.ViewFromBranch(t, at, branch)) {
				p := branchFolder{at, root}
				if owners[p] == nil {
					owners[p] = map[string]bool{}
				}
				owners[p][t.Component+"|"+t.Environment] = true
			}
		}
	}
	return owners
}
