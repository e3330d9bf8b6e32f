package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

func TestEnvironmentsApart(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	unreadable := env("prod", promotion.Unreadable, "", time.Hour, 1)
	unreadable.Release, unreadable.Name, unreadable.Reason = "", "", "kustomization.yaml can't be read"
	w.unit(testRepo, "shop", "stock", "", env("dev", promotion.Verified, "4.3.2", 100*24*time.Hour, 1), env("qa", promotion.Verified, "4.3.2", time.Hour, 2), unreadable)
	get := func(query string) *api.EnvironmentComparison {
		t.Helper()
		status, _, body := w.get("/api/v1/pipelines/shop/apart" + query)
		var got api.EnvironmentComparison
		if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		return &got
	}
	said := func(c *api.EnvironmentComparison) (out []string) {
		for _, d := range c.Different {
			line := d.Component + ": " + d.From.Name + " and " + d.To.Name + d.To.Unknown
			if d.Incoming != nil {
				line += ", " + d.Incoming.Name + " is " + d.Incoming.State
			}
			out = append(out, line)
		}
		return out
	}
	got := get("")
	if got.From != "dev" || got.To != "prod" || got.Equal != 0 {
		t.Errorf("%s and %s, %d equal", got.From, got.To, got.Equal)
	}
	want := []string{"billing: 4.0.1 and 4.0.0", "checkout: 4.1.1 and 4.1.0", "images: 4.2.1 and 4.2.0", "stock: 4.3.2 and kustomization.yaml can't be read",
		"mail: v9 and v8-hotfix", "web: 1.5.0 and 1.4.2, 1.5.0 is open", "cart: 2.3.0 and 2.2.7", "search: 0.31.0 and 0.30.4"}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("what has waited longest comes first (-want +got):\n%s", diff)
	}
	got = get("?from=dev&to=qa")
	if diff := cmp.Diff([]string{"mail: v9 and v8, v9 is held", "search: 0.31.0 and 0.30.4"}, said(got)); diff != "" || got.Equal != 6 {
		t.Errorf("%d equal (-want +got):\n%s", got.Equal, diff)
	}
	if got := get("?from=qa&to=qa"); len(got.Different) != 0 || got.Equal != 8 {
		t.Errorf("an environment differs from itself in %v", said(got))
	}
	for path, want := range map[string]int{"/api/v1/pipelines/none/apart": 404, "/api/v1/pipelines/shop/apart?to=moon": 404, "/api/v1/pipelines/shop/apart?colour=1": 400, "/apart/none": 404, "/apart/shop?from=moon": 404} {
		if status, _, body := w.get(path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, _, body := w.get("/apart/shop?from=dev&to=qa")
	for _, want := range []string{"2 components differ", "6 are the same", `href="/pipelines/shop/mail/compare?from=dev&amp;to=qa"`, ">v9<"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page doesn't have %q:\n%s", want, body)
		}
	}
	if _, _, body := w.get("/apart/shop?from=qa&to=qa"); !strings.Contains(body, "All 8 components carry the same release") {
		t.Errorf("nothing differs:\n%s", body)
	}
	if _, _, body := w.get("/"); !strings.Contains(body, `href="/apart/shop"`) {
		t.Error("the first page doesn't lead there")
	}
}

// The page shows no more than it says, and follows what happens.
func TestApartPageIsBoundedAndLive(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = 20 * time.Millisecond })
	w.seed()
	l := w.openStream(t, w.streamOf("/apart/shop"), nil)
	w.unit(testRepo, "shop", "billing", "", env("dev", promotion.Verified, "4.0.1", 200*24*time.Hour, 1), env("qa", promotion.Verified, "4.0.1", time.Hour, 2), env("prod", promotion.Verified, "4.0.1", 0, 3))
	l.next(changed)
	if _, _, body := w.get("/apart/shop"); !strings.Contains(body, "7 components differ") {
		t.Errorf("it is:\n%s", body)
	}
	many := newTestConsole(t, nil)
	for i := range maxApartRows + 5 {
		many.unit(testRepo, "shop", fmt.Sprintf("svc-%03d", i), "", env("dev", promotion.Verified, "2", time.Hour, 1), env("prod", promotion.Verified, "1", time.Hour, 1))
	}
	_, _, body := many.get("/apart/shop")
	if n := strings.Count(body, `<tr role="row" id="apart-`); n != maxApartRows || !strings.Contains(body, "205 components differ") || !strings.Contains(body, `/apart?from=dev&amp;to=prod&amp;repository=hub%3aacme%2ffleet"`) || !strings.Contains(body, "The first 200 are shown") {
		t.Errorf("%d rows are shown", n)
	}
}

// Where two repositories have pipelines of a name, the page's links keep to its own.
func TestApartPageKeepsToItsRepository(t *testing.T) {
	w := newTestConsole(t, nil)
	for _, repo := range []string{testRepo, testRepo + "2"} {
		w.unit(repo, "shop", "web", "", env("dev", promotion.Verified, "2", time.Hour, 1), env("prod", promotion.Verified, "1", time.Hour, 1))
	}
	_, _, body := w.get("/apart/shop?repository=" + url.QueryEscape(testRepo))
	if want := `href="/pipelines/shop?repository=` + url.QueryEscape(testRepo) + `"`; !strings.Contains(body, want) {
		t.Errorf("it doesn't lead to %s:\n%s", want, body)
	}
}
