package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

const hookURL = "https://liftlock.example.com/webhooks/hub"

// deliveryAt is when the newest delivery of these tests was.
var deliveryAt = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// deliveryJSON is a delivery as a list shows it, some minutes before the newest.
func deliveryJSON(id int, guid string, status, minutes int) jsonObject {
	return jsonObject{"id": id, "guid": guid, "delivered_at": deliveryAt.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339), "redelivery": false,
		"duration": 0.1, "status": "words", "status_code": status, "event": "push", "action": nil, "repository_id": 7, "throttled_at": nil}
}

func listDeliveries(t *testing.T, cursor string, known ...string) (*replayServer, func(pages ...[]jsonObject) (forge.MissedDeliveries, error)) {
	t.Helper()
	r, d := newReplayServer(t)
	r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{{"id": 1, "config": jsonObject{"url": hookURL + "2"}}, {"id": 2, "config": jsonObject{"url": hookURL}}}))
	return r, func(pages ...[]jsonObject) (forge.MissedDeliveries, error) {
		var answers []response
		for i, page := range pages {
			answer := okResponse(page)
			if i < len(pages)-1 {
				answer.header = map[string]string{"Link": fmt.Sprintf(`<SERVER/api/v3/repositories/7/hooks/2/deliveries?cursor=v1_%d>; rel="next"`, i+1)}
			}
			answers = append(answers, answer)
		}
		r.on("GET repos/acme/fleet/hooks/2/deliveries", answers...)
		return d.MissedDeliveries(ctx, testRepoName, forge.DeliveryQuery{URL: hookURL, Cursor: cursor, IsKnown: func(id string) bool { return strings.Contains(strings.Join(known, " "), id) }})
	}
}

// TestMissedDeliveries holds what counts as missed, each once, and what a look costs: three
// calls beside the one that finds the hook, payloads included.
func TestMissedDeliveries(t *testing.T) {
	fails := func(from, n int) (page []jsonObject) {
		for i := range n {
			page = append(page, deliveryJSON(from+i, fmt.Sprintf("guid-%d", from+i), 503, 0))
		}
		return page
	}
	for _, c := range []struct {
		name       string
		cursor     string
		known      string
		pages      [][]jsonObject
		want       string // identities
		payloads   int
		incomplete bool
		calls      int
	}{
		{"none", "", "", [][]jsonObject{{}}, "", 0, false, 1},
		{"taken, without connection, throttled, refused", "", "", [][]jsonObject{{deliveryJSON(4, "d", 202, 0), deliveryJSON(3, "c", 0, 1), deliveryJSON(1, "a", 302, 2)}}, "c a", 2, false, 3},
		{"sent again, and taken", "", "", [][]jsonObject{{deliveryJSON(3, "a", 200, 0), deliveryJSON(2, "b", 500, 1), deliveryJSON(1, "a", 500, 2)}}, "b", 1, false, 2},
		{"sent again, in vain", "", "", [][]jsonObject{{deliveryJSON(3, "a", 500, 0), deliveryJSON(1, "a", 500, 2)}}, "a", 1, false, 2},
		{"known", "", "a", [][]jsonObject{{deliveryJSON(3, "b", 500, 0), deliveryJSON(1, "a", 500, 2)}}, "b", 1, false, 2},
		{"too many for payloads", "", "", [][]jsonObject{fails(1, 3)}, "guid-1 guid-2 guid-3", 0, false, 1},
		{"older than the cursor", "2026-03-02T08:50:00Z", "", [][]jsonObject{{deliveryJSON(9, "a", 500, 10), deliveryJSON(8, "b", 500, 11)}, {deliveryJSON(7, "c", 500, 12)}}, "a", 1, false, 2},
		{"a cursor that nobody wrote", "yesterday", "", [][]jsonObject{{deliveryJSON(9, "a", 500, 10)}}, "a", 1, false, 2},
		{"three pages and no more", "", "", [][]jsonObject{fails(10, 2), fails(20, 2), fails(30, 2), fails(40, 2)}, "guid-10 guid-11 guid-20 guid-21 guid-30 guid-31", 0, true, 3},
		{"three pages of what was taken", "", "", [][]jsonObject{{deliveryJSON(9, "a", 200, 0)}, {deliveryJSON(8, "b", 200, 0)}, {deliveryJSON(7, "c", 200, 0)}, fails(1, 1)}, "", 0, false, 3},
		{"three pages of what was taken, and more up to the cursor", "2026-03-02T08:50:00Z", "", [][]jsonObject{{deliveryJSON(9, "a", 200, 0)}, {deliveryJSON(8, "b", 200, 0)}, {deliveryJSON(7, "c", 200, 0)}, fails(1, 1)}, "", 0, true, 3},
		{"three pages of what was taken, up to the cursor", "2026-03-02T08:50:00Z", "", [][]jsonObject{{deliveryJSON(9, "a", 200, 0)}, {deliveryJSON(8, "b", 200, 0)}, {deliveryJSON(7, "c", 200, 11)}, fails(1, 1)}, "", 0, false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, list := listDeliveries(t, c.cursor, c.known)
			for id := range 5 {
				r.on(fmt.Sprintf("GET repos/acme/fleet/hooks/2/deliveries/%d", id), okResponse(jsonObject{"id": id, "request": jsonObject{"payload": jsonObject{"ref": "refs/heads/main"}}}))
			}
			r.on("GET repos/acme/fleet/hooks/2/deliveries/9", okResponse(jsonObject{"id": 9, "request": jsonObject{"payload": jsonObject{"ref": "refs/heads/main"}}}))
			got, err := list(c.pages...)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			payloads := 0
			for _, m := range got.Deliveries {
				ids = append(ids, m.ID)
				if string(m.Payload) == `{"ref":"refs/heads/main"}` {
					payloads++
				}
				if m.Event != "push" || !strings.HasSuffix(m.Answer, " words") {
					t.Errorf("it shows %+v", m)
				}
			}
			if strings.Join(ids, " ") != c.want || payloads != c.payloads || got.Incomplete != c.incomplete {
				t.Errorf("got %q with %d payloads, incomplete %t; want %q with %d, %t", ids, payloads, got.Incomplete, c.want, c.payloads, c.incomplete)
			}
			if n := len(r.calls("hooks/2/deliveries")); n != c.calls {
				t.Errorf("it took %d calls, want %d: %v", n, c.calls, r.calls(""))
			}
		})
	}
}

// TestDeliveryCursor holds that some of what was read is read again, and that a look at nothing
// new leaves the cursor where it was.
func TestDeliveryCursor(t *testing.T) {
	for _, c := range []struct {
		cursor string
		page   []jsonObject
		want   string
	}{
		{"", nil, ""},
		{"", []jsonObject{deliveryJSON(1, "a", 200, 0)}, "2026-03-02T08:55:00Z"},
		{"2026-03-02T08:57:00Z", []jsonObject{deliveryJSON(1, "a", 200, 1)}, "2026-03-02T08:57:00Z"},
		{"2026-03-02T08:57:00Z", nil, "2026-03-02T08:57:00Z"},
	} {
		_, list := listDeliveries(t, c.cursor)
		if got, err := list(c.page); err != nil || got.Cursor != c.want {
			t.Errorf("from %q: %q, %v; want %q", c.cursor, got.Cursor, err, c.want)
		}
	}
}

// TestUnreadablePayload holds that an unreadable payload is left out, and keeps neither the others
// nor the cursor back. A limit of calls, or a process that ends, is waited for instead.
func TestUnreadablePayload(t *testing.T) {
	page := []jsonObject{deliveryJSON(2, "b", 500, 0), deliveryJSON(1, "a", 500, 1)}
	payload := okResponse(jsonObject{"id": 1, "request": jsonObject{"payload": jsonObject{"ref": "refs/heads/main"}}})
	for name, answer := range map[string]response{
		"gone":                {status: 404, body: `{"message":"Not Found"}`},
		"not allowed":         {status: 403, body: `{"message":"Resource not accessible by integration"}`},
		"broken":              {status: 502, body: `{"message":"Server Error"}`},
		"larger than is read": okResponse(jsonObject{"id": 2, "request": jsonObject{"payload": strings.Repeat("x", 17<<20)}}),
		"not what it says":    {status: 200, body: `{"id":`},
		"without a request":   okResponse(jsonObject{"id": 2}),
	} {
		r, list := listDeliveries(t, "")
		r.on("GET repos/acme/fleet/hooks/2/deliveries/2", answer)
		r.on("GET repos/acme/fleet/hooks/2/deliveries/1", payload)
		got, err := list(page)
		if err != nil || len(got.Deliveries) != 2 || len(got.Deliveries[0].Payload) != 0 || string(got.Deliveries[1].Payload) != `{"ref":"refs/heads/main"}` || got.Cursor != "2026-03-02T08:55:00Z" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}

	r, list := listDeliveries(t, "")
	r.on("GET repos/acme/fleet/hooks/2/deliveries/2", response{status: 429, header: map[string]string{"Retry-After": "60"}, body: `{"message":"slow down"}`})
	if got, err := list(page); !errors.Is(err, forge.ErrRateLimited) || got.Cursor != "" {
		t.Errorf("limited: %+v, %v", got, err)
	}

	r, d := newReplayServer(t)
	r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{{"id": 2, "config": jsonObject{"url": hookURL}}}))
	r.on("GET repos/acme/fleet/hooks/2/deliveries", okResponse(page))
	ending, end := context.WithCancel(ctx)
	got, err := d.MissedDeliveries(ending, testRepoName, forge.DeliveryQuery{URL: hookURL, IsKnown: func(string) bool { end(); return false }})
	if !errors.Is(err, context.Canceled) || len(got.Deliveries) != 0 || got.Cursor != "" {
		t.Errorf("ending: %+v, %v", got, err)
	}
}

// TestMissedDeliveriesRefused tells a server that has no such call from a hook that isn't there.
func TestMissedDeliveriesRefused(t *testing.T) {
	r, list := listDeliveries(t, "")
	if _, err := list(); !errors.Is(err, forge.ErrUnsupported) {
		t.Errorf("on an older server: %v", err)
	}
	r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{}))
	if _, err := list(nil); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("without a hook: %v", err)
	}
}
