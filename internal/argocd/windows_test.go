package argocd

import (
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func parseWindows(t *testing.T, list string) []syncWindow {
	t.Helper()
	windows, err := decodeWindows([]byte(`{"spec":{"syncWindows":[` + list + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return windows
}

// TestSyncWindows has cases as Argo CD decides them, with when syncs are possible again.
func TestSyncWindows(t *testing.T) {
	const (
		nights   = `{"kind":"deny","schedule":"0 22 * * *","duration":"8h","applications":["*"]}`
		office   = `{"kind":"allow","schedule":"0 9 * * MON-FRI","duration":"8h","applications":["*"]}`
		midday   = `{"kind":"deny","schedule":"0 12 * * *","duration":"1h","applications":["*"]}`
		manual   = `{"kind":"deny","schedule":"0 12 * * *","duration":"1h","applications":["*"],"manualSync":true}`
		berlin   = `{"kind":"allow","schedule":"0 9 * * *","duration":"1h","timeZone":"Europe/Berlin"}`
		odd      = `{"kind":"allow","schedule":"0 9 * * *","duration":"1h","timeZone":"Nowhere/Land"}`
		always   = `{"kind":"deny","schedule":"* * * * *","duration":"1h"}`
		never    = `{"kind":"allow","schedule":"0 0 31 2 *","duration":"1h"}`
		overlaps = `{"kind":"deny","schedule":"0 12,13 * * *","duration":"90m"}`
	)
	for _, c := range []struct {
		name, windows, at string
		manual            bool
		opens             string // empty: syncs are possible; -: not within a year
	}{
		{"none", "", "2025-03-04T12:00:00Z", false, ""},
		{"a deny, before", nights, "2025-03-04T21:59:59Z", false, ""},
		{"a deny, its very start", nights, "2025-03-04T22:00:00Z", false, ""},
		{"a deny, within", nights, "2025-03-04T23:00:00Z", false, "2025-03-05T06:00:00Z"},
		{"a deny, its end", nights, "2025-03-05T06:00:00Z", false, ""},
		{"an allow, within", office, "2025-03-04T10:00:00Z", false, ""},
		{"an allow, outside", office, "2025-03-04T18:00:00Z", false, "2025-03-05T09:00:00Z"},
		{"an allow, over the weekend", office, "2025-03-07T18:00:00Z", false, "2025-03-10T09:00:00Z"},
		{"a deny wins over an allow", office + "," + midday, "2025-03-04T12:30:00Z", false, "2025-03-04T13:00:00Z"},
		{"two denies that overlap", overlaps, "2025-03-04T12:30:00Z", false, "2025-03-04T14:30:00Z"},
		{"by hand", midday, "2025-03-04T12:30:00Z", true, "2025-03-04T13:00:00Z"},
		{"by hand, which it lets through", manual, "2025-03-04T12:30:00Z", true, ""},
		{"by itself, which it doesn't", manual, "2025-03-04T12:30:00Z", false, "2025-03-04T13:00:00Z"},
		{"by hand, with another that doesn't", manual + "," + midday, "2025-03-04T12:30:00Z", true, "2025-03-04T13:00:00Z"},
		{"a zone in winter", berlin, "2025-03-04T07:30:00Z", false, "2025-03-04T08:00:00Z"},
		{"a zone in summer", berlin, "2025-07-04T06:30:00Z", false, "2025-07-04T07:00:00Z"},
		{"a zone, within", berlin, "2025-07-04T07:30:00Z", false, ""},
		{"an unknown zone is UTC", odd, "2025-07-04T09:30:00Z", false, ""},
		{"always denied", always, "2025-07-04T09:30:00Z", false, "-"},
		{"never allowed", never, "2025-07-04T09:30:00Z", false, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			windows := parseWindows(t, c.windows)
			got := ""
			if !allowsSync(windows, c.manual, at) {
				if got = "-"; !findOpening(windows, c.manual, at).IsZero() {
					got = findOpening(windows, c.manual, at).Format(time.RFC3339)
				}
			}
			if got != c.opens {
				t.Errorf("syncs are possible again at %q, want %q", got, c.opens)
			}
		})
	}
}

func TestSyncWindowsAreAboutSomeApplications(t *testing.T) {
	app := &verification.App{Namespace: "argocd", Name: "web-qa", Project: "shop", AutoSync: true, Destination: verification.Destination{Name: "qa-eu", Namespace: "shop"}}
	w := &Watcher{projects: newProjectSink(newAppStore("hub", nil, nil, &versionCounter{onChange: func() {}}))}
	for about, want := range map[string]bool{
		`"applications":["web-*"]`:                                                      true,
		`"applications":["api-*"]`:                                                      false,
		`"clusters":["qa-*"]`:                                                           true,
		`"clusters":["https://*"]`:                                                      false,
		`"namespaces":["{shop,bar}"]`:                                                   true,
		`"applications":["api-*"],"namespaces":["shop"]`:                                true,
		`"applications":["api-*"],"namespaces":["shop"],"andOperator":true`:             false,
		`"applications":["web-*"],"namespaces":["shop"],"andOperator":true`:             true,
		`"applications":["web-*"],"clusters":["other"],"andOperator":true`:              false,
		`"namespaces":["[broken"]`:                                                      false,
		`"manualSync":false`:                                                            false,
		`"applications":["web-*"],"syncOverrun":true,"description":"of newer Argo CDs"`: true,
	} {
		_, apply := w.projects.decodeObject(fmt.Appendf(nil, `{"metadata":{"namespace":"argocd","name":"shop"},"spec":{"syncWindows":[{"kind":"deny","schedule":"* * * * *","duration":"1h",%s}]}}`, about))
		apply()
		if got := w.ClosedWindow(app, time.Now()); (got != nil) != want || got != nil && got.Project != "shop" {
			t.Errorf("%s: %+v", about, got)
		}
	}
	another := *app
	another.Namespace = "team-a"
	if w.ClosedWindow(&another, time.Now()) == nil && w.ClosedWindow(app, time.Now()) != nil {
		t.Error("a project counts for Applications in any namespace")
	}
	w.projects.dropObject("argocd/shop")
	if w.ClosedWindow(app, time.Now()) != nil {
		t.Error("there is no such project any more")
	}
}

func TestSyncWindowsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{`{"schedule":"x","duration":"1h"}`, `{"schedule":"* * * * *","duration":"x"}`, `{"schedule":"* * * * *","duration":"-1h"}`, `7`} {
		if _, err := decodeWindows([]byte(`{"spec":{"syncWindows":[` + bad + `]}}`)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
