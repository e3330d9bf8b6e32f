package deps

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Build follows every reader's sources through the tree. What several readers
// share is followed once. What can't be followed is in [Index.Problems]; the
// error is for a context that ended, a tree that can't be read, and reader
// IDs that are not unique. A tree that is [Bulk] is read in few large steps.
func Build(ctx context.Context, tree fs.FS, readers []Reader) (*Index, error) {
	v, err := newView(ctx, tree, true)
	if err != nil {
		return nil, fmt.Errorf("reading the commit's files: %w", err)
	}
	b, err := newBuilder(ctx, v, readers, &Index{})
	if err != nil {
		return nil, err
	}
	if err := b.run(); err != nil {
		return nil, err
	}
	return b.finish(func(names []string) []state { return statesOf(v, names) }), nil
}

// builder puts an index together, from nothing or from the one before.
type builder struct {
	*work
	before  *Index
	readers []*Reader // by ID
	specs   [][32]byte
	nodes   []node // the readers first
	numbers map[key]uint32
	todo    []uint32

	// The names of before keep their numbers; new ones follow.
	newNames map[string]uint32
	list     []string
}

// newBuilder sorts the readers; none of them is followed yet.
func newBuilder(ctx context.Context, v *view, readers []Reader, before *Index) (*builder, error) {
	b := &builder{
		work:   &work{ctx: ctx, view: v, jsonnet: map[string][]imported{}},
		before: before, readers: make([]*Reader, len(readers)), specs: make([][32]byte, len(readers)),
		nodes: make([]node, len(readers), 2*len(readers)+16), numbers: make(map[key]uint32, len(readers)),
		newNames: make(map[string]uint32, len(v.files)),
	}
	for i := range readers {
		b.readers[i] = &readers[i]
	}
	slices.SortFunc(b.readers, func(x, y *Reader) int { return strings.Compare(x.ID, y.ID) })
	for i, r := range b.readers {
		if i > 0 && b.readers[i-1].ID == r.ID {
			return nil, fmt.Errorf("indexing what is read: two readers are called %q", r.ID)
		}
		b.specs[i] = specOf(r)
		b.nodes[i] = node{key: key{role: roleReader, arg: r.ID}}
	}
	if before.nodes == nil {
		for i := range b.readers {
			b.todo = append(b.todo, uint32(i))
		}
	}
	return b, nil
}

// specOf tells readers apart by what they name.
func specOf(r *Reader) [32]byte {
	var room [512]byte
	text := room[:0]
	add := func(list ...string) {
		text = binary.AppendUvarint(text, uint64(len(list)))
		for _, s := range list {
			text = binary.AppendUvarint(text, uint64(len(s)))
			text = append(text, s...)
		}
	}
	for i := range r.Sources {
		s := &r.Sources[i]
		add(s.Path, string(s.Layout), s.Include, s.Exclude, strconv.FormatBool(s.Recurse), strconv.FormatBool(s.AnyFile))
		add(s.ValueFiles...)
		add(s.Options...)
		add(s.Libs...)
	}
	add(r.Extra...)
	return sha256.Sum256(text)
}

// run follows what is to do, and what comes up, until nothing does.
func (b *builder) run() error {
	for {
		for len(b.todo) > 0 {
			round := b.todo
			b.todo = nil
			results, err := b.follow(round)
			if err != nil {
				return fmt.Errorf("indexing what is read: %w", err)
			}
			for i, n := range round {
				b.take(n, &results[i])
			}
		}
		if b.releases(); len(b.todo) == 0 {
			return nil
		}
	}
}

// take makes what was found part of a node.
func (b *builder) take(n uint32, f *found) {
	files := make([]uint32, len(f.files))
	for i, name := range f.files {
		files[i] = b.name(name)
	}
	slices.Sort(files)
	at := &b.nodes[n]
	at.files = slices.Clip(slices.Compact(files))
	at.traits, at.more, at.uses = f.traits, nil, nil
	if len(f.rules)+len(f.remotes)+len(f.problems) > 0 {
		at.more = &more{rules: f.rules, remotes: f.remotes, problems: f.problems}
	}
	uses := make([]uint32, 0, len(f.children))
	for _, k := range f.children {
		if u := b.number(k); !slices.Contains(uses, u) {
			uses = append(uses, u)
		}
	}
	b.nodes[n].uses = uses
}

// number finds a node, or makes it and notes that it is to be followed.
func (b *builder) number(k key) uint32 {
	if n, ok := b.numbers[k]; ok {
		return n
	}
	n := uint32(len(b.nodes))
	b.nodes = append(b.nodes, node{key: k})
	b.numbers[k] = n
	b.todo = append(b.todo, n)
	return n
}

// name finds a name's number, or gives it one.
func (b *builder) name(name string) uint32 {
	if n, ok := slices.BinarySearch(b.before.names, name); ok {
		return uint32(n)
	}
	if n, ok := b.newNames[name]; ok {
		return n
	}
	n := uint32(len(b.before.names) + len(b.list))
	b.newNames[name] = n
	b.list = append(b.list, name)
	return n
}

func (b *builder) nameOf(n uint32) string {
	if int(n) < len(b.before.names) {
		return b.before.names[n]
	}
	return b.list[int(n)-len(b.before.names)]
}

const (
	// batchSize is how many nodes a goroutine follows at a time.
	batchSize = 128
	// fewFiles are sooner read one by one than ahead: a chain of folders has a
	// round for each of them.
	fewFiles = 64
	// maxAhead bounds what is read ahead for a node, and roughly for a batch.
	maxAhead = 4 << 20
)

// follow follows nodes, several at a time; results are in the nodes' order.
// With a bulk tree, what they will surely read is read ahead.
func (b *builder) follow(round []uint32) ([]found, error) {
	results := make([]found, len(round))
	given := make([][]content, len(round))
	batches := make(chan []int, 4)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			plain := &plainParser{}
			for batch := range batches {
				for _, i := range batch {
					if b.ctx.Err() == nil {
						b.one(round[i], plain, given[i], &results[i])
					}
					given[i] = nil
				}
			}
		})
	}
	err := b.ahead(round, given, batches)
	close(batches)
	running.Wait()
	if err == nil {
		err = b.ctx.Err()
	}
	return results, err
}

func (b *builder) one(n uint32, plain *plainParser, given []content, out *found) {
	w := &walker{work: b.work, plain: plain, given: given, out: out}
	if k := b.nodes[n].key; k.role != roleReader {
		w.follow(k)
		return
	}
	w.reader(b.readers[n])
}

// ahead hands all nodes of a round out, each once what it will read is there.
func (b *builder) ahead(round []uint32, given [][]content, batches chan<- []int) error {
	var batch []int
	size, own := 0, 0 // bytes that the batch holds, and the next node
	ready := func(i int) {
		batch, size, own = append(batch, i), size+own, 0
		if len(batch) >= batchSize || size > maxAhead {
			batches <- batch
			batch, size = nil, 0
		}
	}
	ids, paths, of := b.readAhead(round)
	next := 0 // of the nodes that wait
	for i := range round {
		for next < len(of) && of[next] < i {
			next++
		}
		if next == len(of) || of[next] != i {
			ready(i)
		}
	}
	var err error
	if len(ids) > 0 {
		err = b.view.bulk.ReadBlobs(b.ctx, ids, maxFile, func(i int, data []byte, err error) error {
			if err == nil && own+len(data) <= maxAhead { // otherwise the node reads it by itself
				given[of[i]] = append(given[of[i]], content{paths[i], data})
				own += len(data)
			}
			if i+1 == len(of) || of[i+1] != of[i] {
				ready(of[i])
			}
			return b.ctx.Err()
		})
	}
	if len(batch) > 0 {
		batches <- batch
	}
	return err
}

// readAhead lists what the nodes of a round will surely read, and which node
// each is for; nothing when there is little of it.
func (b *builder) readAhead(round []uint32) (ids, paths []string, of []int) {
	if b.view.bulk == nil {
		return nil, nil, nil
	}
	for i, n := range round {
		for _, name := range b.willRead(n) {
			if f, ok := b.view.at[name]; ok && b.view.kinds[f] == file {
				ids, paths, of = append(ids, b.view.ids[f]), append(paths, name), append(of, i)
			}
		}
	}
	if len(ids) < fewFiles {
		return nil, nil, nil
	}
	return ids, paths, of
}

// willRead foretells the files that following a node reads.
func (b *builder) willRead(n uint32) []string {
	switch k := b.nodes[n].key; k.role {
	case roleReader:
		var out []string
		for _, s := range b.readers[n].Sources {
			out = append(out, s.Options...)
		}
		return out
	case roleKustomization:
		for _, name := range b.view.marks[k.dir] {
			if !strings.HasSuffix(name, chartSuffix) {
				return []string{inFolder(k.dir, name)}
			}
		}
	case roleValues, roleJsonnet:
		return []string{k.dir}
	case roleConfig:
		return []string{k.arg}
	case roleChart:
		return b.view.chartTexts(k.dir)
	}
	return nil
}
