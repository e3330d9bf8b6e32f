package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// UngatedMerge is a promotion that a person merged although it waited when it was last
// looked at.
type UngatedMerge struct {
	Pull  int      `json:"pull"`
	By    string   `json:"by"`
	Gates []string `json:"gates"` // that it waited for
}

// String is for people: by whom, and past what.
func (u UngatedMerge) String() string {
	return fmt.Sprintf("merged by %s without gates: %s", u.By, strings.Join(u.Gates, ", "))
}

// UngatedKey is the store's key of a pull request that was merged past its gates.
func UngatedKey(repo string, number int) string { return fmt.Sprintf("ungated|%s|%d", repo, number) }

// ownConditions are Liftlock's own that a person goes past, beside the pipeline's gates.
// The others say what the forge, or the next look, is about to change.
var ownConditions = []string{"hold", "one-environment", "pipeline-file", "diverged", "upstream", "reverting", "storm"}

// findUngated says what a promotion of ours that was just seen to be merged waited for
// when the component was last looked at; nil where it was we who merged it, where nothing
// waited, and where nobody looked.
func (o *recordGatherer) findUngated(ctx context.Context, c *ComponentEvaluation, env string, pr *forge.PullRequest) (*UngatedMerge, error) {
	row, ok, err := o.store.Unit(ctx, wake.UnitName(c.Facts.Unit))
	var v UnitView
	if err != nil || !ok || json.Unmarshal(row.Data, &v) != nil {
		return nil, err
	}
	i := slices.IndexFunc(v.Decision.Envs, func(st promotion.EnvState) bool { return st.Environment == env && st.Pull == pr.Number })
	if i < 0 {
		return nil, nil
	}
	var gates []string
	for _, g := range v.Decision.Envs[i].Gates {
		if g.Outcome != policies.Pass && !slices.Contains(gates, g.Gate) && (slices.Contains(ownConditions, g.Gate) || slices.Contains(policies.Kinds(), g.Gate)) {
			gates = append(gates, g.Gate)
		}
	}
	if len(gates) == 0 {
		return nil, nil
	}
	if pr.MergedBy == "" { // a list doesn't say who merged
		if pr, err = o.pulls.RefreshPullRequest(ctx, c.Snapshot.Repo, pr.Number); err != nil {
			return nil, err
		}
	}
	if pr.State != forge.Merged || pr.MergedBy == "" || c.Snapshot.Repo.IsOurs(pr.MergedBy, pr.MergedByID) {
		return nil, nil
	}
	return &UngatedMerge{Pull: pr.Number, By: pr.MergedBy, Gates: gates}, nil
}

// ungatedEvent tells of it.
func ungatedEvent(c *ComponentEvaluation, env string, u *UngatedMerge) store.Event {
	unit := c.Facts.Unit
	return store.Event{At: c.Facts.Now, Repo: unit.Repo, Pipeline: unit.Pipeline, Component: unit.Component, Environment: env, Pull: u.Pull, Kind: "ungated",
		Message: fmt.Sprintf("#%d was %s; its verification goes on", u.Pull, u), IdempotencyKey: eventKey("ungated", unit, u.Pull)}
}

// Value is how the store keeps it.
func (u UngatedMerge) Value() ([]byte, error) { return json.Marshal(u) }

// ParseUngated reads what the store keeps; "" where that is nothing.
func ParseUngated(raw []byte) string {
	var u UngatedMerge
	if json.Unmarshal(raw, &u) != nil || u.By == "" {
		return ""
	}
	return u.String()
}
