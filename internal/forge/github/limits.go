package github

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge/rest"
)

// limitsOf are the limits that GitHub publishes and sends no state of ("Rate limits for the REST
// API", secondary limits). They are those of its public service, and of its hosting for an
// enterprise. A GitHub Enterprise Server has none unless an administrator turns them on. public
// says that the public service's limits hold at base, whatever its name is.
func limitsOf(base *url.URL, public bool) []rest.Limit {
	if !public && base.Host != "api.github.com" && !strings.HasSuffix(base.Host, hostedSuffix) {
		return nil
	}
	return []rest.Limit{
		{Name: "points", Calls: 900, Every: time.Minute, Cost: pointsOf},
		{Name: "new content", Calls: 80, Every: time.Minute, Cost: contentOf},
		{Name: "new content", Calls: 500, Every: time.Hour, Cost: contentOf},
	}
}

// pointsOf is what a call counts: one that changes something as much as five others.
func pointsOf(endpoint string) int {
	if strings.HasPrefix(endpoint, "GET ") {
		return 1
	}
	return 5
}

// contentOf is 1 for what makes something that people see: pull requests, requests of
// reviews and comments. Edits of comments are taken for it too; GitHub doesn't say.
func contentOf(endpoint string) int {
	switch endpoint {
	case "POST pulls", "POST issues/comments", "PATCH issues/comments":
		return 1
	}
	return 0
}

// hideLimits keeps go-github from what answers say of limits. It would remember them too, and
// refuse calls by this machine's clock, for one of an identity's clients alone. The budget does it
// by GitHub's, for all of them. Answers from httpcache's (gregjones) cache have this header, and
// say nothing new of limits: go-github remembers none of it.
func hideLimits(h http.Header) { h.Set("X-From-Cache", "1") }
