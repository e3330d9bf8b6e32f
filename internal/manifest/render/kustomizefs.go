package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// mount is where kustomize finds the tree: below a folder, so that a path
// that climbs out of the tree doesn't come back in.
const mount = "/repository"

// kustomizeFS is the tree as kustomize reads it. Everything it gives out was
// checked to be local: kustomize fetches addresses by itself.
type kustomizeFS struct {
	files *files
	// edited has the kustomization with the Application's options, by path.
	edited map[string][]byte
	// refused is the first error that must not be lost: kustomize takes some
	// errors for a missing file and goes on.
	refused error
	// kustomizations counts those that were read.
	kustomizations int
	// lone says that no other build runs, so that an OpenAPI schema may come along.
	lone bool
}

var _ filesys.FileSystem = (*kustomizeFS)(nil)

var errReadOnly = errors.New("the commit's files are not written to")

// local turns kustomize's path into one of the tree.
func (k *kustomizeFS) local(name string) (string, error) {
	clean := path.Clean(name)
	if clean == mount {
		return ".", nil
	}
	p, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", fmt.Errorf("%s: %w", name, errOutside)
	}
	return p, nil
}

func (k *kustomizeFS) find(name string) (place, error) {
	p, err := k.local(name)
	if err != nil {
		return place{}, err
	}
	found, err := k.files.find(p)
	return found, k.keep(err)
}

// keep remembers an error that is about more than one path.
func (k *kustomizeFS) keep(err error) error {
	if err != nil && k.refused == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOutside) {
		k.refused = err
	}
	return err
}

// ReadFile gives a file's bytes, after what it refers to was checked.
func (k *kustomizeFS) ReadFile(name string) ([]byte, error) {
	found, err := k.find(name)
	if err != nil {
		return nil, err
	}
	data, edited := k.edited[found.path]
	if !edited {
		if data, err = k.files.read(found.path); err != nil {
			return nil, k.keep(err)
		}
		if err := checkAliases(data); err != nil {
			return nil, k.keep(fmt.Errorf("%s: %w", found.path, err))
		}
	}
	if isKustomization(path.Base(found.path)) {
		if k.kustomizations++; k.kustomizations > maxKustomizations {
			return nil, k.keep(fmt.Errorf("%w: more than %d kustomizations; do they include one another over and over?", ErrLimit, maxKustomizations))
		}
		if err := k.check(found.path, data); err != nil {
			return nil, k.keep(err)
		}
	}
	return data, nil
}

// CleanedAbs resolves links: a folder, or a folder and a file in it.
func (k *kustomizeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	found, err := k.find(name)
	if err != nil {
		return "", "", err
	}
	switch found.kind {
	case folder:
		return filesys.ConfirmedDir(path.Join(mount, found.path)), "", nil
	case file:
		dir, base := path.Split(found.path)
		return filesys.ConfirmedDir(path.Join(mount, dir)), base, nil
	}
	return "", "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Exists says that something is at the path.
func (k *kustomizeFS) Exists(name string) bool {
	found, err := k.find(name)
	return err == nil && found.kind != missing
}

// IsDir says that a folder is at the path.
func (k *kustomizeFS) IsDir(name string) bool {
	found, err := k.find(name)
	return err == nil && found.kind == folder
}

// ReadDir lists a folder's names.
func (k *kustomizeFS) ReadDir(name string) ([]string, error) {
	found, err := k.find(name)
	if err != nil {
		return nil, err
	}
	entries, err := k.files.list(found.path)
	if err != nil {
		return nil, k.keep(err)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out, nil
}

// Glob lists what matches a pattern, which may have wildcards in any part of
// the path.
func (k *kustomizeFS) Glob(pattern string) ([]string, error) {
	p, err := k.local(pattern)
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(p, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	at := []string{"."}
	for part := range strings.SplitSeq(p, "/") {
		if at, err = k.matching(at, part); err != nil {
			return nil, err
		}
	}
	for i := range at {
		at[i] = path.Join(mount, at[i])
	}
	return at, nil
}

// matching are the entries of folders whose names match one part of a pattern.
func (k *kustomizeFS) matching(folders []string, part string) ([]string, error) {
	var out []string
	for _, dir := range folders {
		found, err := k.files.find(dir)
		if err != nil {
			return nil, k.keep(err)
		}
		if found.kind != folder {
			continue
		}
		entries, err := k.files.list(found.path)
		if err != nil {
			return nil, k.keep(err)
		}
		for _, e := range entries {
			if ok, _ := path.Match(part, e.Name()); ok { // the pattern was checked
				out = append(out, path.Join(dir, e.Name()))
			}
		}
	}
	return out, nil
}

// Walk visits a folder; kustomize does so for Helm charts only, which it
// isn't allowed to inflate.
func (k *kustomizeFS) Walk(string, filepath.WalkFunc) error {
	return errors.New("the commit's files are not walked by kustomize")
}

// Open opens a file; kustomize reads whole files only.
func (k *kustomizeFS) Open(string) (filesys.File, error) {
	return nil, errors.New("the commit's files are read whole")
}

// Create refuses to write, as all that follow do.
func (k *kustomizeFS) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (k *kustomizeFS) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (k *kustomizeFS) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (k *kustomizeFS) RemoveAll(string) error { return errReadOnly }

// WriteFile refuses.
func (k *kustomizeFS) WriteFile(string, []byte) error { return errReadOnly }
