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

func (f *fileInfo) Name() string       { return f.name }
func (f *fileInfo) Size() int64        { return f.size }
func (f *fileInfo) Mode() fs.FileMode  { return f.mode.FS() }
func (f *fileInfo) ModTime() time.Time { return time.Time{} }
func (f *fileInfo) IsDir() bool        { return f.mode == Directory }
func (f *fileInfo) Sys() any           { return nil }

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

func (o *openFile) Stat() (fs.FileInfo, error) {
	info := *o.info
	info.size = o.Reader.Size()
	return &info, nil
}

func (o *openFile) Close() error { return nil }

type openDir struct {
	info    *fileInfo
	entries []fs.DirEntry
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: errors.New("is a folder")}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := o.entries
		o.entries = nil
		return out, nil
	}
	if len(o.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.entries))
	out := o.entries[:n:n]
	o.entries = o.entries[n:]
	return out, nil
}
