package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// NewChartTree is a tree of a packed chart of a version, as [OpenExternal] gives it.
func NewChartTree(data []byte, version string) Tree {
	sum := sha256.Sum256(data)
	file := "chart:sha256:" + hex.EncodeToString(sum[:])
	return Tree{FS: packedTree{PackedChart: data}, Revision: version, ID: func(name string) (string, error) {
		switch name {
		case ".":
			return "folder of " + file, nil
		case PackedChart:
			return file, nil
		}
		return "", nil
	}}
}

// unpackChart gives a chart's own folder: a chart that comes packed is unpacked, in memory.
func (r *rendering) unpackChart(e External, files *treeReader) (*treeReader, error) {
	data, is, err := files.readIfFile(PackedChart)
	if err != nil || !is {
		return files, err
	}
	if done := r.unpacked[e]; done != nil {
		return done, nil
	}
	tree, err := unpackArchive(data)
	if err != nil {
		return nil, fmt.Errorf("unpacking the chart: %w", err)
	}
	if r.unpacked == nil {
		r.unpacked = map[External]*treeReader{}
	}
	r.unpacked[e] = newTreeReader(files.ctx, tree)
	return r.unpacked[e], nil
}

// unpackArchive reads a packed chart, whose files all lie in one folder. Links and other special
// files are left out, as Helm does.
func unpackArchive(data []byte) (packedTree, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is no packed chart: %w", err)
	}
	tree := packedTree{}
	var read int64
	archive := tar.NewReader(&unpackLimiter{r: unzipped, read: &read})
	for n := 0; ; n++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return tree, nil
		} else if err != nil {
			return nil, err
		}
		if n > maxFiles {
			return nil, fmt.Errorf("%w: a packed chart of more than %d files", ErrLimit, maxFiles)
		}
		_, name, inFolder := strings.Cut(path.Clean(header.Name), "/")
		if header.Typeflag != tar.TypeReg || !inFolder {
			continue
		}
		if !fs.ValidPath(name) {
			return nil, fmt.Errorf("%q is no name of a file in a chart", clipExcerpt(header.Name))
		}
		if tree[name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

// packedTree is the files of an archive, by their names: fs.FS, fs.StatFS, fs.ReadFileFS and
// fs.ReadDirFS. It isn't changed once it is read.
type packedTree map[string][]byte

var (
	_ fs.StatFS     = packedTree{}
	_ fs.ReadFileFS = packedTree{}
	_ fs.ReadDirFS  = packedTree{}
)

// packedEntry is a file or folder of it.
type packedEntry struct {
	name   string
	size   int64
	folder bool
}

func (p packedEntry) Name() string               { return p.name }
func (p packedEntry) Size() int64                { return p.size }
func (p packedEntry) ModTime() time.Time         { return time.Time{} }
func (p packedEntry) IsDir() bool                { return p.folder }
func (p packedEntry) Sys() any                   { return nil }
func (p packedEntry) Type() fs.FileMode          { return p.Mode().Type() }
func (p packedEntry) Info() (fs.FileInfo, error) { return p, nil }

func (p packedEntry) Mode() fs.FileMode {
	if p.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// Open opens a file or folder; a folder is listed by ReadDir.
func (p packedTree) Open(name string) (fs.File, error) {
	info, err := p.Stat(name)
	if err != nil {
		return nil, err
	}
	return &packedFile{Reader: bytes.NewReader(p[name]), info: info}, nil
}

type packedFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (p *packedFile) Stat() (fs.FileInfo, error) { return p.info, nil }
func (p *packedFile) Close() error               { return nil }

// Stat describes what lies at a name.
func (p packedTree) Stat(name string) (fs.FileInfo, error) {
	if data, is := p[name]; is {
		return packedEntry{name: path.Base(name), size: int64(len(data))}, nil
	}
	for file := range p {
		if name == "." || strings.HasPrefix(file, name+"/") {
			return packedEntry{name: path.Base(name), folder: true}, nil
		}
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// ReadFile gives a file's bytes, which are the caller's.
func (p packedTree) ReadFile(name string) ([]byte, error) {
	data, is := p[name]
	if !is {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(data), nil
}

// ReadDir lists a folder, sorted by name.
func (p packedTree) ReadDir(name string) ([]fs.DirEntry, error) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	entries := map[string]fs.DirEntry{}
	for file, data := range p {
		rest, in := strings.CutPrefix(file, prefix)
		if !in {
			continue
		}
		first, _, below := strings.Cut(rest, "/")
		e := packedEntry{name: first, folder: below}
		if !below {
			e.size = int64(len(data))
		}
		entries[first] = e
	}
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	out := make([]fs.DirEntry, 0, len(entries))
	for _, first := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, entries[first])
	}
	return out, nil
}
