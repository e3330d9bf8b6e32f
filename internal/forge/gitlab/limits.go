package gitlab

import (
	"net/url"
	"time"

	"github.com/liftlock/liftlock/internal/forge/transport"
)

// limitsOf are the limits that gitlab.com publishes (user/gitlab_com, "GitLab.com-specific
// rate limits"), for each user. On other servers they are what their administrator sets:
// public says that gitlab.com's hold at base, whatever its name is.
func limitsOf(base *url.URL, public bool) []transport.Limit {
	if !public && base.Host != "gitlab.com" {
		return nil
	}
	return []transport.Limit{
		{Name: "calls", Calls: 2000, Every: time.Minute, Cost: func(string) int { return 1 }},
		{Name: "new notes", Calls: 60, Every: time.Minute, Cost: costOf("POST merge_requests/notes")},
		{Name: "looks at projects", Calls: 400, Every: time.Minute, Cost: costOf("GET projects")},
		{Name: "looks at users", Calls: 300, Every: 10 * time.Minute, Cost: costOf("GET users")},
	}
}

// costOf counts the calls of one endpoint.
func costOf(endpoint string) func(string) int {
	return func(called string) int {
		if called == endpoint {
			return 1
		}
		return 0
	}
}
