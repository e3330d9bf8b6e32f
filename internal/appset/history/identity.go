package history

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Identities are the values that tell targets apart and say where they run, each with its name for
// people ("the component web"). Where such a value changes, it makes another target, so no
// promotion may carry it.
func Identities(components map[string]map[string]*Environment) map[string]string {
	out := map[string]string{}
	add := func(value, format string) {
		if _, ok := out[value]; !ok && value != "" {
			out[value] = fmt.Sprintf(format, value)
		}
	}
	for _, component := range slices.Sorted(maps.Keys(components)) {
		add(component, "the component %s")
		for _, name := range slices.Sorted(maps.Keys(components[component])) {
			add(name, "the environment %s")
			for _, t := range components[component][name].Targets {
				add(t.Project, "the project %s")
				add(t.Name, "the Application's name %s")
				add(t.DestNS, "the namespace %s")
				add(t.Cluster, "the cluster %s")
				add(t.Server, "the cluster %s")
				for _, s := range t.Sources {
					add(s.RepoURL, "the repository %s")
					add(s.Path, "the path %s")
				}
			}
		}
	}
	return out
}

// IdentityCarry says which carried fields tell targets apart, as an element's name does. It looks
// at the files that make targets: those of ApplicationSets and generators. Where such a field moved
// to another environment, an Application there would be deleted for another one. tree is an
// environment's files; nil where its branch isn't there.
func IdentityCarry(p *pipeline.Pipeline, components map[string]map[string]*Environment,
	tree func(environment string) fs.FS) []appset.Problem {
	identities := Identities(components)
	var out []appset.Problem
	for _, component := range slices.Sorted(maps.Keys(components)) {
		for _, name := range slices.Sorted(maps.Keys(components[component])) {
			e, files := components[component][name], tree(name)
			if files == nil {
				continue
			}
			found, err := fieldedit.Locate(files, e.Overlay(p))
			if err != nil {
				continue // what can't be read is said of its environment
			}
			for _, place := range found {
				if !e.isMadeFrom(place.File) {
					continue
				}
				why := ""
				if what := identities[place.Field.Value]; what != "" {
					why = what + ": moved on, it would have Argo CD delete an Application for another one; take it out of carry"
				} else if strings.Contains(place.Field.Value, "{{") {
					why = "a template: carry the parameter that it is made from"
				}
				if why != "" {
					message := fmt.Sprintf("line %d: %s is carried, and it is %s", place.Line, place.Path(), why)
					out = append(out, appset.Problem{File: place.File, Message: message})
				}
			}
		}
	}
	return out
}

// isMadeFrom says that a file is one of an ApplicationSet or a generator that makes the environment's targets.
func (e *Environment) isMadeFrom(file string) bool {
	return slices.ContainsFunc(e.Targets, func(t appset.Target) bool {
		return t.IsGeneratedFrom(file)
	})
}
