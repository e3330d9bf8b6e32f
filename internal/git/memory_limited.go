package git

import "math"

// limitedWalk is a history without another one's. Where commits are simplified, it
// matters which parents were already known to be excluded; so it goes the way
// that git goes, by date.
type limitedWalk struct {
	simplifier
	commits map[*memoryCommit]*limitedCommit
	queue   commitQueue
}

type limitedCommit struct {
	parents  []*memoryCommit // to follow; all, until it was simplified
	same     bool
	excluded bool
	bottom   bool // it was named as excluded, so what was merged from it counts
	queued   bool // now or before
	parsed   bool // git has read it, and so knows its parents
	listed   bool
	children int // in the list, that are to be given before it
}

// limitSlop is how many excluded commits are read after the last one that counts (git's SLOP):
// their dates may be wrong.
const limitSlop = 5

func (s *simplifier) walkLimited(from, until *memoryCommit) func() (*memoryCommit, error) {
	w := &limitedWalk{simplifier: *s, commits: map[*memoryCommit]*limitedCommit{}, queue: commitQueue{before: byDate}}
	w.irrelevant = func(c *memoryCommit) bool {
		at := w.stateOf(c)
		return at.excluded && !at.bottom
	}
	var list []*memoryCommit
	ready := commitQueue{before: byDate}
	started := false
	return func() (*memoryCommit, error) {
		if !started {
			started = true
			var err error
			if list, err = w.listIncluded(from, until); err != nil {
				return nil, err
			}
			w.countChildren(list, &ready)
		}
		for ready.Len() > 0 {
			c := ready.takeFirst()
			at := w.stateOf(c)
			for _, p := range at.parents {
				node := w.stateOf(p)
				if node.children--; node.listed && node.children == 0 {
					ready.putCommit(p)
				}
			}
			if !at.same && !at.excluded {
				return c, nil
			}
		}
		return nil, nil
	}
}

func (l *limitedWalk) stateOf(c *memoryCommit) *limitedCommit {
	at := l.commits[c]
	if at == nil {
		at = &limitedCommit{parents: c.parents}
		l.commits[c] = at
	}
	return at
}

func (l *limitedWalk) putOnce(c *memoryCommit) {
	at := l.stateOf(c)
	if !at.queued {
		at.queued = true
		l.queue.putCommit(c)
	}
}

// listIncluded lists, by date, what isn't excluded; of that more may turn out to be.
func (l *limitedWalk) listIncluded(from, until *memoryCommit) ([]*memoryCommit, error) {
	bottom := l.stateOf(until)
	bottom.excluded, bottom.bottom, bottom.parsed = true, true, true
	l.stateOf(from).parsed = true
	l.excludeParents(until)
	l.putOnce(from)
	l.putOnce(until)
	var list []*memoryCommit
	slop, oldest := limitSlop, int64(math.MaxInt64)
	for l.queue.Len() > 0 {
		c := l.queue.takeFirst()
		at := l.stateOf(c)
		if !at.excluded {
			var err error
			if at.parents, at.same, err = l.simplify(c); err != nil {
				return nil, err
			}
			for _, p := range c.parents { // git has read those that it compared
				l.stateOf(p).parsed = true
				if l.firstParent || at.same && len(at.parents) == 1 && p == at.parents[0] {
					break
				}
			}
			for _, p := range at.parents {
				l.putOnce(p)
			}
			oldest = c.info.CommitTime.Unix()
			at.listed = true
			list = append(list, c)
			continue
		}
		for _, p := range at.parents {
			parent := l.stateOf(p)
			parent.excluded, parent.parsed = true, true
			l.excludeParents(p)
			l.putOnce(p)
		}
		if slop = l.remainingSlop(oldest, slop); slop == 0 {
			break
		}
	}
	return list, nil
}

// excludeParents excludes the parents of an excluded commit, and theirs as far as git
// has read them.
func (l *limitedWalk) excludeParents(c *memoryCommit) {
	pending := append([]*memoryCommit(nil), l.stateOf(c).parents...)
	for len(pending) > 0 {
		at := l.stateOf(pending[len(pending)-1])
		pending = pending[:len(pending)-1]
		if at.excluded {
			continue
		}
		at.excluded = true
		if at.parsed {
			pending = append(pending, at.parents...)
		}
	}
}

// remainingSlop is how many more excluded commits are read; 0: it is over.
func (l *limitedWalk) remainingSlop(oldest int64, slop int) int {
	if l.queue.Len() == 0 {
		return 0
	}
	if oldest <= l.queue.peekFirst().info.CommitTime.Unix() {
		return limitSlop
	}
	for _, item := range l.queue.items {
		if !l.stateOf(item.commit).excluded {
			return limitSlop
		}
	}
	return slop - 1
}

// countChildren readies the list to be given in topological order, by date.
func (l *limitedWalk) countChildren(list []*memoryCommit, ready *commitQueue) {
	for _, c := range list {
		for _, p := range l.stateOf(c).parents {
			l.stateOf(p).children++
		}
	}
	for _, c := range list {
		if l.stateOf(c).children == 0 {
			ready.putCommit(c)
		}
	}
}
