package people

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// StoredSkip is a skip as the store keeps it: nowhere else, so that with the database it
// is gone.
type StoredSkip struct {
	promotion.Skip
	Head    string `json:"head"`    // the commit that it was given for
	Release string `json:"release"` // what that moves
	Source  string `json:"source"`  // of the command
}

// Skips are the gates of a pull request that somebody skipped.
var Skips = record.Declare[record.Pull, []StoredSkip](record.Declaration{
	Name: "skips", Owner: "controller", Lifetime: record.UntilSettled,
	Doc: "The gates that somebody skipped, with their reasons. Without it nothing is skipped.",
})

// ReadSkips reads the skips of a pull request that are about a head and what it moves. A skip that
// can't be read is none: it loosens nothing.
func ReadSkips(ctx context.Context, st record.Reader, repo string, number int, head, release string) ([]StoredSkip, error) {
	all, _, err := Skips.Get(ctx, st, record.OfPull(repo, number))
	return slices.DeleteFunc(all, func(s StoredSkip) bool { return s.Head != head || s.Release != release }), err
}

// AddSkips fills in which gates of an open promotion somebody skipped, and whether they
// may by now.
func (rg *ReviewGatherer) AddSkips(ctx context.Context, b *branch.Basis, p *promotion.Pull) error {
	r := b.Snapshot.Repo
	stored, err := ReadSkips(ctx, rg.records, r.ID, p.Number, p.Head, p.Release)
	if err != nil {
		return err
	}
	for _, s := range stored {
		if !b.Now.Before(s.Until) {
			continue
		}
		if s.Via == "" {
			may, err := rg.teams.MaySkip(ctx, r, b.Pipeline.Spec.BreakGlass, s.By, b.Fresh)
			switch failed := branch.RetryableError(ctx, err); {
			case failed != nil:
				return failed
			case err != nil:
				s.Err = err.Error()
			case !may:
				s.Err = s.By + " isn't among those whom the pipeline's breakGlass names any more"
			default:
				if s.Err, err = rg.whyMayNotWrite(ctx, r, s.By, b.Fresh); err != nil {
					return err
				}
			}
		}
		p.Skips = append(p.Skips, s.Skip)
	}
	return nil
}

// whyMayNotWrite says why somebody isn't known to have the permission to write, which a
// skip takes; empty: they have. The error is worth another try.
func (rg *ReviewGatherer) whyMayNotWrite(ctx context.Context, r *branch.Repository, login string, fresh bool) (why string, err error) {
	level, err := rg.userPermission(ctx, r, login, fresh)
	switch failed := branch.RetryableError(ctx, err); {
	case failed != nil:
		return "", fmt.Errorf("read the permission of %s: %w", login, failed)
	case err != nil:
		return fmt.Sprintf("the permission of %s can't be read: %v", login, err), nil
	case level < forge.PermissionWrite:
		return login + " may not write to the repository any more", nil
	}
	return "", nil
}

// MaySkip says whether a pipeline's breakGlass names an account, or a team that it is in;
// fresh asks the forge whatever is remembered.
func (tg *TeamGatherer) MaySkip(ctx context.Context, r *branch.Repository, b *pipeline.BreakGlass, login string, fresh bool) (bool, error) {
	if b == nil || login == "" {
		return false, nil
	}
	if slices.ContainsFunc(b.Users, func(u string) bool { return strings.EqualFold(u, login) }) {
		return true, nil
	}
	var failed error
	for _, team := range b.Teams {
		is, err := tg.IsInTeam(ctx, r, team, login, fresh)
		if is {
			return true, nil
		}
		if err != nil && failed == nil {
			failed = err // another team may have them
		}
	}
	return false, failed
}
