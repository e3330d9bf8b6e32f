package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fetchedKeep is the file beside a pack that FetchRef brought: it has git leave the pack alone.
// git's own such files are left by fetches that were killed.
type fetchedKeep struct {
	file string
	ref  string // that the pack was fetched for, below fetchedPrefix
	head string // where the ref was then; empty: an earlier version wrote the file
}

func (f *fetchedKeep) write() error {
	return os.WriteFile(f.file, []byte(f.ref+" "+f.head+"\n"), 0o600)
}

// isReplaced says that none of the fetched refs is any more where the pack's was.
func (f *fetchedKeep) isReplaced(refs map[string]string) bool {
	if f.head == "" {
		return refs[f.ref] == ""
	}
	for _, sha := range refs {
		if sha == f.head {
			return false
		}
	}
	return true
}

func (f *fetchedKeep) pack() string { return strings.TrimSuffix(f.file, ".keep") + ".pack" }

// readFetchedKeep reads one; ok is false where it is git's own, or gone.
func readFetchedKeep(file string) (k fetchedKeep, ok bool, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	k = fetchedKeep{file: file}
	k.ref, k.head, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return k, err == nil && strings.HasPrefix(k.ref, fetchedPrefix), err
}

// isFetchedKeep says that a file is one of FetchRef's.
func isFetchedKeep(name string) bool {
	if !strings.HasSuffix(name, ".keep") {
		return false
	}
	_, ok, err := readFetchedKeep(name)
	return ok && err == nil
}

func (mp *mirrorPrograms) listFetchedKeeps() ([]fetchedKeep, error) {
	files, err := mp.listObjectFiles("pack-*.keep")
	if err != nil {
		return nil, err
	}
	var keeps []fetchedKeep
	for file := range files {
		k, ok, err := readFetchedKeep(file)
		if err != nil {
			return nil, err
		}
		if ok {
			keeps = append(keeps, k)
		}
	}
	return keeps, nil
}

// isReplaced looks at files first, as most commits were never fetched so.
func (mp *mirrorPrograms) isReplaced(ctx context.Context, sha string) (bool, error) {
	keeps, err := mp.listFetchedKeeps()
	if err != nil {
		return false, err
	}
	for _, k := range keeps {
		if k.head == sha {
			refs, err := mp.listRefs(ctx, fetchedPrefix)
			return err == nil && k.isReplaced(refs), err
		}
	}
	return false, nil
}

// listReplacedPacks are the packs that FetchRef brought for what no ref is at any more.
func (mp *mirrorPrograms) listReplacedPacks(ctx context.Context) (replaced []fetchedKeep, err error) {
	keeps, err := mp.listFetchedKeeps()
	if err != nil || len(keeps) == 0 {
		return nil, err
	}
	refs, err := mp.listRefs(ctx, fetchedPrefix)
	if err != nil {
		return nil, err
	}
	for _, k := range keeps {
		if k.isReplaced(refs) {
			replaced = append(replaced, k)
		}
	}
	return replaced, nil
}

// dropManyReplacedPacks keeps a pull request that is pushed to again and again from filling the
// disk until the next maintenance. Fewer bytes wait for that: to find out what of a pack is still
// referred to takes a walk through all that the mirror has.
func (mp *mirrorPrograms) dropManyReplacedPacks(ctx context.Context) error {
	replaced, err := mp.listReplacedPacks(ctx)
	if err != nil || len(replaced) == 0 {
		return err
	}
	packs, err := mp.listPacks()
	if err != nil {
		return err
	}
	var size int64
	for _, k := range replaced {
		size += packs[k.pack()]
	}
	if size <= mp.opts.MaxRefBytes {
		return nil
	}
	return mp.dropPacks(ctx, replaced)
}

// dropReplacedPacks removes what FetchRef brought and nothing refers to any more.
func (mp *mirrorPrograms) dropReplacedPacks(ctx context.Context) error {
	replaced, err := mp.listReplacedPacks(ctx)
	if err != nil || len(replaced) == 0 {
		return err
	}
	return mp.dropPacks(ctx, replaced)
}

// dropPacks removes packs. The objects that any ref leads to become a pack of their own first.
// Since then a branch may have been fetched, merged or packed anew on the strength of these packs.
// It touches no other pack, even where no ref leads to an object of it.
func (mp *mirrorPrograms) dropPacks(ctx context.Context, drop []fetchedKeep) error {
	packs, err := mp.listPacks()
	if err != nil {
		return err
	}
	repack := []string{"repack", "-a", "-d", "-l", "-q", "--no-write-bitmap-index"}
	for pack := range packs {
		switch _, err := os.Stat(strings.TrimSuffix(pack, ".pack") + ".keep"); {
		case errors.Is(err, fs.ErrNotExist):
			repack = append(repack, "--keep-pack="+filepath.Base(pack))
		case err != nil:
			return err
		}
	}
	for _, k := range drop {
		if err := os.Remove(k.file); err != nil {
			return err
		}
	}
	// Before the packs go, the graph must not name their commits.
	err = mp.gitSteps(ctx, []string{"commit-graph", "write", "--reachable", "--changed-paths", "--split=replace", "--no-progress"}, repack)
	// A running program would go on finding what it has open, and hold the room on the disk.
	mp.closePrograms()
	if err == nil {
		return nil
	}
	for _, k := range drop { // to be tried again
		if _, serr := os.Stat(k.pack()); serr == nil {
			err = errors.Join(err, k.write())
		}
	}
	return err
}
