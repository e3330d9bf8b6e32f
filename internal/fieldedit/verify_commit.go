package fieldedit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
)

// VerifyCommit holds that a commit is its parent with these edits. changed are the files that
// differ between the two (from the repository's root), head is the commit's tree. The edits are
// composed again on the parent, from the release that head carries (Compose) or from the promotion
// it undoes (Restore). Both give the same edits for the same input, so this proves that a branch
// changes carried fields only, all of one release. The error names the first file that is
// otherwise.
func VerifyCommit(head fs.FS, changed []string, edits []Edit) error {
	expected := map[string]Edit{}
	for _, e := range edits {
		expected[e.File] = e
	}
	f := newFiles(head, nil)
	for _, name := range changed {
		want, ok := expected[name]
		if !ok {
			return fmt.Errorf("%s is changed, but isn't part of the release", name)
		}
		delete(expected, name)
		if err := f.checkEdit(want); err != nil {
			return err
		}
	}
	for _, e := range edits {
		if _, ok := expected[e.File]; ok {
			return fmt.Errorf("%s isn't changed, though the release changes it", e.File)
		}
	}
	return nil
}

// checkEdit holds that a file has the content of its edit.
func (c *commitFiles) checkEdit(want Edit) error {
	info, err := c.statPath(want.File)
	gone := errors.Is(err, errAbsent)
	switch {
	case err != nil && !gone:
		return fmt.Errorf("comparing %s: %w", want.File, err)
	case gone && want.Deleted:
		return nil
	case gone:
		return fmt.Errorf("%s is deleted, and the release has it", want.File)
	case want.Deleted:
		return fmt.Errorf("%s is still there, and the release deletes it", want.File)
	case ModeOf(info) != want.Mode:
		return fmt.Errorf("%s has the mode %o, with the release it has %o", want.File, ModeOf(info), want.Mode)
	}
	got, err := c.readBytes(want.File)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", want.File, err)
	}
	if !bytes.Equal(got, want.After) {
		return fmt.Errorf("%s has other changes than the release's fields", want.File)
	}
	return nil
}
