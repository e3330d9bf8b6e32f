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
	*sharedState
	plain      *plainParser
	prefetched []prefetchedFile // contents that were read ahead
	result     *nodeResult
	seen       map[nodeKey]bool // not nil: children are followed on the spot, once each

	activeConfigs map[nodeKey]bool // the folders of configurations that are followed so
}

// prefetchedFile is a file's, read ahead; of at most maxFile bytes.
type prefetchedFile struct {
	path string
	data []byte
}

// sharedState is what the walkers of one build share. It is safe for concurrent use.
type sharedState struct {
	ctx         context.Context // one build, one context
	tree        *treeView
	parsedBytes atomic.Int64 // bytes

	mu      sync.Mutex
	jsonnet map[string][]jsonnetImport // what Jsonnet files import: many look at the same libraries
}

// maxParsedBytes bounds what is parsed for one index, in bytes: more than a
// repository of 100,000 files with a kustomization each needs.
const maxParsedBytes = 128 << 20

// recordPath records a path without looking at it.
func (w *walker) recordPath(name string) { w.result.files = append(w.result.files, name) }

// findPath looks a path up and records it, its links, and where they lead.
func (w *walker) findPath(name string) (location, error) {
	at, err := w.tree.find(name)
	w.recordPath(name)
	w.result.files = append(w.result.files, at.links...)
	if at.path != "" && at.path != name {
		w.recordPath(at.path)
	}
	return at, err
}

// lookUp is findPath with its error recorded: false for one.
func (w *walker) lookUp(name string) (location, bool) {
	at, err := w.findPath(name)
	if err != nil {
		w.recordProblem(name, err)
	}
	return at, err == nil
}

// lookUpWritten is lookUp for a path that people wrote, from the tree's root; it
// also gives that path cleaned.
func (w *walker) lookUpWritten(name string) (string, location, bool) {
	p, err := joinPath(".", name)
	if err != nil {
		w.recordProblem(name, err)
		return "", location{}, false
	}
	at, ok := w.lookUp(p)
	return p, at, ok
}

// readOrWiden is readFile, but a file that can't be read means the whole folder.
func (w *walker) readOrWiden(dir, name string, at location) ([]byte, bool) {
	data, err := w.readFile(at)
	if err != nil {
		w.widenToFolder(dir, name, err)
	}
	return data, err == nil
}

// readFile gives the bytes of a file that find found, for parsing.
func (w *walker) readFile(at location) ([]byte, error) { return w.loadFile(at, maxFile, 1) }

// scanFile gives them for looking through, which is much faster.
func (w *walker) scanFile(at location) ([]byte, error) { return w.loadFile(at, maxScanned, 16) }

func (w *walker) loadFile(at location, limit int64, speedup int) (data []byte, err error) {
	if i := slices.IndexFunc(w.prefetched, func(c prefetchedFile) bool { return c.path == at.path }); i >= 0 {
		data = w.prefetched[i].data
	} else if data, err = w.tree.read(at, limit); err != nil {
		return nil, err
	}
	if w.parsedBytes.Add(int64(len(data)/speedup)) > maxParsedBytes {
		return nil, fmt.Errorf("reading %s: %w: more than %d bytes are to be parsed in all", at.path, errTooLarge, maxParsedBytes)
	}
	return data, nil
}

// useNode makes another node part of what this one reads.
func (w *walker) useNode(r nodeRole, dir, arg string) {
	k := nodeKey{r, dir, arg}
	if w.seen == nil {
		w.result.children = append(w.result.children, k)
		return
	}
	if !w.seen[k] && w.ctx.Err() == nil {
		w.seen[k] = true
		w.followNode(k)
	}
}

// followNode finds out what a node reads.
func (w *walker) followNode(k nodeKey) {
	switch k.role {
	case roleKustomization:
		w.followKustomization(k.dir)
	case roleChart:
		w.followChart(k.dir)
	case roleEverything:
		w.recordEverything(k.dir)
	case roleDirectory:
		w.followDirectory(k.dir, k.arg)
	case roleJsonnet:
		w.followJsonnet(k.dir, k.arg)
	case roleValues:
		w.followValuesFile(k.dir)
	case roleValueGlob:
		w.followValueGlob(k.dir, k.arg)
	case rolePluginConfig:
		w.followPluginConfig(k.dir, k.arg)
	case rolePluginConfigs:
		w.followPluginConfigs(k.dir, k.arg)
	}
}

// recordEverything records all below a folder, now and later.
func (w *walker) recordEverything(dir string) {
	at, ok := w.lookUp(dir)
	if !ok {
		return
	}
	w.result.rules = append(w.result.rules, rule{dir: at.path, shape: shapeAll})
	if at.kind == kindFolder {
		w.recordContents(at.path, func(string) bool { return true })
	}
}

// recordContents records what lies below a folder now, and what its links lead to.
func (w *walker) recordContents(dir string, wanted func(name string) bool) {
	list, err := w.tree.listBelow(dir)
	if err != nil {
		w.recordProblem(dir, err)
		return
	}
	for _, name := range list.files {
		if wanted(name) {
			w.recordPath(name)
		}
	}
	for _, name := range list.links {
		if !wanted(name) {
			continue
		}
		if to, ok := w.lookUp(name); ok && to.kind == kindFolder && to.path != dir {
			w.useNode(roleEverything, to.path, "")
		}
	}
}

// widenToFolder notes what could not be followed and takes the whole folder instead;
// the whole tree, when the tools can follow what can't be followed here.
func (w *walker) widenToFolder(dir, name string, err error) {
	w.recordProblem(name, err)
	if isOwnLimit(err) {
		dir = "."
	}
	w.useNode(roleEverything, dir, "")
}

func (w *walker) recordProblem(name string, err error) {
	w.result.problems = append(w.result.problems, Problem{File: name, Message: err.Error()})
}

func (w *walker) recordRemote(ref string) { w.result.remotes = append(w.result.remotes, ref) }

// followReader follows what a reader names: its sources and extras.
func (w *walker) followReader(r *Reader) {
	for i := range r.Sources {
		w.followSource(&r.Sources[i])
	}
	for _, p := range r.Extra {
		w.followExtra(p)
	}
	w.useValueGlobs(r.Globs)
}

// followSource follows one source of a reader.
func (w *walker) followSource(s *Source) {
	p, err := joinPath(".", s.Path)
	if err != nil {
		w.recordProblem(s.Path, fmt.Errorf("the source's path %w", err))
		return
	}
	at, ok := w.lookUp(p)
	if !ok {
		at.path = p
	}
	dir := at.path
	for _, o := range s.Options {
		w.followOptions(dir, o)
	}
	layout := s.Layout
	if layout == Detected {
		layout = w.detectLayout(dir, at.kind)
	}
	switch layout {
	case Kustomize:
		w.useNode(roleKustomization, dir, "")
	case Helm:
		w.useNode(roleChart, dir, "")
		if s.InlineReadsFiles {
			w.result.traits |= mentionsFiles
		}
	case Directory:
		w.useNode(roleDirectory, dir, encodeDirectoryOptions(s))
	default:
		w.followUnknownLayout(dir)
	}
	for _, f := range s.ValueFiles {
		p, err := joinPath(".", f)
		if err != nil {
			w.recordProblem(f, err)
			continue
		}
		w.useNode(roleValues, p, "")
	}
	w.useValueGlobs(s.ValueGlobs)
}

// detectLayout tells the layout of a folder: the last of its files, by name, that
// marks a kustomization or a chart decides.
func (w *walker) detectLayout(dir string, k pathKind) Layout {
	if k != kindFolder {
		return Anything // whatever comes into being there counts
	}
	w.result.rules = append(w.result.rules, rule{dir: dir, shape: shapeCharts})
	for _, n := range kustomizationNames {
		w.recordPath(inFolder(dir, n))
	}
	layoutFiles, err := w.tree.layoutFilesIn(dir)
	switch {
	case err != nil:
		w.recordProblem(dir, err)
		return Anything
	case len(layoutFiles) == 0:
		return Directory
	case strings.HasSuffix(layoutFiles[len(layoutFiles)-1], chartSuffix):
		return Helm
	}
	return Kustomize
}

// followUnknownLayout follows a folder of which only the path is known: all that lies
// there, and what a kustomization or a chart there pulls in from elsewhere.
func (w *walker) followUnknownLayout(dir string) {
	w.useNode(roleEverything, dir, "")
	if name, _ := w.findKustomization(dir); name != "" {
		w.useNode(roleKustomization, dir, "")
	}
	if at, err := w.findPath(inFolder(dir, "Chart.yaml")); err == nil && at.kind == kindFile {
		w.useNode(roleChart, dir, "")
	}
}

// followExtra follows a single path: a file, or a folder with all that it means.
func (w *walker) followExtra(name string) {
	if _, at, ok := w.lookUpWritten(name); ok && at.kind == kindFolder {
		w.followFolder(at.path)
	}
}

// followFolder follows a folder that is named as a whole: what its kustomization
// pulls in, or all of it.
func (w *walker) followFolder(dir string) {
	if name, _ := w.findKustomization(dir); name != "" {
		w.useNode(roleKustomization, dir, "")
		return
	}
	w.useNode(roleEverything, dir, "")
}
