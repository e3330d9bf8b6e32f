package emulator

import (
	"net/http"
	"net/url"
	"strings"
)

// router finds the route of a REST call. http.ServeMux can't: to it,
// "issues/comments/{id}" and "issues/{number}/labels" contradict each other.
// Here the first that fits wins.
type router []route

// findRoute gives the call's route and sets the path's values in the request; nil is
// an unknown path.
func (rs router) findRoute(r *http.Request) *route {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, s := range path {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil
		}
		path[i] = plain
	}
	for i := range rs {
		method, pattern, _ := strings.Cut(rs[i].pattern, " ")
		if method != r.Method {
			continue
		}
		if values, ok := matchPath(strings.Split(pattern[1:], "/"), path); ok {
			for k, v := range values {
				r.SetPathValue(k, v)
			}
			return &rs[i]
		}
	}
	return nil
}

// matchPath compares a path with a pattern: {name} is one element, {name...} at the
// end is all the rest, at least one.
func matchPath(pattern, path []string) (values map[string]string, ok bool) {
	values = map[string]string{}
	for i, want := range pattern {
		name, isVariable := strings.CutPrefix(want, "{")
		if i >= len(path) || isVariable && path[i] == "" {
			return nil, false
		}
		name = strings.TrimSuffix(name, "}")
		if rest, ok := strings.CutSuffix(name, "..."); ok && isVariable {
			values[rest] = strings.Join(path[i:], "/")
			return values, true
		}
		switch {
		case isVariable:
			values[name] = path[i]
		case want != path[i]:
			return nil, false
		}
	}
	return values, len(pattern) == len(path)
}
