package console

import (
	"net/http"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

func (c *server) getPipelines(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository")
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	all := c.reader.groupPipelines(s, v["repository"], "")
	for i := range all {
		all[i].Components = nil
	}
	if all == nil {
		all = []api.Pipeline{}
	}
	writeJSON(w, http.StatusOK, api.Pipelines{Pipelines: all, Troubles: s.troubles})
}

func (c *server) getPipeline(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository")
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	p, err := c.reader.findPipeline(s, v["repository"], r.PathValue("pipeline"))
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (c *server) getPromotions(w http.ResponseWriter, r *http.Request) {
	l, err := parsePromotionQuery(r.URL.RawQuery)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	if _, err := c.reader.sharedSnapshot(r.Context()); err != nil { // teaches names and addresses
		c.writeError(w, r, err)
		return
	}
	page, err := c.reader.listPromotions(r.Context(), l)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, page)
}

func (c *server) getPromotion(w http.ResponseWriter, r *http.Request) {
	id, err := parsePromotionID(r)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		c.writeError(w, r, err)
		return
	}
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	p, err := c.reader.readPromotion(r.Context(), s, id)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (c *server) getWhy(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "pipeline", "component", "environment")
	if err == nil && (v["pipeline"] == "" || v["component"] == "") {
		err = apiErrorf(http.StatusBadRequest, "the parameters pipeline and component are needed; environment is optional")
	}
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	p, err := c.reader.findPipeline(s, v["repository"], v["pipeline"])
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	comp, err := componentOf(p, v["component"])
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	envs := comp.Environments
	if v["environment"] != "" {
		e, err := environmentOf(comp, v["environment"])
		if err != nil {
			c.writeError(w, r, err)
			return
		}
		envs = []api.Environment{*e}
	}
	out := api.Why{Repository: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component, At: comp.At, Troubles: s.troubles,
		Environments: make([]api.EnvironmentWhy, 0, len(envs))}
	unit := s.findUnit(unitKey(promotion.Unit{Repo: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component}))
	for i := range envs {
		e := api.EnvironmentWhy{Text: c.reader.wordsOf(comp.Repository)(envs[i].Explain()), Environment: envs[i]}
		if held := findHeldEvidence(unit, envs[i].Environment); held != nil {
			e.Evidence = &c.reader.buildEvidence(comp.Repository, []promotion.Evidence{*held})[0]
		}
		out.Environments = append(out.Environments, e)
	}
	writeJSON(w, http.StatusOK, out)
}
