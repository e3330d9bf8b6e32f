package emulator

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultGitLabRateLimit is gitlab.com's: calls of a user in a minute.
	DefaultGitLabRateLimit = 2000
	gitlabPageSize         = 20
	// maxCounted is how many rows GitLab counts: past it a list doesn't say how long it is.
	maxCounted = 10000
)

// gitlabLimit is a limit that gitlab.com sets to one call (user/gitlab_com).
type gitlabLimit struct {
	name  string
	calls int
	every time.Duration
	plain bool // an application's limit: its 429 has no headers
}

var gitlabLimits = map[string]gitlabLimit{
	"GET /projects/{id}": {name: "throttle_project_api", calls: 400, every: time.Minute},
	"GET /groups/{id}":   {name: "throttle_group_api", calls: 400, every: time.Minute},
	"GET /users/{id}":    {name: "users_get_by_id", calls: 300, every: 10 * time.Minute, plain: true},
	"POST /projects/{id}/merge_requests/{noteable_id}/notes":          {name: "notes_create", calls: 60, every: time.Minute, plain: true},
	"POST /projects/{id}/hooks/{hook_id}/test/{trigger}":              testLimit,
	"POST /projects/{id}/hooks/{hook_id}/events/{hook_log_id}/resend": testLimit,
}

// testLimit holds everywhere, also where gitlab.com's other limits don't.
var testLimit = gitlabLimit{name: "web_hook_test", calls: 5, every: time.Minute, plain: true}

// chargeGitLab counts the call against its user's limits. Callers hold mu.
func (c *call) chargeGitLab(rt *route) error {
	limits := []gitlabLimit{{name: "throttle_authenticated_api", calls: c.rateLimit, every: time.Minute}}
	if one, ok := gitlabLimits[rt.pattern]; ok && (c.publicLimits || one == testLimit) {
		limits = append(limits, one)
	}
	for _, l := range limits {
		if err := c.chargeLimit(l); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) chargeLimit(l gitlabLimit) error {
	key := l.name + " " + strconv.FormatInt(c.user.id, 10)
	q := c.limits[key]
	if q == nil || !c.now().Before(q.reset) {
		q = &quota{reset: c.now().Add(l.every)}
		c.limits[key] = q
	}
	q.used++
	if !l.plain {
		c.header.Set("RateLimit-Limit", strconv.Itoa(l.calls))
		c.header.Set("RateLimit-Name", l.name)
		c.header.Set("RateLimit-Observed", strconv.Itoa(q.used))
		c.header.Set("RateLimit-Remaining", strconv.Itoa(max(0, l.calls-q.used)))
		c.header.Set("RateLimit-Reset", strconv.FormatInt(q.reset.Unix(), 10))
	}
	if q.used <= l.calls {
		return nil
	}
	if l.plain {
		return gitlabRefusal(http.StatusTooManyRequests, "This endpoint has been requested too many times. Try again later.")
	}
	c.header.Set("RateLimit-ResetTime", q.reset.Format(http.TimeFormat))
	// The reset is within a second: a client that waits exactly so long must not come early.
	c.header.Set("Retry-After", strconv.Itoa(int(q.reset.Sub(c.now())/time.Second)+1))
	return gitlabRefusal(http.StatusTooManyRequests, "Too Many Requests")
}

// pageOf is the call's page of a list, each element as show gives it, with the headers that
// lead to the others.
func pageOf[T any](c *call, all []T, show func(T) restObject) []restObject {
	q := c.r.URL.Query()
	size := min(atLeast(q.Get("per_page"), 1, gitlabPageSize), maxPageSize)
	page := atLeast(q.Get("page"), 1, 1)
	last := max(1, (len(all)+size-1)/size)
	c.setGitLabPages(page, size, last, len(all))
	shown := []restObject{}
	if page > last {
		return shown
	}
	for _, x := range all[(page-1)*size : min(page*size, len(all))] {
		shown = append(shown, show(x))
	}
	return shown
}

func (c *call) setGitLabPages(page, size, last, total int) {
	var links []string
	add := func(rel string, n int) {
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		q.Set("per_page", strconv.Itoa(size))
		u := url.URL{RawQuery: q.Encode()}
		links = append(links, fmt.Sprintf("<%s%s%s%s>; rel=%q", c.url, gitlabAPI, c.r.URL.EscapedPath(), u.String(), rel))
	}
	numbered := func(n int) string {
		if n < 1 || n > last {
			return ""
		}
		return strconv.Itoa(n)
	}
	if page > 1 {
		add("prev", page-1)
	}
	if page < last {
		add("next", page+1)
	}
	add("first", 1)
	c.header.Set("x-page", strconv.Itoa(page))
	c.header.Set("x-per-page", strconv.Itoa(size))
	c.header.Set("x-prev-page", numbered(page-1))
	c.header.Set("x-next-page", numbered(page+1))
	if total <= maxCounted {
		add("last", last)
		c.header.Set("x-total", strconv.Itoa(total))
		c.header.Set("x-total-pages", strconv.Itoa(last))
	}
	c.header.Set("Link", strings.Join(links, ", "))
}
