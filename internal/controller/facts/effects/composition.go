package effects

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// ComposeProven composes the edits that bring a release of one component into an environment whose branch is at base, and
// proves that they change no other environment. Without edits there is nothing to do, or refused says why not. The error
// is of a repository that can't be read, or the context's.
func (ga *Gatherer) ComposeProven(ctx context.Context, ev *branch.Basis, component, env, base, release string) (edits []fieldedit.Edit,
	refused string, err error) {
	edits, why := ga.ComposeMembers(ctx, ev, env, base, []promotion.Member{{Component: component, Release: release}})
	if refused = why[component]; refused != "" || len(edits) == 0 {
		return nil, refused, ctx.Err()
	}
	if refused, err = ga.WhyNotIsolated(ctx, ev, []string{component}, env, base, edits); refused != "" || err != nil {
		return nil, refused, err
	}
	return edits, "", nil
}

// ComposeMembers composes the releases of components on a commit, one after the other.
// refused says why a component's own part can't be made.
func (ga *Gatherer) ComposeMembers(ctx context.Context, ev *branch.Basis, env, base string,
	members []promotion.Member) (edits []fieldedit.Edit, refused map[string]string) {
	m := ev.Snapshot.Repo.Mirror
	tree := m.Tree(base)
	refused = map[string]string{}
	edited := map[string]bool{}
	for _, p := range members {
		at := ev.EnvAt(env, p.Component)
		if at == nil {
			refused[p.Component] = branch.ErrNoUnit.Error()
			continue
		}
		if why := ev.WhyUnknown(p.Release); why != "" {
			refused[p.Component] = why
			continue
		}
		part, err := ga.composePart(ctx, ev, at, base, p.Release)
		if err == nil && slices.ContainsFunc(part, func(e fieldedit.Edit) bool { return edited[e.File] }) {
			part, err = composeOnto(fieldedit.Apply(tree, edits), at.Overlay(ev.Pipeline.Pipeline), ev.Contents[p.Release],
				WholeFileReader(ctx, m, base))
		}
		if err != nil {
			refused[p.Component] = err.Error()
			continue
		}
		for _, e := range part {
			edited[e.File] = true
			for _, ch := range e.Changes {
				ev.SetFieldOwner(e.File, ch.Path, p.Component)
			}
		}
		edits = fieldedit.JoinEdits(edits, part)
	}
	return edits, refused
}

// newComposedParts makes an empty cache of what releases change on commits. Every look at an open
// promotion compares its head with that.
func newComposedParts(group *cache.Group) *cache.Cache[string, []fieldedit.Edit] {
	return cache.New(group, cache.Options[string, []fieldedit.Edit]{Name: "compositions", Entries: branch.MaxEnvironments,
		Bytes: maxComposedBytes,
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

// composePart composes the release of a component on a commit. The edits are shared: no caller
// changes them.
func (ga *Gatherer) composePart(ctx context.Context, ev *branch.Basis, at *branch.ResolvedEnv, base,
	release string) ([]fieldedit.Edit,
	error) {
	r := ev.Snapshot.Repo
	key := strings.Join([]string{r.ID, base, release, ev.Pipeline.LocationOf(at).Key}, "|")
	return ga.composed.GetOrLoad(key, func() ([]fieldedit.Edit, error) {
		return composeOnto(r.Mirror.Tree(base), at.Overlay(ev.Pipeline.Pipeline), ev.Contents[release],
			WholeFileReader(ctx, r.Mirror, base))
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
	return render.CheckChartLocks(tree, fieldedit.Apply(tree, edits), EditedFiles(edits))
}

// WholeFileReader gives the files that a release carries as a whole out of the
// mirror, which keeps every content by its id.
func WholeFileReader(ctx context.Context, m *git.Mirror, commit string) fieldedit.Contents {
	return func(f fieldedit.Field) (data []byte, err error) {
		err = m.Tree(commit).ReadBlobs(ctx, []string{f.ObjectID()}, fieldedit.MaxFileSize, func(_ int, content []byte, err error) error {
			data = content
			return err
		})
		return data, err
	}
}

// ComposeRevert composes onto a base what takes back what landed with a commit.
func (ga *Gatherer) ComposeRevert(ctx context.Context, ev *branch.Basis, env string, members []promotion.Member, commit,
	base string) ([]fieldedit.Edit, error) {
	m := ev.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	if len(info.Parents) == 0 {
		return nil, fmt.Errorf("%s has no parent to go back to", wording.Short(commit))
	}
	files, err := branch.ChangedPaths(ctx, m, info.Parents[0], commit)
	if err != nil {
		return nil, err
	}
	edits, err := fieldedit.Restore(m.Tree(info.Parents[0]), m.Tree(commit), m.Tree(base), files, ev.OverlaysOf(env, members)...)
	if err != nil {
		return nil, err
	}
	return edits, checkCharts(m.Tree(base), edits)
}

// ReachedTarget is a target that an edit reaches: it reads one of the files, or its Application comes
// out otherwise.
type ReachedTarget struct {
	appset.Target
	// Fields are those of its Application that change, as far as they are known.
	Fields []appset.FieldDifference
}

// Reach says which targets edits on a commit of an environment's branch reach and which of the
// pipeline's other targets they don't; for the pull request's body. components are those that move.
func (ga *Gatherer) Reach(ctx context.Context, c *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit) (reached []ReachedTarget, unaffected []appset.Target, err error) {
	readers, err := c.Pipeline.AffectedReaders(ctx, c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Branch, EditedFiles(edits))
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

// ComponentNames are the components of members, sorted.
func ComponentNames(members []promotion.Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Component
	}
	slices.Sort(out)
	return out
}
