package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
)

const (
	// maxPeek is the largest file whose bytes go along with its facts.
	maxPeek = 64 << 10
	// readAhead is how much of a listing folders below the asked one may fill.
	readAhead = 64 << 10
	// questionCost counts for a question besides its answer, so that the
	// number of questions is bounded too.
	questionCost = 64
)

// host answers a child's questions about a tree. The child may be under a
// stranger's control: what it asks for outside the tree, or beyond what it may
// read, ends it.
type host struct {
	tree fs.FS
	left int64 // bytes that may still be served
	sent map[string]bool
}

// errReads ends a child that reads too much.
var errReads = errors.New("reads too much")

// answer answers one question: a frame's letter and payload. The error is for
// a question that ends the child.
func (h *host) answer(letter byte, name string) (byte, []byte, error) {
	if !validName(name) {
		return 0, nil, fmt.Errorf("%w: it asked for %q, outside of the tree", errProtocol, clip(name, 80))
	}
	var payload []byte
	var err error
	switch letter {
	case frameList:
		payload, err = h.list(name)
	case frameStat:
		payload, err = h.stat(name)
	case frameFile:
		payload, err = h.file(name)
	case frameLink:
		payload, err = h.link(name)
	default:
		return 0, nil, fmt.Errorf("%w: no question begins with %q", errProtocol, letter)
	}
	if err != nil {
		letter, payload = frameFail, failure(err)
	} else {
		letter = frameOK
	}
	if h.left -= questionCost + int64(len(payload)); h.left < 0 {
		return 0, nil, errReads
	}
	return letter, payload, nil
}

// list lists a folder, and folders below it that weren't listed yet, nearest
// first, while there is room.
func (h *host) list(name string) ([]byte, error) {
	entries, err := fs.ReadDir(h.tree, name)
	if err != nil {
		return nil, err
	}
	h.sent[name] = true
	out := appendFolder(nil, name, entries)
	if len(out) > maxFile {
		return nil, fmt.Errorf("the folder has %d entries, too many to list", len(entries))
	}
	below := subfolders(nil, name, entries)
	for i := 0; i < len(below) && len(out) < readAhead; i++ {
		if h.sent[below[i]] {
			continue
		}
		entries, err := fs.ReadDir(h.tree, below[i])
		if err != nil {
			continue // whoever asks for it gets the error
		}
		more := appendFolder(out, below[i], entries)
		if len(more) > maxFile {
			break
		}
		out = more
		h.sent[below[i]] = true
		below = subfolders(below, below[i], entries)
	}
	return out, nil
}

func subfolders(list []string, dir string, entries []fs.DirEntry) []string {
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, join(dir, e.Name()))
		}
	}
	return list
}

func (h *host) stat(name string) ([]byte, error) {
	i, err := fs.Stat(h.tree, name)
	if err != nil {
		return nil, err
	}
	f := facts{mode: i.Mode(), size: i.Size()}
	if i.Mode().IsRegular() && i.Size() <= maxPeek {
		// A file that can be described but not read is read again when asked
		// for, and says why.
		if data, err := fs.ReadFile(h.tree, name); err == nil && len(data) <= maxPeek {
			f.data, f.hasData, f.size = data, true, int64(len(data))
		}
	}
	return f.append(nil), nil
}

func (h *host) file(name string) ([]byte, error) {
	i, err := fs.Stat(h.tree, name)
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
	data, err := fs.ReadFile(h.tree, name)
	if err == nil && len(data) > maxFile {
		err = tooLarge(int64(len(data)))
	}
	return data, err
}

func tooLarge(size int64) error {
	return fmt.Errorf("its %d bytes are more than the %d that are read", size, maxFile)
}

func (h *host) link(name string) ([]byte, error) {
	to, err := fs.ReadLink(h.tree, name)
	return []byte(to), err
}
