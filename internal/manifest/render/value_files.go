package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// valueFilesAsGlobs is of [Input.ValueFilesAs]: an entry of helm.valueFiles may be a glob.
const valueFilesAsGlobs = "globs"

// valueFile is a values file of one of the trees.
type valueFile struct {
	from *treeReader
	path string
}

// findValueFiles lists the values files in the order in which they are merged. Since Argo CD 3.4
// (argo-cd: ResolveValueFiles in reposerver/repository) a glob stands for its matches, in place and
// in the order of the doublestar library. A match that is also listed by its name is left to that
// place. Where a file comes twice, the first place counts.
func (r *rendering) findValueFiles(dir string, o *helmOptions, env buildEnv) ([]valueFile, error) {
	var out, entries []valueFile
	listed, seen := map[valueFile]bool{}, map[valueFile]bool{}
	for _, name := range o.ValueFiles {
		from, p, err := r.resolveValuePath(dir, name, env)
		if err != nil {
			return nil, fmt.Errorf("the values file %s: %w", name, err)
		}
		entry := valueFile{from, path.Clean(p)}
		entries, listed[entry] = append(entries, entry), true
	}
	add := func(file valueFile) {
		if r.in.ValueFilesAs == valueFilesAsGlobs && seen[file] {
			return
		}
		seen[file], out = true, append(out, file)
	}
	for i, entry := range entries {
		isGlob := strings.ContainsAny(entry.path, "*?[")
		if !isGlob || r.in.ValueFilesAs != valueFilesAsGlobs {
			there, err := entry.isThere(o.ValueFiles[i], o.IgnoreMissingValueFiles || isGlob && r.in.ValueFilesAs == "")
			switch {
			case err != nil:
				return nil, err
			case there:
				add(entry)
			case isGlob && r.in.ValueFilesAs == "":
				return nil, newUnrenderable(fmt.Sprintf("the values file %s is a glob since Argo CD 3.4 and a file's name before: say "+
					"which Argo CD it is, with --argocd-version, or argocd[].version in the server's file", o.ValueFiles[i]))
			}
			continue
		}
		matches, err := entry.expandGlob()
		switch {
		case err != nil:
			return nil, fmt.Errorf("the glob of values files %s: %w", o.ValueFiles[i], err)
		case len(matches) == 0 && !o.IgnoreMissingValueFiles:
			return nil, fmt.Errorf("the glob of values files %s matches none", o.ValueFiles[i])
		}
		for _, match := range matches {
			if listed[match] {
				continue
			}
			if _, err := match.isThere(match.path, false); err != nil {
				return nil, err
			}
			add(match)
		}
	}
	return out, nil
}

// isThere says whether a file that goes by a name is there; that it isn't may be an error.
func (v valueFile) isThere(name string, mayBeMissing bool) (bool, error) {
	found, err := v.from.find(v.path)
	if err != nil {
		return false, fmt.Errorf("the values file %s: %w", name, err)
	}
	if found.kind == kindMissing && mayBeMissing {
		return false, nil
	}
	if found.kind != kindFile {
		return false, fmt.Errorf("the values file %s is not there", v.path)
	}
	return true, nil
}

// expandGlob lists what a glob matches, as the library does it on a disk.
func (v valueFile) expandGlob() ([]valueFile, error) {
	clean, ok := cleanTreePath(v.path)
	if !ok {
		return nil, errOutside
	}
	dir, glob := doublestar.SplitPattern(clean)
	tree := &globTree{from: v.from, dir: dir}
	matches, err := doublestar.Glob(tree, glob)
	if err = errors.Join(tree.err, err); err != nil {
		return nil, err
	}
	out := make([]valueFile, 0, len(matches))
	for _, match := range matches {
		out = append(out, valueFile{v.from, path.Join(dir, match)})
	}
	return out, nil
}

// globTree is a folder of a tree as the glob library wants it. The library goes on where something
// can't be read, so that the first error is kept.
type globTree struct {
	from *treeReader
	dir  string
	err  error
}

var (
	_ fs.StatFS    = (*globTree)(nil)
	_ fs.ReadDirFS = (*globTree)(nil)
)

// Stat follows links, as a disk's does.
func (g *globTree) Stat(name string) (fs.FileInfo, error) {
	found, err := g.from.find(path.Join(g.dir, name))
	if err != nil {
		return nil, g.recordError(err)
	}
	if found.kind == kindMissing {
		return nil, fs.ErrNotExist
	}
	return fs.Stat(g.from.tree, found.path)
}

// ReadDir lists a folder; links are listed as such.
func (g *globTree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := g.from.list(path.Join(g.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return list, g.recordError(err)
}

// Open is what every file system has; the library needs no file's content.
func (g *globTree) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

func (g *globTree) recordError(err error) error {
	if g.err == nil {
		g.err = err
	}
	return err
}
