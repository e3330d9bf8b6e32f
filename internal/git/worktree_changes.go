package git

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's ids are made of it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Changed lists the paths that differ between a commit's files and the working
// tree's, as Changed does between two commits, sorted by path. The content on
// disk counts, whether it is in the index or not. A file that a checkout wrote
// otherwise than it is stored (other line ends, Git LFS) is not changed by
// that. With a == "" every file is added.
func (w *WorkingTree) Changed(ctx context.Context, a string) ([]FileChange, error) {
	var before []FileEntry
	if a != "" {
		var err error
		if before, err = w.checkout.Files(ctx, a, ""); err != nil {
			return nil, err
		}
	}
	was := make(map[string]FileEntry, len(before))
	names := make([]string, 0, len(w.files))
	for _, e := range before {
		was[e.Path] = e
		if _, still := w.files[e.Path]; !still {
			names = append(names, e.Path)
		}
	}
	for name := range w.files {
		names = append(names, name)
	}
	slices.Sort(names)

	found := make([]FileChange, len(names)) // Status 0: not changed
	err := inParallel(ctx, len(names), func(i int) error {
		change, err := w.comparePath(names[i], was[names[i]])
		found[i] = change
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compare %s with the working tree: %w", a, err)
	}
	return slices.DeleteFunc(found, func(c FileChange) bool { return c.Status == 0 }), nil
}

// inParallel calls do for 0…n-1, and returns the first error that it met.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := k; i < n && errs[k] == nil; i += workers {
				if errs[k] = ctx.Err(); errs[k] == nil {
					errs[k] = do(i)
				}
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// comparePath says how a path differs from the entry that a commit has of it (the
// zero value for none).
func (w *WorkingTree) comparePath(name string, was FileEntry) (FileChange, error) {
	c := FileChange{Path: name, OldMode: was.Mode}
	mode, _, _, err := w.statPath("compare", name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFollowed):
	case err != nil:
		return c, err
	case mode != Directory: // a folder where a file was: the file is gone
		c.NewMode = mode
	}
	switch {
	case was.Mode == 0 && c.NewMode == 0:
		return c, nil // in the index, and gone from the disk
	case was.Mode == 0:
		c.Status = 'A'
	case c.NewMode == 0:
		c.Status = 'D'
	case fileKind(was.Mode) != fileKind(c.NewMode):
		c.Status = 'T'
	case was.Mode != c.NewMode && hasExecutableBit:
		c.Status = 'M'
	default:
		same, err := w.equalsBlob(name, c.NewMode, was.Blob)
		if err != nil || same {
			return FileChange{}, err
		}
		c.Status = 'M'
	}
	return c, nil
}

// hasExecutableBit is false where no file is executable on disk.
const hasExecutableBit = runtime.GOOS != "windows"

// fileKind is a mode without whether a file is executable.
func fileKind(m Mode) Mode { return m & 0o170000 }

// equalsBlob compares what is at a path with a stored object.
func (w *WorkingTree) equalsBlob(name string, mode Mode, blob string) (bool, error) {
	switch mode {
	case Submodule:
		// Which commit is checked out there is that repository's business: what
		// would be committed is what the index says.
		return w.files[name].blob == "" || w.files[name].blob == blob, nil
	case Symlink:
		to, err := w.ReadLink(name)
		return err == nil && blobID([]byte(to)) == blob, err
	}
	data, err := w.ReadFile(name)
	if errors.Is(err, ErrTooLarge) {
		// Nothing reads a file of that size; what the index says has to do.
		return w.files[name].blob == blob, nil
	}
	if err != nil {
		return false, err
	}
	if blobID(data) == blob {
		return true, nil
	}
	if bytes.Contains(data, []byte("\r\n")) && blobID(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))) == blob {
		return true, nil
	}
	return w.isLFS(data, blob), nil
}

// maxPointer is the longest file that Git LFS takes for one of its pointers.
const maxPointer = 1024

// isLFS says whether the stored object is the Git LFS pointer to this content.
func (w *WorkingTree) isLFS(data []byte, blob string) bool {
	info, err := w.checkout.findObject(blob)
	if err != nil || info.size >= maxPointer {
		return false
	}
	o, err := w.checkout.readObject(blob)
	if err != nil || !bytes.HasPrefix(o.data, []byte("version https://git-lfs.github.com/spec/")) {
		return false
	}
	sum := sha256.Sum256(data)
	return strings.Contains(string(o.data), "\noid sha256:"+hex.EncodeToString(sum[:])+"\n")
}

// blobID is the id that git gives a file of this content.
func blobID(data []byte) string {
	h := sha1.New() //nolint:gosec // git's ids are made of it
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
