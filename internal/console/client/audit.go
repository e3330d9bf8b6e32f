package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

// AuditQuery chooses entries of the audit trail; an empty field chooses all. Limit is how
// many at most; 0: none.
type AuditQuery struct {
	Repository, Pipeline, Component string
	Actor, Verb, Environment        string
	Since, Until                    time.Time
	Limit                           int
}

// maxAuditPage is how many entries the server gives at once.
const maxAuditPage = 500

// Audit lists the entries, newest first, a page after the other.
func (c *Client) Audit(ctx context.Context, q AuditQuery) ([]api.AuditEntry, error) {
	v := url.Values{}
	for key, value := range map[string]string{"repository": q.Repository, "pipeline": q.Pipeline, "component": q.Component,
		"actor": q.Actor, "verb": q.Verb, "environment": q.Environment} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.UTC().Format(time.RFC3339))
	}
	out := []api.AuditEntry{}
	for len(out) < q.Limit {
		v.Set("limit", strconv.Itoa(min(q.Limit-len(out), maxAuditPage)))
		page, err := getJSON[api.AuditTrail](ctx, c, v, "audit")
		if err != nil {
			return nil, err
		}
		if out = append(out, page.Entries...); page.Next == 0 || len(page.Entries) == 0 {
			break
		}
		v.Set("before", strconv.FormatInt(page.Next, 10))
	}
	return out, nil
}

// PrintAudit writes entries as a table; a wide one also has the environments and pull requests.
func PrintAudit(w io.Writer, entries []api.AuditEntry, wide bool) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "nothing is on record")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	more := ""
	if wide {
		more = "\tENVIRONMENT\tPULL REQUEST"
	}
	fmt.Fprintln(t, "AT\tBY\tVIA\tWHAT\tOUTCOME\tREASON"+more)
	for i := range entries {
		e := &entries[i]
		if wide {
			more = "\t" + orNone(e.Environment) + "\t" + pullAddress(e.Pull)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s%s\n", e.At.UTC().Format(time.RFC3339), replaceUnprintable(e.Actor),
			replaceUnprintable(e.Via), replaceUnprintable(e.Subject), replaceUnprintable(e.Outcome), replaceUnprintable(e.Reason), more)
		printMergeGates(t, e.Merge)
	}
	return t.Flush()
}

// printMergeGates writes by what a merge was judged below its entry: a line a gate, and the
// hash of the facts.
func printMergeGates(w io.Writer, m *api.AuditedMerge) {
	if m == nil {
		return
	}
	for _, g := range m.Gates {
		fmt.Fprintf(w, "\t\t\t  gate %s\t%s\t%s\n", replaceUnprintable(g.Gate), replaceUnprintable(g.Outcome), replaceUnprintable(g.Reason))
	}
	if m.Inputs != "" {
		fmt.Fprintf(w, "\t\t\t  inputs\tsha256\t%s\n", replaceUnprintable(m.Inputs))
	}
}

// WriteAuditLines writes entries as JSON, a line each.
func WriteAuditLines(w io.Writer, entries []api.AuditEntry) error {
	e := json.NewEncoder(w)
	for i := range entries {
		if err := e.Encode(&entries[i]); err != nil {
			return fmt.Errorf("write the audit trail: %w", err)
		}
	}
	return nil
}
