package console

import (
	"context"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// addEvidence fills in why a revert was opened.
func (r *reader) addEvidence(ctx context.Context, row store.Promotion, d *api.PromotionDetail) error {
	if row.Kind != promotion.KindRevert || row.Pull == 0 {
		return nil
	}
	e, err := r.readEvidence(ctx, row.Repo, row.Pull)
	if err != nil {
		return err
	}
	d.Evidence, d.By, d.Reason = promotion.DescribeAll(e.Evidence), e.By, e.Reason
	d.Records = r.buildEvidence(row.Repo, e.Evidence)
	return nil
}

// addRevertedEvidence fills in why a promotion was taken back.
func (r *reader) addRevertedEvidence(ctx context.Context, row store.Promotion, d *api.PromotionDetail) error {
	if d.RevertedBy == nil || d.RevertedBy.Pull == nil {
		return nil
	}
	e, err := r.readEvidence(ctx, row.Repo, d.RevertedBy.Pull.Number)
	if err != nil {
		return err
	}
	d.Records = r.buildEvidence(row.Repo, e.Evidence)
	return nil
}

// readEvidence reads why a revert was opened; nothing where there is no record.
func (r *reader) readEvidence(ctx context.Context, repo string, pull int) (stored.RevertReason, error) {
	reason, _, err := stored.RevertReasons.Get(ctx, r.store, record.OfPull(repo, pull))
	return reason, err
}

// buildEvidence makes the API's shape of records.
func (r *reader) buildEvidence(repo string, all []promotion.Evidence) []api.Evidence {
	var out []api.Evidence
	for i := range all {
		x := &all[i]
		e := api.Evidence{Component: x.Component, Environment: x.Environment, Pull: r.buildPull(repo, x.Pull), Commit: x.Commit,
			Release: x.Release, Name: x.Name,
			Targets: make([]api.TargetEvidence, 0, len(x.Targets)), MoreTargets: x.MoreTargets, AllTargets: x.AllTargets,
			Confidence: string(x.Confidence)}
		for k := range x.Targets {
			e.Targets = append(e.Targets, buildTargetEvidence(&x.Targets[k]))
		}
		for _, k := range x.RuledOut {
			e.RuledOut = append(e.RuledOut, api.RuledOut(k))
		}
		if x.Held != nil {
			held := api.Reason(*x.Held)
			e.Held = &held
		}
		out = append(out, e)
	}
	return out
}

func buildTargetEvidence(t *promotion.TargetEvidence) api.TargetEvidence {
	out := api.TargetEvidence{Target: t.Target, ArgoCD: t.ArgoCD, Cluster: t.Cluster, Reason: t.Reason, Since: t.Since,
		ResourcesUnknown: t.ResourcesUnknown, OtherCommits: t.OtherCommits}
	if t.Operation != nil {
		op := api.Operation(*t.Operation)
		out.Operation = &op
	}
	for i := range t.Resources {
		k := &t.Resources[i]
		res := api.ResourceEvidence{Group: k.Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Health: k.Health,
			Message: k.Message, ChangedByPromotion: k.ChangedByPromotion}
		for _, d := range k.Children {
			res.Children = append(res.Children, api.Descendant{Kind: d.Kind, Name: d.Name, Health: d.Health, Reason: d.Reason,
				Message: d.Message})
		}
		out.Resources = append(out.Resources, res)
	}
	for _, o := range t.OtherTargets {
		out.OtherTargets = append(out.OtherTargets, api.OtherTarget(o))
	}
	for _, m := range t.Timeline {
		out.Timeline = append(out.Timeline, api.StateChange{At: m.At, State: string(m.State), Note: m.Note})
	}
	return out
}

// findHeldEvidence is what a degradation that is left to people was judged by; nil where
// there is none, or no record.
func findHeldEvidence(u *shownUnit, environment string) *promotion.Evidence {
	if u == nil {
		return nil
	}
	for i := range u.record.Decision.Envs {
		if s := &u.record.Decision.Envs[i]; s.Environment == environment {
			return s.Evidence
		}
	}
	return nil
}
