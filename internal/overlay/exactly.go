package overlay

import (
	"bytes"
	"fmt"
	"io/fs"
)

// Exactly holds that a commit is what edits made of its parent: changed are
// the files that differ between the two (from the repository's root), head is
// the commit's tree. With edits composed again on the parent, from the release
// that head carries (Compose) or from the promotion it undoes (Restore), that
// proves that a branch changes carried fields only, all of one release: both
// give the same edits for the same input. The error names the first file that
// is otherwise.
func Exactly(head fs.FS, changed []string, edits []Edit) error {
	expected := map[string][]byte{}
	for _, e := range edits {
		expected[e.File] = e.After
	}
	f := newFiles(head, nil)
	for _, name := range changed {
		want, ok := expected[name]
		if !ok {
			return fmt.Errorf("%s is changed, but isn't part of the release", name)
		}
		delete(expected, name)
		got, err := f.read(name)
		if err != nil {
			return fmt.Errorf("comparing %s: %w", name, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s has other changes than the release's fields", name)
		}
	}
	for _, e := range edits {
		if _, ok := expected[e.File]; ok {
			return fmt.Errorf("%s isn't changed, though the release changes it", e.File)
		}
	}
	return nil
}
