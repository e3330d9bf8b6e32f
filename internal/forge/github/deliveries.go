package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// maxDeliveryCalls bounds what a look at a hook's deliveries costs: pages of a hundred,
	// and what is left of it for payloads, which the pages don't have.
	maxDeliveryCalls = 3

	// deliveryOverlap is how far each reading goes back behind the last. A delivery is listed once
	// it was answered, so a slow one comes up behind those that began after it.
	deliveryOverlap = 5 * time.Minute
)

// MissedDeliveries lists the failed deliveries that GitHub remembers (three days), of which no
// other attempt succeeded. It never sends one again by itself, and isn't asked to: that needs
// a server that it can reach. The cursor is a time of GitHub's.
func (d *Driver) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	ctx, owner, name := inRepo(ctx, r)
	id, err := d.hookID(ctx, r, q.URL)
	if err != nil {
		return forge.MissedDeliveries{}, err
	}
	out, err := readMissed(ctx, "list the deliveries of the webhook of "+r.String(), q, deliverySource{
		list: func(ctx context.Context, page *gh.ListCursorOptions) ([]*gh.HookDelivery, *gh.Response, error) {
			return d.api.Repositories.ListHookDeliveries(ctx, owner, name, id, page)
		},
		read: func(ctx context.Context, delivery int64) (*gh.HookDelivery, *gh.Response, error) {
			return d.api.Repositories.GetHookDelivery(ctx, owner, name, id, delivery)
		},
	})
	if errors.Is(err, forge.ErrUnsupported) { // or the hook is gone
		d.hooks.Remove(hookPlace{r, q.URL})
	}
	return out, err
}

// deliverySource is where a hook's deliveries are read.
type deliverySource struct {
	list    func(ctx context.Context, page *gh.ListCursorOptions) ([]*gh.HookDelivery, *gh.Response, error)
	read    func(ctx context.Context, delivery int64) (*gh.HookDelivery, *gh.Response, error)
	concern func(*gh.HookDelivery) bool // which ones are looked for; nil: all
}

// readMissed is MissedDeliveries over a source. ErrUnsupported: the server is older than the
// list, or there is no such hook any more.
func readMissed(ctx context.Context, op string, q forge.DeliveryQuery, src deliverySource) (forge.MissedDeliveries, error) {
	since, err := time.Parse(time.RFC3339, q.Cursor)
	if err != nil {
		since = time.Time{}
	}
	log := deliveryLog{concern: src.concern}
	page := gh.ListCursorOptions{PerPage: perPage}
	calls := 0
	for more := true; more && calls < maxDeliveryCalls; calls++ {
		list, resp, err := src.list(ctx, &page)
		if rest.StatusOf(err) == http.StatusNotFound {
			return forge.MissedDeliveries{}, &forge.Error{Op: op, Kind: forge.ErrUnsupported, Status: http.StatusNotFound, Err: err}
		}
		if err != nil {
			return forge.MissedDeliveries{}, wrapError(op, err)
		}
		page.Cursor = resp.Cursor
		more = log.add(list, since) && page.Cursor != ""
		log.cut = more
	}
	missed := log.missed(q.IsKnown)
	// Deliveries between the last page and the cursor are passed by for good, also where all that
	// was read was taken: the failures may be older than it.
	out := forge.MissedDeliveries{Incomplete: log.cut && (len(missed) > 0 || !since.IsZero()), Cursor: q.Cursor}
	if at := log.newest.Add(-deliveryOverlap); !log.newest.IsZero() && at.After(since) {
		out.Cursor = at.UTC().Format(time.RFC3339)
	}
	withPayloads := len(missed) <= maxDeliveryCalls-calls
	for _, m := range missed {
		found := forge.MissedDelivery{ID: m.GetGUID(), Event: m.GetEvent(),
			Answer: rest.ClipMessage(strconv.Itoa(m.GetStatusCode()) + " " + m.GetStatus())}
		if withPayloads {
			found.Payload, err = readPayload(ctx, op, m.GetID(), src)
			if err != nil && (ctx.Err() != nil || errors.Is(err, forge.ErrRateLimited)) {
				return forge.MissedDeliveries{}, err
			}
			// Any other failure may last (a payload larger than an answer may be, a delivery that
			// is gone), and would keep all others from being read.
		}
		out.Deliveries = append(out.Deliveries, found)
	}
	return out, nil
}

// readPayload reads what a delivery said; nothing, also without an error, where that isn't shown.
func readPayload(ctx context.Context, op string, delivery int64, src deliverySource) ([]byte, error) {
	whole, _, err := src.read(ctx, delivery)
	if err != nil {
		return nil, wrapError(op, err)
	}
	if whole.Request == nil || whole.Request.RawPayload == nil {
		return nil, nil
	}
	return *whole.Request.RawPayload, nil
}

// hookID is a hook's number, which is asked for where the hook wasn't read yet.
func (d *Driver) hookID(ctx context.Context, r forge.Repo, url string) (int64, error) {
	if id, ok := d.hooks.Get(hookPlace{r, url}); ok {
		return id, nil
	}
	hook, err := d.findHook(ctx, r, url)
	if err == nil && hook == nil {
		err = &forge.Error{Op: "find the webhook of " + r.String(), Kind: forge.ErrNotFound, Message: "there is none to " + url}
	}
	return hook.GetID(), err
}

// deliveryLog is what was read of a hook's deliveries, newest first.
type deliveryLog struct {
	concern func(*gh.HookDelivery) bool // which ones are looked for; nil: all
	read    []*gh.HookDelivery
	newest  time.Time
	cut     bool // there were more
}

// add takes up a page, as far as it isn't older than since; more says that what follows may not be either.
func (d *deliveryLog) add(page []*gh.HookDelivery, since time.Time) (more bool) {
	for _, v := range page {
		at := v.GetDeliveredAt().Time
		if at.Before(since) {
			return false
		}
		if at.After(d.newest) {
			d.newest = at
		}
		d.read = append(d.read, v)
	}
	return len(page) > 0
}

// missed are the deliveries of which no attempt succeeded, each once.
func (d *deliveryLog) missed(isKnown func(string) bool) []*gh.HookDelivery {
	done := map[string]bool{}
	for _, v := range d.read {
		if isDelivered(v) {
			done[v.GetGUID()] = true
		}
	}
	var missed []*gh.HookDelivery
	for _, v := range d.read {
		id := v.GetGUID()
		if done[id] || d.concern != nil && !d.concern(v) {
			continue
		}
		done[id] = true
		if !isKnown(id) {
			missed = append(missed, v)
		}
	}
	return missed
}

// isDelivered says that a delivery was taken. Whatever else GitHub says of one (throttled, no
// connection, timed out) it has a status that isn't a success.
func isDelivered(v *gh.HookDelivery) bool { return v.GetStatusCode()/100 == 2 }
