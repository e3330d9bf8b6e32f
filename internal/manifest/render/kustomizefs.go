package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// mountPoint is where kustomize finds the tree: below a folder, so that a path
// that climbs out of the tree doesn't come back in.
const mountPoint = "/repository"

// kustomizeFS is the tree as kustomize reads it. Everything it gives out was
// checked to be local: kustomize fetches addresses by itself.
type kustomizeFS struct {
	// Methods that aren't implemented, all writing and the walks for Helm charts, are nil: a build
	// never comes there, and Render turns a panic into an error.
	filesys.FileSystem

	files *treeReader
	// externals are the trees of remote bases, by where they are mounted, and external finds one.
	externals map[string]*treeReader
	mounted   map[string]string // by External.key
	external  func(e External) *treeReader
	// edited has the kustomization with the Application's options, by path.
	edited map[string][]byte
	// fatalErr is the first error that must not be lost: kustomize takes some
	// errors for a missing file and goes on.
	fatalErr error
	// kustomizationCount counts those that were read.
	kustomizationCount int
	// exclusive says that no other build runs, so that an OpenAPI schema may come along.
	exclusive bool
}

// mountedTree is a tree where kustomize finds it.
type mountedTree struct {
	at    string
	files *treeReader
}

// treePath turns kustomize's path into one of a tree.
func (k *kustomizeFS) treePath(name string) (mountedTree, string, error) {
	clean := path.Clean(name)
	tree := mountedTree{mountPoint, k.files}
	if rest, ok := strings.CutPrefix(clean, externalMount); ok {
		number, _, _ := strings.Cut(rest, "/")
		tree = mountedTree{externalMount + number, k.externals[externalMount+number]}
	}
	if clean == tree.at && tree.files != nil {
		return tree, ".", nil
	}
	p, ok := strings.CutPrefix(clean, tree.at+"/")
	if !ok || tree.files == nil {
		return tree, "", fmt.Errorf("%s: %w", name, errOutside)
	}
	return tree, p, nil
}

func (k *kustomizeFS) findLocation(name string) (mountedTree, location, error) {
	tree, p, err := k.treePath(name)
	if err != nil {
		return tree, location{}, err
	}
	found, err := tree.files.find(p)
	return tree, found, k.recordFatal(err)
}

// recordFatal remembers an error that is about more than one path.
func (k *kustomizeFS) recordFatal(err error) error {
	if err != nil && k.fatalErr == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOutside) {
		k.fatalErr = err
	}
	return err
}

// ReadFile gives a file's bytes, after what it refers to was checked.
func (k *kustomizeFS) ReadFile(name string) ([]byte, error) {
	tree, found, err := k.findLocation(name)
	if err != nil {
		return nil, err
	}
	data, edited := k.edited[found.path]
	if !edited || tree.at != mountPoint {
		if data, err = tree.files.read(found.path); err != nil {
			return nil, k.recordFatal(err)
		}
		if err := checkAliases(data); err != nil {
			return nil, k.recordFatal(fmt.Errorf("%s: %w", found.path, err))
		}
	}
	if isKustomization(path.Base(found.path)) {
		if k.kustomizationCount++; k.kustomizationCount > maxKustomizations {
			return nil, k.recordFatal(fmt.Errorf("%w: more than %d kustomizations; do they include one another over and over?", ErrLimit,
				maxKustomizations))
		}
		if data, err = k.mountRemoteBases(tree, found.path, data); err != nil {
			return nil, k.recordFatal(err)
		}
		if err := k.checkKustomization(tree.files, found.path, data); err != nil {
			return nil, k.recordFatal(err)
		}
	}
	return data, nil
}

// CleanedAbs resolves links: a folder, or a folder and a file in it.
func (k *kustomizeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	tree, found, err := k.findLocation(name)
	if err != nil {
		return "", "", err
	}
	switch found.kind {
	case kindFolder:
		return filesys.ConfirmedDir(path.Join(tree.at, found.path)), "", nil
	case kindFile:
		dir, base := path.Split(found.path)
		return filesys.ConfirmedDir(path.Join(tree.at, dir)), base, nil
	}
	return "", "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Exists says that something is at the path.
func (k *kustomizeFS) Exists(name string) bool {
	_, found, err := k.findLocation(name)
	return err == nil && found.kind != kindMissing
}

// IsDir says that a folder is at the path.
func (k *kustomizeFS) IsDir(name string) bool {
	_, found, err := k.findLocation(name)
	return err == nil && found.kind == kindFolder
}

// ReadDir lists a folder's names.
func (k *kustomizeFS) ReadDir(name string) ([]string, error) {
	tree, found, err := k.findLocation(name)
	if err != nil {
		return nil, err
	}
	entries, err := tree.files.list(found.path)
	if err != nil {
		return nil, k.recordFatal(err)
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
	tree, p, err := k.treePath(pattern)
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(p, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	at := []string{"."}
	for part := range strings.SplitSeq(p, "/") {
		if at, err = k.matchEntries(tree.files, at, part); err != nil {
			return nil, err
		}
	}
	for i := range at {
		at[i] = path.Join(tree.at, at[i])
	}
	return at, nil
}

// matchEntries are the entries of folders whose names match one part of a pattern.
func (k *kustomizeFS) matchEntries(files *treeReader, folders []string, part string) ([]string, error) {
	var out []string
	for _, dir := range folders {
		found, err := files.find(dir)
		if err != nil {
			return nil, k.recordFatal(err)
		}
		if found.kind != kindFolder {
			continue
		}
		entries, err := files.list(found.path)
		if err != nil {
			return nil, k.recordFatal(err)
		}
		for _, e := range entries {
			if ok, _ := path.Match(part, e.Name()); ok { // the pattern was checked
				out = append(out, path.Join(dir, e.Name()))
			}
		}
	}
	return out, nil
}
