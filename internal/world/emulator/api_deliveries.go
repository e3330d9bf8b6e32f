package emulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deliveriesKept is how far back GitHub remembers a hook's deliveries (REST API, "Repository
// webhook deliveries").
const deliveriesKept = 3 * 24 * time.Hour

// deliveryCursor begins a cursor; the rest is the number of the page's first delivery.
const deliveryCursor = "v1_"

type wireDelivery struct {
	ID           int64      `json:"id"`
	GUID         string     `json:"guid"`
	DeliveredAt  time.Time  `json:"delivered_at"`
	Redelivery   bool       `json:"redelivery"`
	Duration     float64    `json:"duration"`
	Status       string     `json:"status"`
	StatusCode   int        `json:"status_code"`
	Event        string     `json:"event"`
	Action       *string    `json:"action"`
	Installation *int64     `json:"installation_id"`
	Repository   *int64     `json:"repository_id"`
	ThrottledAt  *time.Time `json:"throttled_at"`
}

// wholeDelivery is one by itself: only that has what was sent and answered.
type wholeDelivery struct {
	wireDelivery
	URL      string     `json:"url"`
	Request  restObject `json:"request"`
	Response restObject `json:"response"`
}

func wireDeliveryOf(d Delivery) wireDelivery {
	w := wireDelivery{ID: d.log, GUID: d.ID, DeliveredAt: d.At.UTC(), Redelivery: d.again, Duration: d.took.Seconds(), StatusCode: d.Status,
		Event: d.Event}
	if d.hook.repo != nil {
		w.Repository = &d.hook.repo.id
	}
	if d.hook.installation != 0 {
		w.Installation = &d.hook.installation
	}
	if d.Action != "" {
		w.Action = &d.Action
	}
	switch {
	case d.Status >= 200 && d.Status < 300:
		w.Status = "OK"
	case d.Status == 0:
		w.Status = "failed to connect to host"
	default:
		w.Status = fmt.Sprintf("Invalid HTTP Response: %d", d.Status)
	}
	return w
}

// hookDeliveries are those of a hook that are remembered, newest first.
func (c *call) hookDeliveries(h *hook) []Delivery {
	all := slices.DeleteFunc(c.Deliveries(), func(d Delivery) bool {
		return d.hook.id != h.id ||
			d.At.Before(c.now().Add(-deliveriesKept))
	})
	slices.Reverse(all)
	return all
}

// listDeliveries pages by a cursor: what comes meanwhile moves nothing.
func listDeliveries(c *call, h *hook) (any, error) {
	q := c.r.URL.Query()
	found := c.hookDeliveries(h)
	switch status := q.Get("status"); status {
	case "":
	case "success", "failure":
		found = slices.DeleteFunc(found, func(d Delivery) bool {
			if status == "success" {
				return d.Status < 200 || d.Status > 399
			}
			return d.Status < 400 || d.Status > 599
		})
	default:
		return nil, invalidField("Hook", "status", "invalid", "")
	}
	if cursor := q.Get("cursor"); cursor != "" {
		from, err := strconv.ParseInt(strings.TrimPrefix(cursor, deliveryCursor), 10, 64)
		if err != nil || !strings.HasPrefix(cursor, deliveryCursor) {
			return nil, newAPIError(http.StatusBadRequest, "Bad Request")
		}
		found = slices.DeleteFunc(found, func(d Delivery) bool { return d.log > from })
	}
	size := min(atLeast(q.Get("per_page"), 1, defaultPageSize), maxPageSize)
	if len(found) > size {
		q.Set("cursor", deliveryCursor+strconv.FormatInt(found[size].log, 10))
		next := url.URL{Path: c.r.URL.Path, RawQuery: q.Encode()}
		c.header.Set("Link", fmt.Sprintf("<%s%s>; rel=%q", c.url, next.String(), "next"))
		found = found[:size]
	}
	shown := []wireDelivery{}
	for _, d := range found {
		shown = append(shown, wireDeliveryOf(d))
	}
	return shown, nil
}

// withDelivery finds the delivery of the path.
func withDelivery(answer func(*call, *hook, Delivery) (any, error)) handler {
	return withHook(func(c *call, h *hook) (any, error) { return readDelivery(c, h, answer) })
}

// readDelivery answers about the delivery of the path.
func readDelivery(c *call, h *hook, answer func(*call, *hook, Delivery) (any, error)) (any, error) {
	id, err := c.pathNumber("delivery")
	if err != nil {
		return nil, err
	}
	all := c.hookDeliveries(h)
	i := slices.IndexFunc(all, func(d Delivery) bool { return d.log == id })
	if i < 0 {
		return nil, notFound()
	}
	return answer(c, h, all[i])
}

func getDelivery(_ *call, _ *hook, d Delivery) (any, error) {
	sent := restObject{"X-GitHub-Delivery": d.ID, "X-GitHub-Event": d.Event}
	return wholeDelivery{wireDelivery: wireDeliveryOf(d), URL: d.URL,
		Request:  restObject{"headers": sent, "payload": json.RawMessage(d.body)},
		Response: restObject{"headers": restObject{}, "payload": cmp.Or(d.answer, d.Err)}}, nil
}

// redeliver sends one again, with the same identity, to where the hook is now.
func redeliver(c *call, h *hook, d Delivery) (any, error) {
	d.Status, d.Err, d.again, d.hook, d.URL = 0, "", true, *h, h.url
	c.sender.enqueue(d)
	c.status = http.StatusAccepted
	return restObject{}, nil
}
