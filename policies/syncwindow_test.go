package policies

import (
	"strings"
	"testing"
	"time"
)

// TestSyncWindows waits until every target may be synced, and for one that can't be told.
func TestSyncWindows(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	open := func(target string, until time.Time) TargetWindow {
		return TargetWindow{Target: target, Project: "shop", Changes: until}
	}
	closed := func(target string, until time.Time) TargetWindow {
		return TargetWindow{Target: target, Project: "shop", Closed: true, Changes: until}
	}
	follows := Gate{Window: &Window{ArgoCD: true}}
	nights := Window{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "UTC"}
	for name, c := range map[string]struct {
		gate    Gate
		targets []TargetWindow
		outcome Outcome
		reason  string
		until   time.Time
	}{
		"no window anywhere":         {follows, []TargetWindow{open("web-eu", time.Time{})}, Pass, "open for 1 target", time.Time{}},
		"the first that closes":      {follows, []TargetWindow{open("web-eu", at(3)), open("web-us", at(2)), open("web-ap", time.Time{})}, Pass, "open for 3 targets until Mon 2026-03-02 14:00 UTC", at(2)},
		"whatever their order":       {follows, []TargetWindow{open("web-us", at(2)), open("web-eu", at(3))}, Pass, "open for 2 targets until Mon 2026-03-02 14:00 UTC", at(2)},
		"one is closed":              {follows, []TargetWindow{open("web-eu", at(1)), closed("web-us", at(2))}, Wait, "Argo CD's sync windows keep web-us (project shop) from being synced until Mon 2026-03-02 14:00 UTC", at(2)},
		"the last that opens":        {follows, []TargetWindow{closed("web-eu", at(1)), closed("web-us", at(2)), closed("web-ap", at(1))}, Wait, "Argo CD's sync windows keep web-us (project shop) and 2 others from being synced until Mon 2026-03-02 14:00 UTC", at(2)},
		"the first of those":         {follows, []TargetWindow{closed("web-eu", at(2)), closed("web-us", at(2))}, Wait, "Argo CD's sync windows keep web-eu (project shop) and 1 other from being synced", at(2)},
		"one that never opens":       {follows, []TargetWindow{closed("web-eu", at(1)), closed("web-us", time.Time{}), closed("web-ap", at(5))}, Wait, "Argo CD's sync windows keep web-us (project shop) and 2 others from being synced", time.Time{}},
		"nobody can tell of one":     {follows, []TargetWindow{closed("web-eu", at(1)), {Target: "web-us", Err: "connection\nrefused"}}, Wait, "Argo CD's sync windows for web-us can't be told: connection refused", time.Time{}},
		"no target":                  {follows, nil, Wait, "no target of the environment is known", time.Time{}},
		"a window of its own, too":   {Gate{Windows: Windows{nights, {ArgoCD: true}}}, []TargetWindow{closed("web-eu", at(2))}, Wait, "closed until Mon 2026-03-02 22:00 UTC; Argo CD's sync windows keep web-eu (project shop) from being synced until Mon 2026-03-02 14:00 UTC", at(2)},
		"that is sooner":             {Gate{Windows: Windows{nights, {ArgoCD: true}}}, []TargetWindow{closed("web-eu", at(20))}, Wait, "closed until Mon 2026-03-02 22:00 UTC; ", at(10)},
		"which nobody can tell":      {Gate{Windows: Windows{nights, {ArgoCD: true}}}, nil, Wait, "closed until Mon 2026-03-02 22:00 UTC; ", at(10)},
		"one of the two is open":     {Gate{Windows: Windows{nights, {ArgoCD: true}}}, []TargetWindow{open("web-eu", at(2))}, Pass, "open for 1 target until", at(2)},
		"and so is the other of two": {Gate{Windows: Windows{{ArgoCD: true}, {Cron: "0 11 * * *", Duration: 2 * time.Hour, Timezone: "UTC"}}}, []TargetWindow{closed("web-eu", at(2))}, Pass, "open until Mon 2026-03-02 13:00 UTC", at(1)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.gate.Validate(); err != nil || !c.gate.FollowsSyncWindows() {
				t.Fatal(err, c.gate.FollowsSyncWindows())
			}
			r := c.gate.Evaluate(Facts{Now: now, SyncWindows: c.targets})
			if r.Outcome != c.outcome || !strings.Contains(r.Reason, c.reason) || !r.Until.Equal(c.until) {
				t.Errorf("%s: %s, until %s; want %s: …%s…, until %s", r.Outcome, r.Reason, r.Until, c.outcome, c.reason, c.until)
			}
		})
	}
	for _, gate := range []Gate{{Window: &nights}, {Windows: Windows{nights}}, {Soak: &Soak{}}} {
		if gate.FollowsSyncWindows() {
			t.Errorf("%+v follows them", gate)
		}
	}
	for _, other := range []Window{{ArgoCD: true, Cron: "0 9 * * *"}, {ArgoCD: true, Duration: time.Hour}, {ArgoCD: true, Timezone: "UTC"}} {
		if err := (&Gate{Window: &other}).Validate(); err == nil || !strings.Contains(err.Error(), "window.argocd: stands alone") {
			t.Errorf("%+v: %v", other, err)
		}
	}
}
