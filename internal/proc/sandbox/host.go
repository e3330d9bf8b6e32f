package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxPrefetchFile is the largest file whose bytes go along with what is said of it.
	maxPrefetchFile = 64 << 10
	// Folders that weren't asked for fill a listing up to some bytes: few at first, twice as many
	// with each question. A child that asks for many folders goes on to the rest.
	minListingSize = 2 << 10
	maxListingSize = 256 << 10
	// maxPendingFolders bounds the folders that are remembered for that.
	maxPendingFolders = 100_000
	// maxListedFolders bounds the folders of which it is remembered, in all trees, that they were
	// listed. Those past it are only listed when they are asked for, however often that is.
	maxListedFolders = 200_000
	// requestCost counts for a question besides its answer, so that the
	// number of questions is bounded too.
	requestCost = 64
)

// maxTrees bounds how many trees a child may open.
const maxTrees = 256

// host answers a child's questions about trees. The child may be under a
// stranger's control: what it asks for outside of them, or beyond what it may
// read, ends it.
type host struct {
	trees     Trees
	bytesLeft int64 // bytes that may still be served
	open      map[string]*servedTree
	listed    int // folders, in all of the trees
}

// servedTree is one tree that a child has asked about.
type servedTree struct {
	fs.FS
	host        *host
	err         error           // why it can't be opened
	listed      map[string]bool // the folders that were listed
	pending     []string        // folders that are known of and were perhaps not listed
	listingSize int             // how long the next listing may get
}

func newHost(trees Trees, reads int64) *host {
	h := &host{trees: trees, bytesLeft: reads}
	h.open = map[string]*servedTree{"": {FS: trees.Main, host: h, listed: map[string]bool{}}}
	return h
}

var (
	errReads = errors.New("reads too much")
	errTrees = fmt.Errorf("%w: it opens more than %d trees", errProtocol, maxTrees)
)

// handleRequest answers one question: a frame's letter and payload. The error is for
// a question that ends the child.
func (h *host) handleRequest(ctx context.Context, letter byte, question []byte) (byte, []byte, error) {
	r := &payloadReader{rest: question}
	tree, name := r.readString(), string(r.rest)
	if r.err != nil {
		return 0, nil, r.err
	}
	if !validName(name) {
		return 0, nil, fmt.Errorf("%w: it asked for %q, outside of the tree", errProtocol, wording.Clip(name, 80))
	}
	t, err := h.openNamedTree(ctx, tree)
	if err != nil {
		return 0, nil, err
	}
	payload, err := t.serveRequest(letter, name)
	if errors.Is(err, errProtocol) {
		return 0, nil, err
	}
	if err != nil {
		letter, payload = frameFail, encodeError(err)
	} else {
		letter = frameOK
	}
	if h.bytesLeft -= requestCost + int64(len(payload)); h.bytesLeft < 0 {
		return 0, nil, errReads
	}
	return letter, payload, nil
}

// openNamedTree opens a tree once.
func (h *host) openNamedTree(ctx context.Context, name string) (*servedTree, error) {
	if t := h.open[name]; t != nil {
		return t, nil
	}
	if len(h.open) >= maxTrees {
		return nil, errTrees
	}
	t := &servedTree{host: h, listed: map[string]bool{}, err: errors.New("there is no such tree")}
	if h.trees.Named != nil {
		t.FS, t.err = h.trees.Named(ctx, name)
	}
	h.open[name] = t
	return t, nil
}

func (s *servedTree) serveRequest(letter byte, name string) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	switch letter {
	case frameList:
		return s.listFolders(name)
	case frameStat:
		return s.statFile(name)
	case frameFile:
		return s.readFile(name)
	case frameLink:
		to, err := fs.ReadLink(s.FS, name)
		return []byte(to), err
	}
	return nil, fmt.Errorf("%w: no question begins with %q", errProtocol, letter)
}

// listFolders lists a folder, and folders that weren't listed yet while there is
// room: those below it first.
func (s *servedTree) listFolders(name string) ([]byte, error) {
	entries, err := fs.ReadDir(s.FS, name)
	if err != nil {
		return nil, err
	}
	s.noteListed(name)
	out := appendFolder(nil, name, entries)
	if len(out) > maxFile {
		return nil, fmt.Errorf("the folder has %d entries, too many to list", len(entries))
	}
	s.listingSize = min(max(2*s.listingSize, minListingSize), maxListingSize)
	next := appendSubfolders(nil, name, entries)
	for len(out) < s.listingSize && s.host.listed < maxListedFolders {
		if len(next) == 0 {
			next, s.pending = s.pending, nil
		}
		if len(next) == 0 {
			break
		}
		below := next[0]
		next = next[1:]
		if s.listed[below] {
			continue
		}
		entries, err := fs.ReadDir(s.FS, below)
		if err != nil {
			continue // its reader gets the error
		}
		more := appendFolder(out, below, entries)
		if len(more) > maxFile {
			break
		}
		out = more
		s.noteListed(below)
		next = appendSubfolders(next, below, entries)
	}
	if s.pending = append(next, s.pending...); len(s.pending) > maxPendingFolders {
		s.pending = s.pending[:maxPendingFolders]
	}
	return out, nil
}

// noteListed remembers that a folder was listed, while there is room.
func (s *servedTree) noteListed(name string) {
	if !s.listed[name] && s.host.listed < maxListedFolders {
		s.listed[name] = true
		s.host.listed++
	}
}

func appendSubfolders(list []string, dir string, entries []fs.DirEntry) []string {
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, joinName(dir, e.Name()))
		}
	}
	return list
}

func (s *servedTree) statFile(name string) ([]byte, error) {
	i, err := fs.Stat(s.FS, name)
	if err != nil {
		return nil, err
	}
	f := statReply{mode: i.Mode(), size: i.Size()}
	if i.Mode().IsRegular() && i.Size() <= maxPrefetchFile {
		// A file that can be described but not read is read again when asked
		// for, and says why.
		if data, err := fs.ReadFile(s.FS, name); err == nil && len(data) <= maxPrefetchFile {
			f.data, f.hasData, f.size = data, true, int64(len(data))
		}
	}
	return f.appendTo(nil), nil
}

func (s *servedTree) readFile(name string) ([]byte, error) {
	i, err := fs.Stat(s.FS, name)
	if err != nil {
		return nil, err
	}
	switch {
	case i.IsDir():
		return nil, errors.New("is a folder")
	case i.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0:
		return nil, errors.New("is not a file") // reading one might never end
	case i.Size() > maxFile:
		return nil, tooLarge(i.Size())
	}
	data, err := fs.ReadFile(s.FS, name)
	if err == nil && len(data) > maxFile {
		err = tooLarge(int64(len(data)))
	}
	return data, err
}

func tooLarge(size int64) error {
	return fmt.Errorf("its %d bytes are more than the %d that are read", size, maxFile)
}
