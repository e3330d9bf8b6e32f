package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"
)

// fileInfo describes an entry. Sys gives nil.
type fileInfo struct {
	name string
	mode Mode
	size int64
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.size }
func (i *fileInfo) Mode() fs.FileMode  { return i.mode.FS() }
func (i *fileInfo) ModTime() time.Time { return time.Time{} }
func (i *fileInfo) IsDir() bool        { return i.mode == Directory }
func (i *fileInfo) Sys() any           { return nil }

// dirEntry is an entry of a listed folder; its size is looked up when asked for.
type dirEntry struct {
	t    *Tree
	path string
	e    treeEntry
}

func (d dirEntry) Name() string               { return d.e.name }
func (d dirEntry) IsDir() bool                { return d.e.mode == Directory }
func (d dirEntry) Type() fs.FileMode          { return d.e.mode.FS().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.t.statEntry("stat", d.path, d.e) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// Identity is what [Tree.Identity] says of the entry.
func (d dirEntry) Identity() string { return d.e.identity() }

type openFile struct {
	*bytes.Reader
	info *fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	info := *f.info
	info.size = f.Reader.Size()
	return &info, nil
}

func (f *openFile) Close() error { return nil }

type openDir struct {
	info    *fileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a folder")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := d.entries
		d.entries = nil
		return out, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n:n]
	d.entries = d.entries[n:]
	return out, nil
}
