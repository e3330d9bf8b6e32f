package console

import (
	"net/http"
	"slices"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// componentBody is the body of a component's page.
type componentBody struct {
	api.Component
	Graph      *pipelineGraph                  // nil: not known
	Chain      bool                            // it is a row of environments, and needs no drawing
	Carries    map[string][]fieldedit.Field    // by environment: what its release consists of
	Apart      map[string]*environmentDistance // by environment: how far from the pipeline's first one, where both are known
	History    []arrival
	Promotions []api.Promotion
	Events     []api.Event
	Skips      []api.AuditEntry // of gates, lately
	Labels     []sharedLabel    // of all its Applications
}

// IsHeld says whether somebody holds the component itself.
func (c *componentBody) IsHeld() bool {
	return slices.ContainsFunc(c.Holds, func(h api.Hold) bool { return h.Scope == command.ScopeComponent })
}

// environmentDistance is how far an environment is from another.
type environmentDistance struct {
	From          string
	Common        bool // a release that both have had is known
	Behind, Ahead int
}

// maxHistoryRows is how much of each list a component's page shows.
const maxHistoryRows = 30

func (se *server) componentPage(w http.ResponseWriter, r *http.Request) {
	s, p, comp, err := se.findRequestedComponent(r, r.PathValue("component"), r.URL.Query().Get("repository"))
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	b := &componentBody{Component: *comp, Graph: drawComponent(p, comp), Chain: isChain(p), Labels: se.pages.listSharedLabels(comp)}
	if err := se.fillComponentPage(r, b); err != nil {
		se.renderError(w, r, err)
		return
	}
	pg := newPage(s, comp.Component, "pipelines", b)
	pg.unit = unitKey(promotion.Unit{Repo: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component})
	se.renderPage(w, r, http.StatusOK, "component", pg)
}

// findRequestedComponent finds a component of the pipeline that a request's address names.
func (se *server) findRequestedComponent(r *http.Request, component, repo string) (*snapshot, *api.Pipeline, *api.Component, error) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := se.reader.findPipeline(s, repo, r.PathValue("pipeline"))
	if err != nil {
		return nil, nil, nil, err
	}
	comp, err := componentOf(p, component)
	return s, p, comp, err
}

// fillComponentPage adds to a component what is, and what has been, in its environments.
func (se *server) fillComponentPage(r *http.Request, b *componentBody) error {
	ctx := r.Context()
	h, err := se.readHistory(ctx, &b.Component)
	if err != nil {
		return err
	}
	b.History = h.all[:min(len(h.all), maxHistoryRows)]
	b.Carries, b.Apart = map[string][]fieldedit.Field{}, map[string]*environmentDistance{}
	for i := range b.Environments {
		e := b.Environments[i].Environment
		b.Carries[e] = h.carriedFields(e)
		if first := b.Environments[0].Environment; i > 0 && h.carriedFields(first) != nil && h.carriedFields(e) != nil {
			d := h.distanceBetween(first, e)
			b.Apart[e] = &environmentDistance{first, d.Common != nil, len(d.Behind), len(d.Ahead)}
		}
	}
	list := promotionQuery{Repository: b.Repository, Pipeline: b.Pipeline, Component: b.Component.Component, Limit: maxHistoryRows}
	page, err := se.reader.listPromotions(ctx, list)
	if err != nil {
		return err
	}
	b.Promotions = page.Promotions
	events, _, _, err := se.records.Events(ctx, store.EventFilter{Repo: b.Repository, Pipeline: b.Pipeline,
		Component: b.Component.Component, Newest: true, Limit: maxHistoryRows})
	if err != nil {
		return err
	}
	b.Events = se.reader.buildEvents(events)
	b.Skips, err = se.reader.listSkips(ctx, &b.Component, se.opts.Now())
	return err
}
