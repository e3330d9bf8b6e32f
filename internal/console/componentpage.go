package console

import (
	"net/http"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// componentBody is the body of a component's page.
type componentBody struct {
	api.Component
	Carries    map[string][]field // by environment: what its release consists of
	Apart      map[string]*apart  // by environment: how far from the pipeline's first one, where both are known
	History    []arrival
	Promotions []api.Promotion
	Events     []api.Event
}

// apart is how far an environment is from another.
type apart struct {
	From          string
	Common        bool // a release that both have had is known
	Behind, Ahead int
}

// shownHistory is how much of each list a component's page shows.
const shownHistory = 30

func (c *console) componentPage(w http.ResponseWriter, r *http.Request) {
	s, comp, err := c.componentAsked(r, r.PathValue("component"), r.URL.Query().Get("repository"))
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	b := componentBody{Component: *comp}
	if err := c.fill(r, &b); err != nil {
		c.sorry(w, r, err)
		return
	}
	c.show(w, r, http.StatusOK, "component", page{Title: comp.Component, Nav: "pipelines", Troubles: s.troubles, Body: b})
}

// componentAsked finds a component of the pipeline that a request's address names.
func (c *console) componentAsked(r *http.Request, component, repo string) (*snapshot, *api.Component, error) {
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		return nil, nil, err
	}
	p, err := c.read.pipeline(s, repo, r.PathValue("pipeline"))
	if err != nil {
		return nil, nil, err
	}
	comp, err := componentOf(p, component)
	return s, comp, err
}

// fill adds to a component what is, and what has been, in its environments.
func (c *console) fill(r *http.Request, b *componentBody) error {
	ctx := r.Context()
	h, err := c.historyOf(ctx, &b.Component)
	if err != nil {
		return err
	}
	b.History = h.all[:min(len(h.all), shownHistory)]
	b.Carries, b.Apart = map[string][]field{}, map[string]*apart{}
	for i := range b.Environments {
		e := b.Environments[i].Environment
		b.Carries[e] = h.carried(e)
		if first := b.Environments[0].Environment; i > 0 && h.carried(first) != nil && h.carried(e) != nil {
			d := h.between(first, e)
			b.Apart[e] = &apart{first, d.Common != nil, len(d.Behind), len(d.Ahead)}
		}
	}
	list := list{Repository: b.Repository, Pipeline: b.Pipeline, Component: b.Component.Component, Limit: shownHistory}
	page, err := c.read.promotions(ctx, list)
	if err != nil {
		return err
	}
	b.Promotions = page.Promotions
	events, err := c.o.Store.Events(ctx, store.EventFilter{Repo: b.Repository, Pipeline: b.Pipeline, Component: b.Component.Component, Newest: true, Limit: shownHistory})
	if err != nil {
		return err
	}
	b.Events = c.read.events(events)
	return nil
}
