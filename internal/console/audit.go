package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// maxAuditLines bounds one export as JSON lines; a client that wants more goes on from its last
	// line.
	maxAuditLines = 100_000
	// maxAuditExports bounds the exports that run at once: each reads the store in a row.
	maxAuditExports = 4
)

// auditParameters choose entries of the audit trail, on the page too.
var auditParameters = []string{"actor", "verb", "via", "repository", "pipeline", "component", "environment", "since", "until",
	"before", "limit"}

// auditVias are the ways on which a command comes, and how a merge was made.
var auditVias = []string{"comment", "api", "console", promotion.AuditViaServer, promotion.AuditViaForge}

// listAuditVerbs lists what the trail has: commands, merges, and who logged in and out.
func listAuditVerbs() []string {
	var names []string
	for _, v := range command.Verbs() {
		names = append(names, string(v))
	}
	return append(names, promotion.AuditMerge, promotion.AuditDiscover, auditLogin, auditLogout)
}

// auditQuery is a query for a part of the audit trail.
type auditQuery struct {
	Filter store.AuditFilter // without the subject, see auditSubjects

	Repository, Pipeline, Component string

	Limit int // 0: not given
}

// getAudit takes GET /api/v1/audit.
func (se *server) getAudit(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, append([]string{"format"}, auditParameters...)...)
	if err == nil && !slices.Contains([]string{"", "json", "jsonl"}, v["format"]) {
		err = apiErrorf(http.StatusBadRequest, "the parameter format is json or jsonl, not %.40q", v["format"])
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	w.Header().Add("Vary", "Accept")
	lines, most := v["format"] == "jsonl" || v["format"] == "" && prefersType(r, "application/x-ndjson"), maxLimit
	if lines {
		most = maxAuditLines
	}
	q, err := se.resolveAuditQuery(r.Context(), v, most)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	if lines {
		se.exportAudit(w, r, q)
		return
	}
	page, err := se.reader.readAudit(r.Context(), q)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, page)
}

// resolveAuditQuery reads what parseQuery took apart, subjects included; a limit is at most
// the given one.
func (se *server) resolveAuditQuery(ctx context.Context, v map[string]string, mostEntries int) (auditQuery, error) {
	q, err := parseAuditQuery(v, mostEntries)
	if err == nil {
		q.Filter.SubjectPrefixes, err = se.auditSubjects(ctx, q)
	}
	return q, err
}

// parseAuditQuery reads what parseQuery took apart; a limit is at most the given one.
func parseAuditQuery(v map[string]string, mostEntries int) (q auditQuery, err error) {
	q = auditQuery{Filter: store.AuditFilter{Actor: v["actor"], Via: v["via"], Verb: v["verb"], Environment: v["environment"]},
		Repository: v["repository"], Pipeline: v["pipeline"], Component: v["component"]}
	switch {
	case q.Filter.Via != "" && !slices.Contains(auditVias, q.Filter.Via):
		return q, apiErrorf(http.StatusBadRequest, "the parameter via is one of %s, not %.40q", strings.Join(auditVias, ", "), q.Filter.Via)
	case q.Filter.Verb != "" && !slices.Contains(listAuditVerbs(), q.Filter.Verb):
		return q, apiErrorf(http.StatusBadRequest, "the parameter verb is one of %s, not %.40q", strings.Join(listAuditVerbs(), ", "),
			q.Filter.Verb)
	case q.Component != "" && q.Pipeline == "":
		return q, apiErrorf(http.StatusBadRequest, "the parameter component needs the parameter pipeline")
	}
	if q.Filter.Since, err = parseInstant("since", v["since"]); err != nil {
		return q, err
	}
	if q.Filter.Until, err = parseInstant("until", v["until"]); err != nil {
		return q, err
	}
	if f := q.Filter; !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return q, apiErrorf(http.StatusBadRequest, "nothing lies since %s and until %s: since is the earlier one, and what happens at "+
			"until is left out", v["since"], v["until"])
	}
	if q.Filter.Before, err = parsePositive(v, "before", 1<<62); err != nil {
		return q, err
	}
	n, err := parsePositive(v, "limit", int64(mostEntries))
	q.Limit = int(n)
	return q, err
}

// auditSubjects is the beginnings of the subjects of commands about a component, a pipeline or a
// repository, people's own pull requests included. Units that the branch no longer has are found by
// their repository. It is nil for any subject.
func (se *server) auditSubjects(ctx context.Context, q auditQuery) ([]string, error) {
	repository := q.Repository
	switch {
	case q.Pipeline == "" && repository == "":
		return nil, nil
	case q.Pipeline == "":
		return []string{repository + "|", repository + " #"}, nil
	case repository == "":
		s, err := se.reader.sharedSnapshot(ctx)
		if err != nil {
			return nil, err
		}
		p, err := se.reader.findPipeline(s, "", q.Pipeline)
		if err != nil {
			return nil, err
		}
		repository = p.Repository
	}
	if q.Component == "" {
		return []string{repository + "|" + q.Pipeline + "|"}, nil
	}
	return []string{repository + "|" + q.Pipeline + "|" + q.Component + " #"}, nil
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
	return time.Time{}, apiErrorf(http.StatusBadRequest, "the parameter %s is a date like 2026-03-02 or a time like "+
		"2026-03-02T09:00:00Z, not %.40q", name, s)
}

// readAudit reads one page of the audit trail, newest first.
func (r *reader) readAudit(ctx context.Context, q auditQuery) (*api.AuditTrail, error) {
	limit := q.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	rows, next, err := r.store.AuditTrail(ctx, q.Filter, limit+1)
	if err != nil {
		return nil, err
	}
	page := &api.AuditTrail{Entries: []api.AuditEntry{}, Next: next}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = rows[limit-1].ID
	}
	for i := range rows {
		page.Entries = append(page.Entries, r.buildAuditEntry(&rows[i]))
	}
	return page, nil
}

func (r *reader) buildAuditEntry(a *store.Audit) api.AuditEntry {
	e := api.AuditEntry{ID: a.ID, At: a.At, Actor: a.Actor, Via: a.Via, Verb: a.Verb, Subject: a.Subject, Environment: a.Environment,
		Reason: a.Reason, Outcome: a.Outcome}
	if a.Verb == auditLogin || a.Verb == auditLogout {
		return e // about no component, whatever the people in it are called
	}
	if s, ok := parseAuditSubject(a.Subject); ok {
		e.Repository, e.Pipeline, e.Component, e.Command, e.Pull = s.repository, s.pipeline, s.component, s.command,
			r.buildPull(s.repository, s.pull)
	}
	var m promotion.MergeRecord
	if a.Verb == promotion.AuditMerge && json.Unmarshal(a.Data, &m) == nil {
		e.Merge = &api.AuditedMerge{Kind: m.Kind, Release: m.Release, Head: m.Head, Tip: m.Tip, Commit: m.Commit, JudgedAt: m.JudgedAt,
			Inputs: m.Inputs, Gates: append([]api.Gate{}, buildGates(m.Gates, r.wordsOf(e.Repository))...)}
	}
	return e
}

// auditTarget is what a command was about.
type auditTarget struct {
	repository, pipeline, component string // pipeline and component are empty where it was about neither

	pull    int // 0: none
	command string
}

// auditSubjectForm is repository|pipeline|component #pull command, or without pipeline and
// component on a person's own pull request.
var auditSubjectForm = regexp.MustCompile(`^([^|]+?)(?:\|([^|]*)\|([^|]*?))? #([0-9]{1,10}) (.+)$`)

// parseAuditSubject reads an entry's subject; false for one that isn't of the form.
func parseAuditSubject(s string) (auditTarget, bool) {
	m := auditSubjectForm.FindStringSubmatch(s)
	if m == nil {
		return auditTarget{}, false
	}
	n, err := strconv.ParseInt(m[4], 10, 32)
	if err != nil {
		return auditTarget{}, false
	}
	return auditTarget{repository: m[1], pipeline: m[2], component: m[3], pull: int(n), command: m[5]}, true
}

// exportAudit streams entries as JSON, a line each, newest first. A failure on the way cuts the
// connection: an export that ends as it should is whole.
func (se *server) exportAudit(w http.ResponseWriter, r *http.Request, q auditQuery) {
	select {
	case se.auditExports <- struct{}{}:
		defer func() { <-se.auditExports }()
	default:
		se.writeError(w, r, apiErrorf(http.StatusServiceUnavailable, "%d exports of the audit trail run already; try again in a moment",
			maxAuditExports))
		return
	}
	left := q.Limit
	if left == 0 {
		left = maxAuditLines
	}
	s := &eventStream{w: w, rc: http.NewResponseController(w)}
	defer s.clearDeadline()
	// The server's limit on reading a request would end the export.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		se.opts.Log.Debug("an export keeps the server's read deadline", zap.Error(err))
	}
	for begun := false; left > 0; begun = true {
		q.Limit = min(left, maxLimit)
		page, err := se.reader.readAudit(r.Context(), q)
		if err != nil && !begun {
			se.writeError(w, r, err)
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="liftlock-audit.jsonl"`)
		}
		if err == nil {
			err = s.sendLines(page.Entries)
		}
		if err != nil {
			if r.Context().Err() == nil {
				se.opts.Log.Warn("an export of the audit trail was cut off", zap.Error(err))
			}
			panic(http.ErrAbortHandler)
		}
		if page.Next == 0 || r.Method == http.MethodHead {
			return
		}
		q.Filter.Before = page.Next
		left -= len(page.Entries)
	}
}

// sendLines sends entries as JSON, a line each.
func (es *eventStream) sendLines(entries []api.AuditEntry) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	for i := range entries {
		if err := e.Encode(&entries[i]); err != nil {
			return fmt.Errorf("write the entry %d: %w", entries[i].ID, err)
		}
	}
	return es.send(b.String())
}
