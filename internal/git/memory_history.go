package git

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

func (m *memory) isAncestor(_ context.Context, ancestor, descendant string) (bool, error) {
	a, d, err := m.findPair(ancestor, descendant)
	if err != nil {
		return false, err
	}
	return d.isOnLine(a) || newAncestry(d).holds(a), nil
}

func (m *memory) findMergeBase(_ context.Context, a, b string) (sha string, ok bool, err error) {
	x, y, err := m.findPair(a, b)
	if err != nil {
		return "", false, err
	}
	var newest *memoryCommit
	for _, c := range findMergeBases(x, y) {
		if newest == nil || byDate(c, newest) {
			newest = c
		}
	}
	if newest == nil {
		return "", false, nil
	}
	return newest.info.SHA, true, nil
}

func (m *memory) listCommits(ctx context.Context, q LogQuery) ([]string, error) {
	from, err := m.findCommit(q.From)
	if err != nil {
		return nil, err
	}
	paths, err := cleanPathspecs(q.Paths)
	if err != nil {
		return nil, fmt.Errorf("list the history of %s: %w", q.From, err)
	}
	s := &simplifier{objects: m.objects, paths: paths, firstParent: q.FirstParent}
	var next func() (*memoryCommit, error) // the next commit, newest first; nil: the end
	if q.Until == "" {
		next = s.walkLine(from, nil)
		if !q.FirstParent {
			next = s.walkByDate(from)
		}
	} else {
		until, err := m.findCommit(q.Until)
		if err != nil {
			return nil, err
		}
		next = s.walkLine(from, until)
		// Only at the end of a line that doesn't end at until does it matter what git
		// knows to be excluded.
		if !q.FirstParent || len(paths) > 0 && !from.isOnLine(until) {
			next = s.walkLimited(from, until)
		}
	}
	var shas []string
	for len(shas) < q.Limit && ctx.Err() == nil {
		c, err := next()
		if err != nil {
			return nil, fmt.Errorf("list the history of %s: %w", q.From, err)
		}
		if c == nil {
			break
		}
		if strings.Contains(c.info.Message, q.Grep) {
			shas = append(shas, c.info.SHA)
		}
	}
	return shas, ctx.Err()
}

// cleanPathspecs refuses the paths that git does.
func cleanPathspecs(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		clean := path.Clean(p)
		if p == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
			return nil, &Error{Op: fmt.Sprintf("find %q", shortenForLog(p)), Kind: ErrInvalid,
				Hint: "a path is relative to the repository's root"}
		}
		out = append(out, clean)
	}
	return out, nil
}

// simplifier is git's history simplification, of its default kind (git help rev-list). Where a
// merge's paths are as in one of its parents, its history is that parent's, and only that parent is
// followed.
type simplifier struct {
	objects     *memoryObjects
	paths       []string // none: nothing is simplified
	firstParent bool
	// irrelevant says which parents are known to be excluded. nil: none is.
	irrelevant func(*memoryCommit) bool
}

// simplify gives the parents to follow, and whether the paths are as in them, so that
// the commit itself isn't part of the story.
func (s *simplifier) simplify(c *memoryCommit) (parents []*memoryCommit, same bool, err error) {
	parents = c.parents
	if s.firstParent && len(parents) > 1 {
		parents = parents[:1]
	}
	if len(s.paths) == 0 {
		return parents, false, nil
	}
	if len(parents) == 0 {
		differs, err := s.differs("", c.info.Tree)
		return nil, !differs, err
	}
	relevant, relevantChange, irrelevantChange := 0, false, false
	if len(parents) < len(c.parents) && !s.isIrrelevant(c.parents[1]) {
		relevant++ // git counts it, and compares it not
	}
	for i, p := range parents {
		isRelevant := !s.isIrrelevant(p)
		if isRelevant {
			relevant++
		}
		differs, err := s.differsFromParent(c, i)
		switch {
		case err != nil:
			return nil, false, err
		case !differs && isRelevant:
			return parents[i : i+1], true, nil
		case differs && isRelevant:
			relevantChange = true
		case differs:
			irrelevantChange = true
		}
	}
	if relevant > 0 {
		return parents, !relevantChange, nil
	}
	return parents, !irrelevantChange, nil
}

func (s *simplifier) isIrrelevant(p *memoryCommit) bool {
	return s.irrelevant != nil && s.irrelevant(p)
}

func (s *simplifier) differsFromParent(c *memoryCommit, parent int) (bool, error) {
	p := c.parents[parent]
	if parent > 0 || c.info.Tree == p.info.Tree {
		return s.differs(p.info.Tree, c.info.Tree)
	}
	changed, err := s.objects.listCommitChanges(c)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(changed, func(file string) bool { return isBelowAny(file, s.paths) }), nil
}

// differs says whether two trees ("": none) differ at one of the paths.
func (s *simplifier) differs(a, b string) (bool, error) {
	if a == b {
		return false, nil
	}
	if a == "" {
		a = emptyTree
	}
	for _, p := range s.paths {
		was, _ := s.objects.findPath(a, p)
		is, _ := s.objects.findPath(b, p)
		if was != is {
			return true, nil
		}
	}
	return false, nil
}

// listCommitChanges are the paths that a commit changed of its first parent's files.
func (m *memoryObjects) listCommitChanges(c *memoryCommit) ([]string, error) {
	if known := c.changed.Load(); known != nil {
		return *known, nil
	}
	before := ""
	if p := c.firstParent(); p != nil {
		before = p.info.Tree
	}
	changes, err := m.listChanges(before, c.info.Tree)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(changes))
	for i := range changes {
		paths[i] = changes[i].Path
	}
	c.changed.Store(&paths)
	return paths, nil
}

// walkLine gives the line of first parents, back to the first that until's history
// has (nil: to the beginning).
func (s *simplifier) walkLine(at, until *memoryCommit) func() (*memoryCommit, error) {
	var excluded *ancestry
	if until != nil {
		excluded = newAncestry(until)
	}
	return func() (*memoryCommit, error) {
		for at != nil && (excluded == nil || !excluded.holds(at)) {
			c := at
			_, same, err := s.simplify(c)
			if err != nil {
				return nil, err
			}
			at = c.firstParent()
			if !same {
				return c, nil
			}
		}
		return nil, nil
	}
}

// simplified is a commit of which is known what to follow.
type simplified struct {
	parents  []*memoryCommit
	same     bool
	children int // that are to be given before it
}

// dateWalk gives a whole history by date, no commit before one of its descendants. It looks no
// further back than it must: at the commits with a larger generation than the next one can have.
type dateWalk struct {
	simplifier
	commits  map[*memoryCommit]*simplified
	explored commitQueue // what is to be simplified
	ready    commitQueue // what has no children that are still to be given
}

func (s *simplifier) walkByDate(from *memoryCommit) func() (*memoryCommit, error) {
	w := &dateWalk{simplifier: *s, commits: map[*memoryCommit]*simplified{from: {}},
		explored: commitQueue{before: byGeneration}, ready: commitQueue{before: byDate}}
	w.explored.putCommit(from)
	w.ready.putCommit(from)
	return w.nextCommit
}

func (d *dateWalk) nextCommit() (*memoryCommit, error) {
	for d.ready.Len() > 0 {
		c := d.ready.takeFirst()
		if err := d.exploreDownTo(c.generation); err != nil {
			return nil, err
		}
		at := d.commits[c]
		for _, p := range at.parents {
			// All children that p can have are known now.
			if err := d.exploreDownTo(p.generation + 1); err != nil {
				return nil, err
			}
			node := d.commits[p]
			if node.children--; node.children == 0 {
				d.ready.putCommit(p)
			}
		}
		if !at.same {
			return c, nil
		}
	}
	return nil, nil
}

// exploreDownTo simplifies all commits of at least a generation.
func (d *dateWalk) exploreDownTo(generation int) error {
	for d.explored.Len() > 0 && d.explored.peekFirst().generation >= generation {
		c := d.explored.takeFirst()
		parents, same, err := d.simplify(c)
		if err != nil {
			return err
		}
		node := d.commits[c]
		node.parents, node.same = parents, same
		for _, p := range parents {
			if d.commits[p] == nil {
				d.commits[p] = &simplified{}
				d.explored.putCommit(p)
			}
			d.commits[p].children++
		}
	}
	return nil
}
