package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
)

// plainFile is a file of a checkout that is read, and maybe replaced.
type plainFile struct {
	name string // as it was given
	path string // absolute
	info fs.FileInfo
	data []byte
}

// openPlainFile reads a file that is nothing but a file. It takes no symlink, nor a file in a
// folder of the checkout that is one, which may be another environment's. It takes no pipe, which
// would never end.
func openPlainFile(name string) (*plainFile, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; name it from the current folder", fieldedit.DisplayFileName(name))
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; name the file itself", fieldedit.DisplayFileName(name))
	}
	if info.Size() > fieldedit.MaxFileSize {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are edited", fieldedit.DisplayFileName(name), info.Size(),
			fieldedit.MaxFileSize)
	}
	path, err := directPath(name, info)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened; try again", fieldedit.DisplayFileName(name)), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, fieldedit.MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	return &plainFile{name: name, path: path, info: info, data: data}, nil
}

// directPath is a file's absolute path. It refuses one that leads through a symlink within the
// checkout or within the given path from the working folder on. People choose where they keep their
// checkouts.
func directPath(name string, info fs.FileInfo) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	tops := []string{checkoutOf(filepath.Dir(path))}
	if !filepath.IsAbs(name) {
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		tops = append(tops, here)
	}
	for _, top := range tops {
		if link := linkBelow(top, filepath.Dir(path)); link != "" {
			return "", fmt.Errorf("%s leads through the symlink %s, maybe into another environment; name the file where it is",
				fieldedit.DisplayFileName(name), fieldedit.DisplayFileName(link))
		}
	}
	if clean, err := os.Lstat(path); err != nil || !os.SameFile(info, clean) {
		return "", fmt.Errorf("%s goes through a symlink and back; name the file where it is", fieldedit.DisplayFileName(name))
	}
	return path, nil
}

// linkBelow is the first symlink on the way from a folder down to another; empty
// where there is none, or the other isn't below it.
func linkBelow(top, dir string) string {
	rel, err := filepath.Rel(top, dir)
	if top == "" || err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		top = filepath.Join(top, part)
		if info, err := os.Lstat(top); part != "." && err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return top
		}
	}
	return ""
}

// checkoutOf is the top of the checkout that a folder is in; empty: it is in none.
func checkoutOf(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// replace writes new content beside the file and renames it over. A crash leaves the old one or the
// new one, and another name of the same file keeps the old one. Mode and owner stay, as far as
// possible.
func (p *plainFile) replace(content []byte) error {
	// A rename would replace a file that may not be written.
	w, err := os.OpenFile(p.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(p.path), ".liftlock-set-*")
	if err != nil {
		return fmt.Errorf("write beside %s: %w", fieldedit.DisplayFileName(p.name), err)
	}
	defer os.Remove(tmp.Name()) // gone after the rename
	err = func() error {
		defer tmp.Close() // closed below where it matters
		if _, err := tmp.Write(content); err != nil {
			return err
		}
		keepOwner(tmp, p.info)
		if err := tmp.Chmod(p.info.Mode().Perm()); err != nil {
			return err
		}
		if err := tmp.Sync(); err != nil {
			return err
		}
		return tmp.Close()
	}()
	if err != nil {
		return fmt.Errorf("write beside %s: %w", fieldedit.DisplayFileName(p.name), err)
	}
	return os.Rename(tmp.Name(), p.path)
}
