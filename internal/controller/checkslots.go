package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// maxConcurrentChecks bounds how many strangers' pull requests are evaluated at the
	// same time: most workers stay free for what Liftlock is there for.
	maxConcurrentChecks = 2
	// expectedCheck is how long a check is taken to last until it is over, so that an author with
	// one under way is behind those who have none.
	expectedCheck = 30 * time.Second
	// slowCheck is the least time of a check that leaves its repository one place fewer than there
	// are, for slowCheckMemory. So another's quick check needn't wait until a slow one ends.
	slowCheck       = 5 * time.Second
	slowCheckMemory = 10 * time.Minute
	// maxWaitingChecks bounds the authors, by repository, whose waiting checks are remembered.
	maxWaitingChecks = 5000
	// slotPatience is how often one that waits may be late to ask again before
	// others go first.
	slotPatience = 3
)

// checkSlots shares the places for evaluations of strangers' pull requests, first between
// repositories and then between a repository's authors. Each gets them by the time that its checks
// took (start-time fair queuing). An author who opens a hundred slow ones delays another's by those
// that are under way and no more. Once they were seen to be slow, they delay no other repository's.
// It is safe for concurrent use.
type checkSlots struct {
	now func() time.Time

	mu           sync.Mutex
	running      int
	remembered   int // authors
	repositories slotShares[*repositorySlots]
}

// repositorySlots are the shares of one repository's authors.
type repositorySlots struct {
	authors   slotShares[*waitingCheck]
	slowUntil time.Time // until when it is known for slow checks
}

// limit is how many places a repository may have at once.
func (r *repositorySlots) limit(now time.Time) int {
	if now.Before(r.slowUntil) {
		return maxConcurrentChecks - 1
	}
	return maxConcurrentChecks
}

// waitingCheck is the first of an author's checks that waits.
type waitingCheck struct {
	pull  int // 0: none waits
	since time.Time
	until time.Time // when it counts as gone, unless it asks again
}

func (w *waitingCheck) waits(now time.Time) bool { return w.pull != 0 && now.Before(w.until) }

// slotShares are shares of one kind by name. A share begins where the last one that was
// served began, so that having rested gains nothing.
type slotShares[T any] struct {
	served time.Duration // where the last one that was served began
	byName map[string]*slotShare[T]
}

type slotShare[T any] struct {
	end     time.Duration // of what it was served
	running int
	of      T
}

// start is where a share's next check would begin.
func (s *slotShares[T]) start(share *slotShare[T]) time.Duration { return max(s.served, share.end) }

// serve charges a share for a check that begins.
func (s *slotShares[T]) serve(share *slotShare[T]) {
	s.served = s.start(share)
	share.end, share.running = s.served+expectedCheck, share.running+1
}

// settle charges a share for what a check took more, or less, than was expected.
func (share *slotShare[T]) settle(took time.Duration) {
	share.end, share.running = share.end+took-expectedCheck, share.running-1
}

func newCheckSlots(now func() time.Time) *checkSlots {
	return &checkSlots{now: now, repositories: slotShares[*repositorySlots]{byName: map[string]*slotShare[*repositorySlots]{}}}
}

// enter takes a place for a pull request's check on an author's account, if one is free and
// nobody who waits comes first. Otherwise it waits, as long as it asks again within delay.
func (c *checkSlots) enter(repository, author string, pull int, delay time.Duration) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.running < maxConcurrentChecks || c.remembered >= maxWaitingChecks {
		c.forgetIdle(now)
	}
	repo, share := c.share(repository, author)
	if share == nil {
		return nil, false // too many wait: it isn't remembered, and comes when there are fewer
	}
	if w := share.of; !w.waits(now) {
		*w = waitingCheck{pull: pull, since: now}
	}
	if share.of.pull != pull {
		return nil, false // another of its author's comes first
	}
	share.of.until = now.Add(slotPatience * delay)
	if c.running >= maxConcurrentChecks || !slices.Contains(c.next(now, maxConcurrentChecks-c.running), share) {
		return nil, false
	}
	share.of.pull = 0
	c.running++
	c.repositories.serve(repo)
	repo.of.authors.serve(share)
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		ended := c.now()
		took := ended.Sub(now)
		if took >= slowCheck {
			repo.of.slowUntil = ended.Add(slowCheckMemory)
		}
		c.running--
		repo.settle(took)
		share.settle(took)
	}), true
}

// occupied counts the places that are taken.
func (c *checkSlots) occupied() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// share finds an author's share, or makes one where there is room. c.mu is held.
func (c *checkSlots) share(repository, author string) (*slotShare[*repositorySlots], *slotShare[*waitingCheck]) {
	repo := c.repositories.byName[repository]
	if repo != nil && repo.of.authors.byName[author] != nil {
		return repo, repo.of.authors.byName[author]
	}
	if c.remembered >= maxWaitingChecks {
		return nil, nil
	}
	if repo == nil {
		repo = &slotShare[*repositorySlots]{of: &repositorySlots{
			authors: slotShares[*waitingCheck]{byName: map[string]*slotShare[*waitingCheck]{}}}}
		c.repositories.byName[repository] = repo
	}
	c.remembered++
	share := &slotShare[*waitingCheck]{of: &waitingCheck{}}
	repo.of.authors.byName[author] = share
	return repo, share
}

// next are those who wait and come first, at most n of them. c.mu is held.
func (c *checkSlots) next(now time.Time, n int) []*slotShare[*waitingCheck] {
	type place struct {
		repo, author time.Duration
		share        *slotShare[*waitingCheck]
	}
	order := func(a, b place) int {
		return cmp.Or(cmp.Compare(a.repo, b.repo), cmp.Compare(a.author, b.author),
			a.share.of.since.Compare(b.share.of.since), cmp.Compare(a.share.of.pull, b.share.of.pull))
	}
	var free []place
	for _, repo := range c.repositories.byName {
		var its []place
		for _, share := range repo.of.authors.byName {
			if share.of.waits(now) {
				its = append(its, place{c.repositories.start(repo), repo.of.authors.start(share), share})
			}
		}
		slices.SortFunc(its, order)
		free = append(free, its[:min(max(repo.of.limit(now)-repo.running, 0), len(its))]...)
	}
	slices.SortFunc(free, order)
	var out []*slotShare[*waitingCheck]
	for _, p := range free[:min(max(n, 0), len(free))] {
		out = append(out, p.share)
	}
	return out
}

// forgetIdle drops the shares of those who have nothing under way, don't wait, and would begin
// where every new one does. In a repository where none waits those are all, and where too many are
// remembered those are all that have nothing under way. c.mu is held.
func (c *checkSlots) forgetIdle(now time.Time) {
	busy := false
	for name, repo := range c.repositories.byName {
		waits := false
		for _, share := range repo.of.authors.byName {
			waits = waits || share.of.waits(now)
		}
		all := !waits && repo.running == 0 || c.remembered >= maxWaitingChecks
		for author, share := range repo.of.authors.byName {
			rests := share.running == 0 && !share.of.waits(now)
			if rests && (all || share.end <= repo.of.authors.served) {
				delete(repo.of.authors.byName, author)
				c.remembered--
			}
		}
		if len(repo.of.authors.byName) == 0 && repo.end <= c.repositories.served {
			delete(c.repositories.byName, name)
		}
		busy = busy || waits || repo.running > 0
	}
	if !busy { // all begin anew
		c.repositories.byName, c.repositories.served, c.remembered = map[string]*slotShare[*repositorySlots]{}, 0, 0
	}
}
