package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// answerComposition says what moving a release into an environment changes, or why it
// can't be done.
func (ga *Gatherer) answerComposition(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l promotion.FactRequest) error {
	component := c.Facts.Unit.Component
	out := promotion.Composition{Tip: env.Tip}
	edits, refused := ga.composeMembers(ctx, c.Evaluation, env.Name, env.Tip,
		[]promotion.Member{{Component: component, Release: l.Release}})
	switch {
	case refused[component] != "":
		out.Refuse(refused[component])
	case len(edits) == 0:
		out.State = promotion.EditEmpty
	default:
		out.Files = editedFiles(edits)
		// What moves with others may share files with them: whether it does with
		// those that come along is looked at when they are known.
		may := []string{component}
		if c.IsBatch() {
			may = slices.Sorted(maps.Keys(c.Pipeline.Units))
		}
		why, err := ga.WhyNotIsolated(ctx, c.Evaluation, may, env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
		if out.Incomplete, err = ga.whyIncomplete(ctx, c, env, l.Release); err != nil {
			return err
		}
	}
	c.edits[editKey{env.Name, component, l.Release}] = edits
	env.Compositions[l.Release] = out
	return nil
}

// answerBatchRequest says what moving several releases at once changes.
func (ga *Gatherer) answerBatchRequest(ctx context.Context, ev *Evaluation, l promotion.FactRequest) error {
	env := ev.Environment(l.Environment)
	if env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, ErrNoUnit)
	}
	id := promotion.BatchID(l.Members)
	out := promotion.Composition{Tip: env.Tip}
	edits, refused := ga.composeMembers(ctx, ev, env.Name, env.Tip, l.Members)
	out.RefusedByMember = refused
	if len(refused) == 0 {
		why, err := ga.WhyNotIsolated(ctx, ev, componentNames(l.Members), env.Name, env.Tip, edits)
		if err != nil {
			return err
		}
		if out.Refuse(why); out.State == promotion.EditRefused {
			if out.RefusedByMember, err = ga.blameMembers(ctx, ev, env, l.Members); err != nil {
				return err
			}
		}
	}
	ev.edits[editKey{env.Name, ev.Unit.Component, id}] = edits
	if ev.compositions[env.Name] == nil {
		ev.compositions[env.Name] = map[string]promotion.Composition{}
	}
	ev.compositions[env.Name][id] = out
	return nil
}

// blameMembers finds the components whose own part reaches a target that
// doesn't come along.
func (ga *Gatherer) blameMembers(ctx context.Context, ev *Evaluation, env *promotion.Env,
	members []promotion.Member) (map[string]string, error) {
	out := map[string]string{}
	for _, m := range members {
		part, refused := ga.composeMembers(ctx, ev, env.Name, env.Tip, []promotion.Member{m})
		why := refused[m.Component]
		if why == "" && len(part) > 0 {
			var err error
			if why, err = ga.WhyNotIsolated(ctx, ev, componentNames(members), env.Name, env.Tip, part); err != nil {
				return nil, err
			}
		}
		if why != "" {
			out[m.Component] = why
		}
	}
	return out, nil
}

// composeMembers composes the releases of components on a commit, one after the other.
// refused says why a component's own part can't be made.
func (ga *Gatherer) composeMembers(ctx context.Context, ev *Evaluation, env, base string,
	members []promotion.Member) (edits []fieldedit.Edit, refused map[string]string) {
	m := ev.Snapshot.Repo.Mirror
	tree := m.Tree(base)
	refused = map[string]string{}
	edited := map[string]bool{}
	for _, p := range members {
		at := ev.envAt(env, p.Component)
		if at == nil {
			refused[p.Component] = ErrNoUnit.Error()
			continue
		}
		if why := ev.whyUnknown(p.Release); why != "" {
			refused[p.Component] = why
			continue
		}
		part, err := ga.composePart(ctx, ev, at, base, p.Release)
		if err == nil && slices.ContainsFunc(part, func(e fieldedit.Edit) bool { return edited[e.File] }) {
			part, err = composeOnto(fieldedit.Apply(tree, edits), at.Overlay(ev.Pipeline.Pipeline), ev.contents[p.Release],
				wholeFileReader(ctx, m, base))
		}
		if err != nil {
			refused[p.Component] = err.Error()
			continue
		}
		for _, e := range part {
			edited[e.File] = true
			for _, ch := range e.Changes {
				ev.fieldOwners[fieldKey{e.File, ch.Path}] = p.Component
			}
		}
		edits = fieldedit.JoinEdits(edits, part)
	}
	return edits, refused
}

// newComposedParts makes an empty cache of what releases change on commits. Every look at an open
// promotion compares its head with that.
func newComposedParts(group *cache.Group) *cache.Cache[string, []fieldedit.Edit] {
	return cache.New(group, cache.Options[string, []fieldedit.Edit]{Name: "compositions", Entries: maxEnvironments, Bytes: maxComposedBytes,
		Size: func(key string, edits []fieldedit.Edit) int64 {
			size := len(key)
			for i := range edits {
				size += len(edits[i].Before) + len(edits[i].After)
			}
			return int64(size)
		}})
}

// maxComposedBytes bounds the files before and after that are remembered.
const maxComposedBytes = 32 << 20

// composePart composes the release of a component on a commit. The edits are shared: nobody
// changes them.
func (ga *Gatherer) composePart(ctx context.Context, ev *Evaluation, at *ResolvedEnv, base, release string) ([]fieldedit.Edit, error) {
	r := ev.Snapshot.Repo
	key := strings.Join([]string{r.ID, base, release, ev.Pipeline.locationOf(at).key}, "|")
	return ga.composed.GetOrLoad(key, func() ([]fieldedit.Edit, error) {
		return composeOnto(r.Mirror.Tree(base), at.Overlay(ev.Pipeline.Pipeline), ev.contents[release],
			wholeFileReader(ctx, r.Mirror, base))
	})
}

// composeOnto composes a release on a tree, whose charts can still be built afterwards.
func composeOnto(tree fs.FS, o fieldedit.Overlay, want fieldedit.Release, contents fieldedit.Contents) ([]fieldedit.Edit, error) {
	edits, err := fieldedit.Compose(tree, o, want, contents)
	if err != nil {
		return nil, err
	}
	return edits, checkCharts(tree, edits)
}

// checkCharts refuses edits after which a chart's lock or its archives don't fit its dependencies.
func checkCharts(tree fs.FS, edits []fieldedit.Edit) error {
	if len(edits) == 0 {
		return nil
	}
	return render.CheckChartLocks(tree, fieldedit.Apply(tree, edits), editedFiles(edits))
}

// ComposedEdits are the edits of what was composed for an environment of the unit.
func (ev *Evaluation) ComposedEdits(env, release string) []fieldedit.Edit {
	return ev.edits[editKey{env, ev.Unit.Component, release}]
}

// RestoredEdits are the edits that revert a landed promotion, composed for any of those
// that it brought.
func (ev *Evaluation) RestoredEdits(env string, pull int, members []promotion.Member) []fieldedit.Edit {
	for _, m := range members {
		if c, _ := ev.Component(m.Component); c != nil && c.restored[env] != nil {
			if l := c.Env(env).Landed; l.OK && l.Value.Pull == pull {
				return c.restored[env]
			}
		}
	}
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

// answerRestore says what takes back what landed in an environment, with all that came
// by the same pull request.
func (ga *Gatherer) answerRestore(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	if !env.Landed.OK {
		env.Restore = promotion.Unsure[promotion.Composition](env.Landed.Err)
		return nil
	}
	out := promotion.Composition{Tip: env.Tip}
	members := env.Landed.Value.Members
	if !env.Landed.Value.Batch {
		members = []promotion.Member{{Component: c.Facts.Unit.Component}}
	}
	edits, err := ga.composeRevert(ctx, c.Evaluation, env.Name, members, env.Landed.Value.Commit, env.Tip)
	switch {
	case err != nil && ctx.Err() != nil: // a run that is over refuses nothing
		return err
	case err != nil:
		out.Refuse(err.Error())
	case len(edits) == 0:
		out.Refuse("the bytes are already as they were before")
	default:
		out.Files = editedFiles(edits)
		why, err := ga.WhyNotIsolated(ctx, c.Evaluation, componentNames(members), env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
	}
	c.restored[env.Name] = edits
	env.Restore = promotion.Sure(out)
	return nil
}

// composeRevert composes onto a base what takes back what landed with a commit.
func (ga *Gatherer) composeRevert(ctx context.Context, ev *Evaluation, env string, members []promotion.Member, commit,
	base string) ([]fieldedit.Edit, error) {
	m := ev.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	if len(info.Parents) == 0 {
		return nil, fmt.Errorf("%s has no parent to go back to", wording.Short(commit))
	}
	files, err := changedPaths(ctx, m, info.Parents[0], commit)
	if err != nil {
		return nil, err
	}
	edits, err := fieldedit.Restore(m.Tree(info.Parents[0]), m.Tree(commit), m.Tree(base), files, ev.overlaysOf(env, members)...)
	if err != nil {
		return nil, err
	}
	return edits, checkCharts(m.Tree(base), edits)
}

// ComposeRevertOnto composes an open revert anew onto a tip.
func (ga *Gatherer) ComposeRevertOnto(ctx context.Context, ev *Evaluation, p *OpenPull, tip string) ([]fieldedit.Edit, error) {
	return ga.composeRevert(ctx, ev, p.Environment, p.Members, p.Reverts.MergeCommit, tip)
}

// answerBlame answers Look blame: which other commits changed what the environment's
// targets read since the release landed, on any branch that they follow.
func (ga *Gatherer) answerBlame(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	changed := map[string][]string{}
	for _, l := range c.Snapshot.BranchHeads() {
		if l.Commit == "" {
			continue
		}
		ix := c.Pipeline.readerIndexes[l.Branch]
		if err := ga.addChangesOn(ctx, c, env, l, ix, changed); err != nil {
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
	for i := range env.Targets { // parents come before what is below them
		name := env.Targets[i].Name
		if k := c.findChild(env.Name, name); k != nil && changed[name] == nil {
			changed[name] = changed[k.parent]
		}
		env.Targets[i].ChangedSince = promotion.Sure(changed[name])
	}
	return nil
}

// addChangesOn adds the commits of one branch. On the environment's own they are
// those after what landed; on another, which what landed isn't on, those that
// are no older.
func (ga *Gatherer) addChangesOn(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l BranchHead, ix *lazyIndex,
	changed map[string][]string) error {
	m, landed, at := c.Snapshot.Repo.Mirror, env.Landed.Value, c.Unit.Envs[env.Name]
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
			name := env.Targets[i].Name
			t := c.targetAt(env, at, i)
			switch {
			case t == nil:
				continue
			case c.findChild(env.Name, name) != nil: // which files one below a target reads is not known
				if !own || hasNoLocalSource(t) {
					continue
				}
			case readers[t.ID()] == nil:
				continue
			}
			changed[name] = append(changed[name], ci.SHA)
		}
	}
	return nil
}

// indexError says that which targets read what can't be told.
type indexError struct{ error }

// ReachedTarget is a target that an edit reaches: it reads one of the files, or its Application comes
// out otherwise.
type ReachedTarget struct {
	appset.Target
	// Fields are those of its Application that change, as far as they are known.
	Fields []appset.FieldDifference
}

// Reach says which targets edits on a commit of an environment's branch reach and which of the
// pipeline's other targets they don't; for the pull request's body. components are those that move.
func (ga *Gatherer) Reach(ctx context.Context, c *Evaluation, components []string, env, base string,
	edits []fieldedit.Edit) (reached []ReachedTarget, unaffected []appset.Target, err error) {
	readers, err := c.Pipeline.AffectedReaders(ctx, c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Branch, editedFiles(edits))
	if err != nil {
		return nil, nil, err
	}
	regenerated, err := ga.regenerated(ctx, c, components, env, base, edits)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	for _, t := range c.Pipeline.TargetSet.Targets {
		known[t.ID()] = true
		i := slices.IndexFunc(regenerated, func(r isolation.Regenerated) bool { return r.Target.ID() == t.ID() })
		switch {
		case i >= 0:
			reached = append(reached, ReachedTarget{t, regenerated[i].Fields})
		case readers[t.ID()] != nil:
			reached = append(reached, ReachedTarget{Target: t})
		default:
			unaffected = append(unaffected, t)
		}
	}
	for _, r := range regenerated {
		if !known[r.Target.ID()] { // the edit makes it
			reached = append(reached, ReachedTarget{r.Target, r.Fields})
		}
	}
	return reached, unaffected, nil
}
