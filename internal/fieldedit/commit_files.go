package fieldedit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// commitFiles reads the files of one commit and keeps what it parsed. It refuses by
// name what is not a plain file of its own: fs.Lstat on the tree must report
// symlinks and submodules by their mode.
type commitFiles struct {
	tree     fs.FS
	docs     map[string]*document
	onlyFile string // set: locate looks at this file only

	parseCache *ParseCache // what was parsed of other trees, too; may be nil
}

func newFiles(tree fs.FS, parsed *ParseCache) *commitFiles {
	return &commitFiles{tree: tree, docs: map[string]*document{}, parseCache: parsed}
}

// errAbsent says that there is no such file.
var errAbsent = errors.New("no such file")

// statPath checks name and the folders it is in. errAbsent where it isn't there.
func (c *commitFiles) statPath(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &RefusedError{File: name, Reason: "the path leaves the repository"}
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := fs.Lstat(c.tree, at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errAbsent
		case err != nil:
			return nil, fmt.Errorf("looking at %s: %w", at, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, &RefusedError{File: at, Reason: "it is a symlink, which may lead into another environment: keep a file of its " +
				"own here"}
		case i < len(parts)-1 && !info.IsDir() && info.Mode().IsRegular():
			return nil, errAbsent
		case !info.IsDir() && !info.Mode().IsRegular():
			return nil, &RefusedError{File: at, Reason: "it is neither a file nor a folder of this repository (a submodule?): keep a " +
				"file of its own here"}
		case i == len(parts)-1:
			return info, nil
		}
	}
	return nil, errAbsent
}

// readBytes is a file's content, whatever it holds; errAbsent where there is none.
func (c *commitFiles) readBytes(name string) ([]byte, error) {
	info, err := c.statPath(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &RefusedError{File: name, Reason: "it is a folder, not a file"}
	}
	if info.Size() > MaxFileSize {
		return nil, tooLarge(name, info.Size())
	}
	file, err := c.tree.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFileSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case len(data) > MaxFileSize:
		return nil, tooLarge(name, int64(len(data)))
	}
	return data, nil
}

func tooLarge(name string, size int64) error {
	return &RefusedError{File: name, Reason: fmt.Sprintf("the file has %d bytes; at most %d are read", size, MaxFileSize)}
}

// readDocument is a file parsed; errAbsent where there is none.
func (c *commitFiles) readDocument(name string, as fileFormat) (*document, error) {
	if d, ok := c.docs[name]; ok && d.format == as {
		return d, nil
	}
	key, known, err := c.lookupParsed(name, as)
	if err != nil || known != nil {
		return known, err
	}
	data, err := c.readBytes(name)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(data, as)
	if err != nil {
		return nil, withLocation(err, name, "")
	}
	c.docs[name] = d
	if key.id != "" {
		c.parseCache.put(key, d)
	}
	return d, nil
}

// lookupParsed is a file as it was parsed before, in this tree or another, and
// what it goes by; both are empty where that can't be told.
func (c *commitFiles) lookupParsed(name string, as fileFormat) (parseCacheKey, *document, error) {
	ids, ok := c.tree.(ObjectIDs)
	if !ok || c.parseCache == nil {
		return parseCacheKey{}, nil, nil
	}
	info, err := c.statPath(name)
	if err != nil || info.IsDir() {
		return parseCacheKey{}, nil, err
	}
	id, err := ids.ObjectID(name)
	if err != nil {
		return parseCacheKey{}, nil, fmt.Errorf("looking at %s: %w", name, err)
	}
	key := parseCacheKey{id, as}
	d, ok := c.parseCache.docs.Get(key)
	if ok {
		c.docs[name] = d
	}
	return key, d, nil
}

// skipsFile says that locate shall not look at a file.
func (c *commitFiles) skipsFile(name string) bool { return c.onlyFile != "" && c.onlyFile != name }

// checkWritable refuses files that no promotion may touch: the pipeline's own, by
// whose rules it is judged, and names that a reviewer or a script would misread.
func checkWritable(name string) error {
	odd := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`"'\`, r) }
	switch {
	case pipeline.IsPipelinePath(name):
		return &RefusedError{File: name, Reason: "it is a pipeline file, and a promotion doesn't change the rules it is judged by"}
	case strings.ContainsFunc(name, odd):
		return &RefusedError{File: fmt.Sprintf("%q", name), Reason: "names with quotes, backslashes or control characters are not " +
			"written: rename the file"}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, "-") {
			return &RefusedError{File: name, Reason: "names that look like options are not written: rename " + part}
		}
	}
	return nil
}

// cleanRoots checks and normalises the roots: no duplicates, "." for the
// repository itself.
func cleanRoots(roots []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, r := range roots {
		c := path.Clean(strings.TrimSuffix(r, "/"))
		if r == "" {
			c = "."
		}
		if !fs.ValidPath(c) {
			return nil, fmt.Errorf("the root %q isn't a folder of the repository", r)
		}
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out, nil
}

// isUnderRoot says that a file is in a root.
func isUnderRoot(root, file string) bool {
	return root == "." || strings.HasPrefix(file, root+"/")
}

// joinRoot is a root-relative file from the repository's root.
func joinRoot(root, file string) string {
	if root == "." {
		return file
	}
	return root + "/" + file
}
