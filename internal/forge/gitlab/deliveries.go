package gitlab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// eventsPerPage is the most that GitLab gives of a hook's events at once.
	eventsPerPage = 20

	// maxEventPages bounds what a look at a hook's events costs.
	maxEventPages = 10

	// failuresToPause is how many failures in a row make GitLab send a hook nothing for a
	// while (user/project/integrations/webhooks, "Auto-disabled webhooks").
	failuresToPause = 4
)

// hookEvent is a delivery as GitLab remembers it. The headers' and the status's types are
// read loosely: nothing else of the list shall be lost for one of them.
type hookEvent struct {
	ID       int64           `json:"id"`
	Headers  json.RawMessage `json:"request_headers"`
	Payload  json.RawMessage `json:"request_data"`
	Response any             `json:"response_status"` // "200", or words where there was no answer
}

// MissedDeliveries lists the failed deliveries among the hook's events, which reach back a few
// days (API: project webhooks, "List project webhook events", since 17.3). What GitLab didn't
// send while it had disabled the hook isn't among them. The cursor is the hook's number and an
// event's; they have no time. All events are read: a list by status leaves out those without an answer.
func (d *Driver) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	op := "list the events of the webhook of " + r.String()
	id, err := d.hookID(ctx, r, q.URL)
	if err != nil {
		return forge.MissedDeliveries{}, err
	}
	log := eventLog{hook: id, after: lastRead(q.Cursor, id)}
	page := query{Page: 1, PerPage: eventsPerPage}
	for more := true; more; {
		var list []hookEvent
		resp, err := d.callProject(ctx, op, r, http.MethodGet, page, &list, "hooks", id, "events")
		if rest.StatusOf(err) == http.StatusNotFound && !isMissingProject(err) {
			d.hooks.Remove(hookPlace{r, q.URL})
			rest.ErrorOf(err).Kind = forge.ErrUnsupported // the hook is there, or was: this GitLab is older
		}
		if err != nil {
			return forge.MissedDeliveries{}, err
		}
		next, err := d.nextPage(op, resp, page, len(list))
		if err != nil {
			return forge.MissedDeliveries{}, err
		}
		more = log.add(list) && next != 0
		if log.cut = more && page.Page >= maxEventPages; log.cut {
			break
		}
		page.Page = next
	}
	return log.missed(q.IsKnown), nil
}

// lastRead is the event up to which a hook's were read; 0 where the cursor is another hook's: one
// that was made anew has none of its events.
func lastRead(cursor, hook string) int64 {
	of, event, _ := strings.Cut(cursor, "/")
	n, err := strconv.ParseInt(event, 10, 64)
	if err != nil || of != hook {
		return 0
	}
	return n
}

// eventLog is what was read of a hook's events, newest first.
type eventLog struct {
	hook  string
	after int64       // up to which they were read before
	read  []hookEvent // some of those too: the rest of a page
	cut   bool        // there are more that are new
	whole bool        // the last one read is the hook's first
	reset bool        // what was read before isn't in this list
}

// add takes up a page; more says that what follows may be new.
func (el *eventLog) add(page []hookEvent) (more bool) {
	byID := func(a, b hookEvent) int { return cmp.Compare(a.ID, b.ID) }
	if len(el.read) == 0 && len(page) > 0 && slices.MaxFunc(page, byID).ID < el.after {
		// Events are forgotten oldest first, so this isn't the GitLab that was read before. It was
		// restored, or another one took its place, and counts on from a smaller number.
		el.after, el.reset = 0, true
	}
	el.read = append(el.read, page...)
	el.whole = len(page) < eventsPerPage
	return len(page) > 0 && page[len(page)-1].ID > el.after
}

// missed are the deliveries that are new and failed, each once.
func (el *eventLog) missed(isKnown func(string) bool) forge.MissedDeliveries {
	var out forge.MissedDeliveries
	newest, done := el.after, map[string]bool{}
	for _, e := range el.read {
		newest = max(newest, e.ID)
		if e.isDelivered() {
			done[e.delivery()] = true
		}
	}
	for _, e := range el.read {
		id := e.delivery()
		if e.ID <= el.after || done[id] {
			continue
		}
		done[id] = true
		if !isKnown(id) {
			out.Deliveries = append(out.Deliveries, forge.MissedDelivery{ID: id, Event: e.header("X-Gitlab-Event"), Payload: e.Payload,
				Answer: e.status()})
		}
	}
	out.Cursor = el.hook + "/" + strconv.FormatInt(newest, 10)
	// Deliveries between the last page and the cursor are passed by for good, also where all that
	// was read was taken: the failures may be older than it.
	passesBy := el.cut && (len(out.Deliveries) > 0 || el.after > 0)
	out.Incomplete = passesBy || el.reset || el.wasPaused()
	return out
}

// wasPaused says that so many deliveries failed in a row, new ones among them, that GitLab may have
// sent nothing after them. The length of a row that was not read to its end isn't known.
func (el *eventLog) wasPaused() bool {
	row, fresh := 0, false
	for _, e := range el.read {
		if e.isDelivered() {
			row, fresh = 0, false
			continue
		}
		row++
		if fresh = fresh || e.ID > el.after; fresh && row >= failuresToPause {
			return true
		}
	}
	return fresh && !el.whole
}

// isDelivered says that the receiver has taken it.
func (h *hookEvent) isDelivered() bool {
	s := h.status()
	return len(s) == 3 && s[0] == '2'
}

// maxAnswer bounds what is repeated of a status.
const maxAnswer = 40

func (h *hookEvent) status() string {
	return wording.ClipLine(fmt.Sprint(h.Response), maxAnswer)
}

// delivery is the identity that the receiver knows it by. Before 17.4 there was none, and what
// stands for it there can't be told from here.
func (h *hookEvent) delivery() string {
	return cmp.Or(h.header("Idempotency-Key"), h.header("Webhook-Id"), "event "+strconv.FormatInt(h.ID, 10))
}

// header is a header of the request; empty when it has none.
func (h *hookEvent) header(name string) string {
	var all map[string]any
	if json.Unmarshal(bytes.TrimSpace(h.Headers), &all) != nil {
		return ""
	}
	for key, v := range all {
		if s, ok := v.(string); ok && http.CanonicalHeaderKey(key) == http.CanonicalHeaderKey(name) {
			return s
		}
	}
	return ""
}
