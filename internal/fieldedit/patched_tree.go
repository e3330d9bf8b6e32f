package fieldedit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"time"
)

// Apply is the tree with edits laid over it: what it will be once they are
// committed. Edits are for files of the tree, or for new ones in place of
// nothing; a folder whose files are all gone stays, empty. The result may be
// used concurrently as far as tree may, and reads links as tree does.
func Apply(tree fs.FS, edits []Edit) fs.FS {
	if len(edits) == 0 {
		return tree
	}
	p := &patchedTree{tree: tree, edits: map[string]*Edit{}, folders: map[string]map[string]bool{}}
	for i := range edits {
		e := &edits[i]
		p.edits[e.File] = e
		if !e.Created {
			continue
		}
		for name := e.File; name != "."; name = path.Dir(name) {
			in := path.Dir(name)
			if p.folders[in] == nil {
				p.folders[in] = map[string]bool{}
			}
			p.folders[in][path.Base(name)] = true
		}
	}
	return p
}

// Beside is the tree with further files. They are there for readers that ask for them by name, in
// place of the tree's own, but in no listing.
func Beside(tree fs.FS, files map[string][]byte) fs.FS {
	if len(files) == 0 {
		return tree
	}
	p := &patchedTree{tree: tree, edits: map[string]*Edit{}}
	for name, data := range files {
		p.edits[name] = &Edit{File: name, After: data, Mode: ModeRegular}
	}
	return p
}

type patchedTree struct {
	tree    fs.FS
	edits   map[string]*Edit
	folders map[string]map[string]bool // names of created files and the folders on the way to them
}

func (p *patchedTree) Lstat(name string) (fs.FileInfo, error) {
	return p.statWith("lstat", name, fs.Lstat)
}
func (p *patchedTree) Stat(name string) (fs.FileInfo, error) {
	return p.statWith("stat", name, fs.Stat)
}

func (p *patchedTree) statWith(op, name string, look func(fs.FS, string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	e := p.edits[name]
	if e != nil && e.Deleted {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	if e != nil {
		return patchedInfo{name: path.Base(name), size: int64(len(e.After)), mode: e.Mode.perm()}, nil
	}
	info, err := look(p.tree, name)
	if errors.Is(err, fs.ErrNotExist) && p.folders[name] != nil {
		return patchedInfo{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
	}
	return info, err
}

// ReadLink is the tree's.
func (p *patchedTree) ReadLink(name string) (string, error) { return fs.ReadLink(p.tree, name) }

// ReadFile is a file's content.
func (p *patchedTree) ReadFile(name string) ([]byte, error) {
	if e := p.edits[name]; e != nil && e.Deleted {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	} else if e != nil {
		return bytes.Clone(e.After), nil
	}
	return fs.ReadFile(p.tree, name)
}

// ReadDir lists a folder, sorted by name.
func (p *patchedTree) ReadDir(name string) ([]fs.DirEntry, error) {
	have, err := fs.ReadDir(p.tree, name)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || p.folders[name] == nil) {
		return nil, err
	}
	var out []fs.DirEntry
	seen := map[string]bool{}
	for _, e := range have {
		seen[e.Name()] = true
		at := path.Join(name, e.Name())
		switch edit := p.edits[at]; {
		case edit == nil:
			out = append(out, e)
		case !edit.Deleted:
			info, err := p.Lstat(at)
			if err != nil {
				return nil, err
			}
			out = append(out, fs.FileInfoToDirEntry(info))
		}
	}
	for child := range p.folders[name] {
		if seen[child] {
			continue
		}
		info, err := p.Lstat(path.Join(name, child))
		if err != nil {
			return nil, err
		}
		out = append(out, fs.FileInfoToDirEntry(info))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out, nil
}

// Open opens a file or a folder.
func (p *patchedTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	e := p.edits[name]
	if e == nil {
		info, err := p.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return p.tree.Open(name)
		}
		entries, err := p.ReadDir(name)
		return &patchedFile{info: info, entries: entries}, err
	}
	info, err := p.Stat(name)
	if err != nil {
		return nil, err
	}
	return &patchedFile{info: info, Reader: bytes.NewReader(e.After)}, nil
}

// patchedFile is an open edited file or an open folder.
type patchedFile struct {
	*bytes.Reader // nil for a folder
	info          fs.FileInfo
	entries       []fs.DirEntry
}

func (p *patchedFile) Stat() (fs.FileInfo, error) { return p.info, nil }
func (p *patchedFile) Close() error               { return nil }

func (p *patchedFile) Read(b []byte) (int, error) {
	if p.Reader == nil {
		return 0, &fs.PathError{Op: "read", Path: p.info.Name(), Err: fs.ErrInvalid}
	}
	return p.Reader.Read(b)
}

func (p *patchedFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(p.entries)
	} else if len(p.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(p.entries))
	out := p.entries[:n]
	p.entries = p.entries[n:]
	return out, nil
}

type patchedInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (p patchedInfo) Name() string       { return p.name }
func (p patchedInfo) Size() int64        { return p.size }
func (p patchedInfo) Mode() fs.FileMode  { return p.mode }
func (p patchedInfo) ModTime() time.Time { return time.Time{} }
func (p patchedInfo) IsDir() bool        { return p.mode.IsDir() }
func (p patchedInfo) Sys() any           { return nil }
