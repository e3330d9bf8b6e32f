package appset

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// origins remembers which of this repository's generator files each set of
// parameters came of, by their names as [commitRepos.originOf] gives them.
// Parameters don't say it themselves: those of two files may have been combined
// or merged, and any generator may give a path and a file name. It is one
// generation's.
type origins struct {
	// By the map's address, which is the map's own for as long as it is held
	// here.
	by map[uintptr]origin
}

type origin struct {
	params map[string]any
	files  []string // sorted
}

// originOf is a generator file's name. A file of the resolved commit has its path. A file of
// another branch of this repository has the branch in front, with a NUL between. A file of another
// repository has nothing before the NUL. A NUL is in no path and no branch.
func (c *commitRepos) originOf(f *fileAt) string {
	if f.at == c.commit {
		return f.name
	}
	return f.at.branch + "\x00" + f.name
}

// splitOrigins tells the resolved commit's own files from those of other branches.
func splitOrigins(origins []string) (own []string, others []BranchFile) {
	for i, o := range origins {
		branch, file, external := strings.Cut(o, "\x00")
		switch {
		case external:
			others = append(others, BranchFile{Branch: branch, File: file})
		case len(others) == 0:
			own = origins[:i+1] // shared, as long as they come first
		default:
			own = append(slices.Clip(own), o)
		}
	}
	slices.SortFunc(others, func(a, b BranchFile) int {
		return cmp.Or(strings.Compare(a.Branch, b.Branch), strings.Compare(a.File, b.File))
	})
	return own, others
}

func newOrigins() *origins { return &origins{by: map[uintptr]origin{}} }

func mapAddress(params map[string]any) uintptr { return reflect.ValueOf(params).Pointer() }

func (o *origins) recordFiles(params map[string]any, files []string) {
	if params != nil && len(files) > 0 {
		o.by[mapAddress(params)] = origin{params, files}
	}
}

// filesOf are the files that parameters came of, sorted.
func (o *origins) filesOf(params map[string]any) []string {
	return o.by[mapAddress(params)].files
}

// copyParams copies parameters, which come of the same files then.
func (o *origins) copyParams(list []map[string]any) []map[string]any {
	out := copyParams(list)
	for i, params := range out {
		o.recordFiles(params, o.filesOf(list[i]))
	}
	return out
}

// recordJoined notes that parameters are a combination of others.
func (o *origins) recordJoined(params map[string]any, of ...map[string]any) {
	var files []string
	for _, one := range of {
		if more := o.filesOf(one); len(files) == 0 {
			files = more
		} else if len(more) > 0 {
			files = SortedUnique(slices.Concat(files, more))
		}
	}
	o.recordFiles(params, files)
}
