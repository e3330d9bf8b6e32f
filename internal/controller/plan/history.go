package plan

import (
	"context"
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

const (
	// commitChunk is how many commits are looked at in one go: what is looked for is
	// mostly near the end of the history.
	commitChunk = 256
	// maxPast bounds the releases of an environment's past.
	maxPast = 50
)

// location is one environment of one component, with where its release came from.
type location struct {
	unit    *unit
	branch  *branchHead
	env     string
	overlay fieldedit.Overlay
	now     string // the release's identity
	scope   fieldedit.Scope

	origin history.Origin
	seq    int64 // of the commit: newer is larger; 0: none was found

	wantsPast bool // earlier releases are wanted too
	arrivals  []arrival
}

// arrival is a release that came to a place, and the commit that brought it.
type arrival struct {
	release fieldedit.Release
	commit  git.CommitInfo
	seq     int64
}

// isDone says that nothing more is looked for.
func (p *location) isDone() bool {
	return p.origin.Found && (!p.wantsPast || len(p.arrivals) == maxPast)
}

// findOrigins finds where the releases of places on one line came from among the commits
// since the baseline. What isn't found there was there before.
func (m *planner) findOrigins(ctx context.Context, l *branchHead, baseline string, places []*location) error {
	log, err := m.input.Git.Log(ctx, git.LogQuery{From: l.commit, Until: baseline, FirstParent: true})
	if err != nil {
		return err
	}
	seq := sequenceCommits(log)
	below := map[string][]*location{} // by the files and folders that their fields are in
	for _, p := range places {
		if p.scope, err = fieldedit.NewScope(p.overlay); err != nil {
			return err
		}
		paths := p.scope.Paths()
		if paths == nil {
			paths = []string{"."}
		}
		for _, name := range paths {
			below[name] = append(below[name], p)
		}
	}
	for from := 0; from < len(log) && slices.ContainsFunc(places, func(p *location) bool { return !p.isDone() }); from += commitChunk {
		part := log[from:min(from+commitChunk, len(log))]
		changed, err := m.input.Git.PathsChanged(ctx, part)
		if err != nil {
			return err
		}
		touching := map[*location][]int{}
		for i, paths := range changed {
			for _, name := range paths {
				for _, p := range locationsOf(below, name) {
					if at := touching[p]; !p.isDone() && (len(at) == 0 || at[len(at)-1] != i) && p.scope.Covers(name) {
						touching[p] = append(at, i)
					}
				}
			}
		}
		reached := make([]*location, 0, len(touching))
		for p := range touching {
			reached = append(reached, p)
		}
		err = inParallel(ctx, len(reached), func(i int) error {
			p := reached[i]
			m.traceOrigin(p, part, touching[p], seq[from:])
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sequenceCommits numbers commits, newest first, so that newer ones have larger numbers,
// on other lines too as far as their times tell.
func sequenceCommits(log []git.CommitInfo) []int64 {
	const most = 1 << 14 // more than Log lists
	out := make([]int64, len(log))
	var latest int64
	for i := len(log) - 1; i >= 0; i-- {
		latest = max(latest, log[i].CommitTime.Unix())
		out[i] = latest*most + int64(len(log)-i)
	}
	return out
}

// locationsOf are the places whose fields may be in a file.
func locationsOf(below map[string][]*location, name string) []*location {
	out := below["."]
	for at := name; at != "."; at = path.Dir(at) {
		if more := below[at]; len(more) > 0 {
			out = append(out[:len(out):len(out)], more...)
		}
	}
	return out
}

// traceOrigin looks for a place's origin among the commits of part that touched it,
// newest first; seq numbers those of part.
func (m *planner) traceOrigin(p *location, part []git.CommitInfo, touching []int, seq []int64) {
	idAt := func(commit string) string {
		r, err := fieldedit.Read(m.input.Git.Tree(commit), p.overlay)
		if err != nil {
			return ""
		}
		return r.ID()
	}
	absent := func(commit string) bool {
		found, err := fieldedit.Locate(m.input.Git.Tree(commit), p.overlay)
		return err == nil && len(found) == 0
	}
	if !p.origin.Found {
		commits := make([]git.CommitInfo, len(touching))
		for i, at := range touching {
			commits[i] = part[at]
		}
		if o := history.FindOrigin(commits, p.now, idAt, absent); o.Found {
			p.origin = o
			p.seq = seq[slices.IndexFunc(part, func(c git.CommitInfo) bool { return c.SHA == o.Commit.SHA })]
		}
	}
	for _, at := range touching {
		if !p.wantsPast || len(p.arrivals) == maxPast {
			return
		}
		r, err := fieldedit.Read(m.input.Git.Tree(part[at].SHA), p.overlay)
		if err == nil && !r.Empty() && len(part[at].Parents) > 0 && idAt(part[at].Parents[0]) != r.ID() {
			p.arrivals = append(p.arrivals, arrival{release: r, commit: part[at], seq: seq[at]})
		}
	}
}

// describeLanded says who brought what a place has, as far as Git says.
func (m *planner) describeLanded(ctx context.Context, p *location, s *baselineAncestry) (promotion.Landed, error) {
	if !p.origin.Found {
		return promotion.Landed{Commit: s.baseline, By: promotion.ByBaseline}, nil
	}
	c := p.origin.Commit
	by, err := m.findCommitKind(ctx, p, c, p.now)
	if err == nil && by == promotion.ByPerson {
		var old bool
		if old, err = history.PredatesBaseline(ctx, s, c, s.baseline); old || p.origin.First {
			by = promotion.ByBaseline
		}
	}
	if err != nil {
		return promotion.Landed{}, err
	}
	l := promotion.Landed{Commit: c.SHA, At: c.CommitTime, By: by}
	if len(c.Parents) > 0 {
		l.Parent = c.Parents[0]
	}
	if by == promotion.ByPerson {
		l.Author = c.Author.Name
	}
	return l, nil
}

// findCommitKind takes a commit's trailers, or those of the branch that it merges, at
// their word where they name this place and, for a promotion, this release.
func (m *planner) findCommitKind(ctx context.Context, p *location, c git.CommitInfo, release string) (string, error) {
	kind := trailerKind(c.Trailers, p, release)
	if kind == "" && len(c.Parents) > 1 {
		merged, err := m.input.Git.Commit(ctx, c.Parents[1])
		if err != nil {
			return "", err
		}
		kind = trailerKind(merged.Trailers, p, release)
	}
	switch kind {
	case promotion.KindPromotion:
		return promotion.ByPromotion, nil
	case promotion.KindRevert:
		return promotion.ByRevert, nil
	}
	return promotion.ByPerson, nil
}

// trailerKind is the kind of commit that trailers say it is, where they are about this
// place and, for a promotion, this release.
func trailerKind(t map[string]string, p *location, release string) string {
	named := promotion.ReleaseFromTrailers(t, p.unit.facts.Unit, p.env)
	kind := t[promotion.TrailerKind]
	switch {
	case named == "", kind == promotion.KindPromotion && !promotion.SameRelease(release, named):
		return ""
	}
	return kind
}

// pastArrivals are the releases that a place had since the baseline, newest first.
func (m *planner) pastArrivals(ctx context.Context, p *location) ([]promotion.Arrival, error) {
	var out []promotion.Arrival
	for _, c := range p.arrivals {
		id := c.release.ID()
		if c.commit.SHA == p.origin.Commit.SHA {
			continue // what is there now
		}
		by, err := m.findCommitKind(ctx, p, c.commit, id)
		if err != nil {
			return nil, err
		}
		p.unit.contents[id] = c.release
		out = append(out, promotion.Arrival{Seq: c.seq, Release: id, Name: c.release.String(), Commit: c.commit.SHA, By: by, At: c.commit.CommitTime, VerifiedAt: c.commit.CommitTime})
	}
	return out, nil
}
