package appset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/wording"
)

// The controller's ways to match a git file generator's paths.
const (
	GlobbingGit        = "git"        // the default: pathspecs, where * crosses slashes
	GlobbingDoublestar = "doublestar" // --enable-new-git-file-globbing
)

// maxGeneratorBytes bounds what one ApplicationSet's git file generators read.
const maxGeneratorBytes = 256 << 20

// commit is a repository at one commit.
type commit struct {
	tree     fs.FS
	urls     []string
	revision string
	branch   string                 // of this repository; empty: another repository
	branches map[string]ExternalRef // other branches of this repository, where the caller says what they are at

	once    sync.Once
	listing *treeListing
	err     error

	openExternal func(ctx context.Context, repoURL, revision string) (*ExternalRef, error)
	mu           sync.Mutex
	externals    map[refCommit]*externalCommit // by repository and revision
}

// externalCommit is another repository, or another revision of this one; the first
// who asks for it looks it up.
type externalCommit struct {
	once   sync.Once
	commit *commit
	err    error
}

// refCommit is which commit a repository was at, at a revision.
type refCommit struct{ url, revision, commit string }

// listFiles lists the commit's tree; the first caller pays.
func (c *commit) listFiles(ctx context.Context) (*treeListing, error) {
	c.once.Do(func() { c.listing, c.err = listTree(ctx, c.tree) })
	return c.listing, c.err
}

// BranchName is the branch that a revision of an Application or a generator names, without
// refs/heads/. A tag or a commit is given as it is, and "" for HEAD.
func BranchName(revision string) string {
	if revision == "HEAD" {
		return ""
	}
	return strings.TrimPrefix(revision, "refs/heads/")
}

// isThisRepository says whether the URL is this repository's.
func (c *commit) isThisRepository(url string) bool {
	return slices.ContainsFunc(c.urls, func(u string) bool { return SameRepository(u, url) })
}

// resolveRef is the commit that a git generator's repository and revision mean.
func (c *commit) resolveRef(ctx context.Context, repoURL, revision string) (*commit, error) {
	here := c.isThisRepository(repoURL)
	if err := checkVisible(repoURL); err != nil {
		return nil, fmt.Errorf("a git generator reads what there isn't: %w", err)
	}
	branch := ""
	if here {
		if revision == "" || revision == "HEAD" || revision == c.revision {
			return c, nil
		}
		if branch = BranchName(revision); branch == c.branch && branch != "" {
			return c, nil
		}
	}
	given, known := c.branches[branch]
	known = known && here
	if c.openExternal == nil && !known {
		if here {
			return nil, fmt.Errorf("a git generator reads revision %q, which is not the branch that is tracked%s: other revisions can't "+
				"be read here", revision, quotedBranch(c.branch))
		}
		return nil, fmt.Errorf("a git generator reads %s, which is not this repository: other repositories can't be read here",
			withoutCredentials(repoURL))
	}
	c.mu.Lock()
	if c.externals == nil {
		c.externals = map[refCommit]*externalCommit{}
	}
	key := refCommit{url: repoURL, revision: revision, commit: given.Commit}
	p := c.externals[key]
	if p == nil {
		p = &externalCommit{}
		c.externals[key] = p
	}
	c.mu.Unlock()
	p.once.Do(func() {
		e := &given
		if !known {
			var err error
			if e, err = c.openExternal(ctx, repoURL, revision); err != nil {
				p.err = fmt.Errorf("a git generator reads %s at revision %q: %w", withoutCredentials(repoURL), revision, err)
				return
			}
		}
		p.commit = &commit{tree: e.Tree, revision: e.Commit, branch: branch}
	})
	return p.commit, p.err
}

func quotedBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", branch)
}

// externalCommits are the commits that other places were at, in a fixed order.
func (c *commit) externalCommits() []refCommit {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []refCommit
	for key, p := range c.externals {
		if key.commit != "" {
			continue // it was said, not asked
		}
		if p.commit != nil {
			key.commit = p.commit.revision
		}
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b refCommit) int {
		return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.revision, b.revision))
	})
	return out
}

// externalsCurrent says that the other repositories that the targets were resolved from are
// where they were.
func (t *TargetSet) externalsCurrent(ctx context.Context, other func(ctx context.Context, repoURL, revision string) (*ExternalRef,
	error)) bool {
	for _, a := range t.externals {
		e, err := other(ctx, a.url, a.revision)
		if err != nil || e.Commit != a.commit {
			return false
		}
	}
	return true
}

// commitRepos answers one ApplicationSet's git generators. The library passes
// contexts without a deadline, so it carries the run's. It is used by one
// goroutine.
type commitRepos struct {
	ctx    context.Context // the library drops the caller's
	commit *commit
	// globbing is how the controller matches paths.
	globbing string

	bytes int // that were read
	// only are the files of the resolved commit that there are, as far as the generators see;
	// nil: all.
	only []string
}

// fileAt is a file of a commit.
type fileAt struct {
	at   *commit
	name string
	id   string // stands for what the file says; empty: not known without reading it
}

// locateFiles lists the files that match pattern, sorted.
func (c *commitRepos) locateFiles(repoURL, revision, pattern string) ([]fileAt, error) {
	at, err := c.resolveRef(repoURL, revision)
	if err != nil {
		return nil, err
	}
	found, err := c.globFiles(at, pattern)
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", withoutCredentials(repoURL), err)
	}
	return found, nil
}

// listFolders lists the folders that begin like one of some paths, but hidden
// ones, in the controller's order.
func (c *commitRepos) listFolders(repoURL, revision string, prefixes []string) ([]string, error) {
	at, err := c.resolveRef(repoURL, revision)
	if err != nil {
		return nil, err
	}
	l, err := at.listFiles(c.ctx)
	if err != nil {
		return nil, err
	}
	return l.foldersBelow(prefixes), nil
}

// identifyFile gives what stands for what a file says, and the file itself if
// that took reading it.
func (c *commitRepos) identifyFile(f *fileAt) (id string, data []byte, err error) {
	if f.id != "" {
		return f.id, nil, nil
	}
	if data, err = c.readFile(f); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(data)
	return string(sum[:]), data, nil
}

// readBatchSize is how many files are read in one go at most.
const readBatchSize = 512

// blobReader is a tree that reads many files in one go, by the ids that it
// listed. do gets them in the order of ids, or an error for one that has more
// than limit bytes.
type blobReader interface {
	ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error
}

// prefetchFiles reads those of some files that are wanted, if that is faster than one by one. A
// file that it can't read is left out: reading it alone says why.
func (c *commitRepos) prefetchFiles(files []fileAt, wanted func(f *fileAt) bool) map[string][]byte {
	if len(files) == 0 {
		return nil
	}
	tree, ok := files[0].at.tree.(blobReader)
	if !ok {
		return nil
	}
	var ids []string
	for i := range files {
		if f := &files[i]; f.id != "" && wanted(f) {
			ids = append(ids, f.id)
		}
	}
	if len(ids) < 2 {
		return nil
	}
	out := make(map[string][]byte, len(ids))
	err := tree.ReadBlobs(c.ctx, ids, maxFile, func(i int, data []byte, err error) error {
		if err == nil {
			out[ids[i]] = data
			c.bytes += len(data)
		}
		if c.bytes > maxGeneratorBytes {
			return errTree // reading one more says why
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

// readFile reads a file.
func (c *commitRepos) readFile(f *fileAt) ([]byte, error) {
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	data, err := readFile(f.at.tree, f.name)
	if err != nil {
		return nil, err
	}
	if c.bytes += len(data); c.bytes > maxGeneratorBytes {
		return nil, fmt.Errorf("the git file generators read more than %d bytes", maxGeneratorBytes)
	}
	return data, nil
}

func (c *commitRepos) resolveRef(repoURL, revision string) (*commit, error) {
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	return c.commit.resolveRef(c.ctx, repoURL, revision)
}

func (c *commitRepos) globFiles(at *commit, pattern string) ([]fileAt, error) {
	if c.only != nil && at == c.commit {
		return c.matchOnly(pattern)
	}
	l, err := at.listFiles(c.ctx)
	if err != nil {
		return nil, err
	}
	var out []fileAt
	if c.globbing == GlobbingDoublestar {
		names, err := globDoublestar(at.tree, pattern)
		for _, name := range names {
			out = append(out, fileAt{at, name, l.fileID(name)})
		}
		return out, err
	}
	spec, err := cleanPathspec(pattern)
	if err != nil {
		return nil, err
	}
	start, end := l.prefixRange(literalPrefix(spec))
	for i := start; i < end; i++ {
		if matchPathspec(spec, l.files[i]) {
			out = append(out, fileAt{at, l.files[i], l.fileIDAt(i)})
		}
	}
	return out, nil
}

// matchOnly are those of r.only that match.
func (c *commitRepos) matchOnly(pattern string) ([]fileAt, error) {
	spec, err := cleanPathspec(pattern)
	if err != nil {
		return nil, err
	}
	var out []fileAt
	for _, name := range c.only {
		if matchPathspec(spec, name) {
			out = append(out, fileAt{at: c.commit, name: name})
		}
	}
	return out, nil
}

// globDoublestar fails, as the controller does, when the pattern matches a folder.
func globDoublestar(tree fs.FS, pattern string) ([]string, error) {
	clean := strings.TrimPrefix(pattern, "./")
	if !fs.ValidPath(strings.TrimSuffix(clean, "/")) {
		return nil, fmt.Errorf("path %q is not one from the repository's root", pattern)
	}
	if err := wording.CheckGlob(clean); err != nil {
		return nil, err
	}
	names, err := doublestar.Glob(tree, clean, doublestar.WithFailOnIOErrors())
	switch {
	case errors.Is(err, doublestar.ErrBadPattern):
		return nil, fmt.Errorf("path %q is not a glob: %w", pattern, err)
	case err != nil:
		return nil, treeError(err)
	}
	return names, nil
}
