package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
)

// arrival is a release that came into an environment.
type arrival struct {
	Environment, Name, Release, Commit, By, Who string
	Pull                                        *api.Pull
	At, VerifiedAt, DegradedAt                  time.Time
	fields                                      []fieldedit.Field
}

// componentHistory is what came into a component's environments, newest first.
type componentHistory struct {
	all   []arrival
	byEnv map[string][]arrival // from what is there now on
}

// readHistory reads a component's history.
func (se *server) readHistory(ctx context.Context, k *api.Component) (*componentHistory, error) {
	rows, err := se.records.Arrivals(ctx, unitKey(promotion.Unit{Repo: k.Repository, Pipeline: k.Pipeline, Component: k.Component}))
	if err != nil {
		return nil, err
	}
	h := &componentHistory{byEnv: map[string][]arrival{}}
	for _, row := range rows {
		var a stored.Arrival
		if json.Unmarshal(row.Data, &a) != nil {
			continue
		}
		h.all = append(h.all, arrival{Environment: row.Environment,
			Name:    cmp.Or(nameRelease(a.Content.Fields), row.Release[:min(12, len(row.Release))]),
			Release: row.Release, Commit: row.Commit, By: a.By, Who: a.Author, Pull: se.reader.buildPull(k.Repository, a.Pull),
			At: row.At, VerifiedAt: row.VerifiedAt, DegradedAt: row.DegradedAt, fields: a.Content.Fields})
	}
	for i := range k.Environments {
		e := &k.Environments[i]
		now := slices.IndexFunc(h.all, func(a arrival) bool {
			return a.Environment == e.Environment && a.Release == e.Release && a.Commit == e.Commit
		})
		if now < 0 {
			continue // unreadable, or judged before this was kept
		}
		for _, a := range h.all[now:] {
			if a.Environment == e.Environment {
				h.byEnv[e.Environment] = append(h.byEnv[e.Environment], a)
			}
		}
	}
	return h, nil
}

// carriedFields is what an environment's release consists of; nil when that isn't known.
func (c *componentHistory) carriedFields(environment string) []fieldedit.Field {
	if list := c.byEnv[environment]; len(list) > 0 {
		return list[0].fields
	}
	return nil
}

// distanceBetween says how far two environments are apart.
func (c *componentHistory) distanceBetween(from, to string) promotion.Distance {
	return promotion.CompareHistories(c.numberArrivals(from), c.numberArrivals(to))
}

// numberArrivals gives an environment's history its numbers: Seq is the place in it.
func (c *componentHistory) numberArrivals(environment string) []promotion.Arrival {
	list := c.byEnv[environment]
	out := make([]promotion.Arrival, len(list))
	for i := range list {
		out[i] = promotion.Arrival{Seq: int64(i), Release: list[i].Release}
	}
	return out
}

// compareEnvironments compares two environments of a component: what the first has that
// the second hasn't, and the reverse.
func (se *server) compareEnvironments(ctx context.Context, k *api.Component, from, to string) (*api.Comparison, error) {
	out := &api.Comparison{Repository: k.Repository, Pipeline: k.Pipeline, Component: k.Component, From: from, To: to,
		Behind: []api.ArrivedRelease{}, Ahead: []api.ArrivedRelease{}, Fields: []api.FieldChange{}}
	h, err := se.readHistory(ctx, k)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{from, to} {
		e, err := environmentOf(k, name)
		if err != nil {
			return nil, err
		}
		if len(h.byEnv[name]) == 0 {
			out.Unknown = fmt.Sprintf("what %s carries isn't known: %s", name, e.Reason)
			return out, nil
		}
	}
	d := h.distanceBetween(from, to)
	seen := func(environment string, list []promotion.Arrival) []api.ArrivedRelease {
		out := make([]api.ArrivedRelease, 0, len(list))
		for _, p := range list {
			a := h.byEnv[environment][p.Seq]
			out = append(out, api.ArrivedRelease{Release: a.Release, Name: a.Name, Commit: a.Commit, At: a.At, By: a.By, Who: a.Who,
				Pull:       a.Pull,
				VerifiedAt: a.VerifiedAt, DegradedAt: a.DegradedAt})
		}
		return out
	}
	out.Behind, out.Ahead, out.Fields = seen(from, d.Behind), seen(to, d.Ahead), diffFields(h.carriedFields(from), h.carriedFields(to))
	if d.Common != nil {
		out.Common = &seen(from, []promotion.Arrival{*d.Common})[0]
	}
	return out, nil
}

// diffFields lists the fields whose values differ, by file and path.
func diffFields(from, to []fieldedit.Field) []api.FieldChange {
	type place struct{ kind, file, path string }
	at := map[place]int{}
	all := []api.FieldChange{}
	note := func(fields []fieldedit.Field, value func(*api.FieldChange) **string) {
		for i := range fields {
			f := &fields[i]
			p := place{f.Kind, f.File, f.Path}
			k, known := at[p]
			if !known {
				k = len(all)
				at[p] = k
				all = append(all, api.FieldChange{Kind: f.Kind, File: f.File, Path: f.Path})
			}
			*value(&all[k]) = &f.Value
		}
	}
	note(from, func(m *api.FieldChange) **string { return &m.From })
	note(to, func(m *api.FieldChange) **string { return &m.To })
	all = slices.DeleteFunc(all, func(m api.FieldChange) bool { return m.From != nil && m.To != nil && *m.From == *m.To })
	slices.SortFunc(all, func(a, b api.FieldChange) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Path, b.Path))
	})
	return all
}

func (se *server) getComparison(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "component", "from", "to")
	if err == nil && (v["component"] == "" || v["from"] == "" || v["to"] == "") {
		err = apiErrorf(http.StatusBadRequest, "the parameters component, from and to are needed: an environment, and the one that is "+
			"compared with it")
	}
	var k *api.Component
	if err == nil {
		_, _, k, err = se.findRequestedComponent(r, v["component"], v["repository"])
	}
	var out *api.Comparison
	if err == nil {
		out, err = se.compareEnvironments(r.Context(), k, v["from"], v["to"])
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// comparisonBody is the body of the page that compares two environments.
type comparisonBody struct {
	*api.Comparison
	Environments []string
}

// comparisonPage compares the first environment with the last one unless the
// query says otherwise.
func (se *server) comparisonPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s, _, k, err := se.findRequestedComponent(r, r.PathValue("component"), q.Get("repository"))
	var b comparisonBody
	if err == nil {
		for _, e := range k.Environments {
			b.Environments = append(b.Environments, e.Environment)
		}
		last := len(b.Environments) - 1 // a pipeline has at least one
		b.Comparison, err = se.compareEnvironments(r.Context(), k, cmp.Or(q.Get("from"), b.Environments[0]),
			cmp.Or(q.Get("to"), b.Environments[last]))
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	pg := newPage(s, k.Component+": "+b.From+" and "+b.To, "pipelines", b)
	pg.unit = unitKey(promotion.Unit{Repo: k.Repository, Pipeline: k.Pipeline, Component: k.Component})
	se.renderPage(w, r, http.StatusOK, "compare", pg)
}
