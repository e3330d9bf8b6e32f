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

// Build follows every reader's sources through the tree. A source that several readers share is
// followed once. [Index.Problems] has what can't be followed. The error is for a context that
// ended, a tree that can't be read, and reader IDs that are not unique. A tree that is [Bulk] is
// read in few large steps.
func Build(ctx context.Context, tree fs.FS, readers []Reader) (*Index, error) {
	v, err := newTreeView(ctx, tree, true)
	if err != nil {
		return nil, fmt.Errorf("reading the commit's files: %w", err)
	}
	b, err := newBuilder(ctx, v, readers, &Index{})
	if err != nil {
		return nil, err
	}
	if err := b.followPending(); err != nil {
		return nil, err
	}
	return b.assembleIndex(func(names []string) []pathState { return statesAt(v, names) }), nil
}

// builder puts an index together, from nothing or from the one before.
type builder struct {
	*sharedState
	previous    *Index
	readers     []*Reader // by ID
	specDigests [][32]byte
	nodes       []node // the readers first
	nodeNumbers map[nodeKey]uint32
	pending     []uint32

	// The names of before keep their numbers; new ones follow.
	newNameNumbers map[string]uint32
	newNameList    []string
}

// newBuilder sorts the readers; none of them is followed yet.
func newBuilder(ctx context.Context, v *treeView, readers []Reader, before *Index) (*builder, error) {
	b := &builder{
		sharedState: &sharedState{ctx: ctx, tree: v, jsonnet: map[string][]jsonnetImport{}},
		previous:    before, readers: make([]*Reader, len(readers)), specDigests: make([][32]byte, len(readers)),
		nodes: make([]node, len(readers), 2*len(readers)+16), nodeNumbers: make(map[nodeKey]uint32, len(readers)),
		newNameNumbers: make(map[string]uint32, len(v.files)),
	}
	for i := range readers {
		b.readers[i] = &readers[i]
	}
	slices.SortFunc(b.readers, func(x, y *Reader) int { return strings.Compare(x.ID, y.ID) })
	for i, r := range b.readers {
		if i > 0 && b.readers[i-1].ID == r.ID {
			return nil, fmt.Errorf("indexing what is read: two readers are called %q", r.ID)
		}
		b.specDigests[i] = digestReader(r)
		b.nodes[i] = node{key: nodeKey{role: roleReader, arg: r.ID}}
	}
	if before.nodes == nil {
		for i := range b.readers {
			b.pending = append(b.pending, uint32(i))
		}
	}
	return b, nil
}

// digestReader tells readers apart by what they name.
func digestReader(r *Reader) [32]byte {
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
		add(s.Path, string(s.Layout), s.Include, s.Exclude, strconv.FormatBool(s.Recurse), strconv.FormatBool(s.InlineReadsFiles))
		add(s.ValueFiles...)
		add(s.ValueGlobs...)
		add(s.Options...)
		add(s.Libs...)
	}
	add(r.Extra...)
	add(r.Globs...)
	return sha256.Sum256(text)
}

// followPending follows what is to do, and what comes up, until nothing does.
func (b *builder) followPending() error {
	for {
		for len(b.pending) > 0 {
			round := b.pending
			b.pending = nil
			results, err := b.followRound(round)
			if err != nil {
				return fmt.Errorf("indexing what is read: %w", err)
			}
			for i, n := range round {
				b.storeResult(n, &results[i])
			}
		}
		if b.resolveHelmReleases(); len(b.pending) == 0 {
			return nil
		}
	}
}

// storeResult makes what was found part of a node.
func (b *builder) storeResult(n uint32, f *nodeResult) {
	files := make([]uint32, len(f.files))
	for i, name := range f.files {
		files[i] = b.numberName(name)
	}
	slices.Sort(files)
	at := &b.nodes[n]
	at.files = slices.Clip(slices.Compact(files))
	at.traits, at.extras, at.uses = f.traits, nil, nil
	if len(f.rules)+len(f.remotes)+len(f.problems) > 0 {
		at.extras = &nodeExtras{rules: f.rules, remotes: f.remotes, problems: f.problems}
	}
	uses := make([]uint32, 0, len(f.children))
	for _, k := range f.children {
		if u := b.numberNode(k); !slices.Contains(uses, u) {
			uses = append(uses, u)
		}
	}
	b.nodes[n].uses = uses
}

// numberNode finds a node, or makes it and notes that it is to be followed.
func (b *builder) numberNode(k nodeKey) uint32 {
	if n, ok := b.nodeNumbers[k]; ok {
		return n
	}
	n := uint32(len(b.nodes))
	b.nodes = append(b.nodes, node{key: k})
	b.nodeNumbers[k] = n
	b.pending = append(b.pending, n)
	return n
}

// numberName finds a name's number, or gives it one.
func (b *builder) numberName(name string) uint32 {
	if n, ok := slices.BinarySearch(b.previous.names, name); ok {
		return uint32(n)
	}
	if n, ok := b.newNameNumbers[name]; ok {
		return n
	}
	n := uint32(len(b.previous.names) + len(b.newNameList))
	b.newNameNumbers[name] = n
	b.newNameList = append(b.newNameList, name)
	return n
}

func (b *builder) nameOf(n uint32) string {
	if int(n) < len(b.previous.names) {
		return b.previous.names[n]
	}
	return b.newNameList[int(n)-len(b.previous.names)]
}

const (
	// batchSize is how many nodes a goroutine follows at a time.
	batchSize = 128
	// minReadAhead are sooner read one by one than ahead: a chain of folders has a
	// round for each of them.
	minReadAhead = 64
	// maxReadAheadBytes bounds what is read ahead for a node, and roughly for a batch.
	maxReadAheadBytes = 4 << 20
)

// followRound follows nodes, several at a time; results are in the nodes' order.
// With a bulk tree, what they will surely read is read ahead.
func (b *builder) followRound(round []uint32) ([]nodeResult, error) {
	results := make([]nodeResult, len(round))
	prefetched := make([][]prefetchedFile, len(round))
	batches := make(chan []int, 4)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			plain := &plainParser{}
			for batch := range batches {
				for _, i := range batch {
					if b.ctx.Err() == nil {
						b.followNode(round[i], plain, prefetched[i], &results[i])
					}
					prefetched[i] = nil
				}
			}
		})
	}
	err := b.dispatchRound(round, prefetched, batches)
	close(batches)
	running.Wait()
	if err == nil {
		err = b.ctx.Err()
	}
	return results, err
}

func (b *builder) followNode(n uint32, plain *plainParser, prefetched []prefetchedFile, out *nodeResult) {
	w := &walker{sharedState: b.sharedState, plain: plain, prefetched: prefetched, result: out}
	if k := b.nodes[n].key; k.role != roleReader {
		w.followNode(k)
		return
	}
	w.followReader(b.readers[n])
}

// dispatchRound hands all nodes of a round out, each once what it will read is there.
func (b *builder) dispatchRound(round []uint32, prefetched [][]prefetchedFile, batches chan<- []int) error {
	var batch []int
	size, own := 0, 0 // bytes that the batch holds, and the next node
	ready := func(i int) {
		batch, size, own = append(batch, i), size+own, 0
		if len(batch) >= batchSize || size > maxReadAheadBytes {
			batches <- batch
			batch, size = nil, 0
		}
	}
	ids, paths, owners := b.planReadAhead(round)
	next := 0 // of the nodes that wait
	for i := range round {
		for next < len(owners) && owners[next] < i {
			next++
		}
		if next == len(owners) || owners[next] != i {
			ready(i)
		}
	}
	var err error
	if len(ids) > 0 {
		err = b.tree.bulk.ReadBlobs(b.ctx, ids, maxFile, func(i int, data []byte, err error) error {
			if err == nil && own+len(data) <= maxReadAheadBytes { // otherwise the node reads it by itself
				prefetched[owners[i]] = append(prefetched[owners[i]], prefetchedFile{paths[i], data})
				own += len(data)
			}
			if i+1 == len(owners) || owners[i+1] != owners[i] {
				ready(owners[i])
			}
			return b.ctx.Err()
		})
	}
	if len(batch) > 0 {
		batches <- batch
	}
	return err
}

// planReadAhead lists what the nodes of a round will surely read, and which node
// each is for; nothing when there is little of it.
func (b *builder) planReadAhead(round []uint32) (ids, paths []string, owners []int) {
	if b.tree.bulk == nil {
		return nil, nil, nil
	}
	for i, n := range round {
		for _, name := range b.predictReads(n) {
			if f, ok := b.tree.fileNumbers[name]; ok && b.tree.kinds[f] == kindFile {
				ids, paths, owners = append(ids, b.tree.ids[f]), append(paths, name), append(owners, i)
			}
		}
	}
	if len(ids) < minReadAhead {
		return nil, nil, nil
	}
	return ids, paths, owners
}

// predictReads foretells the files that following a node reads.
func (b *builder) predictReads(n uint32) []string {
	switch k := b.nodes[n].key; k.role {
	case roleReader:
		var out []string
		for _, s := range b.readers[n].Sources {
			out = append(out, s.Options...)
		}
		return out
	case roleKustomization:
		for _, name := range b.tree.layoutFiles[k.dir] {
			if !strings.HasSuffix(name, chartSuffix) {
				return []string{inFolder(k.dir, name)}
			}
		}
	case roleValues, roleJsonnet:
		return []string{k.dir}
	case rolePluginConfig:
		return []string{k.arg}
	case roleChart:
		return b.tree.chartTexts(k.dir)
	}
	return nil
}
