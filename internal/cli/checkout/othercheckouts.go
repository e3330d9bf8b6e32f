package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// OtherCheckout says that a folder is a checkout of another repository.
type OtherCheckout struct{ URL, Dir string }

// givenAddress is an address that people said manifests use, and the flag by which they did.
type givenAddress struct{ flag, url string }

// otherRepository is a checkout of another repository, which generators may read.
type otherRepository struct {
	*Repository
	url string

	mu   sync.Mutex // generators ask from several goroutines
	tree *Tree      // nil: not needed yet
}

// AddCheckouts adds checkouts of other repositories. Close closes them, too.
func (r *Repository) AddCheckouts(ctx context.Context, list []OtherCheckout) error {
	for _, c := range list {
		if r.isOwnAddress(c.URL) {
			return fmt.Errorf("--checkout %s=%s: that is an address of this repository, which is read from here", c.URL, c.Dir)
		}
		if slices.ContainsFunc(r.others, func(o *otherRepository) bool { return appset.SameRepository(o.url, c.URL) }) {
			return fmt.Errorf("--checkout %s: two folders are given for this address", c.URL)
		}
		other, err := Open(ctx, c.Dir, []string{c.URL})
		if errors.Is(err, ErrNoRepository) {
			return fmt.Errorf("--checkout %s=%s: the folder is in no Git repository", c.URL, c.Dir)
		}
		if err != nil {
			return fmt.Errorf("--checkout %s: %w", c.URL, err)
		}
		r.others = append(r.others, &otherRepository{Repository: other, url: c.URL})
		r.given = append(r.given, givenAddress{"--checkout", c.URL})
	}
	return nil
}

func (r *Repository) isOwnAddress(url string) bool {
	return slices.ContainsFunc(r.urls, func(u string) bool { return appset.SameRepository(u, url) })
}

// openOther gives a revision of another repository that a checkout is known of.
func (r *Repository) openOther(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
	i := slices.IndexFunc(r.others, func(o *otherRepository) bool { return appset.SameRepository(o.url, repoURL) })
	if i < 0 {
		return nil, errNotThisRepository
	}
	return r.others[i].open(ctx, revision)
}

// open gives a revision: the default branch and the one that is checked out are the folder as it lies
// there, as in the checkout itself.
func (o *otherRepository) open(ctx context.Context, revision string) (*appset.ExternalRef, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tree == nil {
		tree, err := o.At(ctx, "")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Dir(), err)
		}
		o.tree = tree
	}
	if branch := appset.BranchName(revision); branch == "" || branch == o.main {
		return &appset.ExternalRef{Tree: o.tree.FS, Commit: o.tree.Commit}, nil
	}
	return o.openExternal(o.tree.FS, o.tree.Commit)(ctx, o.url, revision)
}

// errNoSetReads is that an address was said which manifests don't have.
var errNoSetReads = errors.New("no set reads it")

// refuseUnread says that an address which a flag names is in none of the pipelines' ApplicationSets: a
// flag with a typo would change nothing, without a word.
func (r *Repository) refuseUnread(ctx context.Context, g *namedFiles, t *Tree, known *knownInput, pipes []*pipeline.Pipeline) error {
	if len(r.given) == 0 || len(pipes) == 0 {
		return nil
	}
	var there []string
	isOpen := false
	for _, p := range pipes {
		in := known.forPipeline(p)
		r.fillInput(&in, g, t)
		list, open := appset.Addresses(ctx, in)
		there, isOpen = append(there, list...), isOpen || open
	}
	if there = appset.SortedUnique(there); len(there) == 0 {
		return nil // no set can be read, which is told with what is wrong with them
	}
	for _, a := range r.given {
		if isOpen || slices.ContainsFunc(there, func(url string) bool { return appset.SameRepository(url, a.url) }) {
			continue
		}
		return fmt.Errorf("%s %s: %w; the sets here read %s", a.flag, appset.WithoutCredentials(strings.TrimSpace(a.url)), errNoSetReads,
			wording.JoinFew(there, 8))
	}
	return nil
}
