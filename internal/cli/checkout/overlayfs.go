package checkout

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
)

// File is a manifest that was named on the command line: what it says counts,
// and not what the tree has at its place.
type File struct {
	Name string // as people named it
	Path string // on disk, absolute; "" when it isn't on disk
	Data []byte
	// InFolder says that the folder was named and not the file: what of it can't be read is left alone.
	InFolder bool
}

// namedFiles is a tree with the files that were named on the command line, which
// are in no listing: git generators don't see them.
type namedFiles struct {
	fs.FS
	names map[string]string // as people named them, by path in the tree
}

// outsideFolder is the folder, in the tree, of files that are not in the checkout.
const outsideFolder = ".liftlock-given"

// overlayFiles puts the files into a tree, those in the checkout at their own place.
func (r *Repository) overlayFiles(t *Tree, list []File) (*namedFiles, []string) {
	data, names := map[string][]byte{}, map[string]string{}
	var paths []string
	for i, f := range list {
		at := fmt.Sprintf("%s/%d.yaml", outsideFolder, i)
		if inside, ok := r.pathOf(f.Path); ok {
			at = inside
		}
		if _, twice := data[at]; twice {
			continue
		}
		data[at], names[at] = f.Data, f.Name
		paths = append(paths, at)
	}
	return &namedFiles{fieldedit.Beside(t.FS, data), names}, paths
}

// pathOf is where a file on disk lies in the checkout, from its root; false for one that lies outside.
func (r *Repository) pathOf(file string) (string, bool) {
	rel, err := filepath.Rel(r.Dir(), file)
	if err != nil || file == "" || r.git.Bare() || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// restoreNames gives files back the names that people know them by.
func (n *namedFiles) restoreNames(f *appset.TargetSet) *appset.TargetSet {
	name := func(at string) string { return cmp.Or(n.names[at], at) }
	out := &appset.TargetSet{Targets: make([]appset.Target, len(f.Targets))}
	copy(out.Targets, f.Targets)
	for i := range out.Targets {
		out.Targets[i].ApplicationSetFile = name(out.Targets[i].ApplicationSetFile)
	}
	renamed := func(list []appset.Problem) []appset.Problem {
		var out []appset.Problem
		for _, p := range list {
			p.File = name(p.File)
			for at, called := range n.names {
				p.Message = strings.ReplaceAll(p.Message, at, called)
			}
			out = append(out, p)
		}
		return out
	}
	out.Problems, out.Notes = renamed(f.Problems), renamed(f.Notes)
	return out
}
