package console

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var rowIDs = regexp.MustCompile(`<tr role="row" id="c-[^"]*-([^"-]+)"(?: class="quiet-row")?>`)

// shownRows lists the components whose rows a page has, in its order.
func (tc *testConsole) shownRows(path string) []string {
	tc.t.Helper()
	_, _, body := tc.get(path)
	var out []string
	for _, m := range rowIDs.FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestManyComponentsAreInPages(t *testing.T) {
	w := newTestConsole(t, nil)
	for i := range 300 {
		w.unit(testRepo, "shop", fmt.Sprintf("c%03d", i), "", env("dev", promotion.Verified, "1", time.Hour, 1), env("qa", promotion.Baseline, "1", time.Hour, 1))
	}
	if got := readJSON[api.Pipeline](w, "/api/v1/pipelines/shop"); len(got.Components) != 300 || got.Components[299].Component != "c299" {
		t.Errorf("%d components", len(got.Components))
	}
	w.unit(testRepo, "shop", "zzz", "", env("dev", promotion.Degraded, "1", time.Hour, 1), env("qa", promotion.Baseline, "1", time.Hour, 1))
	_, _, first := w.get("/pipelines/shop")
	if rows := w.shownRows("/pipelines/shop"); len(rows) != rowsPerPage || rows[0] != "zzz" || rows[1] != "c000" || !strings.Contains(first, "1 to 100 of 301") || !strings.Contains(first, `href="/pipelines/shop?page=2" rel="next"`) {
		t.Errorf("the pipeline's page has %d rows from %s on", len(rows), rows[0])
	}
	if _, _, body := w.get("/"); len(w.shownRows("/")) != firstRows || !strings.Contains(body, `href="/pipelines/shop">All 301</a>`) {
		t.Errorf("the first page has %d rows, and leads to no other", len(w.shownRows("/")))
	}
	if rows := w.shownRows("/?page=4"); !slices.Equal(rows, []string{"c299"}) {
		t.Errorf("the last page has %v", rows)
	}
	if rows := w.shownRows("/?page=99"); !slices.Equal(rows, []string{"c299"}) {
		t.Errorf("a page behind the last has %v", rows)
	}
	if rows := w.shownRows("/?q=c29+verified"); len(rows) != 10 {
		t.Errorf("the filter shows %d components, want 10", len(rows))
	}
	// A second pipeline: the first ones of each, and the way to the rest with the filter kept.
	w.unit("hub:acme/data", "lake", "ingest", "", env("live", promotion.Verified, "1", time.Hour, 1))
	_, _, body := w.get("/?sort=name&q=c1")
	if n := len(w.shownRows("/?sort=name&q=c1")); n != rowsPerSection || !strings.Contains(body, `href="/pipelines/shop?q=c1&amp;sort=name">All 100</a>`) {
		t.Errorf("with two pipelines %d rows are shown", n)
	}
}

func TestGridIsFiltered(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for query, want := range map[string][]string{
		"q=cart":                {"cart"},
		"q=1.5.0":               {"web"},
		"q=1.5.0+prod":          {"web"}, // it wants to come in there
		"q=2.3.0+prod":          nil,     // it is in dev and qa
		"q=2.3.0+qa":            {"cart"},
		"q=prod":                {"cart", "mail", "web", "search", "billing", "checkout", "images", "stock"}, // all have it
		"env=live":              {"ingest"},
		"env=prod&state=open":   {"web"},
		"state=diverged":        {"mail"},
		"state=held":            {"mail"},
		"env=qa&show=attention": {"cart", "mail"},
		"env=dev&show=moving":   {"search"},
		"env=none":              nil,
		"env=*v*&q=ingest":      {"ingest"},
		"q=shop&sort=name":      {"billing", "cart", "checkout", "images", "mail", "search", "stock", "web"},
		"show=x&state=y&env=%00&sort=z&page=-1&q=web": {"web"},
	} {
		if diff := cmp.Diff(want, w.shownRows("/?"+query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	_, _, body := w.get("/?q=cart&env=qa&sort=name")
	for _, v := range []string{`href="/?env=qa&amp;q=cart&amp;show=broken&amp;sort=name"`, `<option selected>qa</option>`, `value="cart"`} {
		if !strings.Contains(body, v) {
			t.Errorf("the page keeps no %s", v)
		}
	}
}

func TestStuckReleaseNeedsALook(t *testing.T) {
	w := newTestConsole(t, nil)
	quarantined, untold := env("qa", promotion.Verified, "1", time.Hour, 1), env("qa", promotion.Verified, "1", time.Hour, 1)
	quarantined.Why = []promotion.Reason{{Code: "quarantined", Text: "2 was reverted in dev"}}
	untold.Targets["qa-a"] = promotion.TargetView{State: "unclear", Reason: "the Argo CD hub is away", Untold: true}
	w.unit(testRepo, "shop", "a", "", env("qa", promotion.Verified, "1", time.Hour, 1))
	w.unit(testRepo, "shop", "b", "", quarantined)
	w.unit(testRepo, "shop", "c", "", untold)
	if rows := w.shownRows("/?show=attention"); !slices.Equal(rows, []string{"b", "c"}) {
		t.Errorf("%v need a look", rows)
	}
	if got := readJSON[api.Pipeline](w, "/api/v1/pipelines/shop"); got.Counts.Attention != 2 || !got.Components[2].Environments[0].Targets[0].Untold {
		t.Errorf("%+v", got.Counts)
	}
}

func TestProblemsAreGroupedByCause(t *testing.T) {
	w := newTestConsole(t, nil)
	for i := range 40 {
		e := env("prod", promotion.Degraded, "1", time.Hour, 1)
		name := fmt.Sprintf("svc-%d", i)
		e.Reason = fmt.Sprintf("prod-a: Degraded for %d s: Deployment %s: ImagePullBackOff", 30+i, name)
		if i%10 == 0 {
			e.Reason = "prod-a: OutOfSync"
		}
		w.unit(testRepo, "shop", name, "", e)
	}
	w.troubles = []api.Trouble{{Part: "argocd hub", Message: "connection refused"}}
	for i := range 40 {
		w.troubles = append(w.troubles, api.Trouble{Part: fmt.Sprintf("component hub:acme/fleet shop svc-%d", i), Message: fmt.Sprintf("svc-%d: the set shop can't be resolved (tried again at 2026-03-02T09:%02d:00Z)", i, i), Since: before(time.Duration(i) * time.Minute)})
	}
	_, _, body := w.get("/")
	for _, v := range []string{"<b>36 components</b> in prod", "Degraded for … s: Deployment …: ImagePullBackOff", "ApplicationSet shop", "<b>4 components</b> in prod", "31 more</a>", "2 troubles",
		"the set shop can&#39;t be resolved (tried again at …)", "and 35 more</strong>", "<strong>argocd hub</strong>"} {
		if !strings.Contains(body, v) {
			t.Errorf("the page has no %q", v)
		}
	}
}

// The columns of many environments are folded, and say what is where in all of them.
func TestManyEnvironmentsShareAColumn(t *testing.T) {
	w := newTestConsole(t, nil)
	envs := []promotion.EnvState{env("dev", promotion.Verified, "2", time.Hour, 1)}
	after := map[string][]string{}
	for i := range 60 {
		name := fmt.Sprintf("store-%d", i)
		e := env(name, promotion.Verified, "2", time.Hour, 1)
		switch {
		case i == 7:
			e.State, e.Reason = promotion.Degraded, "no replica is there"
		case i > 50:
			e = env(name, promotion.Verified, "1", time.Hour, 1)
			e.Candidate, e.CandidateName, e.Promotion = releaseID("2"), "2", promotion.Waiting
		}
		envs = append(envs, e)
		after[name] = []string{"dev"}
	}
	w.unitInGraph(testRepo, "shop", "web", "", after, envs...)
	_, _, body := w.get("/pipelines/shop")
	for _, v := range []string{"store-* <small>×60</small>", `<span class="rel">2</span> <span class="muted">×51</span>`, "store-7: no replica is there", "9 to come", "store-* ×60", "1 degraded, 59 verified", `href="/pipelines/shop?env=store-%2A"`} {
		if !strings.Contains(body, v) {
			t.Errorf("the page has no %q", v)
		}
	}
	if rows := w.shownRows("/pipelines/shop?env=" + url.QueryEscape("store-*") + "&state=degraded"); len(rows) != 1 {
		t.Errorf("the group as a filter shows %v", rows)
	}
}

// The graph has the edges that the pipeline has, and no other.
func TestGraphIsThePipelines(t *testing.T) {
	w := newTestConsole(t, nil)
	after := map[string][]string{"qa": {"dev"}, "prod-eu": {"qa"}, "prod-us": {"qa"}}
	envs := []promotion.EnvState{env("dev", promotion.Verified, "2", time.Hour, 1), env("qa", promotion.Verified, "2", time.Hour, 1), env("prod-eu", promotion.Verified, "1", time.Hour, 1), env("prod-us", promotion.Degraded, "1", time.Hour, 1)}
	envs[2].Promotion, envs[2].Candidate, envs[2].CandidateName, envs[2].Pull = promotion.Opened, releaseID("2"), "2", 7
	gates(&envs[2], `[{"gate":"approvals","outcome":"wait","reason":"0 of 2 approvals"}]`)
	w.unitInGraph(testRepo, "shop", "web", "", after, envs...)
	for path, parts := range map[string][]string{
		"/pipelines/shop":     {"1 verified", "1 coming", "1 waiting: approvals (1)", "1 degraded", "1 needs a look"},
		"/pipelines/shop/web": {"2, verified", "2 open in #7", "approvals: 0 of 2 approvals", "1, degraded"},
	} {
		_, _, body := w.get(path)
		edges := map[string]int{}
		for _, m := range regexp.MustCompile(`<title>(\S+) before (\S+)</title>`).FindAllStringSubmatch(body, -1) {
			edges[m[1]+">"+m[2]]++
		}
		if diff := cmp.Diff(map[string]int{"dev>qa": 2, "qa>prod-eu": 2, "qa>prod-us": 2}, edges); diff != "" { // wide and narrow
			t.Errorf("%s: edges (-want +got):\n%s", path, diff)
		}
		for _, v := range append(parts, "<b>prod-us</b> after qa: ", "<b>dev</b>, where releases begin: ") {
			if !strings.Contains(body, v) {
				t.Errorf("%s has no %q", path, v)
			}
		}
	}
	p := readJSON[api.Pipeline](w, "/api/v1/pipelines/shop")
	if diff := cmp.Diff([]api.PipelineEnvironment{{Name: "dev", After: []string{}}, {Name: "qa", After: []string{"dev"}}, {Name: "prod-eu", After: []string{"qa"}}, {Name: "prod-us", After: []string{"qa"}}}, p.Graph); diff != "" {
		t.Errorf("the API's graph (-want +got):\n%s", diff)
	}
	if e := p.Components[0].Environments[3]; !slices.Equal(e.After, []string{"qa"}) || e.Targets[0].Cluster != "cluster-of-prod-us-a" || e.Targets[0].Application != "argocd/web-prod-us-a" {
		t.Errorf("prod-us is %+v", e)
	}
}
