package plan

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's ids are made of it
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

// commitTree is a commit whose listing is kept: a plan resolves the commit once
// more for every promotion.
type commitTree struct {
	*git.Tree
	mu    sync.Mutex
	files []treeFile // nil: not listed yet
}

type treeFile struct {
	path string
	mode fs.FileMode
	id   string
}

// List is the tree's, asked once.
func (t *commitTree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	files, err := t.listFiles(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := do(f.path, f.mode, f.id); err != nil {
			return err
		}
	}
	return nil
}

func (t *commitTree) listFiles(ctx context.Context) ([]treeFile, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files != nil {
		return t.files, nil
	}
	files := []treeFile{}
	err := t.Tree.List(ctx, func(name string, mode fs.FileMode, id string) error {
		files = append(files, treeFile{name, mode, id})
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.files = files
	return files, nil
}

// readable is what trees offer besides Open.
type readable interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
}

// editedTree is a commit with edits, as the commit of them would be.
type editedTree struct {
	readable
	base           *commitTree
	edits          map[string]*fieldedit.Edit
	deletedFolders map[string]bool // folders of which all files are deleted: in Git there is no such folder
}

func newEditedTree(ctx context.Context, base *commitTree, edits []fieldedit.Edit) (*editedTree, error) {
	t := &editedTree{readable: fieldedit.Apply(base, edits).(readable), base: base, edits: map[string]*fieldedit.Edit{}, deletedFolders: map[string]bool{}}
	deleted := false
	for i := range edits {
		t.edits[edits[i].File] = &edits[i]
		deleted = deleted || edits[i].Deleted
	}
	if !deleted {
		return t, nil
	}
	filled := map[string]bool{}
	err := t.List(ctx, func(name string, _ fs.FileMode, _ string) error {
		for dir := path.Dir(name); !filled[dir]; dir = path.Dir(dir) {
			filled[dir] = true
		}
		return nil
	})
	for _, e := range edits {
		for dir := path.Dir(e.File); e.Deleted && !filled[dir] && dir != "."; dir = path.Dir(dir) {
			t.deletedFolders[dir] = true
		}
	}
	return t, err
}

func (t *editedTree) errIfDeleted(op, name string) error {
	if t.deletedFolders[name] {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

// Open opens a file or a folder.
func (t *editedTree) Open(name string) (fs.File, error) {
	if err := t.errIfDeleted("open", name); err != nil {
		return nil, err
	}
	return t.readable.Open(name)
}

// Stat describes a file or folder; a link describes itself.
func (t *editedTree) Stat(name string) (fs.FileInfo, error) {
	if err := t.errIfDeleted("stat", name); err != nil {
		return nil, err
	}
	return t.readable.Stat(name)
}

// Lstat is Stat.
func (t *editedTree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

// ReadDir lists a folder, sorted by name.
func (t *editedTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.errIfDeleted("readdir", name); err != nil {
		return nil, err
	}
	list, err := t.readable.ReadDir(name)
	if len(t.deletedFolders) > 0 {
		list = slices.DeleteFunc(slices.Clone(list), func(e fs.DirEntry) bool { return t.deletedFolders[path.Join(name, e.Name())] })
	}
	return list, err
}

// blobID is the id that git gives a file of this content.
func blobID(data []byte) string {
	h := sha1.New() //nolint:gosec // git's ids are made of it
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// describeEdit is all that an edit says, in a line.
func describeEdit(file string, e *fieldedit.Edit) string {
	return fmt.Sprintf("%q %t %o %s", file, e.Deleted, e.Mode, blobID(e.After))
}

// List is the commit's with the edits, in its order.
func (t *editedTree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	files, err := t.base.listFiles(ctx)
	if err != nil {
		return err
	}
	var created []treeFile
	for name, e := range t.edits {
		if e.Created {
			created = append(created, treeFile{name, git.Mode(e.Mode).FS(), blobID(e.After)})
		}
	}
	slices.SortFunc(created, func(a, b treeFile) int { return strings.Compare(a.path, b.path) })
	for _, f := range files {
		for len(created) > 0 && created[0].path < f.path {
			if err := do(created[0].path, created[0].mode, created[0].id); err != nil {
				return err
			}
			created = created[1:]
		}
		if e := t.edits[f.path]; e != nil {
			if e.Deleted {
				continue
			}
			f.mode, f.id = git.Mode(e.Mode).FS(), blobID(e.After)
		}
		if err := do(f.path, f.mode, f.id); err != nil {
			return err
		}
	}
	for _, f := range created {
		if err := do(f.path, f.mode, f.id); err != nil {
			return err
		}
	}
	return nil
}

// ReadBlobs reads contents by the ids that List gave.
func (t *editedTree) ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error {
	own := map[string][]byte{}
	for _, e := range t.edits {
		if !e.Deleted {
			own[blobID(e.After)] = e.After
		}
	}
	from := 0
	stored := func(to int) error {
		at := from
		return t.base.ReadBlobs(ctx, ids[at:to], limit, func(i int, data []byte, err error) error { return do(at+i, data, err) })
	}
	for i, id := range ids {
		data, is := own[id]
		if !is {
			continue
		}
		if err := stored(i); err != nil {
			return err
		}
		var err error
		if int64(len(data)) > limit {
			data, err = nil, git.ErrTooLarge
		}
		if err := do(i, slices.Clone(data), err); err != nil {
			return err
		}
		from = i + 1
	}
	return stored(len(ids))
}

// Identity tells what lies at a name, as the commit's does.
func (t *editedTree) Identity(name string) (string, error) {
	if e := t.edits[name]; e != nil {
		if e.Deleted {
			return "", nil
		}
		return git.Mode(e.Mode).String() + " " + blobID(e.After), nil
	}
	if t.deletedFolders[name] {
		return "", nil
	}
	id, err := t.base.Identity(name)
	if err != nil {
		return "", err
	}
	var below []string
	for file, e := range t.edits {
		if name == "." || strings.HasPrefix(file, name+"/") {
			below = append(below, describeEdit(file, e))
		}
	}
	if len(below) == 0 {
		return id, nil
	}
	return "edited " + hashLines(id, below), nil
}

// syntheticRevision stands for a commit of the edits on another: the same edits have the same.
func (t *editedTree) syntheticRevision(base string) string {
	var all []string
	for file, e := range t.edits {
		all = append(all, describeEdit(file, e))
	}
	return hashLines(base, all)[:len(base)]
}

func hashLines(base string, lines []string) string {
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(base + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}
