package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// maxDiffBytes bounds the objects of one answer, as JSON or as text.
const maxDiffBytes = 2 << 20

// renderDiff renders what a promotion's pull request changes, for the console.
func (s *Server) renderDiff(ctx context.Context, p store.Promotion) (*api.RenderedDiff, error) {
	e := s.runningEngine()
	if e == nil {
		return nil, console.ErrNotReady
	}
	d, err := e.Difference(ctx, promotion.Unit{Repo: p.Repo, Pipeline: p.Pipeline, Component: p.Component}, p.Environment, p.Pull)
	var none *effects.NoDifferenceError
	if errors.As(err, &none) {
		return nil, &console.Refusal{Reason: none.Why}
	}
	if err != nil {
		return nil, err
	}
	out := &api.RenderedDiff{Before: d.Before, After: d.After, Landed: d.Landed, Files: d.Files, Problems: d.Problems, Pending: d.Pending,
		Targets: []api.TargetsDiff{}}
	return out, addEffects(out, d.Effects, maxDiffBytes)
}

// addEffects adds what happens to targets: those to which the same happens are
// one entry. Objects past so many bytes are counted.
func addEffects(out *api.RenderedDiff, effects []isolation.Effect, most int) error {
	at := map[[sha256.Size]byte]int{}
	for i := range effects {
		f := &effects[i]
		raw, err := json.Marshal([]any{f.Spec, f.Why, f.Changes})
		if err != nil {
			return fmt.Errorf("write down what changes for %s: %w", f.Target.Name, err)
		}
		key := sha256.Sum256(raw)
		if k, known := at[key]; known {
			out.Targets[k].Names = append(out.Targets[k].Names, f.Target.Name)
			continue
		}
		at[key] = len(out.Targets)
		t := api.TargetsDiff{Names: []string{f.Target.Name}, Spec: f.Spec, Why: f.Why}
		if !f.Changes.Empty() {
			t.Summary = f.Changes.Summary()
			for _, c := range f.Changes.Objects {
				o, size, err := objectDiff(c)
				if err != nil {
					return err
				}
				if most -= size; most < 0 {
					out.LeftOut++
					continue
				}
				t.Objects = append(t.Objects, o)
			}
			for _, n := range f.Changes.LeftOut {
				out.LeftOut += n
			}
		}
		out.Targets = append(out.Targets, t)
	}
	return nil
}

// objectDiff is a change as the API has it, with its size there.
func objectDiff(c render.Change) (o api.ObjectDiff, size int, err error) {
	raw, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		return o, 0, fmt.Errorf("write down what changes of %s %s: %w", c.Kind, c.Name, err)
	}
	o.Text = (&render.Changes{Objects: []render.Change{c}}).Text(render.TextLimit{Bytes: maxDiffBytes})
	return o, max(len(raw), len(o.Text)), nil
}
