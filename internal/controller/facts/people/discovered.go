package people

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// discoveredMakers are those who made what a commit brought into a source environment by itself: whom the application's
// commits name that images say they were built from. Liftlock's account only wrote it down, and would let everybody
// approve. Who isn't known is said to be so, and approvals wait, as for other authors without an account. No makers: the
// commit says that it is another one, as anybody's may; those are somebody's. isOwn says that Liftlock's account has a part in
// the commit: then it is what its pull request brought in, however that was merged.
func (ag *AuthorGatherer) discoveredMakers(ctx context.Context, c *branch.ComponentBasis, source, commit string,
	isOwn bool) (Makers, error) {
	r, at := c.Snapshot.Repo, c.Unit.Envs[source]
	info, err := r.Mirror.Commit(ctx, commit)
	isOwn = isOwn || err == nil && info.Trailers[promotion.TrailerKind] == promotion.KindDiscovery
	if err != nil || at == nil || !isOwn || len(info.Parents) == 0 {
		return Makers{}, err
	}
	key := strings.Join([]string{"discovered", r.ID, c.Pipeline.LocationOf(at).Key, commit}, "|")
	if m, ok := ag.landings.Get(key); ok && (!m.mayChange() || ag.now().Sub(m.at) < unknownAge) {
		return m, m.err
	}
	m, err := ag.readDiscovered(ctx, c, at, commit, info.Parents[0])
	if failed := branch.RetryableError(ctx, err); failed != nil {
		return Makers{}, failed
	}
	m.err, m.at = err, ag.now()
	ag.landings.Put(key, m)
	return m, err
}

// readDiscovered reads who made the versions that a commit has and its parent hasn't.
func (ag *AuthorGatherer) readDiscovered(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, commit,
	parent string) (m Makers, err error) {
	r := c.Snapshot.Repo
	versions, err := at.FindVersions(r.Mirror.Tree(commit), c.Pipeline.Pipeline)
	if err != nil {
		return m, err
	}
	before, err := ag.releases.ReadRelease(r, parent, c.Pipeline, at)
	if err != nil {
		return m, err
	}
	var errs []error
	for i := range versions {
		v := &versions[i]
		tag, digest := v.ValueIn(before, false), v.ValueIn(before, true)
		if v.Digest == "" {
			digest = ""
		}
		if tag == v.Tag && digest == v.Digest {
			continue
		}
		if err := ag.addImageMakers(ctx, r, v, imageReference(v.Image, tag, digest), &m); err != nil {
			errs = append(errs, err)
		}
	}
	return m, errors.Join(errs...)
}

// addImageMakers adds who made an image since the one that was there before.
func (ag *AuthorGatherer) addImageMakers(ctx context.Context, r *branch.Repository, v *fieldedit.NamedVersion, was string,
	m *Makers) error {
	is := imageReference(v.Image, v.Tag, v.Digest)
	unknown := func(format string, args ...any) { m.Unlinked = append(m.Unlinked, fmt.Sprintf(format, args...)) }
	switch {
	case v.Chart != "":
		unknown("%s %s came in by itself, and a chart doesn't say who made it", v.Chart, v.Tag)
		return nil
	case ag.Images == nil || !ag.Images.CanRead(is):
		unknown("%s came in by itself, and who made it can't be read: its registry isn't under registries in the server's file", is)
		return nil
	}
	to, err := ag.readImage(ctx, r, is)
	if err != nil {
		return fmt.Errorf("who made %s can't be told: %w", is, err)
	}
	if to.commit == "" {
		unknown("%s came in by itself, and who made it isn't known: its labels org.opencontainers.image.source and .revision have to "+
			"name a commit of a repository of %s", is, r.Name.Owner)
		return nil
	}
	from := builtImage{}
	if was != "" && ag.Images.CanRead(was) {
		if from, err = ag.readImage(ctx, r, was); err != nil {
			return fmt.Errorf("what is new in %s can't be told: %s: %w", is, was, err)
		}
	}
	if !strings.EqualFold(from.repository.Name, to.repository.Name) {
		unknown("%s came in by itself, and who made what is new in it isn't known: the image before, %s, names no commit of %s", is,
			wording.ClipLine(was, 200), to.repository)
		return nil
	}
	base := from.commit
	if base == to.commit {
		base = "" // built again: that commit's authors made it
	}
	all, err := r.Forge.CommitAuthors(ctx, to.repository, base, to.commit)
	if err != nil {
		return fmt.Errorf("who made %s can't be told: %w", is, err)
	}
	m.addCommits(r, all)
	return nil
}
