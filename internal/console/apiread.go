package console

import (
	"net/http"

	"github.com/liftlock/liftlock/internal/console/api"
)

func (c *console) getPipelines(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository")
	if err != nil {
		c.failed(w, r, err)
		return
	}
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		c.failed(w, r, err)
		return
	}
	all := c.read.pipelines(s, v["repository"], "")
	for i := range all {
		all[i].Components = nil
	}
	if all == nil {
		all = []api.Pipeline{}
	}
	answer(w, http.StatusOK, api.Pipelines{Pipelines: all, Troubles: s.troubles})
}

func (c *console) getPipeline(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository")
	if err != nil {
		c.failed(w, r, err)
		return
	}
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		c.failed(w, r, err)
		return
	}
	p, err := c.read.pipeline(s, v["repository"], r.PathValue("pipeline"))
	if err != nil {
		c.failed(w, r, err)
		return
	}
	answer(w, http.StatusOK, p)
}

func (c *console) getPromotions(w http.ResponseWriter, r *http.Request) {
	l, err := listQuery(r.URL.RawQuery)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	if _, err := c.read.snapshot(r.Context()); err != nil { // teaches names and addresses
		c.failed(w, r, err)
		return
	}
	page, err := c.read.promotions(r.Context(), l)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	answer(w, http.StatusOK, page)
}

func (c *console) getPromotion(w http.ResponseWriter, r *http.Request) {
	id, err := idOf(r)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	if _, err := values(r.URL.RawQuery); err != nil {
		c.failed(w, r, err)
		return
	}
	p, err := c.read.promotion(r.Context(), id)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	answer(w, http.StatusOK, p)
}

func (c *console) getWhy(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository", "pipeline", "component", "environment")
	if err == nil && (v["pipeline"] == "" || v["component"] == "") {
		err = errorf(http.StatusBadRequest, "the parameters pipeline and component are needed; environment is optional")
	}
	if err != nil {
		c.failed(w, r, err)
		return
	}
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		c.failed(w, r, err)
		return
	}
	p, err := c.read.pipeline(s, v["repository"], v["pipeline"])
	if err != nil {
		c.failed(w, r, err)
		return
	}
	comp, err := componentOf(p, v["component"])
	if err != nil {
		c.failed(w, r, err)
		return
	}
	envs := comp.Environments
	if v["environment"] != "" {
		e, err := environmentOf(comp, v["environment"])
		if err != nil {
			c.failed(w, r, err)
			return
		}
		envs = []api.Environment{*e}
	}
	out := api.Why{Repository: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component, At: comp.At, Troubles: s.troubles,
		Environments: make([]api.WhyHere, 0, len(envs))}
	for i := range envs {
		out.Environments = append(out.Environments, api.WhyHere{Text: envs[i].Explain(), Environment: envs[i]})
	}
	answer(w, http.StatusOK, out)
}
