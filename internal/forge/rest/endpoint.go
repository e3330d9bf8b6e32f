package rest

import (
	"net/url"
	"strings"
)

// pathWords are the path segments that name a thing of a forge's API. Everything
// else in a path (owners, numbers, branches) is left out of an endpoint's name.
var pathWords = map[string]bool{
	"activities": true, "activity": true, "approvals": true, "award_emoji": true, "blobs": true, "access_tokens": true, "app": true,
	"branch_protections": true, "branches": true, "collaborators": true, "comments": true, "commits": true, "compare": true,
	"deliveries": true, "events": true, "feeds": true, "git": true, "graphql": true, "groups": true, "installation": true,
	"installations": true, "hooks": true, "issues": true, "labels": true, "members": true, "memberships": true, "merge": true,
	"merge_requests": true, "notes": true, "orgs": true, "permission": true,
	"protected_branches": true, "protection": true, "pull": true, "pulls": true, "reactions": true, "refs": true, "reviewers": true,
	"reviews": true, "rules": true, "rulesets": true,
	"search": true, "status": true, "statuses": true, "teams": true, "trees": true, "user": true, "test": true, "users": true,
	"version": true, "versions": true,
}

// maxWords keeps names short and their number bounded, whatever a branch is called.
const maxWords = 3

// Endpoint names a call for metrics: the method and the API's own words in the
// path, without what is particular to one call: "PUT pulls/merge".
func Endpoint(method, base, path string) string {
	segments := strings.Split(strings.Trim(strings.TrimPrefix(path, strings.TrimSuffix(base, "/")), "/"), "/")
	if len(segments) >= 3 && segments[0] == "repos" {
		segments = segments[3:]
		if len(segments) == 0 {
			return method + " repos"
		}
	}
	if segments[0] == "projects" { // by number; by path only itself
		if len(segments) < 3 || strings.Trim(segments[1], "0123456789") != "" {
			return method + " projects"
		}
		segments = segments[2:]
	}
	var named []string
	for _, s := range segments {
		if pathWords[s] && len(named) < maxWords {
			named = append(named, s)
		}
	}
	return method + " " + strings.Join(named, "/")
}

// Segment makes one path segment of a name from outside: it can't leave its
// place in the path, neither with a slash nor with dots.
func Segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
