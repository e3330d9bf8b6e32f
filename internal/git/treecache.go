package git

import "sync"

// maxCachedEntries bounds one generation of the cache; at about 120 bytes an
// entry the two generations take some 25 MB at most.
const maxCachedEntries = 100_000

// treeCache keeps parsed folders by the id of their tree object, so that
// commits that share folders share their listings. There are two generations:
// when the young one is full it becomes the old one, and the old one goes.
type treeCache struct {
	mu         sync.Mutex
	young, old generation
}

type generation struct {
	lists map[string][]treeEntry // by tree id
	roots map[string]string      // commit id → its tree's id
	size  int
}

func newTreeCache() *treeCache {
	c := &treeCache{}
	c.clear()
	return c
}

func newGeneration() generation {
	return generation{lists: map[string][]treeEntry{}, roots: map[string]string{}}
}

func (c *treeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = newGeneration(), newGeneration()
}

func (c *treeCache) get(sha string) ([]treeEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.young.lists[sha]; ok {
		return e, true
	}
	e, ok := c.old.lists[sha]
	if ok {
		c.makeRoom(1 + len(e))
		c.young.lists[sha] = e
	}
	return e, ok
}

func (c *treeCache) put(sha string, entries []treeEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom(1 + len(entries))
	c.young.lists[sha] = entries
}

func (c *treeCache) rootOf(commit string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sha, ok := c.young.roots[commit]; ok {
		return sha, true
	}
	sha, ok := c.old.roots[commit]
	if ok {
		c.makeRoom(1)
		c.young.roots[commit] = sha
	}
	return sha, ok
}

func (c *treeCache) putRoot(commit, tree string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom(1)
	c.young.roots[commit] = tree
}

// makeRoom makes room in the young generation.
func (c *treeCache) makeRoom(n int) {
	if c.young.size+n > maxCachedEntries && c.young.size > 0 {
		c.old, c.young = c.young, newGeneration()
	}
	c.young.size += n
}
