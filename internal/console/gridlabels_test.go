package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Components are chosen by their Applications' labels, by themselves and with all else.
func TestGridIsFilteredByLabels(t *testing.T) {
	w := newTestConsole(t, nil)
	w.teams = map[string]string{"web": "shop", "cart": "shop", "mail": "comms", "search": "shop"}
	w.seed()
	for query, want := range map[string][]string{
		"label=team=shop":                         {"cart", "web", "search"},
		"label=team+in+(comms,data)":              {"mail"},
		"label=team,team!=shop":                   {"mail"},
		"label=team=shop,tier=prod&q=1.5.0":       {"web"},
		"label=team=shop&state=degraded":          {"cart"},
		"label=tier=prod&env=qa":                  nil, // prod's own label isn't qa's
		"label=tier=prod&env=prod&show=attention": {"cart", "mail"},
		"label=team=nobody":                       nil,
		"q=team%3Dcomms":                          {"mail"},
		"q=team%3Dshop+web":                       {"web"},
		"label=%21team&q=shop&sort=name":          {"billing", "checkout", "images", "stock"},
		"label=team+in+(&q=billing":               {"billing"}, // it can't be read, and is said to be left out
	} {
		path, err := url.Parse("/?" + query)
		w.must(err)
		if diff := cmp.Diff(want, w.shownRows(path.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	_, _, body := w.get("/?label=team%3Dshop&show=attention")
	for _, v := range []string{`<option value="team=shop">`, `value="team=shop" list="labels"`, `href="/?label=team%3Dshop"`, `href="/?label=team%3Dshop&amp;show=moving"`} {
		if !strings.Contains(body, v) {
			t.Errorf("the page keeps no %s", v)
		}
	}
	if _, _, body := w.get("/?label=team+in+("); !strings.Contains(body, "is left out, since it can&#39;t be read") && !strings.Contains(body, "is left out, since it can't be read") {
		t.Errorf("what is wrong with the label isn't said:\n%s", body)
	}
	// A component's page leads to its team's others.
	if _, _, body := w.get("/pipelines/shop/web"); !strings.Contains(body, `<a class="label" href="/pipelines/shop?label=team%3Dshop">team=shop</a>`) || strings.Contains(body, ">tier=") {
		t.Errorf("the component's page has not the labels that all its Applications have:\n%s", body)
	}
	// Without any labels there is no field for them.
	if _, _, body := newTestConsole(t, nil).get("/"); strings.Contains(body, `name="label"`) {
		t.Error("a field for labels is there without any")
	}
}

// TestLabelsAreOffered holds that the field offers labels that group, not one that every component
// has another value of.
func TestLabelsAreOffered(t *testing.T) {
	w := newTestConsole(t, nil)
	w.teams = map[string]string{}
	for i := range 60 {
		name := fmt.Sprintf("svc-%d", i)
		w.teams[name] = []string{"data", "shop", "shop"}[i%3]
		w.unit(testRepo, "shop", name, "", env("dev", promotion.Verified, "1", time.Hour, 2))
	}
	s, err := New(w.options)
	w.must(err)
	all, err := s.server.reader.sharedSnapshot(t.Context())
	w.must(err)
	if got := listLabelHints(all.groupUnits("", "")); !slices.Equal(got, []string{"tier=dev", "team=shop", "team=data"}) {
		t.Errorf("it offers %v", got)
	}
}

// A label is shown as a component's only where each of its targets has it, whichever comes first.
func TestSharedLabels(t *testing.T) {
	w := newTestConsole(t, nil)
	s, err := New(w.options)
	w.must(err)
	team, both, none := map[string]string{"team": "shop"}, map[string]string{"team": "shop", "tier": "prod"}, map[string]string(nil)
	for name, c := range map[string]struct {
		targets []map[string]string // their labels
		want    []string
	}{
		"all have it":        {[]map[string]string{both, team}, []string{"team=shop"}},
		"another value":      {[]map[string]string{team, {"team": "data"}}, nil},
		"the first has none": {[]map[string]string{none, team}, nil},
		"the last has none":  {[]map[string]string{team, none}, nil},
		"no targets":         {nil, nil},
	} {
		component := &api.Component{Repository: testRepo, Pipeline: "shop", Component: "web"}
		for _, labels := range c.targets {
			component.Environments = append(component.Environments, api.Environment{Targets: []api.Target{{Labels: labels}}})
		}
		var got []string
		for _, l := range s.server.pages.listSharedLabels(component) {
			got = append(got, l.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are shown, want %v", name, got, c.want)
		}
	}
}

// A selector that is too long isn't read at all, and said to be left out.
func TestLongLabelSelectors(t *testing.T) {
	if s := parseLabelSelector("team=" + strings.Repeat("a", maxSelector)); s.parsed != nil || s.Problem != "it is too long" {
		t.Errorf("it is %+v", s)
	}
}
