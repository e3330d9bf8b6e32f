package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// moved is a component whose release differs between two commits. Either is ""
// where the environment's overlays hold none or can't be read.
type moved struct{ component, before, after string }

// maxMoves bounds the memory of what commits moved; past it, it starts anew.
const maxMoves = 10_000

// moved lists the components of an environment whose releases differ between two
// commits, sorted by name. That is a fact of Git: the passengers of a pull
// request are found again from its commit alone.
func (o *Observer) moved(ctx context.Context, r *Repository, p *PipelineAt, env, from, to string) ([]moved, error) {
	key := strings.Join([]string{r.ID, p.Name(), env, from, to, p.movedKey()}, "|")
	o.mu.Lock()
	known, ok := o.moves[key]
	o.mu.Unlock()
	if ok {
		return known, nil
	}
	paths, err := changedPaths(ctx, r.Mirror, from, to)
	if err != nil {
		return nil, err
	}
	var out []moved
	for _, component := range slices.Sorted(maps.Keys(p.Units)) {
		at := p.Units[component].Envs[env]
		if at == nil {
			continue
		}
		if scope, err := fieldedit.NewScope(at.Overlay(p.Pipeline)); err != nil || !slices.ContainsFunc(paths, scope.Covers) {
			continue // what can't be understood moves nothing
		}
		m := moved{component: component, before: o.idAt(r, from, p, at), after: o.idAt(r, to, p, at)}
		if m.before != m.after {
			out = append(out, m)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.moves) >= maxMoves {
		clear(o.moves)
	}
	o.moves[key] = out
	return out, nil
}

// movedBy is what the components that a commit moves depend on besides the commit.
func (p *PipelineAt) movedBy() string {
	h := sha256.New()
	for _, component := range slices.Sorted(maps.Keys(p.Units)) {
		envs := p.Units[component].Envs
		for _, env := range slices.Sorted(maps.Keys(envs)) {
			fmt.Fprintln(h, component, env, p.place(envs[env]).key)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// passengersOf are the components that a commit brought to an environment, with
// the releases that they have with it; of a revert, with those that it took back.
func (o *Observer) passengersOf(ctx context.Context, r *Repository, p *PipelineAt, env, from, to string, revert bool) ([]promotion.Member, error) {
	list, err := o.moved(ctx, r, p, env, from, to)
	if err != nil {
		return nil, err
	}
	var out []promotion.Member
	for _, m := range list {
		release := m.after
		if revert {
			release = m.before
		}
		if release != "" {
			out = append(out, promotion.Member{Component: m.component, Release: release})
		}
	}
	return out, nil
}
