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
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/wording"
)

// pages are the templates and the files beside them.
type pages struct {
	base        string
	version     string
	hasLogin    bool // people log in here
	now         func() time.Time
	isAmbiguous func(pipeline string) bool // several repositories have one of this name
	marks       marks
	templates   map[string]*template.Template
	assets      map[string]assetFile
}

// assetFile is an embedded file. Its address carries its digest, so it may be kept.
type assetFile struct {
	kind, digest string
	body         []byte
}

// page is what every template is given.
type page struct {
	Title    string
	Nav      string // the entry that is the current one
	Now      time.Time
	Troubles []api.TroubleGroup
	Still    bool   // it is made with effort and isn't made anew at every event
	Version  string // of the server
	State    string // the snapshot's version that it is not older than
	Stream   string // where it is told of changes; empty: nowhere
	HasLogin bool   // people log in here
	User     *user  // who has; nil: nobody
	Body     any

	unit string // the key of the unit that alone it is about; empty: of others as well
}

// stillPage is newPage for one that takes effort.
func stillPage(s *snapshot, title, nav string, body any) page {
	pg := newPage(s, title, nav, body)
	pg.Still = true
	return pg
}

// newPage is a page about what a snapshot has; newer things may be on it too.
func newPage(s *snapshot, title, nav string, body any) page {
	return page{Title: title, Nav: nav, Troubles: api.GroupTroubles(s.troubles), State: s.version, Body: body}
}

var pageNames = []string{"home", "component", "compare", "promotions", "promotion", "differences", "diff", "audit", "overview", "message",
	"apart", "login", "token", "account", "act"}

func newPages(base, version string, hasLogin bool, now func() time.Time, isAmbiguous func(string) bool) (*pages, error) {
	p := &pages{base: base, version: version, hasLogin: hasLogin, now: now, isAmbiguous: isAmbiguous, marks: newMarks(),
		templates: map[string]*template.Template{}, assets: map[string]assetFile{}}
	all, err := fs.ReadDir(embeddedFiles, "assets")
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		body, err := embeddedFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		p.assets[f.Name()] = assetFile{mime.TypeByExtension(path.Ext(f.Name())), hex.EncodeToString(sum[:6]), body}
	}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(p.templateFuncs()).ParseFS(embeddedFiles, "templates/layout.html",
			"templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		p.templates[name] = t
	}
	return p, nil
}

// clockLayout is how people read a time.
const clockLayout = "2006-01-02 15:04:05 UTC"

func (p *pages) templateFuncs() template.FuncMap {
	return template.FuncMap{
		"tone": stateTone, "eventTone": event.Kind.Tone, "plural": wording.Count,
		"ago": p.marks.age, "untagged": p.marks.untagged,
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) }, "nowStamp": p.marks.now(time.RFC3339),
		"clock": func(t time.Time) string { return t.UTC().Format(clockLayout) }, "nowClock": p.marks.now(clockLayout),
		"short":     func(id string) string { return id[:min(len(id), 12)] },
		"link":      p.pageURL,
		"api":       func(parts ...any) string { return p.pageURL(append([]any{"api", "v1"}, parts...)...) },
		"component": p.componentURL,
		"pipeline":  p.pipelineURL,
		"compare":   p.differencesURL,
		"apart":     p.apartURL, "rowID": hashID,
		"between": p.comparisonURL,
		"byPull":  p.promotionByPullURL,
		"asset":   func(name string) string { return p.base + "/assets/" + name + "?v=" + p.assets[name].digest },
		"place":   withRepository,
		"isDate":  isDateField,
		"act":     p.actURL, "actOn": p.actOnPipelineURL, "canAct": func() bool { return p.hasLogin },
		"choicesOf": p.promotionChoices,
		"help":      helpURL,
		"drawing":   newGraphDrawing, "lineAt": lineAt,
	}
}

// helpPage describes the console to people.
const helpPage = "https://github.com/liftlock/liftlock/blob/main/docs/console.md"

// helpURL is where a page of an entry of the navigation is described.
func helpURL(nav string) string {
	sections := map[string]string{"pipelines": "the-table", "promotions": "a-promotions-page", "overview": "the-overview",
		"audit": "the-audit-trail"}
	if section := sections[nav]; section != "" {
		return helpPage + "#" + section
	}
	return helpPage
}

// hashID makes an element's id of a word and of what it is about.
func hashID(word string, about ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(about, "\n")))
	return word + "-" + hex.EncodeToString(sum[:6])
}

// pageURL is an address inside the console: its parts are escaped one by one.
func (p *pages) pageURL(parts ...any) string {
	out := p.base
	for _, s := range parts {
		out += "/" + url.PathEscape(fmt.Sprint(s))
	}
	if out == p.base {
		out += "/"
	}
	return out
}

// componentURL is the address of a component's page.
func (p *pages) componentURL(repo, pipeline, component string) string {
	out := p.pageURL("pipelines", pipeline, component)
	if p.isAmbiguous(pipeline) {
		out += "?repository=" + url.QueryEscape(repo)
	}
	return out
}

// pipelineURL is the address of a pipeline's page.
func (p *pages) pipelineURL(repo, pipeline string) string {
	out := p.pageURL("pipelines", pipeline)
	if p.isAmbiguous(pipeline) {
		out += "?repository=" + url.QueryEscape(repo)
	}
	return out
}

// differencesURL is the address where a pipeline is compared with what runs.
func (p *pages) differencesURL(repo, pipeline string) string {
	out := p.pageURL("differences", pipeline)
	if p.isAmbiguous(pipeline) {
		out += "?repository=" + url.QueryEscape(repo)
	}
	return out
}

// comparisonURL is the address where two environments of a component are compared.
func (p *pages) comparisonURL(repo, pipeline, component, from, to string) string {
	q := url.Values{"from": {from}, "to": {to}}
	if p.isAmbiguous(pipeline) {
		q.Set("repository", repo)
	}
	return p.pageURL("pipelines", pipeline, component, "compare") + "?" + q.Encode()
}

// promotionByPullURL is an address that leads to the page of a pull request's promotion.
func (p *pages) promotionByPullURL(repo string, number int) string {
	return p.pageURL("promotions") + "?" + url.Values{"repository": {repo}, "pull": {strconv.Itoa(number)}}.Encode()
}

// repoEnvironment is an environment with the repository that it is of, for parts of pages.
type repoEnvironment struct {
	Env   *api.Environment
	Repo  string
	Gates bool // each gate is listed, not the headline alone
}

func withRepository(e api.Environment, repo string) repoEnvironment {
	return repoEnvironment{&e, repo, true}
}

// renderPage renders a page whole before anything of it is sent.
func (se *server) renderPage(w http.ResponseWriter, r *http.Request, status int, name string, pg page) {
	pg.Now, pg.Version, pg.HasLogin, pg.User = se.opts.Now(), se.opts.Version, se.pages.hasLogin, userOf(r.Context())
	if !pg.Still && pg.State != "" {
		pg.Stream = se.pages.streamURL(pg.unit)
	}
	var b bytes.Buffer
	if err := se.pages.templates[name].Execute(&b, pg); err != nil {
		se.opts.Log.Error("a page could not be rendered", zap.String("path", r.URL.Path), zap.Error(err))
		http.Error(w, "the page could not be rendered; the server's log says why", http.StatusInternalServerError)
		return
	}
	if as, ok := r.Context().Value(renderingKey{}).(rendering); ok && pg.Stream != "" && status == http.StatusOK {
		se.rendered.Put(as.key, renderedPage{as.version, pg, b.Bytes()})
	}
	se.sendPage(w, r, status, &pg, b.Bytes())
}

// sendPage sends a rendered page. One that is told of changes isn't sent again to whoever has it.
func (se *server) sendPage(w http.ResponseWriter, r *http.Request, status int, pg *page, rendered []byte) {
	body, tag := se.pages.marks.finish(rendered, pg.Now)
	if pg.Stream != "" && status == http.StatusOK {
		w.Header().Set("ETag", tag)
		if isUnmodified(r, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a reader that left is no failure of ours
}

// renderError shows what went wrong with a page.
func (se *server) renderError(w http.ResponseWriter, r *http.Request, err error) {
	var known *apiError
	if errors.As(err, &known) {
		se.renderPage(w, r, known.status, "message", page{Title: http.StatusText(known.status), Body: known.text})
		return
	}
	if r.Context().Err() != nil {
		return
	}
	se.opts.Log.Error("a page could not be shown", zap.String("path", r.URL.Path), zap.Error(err))
	se.renderPage(w, r, http.StatusServiceUnavailable, "message", page{Title: "Liftlock's records can't be read right now",
		Body: err.Error()})
}

func (se *server) pageNotFound(w http.ResponseWriter, r *http.Request) {
	se.renderError(w, r, apiErrorf(http.StatusNotFound, "There is no page here. The pipelines are on the first page."))
}

// serveAsset serves an embedded file.
func (p *pages) serveAsset(w http.ResponseWriter, r *http.Request) {
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
