package branch

import (
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
)

// LastSnapshot is the repository as it was last resolved in this process; nil: it wasn't.
func (tg *TargetGatherer) LastSnapshot(repo string) *Snapshot {
	s, ok := tg.Snapshots.Get(repo)
	if !ok {
		return nil
	}
	return s
}

// SourceReaders lists the units with a target that has a source, a remote base or a chart's dependency in another
// repository, by the addresses of that one. With onlyKnown no index of files is made to find out who reads it so.
func (tg *TargetGatherer) SourceReaders(ctx context.Context, s *Snapshot, addresses []string, onlyKnown bool) []promotion.Unit {
	known := map[string]bool{}
	isThere := func(address string) bool {
		is, judged := known[address]
		if !judged {
			is = slices.ContainsFunc(addresses, func(a string) bool { return appset.SameRepository(a, address) })
			known[address] = is
		}
		return is
	}
	var out []promotion.Unit
	for _, p := range s.Pipelines {
		components := map[string]bool{}
		for i := range p.TargetSet.Targets {
			t := &p.TargetSet.Targets[i]
			if u := p.Units[t.Component]; u == nil || components[t.Component] || !p.readsThere(ctx, t, isThere, onlyKnown) {
				continue
			}
			components[t.Component] = true
			out = append(out, p.Units[t.Component].Unit)
		}
	}
	return out
}

// readsThere says whether a target has a source in another repository that fulfils a condition, or
// reads one by a base of its own sources, on any branch. One whose files can't be told now counts.
func (r *ResolvedPipeline) readsThere(ctx context.Context, t *appset.Target, isThere func(address string) bool, onlyKnown bool) bool {
	if slices.ContainsFunc(t.Sources, func(s appset.Source) bool { return !s.Here && isThere(s.RepoURL) }) {
		return true
	}
	for _, index := range r.ReaderIndexes {
		if onlyKnown {
			if index = index.newestBuilt(); index == nil {
				continue
			}
		}
		x, err := index.Get(ctx)
		if err != nil {
			return true
		}
		if slices.ContainsFunc(x.Remote(t.ID()), func(written string) bool {
			address, ok := render.RemoteRepository(written)
			return ok && isThere(address)
		}) {
			return true
		}
	}
	return false
}
