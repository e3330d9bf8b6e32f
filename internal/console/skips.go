package console

import (
	"context"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// skipsShownFor is for how long a skipped gate is shown.
	skipsShownFor = 30 * 24 * time.Hour
	// maxSkipsShown bounds how many are looked through for one page.
	maxSkipsShown = 100
)

// skipCount is how many gates were skipped lately, for a page's readers.
type skipCount struct {
	Count int // 0: none
	More  bool
	Link  string // to all of them
}

// countSkips counts the gates that were skipped lately in a pipeline, or, with an empty
// name, in all.
func (se *server) countSkips(ctx context.Context, pipelines []pipelineUnits, name string) (skipCount, error) {
	since := se.opts.Now().Add(-skipsShownFor)
	f := store.AuditFilter{Verb: string(command.Skip), Since: since}
	if name != "" {
		for i := range pipelines {
			f.SubjectPrefixes = append(f.SubjectPrefixes, pipelines[i].Repository+"|"+name+"|")
		}
	}
	rows, _, err := se.records.AuditTrail(ctx, f, maxSkipsShown+1)
	if err != nil {
		return skipCount{}, err
	}
	v := map[string]string{"verb": string(command.Skip), "since": since.UTC().Format(time.DateOnly)}
	if len(pipelines) == 1 && name != "" {
		v["repository"], v["pipeline"] = pipelines[0].Repository, name
	}
	n := skipCount{More: len(rows) > maxSkipsShown, Link: se.auditURL(v, "")}
	for i := range rows {
		if rows[i].Outcome == carriedOut {
			n.Count++
		}
	}
	return n, nil
}

// String is the number for people.
func (s skipCount) String() string {
	if s.More {
		return strconv.Itoa(s.Count) + " or more"
	}
	return strconv.Itoa(s.Count)
}

// carriedOut is the outcome of a command that was carried out.
const carriedOut = "taken"

// listSkips lists the gates that were skipped lately of promotions of a component, newest
// first; those of several that move together count for each of them.
func (r *reader) listSkips(ctx context.Context, comp *api.Component, now time.Time) ([]api.AuditEntry, error) {
	pipeline := comp.Repository + "|" + comp.Pipeline + "|"
	own, batch := pipeline+comp.Component, pipeline+promotion.BatchName
	rows, _, err := r.store.AuditTrail(ctx, store.AuditFilter{Verb: string(command.Skip), Since: now.Add(-skipsShownFor),
		SubjectPrefixes: []string{own + " #", batch + " #"}}, maxSkipsShown)
	if err != nil {
		return nil, err
	}
	var out []api.AuditEntry
	for i := range rows {
		e := r.buildAuditEntry(&rows[i])
		if e.Outcome != carriedOut || e.Pull == nil {
			continue
		}
		if e.Component != comp.Component {
			_, is, err := r.store.PromotionByPull(ctx, own, comp.Repository, e.Pull.Number)
			if err != nil {
				return nil, err
			}
			if !is {
				continue
			}
		}
		out = append(out, e)
	}
	return out, nil
}
