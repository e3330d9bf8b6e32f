package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var streamAttribute = regexp.MustCompile(`data-stream="([^"]+)" data-version="([^"]+)"`)

// streamOf is the address at which a page is told of changes, as its script makes it.
func (tc *testConsole) streamOf(path string) string {
	tc.t.Helper()
	_, _, body := tc.get(path)
	m := streamAttribute.FindStringSubmatch(body)
	if m == nil {
		tc.t.Fatalf("%s has no stream", path)
	}
	address, err := url.Parse(tc.url + strings.ReplaceAll(m[1], "&amp;", "&"))
	tc.must(err)
	q := address.Query()
	q.Set("version", m[2])
	address.RawQuery = q.Encode()
	return address.String()
}

func anything(message) bool  { return true }
func changed(m message) bool { return m.Event == "changed" }

// land changes one cell of the first page, and no event tells of it.
func (tc *testConsole) land() {
	tc.t.Helper()
	tc.unit(testRepo, "shop", "search", "", env("dev", promotion.Verified, "0.31.0", 0, 1), env("qa", promotion.Verified, "0.30.4", 48*time.Hour, 2), env("prod", promotion.Verified, "0.30.4", 26*time.Hour, 3))
}

// refetch asks for a page as its script does, and says its status and new entity tag.
func (tc *testConsole) refetch(path, tag string) (int, string, string) {
	tc.t.Helper()
	status, header, body := tc.request(http.MethodGet, path, "", map[string]string{"If-None-Match": tag})
	return status, header.Get("ETag"), body
}

// A page that is told of a change is sent again only if it is another one.
func TestPagesAreSentAgainWhenTheyDiffer(t *testing.T) {
	passed := time.Duration(0)
	w := newTestConsole(t, func(o *Options) { o.Now = func() time.Time { return now.Add(passed) } })
	w.seedEverything()
	pages, tags := everyPage(), map[string]string{}
	for _, path := range pages {
		w.get(path) // addresses of pull requests and names of releases are learned by looking
	}
	for name, path := range pages {
		status, tag, body := w.refetch(path, `W/"other", "x"`)
		if pageName(name) != "#live" || status == http.StatusBadRequest {
			if tag != "" {
				t.Errorf("%s, which nobody follows, has the tag %s", name, tag)
			}
			continue
		}
		if status != 200 || tag == "" || body == "" {
			t.Fatalf("%s: %d with the tag %q", name, status, tag)
		}
		tags[path] = tag
	}
	// An hour later nothing but the ages is another, and neither are they on a restarted server.
	passed = time.Hour
	h, err := New(w.options)
	w.must(err)
	for _, path := range pages {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	for path, tag := range tags {
		if path == "/audit?since=yesterday&actor=ada" || path == "/overview" {
			continue // of days that go on
		}
		if status, _, body := w.refetch(path, `"x", `+tag); status != http.StatusNotModified || body != "" {
			t.Errorf("%s, an hour later: %d", path, status)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		if rec.Header().Get("ETag") != tag {
			t.Errorf("%s by another replica has the tag %s, not %s", path, rec.Header().Get("ETag"), tag)
		}
	}
	w.land()
	for path, want := range map[string]int{"/": 200, "/pipelines/shop": 200, "/pipelines/shop/web": 304, "/promotions": 304} {
		if status, _, _ := w.refetch(path, tags[path]); status != want {
			t.Errorf("%s after a change of search: %d, want %d", path, status, want)
		}
	}
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	if status, tag, body := w.refetch("/pipelines/shop/web", tags["/pipelines/shop/web"]); status != 200 || tag == tags["/pipelines/shop/web"] || !strings.Contains(body, "#14 merged") {
		t.Errorf("after an event of web: %d, %s", status, tag)
	}
}

func TestPageIsNotifiedOfChanges(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seed()
	l := w.openStream(t, w.streamOf("/"), nil)
	if m := l.next(anything); m.Retry != "2000" || m.Event != "" {
		t.Fatalf("a page that is as new as it can be is told %+v", m)
	}
	old := w.streamOf("/")
	w.land() // no event tells of it
	first := l.next(changed)
	if first.ID == "" || first.Data != "{}" || !strings.Contains(w.streamOf("/"), "version="+first.ID) {
		t.Errorf("it is told %+v", first)
	}
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	second := l.next(changed)
	if second.ID == first.ID {
		t.Errorf("of the second change it is told %+v", second)
	}
	// A page from before is told at once, and so is a stream that was cut off before a change.
	for name, c := range map[string]struct {
		headers map[string]string
		want    bool
	}{
		"a page from before":      {nil, true},
		"cut off before a change": {map[string]string{"Last-Event-ID": first.ID}, true},
		"cut off since":           {map[string]string{"Last-Event-ID": second.ID}, false},
	} {
		if m := w.openStream(t, old, c.headers).next(anything); m.Retry != "2000" || (m.Event == "changed") != c.want {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m := w.openStream(t, w.url+"/live", nil).next(anything); m.Event != "changed" {
		t.Errorf("a page of no version: %+v", m)
	}
}

// A page about one component is left alone by what happens to others.
func TestPageOfAComponentFollowsItAlone(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seed()
	web, all := w.openStream(t, w.streamOf("/pipelines/shop/web"), nil), w.openStream(t, w.streamOf("/"), nil)
	web.next(anything)
	all.next(anything)
	w.event("cart", "qa", "merged", 17, 0, "#17 merged")
	cart := all.next(changed)
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	if m := web.next(changed); m.ID == cart.ID || m.ID != all.next(changed).ID {
		t.Errorf("it is told %+v", m)
	}
	// A trouble is on every page.
	w.troubles = append(w.troubles, api.Trouble{Part: "argocd hub", Message: "is away"})
	w.event("cart", "qa", "merged", 17, 0, "#17 merged")
	web.next(changed)
}

// All who were told of a change are sent what was rendered once, each as old as it is by then.
func TestReadersOfAPageShareIt(t *testing.T) {
	passed := time.Duration(0)
	reads := 0
	w := newTestConsole(t, func(o *Options) {
		o.Poll, o.Now = time.Hour, func() time.Time { return now.Add(passed) }
		o.Health = func(context.Context) []api.Trouble { reads++; return nil }
	})
	w.seed()
	l := w.openStream(t, w.streamOf("/"), nil)
	l.next(anything)
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	l.next(changed)
	reads = 0
	_, first, _ := w.refetch("/", `"old"`)
	passed = 10 * time.Second
	status, second, body := w.refetch("/", `"old"`)
	if status != 200 || second != first || !strings.Contains(body, "#14 merged") || !strings.Contains(body, "data-ago>10 s<") || !strings.Contains(body, ">2026-03-02 09:00:10 UTC<") || reads != 1 {
		t.Errorf("%d: %s, then %s, rendered %d times:\n%s", status, first, second, reads, body)
	}
	if status, _, _ := w.refetch("/", first); status != http.StatusNotModified || reads != 1 {
		t.Errorf("who has it is answered with %d, and it is rendered %d times", status, reads)
	}
	// Who asks for it of their own accord gets it as it is now, and so does who has another address.
	for _, path := range []string{"/", "/?q=web"} {
		w.get(path)
	}
	w.refetch("/?q=cart", `"old"`)
	if reads != 4 {
		t.Errorf("it is rendered %d times, want 4", reads)
	}
	w.event("web", "prod", "verified", 14, 0, "#14 is verified")
	l.next(changed)
	if _, _, body := w.refetch("/", first); !strings.Contains(body, "#14 is verified") {
		t.Errorf("after the next change it is:\n%s", body)
	}
}

// TestMarksCantBeForged holds that people's text can't be taken for a mark.
func TestMarksCantBeForged(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.event("web", "prod", "merged", 14, 0, "\x01a1\x01 #14 merged \x01tx\x01")
	_, _, body := w.get("/")
	if !strings.Contains(body, "#14 merged") {
		t.Error("the event isn't shown")
	}
}

func TestStreamsOfUnitsThatMayNotBeRead(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken, o.Readers = true, vaultRules() })
	w.seed()
	w.seedHidden()
	address := "/live?unit=" + url.QueryEscape(hiddenRepo+"|vaulted|safe")
	if status, _, body := w.request(http.MethodGet, address, "", bearer("see")); status != http.StatusNotFound {
		t.Errorf("who may not read it is answered with %d %s", status, body)
	}
	if l := w.openStream(t, w.url+address, bearer("break")); l.status != 200 {
		t.Errorf("who may read it is answered with %d", l.status)
	}
	for _, query := range []string{"page=/", "unit=a&unit=b", "unit=" + strings.Repeat("x", 2*maxValue)} {
		if status, _, _ := w.request(http.MethodGet, "/live?"+query, "", bearer("see")); status != http.StatusBadRequest {
			t.Errorf("%.40s is answered with %d", query, status)
		}
	}
}
