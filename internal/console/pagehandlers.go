package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// homeBody is the first page's body, and that of one pipeline.
type homeBody struct {
	Pipelines []shownPipeline
	Pipeline  string // only this one; empty: all
	Counts    api.Counts
	Query     string
	Show      string // all, moving, waiting or attention
	Compares  bool   // a pipeline can be compared with what runs
	Filters   []filter
	Events    []api.Event
	Skips     skipCount
}

// shownPipeline is a pipeline with the components that are shown.
type shownPipeline struct {
	api.Pipeline
	Hidden int // how many more the filter chooses
}

// maxComponentRows bounds the components of one pipeline on one page: the page is made
// anew for every reader at every change.
const maxComponentRows = 200

// limitComponents leaves at most maxComponentRows components: first those that need a look, then
// those where something goes on. The order stays.
func limitComponents(p api.Pipeline) shownPipeline {
	out := shownPipeline{Pipeline: p}
	if len(p.Components) <= maxComponentRows {
		return out
	}
	out.Hidden = len(p.Components) - maxComponentRows
	left := maxComponentRows
	keep := make([]bool, len(p.Components))
	for _, wanted := range []func(*api.Component) bool{
		(*api.Component).Attention,
		func(c *api.Component) bool { return c.Moving() || c.Waiting() },
		func(*api.Component) bool { return true },
	} {
		for i := range p.Components {
			if left > 0 && !keep[i] && wanted(&p.Components[i]) {
				keep[i] = true
				left--
			}
		}
	}
	out.Components = make([]api.Component, 0, maxComponentRows)
	for i, k := range keep {
		if k {
			out.Components = append(out.Components, p.Components[i])
		}
	}
	return out
}

// filter is a link that shows a part of the components.
type filter struct {
	Name, Label string
	Count       int
	Link        string
}

// homeEvents is how many events the first page shows.
const homeEvents = 12

func (c *server) homePage(w http.ResponseWriter, r *http.Request) { c.renderGrid(w, r, "") }

func (c *server) pipelinePage(w http.ResponseWriter, r *http.Request) {
	c.renderGrid(w, r, r.PathValue("pipeline"))
}

// renderGrid shows components × environments. A query that makes no sense shows everything.
func (c *server) renderGrid(w http.ResponseWriter, r *http.Request, name string) {
	q := r.URL.Query()
	h := homeBody{Pipeline: name, Query: strings.TrimSpace(q.Get("q")), Show: q.Get("show")}
	if checkText(h.Query, maxValue) != nil {
		h.Query = ""
	}
	if !slices.Contains([]string{"moving", "waiting", "attention"}, h.Show) {
		h.Show = "all"
	}
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	all := c.reader.groupPipelines(s, q.Get("repository"), name)
	if name != "" && len(all) == 0 {
		c.renderError(w, r, apiErrorf(http.StatusNotFound, "There is no pipeline %q with a component.", name))
		return
	}
	for _, p := range all {
		h.Counts.Components += p.Counts.Components
		h.Counts.Moving += p.Counts.Moving
		h.Counts.Waiting += p.Counts.Waiting
		h.Counts.Attention += p.Counts.Attention
		p.Components = slices.DeleteFunc(p.Components, func(k api.Component) bool { return !h.matchesComponent(&p, &k) })
		if len(p.Components) > 0 {
			h.Pipelines = append(h.Pipelines, limitComponents(p))
		}
	}
	h.Filters, h.Compares = h.filterLinks(r.URL.Path, c.linkPrefix), c.opts.Differences != nil
	events, err := c.opts.Store.Events(r.Context(), store.EventFilter{Pipeline: name, Newest: true, Limit: homeEvents})
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	h.Events = c.reader.buildEvents(events)
	if h.Skips, err = c.countSkips(r.Context(), all, name); err != nil {
		c.renderError(w, r, err)
		return
	}
	c.renderPage(w, r, http.StatusOK, "home", page{Title: cmp.Or(name, "Pipelines"), Nav: "pipelines", Troubles: s.troubles, Body: h})
}

// matchesComponent says whether the filters choose a component: all words of the query
// must be found in its names, its releases or its states.
func (h *homeBody) matchesComponent(p *api.Pipeline, k *api.Component) bool {
	switch h.Show {
	case "moving":
		if !k.Moving() {
			return false
		}
	case "waiting":
		if !k.Waiting() {
			return false
		}
	case "attention":
		if !k.Attention() {
			return false
		}
	}
	if h.Query == "" {
		return true
	}
	text := []string{p.Name, p.Repository, k.Component}
	for _, e := range k.Environments {
		text = append(text, e.Name, e.State, e.Release)
		if e.Incoming != nil {
			text = append(text, e.Incoming.Name, e.Incoming.State)
		}
	}
	hay := strings.ToLower(strings.Join(text, "\n"))
	for _, word := range strings.Fields(strings.ToLower(h.Query)) {
		if !strings.Contains(hay, word) {
			return false
		}
	}
	return true
}

func (h *homeBody) filterLinks(path, base string) []filter {
	all := []filter{
		{Name: "all", Label: "all", Count: h.Counts.Components},
		{Name: "moving", Label: "moving", Count: h.Counts.Moving},
		{Name: "waiting", Label: "waiting", Count: h.Counts.Waiting},
		{Name: "attention", Label: "need a look", Count: h.Counts.Attention},
	}
	for i := range all {
		v := url.Values{}
		if h.Query != "" {
			v.Set("q", h.Query)
		}
		if all[i].Name != "all" {
			v.Set("show", all[i].Name)
		}
		all[i].Link = (&url.URL{Path: base + path, RawQuery: v.Encode()}).String()
	}
	return all
}

// promotionsBody is the body of the list of promotions.
type promotionsBody struct {
	api.Promotions
	Older string // the next page's address; empty: there is none
}

func (c *server) promotionsPage(w http.ResponseWriter, r *http.Request) {
	l, err := parsePromotionQuery(r.URL.RawQuery)
	var s *snapshot
	if err == nil {
		s, err = c.reader.sharedSnapshot(r.Context())
	}
	var all *api.Promotions
	if err == nil {
		all, err = c.reader.listPromotions(r.Context(), l)
	}
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	if l.Repository != "" && l.Pull != 0 && len(all.Promotions) == 1 {
		http.Redirect(w, r, c.pages.pageURL("promotions", all.Promotions[0].ID), http.StatusSeeOther)
		return
	}
	b := promotionsBody{Promotions: *all}
	if all.Next > 0 {
		q := r.URL.Query()
		q.Set("before", strconv.FormatInt(all.Next, 10))
		b.Older = c.linkPrefix + "/promotions?" + q.Encode()
	}
	c.renderPage(w, r, http.StatusOK, "promotions", page{Title: "Promotions", Nav: "promotions", Troubles: s.troubles, Body: b})
}

// promotionBody is the body of a promotion's page.
type promotionBody struct {
	api.Promotion
	Steps   []progressStep
	Renders bool // there is a page with what it changes
}

func (c *server) promotionPage(w http.ResponseWriter, r *http.Request) {
	id, err := parsePromotionID(r)
	var p *api.Promotion
	if err == nil {
		p, err = c.reader.readPromotion(r.Context(), id)
	}
	var s *snapshot
	if err == nil {
		s, err = c.reader.sharedSnapshot(r.Context())
	}
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	title := p.Component + " to " + p.Environment
	if p.Kind == "revert" {
		title = p.Component + " back in " + p.Environment
	}
	c.renderPage(w, r, http.StatusOK, "promotion", page{Title: title, Nav: "promotions", Troubles: s.troubles, Body: promotionBody{*p, buildSteps(p), c.opts.Diff != nil}})
}
