package branch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

// LineChunk is how many commits git is given at once to list what they changed.
const LineChunk = 256

const (
	// maxLines bounds how many lines of branches are indexed at a time.
	maxLines = 8
	// maxLineCommits bounds the commits of one.
	maxLineCommits = 10_000
)

// lineIndex says which commits of a branch's line of first parents changed which files. It takes one walk, where
// every environment would take one for itself.
type lineIndex struct {
	commits []git.CommitInfo // newest first
	isWhole bool             // there are no more of them
	names   []string         // of the files that they changed, sorted
	ranks   map[string][]int // by file: which commits changed it, counted from the oldest, in rising order
}

// indexLine indexes commits of a line, newest first. before is the index of its older end, which isn't walked again;
// nil: there is none.
func indexLine(ctx context.Context, r *Repository, commits []git.CommitInfo, before *lineIndex) (*lineIndex, error) {
	out := &lineIndex{commits: commits, isWhole: len(commits) < maxLineCommits, ranks: map[string][]int{}}
	known := 0
	if before != nil {
		known = len(before.commits)
		for name, ranks := range before.ranks {
			out.ranks[name] = ranks[:len(ranks):len(ranks)]
		}
	}
	added := slices.Clone(commits[:len(commits)-known])
	slices.Reverse(added) // so that ranks rise
	rank := known
	for part := range slices.Chunk(added, LineChunk) {
		changed, err := r.Mirror.PathsChanged(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, paths := range changed {
			for _, name := range paths {
				out.ranks[name] = append(out.ranks[name], rank)
			}
			rank++
		}
	}
	out.names = slices.Sorted(maps.Keys(out.ranks))
	return out, nil
}

// isEndOf says that the line's commits are the older end of a longer one, so that its ranks hold there.
func (li *lineIndex) isEndOf(longer []git.CommitInfo) bool {
	if !li.isWhole || len(longer) >= maxLineCommits || len(li.commits) > len(longer) {
		return false
	}
	end := longer[len(longer)-len(li.commits):]
	return slices.EqualFunc(li.commits, end, func(a, b git.CommitInfo) bool { return a.SHA == b.SHA })
}

// touching lists the commits that changed files which a scope covers, newest first.
func (li *lineIndex) touching(scope fieldedit.Scope) []git.CommitInfo {
	var ranks []int
	for _, name := range li.namesBelow(scope.Paths()) {
		if scope.Covers(name) {
			ranks = append(ranks, li.ranks[name]...)
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	out := make([]git.CommitInfo, 0, len(ranks))
	for _, rank := range slices.Backward(ranks) {
		out = append(out, li.commits[len(li.commits)-1-rank])
	}
	return out
}

// namesBelow lists the changed files that are one of some paths, or below one; all where paths is nil.
func (li *lineIndex) namesBelow(paths []string) []string {
	if paths == nil {
		return li.names
	}
	var out []string
	for _, p := range paths {
		if _, is := li.ranks[p]; is {
			out = append(out, p)
		}
		first, _ := slices.BinarySearch(li.names, p+"/")
		for _, name := range li.names[first:] {
			if !strings.HasPrefix(name, p+"/") {
				break
			}
			out = append(out, name)
		}
	}
	return out
}

// since cuts a list of the line's commits, newest first, to those from a commit on, with it. false where the line
// hasn't that commit.
func (li *lineIndex) since(list []git.CommitInfo, from string) ([]git.CommitInfo, bool) {
	start := slices.IndexFunc(li.commits, func(c git.CommitInfo) bool { return c.SHA == from })
	if start < 0 {
		return nil, false
	}
	newer := make(map[string]bool, start)
	for i := range start {
		newer[li.commits[i].SHA] = true
	}
	return slices.DeleteFunc(list, func(c git.CommitInfo) bool { return newer[c.SHA] }), true
}

// indexedLine gives the index of a branch's commits from a tip back to another commit, without that (empty: to the
// first one), at most maxLineCommits. It makes it once, and from that of an earlier tip.
func (g *GitGatherer) indexedLine(ctx context.Context, r *Repository, tip, until string) (*lineIndex, error) {
	key, latest := r.ID+"|"+until+"|"+tip, r.ID+"|"+until
	if ix, ok := g.lines.Get(key); ok {
		return ix, nil
	}
	g.indexing.Lock() // the first looks of all components want the same one
	defer g.indexing.Unlock()
	if ix, ok := g.lines.Get(key); ok {
		return ix, nil
	}
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: tip, Until: until, FirstParent: true, Limit: maxLineCommits})
	if err != nil {
		return nil, err
	}
	before, ok := g.lines.Get(latest)
	if !ok || !before.isEndOf(log) {
		before = nil
	}
	ix, err := indexLine(ctx, r, log, before)
	if err != nil {
		return nil, err
	}
	g.lines.Put(key, ix)
	g.lines.Put(latest, ix)
	return ix, nil
}

// LogTouching lists the commits of a pipeline's branch that touched files of a scope, newest first, from a commit on
// (empty: from the tip), at most so many. all says that there are no more. Down to the pipeline's baseline it looks
// into an index: many environments ask for the same line where nothing is on record, and git would walk it once for
// each. What is below that is git's to walk, as it may be long, or cut off in a shallow clone.
func (g *GitGatherer) LogTouching(ctx context.Context, r *Repository, tip, baseline, from string, scope fieldedit.Scope,
	most int) (log []git.CommitInfo, all bool, err error) {
	line, err := g.indexedLine(ctx, r, tip, baseline)
	if err != nil {
		return nil, false, err
	}
	log, rest := line.touching(scope), tip // rest is where the line goes on below the index; empty: nowhere
	if n := len(line.commits); n > 0 {
		rest = ""
		if parents := line.commits[n-1].Parents; len(parents) > 0 {
			rest = parents[0]
		}
	}
	if from != "" {
		var is bool
		if log, is = line.since(log, from); !is { // it is below the baseline, or not on the line
			rest = from
		}
	}
	switch {
	case len(log) >= most:
		return log[:most], false, nil
	case rest == "":
		return log, true, nil
	}
	older, err := g.walkTouching(ctx, r, rest, scope.Paths(), most-len(log))
	return append(log, older...), len(older) < most-len(log), err
}

// walkTouching lists the commits of the line from a commit on that touched files below some paths (nil: any), newest
// first, at most so many. It asks git, but for a repository's first commit: where the pipeline came with that, every
// promotion's line ends in it.
func (g *GitGatherer) walkTouching(ctx context.Context, r *Repository, from string, paths []string, most int) ([]git.CommitInfo, error) {
	info, err := r.Mirror.Commit(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(info.Parents) == 0 && paths != nil {
		for _, p := range paths {
			_, err := r.Mirror.Tree(from).Lstat(p)
			switch {
			case err == nil:
				return []git.CommitInfo{*info}, nil
			case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, git.ErrNotFollowed):
				return nil, err
			}
		}
		return nil, nil
	}
	return r.Mirror.Log(ctx, git.LogQuery{From: from, FirstParent: true, Paths: paths, Limit: most})
}

// TouchingBetween lists the commits after base, and up to head, that touched files of a scope, newest first: those of
// both lines of every merge. It asks git only where there is a merge between them, or they aren't on the line from
// tip back to the baseline.
func (g *GitGatherer) TouchingBetween(ctx context.Context, r *Repository, tip, baseline, head, base string, scope fieldedit.Scope,
	most int) ([]git.CommitInfo, error) {
	line, err := g.indexedLine(ctx, r, tip, baseline)
	if err != nil {
		return nil, err
	}
	placeOf := func(sha string) int {
		return slices.IndexFunc(line.commits, func(c git.CommitInfo) bool { return c.SHA == sha })
	}
	isMerge := func(c git.CommitInfo) bool { return len(c.Parents) > 1 }
	first, end := placeOf(head), placeOf(base)
	if first < 0 || end < first || slices.ContainsFunc(line.commits[first:end], isMerge) {
		return r.Mirror.Log(ctx, git.LogQuery{From: head, Until: base, Paths: scope.Paths(), Limit: most})
	}
	between := map[string]bool{}
	for i := range line.commits[first:end] {
		between[line.commits[first+i].SHA] = true
	}
	out := slices.DeleteFunc(line.touching(scope), func(c git.CommitInfo) bool { return !between[c.SHA] })
	return out[:min(len(out), most)], nil
}
