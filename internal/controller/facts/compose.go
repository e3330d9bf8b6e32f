package facts

import (
	"context"
	"errors"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// CompositionKey finds a composed edit in a Case.
func CompositionKey(env, release string) string { return env + "|" + release }

// answerComposition answers Look compose: what moving a release into an environment
// changes, or why it can't be done.
func (o *Gatherer) answerComposition(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, l promotion.FactRequest) error {
	out := promotion.Composition{Tip: env.Tip}
	if out.Refuse(c.whyUnknown(l.Release)); out.State == promotion.EditRefused {
		env.Compositions[l.Release] = out
		return nil
	}
	edits, err := fieldedit.Compose(c.Snapshot.Repo.Mirror.Tree(env.Tip), at.Overlay(c.Pipeline.Pipeline), c.ReleaseContents[l.Release],
		wholeFileReader(ctx, c.Snapshot.Repo.Mirror, env.Tip))
	switch {
	case err != nil:
		out.Refuse(err.Error())
	case len(edits) == 0:
		out.State = promotion.EditEmpty
	default:
		for _, e := range edits {
			out.Files = append(out.Files, e.File)
		}
		// What moves with others may share files with them: whether it does with
		// those that come along is looked at when they are known.
		why, err := o.WhyNotIsolated(ctx, c.withAllComponents(), env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
	}
	c.ComposedEdits[CompositionKey(env.Name, l.Release)] = edits
	env.Compositions[l.Release] = out
	return nil
}

// wholeFileReader gives the files that a release carries as a whole out of the
// mirror, which keeps every content by its id.
func wholeFileReader(ctx context.Context, m *git.Mirror, commit string) fieldedit.Contents {
	return func(f fieldedit.Field) (data []byte, err error) {
		err = m.Tree(commit).ReadBlobs(ctx, []string{f.ObjectID()}, fieldedit.MaxFileSize, func(_ int, content []byte, err error) error {
			data = content
			return err
		})
		return data, err
	}
}

// answerRestore answers Look restore.
func (o *Gatherer) answerRestore(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv) error {
	if !env.Landed.OK {
		env.Restore = promotion.Unsure[promotion.Composition](env.Landed.Err)
		return nil
	}
	out := promotion.Composition{Tip: env.Tip}
	own, with := c.unitOverlays(at), env.Landed.Value.Members
	if len(with) > 0 {
		own = c.memberOverlays(env.Name, with)
	}
	edits, err := o.composeRevert(ctx, c, own, env.Landed.Value.Commit, env.Tip)
	switch {
	case err != nil:
		out.Refuse(err.Error())
	case len(edits) == 0:
		out.Refuse("the bytes are already as they were before")
	default:
		for _, e := range edits {
			out.Files = append(out.Files, e.File)
		}
		why, err := o.WhyNotIsolated(ctx, c.withMembers(with), env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
	}
	c.RestoredEdits[env.Name] = edits
	env.Restore = promotion.Sure(out)
	return nil
}

// answerBlame answers Look blame: which other commits changed what the environment's
// targets read since the release landed, on any branch that they follow.
func (o *Gatherer) answerBlame(ctx context.Context, c *Evaluation, env *promotion.Env) error {
	changed := map[string][]string{}
	for _, l := range c.Snapshot.BranchHeads() {
		if l.Commit == "" {
			continue
		}
		ix := c.Pipeline.readerIndexes[l.Branch]
		if err := o.addChangesOn(ctx, c, env, l, ix, changed); err != nil {
			var indexErr *indexError
			if !errors.As(err, &indexErr) {
				return err
			}
			for i := range env.Targets {
				env.Targets[i].ChangedSince = promotion.Unsure[[]string](err.Error())
			}
			return nil
		}
	}
	for i := range env.Targets {
		env.Targets[i].ChangedSince = promotion.Sure(changed[env.Targets[i].Name])
	}
	return nil
}

// addChangesOn adds the commits of one branch. On the environment's own they are
// those after what landed; on another, which what landed isn't on, those that
// are no older.
func (o *Gatherer) addChangesOn(ctx context.Context, c *Evaluation, env *promotion.Env, l BranchHead, ix *lazyIndex, changed map[string][]string) error {
	m, landed := c.Snapshot.Repo.Mirror, env.Landed.Value
	own := l.Branch == env.Branch
	q := git.LogQuery{From: l.Commit, FirstParent: true, Limit: originDepth}
	if own {
		q.Until = landed.Commit
	}
	log, err := m.Log(ctx, q)
	if err != nil {
		return err
	}
	for _, ci := range log {
		if !own && ci.CommitTime.Before(landed.At) {
			break
		}
		if len(ci.Parents) == 0 {
			continue
		}
		paths, err := changedPaths(ctx, m, ci.Parents[0], ci.SHA)
		if err != nil {
			return err
		}
		index, err := ix.get(ctx)
		if err != nil {
			return &indexError{err}
		}
		readers := index.AffectedReaders(paths)
		for i := range env.Targets {
			if name := env.Targets[i].Name; readers[ix.targetID(name)] != nil {
				changed[name] = append(changed[name], ci.SHA)
			}
		}
	}
	return nil
}

// indexError says that which targets read what can't be told.
type indexError struct{ error }

// Reach says which targets a set of files on an environment's branch reaches and
// which of the pipeline's other targets it does not; for the pull request's body.
func (o *Gatherer) Reach(ctx context.Context, c *Evaluation, env string, files []string) (reached, unaffected []appset.Target, err error) {
	ix, err := c.Pipeline.readerIndexes[c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Branch].get(ctx)
	if err != nil {
		return nil, nil, err
	}
	readers := ix.AffectedReaders(files)
	for _, t := range c.Pipeline.TargetSet.Targets {
		if readers[t.ID()] != nil {
			reached = append(reached, t)
		} else {
			unaffected = append(unaffected, t)
		}
	}
	return reached, unaffected, nil
}
