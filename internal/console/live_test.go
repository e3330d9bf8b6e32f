package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var streamAttribute = regexp.MustCompile(`data-stream="([^"]+)"`)

// streamOf is the address of a page's stream, as the page says.
func (tc *testConsole) streamOf(path string) string {
	tc.t.Helper()
	_, _, body := tc.get(path)
	m := streamAttribute.FindStringSubmatch(body)
	if m == nil {
		tc.t.Fatalf("%s has no stream", path)
	}
	return tc.url + strings.ReplaceAll(m[1], "&amp;", "&")
}

func patched(m message) bool { return m.Event == "patch" || m.Event == "stale" }

// patch decodes the next change of a page.
func (s *streamListener) patch() (p pagePatch, m message) {
	s.t.Helper()
	m = s.next(patched)
	if m.Event != "patch" {
		s.t.Fatalf("it is %s", m.Event)
	}
	if err := json.Unmarshal([]byte(m.Data), &p); err != nil {
		s.t.Fatal(err)
	}
	return p, m
}

func (p *pagePatch) list(id string) *listPatch {
	for i := range p.Lists {
		if p.Lists[i].ID == id {
			return &p.Lists[i]
		}
	}
	return nil
}

func TestPageIsSentWhatHasChanged(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seed()
	l := w.openStream(t, w.streamOf("/"), nil)
	if m := l.next(func(message) bool { return true }); m.Retry != "2000" || m.Event != "" {
		t.Fatalf("a page that is as new as it can be is sent %+v", m)
	}
	// One cell changes: it alone is sent, and the numbers above.
	w.unit(testRepo, "shop", "search", "", env("dev", promotion.Verified, "0.31.0", 0, 1), env("qa", promotion.Verified, "0.30.4", 48*time.Hour, 2), env("prod", promotion.Verified, "0.30.4", 26*time.Hour, 3))
	p, m := l.patch()
	rows := p.list("rows-hub:acme/fleet-shop")
	if rows == nil || len(rows.Gone) != 0 || len(rows.Put) == 0 || p.list("events") != nil || p.Parts["count-moving"] == "" || p.Parts["troubles"] != "" {
		t.Fatalf("%+v", p)
	}
	put := rows.Put[len(rows.Put)-1]
	if put.ID != "c-hub:acme/fleet-shop-search" || put.Whole != "" || len(put.Cells) != 2 || !strings.Contains(put.Cells[1], "verified") || !strings.Contains(put.Cells[1], `data-ago>0 s<`) {
		t.Errorf("the row is sent as %+v", put)
	}
	if len(m.Data) > 5000 || strings.Contains(m.Data, "\x01") {
		t.Errorf("%d bytes: %s", len(m.Data), m.Data)
	}
	// An event: one item.
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	p, _ = l.patch()
	if events := p.list("events"); events == nil || len(events.Put) != 1 || events.Put[0].After != "" || !strings.Contains(events.Put[0].Whole, "#14 merged") {
		t.Errorf("%+v", p)
	}
}

func TestStreamOfAStalePage(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seed()
	old := w.streamOf("/")
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	l := w.openStream(t, old, nil)
	m := l.next(patched)
	if m.Event != "stale" || m.ID == "" {
		t.Fatalf("a page from before an event is sent %+v", m)
	}
	// It comes back from where it was, having fetched nothing: the stream goes on.
	again := w.openStream(t, old, map[string]string{"Last-Event-ID": m.ID})
	if m := again.next(func(message) bool { return true }); m.Event != "" {
		t.Errorf("it is sent %+v", m)
	}
	// A pipeline that wasn't there gives the page another shape.
	w.unit(testRepo, "ads", "banner", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	if m := again.next(patched); m.Event != "stale" {
		t.Errorf("with a pipeline more it is sent %+v", m)
	}
}

// A page about one component is left alone by what happens to others.
func TestPageOfAComponentFollowsItAlone(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seed()
	l := w.openStream(t, w.streamOf("/pipelines/shop/web"), nil)
	l.next(func(message) bool { return true })
	w.event("cart", "qa", "merged", 17, 0, "#17 merged")
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	p, _ := l.patch()
	events := p.list("events")
	if events == nil || len(events.Put) != 1 || !strings.Contains(events.Put[0].Whole, "#14 merged") {
		t.Errorf("%+v", p)
	}
}

func TestOnlyPagesAreFollowed(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for _, page := range []string{"/none", "/differences/shop", "/api/v1/pipelines", "/promotions/2/diff", "/live?page=/", "/assets/console.js", "/promotions?repository=hub:acme/fleet&pull=14", "/pipelines/none"} {
		if status, _, _ := w.get("/live?page=" + url.QueryEscape(page)); status != 404 {
			t.Errorf("%s is answered with %d", page, status)
		}
	}
	for _, page := range []string{"", "//elsewhere.example/", "https://elsewhere.example/", "relative", "/" + strings.Repeat("x", maxViewAddress)} {
		if status, _, _ := w.get("/live?page=" + url.QueryEscape(page)); status != 400 {
			t.Errorf("%.40s is answered with %d", page, status)
		}
	}
}

// At a change pages are rendered outside of a request: one that panics must not end the process.
func TestOpenPageThatPanics(t *testing.T) {
	h, err := New(newTestConsole(t, nil).options)
	if err != nil {
		t.Fatal(err)
	}
	h.server.live.HandleFunc("GET /broken", func(http.ResponseWriter, *http.Request) { panic("no such part") })
	if _, err := h.server.capturePage(t.Context(), "/broken"); err == nil || !strings.Contains(err.Error(), "render /broken: it panicked") {
		t.Errorf("a page that panics is rendered with %v", err)
	}
}

// A look's snapshot serves all views but those that may be newer already.
func TestViewsShareALook(t *testing.T) {
	reads := 0
	w := newTestConsole(t, func(o *Options) {
		o.Health = func(context.Context) []api.Trouble { reads++; return nil }
	})
	w.seed()
	h, err := New(w.options)
	w.must(err)
	c := h.server
	v, _, leave, _ := c.changes.joinView("/promotions", "a", c.access.allReading())
	defer leave()
	refresh := func(s *snapshot, want int, what string) {
		t.Helper()
		reads = 0
		if _, err := c.refreshView(t.Context(), v, s); err != nil || reads != want {
			t.Errorf("%s is rendered with %d reads, want %d: %v", what, reads, want, err)
		}
	}
	refresh(nil, 1, "a view without a look")
	s, err := c.reader.newSnapshot(t.Context())
	w.must(err)
	refresh(s, 0, "a view that is older than the look")
	refresh(s, 1, "a view that may be newer than the look")
}

// One client's many pages don't make everybody else's late.
func TestViewsOfAClientAreBounded(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	h, err := New(w.options)
	w.must(err)
	join := func(address, client string) string {
		_, _, leave, tooMany := h.server.changes.joinView(address, client, h.server.access.allReading())
		if tooMany == "" {
			t.Cleanup(leave)
		}
		return tooMany
	}
	for i := range maxViewsOfClient {
		if tooMany := join(fmt.Sprintf("/?q=%d", i), "a"); tooMany != "" {
			t.Fatalf("the page %d is refused: %s", i, tooMany)
		}
	}
	if tooMany := join("/?q=0", "a"); tooMany != "" {
		t.Errorf("a page that is followed already is refused: %s", tooMany)
	}
	if tooMany := join("/audit", "a"); !strings.Contains(tooMany, "different pages are followed from your address") {
		t.Errorf("one too many is answered with %q", tooMany)
	}
	if tooMany := join("/audit", "b"); tooMany != "" {
		t.Errorf("another client's is refused: %s", tooMany)
	}
}

// What people write can't be taken for a mark.
func TestMarksCantBeForged(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.event("web", "prod", "merged", 14, 0, "\x01p"+"grid"+"\x01 #14 merged \x01a1\x01")
	_, _, body := w.get("/")
	if !strings.Contains(body, "#14 merged") {
		t.Error("the event isn't shown")
	}
}

func TestListsAreSentByTheirMoves(t *testing.T) {
	m := newMarks()
	page := func(items ...string) *livePage {
		var b strings.Builder
		b.WriteString("<ol>" + string(m.list("l")))
		for _, it := range items {
			id, text, _ := strings.Cut(it, "=")
			fmt.Fprintf(&b, "%s<li id=%s>%s<b>%s</b>%s<i></i></li>", m.item(id), id, m.cell(), text, m.cell())
		}
		b.WriteString(string(m.endList()) + "</ol>" + string(m.part("p")) + "x" + string(m.endPart()))
		return m.split([]byte(b.String()))
	}
	for name, c := range map[string]struct {
		from, to []string
		want     string
	}{
		"nothing":     {[]string{"a=1", "b=1"}, []string{"a=1", "b=1"}, `{}`},
		"a cell":      {[]string{"a=1", "b=1"}, []string{"a=1", "b=2"}, `{"id":"l","put":[{"id":"b","after":"a","cells":{"1":"<b>2</b>"}}]}`},
		"to the top":  {[]string{"a=1", "b=1", "c=1"}, []string{"c=1", "a=1", "b=1"}, `{"id":"l","put":[{"id":"c","after":""}]}`},
		"a new one":   {[]string{"a=1"}, []string{"a=1", "z=1"}, `{"id":"l","put":[{"id":"z","after":"a","whole":"<li id=z><b>1</b><i></i></li>"}]}`},
		"one is gone": {[]string{"a=1", "b=1", "c=1"}, []string{"a=1", "c=1"}, `{"id":"l","gone":["b"]}`},
	} {
		from, to := newPageState(page(c.from...)), page(c.to...)
		patch, same := newPageState(to).diff(from, to, func(b []byte) string { return string(m.finish(b, now)) })
		got := "{}"
		if len(patch.Lists) > 0 {
			raw := new(strings.Builder)
			enc := json.NewEncoder(raw)
			enc.SetEscapeHTML(false)
			w := enc.Encode(patch.Lists[0])
			if w != nil {
				t.Fatal(w)
			}
			got = strings.TrimSpace(raw.String())
		}
		if got != c.want || !same || len(patch.Parts) > 0 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
