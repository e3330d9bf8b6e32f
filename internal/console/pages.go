package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
)

// pages are the templates and the files beside them.
type pages struct {
	base    string
	version string
	now     func() time.Time
	twice   func(pipeline string) bool // several repositories have one of this name
	byName  map[string]*template.Template
	assets  map[string]asset
}

// asset is an embedded file. Its address carries its digest, so it may be kept.
type asset struct {
	kind, digest string
	body         []byte
}

// page is what every template is given.
type page struct {
	Title    string
	Nav      string // the entry that is the current one
	Now      time.Time
	Version  string
	Troubles []api.Trouble
	Still    bool // it is made with effort and isn't made anew at every event
	Body     any
}

var pageNames = []string{"home", "component", "compare", "promotions", "promotion", "differences", "diff", "message"}

func newPages(base, version string, now func() time.Time, twice func(string) bool) (*pages, error) {
	p := &pages{base: base, version: version, now: now, twice: twice, byName: map[string]*template.Template{}, assets: map[string]asset{}}
	all, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		body, err := files.ReadFile("assets/" + f.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		p.assets[f.Name()] = asset{mime.TypeByExtension(path.Ext(f.Name())), hex.EncodeToString(sum[:6]), body}
	}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(p.funcs()).ParseFS(files, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		p.byName[name] = t
	}
	return p, nil
}

func (p *pages) funcs() template.FuncMap {
	return template.FuncMap{
		"tone": tone, "eventTone": eventTone, "plural": plural,
		"ago":       func(t time.Time) string { return ago(p.now(), t) },
		"stamp":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"short":     func(id string) string { return id[:min(len(id), 12)] },
		"link":      p.link,
		"api":       func(parts ...any) string { return p.link(append([]any{"api", "v1"}, parts...)...) },
		"component": p.component,
		"compare":   p.compare,
		"between":   p.between,
		"byPull":    p.promotionByPull,
		"asset":     func(name string) string { return p.base + "/assets/" + name + "?v=" + p.assets[name].digest },
		"place":     place,
	}
}

// link is an address inside the console: its parts are escaped one by one.
func (p *pages) link(parts ...any) string {
	out := p.base
	for _, s := range parts {
		out += "/" + url.PathEscape(fmt.Sprint(s))
	}
	if out == p.base {
		out += "/"
	}
	return out
}

// component is the address of a component's page.
func (p *pages) component(repo, pipeline, component string) string {
	out := p.link("pipelines", pipeline, component)
	if p.twice(pipeline) {
		out += "?repository=" + url.QueryEscape(repo)
	}
	return out
}

// compare is the address where a pipeline is compared with what runs.
func (p *pages) compare(repo, pipeline string) string {
	out := p.link("differences", pipeline)
	if p.twice(pipeline) {
		out += "?repository=" + url.QueryEscape(repo)
	}
	return out
}

// between is the address where two environments of a component are compared.
func (p *pages) between(repo, pipeline, component, from, to string) string {
	q := url.Values{"from": {from}, "to": {to}}
	if p.twice(pipeline) {
		q.Set("repository", repo)
	}
	return p.link("pipelines", pipeline, component, "compare") + "?" + q.Encode()
}

// promotionByPull is an address that leads to the page of a pull request's promotion.
func (p *pages) promotionByPull(repo string, number int) string {
	return p.link("promotions") + "?" + url.Values{"repository": {repo}, "pull": {strconv.Itoa(number)}}.Encode()
}

// placed is an environment with the repository that it is of, for parts of pages.
type placed struct {
	Env  *api.Environment
	Repo string
}

func place(e api.Environment, repo string) placed { return placed{&e, repo} }

// show renders a page whole before anything of it is sent.
func (c *console) show(w http.ResponseWriter, r *http.Request, status int, name string, pg page) {
	pg.Now, pg.Version = c.o.Now(), c.o.Version
	var b bytes.Buffer
	if err := c.pages.byName[name].Execute(&b, pg); err != nil {
		c.o.Log.Error("a page could not be rendered", zap.String("path", r.URL.Path), zap.Error(err))
		http.Error(w, "the page could not be rendered; the server's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a reader that left is no failure of ours
}

// sorry shows what went wrong with a page.
func (c *console) sorry(w http.ResponseWriter, r *http.Request, err error) {
	var known *apiError
	if errors.As(err, &known) {
		c.show(w, r, known.status, "message", page{Title: http.StatusText(known.status), Body: known.text})
		return
	}
	if r.Context().Err() != nil {
		return
	}
	c.o.Log.Error("a page could not be shown", zap.String("path", r.URL.Path), zap.Error(err))
	c.show(w, r, http.StatusServiceUnavailable, "message", page{Title: "Liftlock's records can't be read right now", Body: err.Error()})
}

func (c *console) noPage(w http.ResponseWriter, r *http.Request) {
	c.sorry(w, r, errorf(http.StatusNotFound, "There is no page here. The pipelines are on the first page."))
}

// asset serves an embedded file.
func (p *pages) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := p.assets[r.PathValue("name")]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	if r.URL.Query().Get("v") == a.digest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", a.kind)
	_, _ = w.Write(a.body)
}
