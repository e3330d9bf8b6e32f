package git

import (
	"container/heap"
	"sync/atomic"
)

// memoryCommit is a commit with its place in the history.
type memoryCommit struct {
	info       *CommitInfo // shared, so nobody changes it
	parents    []*memoryCommit
	number     int // in the order of writing: larger than its parents'
	generation int // larger than its parents'

	// Along the line of first parents: how long it is, and a commit far down,
	// so that any is found in a few jumps.
	depth int
	jump  *memoryCommit

	changed atomic.Pointer[[]string] // the paths that it changed, once somebody wanted them
}

func (m *memoryCommit) firstParent() *memoryCommit {
	if len(m.parents) == 0 {
		return nil
	}
	return m.parents[0]
}

// setJump completes a new commit (Myers, "An applicative random-access stack").
func (m *memoryCommit) setJump() {
	p := m.firstParent()
	if p == nil {
		m.jump = m
		return
	}
	m.depth = p.depth + 1
	m.jump = p
	if p.depth-p.jump.depth == p.jump.depth-p.jump.jump.depth {
		m.jump = p.jump.jump
	}
}

// isOnLine says that a commit is reached by first parents alone.
func (m *memoryCommit) isOnLine(ancestor *memoryCommit) bool {
	for m.depth > ancestor.depth {
		if m.jump.depth >= ancestor.depth {
			m = m.jump
		} else {
			m = m.parents[0]
		}
	}
	return m == ancestor
}

// commitSet is a set of commits, by their numbers.
type commitSet []uint64

// add says whether the commit wasn't in it.
func (cs *commitSet) add(c *memoryCommit) bool {
	word, bit := c.number/64, uint64(1)<<(c.number%64)
	for len(*cs) <= word {
		*cs = append(*cs, 0)
	}
	isNew := (*cs)[word]&bit == 0
	(*cs)[word] |= bit
	return isNew
}

// addHistory adds a commit and its history, to a set that has the history of all that
// is in it.
func (cs *commitSet) addHistory(tip *memoryCommit) {
	for pending := []*memoryCommit{tip}; len(pending) > 0; {
		c := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if cs.add(c) {
			pending = append(pending, c.parents...)
		}
	}
}

func (cs commitSet) has(c *memoryCommit) bool {
	word := c.number / 64
	return word < len(cs) && cs[word]&(1<<(c.number%64)) != 0
}

// commitQueue gives commits in an order; of equal ones the one that was put first.
type commitQueue struct {
	before func(a, b *memoryCommit) bool
	items  []queuedCommit
	puts   int
}

type queuedCommit struct {
	commit *memoryCommit
	put    int
}

func byGeneration(a, b *memoryCommit) bool { return a.generation > b.generation }

func byDate(a, b *memoryCommit) bool { return a.info.CommitTime.After(b.info.CommitTime) }

func (cq *commitQueue) Len() int { return len(cq.items) }

func (cq *commitQueue) Less(i, j int) bool {
	a, b := cq.items[i], cq.items[j]
	switch {
	case cq.before(a.commit, b.commit):
		return true
	case cq.before(b.commit, a.commit):
		return false
	}
	return a.put < b.put
}

func (cq *commitQueue) Swap(i, j int) { cq.items[i], cq.items[j] = cq.items[j], cq.items[i] }

func (cq *commitQueue) Push(x any) { cq.items = append(cq.items, x.(queuedCommit)) }

func (cq *commitQueue) Pop() any {
	last := cq.items[len(cq.items)-1]
	cq.items = cq.items[:len(cq.items)-1]
	return last
}

func (cq *commitQueue) putCommit(c *memoryCommit) {
	cq.puts++
	heap.Push(cq, queuedCommit{c, cq.puts})
}

func (cq *commitQueue) takeFirst() *memoryCommit { return heap.Pop(cq).(queuedCommit).commit }

func (cq *commitQueue) peekFirst() *memoryCommit { return cq.items[0].commit }

// ancestry tells what is in a commit's history. It goes back only as far as it is
// asked, and may be asked many times.
type ancestry struct {
	seen  commitSet
	queue commitQueue
}

func newAncestry(of *memoryCommit) *ancestry {
	a := &ancestry{queue: commitQueue{before: byGeneration}}
	a.seen.add(of)
	a.queue.putCommit(of)
	return a
}

// holds says whether the history has a commit.
func (a *ancestry) holds(c *memoryCommit) bool {
	for a.queue.Len() > 0 && a.queue.peekFirst().generation > c.generation {
		for _, p := range a.queue.takeFirst().parents {
			if a.seen.add(p) {
				a.queue.putCommit(p)
			}
		}
	}
	return a.seen.has(c)
}

// findMergeBases are the commits that both histories have and that no other of them
// has in its history.
func findMergeBases(a, b *memoryCommit) []*memoryCommit {
	const ofA, ofB, known = 1, 2, 4 // known: it is in the history of one that was found
	marks := map[*memoryCommit]int{}
	queue := commitQueue{before: byGeneration}
	open := 0 // commits in the queue from which something may be found
	mark := func(c *memoryCommit, with int) {
		was, seen := marks[c]
		marks[c] = was | with
		switch {
		case !seen:
			queue.putCommit(c)
			if with&known == 0 {
				open++
			}
		case was&known == 0 && with&known != 0:
			open--
		}
	}
	mark(a, ofA)
	mark(b, ofB)
	var found []*memoryCommit
	for open > 0 {
		c := queue.takeFirst()
		m := marks[c]
		if m&known == 0 {
			open--
			if m == ofA|ofB {
				found = append(found, c)
				m |= known
			}
		}
		for _, p := range c.parents {
			mark(p, m)
		}
	}
	return found
}
