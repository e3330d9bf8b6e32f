package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/store"
)

// readJSON asks for JSON that must be there.
func readJSON[T any](w *testConsole, path string) T {
	w.t.Helper()
	status, header, body := w.get(path)
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		w.t.Fatalf("GET %s: %d %s: %s", path, status, header.Get("Content-Type"), body)
	}
	var v T
	w.must(json.Unmarshal([]byte(body), &v))
	return v
}

func TestPipelinesAreListedAndRead(t *testing.T) {
	w := newTestConsole(t, nil)
	if got := readJSON[api.Pipelines](w, "/api/v1/pipelines"); got.Pipelines == nil || len(got.Pipelines) != 0 {
		t.Errorf("an empty store lists %v, want an empty list", got.Pipelines)
	}
	w.seed()
	all := readJSON[api.Pipelines](w, "/api/v1/pipelines")
	if len(all.Pipelines) != 2 || all.Pipelines[1].Name != "shop" || all.Pipelines[1].Components != nil {
		t.Fatalf("the list is %+v", all.Pipelines)
	}
	want := api.Counts{Components: 8, Open: 4, Moving: 1, Waiting: 1, Held: 0, Broken: 2, Attention: 2}
	if got := all.Pipelines[1].Counts; got != want {
		t.Errorf("the counts of shop are %+v, want %+v", got, want)
	}
	shop := readJSON[api.Pipeline](w, "/api/v1/pipelines/shop?repository=hub:acme/fleet")
	if !slices.Equal(shop.Environments, []string{"dev", "qa", "prod"}) {
		t.Errorf("the environments are %v", shop.Environments)
	}
	i := slices.IndexFunc(shop.Components, func(c api.Component) bool { return c.Component == "web" })
	prod := shop.Components[i].Environments[2]
	if prod.Name != "1.4.2" || prod.Incoming == nil || prod.Incoming.Name != "1.5.0" || prod.Incoming.Pull.URL != "https://git.example/acme/fleet/pulls/14" ||
		prod.Incoming.Gates[0].Outcome != "wait" || len(prod.Targets) != 3 || prod.Targets[0].Name != "prod-a" {
		t.Errorf("web in prod is %+v", prod)
	}
	cart := shop.Components[slices.IndexFunc(shop.Components, func(c api.Component) bool { return c.Component == "cart" })]
	if u := cart.Environments[1].Revert; u == nil || u.Pull.Number != 17 || len(u.Gates) != 1 {
		t.Errorf("the revert of cart in qa is %+v", u)
	}
}

func TestTroublesAreListed(t *testing.T) {
	w := newTestConsole(t, nil)
	w.unit(testRepo, "shop", "web", ".liftlock.yaml:3: unknown key", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.unit(testRepo, "shop", "cart", ".liftlock.yaml:3: unknown key", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.troubles = []api.Trouble{{Part: "argocd hub", Message: "refused"}}
	got := readJSON[api.Pipelines](w, "/api/v1/pipelines")
	if len(got.Troubles) != 2 || got.Troubles[1].Message != ".liftlock.yaml:3: unknown key" || got.Pipelines[0].Broken == "" {
		t.Errorf("the troubles are %+v, broken %q", got.Troubles, got.Pipelines[0].Broken)
	}
	w.troubles = []api.Trouble{{Part: "pipeline file", Message: "read it: .liftlock.yaml:3: unknown key"}}
	if got := readJSON[api.Pipelines](w, "/api/v1/pipelines"); len(got.Troubles) != 1 {
		t.Errorf("a trouble that is told already is told again: %+v", got.Troubles)
	}
}

func TestPromotionsAreFilteredAndPaged(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for query, want := range map[string][]int64{
		"":                                   {5, 4, 3, 2, 1},
		"?component=web":                     {2, 1},
		"?state=open":                        {5, 4, 2},
		"?state=held":                        {5},
		"?state=open,verified&kind=revert":   {4},
		"?environment=prod":                  {2},
		"?pull=16":                           {3},
		"?repository=hub:acme/fleet&pull=17": {4},
		"?repository=hub:acme/fleet&pull=17&state=verified": nil,
		"?repository=hub:acme/other":                        nil,
		"?before=3":                                         {2, 1},
		"?limit=2":                                          {5, 4},
		"?limit=2&before=4":                                 {3, 2},
		"?pipeline=lake":                                    nil,
	} {
		got := readJSON[api.Promotions](w, "/api/v1/promotions"+query)
		var ids []int64
		for _, p := range got.Promotions {
			ids = append(ids, p.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%q gives %v, want %v", query, ids, want)
		}
		if wantNext := map[string]int64{"?limit=2": 4, "?limit=2&before=4": 2}[query]; got.Next != wantNext {
			t.Errorf("%q says that the next page is before %d, want %d", query, got.Next, wantNext)
		}
	}
}

func TestPromotionShowsItsHistory(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	p := readJSON[api.Promotion](w, "/api/v1/promotions/3")
	d := p.Detail
	if p.Name != "2.3.0" || d.Title != "Promote cart 2.3.0 to qa" || !d.Current || len(d.Targets) != 2 || len(d.Timelines) != 1 || len(d.Timelines[0].Changes) != 4 {
		t.Errorf("the promotion is %+v with %+v", p, d)
	}
	var kinds []string
	for _, e := range d.Events {
		kinds = append(kinds, string(e.Kind))
	}
	if want := []string{"opened", "merged", "degraded"}; !slices.Equal(kinds, want) {
		t.Errorf("its events are %v, want %v", kinds, want)
	}
	revert := readJSON[api.Promotion](w, "/api/v1/promotions/4")
	if revert.Kind != "revert" || len(revert.Detail.Evidence) != 4 || len(revert.Detail.Gates) != 1 || revert.Detail.Current {
		t.Errorf("the revert is %+v with %+v", revert, revert.Detail)
	}
	records := revert.Detail.Records
	if len(records) != 1 || records[0].Confidence != "guilty" || records[0].Pull.Number != 16 || len(records[0].RuledOut) != 1 || records[0].Held != nil {
		t.Fatalf("what it was judged by is %+v", records)
	}
	if k := records[0].Targets[0]; k.Operation.InitiatedBy != "ada" || !k.Resources[0].Changed() || k.Resources[1].Changed() || *k.OtherTargets[0].RevisionChanged {
		t.Errorf("what is known of the target is %+v", k)
	}
	if diff := cmp.Diff(records, d.Records); diff != "" {
		t.Errorf("the promotion that is taken back says something else (-revert +promotion):\n%s", diff)
	}
	if r := revert.Detail.Reverts; r == nil || r.ID != 3 || r.Pull.Number != 16 || d.RevertedBy == nil || d.RevertedBy.ID != 4 || d.Reverts != nil {
		t.Errorf("the two know of each other %+v and %+v", r, d.RevertedBy)
	}
	open := readJSON[api.Promotion](w, "/api/v1/promotions/2")
	if len(open.Detail.Gates) != 1 || open.Detail.Gates[0].Gate != "approvals" {
		t.Errorf("the open promotion waits for %+v", open.Detail.Gates)
	}
}

// TestHeldDegradation shows what a degradation was judged by that is left to people.
func TestHeldDegradation(t *testing.T) {
	w := newTestConsole(t, nil)
	held := cartEvidence()
	held.Confidence, held.Held, held.RuledOut = promotion.LikelyIncident, &promotion.Reason{Code: "hold", Text: "stock-qa became unwell too"}, nil
	qa := env("qa", promotion.Degraded, "2.3.0", 12*time.Minute, 2)
	qa.LandedPull, qa.LandedBy, qa.Evidence = 16, promotion.ByPromotion, &held
	w.unit(testRepo, "shop", "cart", "", env("dev", promotion.Verified, "2.3.0", time.Hour, 1), qa)
	n := w.promotion("cart", "qa", "promotion", "2.3.0", "degraded", 16, 20*time.Minute)
	d := readJSON[api.Promotion](w, fmt.Sprintf("/api/v1/promotions/%d", n)).Detail
	if len(d.Records) != 1 || d.Records[0].Held == nil || d.Records[0].Held.Text != "stock-qa became unwell too" || d.Records[0].Confidence != "incident" || d.Evidence != nil {
		t.Errorf("the promotion has %+v", d)
	}
	why := readJSON[api.Why](w, "/api/v1/why?pipeline=shop&component=cart")
	if why.Environments[0].Evidence != nil || why.Environments[1].Evidence == nil {
		t.Fatalf("why has %+v", why.Environments)
	}
	if diff := cmp.Diff(d.Records[0], *why.Environments[1].Evidence); diff != "" {
		t.Errorf("why says something else (-promotion +why):\n%s", diff)
	}
}

func TestWhyNamesOpenGates(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	y := readJSON[api.Why](w, "/api/v1/why?pipeline=shop&component=web&environment=prod")
	want := "prod carries 1.4.2 since 2026-02-21T09:00:00Z: verified, synced and healthy on 3 targets\n1.5.0 is in #14: waiting for ada, edsger (1 of 2)\n- approvals: 1 of 2 approvals: grace (ada, edsger)"
	if len(y.Environments) != 1 || y.Environments[0].Text != want || y.Environments[0].Incoming == nil {
		t.Errorf("why says %+v, want the text %q", y.Environments, want)
	}
	all := readJSON[api.Why](w, "/api/v1/why?pipeline=shop&component=cart")
	if len(all.Environments) != 3 || !strings.Contains(all.Environments[1].Text, "the revert #17 is open") || !strings.Contains(all.Environments[2].Text, "quarantined") && !strings.Contains(all.Environments[2].Text, "is being reverted") {
		t.Errorf("why of all says %+v", all.Environments)
	}
}

// TestBadRequestsAreRefusedWithAReason also holds that every refusal is JSON.
func TestBadRequestsAreRefusedWithAReason(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.unit("hub:acme/copy", "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	for _, c := range []struct {
		name, method, path string
		status             int
		says               string
	}{
		{"unknown pipeline", "GET", "/api/v1/pipelines/none", 404, `no pipeline \"none\"`},
		{"ambiguous pipeline", "GET", "/api/v1/pipelines/shop", 409, "hub:acme/copy, hub:acme/fleet"},
		{"unknown parameter", "GET", "/api/v1/pipelines?repo=x", 400, `no parameter \"repo\"`},
		{"parameter given twice", "GET", "/api/v1/promotions?state=open&state=held", 400, "given 2 times"},
		{"limit too large", "GET", "/api/v1/promotions?limit=501", 400, "from 1 to 500"},
		{"limit no number", "GET", "/api/v1/promotions?limit=all", 400, "whole number"},
		{"negative page", "GET", "/api/v1/promotions?before=-1", 400, "whole number"},
		{"unknown kind", "GET", "/api/v1/promotions?kind=rollback", 400, "promotion or revert"},
		{"broken escape", "GET", "/api/v1/promotions?state=%zz", 400, "can't be read"},
		{"control characters", "GET", "/api/v1/promotions?state=a%00b", 400, "control characters"},
		{"invalid UTF-8", "GET", "/api/v1/promotions?component=%ff", 400, "UTF-8"},
		{"overlong value", "GET", "/api/v1/promotions?component=" + strings.Repeat("x", 513), 400, "513 bytes"},
		{"too many states", "GET", "/api/v1/promotions?state=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u", 400, "more than 20"},
		{"no such promotion", "GET", "/api/v1/promotions/99", 404, "no promotion 99"},
		{"promotion without a number", "GET", "/api/v1/promotions/latest", 404, "its name is a number"},
		{"why without a component", "GET", "/api/v1/why?pipeline=shop", 400, "component are needed"},
		{"why of an unknown component", "GET", "/api/v1/why?repository=hub:acme/fleet&pipeline=shop&component=x", 404, `no component \"x\"`},
		{"why of an unknown environment", "GET", "/api/v1/why?repository=hub:acme/fleet&pipeline=shop&component=web&environment=x", 404, "dev, qa, prod"},
		{"audit of a component alone", "GET", "/api/v1/audit?component=web", 400, "needs the parameter pipeline"},
		{"audit of an unknown pipeline", "GET", "/api/v1/audit?pipeline=x", 404, "no pipeline"},
		{"audit since when", "GET", "/api/v1/audit?since=yesterday", 400, "a date like 2026-03-02"},
		{"audit until when", "GET", "/api/v1/audit?until=1", 400, "a date like 2026-03-02"},
		{"audit by pigeon", "GET", "/api/v1/audit?via=pigeon", 400, "one of comment, api, console, server, forge, not"},
		{"audit of no verb", "GET", "/api/v1/audit?verb=revrt", 400, "one of help, status"},
		{"audit that ends before it begins", "GET", "/api/v1/audit?since=2026-03-02&until=2026-03-01", 400, "nothing lies since"},
		{"audit as a table", "GET", "/api/v1/audit?format=csv", 400, "json or jsonl"},
		{"audit of too much", "GET", "/api/v1/audit?limit=501", 400, "from 1 to 500"},
		{"export of too much", "GET", "/api/v1/audit?format=jsonl&limit=100001", 400, "from 1 to 100000"},
		{"audit with an outcome", "GET", "/api/v1/audit?outcome=taken", 400, "no parameter"},
		{"wrong method", "DELETE", "/api/v1/promotions", 405, "GET only"},
		{"reading a command", "GET", "/api/v1/pipelines/shop/hold", 405, "POST only"},
		{"unknown address", "GET", "/api/v2/pipelines", 404, "there is no /api/v2/pipelines"},
		{"event that is no number", "GET", "/api/v1/events?after=x", 400, "whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := w.request(c.method, c.path, "", nil)
			var e api.Error
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error == "" {
				t.Fatalf("the answer is no error as JSON: %q", body)
			}
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%s %s: %d %s; want %d and %q", c.method, c.path, status, body, c.status, c.says)
			}
			if status == 405 && header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for _, path := range []string{"/", "/none", "/promotions", "/assets/console.js", "/assets/none", "/api/v1/pipelines", "/api/none", "/pipelines/shop/web"} {
		_, h, _ := w.get(path)
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie") != "" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is answered with %v", path, h)
		}
	}
	if status, _, _ := w.request("POST", "/", "", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("POST / is answered with %d", status)
	}
	_, _, body := w.get("/")
	link := body[strings.Index(body, "/assets/console.css"):]
	_, h, css := w.get(link[:strings.IndexByte(link, '"')])
	if !strings.Contains(h.Get("Cache-Control"), "immutable") || !strings.HasPrefix(h.Get("Content-Type"), "text/css") || len(css) == 0 {
		t.Errorf("the style is answered with %v", h)
	}
}

func TestNothingFromOutsideIsMarkup(t *testing.T) {
	w := newTestConsole(t, nil)
	evil := `"><script>alert(1)</script><a href='javascript:x`
	e := env("dev", promotion.Degraded, evil, time.Hour, 0)
	e.Reason, e.Environment = evil, evil
	e.Targets = map[string]promotion.TargetView{evil: {State: evil, Reason: evil}}
	e.Promotion, e.CandidateName, e.Pull, e.Why = promotion.Opened, evil, 14, []promotion.Reason{{Code: cause.Code(evil), Text: evil, Who: evil}}
	gates(&e, string(mustJSON([]map[string]any{{"gate": evil, "outcome": evil, "reason": evil, "who": []string{evil}}})))
	w.unit(testRepo, evil, evil, evil, e)
	w.must(w.store.PutPulls(t.Context(), pullWith(14, "javascript:alert(1)//14", evil)))
	w.promotion(evil, evil, "promotion", evil, evil, 14, time.Hour)
	w.event(evil, evil, evil, 14, time.Hour, evil)
	w.troubles = []api.Trouble{{Part: evil, Message: evil}}
	for _, path := range []string{"/", "/?q=" + "%22%3E%3Cscript%3E", "/promotions", "/promotions/1", "/pipelines/" + pathEscape(evil) + "/" + pathEscape(evil), "/pipelines/" + pathEscape(evil)} {
		status, _, body := w.get(path)
		if status != 200 && path != "/pipelines/"+pathEscape(evil) {
			t.Errorf("%s: %d", path, status)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, `href="javascript:`) || strings.Contains(body, `href='javascript:`) {
			t.Errorf("%s lets text through as markup", path)
		}
	}
}

func TestAddressesWithOddNames(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ExternalURL = "https://ops.example/liftlock/" })
	w.unit(testRepo, "shop", "a/b c%", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.unit("hub:acme/copy", "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	_, _, body := w.get("/")
	for _, want := range []string{`href="/liftlock/pipelines/shop/a%2Fb%20c%25?repository=hub%3Aacme%2Ffleet"`, `href="/liftlock/assets/console.css`, `data-stream="/liftlock/live"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if status, _, body := w.get("/pipelines/shop/a%2Fb%20c%25?repository=hub%3Aacme%2Ffleet"); status != 200 || !strings.Contains(body, "<h1>a/b c%</h1>") {
		t.Errorf("the page of a/b c%% is answered with %d", status)
	}
	if status, _, body := w.get("/pipelines/shop/web"); status != 409 || !strings.Contains(body, "several repositories") {
		t.Errorf("an ambiguous page is answered with %d", status)
	}
}

func TestPullRequestLeadsToItsPromotion(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	if status, _, body := w.get("/promotions?repository=hub:acme/fleet&pull=14"); status != 200 || !strings.Contains(body, "<title>web to prod") {
		t.Errorf("%d %.200s", status, body)
	}
}

func TestDamagedRecordIsATroubleNotAnEnd(t *testing.T) {
	w := newTestConsole(t, nil)
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.putRecord(func(tx *store.Tx) error { return tx.PutUnit(t.Context(), damaged()) })
	got := readJSON[api.Pipelines](w, "/api/v1/pipelines")
	if len(got.Pipelines) != 1 || len(got.Troubles) != 1 || !strings.Contains(got.Troubles[0].Part, "shop/cart") {
		t.Errorf("got %+v", got)
	}
}

func TestClosedStoreIsReported(t *testing.T) {
	w := newTestConsole(t, nil)
	w.must(w.store.Close())
	status, header, body := w.get("/api/v1/pipelines")
	if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "error") {
		t.Errorf("%d %v %s", status, header, body)
	}
	if status, _, body := w.get("/"); status != 503 || !strings.Contains(body, "can&#39;t be read right now") {
		t.Errorf("the page: %d %s", status, body)
	}
}
