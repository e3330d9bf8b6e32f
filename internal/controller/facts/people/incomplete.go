package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxIncomplete bounds the remote bases that a reason names.
	maxIncomplete = 3
	// maxRefShown bounds a ref in it.
	maxRefShown = 60
)

// movedRef is a remote base whose ref a release's commit changed in a source environment.
type movedRef struct {
	fieldedit.RemoteRef        // as the release has it there
	file                string // relative to the root
	commit              string
}

// newMovedRefs makes an empty cache of what releases' commits changed: an open promotion asks at every look.
func newMovedRefs(group *cache.Group) *cache.Cache[string, []movedRef] {
	const maxBytes, each = 8 << 20, 200
	return cache.New(group, cache.Options[string, []movedRef]{Name: "moved_refs", Entries: branch.MaxEnvironments, Bytes: maxBytes,
		Size: func(key string, all []movedRef) int64 {
			size := len(key)
			for i := range all {
				size += each + len(all[i].Address) + len(all[i].Ref) + len(all[i].file)
			}
			return int64(size)
		}})
}

// WhyIncomplete says which refs of remote bases the commits that made a release in its source
// environments changed together with carried fields. These refs aren't carried themselves and
// differ in the environment; "" where there are none. Such a release would deploy an image with the
// manifests of another one.
func (ag *AuthorGatherer) WhyIncomplete(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, release string) (string, error) {
	at := c.Unit.Envs[env.Name]
	if at == nil || env.Tip == "" {
		return "", nil
	}
	made, err := ag.ReleaseCommits(ctx, c, env.Name, release)
	if err != nil {
		return "", err
	}
	for _, m := range made {
		key := strings.Join([]string{c.Snapshot.Repo.ID, env.Name, c.Pipeline.LocationOf(c.Unit.Envs[m.Source]).Key, env.Release.Value.ID,
			m.Head, release}, "|")
		moved, err := ag.moved.GetOrLoad(key, func() ([]movedRef, error) { return ag.findMovedRefs(ctx, c, &m) })
		if errors.Is(err, git.ErrTooLarge) {
			return fmt.Sprintf("whether what made it in %s changed the ref of a remote base as well can't be told: %v", m.Source, err), nil
		}
		if err != nil {
			return "", err
		}
		if why := explainLeftOut(c, env, m.Source, moved); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// findMovedRefs finds the refs that aren't carried and that one of a release's commits changed, each as it
// was when the release was whole.
func (ag *AuthorGatherer) findMovedRefs(ctx context.Context, c *branch.ComponentBasis, made *ReleaseCommits) ([]movedRef, error) {
	m, source := c.Snapshot.Repo.Mirror, c.Unit.Envs[made.Source]
	overlay := source.Overlay(c.Pipeline.Pipeline)
	var out []movedRef
	for _, k := range made.Commits {
		info, err := m.Commit(ctx, k.SHA)
		if err == nil && len(info.Parents) == 0 || errors.Is(err, git.ErrUnknownCommit) {
			continue // what was there from the start was changed by nothing, and one that is gone can't tell
		}
		if err != nil {
			return nil, err
		}
		files, err := branch.ChangedPaths(ctx, m, info.Parents[0], k.SHA)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name, below := kustomizationBelow(slices.Concat(source.Roots, source.Bases), file)
			if !below {
				continue
			}
			was, is, whole := refsAt(m, overlay, file, info.Parents[0]), refsAt(m, overlay, file, k.SHA),
				refsAt(m, overlay, file, made.Head)
			for _, r := range is {
				old, had := findRef(was, r)
				now, has := findRef(whole, r)
				known := slices.ContainsFunc(out, func(o movedRef) bool { return o.file == name && o.Address == r.Address })
				if had && old.Ref != r.Ref && has && !known {
					out = append(out, movedRef{now, name, k.SHA})
				}
			}
		}
	}
	return out, nil
}

// kustomizationBelow says that a file is a kustomization at or below one of some roots, and by which name there.
func kustomizationBelow(roots []string, file string) (name string, is bool) {
	if !appset.IsKustomization(path.Base(file)) {
		return "", false
	}
	for _, root := range roots {
		if root == "." {
			return file, true
		}
		if name, below := strings.CutPrefix(file, root+"/"); below {
			return name, true
		}
	}
	return "", false
}

// refsAt are the refs of a kustomization at a commit that aren't carried; none where it can't be read there.
func refsAt(m *git.Mirror, overlay fieldedit.Overlay, file, commit string) []fieldedit.RemoteRef {
	refs, err := fieldedit.UncarriedRefs(m.Tree(commit), overlay, file)
	if err != nil {
		return nil // it was no release there either
	}
	return refs
}

func findRef(refs []fieldedit.RemoteRef, of fieldedit.RemoteRef) (fieldedit.RemoteRef, bool) {
	i := slices.IndexFunc(refs, func(r fieldedit.RemoteRef) bool { return r.List == of.List && r.Address == of.Address })
	if i < 0 {
		return fieldedit.RemoteRef{}, false
	}
	return refs[i], true
}

// explainLeftOut says which of the refs that moved in a source an environment has otherwise, and what to do;
// "" where it has all, or none of those bases.
func explainLeftOut(c *branch.ComponentBasis, env *promotion.Env, source string, moved []movedRef) string {
	at := c.Unit.Envs[env.Name]
	tree, overlay := c.Snapshot.Repo.Mirror.Tree(env.Tip), at.Overlay(c.Pipeline.Pipeline)
	var left []string
	commit, carry := "", ""
	for _, m := range moved {
		for _, root := range slices.Concat(at.Roots, at.Bases) {
			refs, err := fieldedit.UncarriedRefs(tree, overlay, path.Join(root, m.file))
			if err != nil {
				return fmt.Sprintf("%s changed the ref of %s in %s together with what is carried, and what %s has can't be told: %s",
					wording.Short(m.commit), m.Address, source, env.Name, err)
			}
			there, known := m.findCounterpart(refs)
			if !known || there.Ref == m.Ref {
				continue
			}
			commit = cmp.Or(commit, m.commit)
			left = append(left, fmt.Sprintf("%s (%s, in %s %s)", m.Address, wording.ClipLine(m.Ref, maxRefShown), env.Name,
				wording.ClipLine(there.Ref, maxRefShown)))
			if there.Address == m.Address && !strings.Contains(m.file, "/") && carry == "" {
				carry = fmt.Sprintf("carry it (kustomizeRefs: [%q]) or ", m.Address)
			}
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%s changed the ref of %s in %s together with what is carried, and that isn't: %sgive it to %s by a commit",
		wording.Short(commit), wording.JoinFew(left, maxIncomplete), source, carry, env.Name)
}

// findCounterpart finds the base among the refs of an environment, else one of the same repository: an
// environment may take another folder of it.
func (m *movedRef) findCounterpart(refs []fieldedit.RemoteRef) (fieldedit.RemoteRef, bool) {
	if r, ok := findRef(refs, m.RemoteRef); ok {
		return r, true
	}
	i := slices.IndexFunc(refs, func(r fieldedit.RemoteRef) bool { return r.List == m.List && r.Repository() == m.Repository() })
	if i < 0 {
		return fieldedit.RemoteRef{}, false
	}
	return refs[i], true
}
