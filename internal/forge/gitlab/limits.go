package gitlab

import (
	"bytes"
	"net/http"
	"net/url"
	"time"

	"github.com/liftlock/liftlock/internal/forge/rest"
)

// CallLimits are limits of single calls, of each account in a minute, as a GitLab's administrator
// set them: its answers tell only of the limit of all calls. nil: as gitlab.com publishes it, or
// GitLab's own default on other servers; 0: there is none.
type CallLimits struct {
	NewNotes     *int // notes that are added
	ProjectReads *int // of a project itself
}

// gitlab.com publishes these (user/gitlab_com, "GitLab.com-specific rate limits"), for each user.
const (
	publicCalls        = 2000 // a minute
	publicNewNotes     = 60   // a minute
	publicProjectReads = 400  // a minute
	publicUserReads    = 300  // in ten minutes
)

// Other servers have these at first (administration/settings/rate_limit_on_notes_creation and
// rate_limit_on_projects_api); the limit of all calls is off there.
const (
	defaultNewNotes     = 300
	defaultProjectReads = 400
)

// limitsOf are the limits that a server's answers say nothing of: public says that gitlab.com's
// hold at base, whatever its name is.
func limitsOf(base *url.URL, public bool, set CallLimits) (limits []rest.Limit) {
	add := func(name string, calls int, every time.Duration, cost func(string) int) {
		if calls > 0 {
			limits = append(limits, rest.Limit{Name: name, Calls: calls, Every: every, Cost: cost})
		}
	}
	notes, projects := defaultNewNotes, defaultProjectReads
	if public || base.Host == "gitlab.com" {
		notes, projects = publicNewNotes, publicProjectReads
		add("calls", publicCalls, time.Minute, func(string) int { return 1 })
		add("looks at users", publicUserReads, 10*time.Minute, costOf("GET users"))
	}
	if set.NewNotes != nil {
		notes = *set.NewNotes
	}
	if set.ProjectReads != nil {
		projects = *set.ProjectReads
	}
	add("new notes", notes, time.Minute, costOf("POST merge_requests/notes"))
	add("looks at projects", projects, time.Minute, costOf("GET projects"))
	return limits
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

// isOfEndpoint says that a refusal is for the number of calls of one kind: of new notes, say. It
// names no time (administration/settings/user_and_ip_rate_limits).
func isOfEndpoint(_ *http.Response, body []byte) bool {
	return bytes.Contains(body, []byte("This endpoint has been requested too many times"))
}
