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

// home is the first page's body, and that of one pipeline.
type home struct {
	Pipelines []shownPipeline
	Pipeline  string // only this one; empty: all
	Counts    api.Counts
	Query     string
	Show      string // all, moving, waiting or attention
	Compares  bool   // a pipeline can be compared with what runs
	Filters   []filter
	Events    []api.Event
}

// shownPipeline is a pipeline with the components that are shown.
type shownPipeline struct {
	api.Pipeline
	Hidden int // how many more the filter chooses
}

// maxRows bounds the components of one pipeline on one page: the page is made
// anew for every reader at every change.
const maxRows = 200

// bounded leaves at most maxRows components: first those that need a look, then
// those where something goes on. The order stays.
func bounded(p api.Pipeline) shownPipeline {
	out := shownPipeline{Pipeline: p}
	if len(p.Components) <= maxRows {
		return out
	}
	out.Hidden = len(p.Components) - maxRows
	left := maxRows
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
	out.Components = make([]api.Component, 0, maxRows)
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

// activity is how many events the first page shows.
const activity = 12

func (c *console) home(w http.ResponseWriter, r *http.Request) { c.grid(w, r, "") }

func (c *console) pipelinePage(w http.ResponseWriter, r *http.Request) {
	c.grid(w, r, r.PathValue("pipeline"))
}

// grid shows components × environments. A query that makes no sense shows everything.
func (c *console) grid(w http.ResponseWriter, r *http.Request, name string) {
	q := r.URL.Query()
	h := home{Pipeline: name, Query: strings.TrimSpace(q.Get("q")), Show: q.Get("show")}
	if clean(h.Query, maxValue) != nil {
		h.Query = ""
	}
	if !slices.Contains([]string{"moving", "waiting", "attention"}, h.Show) {
		h.Show = "all"
	}
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	all := c.read.pipelines(s, q.Get("repository"), name)
	if name != "" && len(all) == 0 {
		c.sorry(w, r, errorf(http.StatusNotFound, "There is no pipeline %q with a component.", name))
		return
	}
	for _, p := range all {
		h.Counts.Components += p.Counts.Components
		h.Counts.Moving += p.Counts.Moving
		h.Counts.Waiting += p.Counts.Waiting
		h.Counts.Attention += p.Counts.Attention
		p.Components = slices.DeleteFunc(p.Components, func(k api.Component) bool { return !h.wants(&p, &k) })
		if len(p.Components) > 0 {
			h.Pipelines = append(h.Pipelines, bounded(p))
		}
	}
	h.Filters, h.Compares = h.filters(r.URL.Path, c.base), c.o.Differences != nil
	events, err := c.o.Store.Events(r.Context(), store.EventFilter{Pipeline: name, Newest: true, Limit: activity})
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	h.Events = c.read.events(events)
	c.show(w, r, http.StatusOK, "home", page{Title: cmp.Or(name, "Pipelines"), Nav: "pipelines", Troubles: s.troubles, Body: h})
}

// wants says whether the filters choose a component: all words of the query
// must be found in its names, its releases or its states.
func (h *home) wants(p *api.Pipeline, k *api.Component) bool {
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

func (h *home) filters(path, base string) []filter {
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

func (c *console) promotionsPage(w http.ResponseWriter, r *http.Request) {
	l, err := listQuery(r.URL.RawQuery)
	var s *snapshot
	if err == nil {
		s, err = c.read.snapshot(r.Context())
	}
	var all *api.Promotions
	if err == nil {
		all, err = c.read.promotions(r.Context(), l)
	}
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	if l.Repository != "" && l.Pull != 0 && len(all.Promotions) == 1 {
		http.Redirect(w, r, c.pages.link("promotions", all.Promotions[0].ID), http.StatusSeeOther)
		return
	}
	b := promotionsBody{Promotions: *all}
	if all.Next > 0 {
		q := r.URL.Query()
		q.Set("before", strconv.FormatInt(all.Next, 10))
		b.Older = c.base + "/promotions?" + q.Encode()
	}
	c.show(w, r, http.StatusOK, "promotions", page{Title: "Promotions", Nav: "promotions", Troubles: s.troubles, Body: b})
}

// promotionBody is the body of a promotion's page.
type promotionBody struct {
	api.Promotion
	Steps   []step
	Renders bool // there is a page with what it changes
}

func (c *console) promotionPage(w http.ResponseWriter, r *http.Request) {
	id, err := idOf(r)
	var p *api.Promotion
	if err == nil {
		p, err = c.read.promotion(r.Context(), id)
	}
	var s *snapshot
	if err == nil {
		s, err = c.read.snapshot(r.Context())
	}
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	title := p.Component + " to " + p.Environment
	if p.Kind == "revert" {
		title = p.Component + " back in " + p.Environment
	}
	c.show(w, r, http.StatusOK, "promotion", page{Title: title, Nav: "promotions", Troubles: s.troubles, Body: promotionBody{*p, steps(p), c.o.Diff != nil}})
}
