package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// TestAuditTrail holds whom each filter chooses, newest first, and that pages meet.
func TestAuditTrail(t *testing.T) {
	w := newTestConsole(t, nil)
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	for i, a := range []store.Audit{
		{Actor: "ada", Via: "comment", Verb: "hold", Subject: "hub:acme/fleet|shop|web #7 hold pr", Environment: "qa", Outcome: "taken", Reason: "odd"},
		{Actor: "ci", Via: "api", Verb: "promote", Subject: "hub:acme/fleet|shop|web #0 promote qa", Environment: "qa", Outcome: "taken"},
		{Actor: "linus", Via: "comment", Verb: "skip", Subject: "hub:acme/fleet|shop|web-admin #9 skip soak", Outcome: "refused: it takes breakGlass"},
		{Actor: "ada", Via: "comment", Verb: "unhold", Subject: "hub:acme/other|pay|api #3 unhold pr", Outcome: "taken"},
		{Actor: "grace", Via: "comment", Verb: "diff", Subject: "hub:acme/other #4 diff", Outcome: "taken"},
		{Actor: "grace", Via: "comment", Verb: "why", Subject: "hub:acme/other2 #4 why", Outcome: "taken"},
	} {
		a.At, a.Source = now.Add(time.Duration(i)*time.Hour), fmt.Sprint(i)
		if err := w.store.AddAudit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"":                            "why diff unhold skip promote hold",
		"actor=ada":                   "unhold hold",
		"verb=skip":                   "skip",
		"via=api":                     "promote",
		"environment=qa":              "promote hold",
		"environment=qa&actor=ci":     "promote",
		"environment=prod":            "",
		"repository=hub:acme/other":   "diff unhold",
		"pipeline=shop":               "skip promote hold",
		"pipeline=shop&component=web": "promote hold",
		"pipeline=gone&repository=hub:acme/fleet":                  "",
		"since=" + now.Add(2*time.Hour).UTC().Format(time.RFC3339): "why diff unhold skip",
		"until=" + now.Add(2*time.Hour).UTC().Format(time.RFC3339): "promote hold",
		"since=2000-01-01&until=2000-01-02":                        "",
	} {
		var got []string
		for _, e := range readJSON[api.AuditTrail](w, "/api/v1/audit?"+query).Entries {
			got = append(got, e.Verb)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	var pages []string
	for next, n := int64(0), 0; n == 0 || next > 0; n++ {
		path := "/api/v1/audit?limit=3"
		if next > 0 {
			path += fmt.Sprintf("&before=%d", next)
		}
		page := readJSON[api.AuditTrail](w, path)
		for _, e := range page.Entries {
			pages = append(pages, e.Verb)
		}
		if next = page.Next; n > 3 {
			t.Fatal("it never ends")
		}
	}
	if !slices.Equal(pages, []string{"why", "diff", "unhold", "skip", "promote", "hold"}) {
		t.Errorf("the pages have %v", pages)
	}
	first := readJSON[api.AuditTrail](w, "/api/v1/audit?verb=hold").Entries[0]
	if first.Repository != "hub:acme/fleet" || first.Pipeline != "shop" || first.Component != "web" || first.Pull == nil || first.Pull.Number != 7 || first.Command != "hold pr" || first.Environment != "qa" {
		t.Errorf("its subject is %+v", first)
	}
	if first.Actor != "ada" || first.Via != "comment" || first.Reason != "odd" || first.Outcome != "taken" || !first.At.Equal(now) || first.ID == 0 || !strings.HasSuffix(first.Subject, "#7 hold pr") {
		t.Errorf("an entry is %+v", first)
	}
}

// TestAuditedMerges holds that by what a merge was judged is told, and that a merge of which
// that can't be read is told all the same.
func TestAuditedMerges(t *testing.T) {
	w := newTestConsole(t, nil)
	record := promotion.MergeRecord{Kind: promotion.KindPromotion, Release: "r", Head: "h", Tip: "t", Commit: "c", JudgedAt: now, Inputs: "00",
		Gates: []policies.Result{{Gate: "soak", Outcome: policies.Pass, Reason: "skipped", SkippedBy: "ada", Until: now}}}
	for i, data := range []json.RawMessage{mustJSON(record), mustJSON("odd"), nil} {
		w.must(w.store.AddAudit(t.Context(), store.Audit{At: now, Actor: "lock", Via: "server", Verb: "merge", Subject: fmt.Sprintf("%s|shop|web #%d merge", testRepo, i+1), Outcome: "merged", Data: data}))
	}
	w.must(w.store.AddAudit(t.Context(), store.Audit{At: now, Actor: "ada", Via: "comment", Verb: "hold", Outcome: "taken", Data: mustJSON(record)}))
	entries := readJSON[api.AuditTrail](w, "/api/v1/audit?verb=merge&via=server").Entries
	if len(entries) != 3 || entries[0].Merge != nil || entries[1].Merge != nil || entries[2].Command != "merge" {
		t.Fatalf("the merges are %+v", entries)
	}
	want := api.AuditedMerge{Kind: "promotion", Release: "r", Head: "h", Tip: "t", Commit: "c", JudgedAt: now, Inputs: "00", Gates: []api.Gate{{Gate: "soak", Outcome: "pass", Reason: "skipped", Until: now, SkippedBy: "ada"}}}
	if got := entries[2].Merge; got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("it was judged by %+v", got)
	}
	if got := readJSON[api.AuditTrail](w, "/api/v1/audit?verb=hold").Entries[0].Merge; got != nil {
		t.Errorf("a command was judged by %+v", got)
	}
}

// addAudits writes n entries down, a second apart.
func addAudits(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		a := store.Audit{At: now.Add(time.Duration(i) * time.Second), Actor: []string{"ada", "ci"}[i%2], Via: []string{"comment", "api"}[i%2], Verb: "retry",
			Subject: fmt.Sprintf("hub:acme/fleet|shop|web #%d retry", i+1), Outcome: "taken", Source: fmt.Sprint(i)}
		if err := s.AddAudit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

// readLines decodes an export.
func readLines(t *testing.T, body string) (out []api.AuditEntry) {
	t.Helper()
	for in := bufio.NewScanner(strings.NewReader(body)); in.Scan(); {
		var e api.AuditEntry
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatalf("%q is no JSON: %v", in.Text(), err)
		}
		out = append(out, e)
	}
	return out
}

// TestAuditExport holds that an export has every entry that the filter chooses, once, over
// several pages of the store.
func TestAuditExport(t *testing.T) {
	w := newTestConsole(t, nil)
	const all = maxLimit + 40
	addAudits(t, w.store, all)
	for _, c := range []struct {
		name, query, accept string
		first, count        int
	}{
		{"everything", "format=jsonl", "", all, all},
		{"by its media type", "", "application/x-ndjson, */*", all, all},
		{"of one person", "format=jsonl&actor=ada", "", all - 1, all / 2},
		{"of a component", "format=jsonl&repository=hub:acme/fleet&pipeline=shop&component=web&limit=7", "", all, 7},
		{"exactly one page of the store", "format=jsonl&limit=500", "", all, maxLimit},
		{"over two pages of the store", "format=jsonl&limit=501", "", all, maxLimit + 1},
		{"from an entry on", "format=jsonl&before=3", "", 2, 2},
		{"nothing", "format=jsonl&until=2000-01-01", "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := w.request("GET", "/api/v1/audit?"+c.query, "", map[string]string{"Accept": c.accept})
			if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "application/x-ndjson") || !strings.Contains(header.Get("Content-Disposition"), "liftlock-audit.jsonl") || header.Get("Vary") != "Accept" {
				t.Fatalf("%d %v", status, header)
			}
			got := readLines(t, body)
			if len(got) != c.count || c.count > 0 && got[0].Pull.Number != c.first {
				t.Fatalf("%d entries, want %d from #%d", len(got), c.count, c.first)
			}
			for i := 1; i < len(got); i++ {
				if got[i].ID >= got[i-1].ID {
					t.Fatalf("%d comes after %d", got[i].ID, got[i-1].ID)
				}
			}
		})
	}
	if status, header, body := w.request("GET", "/api/v1/audit?format=json", "", map[string]string{"Accept": "application/x-ndjson"}); status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "application/json") || !strings.HasPrefix(body, `{"entries":`) {
		t.Errorf("format=json is answered with %d %v", status, header)
	}
	if status, _, body := w.request("HEAD", "/api/v1/audit?format=jsonl", "", nil); status != 200 || body != "" {
		t.Errorf("HEAD is answered with %d %q", status, body)
	}
}

// TestAuditExportsAreFew holds that only so many exports read the store at once.
func TestAuditExportsAreFew(t *testing.T) {
	w := newTestConsole(t, nil)
	addAudits(t, w.store, 1)
	h, err := New(w.options)
	w.must(err)
	export := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/audit?format=jsonl", nil))
		return rec
	}
	for range maxAuditExports {
		h.server.auditExports <- struct{}{}
	}
	if rec := export(); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), "run already") {
		t.Errorf("one too many is answered with %d %s", rec.Code, rec.Body)
	}
	<-h.server.auditExports
	if status, _, _ := w.get("/api/v1/audit?format=jsonl"); status != 200 {
		t.Errorf("when one is done the next is answered with %d", status)
	}
}

// TestBrokenAuditExportIsSeen holds that a client can tell an export that failed half-way from a
// whole one. One that fails at once is an error like any other.
func TestBrokenAuditExportIsSeen(t *testing.T) {
	var reads atomic.Int64 // how many succeed
	reads.Store(1 << 30)
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Intercept: func(_ context.Context, name string, _ bool) error {
		if name == "" && reads.Add(-1) < 0 {
			return errors.New("the disk is gone")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	addAudits(t, s, maxLimit+1)
	h, err := New(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	for good, want := range map[int64]string{0: "503", 1: "cut off", 2: "whole"} {
		reads.Store(good)
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/v1/audit?format=jsonl", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		got := "whole"
		switch {
		case res.StatusCode != 200:
			got = fmt.Sprint(res.StatusCode)
		case err != nil:
			got = "cut off"
		}
		if got != want {
			t.Errorf("with %d reads that succeed the export is %s, want %s", good, got, want)
		}
	}
}

func TestAuditSubjects(t *testing.T) {
	for subject, want := range map[string]auditTarget{
		"hub:acme/fleet|shop|web #7 hold pr":            {"hub:acme/fleet", "shop", "web", 7, "hold pr"},
		"hub:acme/fleet|shop| #0 hold environment prod": {"hub:acme/fleet", "shop", "", 0, "hold environment prod"},
		"hub:acme/fleet #12 diff":                       {"hub:acme/fleet", "", "", 12, "diff"},
		"hub:acme/fleet|shop|a #b c% #3 promote qa":     {"hub:acme/fleet", "shop", "a #b c%", 3, "promote qa"},
		"hub:acme/fleet|shop|web #7 skip #8 x":          {"hub:acme/fleet", "shop", "web", 7, "skip #8 x"},
		"hub:acme/fleet|shop|web #99999999999 hold":     {},
		"hub:acme/fleet|shop|web #4294967296 hold":      {},
		"hub:acme/fleet|shop #7 hold":                   {},
		"hub:acme/fleet|shop|web|more #7 hold":          {},
		"|shop|web #7 hold":                             {},
		"shop/prod":                                     {},
		"":                                              {},
	} {
		got, ok := parseAuditSubject(subject)
		if got != want || ok != (want != auditTarget{}) {
			t.Errorf("%q is %+v, want %+v", subject, got, want)
		}
	}
}

// FuzzAuditQuery holds that a query is either refused with a reason for its author, or
// stays within the bounds that the rest relies on.
func FuzzAuditQuery(f *testing.F) {
	for _, s := range []string{"", "actor=ada&verb=hold&via=api", "pipeline=shop&component=web", "since=2026-03-02&until=2026-03-03T09:00:00%2B02:00", "before=9&limit=5", "since=x", "via=x", "until=0000-01-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := parseQuery(raw, auditParameters...)
		var q auditQuery
		if err == nil {
			q, err = parseAuditQuery(v, maxLimit)
		}
		if err != nil {
			var known *apiError
			if !errors.As(err, &known) || known.status != 400 || known.text == "" {
				t.Fatalf("%q is refused with %v", raw, err)
			}
			return
		}
		if q.Limit < 0 || q.Limit > maxLimit || q.Filter.Before < 0 || q.Component != "" && q.Pipeline == "" {
			t.Fatalf("%q gives %+v", raw, q)
		}
	})
}

// FuzzAuditSubject holds that a parsed subject gives back the parts that it was made of.
func FuzzAuditSubject(f *testing.F) {
	f.Add("hub:acme/fleet|shop|web #7 hold pr")
	f.Add("hub:acme/fleet #7 diff")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseAuditSubject(s)
		if !ok {
			return
		}
		if got.repository == "" || got.command == "" || got.pull < 0 || strings.Contains(got.repository+got.pipeline+got.component, "|") || utf8.ValidString(s) != utf8.ValidString(got.repository+got.pipeline+got.component+got.command) {
			t.Fatalf("%q is read as %+v", s, got)
		}
	})
}
