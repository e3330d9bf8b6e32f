package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// builtFolders remembers what was built of the folders of a commit.
type builtFolders struct {
	mu    sync.Mutex
	known map[string]*appset.Built
}

// manifestBuilder builds what entries have built of a tree, and remembers it unless files were named
// that stand for the tree's own.
func (r *Repository) manifestBuilder(files *namedFiles, t *Tree) appset.ManifestBuilder {
	build := evaluate.BuildInProcess()
	if files != nil && len(files.names) > 0 {
		return build
	}
	return func(ctx context.Context, tree fs.FS, q appset.BuildRequest) (*appset.Built, error) {
		key := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s", t.Commit, q.Folder, q.Release, q.Namespace, q.Options)
		r.built.mu.Lock()
		defer r.built.mu.Unlock()
		if known := r.built.known[key]; known != nil {
			return known, nil
		}
		built, err := build(ctx, tree, q)
		if err != nil {
			return nil, err
		}
		if r.built.known == nil {
			r.built.known = map[string]*appset.Built{}
		}
		r.built.known[key] = built
		return built, nil
	}
}

// The kinds of objects that are looked for.
const (
	kindApplicationSet = "ApplicationSet"
	kindApplication    = "Application"
)

// runningSets are the ApplicationSets, or the plain Applications, that a tree has an Argo CD run:
// those in files as they are, and those that Kustomize builds. Bases and patches are none by
// themselves.
type runningSets struct {
	kind      string
	files     []string
	built     []string // folders that nothing else in the tree builds on
	charts    []installedChart
	templates []string // of Helm charts that nothing here installs, which are left out
	parents   []string // files of Applications that deploy nothing but others, which are left out
	// problems are sets of which can't be told what runs, notes what else should be known.
	problems, notes []appset.Problem
}

func (r *runningSets) isEmpty() bool { return r == nil || len(r.files)+len(r.built)+len(r.charts) == 0 }

func (r *runningSets) isPlain() bool { return r != nil && r.kind == kindApplication }

// key is that of the pipeline file's entries of this kind.
func (r *runningSets) key() string {
	if r.isPlain() {
		return "applications"
	}
	return "applicationSets"
}

// pipeline is one over these, whose targets belong to no component and no environment.
func (r *runningSets) pipeline() *pipeline.Pipeline {
	if r.isPlain() {
		out := &pipeline.Pipeline{}
		for _, name := range r.files {
			out.Spec.Applications = append(out.Spec.Applications, pipeline.ApplicationSource{Path: escapeGlob(name)})
		}
		for _, folder := range r.built {
			out.Spec.Applications = append(out.Spec.Applications, pipeline.ApplicationSource{Kustomize: folder})
		}
		for i := range r.charts {
			out.Spec.Applications = append(out.Spec.Applications, pipeline.ApplicationSource{Helm: &r.charts[i].HelmSource,
				ArgoCD: r.charts[i].argocd})
		}
		return out
	}
	out := pipelineOfSets(r.files)
	for _, folder := range r.built {
		out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, pipeline.ApplicationSetSource{Kustomize: folder})
	}
	for i := range r.charts {
		out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, pipeline.ApplicationSetSource{Helm: &r.charts[i].HelmSource,
			ArgoCD: r.charts[i].argocd})
	}
	return out
}

// describe counts what they are in.
func (r *runningSets) describe() string {
	if r == nil {
		return ""
	}
	what := " with " + r.kind + "s"
	if r.isPlain() {
		what = " with plain Applications"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{len(r.files), "file"}, {len(r.built), "kustomization"}, {len(r.charts), "chart"}} {
		if p.n > 0 {
			parts = append(parts, wording.Count(p.n, p.what))
		}
	}
	return strings.Join(parts, " and ") + what
}

// locations are what they are in.
func (r *runningSets) locations() []string {
	out := slices.Concat(r.files, r.built)
	for _, c := range r.charts {
		out = append(out, c.Path)
	}
	return out
}

// leaves are these sets without those that have only Applications that deploy others, as an app of
// apps does. A source of such an Application is a folder that other Applications come from.
func (r *runningSets) leaves(t *Tree, targets []appset.Target) *runningSets {
	hasParent, hasLeaf := map[string]bool{}, map[string]bool{}
	for i := range targets {
		own := &targets[i]
		isParent := slices.ContainsFunc(own.Sources, func(source appset.Source) bool {
			givesValues := source.Ref != "" && source.Path == "" // such a source deploys nothing itself
			return source.Here && source.Chart == "" && !givesValues && slices.ContainsFunc(targets, func(o appset.Target) bool {
				return o.ID() != own.ID() && isBelow(source.Path, o.ApplicationSetFile)
			})
		})
		hasParent[own.ApplicationSetFile] = hasParent[own.ApplicationSetFile] || isParent
		hasLeaf[own.ApplicationSetFile] = hasLeaf[own.ApplicationSetFile] || !isParent
	}
	out := *r
	isLeft := func(file string) bool { return hasParent[file] && !hasLeaf[file] }
	out.files = slices.DeleteFunc(slices.Clone(r.files), isLeft)
	out.built = slices.DeleteFunc(slices.Clone(r.built), func(folder string) bool { return isLeft(appset.KustomizationFile(t.FS, folder)) })
	out.charts = slices.DeleteFunc(slices.Clone(r.charts), func(c installedChart) bool { return isLeft(c.file()) })
	out.parents = slices.DeleteFunc(slices.Clone(r.files), func(file string) bool { return !isLeft(file) })
	return &out
}

// isBelow says that a file lies in a folder, or further down.
func isBelow(folder, file string) bool {
	folder = path.Clean(folder)
	return folder == "." || strings.HasPrefix(file, folder+"/")
}

// findRunning finds the objects of a kind that a tree's manifests have an Argo CD run.
func (r *Repository) findRunning(ctx context.Context, t *Tree, known *Known, kind string) (*runningSets, error) {
	out, err := r.findInFiles(ctx, t, kind)
	if err != nil {
		return nil, err
	}
	return out, r.addInstalled(ctx, t, known, out)
}

// findInFiles is findRunning without what charts have.
func (r *Repository) findInFiles(ctx context.Context, t *Tree, kind string) (*runningSets, error) {
	files, templates, err := t.findManifests(ctx, kind)
	if err != nil {
		return nil, err
	}
	out := &runningSets{kind: kind, templates: templates}
	if len(files) == 0 {
		return out, nil
	}
	graph, err := t.readKustomizations(ctx)
	if err != nil {
		return nil, err
	}
	roots := graph.rootsOf(files)
	build := r.manifestBuilder(nil, t)
	settled := map[string]bool{} // files of which is settled what runs
	for _, file := range files {
		if graph.patches[file] && len(roots.of[file]) == 0 && !graph.resources[file] {
			settled[file] = true
		}
	}
	for _, root := range roots.folders {
		reached := roots.files[root]
		q, err := appset.NewBuildRequest(pipeline.ManifestSource{Kustomize: root})
		if err != nil {
			return nil, err
		}
		built, err := build(ctx, t.FS, q)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("build the %ss of %s: %w", kind, root, ctx.Err())
		}
		alone := !slices.ContainsFunc(reached, func(file string) bool { return len(roots.of[file]) > 1 })
		if err != nil {
			out.addUnbuilt(root, reached, alone, err)
		} else if sets := objectsAmong(built.Objects, kind); len(sets) > 0 && !(alone && t.holdsAsTheyAre(reached, sets, kind)) {
			out.built = append(out.built, root)
		} else if len(sets) > 0 {
			continue // the files say the same
		}
		for _, file := range reached {
			settled[file] = settled[file] || err == nil || !alone
		}
	}
	for _, file := range files {
		switch {
		case settled[file]:
		case graph.resources[file] && len(roots.of[file]) == 0:
			out.notes = append(out.notes, appset.Problem{File: file,
				Message: "left out, because only a component of Kustomize has it, which nothing here builds on"})
		case t.hasOnlyPatches(file, kind):
			out.notes = append(out.notes, appset.Problem{File: file,
				Message: "left out, because it is a patch, of which no kustomization here says to what"})
		default:
			out.files = append(out.files, file)
		}
	}
	return out, nil
}

// addUnbuilt says that a kustomization can't be built. Where it alone has its files, the sets are taken
// as they are there; of what several overlays change, that would be none of what runs.
func (r *runningSets) addUnbuilt(root string, reached []string, alone bool, err error) {
	if alone {
		r.notes = append(r.notes, appset.Problem{File: root, Message: fmt.Sprintf(
			"%v; its %ss are taken as they are in %s, without what the kustomization changes in them", err, r.kind,
			wording.JoinFew(reached, 3))})
		return
	}
	r.problems = append(r.problems, appset.Problem{File: root, Message: fmt.Sprintf(
		"%v; it changes the %ss in %s, as other overlays do: build it by kubectl kustomize, and name the result with -f", err, r.kind,
		wording.JoinFew(reached, 3))})
}

// objectsAmong are those of one of Argo CD's kinds.
func objectsAmong(objects []json.RawMessage, kind string) []map[string]any {
	var out []map[string]any
	for _, raw := range objects {
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil || object["kind"] != kind {
			continue
		}
		if version, ok := object["apiVersion"].(string); ok && strings.HasPrefix(version, "argoproj.io/") {
			out = append(out, object)
		}
	}
	return out
}

// holdsAsTheyAre says that files have exactly these sets, but for a namespace that they don't say.
func (t *Tree) holdsAsTheyAre(files []string, sets []map[string]any, kind string) bool {
	var own []map[string]any
	for _, file := range files {
		documents, _ := t.documents(file)
		own = append(own, objectsAmong(documents, kind)...)
	}
	return isSameObjects(own, sets)
}

// isSameObjects says that both have the same objects, but for namespaces that only the second has.
func isSameObjects(own, sets []map[string]any) bool {
	if len(own) != len(sets) {
		return false
	}
	name := func(set map[string]any) any {
		metadata, _ := set["metadata"].(map[string]any)
		return metadata["name"]
	}
	for _, set := range sets {
		i := slices.IndexFunc(own, func(o map[string]any) bool { return name(o) == name(set) })
		if i < 0 || !isSameButNamespace(own[i], set) {
			return false
		}
	}
	return true
}

func isSameButNamespace(own, built map[string]any) bool {
	metadata, _ := own["metadata"].(map[string]any)
	if other, ok := built["metadata"].(map[string]any); ok && metadata != nil && metadata["namespace"] == nil && other["namespace"] != nil {
		built, other = maps.Clone(built), maps.Clone(other)
		delete(other, "namespace")
		built["metadata"] = other
	}
	return reflect.DeepEqual(own, built)
}

// documents are a manifest's, as JSON; those that can't be read are left out, and readable says
// whether there are none of these.
func (t *Tree) documents(file string) (out []json.RawMessage, readable bool) {
	info, err := fs.Stat(t.FS, file)
	if err != nil || info.Size() > maxInspected {
		return nil, false
	}
	data, err := fs.ReadFile(t.FS, file)
	if err != nil {
		return nil, false
	}
	out, err = readDocuments(data)
	return out, err == nil
}

// hasOnlyPatches says that every object of a kind in a file is a patch of Kustomize's.
func (t *Tree) hasOnlyPatches(file, kind string) bool {
	documents, readable := t.documents(file)
	sets := objectsAmong(documents, kind)
	return readable && len(sets) > 0 && !slices.ContainsFunc(sets, func(set map[string]any) bool { return set["$patch"] == nil })
}
