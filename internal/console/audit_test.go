package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestAuditTrail holds whom each filter chooses, newest first, and that pages meet.
func TestAuditTrail(t *testing.T) {
	w := newTestConsole(t, nil)
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	for i, a := range []store.Audit{
		{Actor: "ada", Via: "comment", Verb: "hold", Subject: "hub:acme/fleet|shop|web #7 hold pr", Outcome: "taken", Reason: "odd"},
		{Actor: "ci", Via: "api", Verb: "promote", Subject: "hub:acme/fleet|shop|web #0 promote qa", Outcome: "taken"},
		{Actor: "linus", Via: "comment", Verb: "skip", Subject: "hub:acme/fleet|shop|web-admin #9 skip soak", Outcome: "refused: it takes breakGlass"},
		{Actor: "ada", Via: "comment", Verb: "unhold", Subject: "hub:acme/other|pay|api #3 unhold pr", Outcome: "taken"},
	} {
		a.At, a.Source = now.Add(time.Duration(i)*time.Hour), fmt.Sprint(i)
		if err := w.store.AddAudit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"":                            "unhold skip promote hold",
		"actor=ada":                   "unhold hold",
		"verb=skip":                   "skip",
		"via=api":                     "promote",
		"repository=hub:acme/other":   "unhold",
		"pipeline=shop":               "skip promote hold",
		"pipeline=shop&component=web": "promote hold",
		"pipeline=gone&repository=hub:acme/fleet":                  "",
		"since=" + now.Add(2*time.Hour).UTC().Format(time.RFC3339): "unhold skip",
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
	if !slices.Equal(pages, []string{"unhold", "skip", "promote", "hold"}) {
		t.Errorf("the pages have %v", pages)
	}
	first := readJSON[api.AuditTrail](w, "/api/v1/audit?verb=hold").Entries[0]
	if first.Actor != "ada" || first.Via != "comment" || first.Reason != "odd" || first.Outcome != "taken" || !first.At.Equal(now) || first.ID == 0 || !strings.HasSuffix(first.Subject, "#7 hold pr") {
		t.Errorf("an entry is %+v", first)
	}
}
