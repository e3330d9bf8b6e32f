package console

import (
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// getAudit takes GET /api/v1/audit.
func (c *server) getAudit(w http.ResponseWriter, r *http.Request) {
	f, limit, err := c.parseAuditQuery(r)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	rows, err := c.opts.Store.AuditTrail(r.Context(), f, limit+1)
	if err != nil {
		c.writeError(w, r, err)
		return
	}
	page := api.AuditTrail{Entries: []api.AuditEntry{}}
	for i := range rows {
		if i == limit {
			page.Next = rows[i-1].ID
			break
		}
		a := &rows[i]
		page.Entries = append(page.Entries, api.AuditEntry{ID: a.ID, At: a.At, Actor: a.Actor, Via: a.Via, Verb: a.Verb, Subject: a.Subject, Reason: a.Reason, Outcome: a.Outcome})
	}
	writeJSON(w, http.StatusOK, page)
}

func (c *server) parseAuditQuery(r *http.Request) (f store.AuditFilter, limit int, err error) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "pipeline", "component", "actor", "via", "verb", "since", "until", "before", "limit")
	if err != nil {
		return f, 0, err
	}
	f = store.AuditFilter{Actor: v["actor"], Via: v["via"], Verb: v["verb"]}
	if f.Since, err = parseInstant("since", v["since"]); err != nil {
		return f, 0, err
	}
	if f.Until, err = parseInstant("until", v["until"]); err != nil {
		return f, 0, err
	}
	if f.Before, err = parsePositive(v, "before", 1<<62); err != nil {
		return f, 0, err
	}
	n, err := parsePositive(v, "limit", maxLimit)
	if err != nil {
		return f, 0, err
	}
	if limit = int(n); limit == 0 {
		limit = defaultLimit
	}
	f.SubjectPrefix, err = c.auditSubject(r, v["repository"], v["pipeline"], v["component"])
	return f, limit, err
}

// auditSubject is what the subjects of commands begin with that are about a component, a
// pipeline or a repository; what the branch no longer has is found by its repository.
func (c *server) auditSubject(r *http.Request, repository, pipeline, component string) (string, error) {
	switch {
	case component != "" && pipeline == "":
		return "", apiErrorf(http.StatusBadRequest, "the parameter component needs the parameter pipeline")
	case pipeline == "" && repository == "":
		return "", nil
	case pipeline == "":
		return repository + "|", nil
	case repository == "":
		s, err := c.reader.sharedSnapshot(r.Context())
		if err != nil {
			return "", err
		}
		p, err := c.reader.findPipeline(s, "", pipeline)
		if err != nil {
			return "", err
		}
		repository = p.Repository
	}
	if component == "" {
		return repository + "|" + pipeline + "|", nil
	}
	return repository + "|" + pipeline + "|" + component + " ", nil
}

// parseInstant reads a time with its offset, or a date, which is its first instant in UTC;
// zero where there is none.
func parseInstant(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, apiErrorf(http.StatusBadRequest, "the parameter %s is a date like 2026-03-02 or a time like 2026-03-02T09:00:00Z, not %.40q", name, s)
}
