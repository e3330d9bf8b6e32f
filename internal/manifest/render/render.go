package render

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch"
	"sigs.k8s.io/yaml"
)

// DefaultKubeVersion is the cluster's version where an [Input] has none: the
// one that Argo CD 2.14 is built for.
const DefaultKubeVersion = "v1.31.0"

// Render turns a target's sources into objects. tree is the commit's files; a symbolic link is
// followed when tree is an [fs.ReadLinkFS], and only within the tree.
//
// The error is an [*Unrenderable] where more than the tree would be needed. It wraps [ErrLimit]
// where something is too large, and the context's error when that ended. Any other says what is
// wrong with the files, as the repo server would in other words. Without sources, or with none that
// gives objects, the manifests are empty. It may be called concurrently.
func Render(ctx context.Context, tree fs.FS, in Input) (*Manifests, error) {
	type answer struct {
		m   *Manifests
		err error
	}
	// The libraries take no context: when it ends, the caller is let go.
	done := make(chan answer, 1)
	go func() {
		m, err := renderRecovering(ctx, tree, &in)
		done <- answer{m, err}
	}()
	select {
	case a := <-done:
		return a.m, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("rendering %s: %w", in.Application, ctx.Err())
	}
}

// renderRecovering renders, and turns a library's panic into an error.
func renderRecovering(ctx context.Context, tree fs.FS, in *Input) (m *Manifests, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, clipError(fmt.Errorf("rendering %s: the library failed: %v", in.Application, r))
		}
	}()
	r := &rendering{in: in, trees: map[string]*treeReader{"": newTreeReader(ctx, tree)}}
	for branch, other := range in.Branches {
		r.trees[branch] = newTreeReader(ctx, other.FS)
	}
	for i := range in.Sources {
		if err := r.renderSource(&in.Sources[i]); err != nil {
			return nil, clipError(wrapSourceError(&in.Sources[i], err))
		}
	}
	reads := r.trees[""].readSet()
	for branch := range in.Branches {
		if others := r.trees[branch].readSet(); !others.isEmpty() {
			if reads.Branches == nil {
				reads.Branches = map[string]ReadSet{}
			}
			reads.Branches[branch] = others
		}
	}
	reads.Revision = r.revision
	return r.out.buildManifests(reads), nil
}

// wrapSourceError says which source an error is about.
func wrapSourceError(s *Source, err error) error {
	name := cmp.Or(s.Chart, s.Path)
	var u *Unrenderable
	if errors.As(err, &u) {
		return &Unrenderable{Source: name, Reason: u.Reason, Remote: u.Remote, Externals: u.Externals}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// rendering is one call of Render.
type rendering struct {
	in    *Input
	trees map[string]*treeReader // by branch; "": the tree that is rendered
	files *treeReader            // the one of the source at hand
	out   objectCollector
	// revision says that the commit's own name went into the objects.
	revision bool
	unpacked map[External]*treeReader // charts that came packed
}

func (r *rendering) renderSource(s *Source) error {
	opts, err := parseOptions(s.Options)
	if err != nil {
		return err
	}
	switch {
	case s.Ref != "" && s.Path == "" && s.Chart == "" && opts.Helm == nil:
		return nil // only there for other sources' $ref
	}
	if r.files, err = r.openSource(s); err != nil {
		return err
	}
	dir, ok := cleanTreePath(s.Path)
	if !ok {
		return fmt.Errorf("the source's path %w", errOutside)
	}
	found, err := r.files.find(dir)
	if err != nil {
		return err
	}
	if found.kind != kindFolder {
		return errors.New("the source's path is no folder")
	}
	if opts, err = r.applyOverrides(s, found.path, opts); err != nil {
		return err
	}
	layout, err := r.detectLayout(found.path, opts)
	if err != nil {
		return err
	}
	env, namesCommit := r.sourceEnv(s)
	switch layout {
	case layoutKustomize:
		err = r.renderKustomize(found.path, cmp.Or(opts.Kustomize, &kustomizeOptions{}), env)
		return errors.Join(err, namesCommit())
	case layoutHelm:
		err = r.renderHelm(found.path, cmp.Or(opts.Helm, &helmOptions{}), env)
		return errors.Join(err, namesCommit())
	case layoutDirectory:
		return r.renderDirectory(found.path, cmp.Or(opts.Directory, &directoryOptions{}))
	}
	if opts.Plugin == nil || opts.Plugin.Name == "" {
		return newUnrenderable("a config management plugin")
	}
	return newUnrenderable("plugin " + opts.Plugin.Name)
}

// openSource gives the tree that a source is read of: of a chart its own folder.
func (r *rendering) openSource(s *Source) (*treeReader, error) {
	if s.InTree {
		if files := r.trees[s.Branch]; files != nil {
			return files, nil
		}
		return nil, newUnrenderable("the source is at the branch "+s.Branch+", which is not known here", s.RepoURL)
	}
	e := s.external()
	files := r.trees[e.key()]
	switch {
	case files == nil && s.Chart != "":
		return nil, newMissing(e, fmt.Sprintf("the chart %s comes from a Helm repository", s.Chart), s.RepoURL)
	case files == nil:
		return nil, newMissing(e, "the source is in another repository or revision", s.RepoURL)
	case s.Chart != "":
		return r.unpackChart(e, files)
	}
	return files, nil
}

// sourceEnv is a source's build environment, with a function to call when the source is rendered.
// The commit of another repository counts as read of the tree as a whole, where it was put in.
func (r *rendering) sourceEnv(s *Source) (buildEnv, func() error) {
	if s.InTree {
		return newBuildEnv(r.in, s, &r.revision), func() error { return nil }
	}
	in, isRead := *r.in, false
	in.Revision = cmp.Or(r.in.Branches[s.external().key()].Revision, s.TargetRevision)
	return newBuildEnv(&in, s, &isRead), func() error {
		if !isRead {
			return nil
		}
		_, err := r.trees[s.external().key()].list(".")
		return err
	}
}

// applyOverrides applies the folder's .argocd-source files, which may change a
// source's options (Image Updater writes its overrides there).
func (r *rendering) applyOverrides(s *Source, dir string, opts sourceOptions) (sourceOptions, error) {
	raw := s.Options
	for _, name := range []string{".argocd-source.yaml", ".argocd-source-" + r.in.Application + ".yaml"} {
		p := path.Join(dir, name)
		data, is, err := r.files.readIfFile(p)
		if err != nil {
			return sourceOptions{}, err
		}
		if !is {
			continue
		}
		if raw, err = applyMergePatch(raw, data); err != nil {
			return sourceOptions{}, fmt.Errorf("%s: %w", p, err)
		}
		if opts, err = parseOptions(raw); err != nil {
			return sourceOptions{}, fmt.Errorf("%s: %w", p, err)
		}
	}
	return opts, nil
}

// applyMergePatch applies a YAML merge patch (RFC 7386) to a JSON object, with the
// library that the repo server uses.
func applyMergePatch(doc json.RawMessage, patch []byte) (json.RawMessage, error) {
	if err := checkAliases(patch); err != nil {
		return nil, err
	}
	by, err := yaml.YAMLToJSON(patch)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(by, []byte("{")) {
		return nil, errors.New("it is no mapping")
	}
	if len(doc) == 0 || string(doc) == "null" {
		doc = []byte("{}")
	}
	return jsonpatch.MergePatch(doc, by)
}

type sourceLayout int

const (
	layoutDirectory sourceLayout = iota
	layoutKustomize
	layoutHelm
	layoutPlugin
)

// detectLayout is what the options ask for, else what lies in the folder. There the
// last name in order that tells something decides, as in Argo CD's walk.
func (r *rendering) detectLayout(dir string, o sourceOptions) (sourceLayout, error) {
	requested := map[sourceLayout]bool{layoutDirectory: o.Directory != nil, layoutKustomize: o.Kustomize != nil, layoutHelm: o.Helm != nil,
		layoutPlugin: o.Plugin != nil}
	maps.DeleteFunc(requested, func(_ sourceLayout, is bool) bool { return !is })
	if len(requested) > 1 {
		return 0, errors.New("the source's options are of more than one kind of kustomize, helm, directory and plugin")
	}
	for l := range requested {
		return l, nil
	}
	entries, err := r.files.list(dir)
	if err != nil {
		return 0, err
	}
	found := layoutDirectory
	for _, e := range entries {
		switch {
		case e.IsDir():
		case strings.HasSuffix(e.Name(), "Chart.yaml"):
			found = layoutHelm
		case isKustomization(e.Name()):
			found = layoutKustomize
		}
	}
	return found, nil
}

// kustomizationNames are the names that a kustomization may have.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func isKustomization(name string) bool { return slices.Contains(kustomizationNames, name) }
