package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// seedAudit puts what people and tokens said about the seed's story on record.
func (tc *testConsole) seedAudit() {
	tc.t.Helper()
	merged := mustJSON(promotion.MergeRecord{Kind: promotion.KindPromotion, Release: "r", Head: "1111111111111111", Tip: "2222222222222222", Commit: "3333333333333333", JudgedAt: before(time.Hour), Inputs: strings.Repeat("ab", 32),
		Gates: []policies.Result{{Gate: "approvals", Outcome: policies.Pass, Reason: "1 of 1 approvals: ada"}, {Gate: "soak", Outcome: policies.Pass, Reason: "skipped by oncall", SkippedBy: "oncall"}}})
	for i, a := range []store.Audit{
		{Actor: "lock", Via: "server", Verb: "merge", Subject: testRepo + "|shop|web #14 merge", Environment: "qa", Reason: "approvals pass, soak skipped by oncall", Outcome: "merged as 333333333333", Data: merged},
		{Actor: "linus", Via: "forge", Verb: "merge", Subject: testRepo + "|shop|web #12 merge", Environment: "prod", Reason: "nobody had looked at its gates", Outcome: "merged", Data: mustJSON(promotion.MergeRecord{Kind: promotion.KindPromotion, Head: "4444444444444444"})},
		{Actor: "grace", Via: "comment", Verb: "diff", Subject: testRepo + " #11 diff", Outcome: "taken"},
		{Actor: "ada", Via: "comment", Verb: "hold", Subject: testRepo + "|shop|mail #19 hold component", Reason: "waits for the new certificate", Outcome: "taken"},
		{Actor: "ci", Via: "api", Verb: "promote", Subject: testRepo + "|shop|web #0 promote prod", Environment: "prod", Outcome: "refused: prod has an approvals gate: promote takes somebody whose approval counts there, and an operator's token is not"},
		{Actor: "oncall", Via: "api", Verb: "skip", Subject: testRepo + "|shop|web #14 skip soak", Environment: "qa", Reason: "the fix can't wait until tomorrow", Outcome: "taken"},
		{Actor: "oncall", Via: "api", Verb: "hold", Subject: testRepo + "|shop| #0 hold environment prod for 2h0m0s reverts", Environment: "prod", Reason: "incident 4711", Outcome: "taken"},
		{Actor: "linus", Via: "comment", Verb: "revert", Subject: testRepo + "|shop|removed #8 revert", Reason: "no", Outcome: "refused: linus may not write to acme/fleet"},
	} {
		a.At, a.Source = before(time.Duration(90-10*i)*time.Minute), fmt.Sprint("s", i)
		tc.must(tc.store.AddAudit(tc.t.Context(), a))
	}
}

func TestAuditPagesAreAsTheGoldenFilesSay(t *testing.T) {
	w := newTestConsole(t, nil)
	if status, _, body := w.get("/audit"); status != 200 {
		t.Fatalf("the empty page is answered with %d", status)
	} else {
		golden(t, "audit-empty.html", digests.ReplaceAllString(body, "?v=DIGEST"))
	}
	w.seed()
	w.seedAudit()
	for name, c := range map[string]struct {
		path   string
		status int
	}{
		"audit.html":          {"/audit", 200},
		"audit-filtered.html": {"/audit?actor=oncall&pipeline=shop&since=2026-03-01&until=2026-03-02T09:00:00Z&limit=1", 200},
		"audit-bad.html":      {"/audit?since=yesterday&actor=ada&verb=revrt", 400},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body := w.get(c.path)
			if status != c.status || header.Get("Content-Type") != "text/html; charset=utf-8" || header.Get("Content-Security-Policy") != contentPolicy {
				t.Fatalf("%d %v", status, header)
			}
			golden(t, name, digests.ReplaceAllString(body, "?v=DIGEST"))
		})
	}
}

// TestAuditPageRefusesAsTheAPI holds that the page refuses what the API refuses, in the
// same words, and keeps what was filled in.
func TestAuditPageRefusesAsTheAPI(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.seedAudit()
	w.unit("hub:acme/copy", "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"actor=x1&since=yesterday":                   {400, "the parameter since is a date like 2026-03-02"},
		"actor=x1&until=31.12.":                      {400, "the parameter until is a date like 2026-03-02"},
		"actor=x1&since=2026-03-02&until=2026-03-01": {400, "nothing lies since 2026-03-02 and until 2026-03-01"},
		"actor=x1&component=web":                     {400, "the parameter component needs the parameter pipeline"},
		"actor=x1&via=pigeon":                        {400, "one of comment, api, console, server, forge, not"},
		"actor=x1&verb=revrt":                        {400, "one of help, status"},
		"actor=x1&pipeline=none":                     {404, "there is no pipeline"},
		"actor=x1&pipeline=shop":                     {409, "hub:acme/copy, hub:acme/fleet"},
		"actor=x1&before=0":                          {400, "whole number from 1"},
		"actor=x1&outcome=taken":                     {400, "there is no parameter"},
		"actor=x1&format=jsonl":                      {400, "there is no parameter"},
		"actor=x1&verb=hold&verb=skip":               {400, "given 2 times"},
		"actor=x1&component=%00":                     {400, "control characters"},
	} {
		status, _, body := w.get("/audit?" + query)
		text := strings.ReplaceAll(strings.ReplaceAll(body, "&#34;", `"`), "&#39;", "'")
		if status != want.status || !strings.Contains(text, want.text) || !strings.Contains(body, `role="alert"`) || !strings.Contains(body, `name="actor" value="x1"`) {
			t.Errorf("%s is answered with %d\n%s", query, status, text)
		}
		if strings.Contains(body, "<table") || strings.Contains(body, "Export") || strings.ContainsRune(body, 0) {
			t.Errorf("%s shows what it didn't choose", query)
		}
	}
}

// TestAuditPagesMeet follows the links from the newest entry to the oldest and back.
func TestAuditPagesMeet(t *testing.T) {
	w := newTestConsole(t, nil)
	addAudits(t, w.store, 7)
	link := func(body, label string) string {
		before, _, ok := strings.Cut(body, ">"+label+"</a>")
		if !ok {
			return ""
		}
		_, href, _ := strings.Cut(before[strings.LastIndex(before, "<a "):], `href="`)
		href, _, _ = strings.Cut(href, `"`)
		return strings.ReplaceAll(href, "&amp;", "&")
	}
	var pulls []string
	last := ""
	path := "/audit?via=comment&limit=2"
	for range 3 {
		if path == "" {
			break
		}
		status, _, body := w.get(path)
		if status != 200 {
			t.Fatalf("%s: %d", path, status)
		}
		if got := link(body, "Export as JSON lines"); got != "/api/v1/audit?format=jsonl&via=comment" {
			t.Errorf("the export of %s is %q", path, got)
		}
		for _, n := range []string{"#1<", "#2<", "#3<", "#4<", "#5<", "#6<", "#7<"} {
			if strings.Contains(body, n) {
				pulls = append(pulls, n[1:2])
			}
		}
		last = body
		path = link(body, "Older ones")
	}
	if got := strings.Join(pulls, ""); got != "5713" || path != "" {
		t.Errorf("the pages show %s and lead to %q", got, path)
	}
	if got := link(last, "Newest"); got != "/audit?limit=2&via=comment" {
		t.Errorf("the last page leads back to %q", got)
	}
}

// TestEmptyFieldsLeaveTheAddress holds that what a form sends becomes an address that says
// only what was filled in.
func TestEmptyFieldsLeaveTheAddress(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ExternalURL = "https://ops.example/liftlock" })
	srv := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for query, want := range map[string]string{
		"actor=ada&verb=&via=&since=": "/liftlock/audit?actor=ada",
		"actor=&before=5":             "/liftlock/audit",
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/audit?"+query, nil)
		w.must(err)
		res, err := srv.Do(req)
		w.must(err)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != want {
			t.Errorf("%s is answered with %d to %q", query, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

func TestAuditIsNoMarkup(t *testing.T) {
	w := newTestConsole(t, nil)
	evil := `"><script>alert(1)</script><a href='javascript:x`
	w.must(w.store.PutPulls(t.Context(), pullWith(14, "javascript:alert(1)//14", evil)))
	w.unit(testRepo, evil, evil, "", env("dev", promotion.Verified, "1", time.Hour, 1))
	for i, subject := range []string{testRepo + "|" + evil + "|" + evil + " #14 " + evil, evil, evil + " #14 " + evil} {
		w.must(w.store.AddAudit(t.Context(), store.Audit{Actor: evil, Via: evil, Verb: evil, Subject: subject, Reason: evil, Outcome: []string{evil, "refused: " + evil, "taken"}[i]}))
	}
	for _, name := range append([]string{"none"}, auditParameters...) {
		_, _, body := w.get("/audit?" + name + "=" + pathEscape(evil))
		if strings.Contains(body, "<script>") || strings.Contains(body, `href="javascript:`) || strings.Contains(body, `href='javascript:`) {
			t.Errorf("%s lets text through as markup", name)
		}
	}
	status, _, body := w.get("/audit")
	if status != 200 || strings.Contains(body, "<script>") || strings.Contains(body, `href="javascript:`) || strings.Count(body, "&lt;script&gt;") < 10 {
		t.Errorf("the trail is answered with %d\n%s", status, body)
	}
}

func TestAuditIsForReaders(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken = true })
	w.seedAudit()
	for _, path := range []string{"/audit", "/api/v1/audit?format=jsonl"} {
		if status, _, body := w.get(path); status != http.StatusUnauthorized || strings.Contains(body, "linus") {
			t.Errorf("%s without a token is answered with %d", path, status)
		}
		if status, _, body := w.request("GET", path, "", bearer("see")); status != 200 || !strings.Contains(body, "linus") {
			t.Errorf("%s with a viewer's token is answered with %d", path, status)
		}
	}
}
