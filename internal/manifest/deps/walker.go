package deps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// walker follows one node. Whatever it looks at is among found's files or
// covered by its rules; that makes updates possible.
type walker struct {
	*work
	plain *plainParser
	given []content // contents that were read ahead
	out   *found
	seen  map[key]bool // not nil: children are followed on the spot, once each

	configured map[key]bool // the folders of configurations that are followed so
}

// content is a file's, read ahead; of at most maxFile bytes.
type content struct {
	path string
	data []byte
}

// work is what the walkers of one build share. It is safe for concurrent use.
type work struct {
	ctx    context.Context //nolint:containedctx // one build, one context
	view   *view
	parsed atomic.Int64 // bytes

	mu      sync.Mutex
	jsonnet map[string][]imported // what Jsonnet files import: many look at the same libraries
}

// maxParsed bounds what is parsed for one index, in bytes: more than a
// repository of 100,000 files with a kustomization each needs.
const maxParsed = 128 << 20

// see records a path without looking at it.
func (w *walker) see(name string) { w.out.files = append(w.out.files, name) }

// find looks a path up and records it, its links, and where they lead.
func (w *walker) find(name string) (place, error) {
	at, err := w.view.find(name)
	w.see(name)
	w.out.files = append(w.out.files, at.links...)
	if at.path != "" && at.path != name {
		w.see(at.path)
	}
	return at, err
}

// read gives the bytes of a file that find found, for parsing.
func (w *walker) read(at place) ([]byte, error) { return w.take(at, maxFile, 1) }

// scan gives them for looking through, which is much faster.
func (w *walker) scan(at place) ([]byte, error) { return w.take(at, maxScanned, 16) }

func (w *walker) take(at place, limit int64, speed int) (data []byte, err error) {
	if i := slices.IndexFunc(w.given, func(c content) bool { return c.path == at.path }); i >= 0 {
		data = w.given[i].data
	} else if data, err = w.view.read(at, limit); err != nil {
		return nil, err
	}
	if w.parsed.Add(int64(len(data)/speed)) > maxParsed {
		return nil, fmt.Errorf("reading %s: %w: more than %d bytes are to be parsed in all", at.path, errTooLarge, maxParsed)
	}
	return data, nil
}

// file records one file by its cleaned path, there or not.
func (w *walker) file(name string) {
	if _, err := w.find(name); err != nil {
		w.problem(name, err)
	}
}

// use makes another node part of what this one reads.
func (w *walker) use(r role, dir, arg string) {
	k := key{r, dir, arg}
	if w.seen == nil {
		w.out.children = append(w.out.children, k)
		return
	}
	if !w.seen[k] && w.ctx.Err() == nil {
		w.seen[k] = true
		w.follow(k)
	}
}

// follow finds out what a node reads.
func (w *walker) follow(k key) {
	switch k.role {
	case roleKustomization:
		w.kustomization(k.dir)
	case roleChart:
		w.chart(k.dir)
	case roleEverything:
		w.everything(k.dir)
	case roleManifests:
		w.manifests(k.dir, parseManifestOptions(k.arg))
	case roleJsonnet:
		w.jsonnetFile(k.dir, k.arg)
	case roleValues:
		w.values(k.dir)
	case roleConfig:
		w.config(k.dir, k.arg)
	case roleConfigs:
		w.configs(k.dir, k.arg)
	}
}

// everything records all below a folder, now and later.
func (w *walker) everything(dir string) {
	at, err := w.find(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	w.out.rules = append(w.out.rules, rule{dir: at.path, shape: allBelow})
	if at.kind == folder {
		w.contents(at.path, func(string) bool { return true })
	}
}

// contents records what lies below a folder now, and what its links lead to.
func (w *walker) contents(dir string, wanted func(name string) bool) {
	list, err := w.view.below(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	for _, name := range list.files {
		if wanted(name) {
			w.see(name)
		}
	}
	for _, name := range list.links {
		if !wanted(name) {
			continue
		}
		to, err := w.find(name)
		switch {
		case err != nil:
			w.problem(name, err)
		case to.kind == folder && to.path != dir:
			w.use(roleEverything, to.path, "")
		}
	}
}

// widen notes what could not be followed and takes the whole folder instead;
// the whole tree, when the tools can follow what can't be followed here.
func (w *walker) widen(dir, name string, err error) {
	w.problem(name, err)
	if beyondUs(err) {
		dir = "."
	}
	w.use(roleEverything, dir, "")
}

func (w *walker) problem(name string, err error) {
	w.out.problems = append(w.out.problems, Problem{File: name, Message: err.Error()})
}

func (w *walker) remote(ref string) { w.out.remotes = append(w.out.remotes, ref) }

// reader follows what a reader names: its sources and extras.
func (w *walker) reader(r *Reader) {
	for i := range r.Sources {
		w.source(&r.Sources[i])
	}
	for _, p := range r.Extra {
		w.extra(p)
	}
}

// source follows one source of a reader.
func (w *walker) source(s *Source) {
	p, err := clean(".", s.Path)
	if err != nil {
		w.problem(s.Path, fmt.Errorf("the source's path %w", err))
		return
	}
	at, err := w.find(p)
	if err != nil {
		w.problem(p, err)
		at.path = p
	}
	dir := at.path
	for _, o := range s.Options {
		w.options(dir, o)
	}
	layout := s.Layout
	if layout == Detected {
		layout = w.detect(dir, at.kind)
	}
	switch layout {
	case Kustomize:
		w.use(roleKustomization, dir, "")
	case Helm:
		w.use(roleChart, dir, "")
		if s.AnyFile {
			w.out.traits |= namesFiles
		}
	case Directory:
		w.use(roleManifests, dir, manifestOptions(s))
	default:
		w.whatever(dir)
	}
	for _, f := range s.ValueFiles {
		p, err := clean(".", f)
		if err != nil {
			w.problem(f, err)
			continue
		}
		w.use(roleValues, p, "")
	}
}

// detect tells the layout of a folder: the last of its files, by name, that
// marks a kustomization or a chart decides.
func (w *walker) detect(dir string, k kind) Layout {
	if k != folder {
		return Anything // whatever comes into being there counts
	}
	w.out.rules = append(w.out.rules, rule{dir: dir, shape: chartFiles})
	for _, n := range kustomizationNames {
		w.see(inFolder(dir, n))
	}
	marks, err := w.view.marksIn(dir)
	switch {
	case err != nil:
		w.problem(dir, err)
		return Anything
	case len(marks) == 0:
		return Directory
	case strings.HasSuffix(marks[len(marks)-1], chartSuffix):
		return Helm
	}
	return Kustomize
}

// whatever follows a folder of which only the path is known: all that lies
// there, and what a kustomization or a chart there pulls in from elsewhere.
func (w *walker) whatever(dir string) {
	w.use(roleEverything, dir, "")
	if name, _ := w.kustomizationFile(dir); name != "" {
		w.use(roleKustomization, dir, "")
	}
	if at, err := w.find(inFolder(dir, "Chart.yaml")); err == nil && at.kind == file {
		w.use(roleChart, dir, "")
	}
}

// extra follows a single path: a file, or a folder with all that it means.
func (w *walker) extra(name string) {
	p, err := clean(".", name)
	if err != nil {
		w.problem(name, err)
		return
	}
	at, err := w.find(p)
	switch {
	case err != nil:
		w.problem(p, err)
	case at.kind == folder:
		w.folder(at.path)
	}
}

// folder follows a folder that is named as a whole: what its kustomization
// pulls in, or all of it.
func (w *walker) folder(dir string) {
	if name, _ := w.kustomizationFile(dir); name != "" {
		w.use(roleKustomization, dir, "")
		return
	}
	w.use(roleEverything, dir, "")
}
