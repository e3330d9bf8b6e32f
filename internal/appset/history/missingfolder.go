package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxMissingNames bounds the targets that one problem names.
const maxMissingNames = 8

// MissingFolders say which folders that targets deploy from this repository aren't there, which
// Argo CD says once it syncs, with a name beside it that was probably meant. One problem for a
// folder. tree is the files of a branch, nil where that isn't known; branch is the tracked one. A
// source that follows a tag or a commit instead of a branch is checked at that revision, not here.
func MissingFolders(targets []appset.Target, branch string, tree func(branch string) fs.FS) []appset.Problem {
	type place struct{ file, set, missing, near string }
	names := map[place][]string{}
	var order []place
	for i := range targets {
		t := &targets[i]
		at := cmp.Or(t.Branch, branch)
		files := tree(at)
		if files == nil || t.Branch == "" && t.OtherRevision(branch, nil) != "" {
			continue
		}
		for _, dir := range appset.Folders(appset.ViewFromBranch(*t, at, branch)) {
			missing, near := findMissing(files, dir)
			if missing == "" {
				continue
			}
			p := place{t.ApplicationSetFile, t.ApplicationSet, missing, near}
			if names[p] == nil {
				order = append(order, p)
			}
			names[p] = append(names[p], t.Name)
		}
	}
	var out []appset.Problem
	for _, p := range order {
		message := fmt.Sprintf("%s: %s isn't in the repository", wording.JoinFew(names[p], maxMissingNames), p.missing)
		if p.near != "" {
			message += "; " + p.near + " is"
		}
		out = append(out, appset.Problem{File: p.file, ApplicationSet: p.set, Message: message})
	}
	return out
}

// findMissing is the first folder on the way to one that isn't there, and the entry in its place.
// It is "" where all are there, or that can't be told.
func findMissing(files fs.FS, dir string) (missing, near string) {
	if dir == "." {
		return "", ""
	}
	if _, err := fs.Stat(files, dir); !errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	at := "."
	for part := range strings.SplitSeq(dir, "/") {
		next := path.Join(at, part)
		if _, err := fs.Stat(files, next); err == nil {
			at = next
			continue
		}
		entries, err := fs.ReadDir(files, at)
		if err != nil {
			return "", ""
		}
		var folders []string
		for _, e := range entries {
			if e.IsDir() {
				folders = append(folders, e.Name())
			}
		}
		slices.Sort(folders)
		if n := strictyaml.Nearest(part, folders); n != "" {
			near = path.Join(at, n)
		}
		return next, near
	}
	return "", ""
}
