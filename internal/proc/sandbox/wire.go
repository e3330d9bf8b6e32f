package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// typeBits are what is sent of a file's mode. Permissions are not: a commit
// has none but one, and a listing doesn't know it.
const typeBits = fs.ModeType

// validName is fs.ValidPath without its demand for UTF-8, which Git doesn't make.
func validName(name string) bool {
	if name == "." {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.IndexByte(part, 0) >= 0 {
			return false
		}
	}
	return true
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// payloadReader takes a payload apart; after a first mistake everything is empty.
type payloadReader struct {
	rest []byte
	err  error
}

func (p *payloadReader) readNumber() uint64 {
	n, used := binary.Uvarint(p.rest)
	if used <= 0 {
		p.fail("a number is cut off")
		return 0
	}
	p.rest = p.rest[used:]
	return n
}

func (p *payloadReader) readString() string {
	n := p.readNumber()
	if n > uint64(len(p.rest)) {
		p.fail("a string is cut off")
		return ""
	}
	s := string(p.rest[:n])
	p.rest = p.rest[n:]
	return s
}

func (p *payloadReader) fail(why string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", errProtocol, why)
	}
	p.rest = nil
}

// folderEntry is one name in a folder.
type folderEntry struct {
	name string
	mode fs.FileMode // its type bits
}

// folder is one folder's listing, sorted by name.
type folder struct {
	name    string // from the root
	entries []folderEntry
}

// appendFolder writes a folder: its name, how many entries it has, and each
// entry's name and type.
func appendFolder(b []byte, name string, entries []fs.DirEntry) []byte {
	b = appendString(b, name)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendString(b, e.Name())
		b = binary.AppendUvarint(b, uint64(e.Type()&typeBits))
	}
	return b
}

// readFolders reads what appendFolder wrote, as often as it did.
func readFolders(payload []byte) ([]folder, error) {
	r := &payloadReader{rest: payload}
	var out []folder
	for len(r.rest) > 0 && r.err == nil {
		f := folder{name: r.readString()}
		count := r.readNumber()
		if count > uint64(len(r.rest)) { // an entry has at least two bytes
			r.fail("a listing is cut off")
			break
		}
		f.entries = make([]folderEntry, 0, min(count, 1<<10))
		for range count {
			e := folderEntry{name: r.readString(), mode: fs.FileMode(r.readNumber()) & typeBits}
			if r.err != nil {
				break
			}
			if e.name == "." || !validName(e.name) || strings.Contains(e.name, "/") {
				r.fail(fmt.Sprintf("an entry is named %q", wording.Clip(e.name, 80)))
				break
			}
			f.entries = append(f.entries, e)
		}
		slices.SortFunc(f.entries, func(a, b folderEntry) int { return strings.Compare(a.name, b.name) })
		out = append(out, f)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// statReply is a parent's answer about one file or folder, with its bytes where they are few. A
// child that asks for a file's size usually goes on to read it.
type statReply struct {
	mode    fs.FileMode // its type bits
	size    int64
	data    []byte
	hasData bool
}

func (s statReply) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.mode&typeBits))
	b = binary.AppendUvarint(b, uint64(max(s.size, 0)))
	if s.hasData {
		return append(append(b, 1), s.data...)
	}
	return append(b, 0)
}

func readStatReply(payload []byte) (statReply, error) {
	r := &payloadReader{rest: payload}
	f := statReply{mode: fs.FileMode(r.readNumber()) & typeBits}
	size := r.readNumber()
	if f.size = int64(size); f.size < 0 {
		r.fail("a negative size")
	}
	f.hasData = r.readNumber() == 1
	if r.err != nil {
		return statReply{}, r.err
	}
	if f.hasData {
		f.data = r.rest
	}
	return f, nil
}

// The errors that a tree's readers tell apart, by their number in a failure.
var knownErrors = []error{nil, fs.ErrNotExist, fs.ErrInvalid, fs.ErrPermission}

// encodeError writes why a question has no answer: the number of a known error, 0
// for others, and the words.
func encodeError(err error) []byte {
	n := 0
	for i, k := range knownErrors {
		if k != nil && errors.Is(err, k) {
			n = i
			break
		}
	}
	// The child names operation and path itself.
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe == err { // only the outermost
		err = pe.Err
	}
	return append([]byte{byte(n)}, wording.Clip(err.Error(), maxErrorText)...)
}

func decodeError(payload []byte) error {
	if len(payload) == 0 || int(payload[0]) >= len(knownErrors) {
		return fmt.Errorf("%w: an unknown failure", errProtocol)
	}
	words, is := string(payload[1:]), knownErrors[payload[0]]
	if is != nil && words == is.Error() {
		return is
	}
	return &treeError{words: words, kind: is}
}

// treeError is the parent's tree's error, as far as it came over.
type treeError struct {
	words string
	kind  error
}

func (t *treeError) Error() string { return t.words }
func (t *treeError) Unwrap() error { return t.kind }

// joinName is path.Join for a folder and a name in it.
func joinName(dir, name string) string {
	if dir == "." {
		return name
	}
	return path.Join(dir, name)
}
