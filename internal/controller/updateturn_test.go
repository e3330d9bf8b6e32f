package controller

import (
	"errors"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/faulttest"
	"github.com/liftlock/liftlock/policies"
)

// TestTurnsAreReleased holds that every pull request whose turn came to nothing gives it back, and
// nobody else, and that a turn which can't be given back is said.
func TestTurnsAreReleased(t *testing.T) {
	w := newFixture(t, "", autoQA, "web")
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	ev := &facts.Evaluation{Basis: branch.Basis{Snapshot: s}, OpenPulls: map[int]*facts.OpenPull{}}
	d := &promotion.Decision{Components: []promotion.ComponentDecision{{}}}
	branches := map[int]string{1: "main", 2: "release", 3: "next", 4: "old"}
	for number, base := range branches {
		w.must(w.opts.Gatherer.PullCache.TakeUpdateTurn(t.Context(), w.opts.Store, w.repo.Repository, base, number))
		p := &facts.OpenPull{PR: &forge.PullRequest{Number: number, Base: base}}
		p.HasTurn = number != 4
		ev.OpenPulls[number] = p
		outcome := policies.Pass
		if number < 3 {
			outcome = policies.Wait
		}
		st := promotion.EnvState{Pull: number, Gates: []policies.Result{{Gate: promotion.GateMergeable, Outcome: policies.Wait}, {Gate: "approvals", Outcome: outcome}}}
		d.Components[0].Envs = append(d.Components[0].Envs, st)
	}
	w.injected.Deep, w.injected.At = true, len(w.injected.Calls)+1
	if err := w.releaseUpdateTurns(t.Context(), ev, d); !errors.Is(err, faulttest.ErrInjected) {
		t.Errorf("while the store is away it ended with %v", err)
	}
	w.injected.Deep = false
	w.must(w.releaseUpdateTurns(t.Context(), ev, d))
	for number, base := range branches {
		_, has, err := w.opts.Store.Record(t.Context(), store.RecordKey{Kind: "update-turn", Repo: w.repo.ID, Name: base})
		if w.must(err); has != (number >= 3) {
			t.Errorf("#%d has its turn: %t", number, has)
		}
	}
}
