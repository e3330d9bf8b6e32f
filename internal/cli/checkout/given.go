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

// given is a tree with further files, which are there for whoever asks for
// them by name, but in no listing: git generators don't see them.
type given struct {
	files
	data  map[string][]byte
	names map[string]string // as people named them, by path in the tree
}

// outside is the folder, in the tree, of files that are not in the checkout.
const outside = ".liftlock-given"

// with puts the files into a tree, those in the checkout at their own place.
func (r *Repository) with(t *Tree, list []File) (*given, []string) {
	g := &given{files: t.FS, data: map[string][]byte{}, names: map[string]string{}}
	var paths []string
	for i, f := range list {
		at := fmt.Sprintf("%s/%d.yaml", outside, i)
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

// rename gives files back the names that people know them by.
func (g *given) rename(f *appset.Fleet) *appset.Fleet {
	name := func(at string) string { return cmp.Or(g.names[at], at) }
	out := &appset.Fleet{Targets: make([]appset.Target, len(f.Targets))}
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
func (g *given) Open(name string) (fs.File, error) {
	if data, ok := g.data[name]; ok {
		return &openGiven{Reader: bytes.NewReader(data), info: givenInfo{name: path.Base(name), size: len(data)}}, nil
	}
	return g.files.Open(name)
}

// ReadFile reads a given file, or one of the tree.
func (g *given) ReadFile(name string) ([]byte, error) {
	if data, ok := g.data[name]; ok {
		return bytes.Clone(data), nil
	}
	return g.files.ReadFile(name)
}

// Stat describes a given file, or one of the tree.
func (g *given) Stat(name string) (fs.FileInfo, error) {
	if data, ok := g.data[name]; ok {
		return givenInfo{name: path.Base(name), size: len(data)}, nil
	}
	return g.files.Stat(name)
}

// Lstat is Stat: a given file is none of the tree's links.
func (g *given) Lstat(name string) (fs.FileInfo, error) {
	if _, ok := g.data[name]; ok {
		return g.Stat(name)
	}
	return g.files.Lstat(name)
}

type openGiven struct {
	*bytes.Reader
	info givenInfo
}

func (f *openGiven) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openGiven) Close() error               { return nil }

type givenInfo struct {
	name string
	size int
}

func (i givenInfo) Name() string       { return i.name }
func (i givenInfo) Size() int64        { return int64(i.size) }
func (i givenInfo) Mode() fs.FileMode  { return 0o444 }
func (i givenInfo) ModTime() time.Time { return time.Time{} }
func (i givenInfo) IsDir() bool        { return false }
func (i givenInfo) Sys() any           { return nil }
