package console

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// mergedCart writes down how #16 was merged, and what somebody asked for on it.
func (tc *testConsole) mergedCart() {
	tc.t.Helper()
	for _, a := range []store.Audit{
		{At: before(13 * time.Minute), Actor: "ada", Via: "comment", Verb: "retry", Subject: testRepo + "|shop|cart #16 retry", Environment: "qa", Outcome: "taken", Source: "a"},
		{At: before(12 * time.Minute), Actor: "lock", Via: promotion.AuditViaServer, Verb: promotion.AuditMerge, Subject: testRepo + "|shop|cart #16 merge", Environment: "qa", Outcome: "merged as 71b38f0a5be2", Source: "b",
			Data: mustJSON(promotion.MergeRecord{Kind: "promotion", Release: releaseID("2.3.0"), Head: releaseID("head")[:40], Tip: releaseID("tip")[:40], Commit: releaseID("qa2.3.0")[:40], JudgedAt: before(12 * time.Minute)})},
		{At: before(5 * time.Minute), Actor: "mallory", Via: "comment", Verb: "skip", Subject: testRepo + "|shop|cart #160 skip soak", Outcome: "refused: no", Source: "c"},
		{At: before(5 * time.Minute), Actor: "lock", Via: promotion.AuditViaServer, Verb: promotion.AuditMerge, Subject: testRepo + "|shop|web #14 merge", Outcome: "merged", Source: "d", Data: mustJSON(promotion.MergeRecord{Kind: "promotion"})},
	} {
		tc.must(tc.store.AddAudit(tc.t.Context(), a))
	}
}

func TestPromotionListsItsEvents(t *testing.T) {
	w := newTestConsole(t, func(o *Options) {
		o.CommitURL = func(repo, base, commit string) string {
			return "https://git.example/" + strings.TrimPrefix(repo, "hub:") + "/" + base + ".." + commit
		}
		o.ApplicationURL = func(argocd, application string) string {
			return "https://" + argocd + ".example/applications/" + application
		}
	})
	w.seed()
	w.mergedCart()
	d := readJSON[api.Promotion](w, "/api/v1/promotions/3").Detail
	commit := releaseID("qa2.3.0")[:40]
	if d.Cause != "qa-b: Deployment cart is Degraded: 0 of 3 pods ready: Back-off restarting failed container" || d.Merge == nil || d.Merge.Actor != "lock" || !d.MergedAt.Equal(before(12*time.Minute)) ||
		d.Commit != commit || d.CommitURL != "https://git.example/acme/fleet/.."+commit || d.CompareURL != "https://git.example/acme/fleet/"+releaseID("tip")[:40]+".."+commit || len(d.Audit) != 2 || d.Audit[1].Actor != "ada" {
		t.Errorf("%+v", d)
	}
	if d.Targets[1].URL != "https://hub.example/applications/argocd/cart-qa-b" || d.Targets[1].Cluster != "cluster-of-qa-b" {
		t.Errorf("qa-b is %+v", d.Targets[1])
	}
	_, _, raw := w.get("/promotions/3")
	body := html.UnescapeString(raw)
	for _, v := range []string{"<span>" + d.Cause + "</span>", "−8 min</time>", "+8 min</time>", "By Liftlock, when all gates had passed", `href="https://git.example/acme/fleet/..` + commit, `aria-label="qa-b: arriving +0 s, progressing +1 min, soaking +3 min, degraded +8 min"`,
		`href="https://hub.example/applications/argocd/cart-qa-b"`, "<b>retry</b> by ada <time"} {
		if !strings.Contains(body, v) {
			t.Errorf("the page has no %q", v)
		}
	}
	if strings.Contains(body, "mallory") {
		t.Error("the page has what was asked for on another pull request")
	}
	// A merge is written down before it is made: while the promotion is open, it wasn't.
	open := readJSON[api.Promotion](w, "/api/v1/promotions/2").Detail
	if open.Merge != nil || open.Cause != "waiting for ada, edsger (1 of 2)" || open.From != "1.4.2" || open.Origin == nil || open.Origin.By != "grace" || open.Origin.Environment != "dev" || len(open.Reaches) != 3 {
		t.Errorf("the open one has the merge %+v and the cause %q", open.Merge, open.Cause)
	}
	if revert := readJSON[api.Promotion](w, "/api/v1/promotions/4").Detail; !strings.HasPrefix(revert.Cause, "qa-b: Deployment cart is Degraded") {
		t.Errorf("the revert's cause is %q", revert.Cause)
	}
}

func TestHealthBarsShareAScale(t *testing.T) {
	at := func(minutes int, state string) api.StateChange {
		return api.StateChange{At: now.Add(time.Duration(minutes) * time.Minute), State: state}
	}
	bars := buildHealthBars([]api.Timeline{{Target: "a", Changes: []api.StateChange{at(0, "arriving"), at(4, "verified")}}, {Target: "b", Changes: []api.StateChange{at(2, "arriving"), at(8, "degraded")}}}, func(time.Time) string { return "" })
	got := [][]barSegment{bars[0].Segments, bars[1].Segments}
	if got[0][0].From != 0 || got[0][0].Width != 400 || got[0][1].Width != 600 || got[1][0].From != 200 || got[1][0].Width != 600 || got[1][1].From != 800 || bars[1].Now != "degraded" {
		t.Errorf("%+v", got)
	}
	if bars := buildHealthBars(nil, nil); bars != nil {
		t.Errorf("%+v of nothing", bars)
	}
}
