package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// UngatedMerge is a promotion that a person merged although it waited at its last evaluation.
type UngatedMerge struct {
	Pull  int      `json:"pull"`
	By    string   `json:"by"`
	Gates []string `json:"gates"` // that it waited for, and promotion.GateHead
}

// String is for people: by whom, and past what.
func (u UngatedMerge) String() string {
	return fmt.Sprintf("merged by %s without gates: %s", u.By, strings.Join(u.Gates, ", "))
}

// UngatedMerges are the pull requests that were merged past their gates.
var UngatedMerges = record.Declare[record.Pull, UngatedMerge](record.Declaration{
	Name: "ungated-merge", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "A person merged the promotion although it waited: who, and past what. It goes when the release has left its environment.",
})

// findUngated says which gates a merged promotion of ours that was just seen waited for at the
// component's last evaluation. It is nil where we merged it, where nothing waited, and where no
// process evaluated it.
func (rg *recordGatherer) findUngated(ctx context.Context, c *ComponentEvaluation, env string,
	pr *forge.PullRequest) (*UngatedMerge, error) {
	row, ok, err := rg.store.Unit(ctx, wake.UnitName(c.Facts.Unit))
	var v stored.Unit
	if err != nil || !ok || json.Unmarshal(row.Data, &v) != nil {
		return nil, err
	}
	i := slices.IndexFunc(v.Decision.Envs, func(st promotion.EnvState) bool { return st.Environment == env && st.Pull == pr.Number })
	if i < 0 || pr.MergedBy == "" || c.Snapshot.Repo.HasMerged(pr) {
		return nil, nil
	}
	ours, err := rg.isLandedOurs(ctx, c, pr)
	if err != nil {
		return nil, err
	}
	var gates []string
	if !ours { // no gate was judged of it
		gates = append(gates, string(promotion.GateHead))
	}
	for _, g := range v.Decision.Envs[i].Gates {
		if name := string(g.Gate); g.Outcome != policies.Pass && !slices.Contains(gates, name) && promotion.IsMergedPast(g.Gate) {
			gates = append(gates, name)
		}
	}
	if len(gates) == 0 {
		return nil, nil
	}
	return &UngatedMerge{Pull: pr.Number, By: pr.MergedBy, Gates: gates}, nil
}

// isLandedOurs says that the merged head is one that we put there, or one brought up to date from
// that by the forge's button, which merges or rebases. It must have landed as our heads do, as far
// as the store knows; also where it knows nothing. A merge may hold anything whatever its parents
// are: so the landed content is compared.
func (rg *recordGatherer) isLandedOurs(ctx context.Context, c *ComponentEvaluation, pr *forge.PullRequest) (bool, error) {
	pushed, known, err := branch.PushedHeads.Get(ctx, rg.store, record.OfBranch(c.Snapshot.Repo.ID, pr.Branch))
	if err != nil || !known {
		return err == nil, err
	}
	m, head := c.Snapshot.Repo.Mirror, pr.Head
	for range branch.MaxBroughtCommits {
		info, err := m.Commit(ctx, head)
		isOurs := pushed.Find([]string{head}) != nil
		switch {
		case errors.Is(err, git.ErrUnknownCommit):
			return isOurs, nil
		case err != nil:
			return false, err
		case len(info.Parents) == 1:
			if !isOurs {
				if isOurs, err = isRebased(ctx, m, pushed, info); err != nil || !isOurs {
					return false, err
				}
			}
			return landsAlike(ctx, m, info, pr)
		case isOurs || len(info.Parents) != 2:
			return isOurs, nil
		}
		head = info.Parents[0] // the button merges the base into the branch
	}
	return false, nil
}

// isRebased says that a commit changes on another parent what one that we pushed changes on its own.
func isRebased(ctx context.Context, m *git.Mirror, pushed branch.Pushed, head *git.CommitInfo) (bool, error) {
	for i := range pushed {
		info, err := m.Commit(ctx, pushed[i].Head)
		if errors.Is(err, git.ErrUnknownCommit) || err == nil && len(info.Parents) != 1 {
			continue
		}
		if err != nil {
			return false, err
		}
		if same, err := changesTheSame(ctx, m, info.Parents[0], info.SHA, head.Parents[0], head.SHA); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// landsAlike says that a pull request landed with the change of a commit of ours, or that Git doesn't
// have what landed.
func landsAlike(ctx context.Context, m *git.Mirror, ours *git.CommitInfo, pr *forge.PullRequest) (bool, error) {
	landed, err := m.Commit(ctx, pr.MergeCommit)
	if errors.Is(err, git.ErrUnknownCommit) || err == nil && len(landed.Parents) == 0 {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	onto := landed.Parents[0]
	if landed.SHA == pr.Head { // the branch was moved forward to a head whose last parent is where it was
		onto = landed.Parents[len(landed.Parents)-1]
	}
	return changesTheSame(ctx, m, ours.Parents[0], ours.SHA, onto, landed.SHA)
}

// ungatedEvent tells of it.
func ungatedEvent(c *ComponentEvaluation, env string, u *UngatedMerge) store.Event {
	unit := c.Facts.Unit
	next := "its verification goes on"
	if e := c.Env(env); e != nil && e.Landed.Value.ModifiedPull == u.Pull {
		next = fmt.Sprintf("it isn't known to be what Liftlock composed, so %s is left alone until /liftlock promote %s", env, env)
	}
	return store.Event{At: c.Facts.Now, Repo: unit.Repo, Pipeline: unit.Pipeline, Component: unit.Component, Environment: env, Pull: u.Pull,
		Kind:    event.Ungated,
		Message: fmt.Sprintf("#%d was %s; %s", u.Pull, u, next), IdempotencyKey: eventKey(event.Ungated, unit, u.Pull)}
}

// ReadUngated says for people that a pull request was merged past its gates; "" where it wasn't.
func ReadUngated(ctx context.Context, r record.Reader, repo string, number int) (string, error) {
	u, found, err := UngatedMerges.Get(ctx, r, record.OfPull(repo, number))
	if err != nil || !found || u.By == "" {
		return "", err
	}
	return u.String(), nil
}

// listUngated lists the pull requests of a repository that were merged past their gates.
func listUngated(ctx context.Context, tx *store.Tx, repo string) (map[int]bool, error) {
	all, err := UngatedMerges.List(ctx, tx, record.Within{Repo: repo})
	known := make(map[int]bool, len(all))
	for i := range all {
		known[all[i].About.Number] = true
	}
	return known, err
}

// ForgetUngated forgets merges past the gates whose releases aren't in their environments any more,
// as people aren't told of them there again. A release that landed too little ago to be known as
// landed stays.
func ForgetUngated(ctx context.Context, tx *store.Tx, c *ComponentEvaluation) error {
	repo := c.Facts.Unit.Repo
	known, err := listUngated(ctx, tx, repo)
	if err != nil || len(known) == 0 {
		return err
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		var pulls []int
		for k := range env.History {
			pulls = append(pulls, env.History[k].Pull)
		}
		for k := range env.PastPulls { // what landed as a person's is in no arrival's
			if env.PastPulls[k].Merged {
				pulls = append(pulls, env.PastPulls[k].Number)
			}
		}
		slices.Sort(pulls)
		for _, pull := range slices.Compact(pulls) {
			inPlace := func(l *promotion.Landed) bool { return l.Pull == pull || l.ModifiedPull == pull }
			if !known[pull] || c.Evaluation.MayHaveLanded(env.Name, inPlace) {
				continue
			}
			if err := UngatedMerges.Drop(ctx, tx, record.OfPull(repo, pull)); err != nil {
				return err
			}
		}
	}
	return nil
}

// MayHaveLanded says that what some component of the unit has in an environment landed with
// something that is so, or that this can't be told.
func (ev *Evaluation) MayHaveLanded(env string, is func(*promotion.Landed) bool) bool {
	return slices.ContainsFunc(ev.Components, func(c *ComponentEvaluation) bool {
		e := c.Env(env)
		return e != nil && (!e.Landed.OK || is(&e.Landed.Value))
	})
}

// ForgetUngatedOf forgets what was merged past its gates of a component that is gone, but for
// what moved others too that are still there.
func ForgetUngatedOf(ctx context.Context, tx *store.Tx, u promotion.Unit) error {
	known, err := listUngated(ctx, tx, u.Repo)
	if err != nil || len(known) == 0 {
		return err
	}
	pulls := slices.Sorted(maps.Keys(known))
	for some := range slices.Chunk(pulls, maxKnownRecords) {
		rows, err := tx.Promotions(ctx, store.PromotionFilter{Repo: u.Repo, Pulls: some, Limit: maxKnownRecords})
		if err != nil {
			return err
		}
		others := map[int]bool{}
		for _, row := range rows {
			if row.Unit == wake.UnitName(u) {
				continue
			}
			if _, there, err := tx.Unit(ctx, row.Unit); err != nil {
				return err
			} else if there {
				others[row.Pull] = true
			}
		}
		for _, row := range rows {
			if row.Unit != wake.UnitName(u) || others[row.Pull] {
				continue
			}
			if err := UngatedMerges.Drop(ctx, tx, record.OfPull(u.Repo, row.Pull)); err != nil {
				return err
			}
		}
	}
	return nil
}
