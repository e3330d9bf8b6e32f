package reads

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
)

// Index answers which reader reads which file of one commit. It doesn't
// change once built and is safe for concurrent use.
type Index struct {
	names    []string         // files by number, sorted
	numbers  map[string]int32 // their numbers
	readers  map[string]*entry
	closures []compact
	byFile   [][]int32          // file number → closures, ascending
	byFolder map[string][]ruled // folder of a rule → that rule
	problems []Problem
}

// entry is one reader: the closures of its sources and extras.
type entry struct {
	closures []int32
}

// compact is a closure for keeps.
type compact struct {
	files   []int32 // ascending
	readers []string
	remotes []string
}

type ruled struct {
	closure int32
	rule    rule
}

// Build follows every reader's sources through the tree. Sources that several
// readers share are followed once. What can't be followed is in
// [Index.Problems]; the error is for a context that ended, a tree that can't
// be read, and reader IDs that are not unique.
func Build(ctx context.Context, tree fs.FS, readers []Reader) (*Index, error) {
	if _, err := fs.Stat(tree, "."); err != nil {
		return nil, fmt.Errorf("reading the commit's files: %w", err)
	}
	b := &builder{
		ctx: ctx, view: newView(tree), known: map[string]int32{},
		index: &Index{numbers: map[string]int32{}, readers: map[string]*entry{}, byFolder: map[string][]ruled{}},
	}
	for i := range readers {
		if err := b.reader(&readers[i]); err != nil {
			return nil, err
		}
	}
	b.finish()
	return b.index, nil
}

type builder struct {
	ctx      context.Context //nolint:containedctx // one build, one context
	view     *view
	index    *Index
	known    map[string]int32 // what was followed → closure
	found    []*closure
	problems [][]Problem // by closure
}

func (b *builder) reader(r *Reader) error {
	if _, twice := b.index.readers[r.ID]; twice {
		return fmt.Errorf("indexing what is read: two readers are called %q", r.ID)
	}
	e := &entry{}
	for _, s := range r.Sources {
		key := strings.Join(append([]string{"s", s.Path, string(s.Layout), fmt.Sprint(s.Recurse), s.Include, s.Exclude}, s.ValueFiles...), "\x00")
		e.closures = append(e.closures, b.follow(key, func(w *walker) { w.source(s) }))
	}
	for _, p := range r.Extra {
		e.closures = append(e.closures, b.follow("x\x00"+p, func(w *walker) { w.extra(p) }))
	}
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("indexing what is read: %w", err)
	}
	slices.Sort(e.closures)
	e.closures = slices.Compact(e.closures)
	for _, c := range e.closures {
		b.index.closures[c].readers = append(b.index.closures[c].readers, r.ID)
		for _, p := range b.problems[c] {
			p.Reader = r.ID
			b.index.problems = append(b.index.problems, p)
		}
	}
	b.index.readers[r.ID] = e
	return nil
}

// follow walks once for each key.
func (b *builder) follow(key string, do func(*walker)) int32 {
	if n, ok := b.known[key]; ok {
		return n
	}
	w := &walker{ctx: b.ctx, view: b.view, out: &closure{files: map[string]bool{}}, seen: map[string]bool{}}
	do(w)
	n := int32(len(b.found))
	b.known[key] = n
	b.found = append(b.found, w.out)
	b.problems = append(b.problems, w.out.problems)
	slices.Sort(w.out.remotes)
	b.index.closures = append(b.index.closures, compact{remotes: slices.Compact(w.out.remotes)})
	for _, r := range w.out.rules {
		b.index.byFolder[r.dir] = append(b.index.byFolder[r.dir], ruled{n, r})
	}
	return n
}

// finish numbers the files in order and turns the maps into lists.
func (b *builder) finish() {
	x := b.index
	for _, c := range b.found {
		for name := range c.files {
			if _, ok := x.numbers[name]; !ok {
				x.numbers[name] = 0
				x.names = append(x.names, name)
			}
		}
	}
	sort.Strings(x.names)
	for i, name := range x.names {
		x.numbers[name] = int32(i)
	}
	x.byFile = make([][]int32, len(x.names))
	for n, c := range b.found {
		list := make([]int32, 0, len(c.files))
		for name := range c.files {
			list = append(list, x.numbers[name])
		}
		slices.Sort(list)
		x.closures[n].files = list
		for _, f := range list {
			x.byFile[f] = append(x.byFile[f], int32(n))
		}
	}
	sort.SliceStable(x.problems, func(i, j int) bool {
		a, c := x.problems[i], x.problems[j]
		return a.Reader < c.Reader || a.Reader == c.Reader && a.File < c.File
	})
}

// Files lists what a reader reads, sorted: files that are there, and files
// whose absence it depends on. nil for an unknown reader.
func (x *Index) Files(id string) []string {
	e, ok := x.readers[id]
	if !ok {
		return nil
	}
	seen := map[int32]bool{}
	for _, c := range e.closures {
		for _, f := range x.closures[c].files {
			seen[f] = true
		}
	}
	out := make([]string, 0, len(seen))
	for f := range seen {
		out = append(out, x.names[f])
	}
	sort.Strings(out)
	return out
}

// Readers lists who reads a file, or would if it existed; sorted, nil for nobody.
func (x *Index) Readers(name string) []string {
	var out []string
	for _, c := range x.closuresOf(name) {
		out = append(out, x.closures[c].readers...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Touched maps every reader that reads one of the files to those of them that
// it reads, sorted. Files are what a change created, changed or deleted, by
// their paths before and after.
func (x *Index) Touched(files []string) map[string][]string {
	out := map[string][]string{}
	sorted := slices.Clone(files)
	slices.Sort(sorted)
	for _, name := range slices.Compact(sorted) {
		for _, id := range x.Readers(name) {
			out[id] = append(out[id], name)
		}
	}
	return out
}

// closuresOf finds the closures of a file, there or not.
func (x *Index) closuresOf(name string) []int32 {
	var out []int32
	if n, ok := x.numbers[name]; ok {
		out = append(out, x.byFile[n]...)
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		for i := range x.byFolder[dir] {
			if r := &x.byFolder[dir][i]; r.rule.covers(name) {
				out = append(out, r.closure)
			}
		}
		if dir == "." || dir == "/" {
			break
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Remote lists what a reader takes from outside the repository, as it is
// written there; sorted.
func (x *Index) Remote(id string) []string {
	e, ok := x.readers[id]
	if !ok {
		return nil
	}
	var out []string
	for _, c := range e.closures {
		out = append(out, x.closures[c].remotes...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Problems lists what could not be followed, by reader and file.
func (x *Index) Problems() []Problem { return slices.Clone(x.problems) }
