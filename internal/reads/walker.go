package reads

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// maxFolders bounds the kustomizations and charts that one source may pull in.
const maxFolders = 20_000

// rule covers files that may come into being: all below a folder, or a plain
// folder's manifests.
type rule struct {
	dir              string
	all              bool // every file counts
	recurse          bool
	include, exclude *pattern // nil: no such filter
}

// manifestName is what counts as a manifest in a plain folder.
var manifestName = regexp.MustCompile(`\.(yaml|yml|json|jsonnet)$`)

// covers says that a file of this name would be read.
func (r *rule) covers(name string) bool {
	rel, ok := within(r.dir, name)
	switch {
	case !ok:
		return false
	case r.all:
		return true
	case !r.recurse && strings.Contains(rel, "/"):
		return false
	case !manifestName.MatchString(path.Base(rel)):
		return false
	case r.exclude != nil && r.exclude.match(rel, false):
		return false
	}
	return r.include == nil || r.include.match(rel, true)
}

// closure is all that one source, or one extra path, reads.
type closure struct {
	files    map[string]bool
	rules    []rule
	remotes  []string
	problems []Problem // without a reader
}

// walker follows one source through the tree.
type walker struct {
	ctx    context.Context //nolint:containedctx // one walk, one context
	view   *view
	out    *closure
	seen   map[string]bool // kind of folder and path: ends cycles
	capped bool
}

// enter says whether a folder is new to this walk.
func (w *walker) enter(as, dir string) bool {
	key := as + ":" + dir
	if w.seen[key] || w.ctx.Err() != nil {
		return false
	}
	if len(w.seen) >= maxFolders {
		if !w.capped {
			w.capped = true
			w.widen(".", dir, fmt.Errorf("more than %d folders are pulled in", maxFolders))
		}
		return false
	}
	w.seen[key] = true
	return true
}

// file records one file by its cleaned path, there or not, with the links to it.
func (w *walker) file(name string) {
	w.out.files[name] = true
	found, err := w.view.find(name)
	if err != nil {
		w.problem(name, err)
		return
	}
	w.links(found)
	w.out.files[found.path] = true
}

func (w *walker) links(found place) {
	for _, l := range found.links {
		w.out.files[l] = true
	}
}

// folder resolves a folder's links.
func (w *walker) folder(dir string) string {
	found, err := w.view.find(dir)
	if err != nil {
		w.problem(dir, err)
		return dir
	}
	w.links(found)
	return found.path
}

// everything records all below a folder, now and later.
func (w *walker) everything(dir string) {
	dir = w.folder(dir)
	if !w.enter("everything", dir) {
		return
	}
	w.out.rules = append(w.out.rules, rule{dir: dir, all: true})
	w.contents(dir, func(string) bool { return true })
}

// contents records what lies below a folder now, and what its links lead to.
func (w *walker) contents(dir string, wanted func(name string) bool) {
	found, err := w.view.find(dir)
	if err != nil || found.kind != folder {
		return
	}
	list, err := w.view.below(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	for _, name := range list.files {
		if wanted(name) {
			w.out.files[name] = true
		}
	}
	for _, name := range list.links {
		if !wanted(name) {
			continue
		}
		to, err := w.view.find(name)
		switch {
		case err != nil:
			w.problem(name, err)
		case to.kind == folder:
			w.everything(to.path)
		default:
			w.links(to)
			w.out.files[to.path] = true
		}
	}
}

// widen notes what could not be followed and takes the whole folder instead.
func (w *walker) widen(dir, name string, err error) {
	w.problem(name, err)
	w.everything(dir)
}

func (w *walker) problem(name string, err error) {
	w.out.problems = append(w.out.problems, Problem{File: name, Message: err.Error()})
}

func (w *walker) remote(ref string) { w.out.remotes = append(w.out.remotes, ref) }

// source follows one source of a reader.
func (w *walker) source(s Source) {
	p, err := clean(".", s.Path)
	if err != nil {
		w.problem(s.Path, fmt.Errorf("the source's path %w", err))
		return
	}
	dir := w.folder(p)
	for _, f := range s.ValueFiles {
		w.extra(f)
	}
	layout := s.Layout
	if layout == Detected {
		layout = w.detect(dir)
	}
	switch layout {
	case Kustomize:
		w.kustomization(dir)
	case Helm:
		w.chart(dir)
	case Directory:
		w.directory(dir, s)
	default:
		w.everything(dir)
	}
}

// detect tells the layout of a folder. The files that would change the answer
// are read as well, by their absence.
func (w *walker) detect(dir string) Layout {
	found, err := w.view.find(dir)
	if err != nil || found.kind == missing {
		return Anything // whatever comes into being there counts
	}
	for _, n := range kustomizationNames {
		w.out.files[path.Join(dir, n)] = true
	}
	w.out.files[path.Join(dir, "Chart.yaml")] = true
	if w.kustomizationFile(dir) != "" {
		return Kustomize
	}
	if chart, err := w.view.find(path.Join(dir, "Chart.yaml")); err == nil && chart.kind == file {
		return Helm
	}
	return Directory
}

// extra follows a single path: a file, or a folder with all that it means.
func (w *walker) extra(name string) {
	p, err := clean(".", name)
	if err != nil {
		w.problem(name, err)
		return
	}
	found, err := w.view.find(p)
	if err != nil {
		w.problem(p, err)
		return
	}
	if found.kind != folder {
		w.file(p)
		return
	}
	w.links(found)
	if w.kustomizationFile(found.path) != "" {
		w.kustomization(found.path)
		return
	}
	w.everything(found.path)
}

// directory records a plain folder's manifests. Jsonnet imports files by
// computed names, so with it everything below counts.
func (w *walker) directory(dir string, s Source) {
	r := rule{dir: dir, recurse: s.Recurse}
	var err error
	if r.include, err = compile(s.Include); err != nil {
		w.widen(dir, dir, fmt.Errorf("include %q is not a glob: %w", s.Include, err))
		return
	}
	if r.exclude, err = compile(s.Exclude); err != nil {
		w.widen(dir, dir, fmt.Errorf("exclude %q is not a glob: %w", s.Exclude, err))
		return
	}
	jsonnet := false
	w.out.rules = append(w.out.rules, r)
	w.contents(dir, func(name string) bool {
		covered := r.covers(name)
		jsonnet = jsonnet || covered && strings.HasSuffix(name, ".jsonnet")
		return covered
	})
	if jsonnet {
		w.everything(dir)
	}
}

// kustomizationFile finds a folder's kustomization, "" for none.
func (w *walker) kustomizationFile(dir string) string {
	for _, n := range kustomizationNames {
		if found, err := w.view.find(path.Join(dir, n)); err == nil && found.kind == file {
			return path.Join(dir, n)
		}
	}
	return ""
}

// kustomization follows one folder's kustomization.
func (w *walker) kustomization(dir string) {
	if !w.enter("kustomization", dir) {
		return
	}
	for _, n := range kustomizationNames {
		w.file(path.Join(dir, n))
	}
	name := w.kustomizationFile(dir)
	if name == "" {
		return // a missing base: kustomize fails until one comes into being
	}
	found, err := w.view.find(name)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	data, err := w.view.read(found)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	refs, err := references(data)
	if err != nil {
		w.widen(dir, name, err)
	}
	for _, r := range refs {
		w.reference(dir, name, r)
	}
}

// reference follows one path that a kustomization names.
func (w *walker) reference(dir, name string, r reference) {
	if r.kind != refConfig && remote(r.path) && !w.exists(dir, r.path) {
		w.remote(r.path)
		return
	}
	p, err := clean(dir, r.path)
	if err != nil {
		if r.kind != refConfig { // a plugin's string needn't be a path
			w.problem(name, err)
		}
		return
	}
	found, err := w.view.find(p)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	switch {
	case r.kind == refChart:
		w.everything(p)
	case found.kind == folder && r.kind == refFile:
		w.everything(p) // kustomize refuses it; should it once not, it counts
	case found.kind == folder:
		w.links(found)
		w.kustomization(found.path)
	case found.kind == missing && r.kind == refBase:
		// Either a file or a folder may come into being.
		w.file(p)
		w.everything(p)
	case r.kind == refConfig:
		w.config(dir, p, found)
	default:
		w.file(p)
	}
}

// exists tells a strange file name from an address.
func (w *walker) exists(dir, name string) bool {
	p, err := clean(dir, name)
	if err != nil {
		return false
	}
	found, err := w.view.find(p)
	return err == nil && found.kind != missing
}

// config records a plugin's configuration, and every file that one of its
// strings names: which key means a file is the plugin's secret.
func (w *walker) config(dir, p string, found place) {
	w.file(p)
	if found.kind != file || !w.enter("config", found.path) {
		return
	}
	data, err := w.view.read(found)
	if err != nil {
		w.widen(dir, p, err)
		return
	}
	for _, s := range stringsOf(data) {
		q, err := clean(dir, s)
		if err != nil {
			continue
		}
		named, err := w.view.find(q)
		switch {
		case err != nil || named.kind == missing:
		case named.kind == folder && q != dir:
			w.everything(q)
		case named.kind == file:
			w.file(q)
		}
	}
}
