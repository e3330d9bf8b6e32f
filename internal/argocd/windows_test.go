package argocd

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

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
		noAllow  = `{"kind":"allow","schedule":"0 0 31 2 *","duration":"1h"}`
		noDeny   = `{"kind":"deny","schedule":"0 0 31 2 *","duration":"1h"}`
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
		{"an allow that never comes is open", noAllow, "2025-07-04T09:30:00Z", false, ""},
		{"a deny that never comes is open too", noDeny, "2025-07-04T09:30:00Z", false, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			windows := parseWindows(t, c.windows)
			if got := describeOpening(windows, syncAttempt{manual: c.manual}, at); got != c.opens {
				t.Errorf("syncs are possible again at %q, want %q", got, c.opens)
			}
		})
	}
}

// describeOpening is when a sync is possible again; empty: it is; -: not within a year.
func describeOpening(windows []syncWindow, sync syncAttempt, at time.Time) string {
	if allowsSync(windows, sync, at) {
		return ""
	}
	if opens := findChange(windows, sync, at); !opens.IsZero() {
		return opens.Format(time.RFC3339)
	}
	return "-"
}

// TestSyncOverrun has the cases of Argo CD's own documentation (Sync Windows, "Transition
// Scenarios"), and when a sync goes on that doesn't overrun. From 9 to 12 syncs are allowed,
// from 11 to 13 denied; a sync has begun at 10 where nothing else is said.
func TestSyncOverrun(t *testing.T) {
	const (
		allow  = `{"kind":"allow","schedule":"0 9 * * *","duration":"3h"`
		longer = `{"kind":"allow","schedule":"0 9 * * *","duration":"4h"`
		deny   = `{"kind":"deny","schedule":"0 11 * * *","duration":"2h"`
		wider  = `{"kind":"deny","schedule":"0 11 * * *","duration":"3h"`
		over   = `,"syncOverrun":true}`
		byHand = `,"manualSync":true}`
		no     = `}`
	)
	for _, c := range []struct {
		name, windows, at string
		began             string // empty: at 10; -: not yet
		manual            bool
		opens             string
	}{
		{"no window, then a deny with overrun", deny + over, "11:30", "", false, ""},
		{"no window, then a deny without", deny + no, "11:30", "", false, "13:00"},
		{"an allow with overrun, then a deny with it", allow + over + "," + deny + over, "11:30", "", false, ""},
		{"an allow with overrun, then a deny without", allow + over + "," + deny + no, "11:30", "", false, "13:00"},
		{"an allow without, then a deny with overrun", allow + no + "," + deny + over, "11:30", "", false, ""},
		{"an allow without, then a deny without", allow + no + "," + deny + no, "11:30", "", false, "09:00 tomorrow"},
		{"an allow with overrun ends", allow + over, "12:30", "", false, ""},
		{"an allow without ends", allow + no, "12:30", "", false, "09:00 tomorrow"},
		{"allows with overrun end", allow + over + "," + longer + over, "13:30", "", false, ""},
		{"allows end, one of them without", allow + over + "," + longer + no, "13:30", "", false, "09:00 tomorrow"},
		{"one of two denies is without", deny + over + "," + wider + no, "11:30", "", false, "14:00"},
		{"an allow ends while a deny with overrun is open", allow + no + "," + deny + over, "12:30", "", false, ""},
		{"and the deny ends too", allow + no + "," + deny + over, "13:30", "", false, "09:00 tomorrow"},
		{"one that is yet to begin", deny + over, "11:30", "-", false, "13:00"},
		{"one that is yet to begin, after an allow", allow + over, "12:30", "-", false, "09:00 tomorrow"},
		{"one that began while it was denied", deny + over, "12:30", "11:30", false, "13:00"},
		{"one that began before the allow", allow + over, "12:30", "08:30", false, "09:00 tomorrow"},
		{"one by hand that began while only that was let through", allow + byHand + "," + deny + over, "11:30", "08:30", true, ""},
		{"one by itself that began then", allow + byHand + "," + deny + over, "11:30", "08:30", false, "09:00 tomorrow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := func(text string) time.Time {
				at, err := time.Parse(time.RFC3339, "2026-03-03T"+text+":00Z")
				if err != nil {
					t.Fatal(err)
				}
				return at
			}
			sync := syncAttempt{manual: c.manual}
			if c.began != "-" {
				sync.began = clock(cmp.Or(c.began, "10:00"))
			}
			windows, want := parseWindows(t, c.windows), c.opens
			if on, ok := strings.CutSuffix(want, " tomorrow"); ok {
				want = clock(on).AddDate(0, 0, 1).Format(time.RFC3339)
			} else if want != "" {
				want = clock(want).Format(time.RFC3339)
			}
			if got := describeOpening(windows, sync, clock(c.at)); got != want {
				t.Errorf("it goes on at %q, want %q", got, want)
			}
		})
	}
}

// TestSyncWindowsOfRunningSyncs holds a sync that runs to the windows as who began it, and
// when, and one that is yet to begin as the Application is synced.
func TestSyncWindowsOfRunningSyncs(t *testing.T) {
	w := &Watcher{projects: newProjectSink(newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}}))}
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	running := func(phase string, automated bool, began time.Time) *verification.Operation {
		return &verification.Operation{Phase: phase, Automated: automated, StartedAt: began}
	}
	const overrun, byHand = `"syncOverrun":true`, `"manualSync":true`
	for name, c := range map[string]struct {
		window string
		op     *verification.Operation
		closed bool
	}{
		"nothing has begun":                         {overrun, nil, true},
		"it began before":                           {overrun, running("Running", true, noon.Add(-2*time.Hour)), false},
		"it began since":                            {overrun, running("Running", true, noon.Add(-time.Minute)), true},
		"it is over":                                {overrun, running("Succeeded", true, noon.Add(-2*time.Hour)), true},
		"the window has no overrun":                 {byHand, running("Running", true, noon.Add(-2*time.Hour)), true},
		"a person has begun it, and may":            {byHand, running("Running", false, noon.Add(-time.Minute)), false},
		"a person has ended it, Argo CD comes next": {byHand, running("Succeeded", false, noon.Add(-time.Minute)), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, apply := w.projects.decodeObject([]byte(`{"metadata":{"namespace":"argocd","name":"shop"},"spec":{"syncWindows":[{"kind":"deny","schedule":"0 11 * * *","duration":"2h","applications":["*"],` + c.window + `}]}}`))
			apply()
			app := verification.App{Namespace: "argocd", Name: "web-qa", Project: "shop", AutoSync: true, Operation: c.op}
			if got := w.ClosedWindow(&app, noon); (got != nil) != c.closed {
				t.Errorf("the window that keeps it: %+v", got)
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
	if isOpen, _, err := w.SyncWindow(app, time.Now()); err == nil || isOpen || err.Error() != `there is no AppProject "shop"` {
		t.Errorf("there is no such project any more: %t, %v", isOpen, err)
	}
	if w.ClosedWindow(app, time.Now()) != nil {
		t.Error("there is no such project any more")
	}
}

// TestSyncWindowsThatChange tells of the Applications of a project whose windows are others.
func TestSyncWindowsThatChange(t *testing.T) {
	sink := newProjectSink(newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}}))
	sink.apps["argocd/web-qa"] = &verification.App{Namespace: "argocd", Name: "web-qa", Project: "shop"}
	sink.apps["argocd/api-qa"] = &verification.App{Namespace: "argocd", Name: "api-qa", Project: "other"}
	calls := 0
	sink.onWindowsChange = func(apps []verification.App) {
		if calls++; len(apps) != 1 || apps[0].Name != "web-qa" {
			t.Errorf("told of %+v", apps)
		}
	}
	put := func(project, windows string) {
		_, apply := sink.decodeObject([]byte(`{"metadata":{"namespace":"argocd","name":"` + project + `"},"spec":{"syncWindows":[` + windows + `]}}`))
		apply()
	}
	const deny, allow, broken = `{"kind":"deny","schedule":"0 9 * * *","duration":"1h"}`, `{"kind":"allow","schedule":"0 9 * * *","duration":"1h"}`, `{"schedule":"x"}`
	for i, step := range []struct {
		project, windows string
		want             int
	}{{"shop", "", 0}, {"shop", deny, 1}, {"shop", deny, 1}, {"shop", allow, 2}, {"empty", deny, 2}, {"shop", broken, 3}, {"shop", broken, 3}, {"shop", allow, 4}} {
		if put(step.project, step.windows); calls != step.want {
			t.Errorf("step %d: told %d times, want %d", i, calls, step.want)
		}
	}
	if sink.dropObject("argocd/shop"); calls != 5 {
		t.Errorf("the project is gone: told %d times", calls)
	}
}

// TestSyncWindowChanges says when the windows about an Application open and close, by who asks
// for its syncs, and why that can't be told.
func TestSyncWindowChanges(t *testing.T) {
	const office = `{"kind":"allow","schedule":"0 9 * * *","duration":"8h","applications":["*"],"manualSync":true}`
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	automated := verification.App{Namespace: "argocd", Name: "web-qa", Project: "shop", AutoSync: true}
	rolling, manual, leftOut := automated, automated, automated
	rolling.AutoSync, rolling.SetStep = false, verification.SetStep{Status: "Waiting", Step: "2"}
	manual.AutoSync, leftOut.AutoSync, leftOut.SetStep = false, false, verification.SetStep{Status: "Waiting", Step: "-1"}
	for name, c := range map[string]struct {
		app     verification.App
		windows string
		at      time.Time
		isOpen  bool
		changes time.Time
		err     string
	}{
		"none":                                  {automated, "", noon, true, time.Time{}, ""},
		"about others":                          {automated, `{"kind":"deny","schedule":"* * * * *","duration":"1h","applications":["api-*"]}`, noon, true, time.Time{}, ""},
		"open":                                  {automated, office, noon, true, noon.Add(5 * time.Hour), ""},
		"closed":                                {automated, office, noon.Add(6 * time.Hour), false, noon.Add(21 * time.Hour), ""},
		"closed for a set's rolling sync":       {rolling, office, noon.Add(6 * time.Hour), false, noon.Add(21 * time.Hour), ""},
		"open for who asks":                     {manual, office, noon.Add(6 * time.Hour), true, time.Time{}, ""},
		"open for what a set's steps leave out": {leftOut, office, noon.Add(6 * time.Hour), true, time.Time{}, ""},
		"one that makes no sense":               {automated, `{"kind":"allow","schedule":"now and then","duration":"1h"}`, noon, false, time.Time{}, "now and then"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Watcher{projects: newProjectSink(newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}}))}
			_, apply := w.projects.decodeObject([]byte(`{"metadata":{"namespace":"argocd","name":"shop"},"spec":{"syncWindows":[` + c.windows + `]}}`))
			apply()
			isOpen, changes, err := w.SyncWindow(&c.app, c.at)
			if isOpen != c.isOpen || !changes.Equal(c.changes) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("open %t, changes at %s, %v; want %t, %s, …%s…", isOpen, changes, err, c.isOpen, c.changes, c.err)
			}
			w.projectFeeds = []follower{&feed{feedState: feedState{title: "appprojects"}}}
			if _, _, err := w.SyncWindow(&c.app, c.at); err == nil || !strings.Contains(err.Error(), "the AppProjects ") {
				t.Errorf("they were never listed: %v", err)
			}
		})
	}
}

func TestSyncWindowsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{`{"schedule":"x","duration":"1h"}`, `{"schedule":"* * * * *","duration":"x"}`, `{"schedule":"* * * * *","duration":"-1h"}`, `7`} {
		if _, err := decodeWindows([]byte(`{"spec":{"syncWindows":[` + bad + `]}}`)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
