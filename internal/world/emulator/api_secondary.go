package emulator

import (
	"net/http"
	"strings"
	"time"
)

// secondaryLimit is a limit of GitHub's that no answer mentions until it is passed ("Rate limits
// for the REST API", secondary rate limits). It holds in every stretch of time of that length.
type secondaryLimit struct {
	calls int
	every time.Duration
	cost  func(pattern string) int
}

var secondaryLimits = []secondaryLimit{
	{calls: 900, every: time.Minute, cost: pointsOf},
	{calls: 80, every: time.Minute, cost: contentOf},
	{calls: 500, every: time.Hour, cost: contentOf},
}

// secondaryWait is what GitHub asks to wait for.
const secondaryWait = "60"

// pointsOf is what a call counts: one that only reads a fifth of the others.
func pointsOf(pattern string) int {
	if strings.HasPrefix(pattern, "GET ") {
		return 1
	}
	return 5
}

// contentOf is 1 for what makes or changes something that people are notified of.
func contentOf(pattern string) int {
	switch strings.ReplaceAll(pattern, repoPath, "") {
	case "POST /pulls", "POST /pulls/{number}/reviews", "POST /issues/{number}/comments", "PATCH /issues/comments/{id}":
		return 1
	}
	return 0
}

// chargeSecondary counts a call against the limits of who makes it. Callers hold mu.
func (c *call) chargeSecondary(pattern string) error {
	if c.secondaryShare <= 0 {
		return nil
	}
	id := c.quotaID()
	if c.past[id] == nil {
		c.past[id] = make([][]time.Time, len(secondaryLimits))
	}
	now, over := c.now(), false
	for i, l := range secondaryLimits {
		seen := c.past[id][i]
		for len(seen) > 0 && now.Sub(seen[0]) >= l.every {
			seen = seen[1:]
		}
		for range l.cost(pattern) {
			seen = append(seen, now)
		}
		c.past[id][i] = seen
		over = over || l.cost(pattern) > 0 && len(seen) > l.calls/c.secondaryShare
	}
	if !over {
		return nil
	}
	c.limited++
	e := newAPIError(http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
	e.Docs, e.Header = docsURL+"/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits",
		http.Header{"Retry-After": {secondaryWait}}
	return e
}

// Limited is how many calls were refused for the number of them.
func (f *Forge) Limited() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.limited
}
