package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

// maxPipelineHints bounds the pipelines that the filter's field offers.
const maxPipelineHints = 200

// auditBody is the audit trail's page.
type auditBody struct {
	Entries  []shownAuditEntry
	Form     map[string]string // the filter's fields as they were given
	Problem  string            // why the filter makes no sense; empty: it does
	Filtered bool

	Verbs, Vias, Pipelines []string

	// Addresses; empty: there is no such page.
	Newest, Older, Export string
}

// shownAuditEntry is an entry with where its parts are shown.
type shownAuditEntry struct {
	api.AuditEntry
	State   string // taken, refused, failed, merged, or since when it is begun
	Refusal string // why

	// Pages; empty: there is none.
	ActorURL, PipelineURL, ComponentURL, PromotionURL string
}

// auditPage shows the audit trail. A filter that makes no sense is answered with what is
// wrong with it above the filter, as it was given.
func (se *server) auditPage(w http.ResponseWriter, r *http.Request) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	b := auditBody{Verbs: listAuditVerbs(), Vias: auditVias, Pipelines: listPipelineHints(s), Form: map[string]string{}}
	for _, name := range auditParameters {
		if value := r.URL.Query().Get(name); checkText(value, maxValue) == nil {
			b.Form[name] = value
		}
	}
	v, err := parseQuery(r.URL.RawQuery, auditParameters...)
	if err == nil && hasEmptyValue(v) { // as a form sends fields that nobody filled in
		http.Redirect(w, r, se.auditURL(v, ""), http.StatusSeeOther)
		return
	}
	var trail *api.AuditTrail
	if err == nil {
		trail, err = se.readAuditPage(r, v)
	}
	status, problem := http.StatusOK, (*apiError)(nil)
	switch {
	case errors.As(err, &problem):
		status, b.Problem = problem.status, problem.text
	case err != nil:
		se.renderError(w, r, err)
		return
	default:
		for i := range trail.Entries {
			b.Entries = append(b.Entries, se.buildShownAuditEntry(s, &trail.Entries[i]))
		}
		b.addLinks(se, v, trail.Next)
	}
	se.renderPage(w, r, status, "audit", newPage(s, "Audit trail", "audit", b))
}

func (se *server) readAuditPage(r *http.Request, v map[string]string) (*api.AuditTrail, error) {
	q, err := se.resolveAuditQuery(r.Context(), v, maxLimit)
	if err != nil {
		return nil, err
	}
	return se.reader.readAudit(r.Context(), q)
}

// addLinks adds the addresses that keep the filter.
func (a *auditBody) addLinks(c *server, v map[string]string, next int64) {
	for name := range v {
		a.Filtered = a.Filtered || name != "before" && name != "limit"
	}
	if v["before"] != "" {
		a.Newest = c.auditURL(v, "")
	}
	if next > 0 {
		a.Older = c.auditURL(v, strconv.FormatInt(next, 10))
	}
	q := auditValues(v)
	q.Del("limit") // of a page
	q.Set("format", "jsonl")
	a.Export = c.pages.pageURL("api", "v1", "audit") + "?" + q.Encode()
}

// auditURL is the page's address with the filter, from the given entry on or the newest.
func (se *server) auditURL(v map[string]string, before string) string {
	q := auditValues(v)
	if before != "" {
		q.Set("before", before)
	}
	if len(q) == 0 {
		return se.pages.pageURL("audit")
	}
	return se.pages.pageURL("audit") + "?" + q.Encode()
}

// auditValues is the filter, and how much of it one page shows, without where the page begins.
func auditValues(v map[string]string) url.Values {
	q := url.Values{}
	for name, value := range v {
		if value != "" && name != "before" {
			q.Set(name, value)
		}
	}
	return q
}

func hasEmptyValue(v map[string]string) bool {
	for _, value := range v {
		if value == "" {
			return true
		}
	}
	return false
}

func (se *server) buildShownAuditEntry(s *snapshot, e *api.AuditEntry) shownAuditEntry {
	out := shownAuditEntry{AuditEntry: *e, State: e.Outcome, ActorURL: se.auditURL(map[string]string{"actor": e.Actor}, "")}
	for _, state := range []string{"refused", "failed"} {
		if why, ok := strings.CutPrefix(e.Outcome, state+": "); ok {
			out.State, out.Refusal = state, why
		}
	}
	if e.Merge != nil {
		out.State = "merged"
	}
	out.Command = cmp.Or(e.Command, e.Verb)
	if e.Pipeline == "" {
		return out
	}
	if s.findUnit(e.Repository+"|"+e.Pipeline+"|"+e.Component) != nil {
		out.ComponentURL = se.pages.componentURL(e.Repository, e.Pipeline, e.Component)
	}
	if slices.ContainsFunc(s.units, func(u *shownUnit) bool {
		return u.record.Unit.Repo == e.Repository && u.record.Unit.Pipeline == e.Pipeline
	}) {
		out.PipelineURL = se.pages.pipelineURL(e.Repository, e.Pipeline)
	}
	if e.Pull != nil {
		out.PromotionURL = se.pages.promotionByPullURL(e.Repository, e.Pull.Number)
	}
	return out
}

// listPipelineHints lists the pipelines' names, each once, sorted.
func listPipelineHints(s *snapshot) []string {
	var out []string
	for _, u := range s.units {
		out = append(out, u.record.Unit.Pipeline)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxPipelineHints)]
}

// isDateField says that a date picker can show a value.
func isDateField(value string) bool {
	_, err := time.Parse(time.DateOnly, value)
	return value == "" || err == nil
}
