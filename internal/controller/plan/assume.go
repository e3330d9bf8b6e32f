package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxPast bounds the releases of an environment's past.
const maxPast = 50

// assumptions is what a plan takes for granted.
var assumptions = []string{
	"every release is healthy where it is",
	"no pull request of Liftlock's is open, and none was closed by a person",
	"commits with Liftlock's trailers are Liftlock's",
}

// assume puts into a component's facts what Git can't tell: that everything that
// is or was somewhere is healthy there, and who brought it, where a commit says so
// and the forge isn't asked. What a pipeline would open is asked, also of one that
// opens nothing.
func (m *planner) assume(ctx context.Context, c *facts.ComponentEvaluation) error {
	acting := *c.Pipeline.Pipeline
	acting.Spec.Mode = pipeline.ModeAct
	c.Facts.Pipeline = &acting
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for k := range env.Targets {
			env.Targets[k].Verdict = verification.Verdict{State: verification.Verified, Reason: "taken as healthy"}
		}
		if env.Tip == "" && c.Unit.Envs[env.Name] != nil {
			env.Release = promotion.Unsure[promotion.Release](fmt.Sprintf("there is no branch %s here, which the pipeline says this environment lives on: fetch it (git fetch origin), create it, or correct the environment's branch", env.Branch))
		}
	}
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		if !env.Release.OK || !env.Landed.OK {
			// What it carried before it became unreadable may still move onward.
			if env.Tip != "" && c.Unit.Envs[env.Name] != nil {
				past, err := m.findPast(ctx, c, env)
				if err != nil {
					return err
				}
				env.History = past
			}
			continue
		}
		l := &env.Landed.Value
		if l.Commit != "" {
			commit, err := m.input.Mirror.Commit(ctx, l.Commit)
			if err != nil {
				return err
			}
			by, err := m.findBringer(ctx, c.Facts.Unit, env.Name, *commit, env.Release.Value.ID)
			if err != nil {
				return err
			}
			if by != promotion.ByPerson {
				l.By, l.Author = by, ""
			}
		}
		now := promotion.Arrival{Seq: m.order[l.Commit], Release: env.Release.Value.ID, Name: env.Release.Value.Name, Commit: l.Commit, By: l.By, At: l.At, VerifiedAt: l.At}
		if now.VerifiedAt.IsZero() {
			now.VerifiedAt = m.input.Now
		}
		env.History = []promotion.Arrival{now}
		// What a person put between stays where it is; what was promoted before moves.
		if changed := l.By == promotion.ByPerson && !env.Source(); changed || wantsPast(c.Facts.Envs, env.Name) {
			past, err := m.findPast(ctx, c, env)
			if err != nil {
				return err
			}
			env.History = append(env.History, past...)
		}
	}
	return nil
}

// findBringer takes a commit's trailers, or those of the branch that it merges, at
// their word where they name this environment of the unit and, for a promotion,
// this release.
func (m *planner) findBringer(ctx context.Context, u promotion.Unit, env string, c git.CommitInfo, release string) (string, error) {
	kind := kindByTrailers(c.Trailers, u, env, release)
	if kind == "" && len(c.Parents) > 1 {
		merged, err := m.input.Mirror.Commit(ctx, c.Parents[1])
		if err != nil {
			return "", err
		}
		kind = kindByTrailers(merged.Trailers, u, env, release)
	}
	switch kind {
	case promotion.KindPromotion:
		return promotion.ByPromotion, nil
	case promotion.KindRevert:
		return promotion.ByRevert, nil
	}
	return promotion.ByPerson, nil
}

// kindByTrailers is the kind of commit that trailers say it is, where they are about
// this environment and, for a promotion, this release.
func kindByTrailers(t map[string]string, u promotion.Unit, env, release string) string {
	named, kind := promotion.ReleaseFromTrailers(t, u, env), t[promotion.TrailerKind]
	if named == "" || kind == promotion.KindPromotion && !promotion.SameRelease(release, named) {
		return ""
	}
	return kind
}

// wantsPast says whether what an environment carried earlier may still move: where
// several environments must agree on a release, or the newest was reverted
// further on.
func wantsPast(envs []promotion.Env, name string) bool {
	for i := range envs {
		e := &envs[i]
		if len(e.RevertedReleases) > 0 {
			return true
		}
		if len(e.Spec.After) < 2 || !slices.Contains(e.Spec.After, name) {
			continue
		}
		first := ""
		for k := range envs {
			if id := envs[k].Release.Value.ID; slices.Contains(e.Spec.After, envs[k].Name) {
				if first = cmp.Or(first, id); id != first {
					return true
				}
			}
		}
	}
	return false
}

// findPast are the releases that an environment had since the baseline, but the
// one that is there now, newest first.
func (m *planner) findPast(ctx context.Context, c *facts.ComponentEvaluation, env *promotion.Env) ([]promotion.Arrival, error) {
	over := c.Unit.Envs[env.Name].Overlay(c.Pipeline.Pipeline)
	scope, err := fieldedit.NewScope(over)
	if err != nil {
		return nil, err
	}
	log, err := m.input.Mirror.Log(ctx, git.LogQuery{From: env.Tip, Until: c.Pipeline.Baseline, FirstParent: true, Paths: scope.Paths()})
	if err != nil {
		return nil, err
	}
	var out []promotion.Arrival
	for _, commit := range log {
		if len(out) == maxPast || len(commit.Parents) == 0 || commit.SHA == env.Landed.Value.Commit {
			continue
		}
		rel, err := fieldedit.Read(m.input.Mirror.Tree(commit.SHA), over)
		if err != nil || rel.Empty() {
			continue
		}
		if before, err := fieldedit.Read(m.input.Mirror.Tree(commit.Parents[0]), over); err == nil && before.ID() == rel.ID() {
			continue
		}
		by, err := m.findBringer(ctx, c.Facts.Unit, env.Name, commit, rel.ID())
		if err != nil {
			return nil, err
		}
		known := c.RememberRelease(rel)
		out = append(out, promotion.Arrival{Seq: m.order[commit.SHA], Release: known.ID, Name: known.Name, Commit: commit.SHA, By: by, At: commit.CommitTime, VerifiedAt: commit.CommitTime})
	}
	return out, nil
}
