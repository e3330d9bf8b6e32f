package branch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// SeenHeads are the heads that the branches of a repository had at a process's last look.
var SeenHeads = record.Declare[record.Repository, map[string]string](record.Declaration{
	Name: "seen-heads", Owner: "controller", Lifetime: record.Lasting,
	Doc: "The heads that the branches that matter had at the last look, by branch.",
})

// SeenHeads are the heads of a repository's branches that matter, as a process saw them last; nil
// where none looked, or an older version did.
func (g *GitGatherer) SeenHeads(ctx context.Context, r *Repository) (map[string]string, error) {
	seen, _, err := SeenHeads.Get(ctx, g.store, record.Repository(r.ID))
	return seen, err
}

// StateCommits are the commits of the state branches that have the holds as Liftlock wrote them last, or
// found them when it looked first.
var StateCommits = record.Declare[record.Repository, string](record.Declaration{
	Name: "state-commit", Owner: "controller/act", Lifetime: record.Lasting,
	Doc: "The commit of the state branch that has the holds as Liftlock wrote them last. Without it, its newest signed commit counts.",
})

// FindHolds finds the state branch's head, empty where there is none, and its newest commit that
// Liftlock made, or took for the truth when it looked first. Others' later pushes may restrain, and
// lift nothing. Where the two differ the holds of both count, until Liftlock has restored the
// missing ones. Where the branch was deleted there is no head, and only a command lifts its holds.
func (g *GitGatherer) FindHolds(ctx context.Context, r *Repository) (head, own string, err error) {
	head, ok, err := r.Mirror.Head(ctx, history.StateBranch)
	if err != nil {
		return "", "", fmt.Errorf("read where the holds are: %w", err)
	}
	of := record.Repository(r.ID)
	stored, err := record.ReadAll(ctx, g.store, record.Within{Repo: r.ID}, StateCommits, SeenHeads)
	if err != nil {
		return "", "", err
	}
	known, _, err := StateCommits.Get(ctx, stored, of)
	if err != nil {
		return "", "", err
	}
	switch {
	case ok && known == head:
		return head, head, nil
	case ok:
		own, err = findOwnState(ctx, r, head, known)
		return head, own, err
	case known != "":
		return "", known, nil
	}
	seen, _, err := SeenHeads.Get(ctx, stored, of)
	return "", seen[history.StateBranch], err
}

// These bound how many commits of the state branch are read for the newest of Liftlock's own, below
// which others pushed theirs.
const (
	MaxStateCommits = 200
	// maxUnknownStateCommits is for when only the branch says which that is, as the database was
	// lost: an account that pushes many must not have its own taken for it.
	maxUnknownStateCommits = 5000
)

// findOwnState finds the newest commit of Liftlock's own below a head of the state branch, by its
// signature. known is the one that the store knows, from which another process may have gone on.
// The branch may have been reset to an older one, so the commit must come after that.
func findOwnState(ctx context.Context, r *Repository, head, known string) (string, error) {
	if known != "" {
		if ok, err := r.Mirror.Has(ctx, known); err != nil || !ok {
			return known, err // reading the holds there will say that it isn't there
		}
	}
	limit := MaxStateCommits
	if known == "" {
		limit = maxUnknownStateCommits
	}
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: head, Until: known, FirstParent: true, Limit: limit})
	if err != nil {
		return "", fmt.Errorf("look for the holds that Liftlock wrote: %w", err)
	}
	for i := range log {
		if !r.Marks.isStateSigned(r.ID, &log[i]) {
			continue
		}
		if known == "" {
			return log[i].SHA, nil
		}
		follows, err := r.Mirror.IsAncestor(ctx, known, log[i].SHA)
		if err != nil {
			return "", fmt.Errorf("look at whether the holds go on from %s: %w", known, err)
		}
		if follows {
			return log[i].SHA, nil
		}
	}
	if known == "" && len(log) == limit {
		return "", fmt.Errorf("the newest %d commits of %s aren't Liftlock's, so which holds it wrote there isn't known; take the branch "+
			"back to its own newest one", limit, history.StateBranch)
	}
	return cmp.Or(known, head), nil
}

// HoldsOf are the holds that concern a unit: those at the state branch's head, and those that Liftlock knows of
// that somebody else took off there.
func (g *GitGatherer) HoldsOf(r *Repository, u promotion.Unit, head, own string) promotion.Known[[]promotion.Hold] {
	if head == "" && own != "" { // which of them stand can't be told
		return promotion.Unsure[[]promotion.Hold](fmt.Sprintf("the branch %s, which has them, was deleted; Liftlock puts it back, or "+
			"push %s there", history.StateBranch, own))
	}
	holds, err := g.readHolds(r, head, u)
	if err == nil && own != head {
		var before []promotion.Hold
		before, err = g.readHolds(r, own, u)
		for _, h := range before {
			if !slices.Contains(holds, h) {
				holds = append(holds, h)
			}
		}
	}
	switch {
	case errors.Is(err, git.ErrUnknownCommit):
		return promotion.Unsure[[]promotion.Hold](fmt.Sprintf("somebody took the branch %s, which has them, to where %s isn't; push that "+
			"there again", history.StateBranch, own))
	case err != nil:
		return promotion.Unsure[[]promotion.Hold](err.Error())
	}
	return promotion.Sure(holds)
}

// ReadHoldFile reads what each who holds something set, by its file on the state branch: what its head has, and
// what Liftlock knows of that somebody else took off there.
func (g *GitGatherer) ReadHoldFile(ctx context.Context, r *Repository, file string) ([]promotion.Holding, error) {
	head, own, err := g.FindHolds(ctx, r)
	if err != nil || own == "" {
		return nil, err
	}
	known, err := history.ReadHolds(r.Mirror.Tree(own), file)
	if err != nil || head == "" || head == own {
		return known, err
	}
	now, err := history.ReadHolds(r.Mirror.Tree(head), file)
	return history.JoinHolds(now, known), err
}
