package checkout

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
)

// File is a manifest that was named on the command line: what it says counts,
// and not what the tree has at its place.
type File struct {
	Name string // as people named it
	Path string // on disk, absolute; "" when it isn't on disk
	Data []byte
}

// overlayFS is a tree with further files, which are there for whoever asks for
// them by name, but in no listing: git generators don't see them.
type overlayFS struct {
	treeFiles
	data  map[string][]byte
	names map[string]string // as people named them, by path in the tree
}

// outsideFolder is the folder, in the tree, of files that are not in the checkout.
const outsideFolder = ".liftlock-given"

// overlayFiles puts the files into a tree, those in the checkout at their own place.
func (r *Repository) overlayFiles(t *Tree, list []File) (*overlayFS, []string) {
	g := &overlayFS{treeFiles: t.FS, data: map[string][]byte{}, names: map[string]string{}}
	var paths []string
	for i, f := range list {
		at := fmt.Sprintf("%s/%d.yaml", outsideFolder, i)
		if rel, err := filepath.Rel(r.Dir(), f.Path); err == nil && f.Path != "" && !r.git.Bare() && filepath.IsLocal(rel) {
			at = filepath.ToSlash(rel)
		}
		if _, twice := g.data[at]; twice {
			continue
		}
		g.data[at], g.names[at] = f.Data, f.Name
		paths = append(paths, at)
	}
	return g, paths
}

// restoreNames gives files back the names that people know them by.
func (g *overlayFS) restoreNames(f *appset.TargetSet) *appset.TargetSet {
	name := func(at string) string { return cmp.Or(g.names[at], at) }
	out := &appset.TargetSet{Targets: make([]appset.Target, len(f.Targets))}
	copy(out.Targets, f.Targets)
	for i := range out.Targets {
		out.Targets[i].ApplicationSetFile = name(out.Targets[i].ApplicationSetFile)
	}
	renamed := func(list []appset.Problem) []appset.Problem {
		var out []appset.Problem
		for _, p := range list {
			p.File = name(p.File)
			for at, called := range g.names {
				p.Message = strings.ReplaceAll(p.Message, at, called)
			}
			out = append(out, p)
		}
		return out
	}
	out.Problems, out.Notes = renamed(f.Problems), renamed(f.Notes)
	return out
}

// Open opens a given file, or one of the tree.
func (g *overlayFS) Open(name string) (fs.File, error) {
	if data, ok := g.data[name]; ok {
		return &openOverlayFile{Reader: bytes.NewReader(data), info: overlayFileInfo{name: path.Base(name), size: len(data)}}, nil
	}
	return g.treeFiles.Open(name)
}

// ReadFile reads a given file, or one of the tree.
func (g *overlayFS) ReadFile(name string) ([]byte, error) {
	if data, ok := g.data[name]; ok {
		return bytes.Clone(data), nil
	}
	return g.treeFiles.ReadFile(name)
}

// Stat describes a given file, or one of the tree.
func (g *overlayFS) Stat(name string) (fs.FileInfo, error) {
	if data, ok := g.data[name]; ok {
		return overlayFileInfo{name: path.Base(name), size: len(data)}, nil
	}
	return g.treeFiles.Stat(name)
}

// Lstat is Stat: a given file is none of the tree's links.
func (g *overlayFS) Lstat(name string) (fs.FileInfo, error) {
	if _, ok := g.data[name]; ok {
		return g.Stat(name)
	}
	return g.treeFiles.Lstat(name)
}

type openOverlayFile struct {
	*bytes.Reader
	info overlayFileInfo
}

func (f *openOverlayFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openOverlayFile) Close() error               { return nil }

type overlayFileInfo struct {
	name string
	size int
}

func (i overlayFileInfo) Name() string       { return i.name }
func (i overlayFileInfo) Size() int64        { return int64(i.size) }
func (i overlayFileInfo) Mode() fs.FileMode  { return 0o444 }
func (i overlayFileInfo) ModTime() time.Time { return time.Time{} }
func (i overlayFileInfo) IsDir() bool        { return false }
func (i overlayFileInfo) Sys() any           { return nil }
