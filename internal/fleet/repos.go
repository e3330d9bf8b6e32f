package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/argoproj/argo-cd/v2/applicationset/services"
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
	branch   string

	once    sync.Once
	listing *listing
	err     error

	other  func(ctx context.Context, repoURL, revision string) (*Elsewhere, error)
	mu     sync.Mutex
	places map[answer]*place // by repository and revision
}

// place is another repository, or another revision of this one; the first
// who asks for it looks it up.
type place struct {
	once   sync.Once
	commit *commit
	err    error
}

// answer is which commit a repository was at, at a revision.
type answer struct{ url, revision, commit string }

// all lists the commit's tree; the first caller pays.
func (c *commit) all(ctx context.Context) (*listing, error) {
	c.once.Do(func() { c.listing, c.err = list(ctx, c.tree) })
	return c.listing, c.err
}

// here says whether the URL is this repository's.
func (c *commit) here(url string) bool {
	return slices.ContainsFunc(c.urls, func(u string) bool { return sameRepository(u, url) })
}

// at is the commit that a git generator's repository and revision mean.
func (c *commit) at(ctx context.Context, repoURL, revision string) (*commit, error) {
	here := c.here(repoURL)
	if here {
		branch := strings.TrimPrefix(revision, "refs/heads/")
		if revision == "" || revision == "HEAD" || revision == c.revision || branch == c.branch && branch != "" {
			return c, nil
		}
	}
	if c.other == nil {
		if here {
			return nil, fmt.Errorf("a git generator reads revision %q, which is not the branch that is tracked%s: other revisions can't be read here", revision, named(c.branch))
		}
		return nil, fmt.Errorf("a git generator reads %s, which is not this repository: other repositories can't be read here", withoutCredentials(repoURL))
	}
	c.mu.Lock()
	if c.places == nil {
		c.places = map[answer]*place{}
	}
	key := answer{url: repoURL, revision: revision}
	p := c.places[key]
	if p == nil {
		p = &place{}
		c.places[key] = p
	}
	c.mu.Unlock()
	p.once.Do(func() {
		e, err := c.other(ctx, repoURL, revision)
		switch {
		case err != nil:
			p.err = fmt.Errorf("a git generator reads %s at revision %q: %w", withoutCredentials(repoURL), revision, err)
		case here && e.Commit == c.revision && c.revision != "":
			p.commit = c
		default:
			p.commit = &commit{tree: e.Tree, revision: e.Commit}
		}
	})
	return p.commit, p.err
}

func named(branch string) string {
	if branch == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", branch)
}

// answers are the commits that other places were at, in a fixed order.
func (c *commit) answers() []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []answer
	for key, p := range c.places {
		if p.commit != nil {
			key.commit = p.commit.revision
		}
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.revision, b.revision))
	})
	return out
}

// still says that the other repositories that the fleet was resolved from are
// where they were.
func (f *Fleet) still(ctx context.Context, other func(ctx context.Context, repoURL, revision string) (*Elsewhere, error)) bool {
	for _, a := range f.answers {
		e, err := other(ctx, a.url, a.revision)
		if err != nil || e.Commit != a.commit {
			return false
		}
	}
	return true
}

// commitRepos implements the library's view of repositories for one
// ApplicationSet. The library passes contexts without a deadline, so it
// carries the run's.
type commitRepos struct {
	ctx    context.Context //nolint:containedctx // the library drops the caller's
	commit *commit
	// globbing is how the controller matches paths.
	globbing string

	mu    sync.Mutex
	bytes int
	files map[string]bool // everything read of this commit
}

var _ services.Repos = (*commitRepos)(nil)

// GetFiles returns the files that match pattern, by path.
func (r *commitRepos) GetFiles(_ context.Context, repoURL, revision, pattern string, _, _ bool) (map[string][]byte, error) {
	at, err := r.at(repoURL, revision)
	if err != nil {
		return nil, err
	}
	names, err := r.glob(at, pattern)
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", withoutCredentials(repoURL), err)
	}
	out := make(map[string][]byte, len(names))
	for _, name := range names {
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		data, err := readFile(at.tree, name)
		if err != nil {
			return nil, err
		}
		if err := r.record(at, name, len(data)); err != nil {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}

// GetDirectories returns all folders but hidden ones, which the library filters.
func (r *commitRepos) GetDirectories(_ context.Context, repoURL, revision string, _, _ bool) ([]string, error) {
	at, err := r.at(repoURL, revision)
	if err != nil {
		return nil, err
	}
	l, err := at.all(r.ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(l.dirs), nil
}

func (r *commitRepos) at(repoURL, revision string) (*commit, error) {
	if r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	return r.commit.at(r.ctx, repoURL, revision)
}

func (r *commitRepos) record(at *commit, name string, size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes += size; r.bytes > maxGeneratorBytes {
		return fmt.Errorf("the git file generators read more than %d bytes", maxGeneratorBytes)
	}
	if at == r.commit {
		r.files[name] = true
	}
	return nil
}

// read lists every file that was read, sorted.
func (r *commitRepos) read() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, 0, len(r.files))
	for f := range r.files {
		out = append(out, f)
	}
	sort.Strings(out)
	return out
}

func (r *commitRepos) glob(at *commit, pattern string) ([]string, error) {
	if r.globbing == GlobbingDoublestar {
		return globDoublestar(at.tree, pattern)
	}
	spec, err := cleanPathspec(pattern)
	if err != nil {
		return nil, err
	}
	l, err := at.all(r.ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range l.files {
		if matchPathspec(spec, name) {
			out = append(out, name)
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
	names, err := doublestar.Glob(tree, clean, doublestar.WithFailOnIOErrors())
	switch {
	case errors.Is(err, doublestar.ErrBadPattern):
		return nil, fmt.Errorf("path %q is not a glob: %w", pattern, err)
	case err != nil:
		return nil, treeError(err)
	}
	return names, nil
}
