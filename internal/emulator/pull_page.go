package emulator

import (
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"go.uber.org/zap"
)

// pullTemplate is a pull request for people who follow a link from a story. It needs no
// credentials: it is on 127.0.0.1, and only shows.
var pullTemplate = template.Must(template.New("pull").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Sign}}{{.Number}} {{.Title}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1f2328}
pre{background:#f6f8fa;padding:1rem;overflow-x:auto;white-space:pre-wrap}
.state{background:#ddf4ff;border-radius:1rem;padding:.1rem .7rem}
.said{border:1px solid #d1d9e0;border-radius:.4rem;padding:.4rem 1rem;margin:.7rem 0}
small{color:#59636e}
</style></head><body>
<h1>{{.Title}} <small>{{.Sign}}{{.Number}}</small></h1>
<p><span class="state">{{if .Merged}}merged by {{.MergedBy}}{{else if .Open}}open{{else}}closed{{end}}</span>
{{.Author}} wants to merge <code>{{.Branch}}</code> into <code>{{.Base}}</code>
{{range .Labels}}<small>[{{.}}]</small> {{end}}</p>
<pre>{{.Body}}</pre>
{{range .Statuses}}<p><b>{{.Context}}</b>: {{.State}} <small>{{.Description}}</small></p>{{end}}
{{range .Reviews}}<p>{{.User}}: {{.State}} <small>{{.Body}}</small></p>{{end}}
{{range .Comments}}<div class="said"><b>{{.User}}</b> {{range .Reactions}}<small>{{.}}</small> {{end}}<pre>{{.Body}}</pre></div>{{end}}
<h2>Changes</h2><pre>{{.Diff}}</pre>
</body></html>
`))

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
	shown := struct {
		PullRequest
		Diff, Sign string
	}{PullRequest: pulls[i], Sign: f.face.pullSign()}
	if shown.Diff, err = f.diffPull(m[1], shown.Number); err != nil {
		f.log.Error("a pull request's changes can't be shown", zap.Int("number", shown.Number), zap.Error(err))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := pullTemplate.Execute(w, shown); err != nil {
		f.log.Debug("a page wasn't read to its end", zap.Error(err))
	}
	return true
}

// diffPull is what a pull request changes, since it left its base.
func (f *Forge) diffPull(repo string, number int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return "", err
	}
	p := r.pulls[number]
	return r.git.runGit("diff", "--end-of-options", p.baseSHA+"..."+p.head)
}
