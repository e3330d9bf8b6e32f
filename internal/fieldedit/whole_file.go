package fieldedit

import (
	"crypto/sha1" // git's own name for a content, not a secret's
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Mode is a file's mode as git writes it.
type Mode uint32

// The modes that files are carried with; links and submodules aren't.
const (
	ModeRegular    Mode = 0o100644
	ModeExecutable Mode = 0o100755
)

// ModeOf is git's mode of a plain file: what its owner may do decides.
func ModeOf(info fs.FileInfo) Mode {
	if info.Mode()&0o100 != 0 {
		return ModeExecutable
	}
	return ModeRegular
}

func (m Mode) perm() fs.FileMode {
	if m == ModeExecutable {
		return 0o755
	}
	return 0o644
}

// ObjectIDs is a tree that knows git's id of a file's content without reading
// it. A tree that doesn't is read.
type ObjectIDs interface {
	ObjectID(name string) (string, error)
}

// Contents gives the bytes of a whole file that a release carries; it is asked for fields of
// KindFile only. The bytes count if they are the content that the field names by its id.
type Contents func(Field) ([]byte, error)

// objectID is git's name for a content.
func objectID(data []byte) string {
	h := sha1.New()
	h.Write([]byte("blob " + strconv.Itoa(len(data)) + "\x00"))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// wholeValue is the value of a whole file: its mode and its content's id.
func wholeValue(m Mode, id string) string { return fmt.Sprintf("%06o %s", uint32(m), id) }

// ObjectID is git's id of the content of a whole file; "" for another kind.
func (f Field) ObjectID() string {
	_, id, _ := f.parseWholeValue()
	return id
}

// parseWholeValue takes the value of a whole file apart; ok is false where it isn't one.
func (f Field) parseWholeValue() (m Mode, id string, ok bool) {
	mode, id, _ := strings.Cut(f.Value, " ")
	n, err := strconv.ParseUint(mode, 8, 32)
	m = Mode(n)
	isMode := err == nil && (m == ModeRegular || m == ModeExecutable)
	if f.Kind != KindFile || !isMode || len(id) != 2*sha1.Size {
		return 0, "", false
	}
	return m, id, true
}

// locateWhole lists the files that are carried as a whole under a root.
func (c *commitFiles) locateWhole(b *resolvedOverlay, root string, e *carryEntry) ([]Location, error) {
	files, err := c.globFiles(b, root, e)
	if err != nil {
		return nil, err
	}
	var found []Location
	for _, file := range files {
		at := joinRoot(root, file.name)
		if c.skipsFile(at) {
			continue
		}
		info, err := c.statPath(at)
		if err != nil {
			return nil, suggestExclude(err)
		}
		id, err := c.objectID(at, info)
		if err != nil {
			return nil, err
		}
		found = append(found, Location{Root: root, File: at, Field: Field{Kind: KindFile, File: file.placeholderName,
			Value: wholeValue(ModeOf(info), id)}})
	}
	return found, nil
}

// suggestExclude adds to a refusal what helps where a file is carried as a whole.
func suggestExclude(err error) error {
	var r *RefusedError
	if !errors.As(err, &r) {
		return err
	}
	c := *r
	c.Reason += ", or exclude it from `files`"
	return &c
}

// objectID is git's id of a file's content, without reading it where the tree knows.
func (c *commitFiles) objectID(name string, info fs.FileInfo) (string, error) {
	if ids, ok := c.tree.(ObjectIDs); ok {
		return ids.ObjectID(name)
	}
	if info.Size() > MaxFileSize {
		return "", tooLarge(name, info.Size())
	}
	data, err := c.readBytes(name)
	if err != nil {
		return "", err
	}
	return objectID(data), nil
}

// checkCarriedOnce refuses a file that is carried as a whole and by field as well: the
// two would overwrite each other.
func checkCarriedOnce(found []Location) error {
	whole := map[string]bool{}
	for _, l := range found {
		if l.Field.Kind == KindFile {
			whole[l.File] = true
		}
	}
	for _, l := range found {
		if l.Field.Kind != KindFile && whole[l.File] {
			return &RefusedError{File: l.File, Line: l.Line, Field: l.Path(),
				Reason: "the file is carried as a whole by `files`, and this field of it by another entry: exclude the file from " +
					"`files`, or remove the other entry"}
		}
	}
	return nil
}
