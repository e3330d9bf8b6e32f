package emulator

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// numberedPath is how GitHub's API names a repository by its number, where it redirects calls of a
// former name to ("Best practices for using the REST API", follow redirects).
const numberedPath = "/repositories/"

// redirectTo leads a call of a repository's former name to the repository itself: one that only reads
// for ever, any other this once and as it is.
func (c *call) redirectTo(r *repository) *apiError {
	rest := strings.SplitN(strings.TrimPrefix(c.r.URL.EscapedPath(), "/"), "/", 4) // repos, owner, name
	to := fmt.Sprintf("%s/api/v3%s%d", c.url, numberedPath, r.id)
	if len(rest) == 4 {
		to += "/" + rest[3]
	}
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	e := newAPIError(http.StatusMovedPermanently, "Moved Permanently")
	if c.r.Method != http.MethodGet {
		e = newAPIError(http.StatusTemporaryRedirect, "Temporary Redirect")
	}
	e.Header = http.Header{"Location": {to}}
	return e
}

// resolveNumber gives a call that names a repository by its number the path by its name.
func (f *Forge) resolveNumber(r *http.Request) {
	number, ok := strings.CutPrefix(r.URL.Path, numberedPath)
	if !ok {
		return
	}
	number, _, _ = strings.Cut(number, "/")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, repo := range f.repos {
		if repo.id != id {
			continue
		}
		by := "/repos/" + repo.fullName()
		r.URL.Path = by + strings.TrimPrefix(r.URL.Path, numberedPath+number)
		if r.URL.RawPath != "" {
			r.URL.RawPath = by + strings.TrimPrefix(r.URL.RawPath, numberedPath+number)
		}
		return
	}
}
