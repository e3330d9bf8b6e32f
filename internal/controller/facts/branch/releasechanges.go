package branch

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

// releaseChange is a component whose release differs between two commits. Either is ""
// where the environment's overlays hold none or can't be read.
type releaseChange struct{ Component, before, after string }

// FindReleaseChanges lists the components of an environment whose releases differ between two
// commits, sorted by name. That is a fact of Git: the members of a pull
// request are found again from its commit alone.
func (g *GitGatherer) FindReleaseChanges(ctx context.Context, r *Repository, p *ResolvedPipeline, env, from,
	to string) ([]releaseChange, error) {
	key := strings.Join([]string{r.ID, p.Name(), env, from, to, p.OverlaysKey()}, "|")
	if known, ok := g.ReleaseChanges.Get(key); ok {
		return known, nil
	}
	paths, err := ChangedPaths(ctx, r.Mirror, from, to)
	if err != nil {
		return nil, err
	}
	var out []releaseChange
	for _, component := range slices.Sorted(maps.Keys(p.Units)) {
		at := p.Units[component].Envs[env]
		if at == nil {
			continue
		}
		if scope, err := fieldedit.NewScope(at.Overlay(p.Pipeline)); err != nil || !slices.ContainsFunc(paths, scope.Covers) {
			continue // what can't be understood moves nothing
		}
		m := releaseChange{Component: component, before: g.Releases.ReleaseIDAt(r, from, p, at),
			after: g.Releases.ReleaseIDAt(r, to, p, at)}
		if m.before != m.after {
			out = append(out, m)
		}
	}
	g.ReleaseChanges.Put(key, out)
	return out, nil
}

// hashOverlays is what the components that a commit moves depend on besides the commit.
func (r *ResolvedPipeline) hashOverlays() string {
	h := sha256.New()
	for _, component := range slices.Sorted(maps.Keys(r.Units)) {
		envs := r.Units[component].Envs
		for _, env := range slices.Sorted(maps.Keys(envs)) {
			fmt.Fprintln(h, component, env, r.LocationOf(envs[env]).Key)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ChangedMembers are the components that a commit brought to an environment, with
// the releases that they have with it; of a revert, with those that it removed.
func (g *GitGatherer) ChangedMembers(ctx context.Context, r *Repository, p *ResolvedPipeline, env, from, to string,
	revert bool) ([]promotion.Member, error) {
	list, err := g.FindReleaseChanges(ctx, r, p, env, from, to)
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
			out = append(out, promotion.Member{Component: m.Component, Release: release})
		}
	}
	return out, nil
}
