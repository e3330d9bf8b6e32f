package git

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// maxReadAhead bounds the contents that one ReadAhead holds, in bytes.
const maxReadAhead = 64 << 20

const (
	// BelowLink is the identity of what is below a symbolic link or a submodule.
	BelowLink = "below a link"
	// BelowFile is that of what is below a file.
	BelowFile = "below a file"
)

// Identities tell what lies at many names, as Identity does, and apart from that nothing is there
// (""), what is below something that is no folder: BelowLink, BelowFile. Folders that are not known
// yet are read in a few goes, instead of one question each. A name that can't be read is an error.
func (t *Tree) Identities(ctx context.Context, names []string) ([]string, error) {
	found, err := t.findEntries(ctx, names)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(names))
	for i, e := range found {
		switch {
		case e.sha != "":
			out[i] = e.mode.String() + " " + e.sha
		case e.mode == Symlink || e.mode == Submodule:
			out[i] = BelowLink
		case e.mode != 0:
			out[i] = BelowFile
		}
	}
	return out, nil
}

// ReadAhead gives the same files. Those that lie directly in folders and that pick wants were read
// already, in a few goes instead of one question each. A file that is missing, too large, or past
// 64 MiB in all is read when it is asked for, and its fault shows then. Only a context that ended
// is an error.
func (t *Tree) ReadAhead(ctx context.Context, folders []string, pick func(file string) bool) (*Tree, error) {
	found, err := t.findEntries(ctx, folders)
	if err != nil {
		return t, ctx.Err()
	}
	lists, err := t.listFolders(ctx, found)
	if err != nil {
		return t, ctx.Err()
	}
	out := &Tree{repo: t.repo, sha: t.sha, prefetched: map[string][]byte{}}
	var ids []string
	for i, folder := range folders {
		for _, e := range lists[found[i].sha] {
			if _, known := out.prefetched[e.sha]; known || e.mode != Regular && e.mode != Executable || !pick(path.Join(folder, e.name)) {
				continue
			}
			out.prefetched[e.sha] = nil
			ids = append(ids, e.sha)
		}
	}
	clear(out.prefetched)
	size := 0
	errFull := errors.New("enough is held")
	err = t.ReadBlobs(ctx, ids, MaxFileSize, func(i int, data []byte, err error) error {
		if err != nil {
			return nil // too large: its reader says so
		}
		if size += len(data); size > maxReadAhead {
			return errFull
		}
		out.prefetched[ids[i]] = data
		return nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	return out, nil
}

// findEntries looks many names up, level by level. A missing entry has no id; its mode is 0, or
// that of the entry in its way.
func (t *Tree) findEntries(ctx context.Context, names []string) ([]treeEntry, error) {
	root, err := t.rootEntry()
	if err != nil {
		return nil, err
	}
	at := make([]treeEntry, len(names))
	rest := make([]string, len(names)) // what is still to go; empty: at is the answer
	for i, name := range names {
		if !validName(name) {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
		}
		at[i] = root
		if name != "." {
			rest[i] = name
		}
	}
	for {
		var wanted []treeEntry
		for i := range at {
			if rest[i] != "" {
				wanted = append(wanted, at[i])
			}
		}
		if len(wanted) == 0 {
			return at, nil
		}
		lists, err := t.listFolders(ctx, wanted)
		if err != nil {
			return nil, err
		}
		for i := range at {
			if rest[i] != "" {
				at[i], rest[i] = descendOne(lists, at[i], rest[i])
			}
		}
	}
}

// descendOne goes one folder down.
func descendOne(lists map[string][]treeEntry, at treeEntry, rest string) (treeEntry, string) {
	part, rest, _ := strings.Cut(rest, "/")
	entries := lists[at.sha]
	i := sort.Search(len(entries), func(i int) bool { return entries[i].name >= part })
	switch {
	case i == len(entries) || entries[i].name != part:
		return treeEntry{}, ""
	case rest != "" && entries[i].mode != Directory:
		return treeEntry{mode: entries[i].mode}, ""
	}
	return entries[i], rest
}

// listFolders are those of many folders, by the ids of their tree objects.
func (t *Tree) listFolders(ctx context.Context, folders []treeEntry) (map[string][]treeEntry, error) {
	lists := make(map[string][]treeEntry, len(folders))
	var ids []string
	for _, e := range folders {
		if _, known := lists[e.sha]; known || e.mode != Directory || e.sha == "" {
			continue
		}
		entries, ok := t.repo.caches.folders.Get(e.sha)
		if !ok {
			ids = append(ids, e.sha)
		}
		lists[e.sha] = entries
	}
	if len(ids) < fewObjects {
		for _, id := range ids {
			var err error
			if lists[id], err = t.listEntries(id); err != nil {
				return nil, err
			}
		}
		return lists, ctx.Err()
	}
	err := t.ReadBlobs(ctx, ids, MaxFileSize, func(i int, data []byte, err error) error {
		if err == nil {
			lists[ids[i]], err = t.repo.parseAndCacheTree(object{sha: ids[i], kind: "tree", data: data})
		}
		return err
	})
	return lists, err
}

// fewObjects are read sooner one by one from the git that runs already.
const fewObjects = 32
