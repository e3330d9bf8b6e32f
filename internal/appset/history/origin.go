package history

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// Origin is the commit that brought an environment's carried fields to where
// they are, as far as Git knows.
type Origin struct {
	Commit git.CommitInfo
	First  bool // the fields did not exist before this commit
	Found  bool // false: it is further back than was looked; Commit is the oldest that was
}

// FindOrigin finds where a release came from among the commits that may have changed it, newest
// first: the first whose parent has another identity. idAt gives the release's identity at a
// commit, "" where there is none or it can't be read; absent tells these two apart. While it can't
// be read a release neither comes nor goes. A release that was broken and put back as it was has
// been there since before. Where another release was there before, it came with the commit after
// which it could be read.
func FindOrigin(log []git.CommitInfo, now string, idAt func(commit string) string, absent func(commit string) bool) Origin {
	var o Origin
	var readable *git.CommitInfo // the oldest after which the release can be read again
	for _, c := range log {
		o.Commit = c
		before, none := "", true
		if len(c.Parents) > 0 {
			before = idAt(c.Parents[0])
			none = before == "" && absent(c.Parents[0])
		}
		switch {
		case before == now:
			readable = nil
		case before != "" || none:
			if readable != nil {
				return Origin{Commit: *readable, Found: true}
			}
			return Origin{Commit: c, First: none, Found: true}
		case readable == nil:
			readable = &c
		}
	}
	return o
}

// Ancestry is how two commits of a repository are related; a *git.Mirror is one.
type Ancestry interface {
	IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error)
	Commit(ctx context.Context, sha string) (*git.CommitInfo, error)
}

// PredatesBaseline says that the release of a commit was there when the baseline brought the
// pipeline, or its newest part. Such releases never move by themselves. On a branch of an
// environment's own that the baseline isn't on, nothing but the commits' times tells.
func PredatesBaseline(ctx context.Context, repo Ancestry, c git.CommitInfo, baseline string) (bool, error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("compare %s with the baseline %s: %w", c.SHA, baseline, err)
	}
	if old, err := repo.IsAncestor(ctx, c.SHA, baseline); err != nil {
		return fail(err)
	} else if old {
		return true, nil
	}
	if on, err := repo.IsAncestor(ctx, baseline, c.SHA); err != nil {
		return fail(err)
	} else if on {
		return false, nil
	}
	base, err := repo.Commit(ctx, baseline)
	if err != nil {
		return fail(err)
	}
	return c.CommitTime.Before(base.CommitTime), nil
}

// RevertedReleases lists the releases (short) that revert commits took out of an environment, as
// these commits' trailers say, newest first. For each release its newest commit counts, so a
// release that was promoted again isn't among them.
func RevertedReleases(log []git.CommitInfo, u promotion.Unit, environment string) []string {
	var out []string
	settled := map[string]bool{}
	for _, c := range log {
		id := promotion.ReleaseFromTrailers(c.Trailers, u, environment)
		if len(id) < 12 || settled[wording.Short(id)] {
			continue
		}
		settled[wording.Short(id)] = true
		if c.Trailers[promotion.TrailerKind] == promotion.KindRevert {
			out = append(out, wording.Short(id))
		}
	}
	return out
}
