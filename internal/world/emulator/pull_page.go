package emulator

import (
	_ "embed" // for the page
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"go.uber.org/zap"
)

// pullTemplate is a pull request for people who follow a link from a story. It needs no
// credentials: it is on 127.0.0.1, and only shows.
var (
	//go:embed pages/pull.html
	pullPageText string
	pullTemplate = template.Must(template.New("pull").Parse(pullPageText))
)

// pageSecurity lets a page load nothing at all: it has its styles, and shows texts of anybody's.
const pageSecurity = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var pagePath = regexp.MustCompile(`^/([^/]+/[^/]+)/pull/([0-9]{1,9})$`)

// servePage shows a pull request's page, and says whether the request was for one.
func (f *Forge) servePage(w http.ResponseWriter, r *http.Request) bool {
	path := pagePath
	if f.face == GitLab {
		path = gitlabPagePath
	}
	m := path.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodGet {
		return false
	}
	pulls, err := f.Pulls(m[1])
	i := slices.IndexFunc(pulls, func(p PullRequest) bool { return strconv.Itoa(p.Number) == m[2] })
	if err != nil || i < 0 {
		http.NotFound(w, r)
		return true
	}
	shown, err := f.viewPull(m[1], &pulls[i])
	if err != nil {
		f.log.Error("a pull request's page can't be shown in full", zap.Int("number", pulls[i].Number), zap.Error(err))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pageSecurity)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := pullTemplate.Execute(w, shown); err != nil {
		f.log.Debug("a page wasn't read to its end", zap.Error(err))
	}
	return true
}
