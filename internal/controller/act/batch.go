package act

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
)

// newTextInput starts what a pull request's texts are made from.
func (a *Actor) newTextInput(_ context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, env string, revert bool) prtext.Input {
	in := prtext.Input{Batch: len(c.Members) > 0, Actions: d.Actions, Environment: env, Revert: revert,
		ConsoleURL: a.consoleURL(c), BareCommands: c.Facts.Pipeline.Spec.Commands == "bare", Now: c.Facts.Now}
	for _, m := range c.Members {
		p := m.Member
		if p.Name == "" {
			p.Name = m.Evaluation.ReleaseContents[p.Release].String()
		}
		in.Members = append(in.Members, prtext.Member{Member: p, Facts: &m.Evaluation.Facts, Decision: m.Decision})
	}
	if !in.Batch {
		in.Members = []prtext.Member{{Member: promotion.Member{Component: c.Facts.Unit.Component}, Facts: &c.Facts, Decision: d}}
	}
	return in
}

// memberNames is what people call what a case moves together.
func memberNames(c *facts.Evaluation) string {
	var names []string
	for _, m := range c.Members {
		p := m.Member
		if p.Name == "" {
			p.Name = m.Evaluation.ReleaseContents[p.Release].String()
		}
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// PresentBatch writes on the pull requests of several components what the
// decision says of them, as Present does on a component's own.
func (a *Actor) PresentBatch(ctx context.Context, b *facts.BatchEvaluation, d *promotion.Decision) error {
	for _, env := range b.Environments() {
		open, reverts := b.OpenPulls(env)
		if open != nil {
			c, joined := b.SharedEvaluation(d, env, open.Number, open.Members)
			if err := a.presentOpen(ctx, c, joined, findEnv(c, env), findEnv(c, env).Open, false); err != nil {
				return err
			}
		}
		for _, u := range reverts {
			c, joined := b.SharedEvaluation(d, env, u.Number, u.Members)
			if err := a.presentOpen(ctx, c, joined, findEnv(c, env), findEnv(c, env).Revert, true); err != nil {
				return err
			}
		}
		if err := a.presentBatchLanded(ctx, b, d, env); err != nil {
			return err
		}
	}
	return nil
}

// presentBatchLanded keeps the comments of the merged pull requests of several up to
// date while anything that they brought is there and looked after.
func (a *Actor) presentBatchLanded(ctx context.Context, b *facts.BatchEvaluation, d *promotion.Decision, env string) error {
	landed := map[int]*promotion.Landed{}
	looked := map[int]bool{}
	for i, c := range b.Evaluations {
		e, st := findEnv(c, env), d.Components[i].Env(env)
		if l := &e.Landed.Value; e.Landed.OK && l.Pull != 0 && len(l.Members) > 0 && st != nil {
			landed[l.Pull] = l
			looked[l.Pull] = looked[l.Pull] || st.State != promotion.Idle
		}
	}
	for _, n := range slices.Sorted(maps.Keys(landed)) {
		if !looked[n] {
			continue
		}
		l := landed[n]
		c, joined := b.SharedEvaluation(d, env, n, l.Members)
		in := a.newTextInput(ctx, c, joined, env, l.By == promotion.ByRevert)
		in.Number, in.Release, in.Name = n, promotion.BatchID(l.Members), memberNames(c)
		if err := a.putComment(ctx, c.Snapshot.Repo, n, prtext.LandedComment(in)); err != nil {
			return err
		}
		if l.By != promotion.ByRevert {
			continue
		}
		if of := b.RevertedBy(env, n); of != 0 {
			in.Revert, in.Number, in.RevertedPull = false, of, n
			if err := a.putComment(ctx, c.Snapshot.Repo, of, prtext.RevertedComment(in)); err != nil {
				return err
			}
		}
	}
	return nil
}
