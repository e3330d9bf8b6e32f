package emulator

import (
	"net/http"
	"strconv"
	"time"
)

// quota is an account's REST calls in the present hour.
type quota struct {
	used  int
	reset time.Time
}

// quotaID is whose limits the call counts against: an account's, or an installation's.
func (c *call) quotaID() int64 {
	if c.token != nil {
		return c.token.installation.quotaID
	}
	return c.user.id
}

// chargeQuota counts the call against its user's hourly limit. Callers hold mu.
func (c *call) chargeQuota() error {
	id, whose := c.quotaID(), "user"
	if c.token != nil {
		whose = "installation"
	}
	q := c.quotas[id]
	if q == nil || !c.now().Before(q.reset) {
		q = &quota{reset: c.now().Add(time.Hour)}
		c.quotas[id] = q
	}
	q.used++
	c.quota = q
	c.setQuotaHeaders()
	if q.used > c.rateLimit {
		c.limited++
		return newAPIError(http.StatusForbidden, "API rate limit exceeded for %s ID %d.", whose, id)
	}
	return nil
}

// refundQuota takes a call back: answers of 304 cost nothing.
func (c *call) refundQuota() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota.used--
	c.setQuotaHeaders()
}

func (c *call) setQuotaHeaders() {
	q := c.quota
	c.header.Set("X-RateLimit-Limit", strconv.Itoa(c.rateLimit))
	c.header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, c.rateLimit-q.used)))
	c.header.Set("X-RateLimit-Used", strconv.Itoa(min(q.used, c.rateLimit)))
	c.header.Set("X-RateLimit-Reset", strconv.FormatInt(q.reset.Unix(), 10))
	c.header.Set("X-RateLimit-Resource", "core")
}
