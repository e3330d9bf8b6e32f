package playground

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// SetsFolder is the folder whose manifests of ApplicationSets Argo CD is given, as an
// administrator or an app of apps would.
const SetsFolder = "argocd"

// setPatterns are the files there that are read.
var setPatterns = []string{"*.yaml", "*.yml"}

// namespace is Argo CD's own.
const namespace = "argocd"

// appliedSets is what the controller has made so far: each object by itself, so that what failed
// halfway goes on from there.
type appliedSets struct {
	objects      map[string]bool // the names of the ApplicationSets
	applications map[string]argoemulator.AppSpec
}

// applyCommit makes the Argo CD's ApplicationSets and Applications those of a commit.
func (p *Playground) applyCommit(ctx context.Context, commit string) error {
	if _, err := p.mirror.Fetch(ctx); err != nil {
		return err
	}
	tree := p.mirror.Tree(commit)
	objects, err := readSets(tree)
	if err != nil {
		return err
	}
	wanted := map[string]argoemulator.AppSpec{}
	if len(objects) > 0 {
		if wanted, err = p.generate(ctx, commit, tree); err != nil {
			return err
		}
	}
	if err := p.replaceObjects(objects); err != nil {
		return err
	}
	return p.replaceApplications(wanted)
}

// readSets reads the ApplicationSets, by name.
func readSets(tree fs.FS) (map[string]map[string]any, error) {
	var files []string
	for _, pattern := range setPatterns {
		found, err := fs.Glob(tree, path.Join(SetsFolder, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	out := map[string]map[string]any{}
	for _, name := range files {
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		for documents := yaml.NewDecoder(bytes.NewReader(data)); ; {
			var object map[string]any
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			metadata, _ := object["metadata"].(map[string]any)
			if set, _ := metadata["name"].(string); object["kind"] == "ApplicationSet" && set != "" {
				metadata["namespace"] = namespace
				out[set] = object
			}
		}
	}
	return out, nil
}

// generate resolves the sets, as the controller would.
func (p *Playground) generate(ctx context.Context, commit string, tree fs.FS) (map[string]argoemulator.AppSpec, error) {
	sets := &pipeline.Pipeline{}
	for _, pattern := range setPatterns {
		if found, err := fs.Glob(tree, path.Join(SetsFolder, pattern)); err != nil {
			return nil, err
		} else if len(found) > 0 { // a path that is no file's is a problem
			sets.Spec.ApplicationSets = append(sets.Spec.ApplicationSets,
				pipeline.ApplicationSetSource{Path: path.Join(SetsFolder, pattern)})
		}
	}
	found, err := p.resolver.Resolve(ctx, appset.Input{Pipeline: sets, Tree: tree, Revision: commit, Branch: Branch,
		RepoURLs: []string{p.Forge.CloneURL(Repository)}, Projects: []string{"default"}})
	if err != nil {
		return nil, err
	}
	if len(found.Problems) > 0 {
		return nil, errors.New(found.Problems[0].String())
	}
	out := map[string]argoemulator.AppSpec{}
	for i := range found.Targets {
		t := &found.Targets[i]
		if len(t.Sources) != 1 || !t.Sources[0].Here || t.Sources[0].Path == "" {
			return nil, fmt.Errorf("%s: the playground's Argo CD deploys folders of %s alone", t.Name, p.Forge.CloneURL(Repository))
		}
		out[t.Name] = argoemulator.AppSpec{
			Name: t.Name, Namespace: namespace, Project: t.Project, Repo: Repository, Branch: branchOf(t.Sources[0].TargetRevision),
			Path:                 t.Sources[0].Path,
			DestinationNamespace: cmp.Or(t.DestNS, "default"), Cluster: cmp.Or(t.Server, t.Cluster), ApplicationSet: t.ApplicationSet,
			Manual: !t.AutoSync, Unsynced: true,
		}
	}
	return out, nil
}

// branchOf is the branch that an Application's revision follows.
func branchOf(revision string) string {
	if revision == "HEAD" {
		return Branch
	}
	return cmp.Or(revision, Branch)
}

// replaceObjects has the Argo CD serve these ApplicationSets and no others.
func (p *Playground) replaceObjects(wanted map[string]map[string]any) error {
	for name := range p.applied.objects {
		if wanted[name] == nil {
			p.ArgoCD.RemoveObject("applicationsets", namespace, name)
			delete(p.applied.objects, name)
		}
	}
	for name, object := range wanted {
		if err := p.ArgoCD.AddObject("applicationsets", object); err != nil {
			return err
		}
		p.applied.objects[name] = true
	}
	return nil
}

// replaceApplications adds and removes Applications. One with another spec is made anew, which
// is simpler than what Argo CD does and looks the same from outside after its sync.
func (p *Playground) replaceApplications(wanted map[string]argoemulator.AppSpec) error {
	var added, removed []argoemulator.AppSpec
	for name, is := range p.applied.applications {
		if !reflect.DeepEqual(is, wanted[name]) {
			removed = append(removed, is)
		}
	}
	for name, spec := range wanted {
		if !reflect.DeepEqual(spec, p.applied.applications[name]) {
			added = append(added, spec)
		}
	}
	sortSpecs(removed)
	sortSpecs(added)
	for i := range removed {
		if err := p.ArgoCD.RemoveApplication(namespace, removed[i].Name); err != nil {
			return err
		}
		delete(p.applied.applications, removed[i].Name)
		p.report("Argo CD removes the Application " + removed[i].Name)
	}
	for i := range added {
		if err := p.ArgoCD.AddApplication(added[i]); err != nil {
			return err
		}
		p.applied.applications[added[i].Name] = added[i]
		p.report(fmt.Sprintf("Argo CD makes the Application %s of the ApplicationSet %s", added[i].Name, added[i].ApplicationSet))
	}
	return nil
}

// sortSpecs orders Applications by name, so that reports come in one order.
func sortSpecs(list []argoemulator.AppSpec) {
	slices.SortFunc(list, func(a, b argoemulator.AppSpec) int { return cmp.Compare(a.Name, b.Name) })
}
