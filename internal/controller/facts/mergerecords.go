package facts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Merging is by what a merge of a component's is judged that is about to be made: a process may die
// between the forge's merge and its record.
var Merging = record.Declare[record.InUnit, promotion.MergeRecord](record.Declaration{
	Name: "merging", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "What a merge that is about to be made was judged by, by the pull request's number.",
})

// OfMerge is a pull request's merge of a component, for Merging.
func OfMerge(u promotion.Unit, pull int) record.InUnit {
	return record.InUnit{Unit: record.Unit(u), Name: strconv.Itoa(pull)}
}

// MergeAudit is a merge's entry of the audit trail. However often it is found, it is written
// once.
func MergeAudit(c *ComponentEvaluation, env string, pull int, by, via string, r *promotion.MergeRecord) (store.Audit, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return store.Audit{}, fmt.Errorf("write down by what #%d was judged: %w", pull, err)
	}
	unit := wake.UnitName(c.Facts.Unit)
	return store.Audit{At: c.Facts.Now, Actor: by, Via: via, Verb: promotion.AuditMerge, Subject: fmt.Sprintf("%s #%d %s", unit, pull,
		promotion.AuditMerge), Environment: env,
		Reason: r.Describe(), Outcome: r.Outcome(), Source: fmt.Sprintf("merge|%s|%d", unit, pull), Data: raw}, nil
}

// withMerger is a merged pull request with who merged it: a list doesn't say that.
func (rg *recordGatherer) withMerger(ctx context.Context, c *ComponentEvaluation, pr *forge.PullRequest) (*forge.PullRequest, error) {
	if pr.MergedBy != "" {
		return pr, nil
	}
	return rg.pulls.RefreshPullRequest(ctx, c.Snapshot.Repo, pr.Number)
}

// findMerge is the entry of the audit trail for a merge that was just seen and isn't on record. It
// has our judgement before the process that merged died or, for a person's merge, the gates of the
// component's last evaluation.
func (rg *recordGatherer) findMerge(ctx context.Context, c *ComponentEvaluation, env string, pr *forge.PullRequest,
	row store.Promotion) (store.Audit, error) {
	found := promotion.MergeRecord{Kind: row.Kind, Release: row.Release, Head: pr.Head, Commit: pr.MergeCommit}
	by, via := pr.MergedBy, promotion.AuditViaForge
	if c.Snapshot.Repo.HasMerged(pr) {
		via = promotion.AuditViaServer
	}
	own, ok, err := Merging.Get(ctx, rg.store, OfMerge(c.Facts.Unit, pr.Number))
	if err != nil {
		return store.Audit{}, err
	}
	switch {
	case via == promotion.AuditViaServer && ok && own.Head == found.Head:
		own.Commit = found.Commit
		found = own
	case via == promotion.AuditViaForge:
		if err := rg.addLastSeen(ctx, c, env, pr.Number, &found); err != nil {
			return store.Audit{}, err
		}
	}
	return MergeAudit(c, env, pr.Number, cmp.Or(by, "somebody"), via, &found)
}

// addLastSeen fills in the state of the gates at the component's last evaluation.
func (rg *recordGatherer) addLastSeen(ctx context.Context, c *ComponentEvaluation, env string, pull int, r *promotion.MergeRecord) error {
	row, ok, err := rg.store.Unit(ctx, wake.UnitName(c.Facts.Unit))
	var v stored.Unit
	if err != nil || !ok || json.Unmarshal(row.Data, &v) != nil {
		return err
	}
	i := slices.IndexFunc(v.Decision.Envs, func(st promotion.EnvState) bool {
		return st.Environment == env && (st.Pull == pull || st.Revert == pull)
	})
	if i < 0 {
		return nil
	}
	r.JudgedAt, r.Gates = v.At, v.Decision.Envs[i].Gates
	if v.Decision.Envs[i].Revert == pull {
		r.Gates = v.Decision.Envs[i].RevertGates
	}
	return nil
}
