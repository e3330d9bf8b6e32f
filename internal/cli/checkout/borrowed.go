package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Borrowed says what of another repository is taken for a checkout of its own.
type Borrowed struct {
	GitDir string // the other one's; only its objects are read
	Folder string // where the borrowing one is made; it is there and empty
	Branch string // the one that the tree stands for
	Heads  map[string]string
	URLs   []string // by which manifests may name it
}

// OpenBorrowed opens a bare repository that has another's objects and, of its branches, those that are
// given, as they are given: whatever the other one fetches meanwhile. Close leaves the folder.
func OpenBorrowed(ctx context.Context, b Borrowed) (*Repository, error) {
	dir := filepath.Join(b.Folder, "borrowed.git")
	if err := b.write(dir); err != nil {
		return nil, fmt.Errorf("make a repository beside %s: %w", b.GitDir, err)
	}
	r, err := Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	r.urls = append(r.urls, b.URLs...) // not as flags, which have to be of some use
	return r, nil
}

// write makes the repository's folder.
func (b *Borrowed) write(dir string) error {
	var refs bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(b.Heads)) {
		fmt.Fprintf(&refs, "%s refs/heads/%s\n", b.Heads[name], name)
	}
	errs := []error{os.MkdirAll(filepath.Join(dir, "objects", "info"), 0o700), os.MkdirAll(filepath.Join(dir, "refs"), 0o700)}
	for name, content := range map[string]string{
		"HEAD":                    "ref: refs/heads/" + b.Branch + "\n",
		"packed-refs":             refs.String(),
		"objects/info/alternates": filepath.Join(b.GitDir, "objects") + "\n",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600))
	}
	return errors.Join(errs...)
}
