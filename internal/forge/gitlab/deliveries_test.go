package gitlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

const hookURL = "https://liftlock.example.com/webhooks/hub"

// eventJSON is an event of a hook as GitLab shows it.
func eventJSON(id int, key, status string) jsonObject {
	return jsonObject{"id": id, "url": hookURL, "trigger": "push_hooks", "request_headers": jsonObject{"X-Gitlab-Event": "Push Hook", "Idempotency-Key": key, "X-Gitlab-Token": "[REDACTED]"},
		"request_data": jsonObject{"object_kind": "push"}, "response_headers": jsonObject{}, "response_body": "", "execution_duration": 0.1, "response_status": status}
}

// eventsJSON are the events with the numbers from down to to, of which those fail that shall.
func eventsJSON(from, to int, fails func(id int) bool) (page []jsonObject) {
	for id := from; id >= to; id-- {
		status := "200"
		if fails(id) {
			status = "503"
		}
		page = append(page, eventJSON(id, fmt.Sprintf("key-%d", id), status))
	}
	return page
}

func listEvents(t *testing.T, q forge.DeliveryQuery, pages ...any) (*replayServer, forge.MissedDeliveries, error) {
	t.Helper()
	r, d := newReplayServer(t)
	r.on("GET hooks", okResponse([]jsonObject{{"id": 3, "url": hookURL + "2"}, {"id": 4, "url": hookURL}}))
	var answers []response
	for i, page := range pages {
		answer := okResponse(page)
		answer.header = map[string]string{"x-next-page": ""}
		if i < len(pages)-1 {
			answer.header["x-next-page"] = fmt.Sprint(i + 2)
		}
		answers = append(answers, answer)
	}
	r.on("GET hooks/4/events", answers...)
	q.URL = hookURL
	if q.IsKnown == nil {
		q.IsKnown = func(string) bool { return false }
	}
	out, err := d.MissedDeliveries(ctx, testRepoName, q)
	return r, out, err
}

// TestMissedDeliveries holds what counts as missed, each once, and how far is read.
func TestMissedDeliveries(t *testing.T) {
	every := func(n int) func(int) bool { return func(id int) bool { return id%n == 0 } }
	never := func(int) bool { return false }
	var long []any
	for page := range 12 {
		long = append(long, eventsJSON(1000-20*page, 981-20*page, every(50)))
	}
	fine := []any{}
	for page := range 12 {
		fine = append(fine, eventsJSON(1000-20*page, 981-20*page, never))
	}
	for _, c := range []struct {
		name       string
		cursor     string
		pages      []any
		want       string
		incomplete bool
		after      string
		calls      int
	}{
		{"none", "", []any{[]jsonObject{}}, "", false, "4/0", 1},
		{"refused, without an answer, redirected", "", []any{[]jsonObject{eventJSON(9, "d", "200"), eventJSON(8, "c", "internal error"), eventJSON(7, "b", "401"), eventJSON(6, "e", "201"), eventJSON(5, "a", "302")}}, "c b a", false, "4/9", 1},
		{"sent again, and taken", "", []any{[]jsonObject{eventJSON(9, "a", "200"), eventJSON(8, "b", "500"), eventJSON(7, "a", "500")}}, "b", false, "4/9", 1},
		{"sent again, in vain", "", []any{[]jsonObject{eventJSON(9, "a", "500"), eventJSON(8, "a", "500")}}, "a", false, "4/9", 1},
		{"known", "", []any{[]jsonObject{eventJSON(9, "known", "500"), eventJSON(8, "b", "500")}}, "b", false, "4/9", 1},
		{"read before", "4/8", []any{[]jsonObject{eventJSON(9, "a", "500"), eventJSON(8, "b", "500"), eventJSON(7, "c", "500")}}, "a", false, "4/9", 1},
		{"nothing new", "4/9", []any{eventsJSON(9, 1, every(1))}, "", false, "4/9", 1},
		{"a cursor that nobody wrote", "x", []any{[]jsonObject{eventJSON(9, "a", "500")}}, "a", false, "4/9", 1},
		{"a cursor without its hook", "9", []any{[]jsonObject{eventJSON(9, "a", "500")}}, "a", false, "4/9", 1},
		{"another hook's cursor", "3/9", []any{[]jsonObject{eventJSON(9, "a", "500"), eventJSON(8, "b", "200")}}, "a", false, "4/9", 1},
		{"another hook's, far ahead", "3/900", []any{[]jsonObject{eventJSON(9, "a", "500"), eventJSON(8, "b", "200")}}, "a", false, "4/9", 1},
		{"a GitLab from before the cursor", "4/900", []any{eventsJSON(40, 21, every(35)), eventsJSON(20, 16, every(18))}, "key-35 key-18", true, "4/40", 2},
		{"a GitLab from before the cursor, where nothing failed", "4/900", []any{eventsJSON(40, 38, never)}, "", true, "4/40", 1},
		{"a GitLab that has forgotten all", "4/900", []any{[]jsonObject{}}, "", false, "4/900", 1},
		{"four in a row", "", []any{eventsJSON(20, 1, func(id int) bool { return id > 8 && id <= 12 })}, "key-12 key-11 key-10 key-9", true, "4/20", 1},
		{"four in a row, one of them new", "4/19", []any{eventsJSON(20, 1, func(id int) bool { return id > 16 })}, "key-20", true, "4/20", 1},
		{"four in a row, none of them new", "4/18", []any{eventsJSON(20, 1, func(id int) bool { return id > 14 && id <= 18 })}, "", false, "4/20", 1},
		{"a row whose beginning isn't read", "4/39", []any{eventsJSON(40, 21, func(id int) bool { return id == 40 || id < 30 }), eventsJSON(20, 1, never)}, "key-40", false, "4/40", 1},
		{"pages up to the cursor", "4/25", []any{eventsJSON(60, 41, every(45)), eventsJSON(40, 21, every(30)), eventsJSON(20, 1, every(1))}, "key-45 key-30", false, "4/60", 2},
		{"ten pages and no more", "", long, "key-1000 key-950 key-900 key-850", true, "4/1000", 10},
		{"ten pages of what was taken", "", fine, "", false, "4/1000", 10},
		{"ten pages of what was taken, and more up to the cursor", "4/800", fine, "", true, "4/1000", 10},
		{"ten pages of what was taken, up to the cursor", "4/801", fine, "", false, "4/1000", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, got, err := listEvents(t, forge.DeliveryQuery{Cursor: c.cursor, IsKnown: func(id string) bool { return id == "known" }}, c.pages...)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, m := range got.Deliveries {
				ids = append(ids, m.ID)
				if m.Event != "Push Hook" || string(m.Payload) != `{"object_kind":"push"}` || m.Answer == "" {
					t.Errorf("it shows %+v", m)
				}
			}
			if strings.Join(ids, " ") != c.want || got.Incomplete != c.incomplete || got.Cursor != c.after {
				t.Errorf("got %q, incomplete %t, cursor %q; want %q, %t, %q", ids, got.Incomplete, got.Cursor, c.want, c.incomplete, c.after)
			}
			made := r.calls("hooks/4/events")
			if len(made) != c.calls || !strings.Contains(made[0], "per_page=20") {
				t.Errorf("it made %d calls, want %d: %v", len(made), c.calls, made)
			}
		})
	}
}

// TestEventsOfAnotherShape holds that what GitLab doesn't say, or says otherwise, loses nothing else.
func TestEventsOfAnotherShape(t *testing.T) {
	event := func(change jsonObject) jsonObject {
		e := eventJSON(9, "a", "500")
		for k, v := range change {
			e[k] = v
		}
		return e
	}
	for _, c := range []struct {
		name   string
		change jsonObject
		want   forge.MissedDelivery
	}{
		{"before 17.4", jsonObject{"request_headers": jsonObject{"X-Gitlab-Event": "Push Hook"}}, forge.MissedDelivery{ID: "event 9", Event: "Push Hook", Answer: "500"}},
		{"signed", jsonObject{"request_headers": jsonObject{"x-gitlab-event": "Push Hook", "webhook-id": "w"}}, forge.MissedDelivery{ID: "w", Event: "Push Hook", Answer: "500"}},
		{"no headers", jsonObject{"request_headers": nil}, forge.MissedDelivery{ID: "event 9", Answer: "500"}},
		{"headers of another kind", jsonObject{"request_headers": []int{1}}, forge.MissedDelivery{ID: "event 9", Answer: "500"}},
		{"a header of another kind", jsonObject{"request_headers": jsonObject{"Idempotency-Key": 7, "X-Gitlab-Event": "Push Hook"}}, forge.MissedDelivery{ID: "event 9", Event: "Push Hook", Answer: "500"}},
		{"a status as a number", jsonObject{"response_status": 503}, forge.MissedDelivery{ID: "a", Event: "Push Hook", Answer: "503"}},
		{"no status", jsonObject{"response_status": nil}, forge.MissedDelivery{ID: "a", Event: "Push Hook", Answer: "<nil>"}},
		{"a long one", jsonObject{"response_status": strings.Repeat("2", 100)}, forge.MissedDelivery{ID: "a", Event: "Push Hook", Answer: strings.Repeat("2", maxAnswer-3) + "…"}},
		{"too large to be kept", jsonObject{"request_data": jsonObject{"oversize": true}}, forge.MissedDelivery{ID: "a", Event: "Push Hook", Answer: "500", Payload: []byte(`{"oversize":true}`)}},
	} {
		_, got, err := listEvents(t, forge.DeliveryQuery{}, []jsonObject{event(c.change)})
		if c.want.Payload == nil {
			c.want.Payload = []byte(`{"object_kind":"push"}`)
		}
		if err != nil || len(got.Deliveries) != 1 || fmt.Sprintf("%+v", got.Deliveries[0]) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got.Deliveries, err, c.want)
		}
	}
}

// TestMissedDeliveriesRefused tells a GitLab before 17.3 from a hook that isn't there.
func TestMissedDeliveriesRefused(t *testing.T) {
	if _, _, err := listEvents(t, forge.DeliveryQuery{}); !errors.Is(err, forge.ErrUnsupported) {
		t.Errorf("on an older GitLab: %v", err)
	}
	r, d := newReplayServer(t)
	r.on("GET hooks", okResponse([]jsonObject{}))
	if _, err := d.MissedDeliveries(ctx, testRepoName, forge.DeliveryQuery{URL: hookURL}); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("without a hook: %v", err)
	}
	r.on("GET hooks", okResponse([]jsonObject{{"id": 4, "url": hookURL}}))
	r.on("GET hooks/4/events", errorResponse(403, "403 Forbidden"))
	if _, err := d.MissedDeliveries(ctx, testRepoName, forge.DeliveryQuery{URL: hookURL}); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("without the right: %v", err)
	}
}

// FuzzHookEvents holds that no list of events, however it is made, gives more than it has. None
// moves the cursor back but to where the list ends.
func FuzzHookEvents(f *testing.F) {
	seed, err := json.Marshal(eventsJSON(9, 5, func(id int) bool { return id%2 == 0 }))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, int64(3), true)
	f.Add([]byte(`[{"id":-1,"request_headers":"x","response_status":{}}]`), int64(0), false)
	f.Fuzz(func(t *testing.T, body []byte, after int64, cut bool) {
		var list []hookEvent
		if json.Unmarshal(body, &list) != nil || after < 0 {
			return
		}
		log := eventLog{hook: "4", after: after, cut: cut}
		log.add(list)
		seen := map[string]bool{}
		out := log.missed(func(id string) bool { return id == "known" })
		for _, d := range out.Deliveries {
			if seen[d.ID] || d.ID == "" || d.ID == "known" || len(d.Answer) > maxAnswer {
				t.Errorf("%+v", d)
			}
			seen[d.ID] = true
		}
		var cursor int64
		if _, err := fmt.Sscanf(out.Cursor, "4/%d", &cursor); err != nil || cursor < after && !out.Incomplete || len(out.Deliveries) > len(list) {
			t.Errorf("the cursor went from %d to %q with %d of %d", after, out.Cursor, len(out.Deliveries), len(list))
		}
		for _, e := range list {
			if e.ID > cursor {
				t.Errorf("the cursor went from %d to %q, and leaves out %d", after, out.Cursor, e.ID)
			}
		}
	})
}
