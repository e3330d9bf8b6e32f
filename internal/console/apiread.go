package console

import (
	"net/http"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// getOpenAPI answers what programs are generated from.
func (se *server) getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(api.OpenAPI) // a reader that left is no failure of ours
}

func (se *server) getPipelines(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository")
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	all := se.reader.groupPipelines(s, v["repository"], "")
	for i := range all {
		all[i].Components = nil
	}
	if all == nil {
		all = []api.Pipeline{}
	}
	writeJSON(w, http.StatusOK, api.Pipelines{Pipelines: all, Troubles: s.troubles})
}

func (se *server) getPipeline(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository")
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	p, err := se.reader.findPipeline(s, v["repository"], r.PathValue("pipeline"))
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (se *server) getPromotions(w http.ResponseWriter, r *http.Request) {
	l, err := parsePromotionQuery(r.URL.RawQuery)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	if _, err := se.reader.sharedSnapshot(r.Context()); err != nil { // teaches names and addresses
		se.writeError(w, r, err)
		return
	}
	page, err := se.reader.listPromotions(r.Context(), l)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, page)
}

func (se *server) getPromotion(w http.ResponseWriter, r *http.Request) {
	id, err := parsePromotionID(r)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		se.writeError(w, r, err)
		return
	}
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	p, err := se.reader.readPromotion(r.Context(), s, id)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (se *server) getWhy(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "pipeline", "component", "environment")
	if err == nil && (v["pipeline"] == "" || v["component"] == "") {
		err = apiErrorf(http.StatusBadRequest, "the parameters pipeline and component are needed; environment is optional")
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	p, err := se.reader.findPipeline(s, v["repository"], v["pipeline"])
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	comp, err := componentOf(p, v["component"])
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	envs := comp.Environments
	if v["environment"] != "" {
		e, err := environmentOf(comp, v["environment"])
		if err != nil {
			se.writeError(w, r, err)
			return
		}
		envs = []api.Environment{*e}
	}
	out := api.Why{Repository: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component, At: comp.At, Troubles: s.troubles,
		Environments: make([]api.EnvironmentWhy, 0, len(envs))}
	unit := s.findUnit(unitKey(promotion.Unit{Repo: comp.Repository, Pipeline: comp.Pipeline, Component: comp.Component}))
	for i := range envs {
		e := api.EnvironmentWhy{Text: se.reader.wordsOf(comp.Repository)(envs[i].Explain()), Environment: envs[i]}
		if held := findHeldEvidence(unit, envs[i].Environment); held != nil {
			e.Evidence = &se.reader.buildEvidence(comp.Repository, []promotion.Evidence{*held})[0]
		}
		out.Environments = append(out.Environments, e)
	}
	writeJSON(w, http.StatusOK, out)
}
