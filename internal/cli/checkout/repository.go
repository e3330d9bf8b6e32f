package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
)

// Repository is a checkout, and how manifests may name it.
type Repository struct {
	git     *git.Checkout
	scratch *git.Scratch // nil: not needed yet
	urls    []string
	branch  string // checked out; "" for none
	main    string // the branch that the tree stands for: the default one, else branch
	built   builtFolders

	given  []givenAddress     // by flags
	others []*otherRepository // of which checkouts are known

	sources []renderedSource // that targets deploy from besides
}

// Open opens the repository that dir ("" is the current folder) lies in. urls
// are addresses that manifests use for it besides those of its remotes.
func Open(ctx context.Context, dir string, urls []string) (*Repository, error) {
	git, err := git.OpenCheckout(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &Repository{git: git}
	// Each is a git of its own, which starts in about the time that it needs.
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { r.urls, errs[0] = git.RemoteURLs(ctx) })
	wg.Go(func() { r.branch, errs[1] = git.Branch(ctx) })
	wg.Go(func() { r.main, errs[2] = git.DefaultBranch(ctx) })
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, git.Close())
	}
	r.urls = append(r.urls, urls...)
	for _, url := range urls {
		r.given = append(r.given, givenAddress{"--repo-url", url})
	}
	r.main = cmp.Or(r.main, r.branch)
	return r, nil
}

// Close ends the repository's helper processes and removes what was written
// beside it.
func (r *Repository) Close() error {
	var errs []error
	for _, o := range r.others {
		errs = append(errs, o.Close())
	}
	for _, s := range r.sources {
		if s.checkout != nil {
			errs = append(errs, s.checkout.Close())
		}
	}
	if r.scratch != nil {
		errs = append(errs, r.scratch.Close())
	}
	return errors.Join(append(errs, r.git.Close())...)
}

// Origin is the address of the remote origin; empty where there is none.
func (r *Repository) Origin(ctx context.Context) (string, error) {
	return r.git.RemoteURL(ctx, "origin")
}

// DefaultBranch is the branch that the remote has checked out, as far as that is known, else the one that
// is checked out here.
func (r *Repository) DefaultBranch() string { return r.main }

// Dir is the working tree's root, or a bare repository's folder.
func (r *Repository) Dir() string { return r.git.Dir() }

// Tree is the repository's files at one moment.
type Tree struct {
	FS     *git.Tree
	Commit string
	Name   string // for people
	repo   commits
}

// commits compares a tree's commit with others.
type commits interface {
	Changed(ctx context.Context, a, b string) ([]git.FileChange, error)
	MergeBase(ctx context.Context, a, b string) (sha string, ok bool, err error)
}

// At is the repository's files at a revision. Without one they are those of
// the working tree, as the commit that committing everything would make; a bare
// repository, which has none, is taken at HEAD.
func (r *Repository) At(ctx context.Context, rev string) (*Tree, error) {
	if rev == "" && !r.git.Bare() {
		s, err := r.openScratch(ctx)
		if err != nil {
			return nil, err
		}
		sha, err := s.CommitWorkingTree(ctx, time.Now())
		if err != nil {
			return nil, err
		}
		return &Tree{FS: s.Tree(sha), Commit: sha, Name: "the working tree", repo: s}, nil
	}
	rev = cmp.Or(rev, "HEAD")
	sha, err := r.git.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return &Tree{FS: r.git.Tree(sha), Commit: sha, Name: describeCommit(rev, sha), repo: r.git}, nil
}

// openScratch makes the scratch repository when it is first needed. Close removes it.
func (r *Repository) openScratch(ctx context.Context) (*git.Scratch, error) {
	if r.scratch == nil {
		var err error
		if r.scratch, err = r.git.Scratch(ctx); err != nil {
			return nil, err
		}
	}
	return r.scratch, nil
}

// describeCommit names a commit by the revision that people gave and by its id.
func describeCommit(rev, sha string) string {
	const short = 12
	if strings.HasPrefix(sha, rev) {
		return sha[:short]
	}
	return rev + " (" + sha[:short] + ")"
}

// errNotThisRepository is what a generator gets that reads another repository.
var errNotThisRepository = errors.New("only the checkout is read; if this is its address, say so with --repo-url; if there is a checkout " +
	"of it, with --checkout URL=DIR")

// openExternal gives git generators other revisions of this repository. The branch that is checked
// out is the evaluated tree, like the default branch: the answer is what would be if it were
// merged.
func (r *Repository) openExternal(t fs.FS, at string) func(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
	return func(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
		if !r.isOwnAddress(repoURL) {
			return r.openOther(ctx, repoURL, revision)
		}
		branch := strings.TrimPrefix(revision, "refs/heads/")
		if branch == r.branch && branch != "" {
			return &appset.ExternalRef{Tree: t, Commit: at}, nil
		}
		names := []string{"refs/remotes/origin/" + branch, "refs/heads/" + branch, "refs/tags/" + revision, revision}
		if strings.HasPrefix(revision, "refs/tags/") {
			names = []string{revision}
		}
		for _, name := range names {
			sha, err := r.git.Resolve(ctx, name)
			if err == nil {
				return &appset.ExternalRef{Tree: r.git.Tree(sha), Commit: sha}, nil
			}
			if !errors.Is(err, git.ErrUnknownCommit) {
				return nil, err
			}
		}
		return nil, fmt.Errorf("this checkout has no such branch, tag or commit: fetch it first")
	}
}
