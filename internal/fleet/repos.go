package fleet

import (
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

// commit is the one repository that generators can look at.
type commit struct {
	tree     fs.FS
	urls     []string
	revision string
	branch   string
	globbing string

	once    sync.Once
	listing *listing
	err     error
}

// all lists the commit's tree; the first caller pays.
func (c *commit) all(ctx context.Context) (*listing, error) {
	c.once.Do(func() { c.listing, c.err = list(ctx, c.tree) })
	return c.listing, c.err
}

// here says whether the URL is this repository's.
func (c *commit) here(url string) bool {
	return slices.ContainsFunc(c.urls, func(u string) bool { return sameRepository(u, url) })
}

// commitRepos implements the library's view of repositories for one
// ApplicationSet. The library passes contexts without a deadline, so it
// carries the run's.
type commitRepos struct {
	ctx    context.Context //nolint:containedctx // the library drops the caller's
	commit *commit

	mu    sync.Mutex
	bytes int
	files map[string]bool // everything read
}

var _ services.Repos = (*commitRepos)(nil)

// GetFiles returns the files that match pattern, by path.
func (r *commitRepos) GetFiles(_ context.Context, repoURL, revision, pattern string, _, _ bool) (map[string][]byte, error) {
	if err := r.check(repoURL, revision); err != nil {
		return nil, err
	}
	names, err := r.glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", repoURL, err)
	}
	out := make(map[string][]byte, len(names))
	for _, name := range names {
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		data, err := readFile(r.commit.tree, name)
		if err != nil {
			return nil, err
		}
		if err := r.record(name, len(data)); err != nil {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}

// GetDirectories returns all folders but hidden ones, which the library filters.
func (r *commitRepos) GetDirectories(_ context.Context, repoURL, revision string, _, _ bool) ([]string, error) {
	if err := r.check(repoURL, revision); err != nil {
		return nil, err
	}
	l, err := r.commit.all(r.ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(l.dirs), nil
}

func (r *commitRepos) check(repoURL, revision string) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if !r.commit.here(repoURL) {
		return fmt.Errorf("a git generator reads %s, which is not this repository: other repositories are not supported yet", withoutCredentials(repoURL))
	}
	switch branch := strings.TrimPrefix(revision, "refs/heads/"); {
	case revision == "", revision == "HEAD", revision == r.commit.revision:
	case branch == r.commit.branch && branch != "":
	default:
		return fmt.Errorf("a git generator reads revision %q, which is not the branch that is tracked%s: other revisions are not supported yet", revision, named(r.commit.branch))
	}
	return nil
}

func named(branch string) string {
	if branch == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", branch)
}

func (r *commitRepos) record(name string, size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes += size; r.bytes > maxGeneratorBytes {
		return fmt.Errorf("the git file generators read more than %d bytes", maxGeneratorBytes)
	}
	r.files[name] = true
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

func (r *commitRepos) glob(pattern string) ([]string, error) {
	if r.commit.globbing == GlobbingDoublestar {
		return r.globDoublestar(pattern)
	}
	spec, err := cleanPathspec(pattern)
	if err != nil {
		return nil, err
	}
	l, err := r.commit.all(r.ctx)
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
func (r *commitRepos) globDoublestar(pattern string) ([]string, error) {
	clean := strings.TrimPrefix(pattern, "./")
	if !fs.ValidPath(strings.TrimSuffix(clean, "/")) {
		return nil, fmt.Errorf("path %q is not one from the repository's root", pattern)
	}
	names, err := doublestar.Glob(r.commit.tree, clean, doublestar.WithFailOnIOErrors())
	switch {
	case errors.Is(err, doublestar.ErrBadPattern):
		return nil, fmt.Errorf("path %q is not a glob: %w", pattern, err)
	case err != nil:
		return nil, treeError(err)
	}
	return names, nil
}
