package branch

import (
	"context"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// EarlierQuery asks what was in an environment before it had a release at a commit, back to another one.
type EarlierQuery struct{ From, Release, Since string }

// ReadEarlier reads what was in an environment before a release, newest first, from the last
// changes of its files. Their authors aren't looked up: they count as promoted.
func (g *GitGatherer) ReadEarlier(ctx context.Context, c *ComponentBasis, env *promotion.Env,
	q EarlierQuery) ([]promotion.Arrival, error) {
	r, at := c.Snapshot.Repo, c.Unit.Envs[env.Name]
	loc := c.Pipeline.LocationOf(at)
	if loc.err != nil {
		return nil, loc.err
	}
	log, err := g.listEarlier(ctx, c, env, loc.scope, q)
	if err != nil {
		return nil, err
	}
	var out []promotion.Arrival
	last := q.Release
	for _, commit := range log {
		if len(commit.Parents) == 0 {
			break
		}
		was := g.Releases.readOverlay(r, commit.Parents[0], c.Pipeline, at)
		if !was.isStable() {
			return nil, was.Err
		}
		if was.Err != nil || was.Release.Empty() || was.Id == last {
			continue
		}
		if len(out) > 0 {
			out[len(out)-1].Commit, out[len(out)-1].At = commit.SHA, commit.CommitTime
		}
		known := c.RememberRelease(was.Release)
		last = known.ID
		out = append(out, promotion.Arrival{Release: known.ID, Name: known.Name, Commit: commit.Parents[0], By: promotion.ByPromotion,
			At: commit.CommitTime})
	}
	return out, ctx.Err()
}

// listEarlier lists the commits that touched an environment's files, newest first, at most OriginDepth. Back to the
// pipeline's baseline they are those of an index, as then every component wants the same line: where nothing is on
// record, git would be run once for each environment of all of them.
func (g *GitGatherer) listEarlier(ctx context.Context, c *ComponentBasis, env *promotion.Env, scope fieldedit.Scope,
	q EarlierQuery) ([]git.CommitInfo, error) {
	r := c.Snapshot.Repo
	if q.Since == c.Pipeline.Baseline {
		line, err := g.indexedLine(ctx, r, env.Tip, q.Since)
		if err != nil {
			return nil, err
		}
		log, ok := line.since(line.touching(scope), q.From)
		if ok && (line.isWhole || len(log) >= OriginDepth) {
			return log[:min(len(log), OriginDepth)], nil
		}
	}
	return r.Mirror.Log(ctx, git.LogQuery{From: q.From, Until: q.Since, FirstParent: true, Paths: scope.Paths(), Limit: OriginDepth})
}
