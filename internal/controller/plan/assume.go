package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	maxPast   = 50 // releases of an environment's past
	maxMerges = 20 // that a branch was brought up to date by
)

// assumptions is what a plan takes for granted.
var assumptions = []string{
	"every release is healthy where it is",
	"no pull request of Liftlock's is open, and none was closed by a person",
	"commits with Liftlock's trailers are Liftlock's",
}

// assume puts facts that Git can't tell into a component's facts. Every release is healthy where it
// is or was. Where the forge isn't asked, a commit says who brought a release, if it does. A plan
// evaluates a pipeline that opens nothing as one that does.
func (pl *planner) assume(ctx context.Context, c *facts.ComponentEvaluation) error {
	acting := *c.Pipeline.Pipeline
	acting.Spec.Mode = pipeline.ModeAct
	c.Facts.Pipeline = &acting
	past := wantsPast(c.Facts.Envs)
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for k := range env.Targets {
			env.Targets[k].Verdict = verification.Verdict{State: verification.Verified, Reason: "taken as healthy"}
		}
		switch {
		case c.Unit.Envs[env.Name] == nil:
			continue
		case env.Tip == "":
			env.Release = promotion.Unsure[promotion.Release](fmt.Sprintf("there is no branch %s here, which the pipeline says this "+
				"environment lives on: fetch it (git fetch origin), create it, or correct the environment's branch", env.Branch))
			continue
		}
		if err := pl.assumeHistory(ctx, c, env, past); err != nil {
			return err
		}
	}
	return nil
}

// assumeHistory fills in what an environment carries, and, where that may still move, what it
// carried before. A release from before the pipeline has no history, but for that it is there,
// where adopt: converge lets it move.
func (pl *planner) assumeHistory(ctx context.Context, c *facts.ComponentEvaluation, env *promotion.Env, past bool) error {
	env.History = nil
	readable, l := env.Release.OK && env.Landed.OK, &env.Landed.Value
	isBaseline := readable && l.Commit == "" && l.By == promotion.ByBaseline
	if isBaseline && env.Source() && c.Pipeline.Spec.Adopt == pipeline.AdoptConverge {
		env.History = []promotion.Arrival{{Seq: 1, Release: env.Release.Value.ID, Name: env.Release.Value.Name, By: l.By, At: c.Facts.Now,
			VerifiedAt: c.Facts.Now}}
	}
	if readable && l.Commit != "" {
		commit, err := pl.input.Mirror.Commit(ctx, l.Commit)
		if err != nil {
			return err
		}
		now, err := pl.arrival(ctx, c, env, *commit, env.Release.Value)
		if err != nil {
			return err
		}
		if now.By == promotion.ByPerson {
			now.By = l.By // or it was there before the pipeline
		} else {
			l.By, l.Author = now.By, ""
		}
		env.History = append(env.History, now)
	}
	// A person's own release between stays where it is, and so does one that can't be read; one
	// that was promoted before moves.
	if readable && !past && (l.By != promotion.ByPerson || env.Source()) {
		return nil
	}
	earlier, err := pl.gatherer.History.FindPast(ctx, &c.ComponentBasis, env, maxPast)
	if err != nil {
		return err
	}
	for _, p := range earlier {
		was, err := pl.arrival(ctx, c, env, p.Commit, p.Release)
		if err != nil {
			return err
		}
		env.History = append(env.History, was)
	}
	return nil
}

// arrival is a release that a commit brought into an environment. It is a promotion or a revert
// where its trailers say so, or those of the branch that it merges.
func (pl *planner) arrival(ctx context.Context, c *facts.ComponentEvaluation, env *promotion.Env, commit git.CommitInfo,
	release promotion.Release) (promotion.Arrival, error) {
	out := promotion.Arrival{Seq: pl.order[commit.SHA], Release: release.ID, Name: release.Name, Commit: commit.SHA, By: promotion.ByPerson,
		At: commit.CommitTime, VerifiedAt: commit.CommitTime}
	next := 1 // of a merge's parents the branch that it merges
	for range maxMerges {
		t := commit.Trailers
		switch named := promotion.ReleaseFromTrailers(t, c.Facts.Unit, env.Name); {
		case named != "" && t[promotion.TrailerKind] == promotion.KindRevert:
			out.By = promotion.ByRevert
			return out, nil
		case t[promotion.TrailerKind] == promotion.KindPromotion && promotion.SameRelease(release.ID, named):
			out.By = promotion.ByPromotion
			return out, nil
		case len(commit.Parents) < 2:
			return out, nil
		}
		below, err := pl.input.Mirror.Commit(ctx, commit.Parents[next])
		if err != nil {
			return out, err
		}
		commit, next = *below, 0 // there the first: the forge's button brings a branch up to date by a merge into it
	}
	return out, nil
}

// wantsPast says whether what environments carried earlier may still move: where
// several must agree on a release and don't, or the newest was reverted further on.
func wantsPast(envs []promotion.Env) bool {
	release := map[string]string{}
	for i := range envs {
		release[envs[i].Name] = envs[i].Release.Value.ID
	}
	return slices.ContainsFunc(envs, func(e promotion.Env) bool {
		return len(e.RevertedReleases) > 0 ||
			slices.ContainsFunc(e.Spec.After, func(name string) bool { return release[name] != release[e.Spec.After[0]] })
	})
}
