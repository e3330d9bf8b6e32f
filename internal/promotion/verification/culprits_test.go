package verification

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCulprits(t *testing.T) {
	for healths, want := range map[string]string{
		"":                           "",
		"Suspended Unknown":          "",
		"Progressing Degraded":       "Degraded",
		"Missing Suspended Degraded": "Missing Degraded",
		"Suspended Progressing":      "Progressing",
	} {
		var list []Resource
		for h := range strings.FieldsSeq(healths) {
			list = append(list, Resource{Health: h})
		}
		var got []string
		for _, r := range Culprits(list) {
			got = append(got, r.Health)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of %q: %q, want %q", healths, got, want)
		}
	}
}

// TestAddCulprits names every resource once, in the verdict's words where it names it.
func TestAddCulprits(t *testing.T) {
	web := Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Progressing"}
	db, denied := web, web
	db.Name = "db"
	denied.Health, denied.Message = "Degraded", "admission denied"
	if got := AddCulprits([]Resource{db, web}, []Resource{denied}); !reflect.DeepEqual(got, []Resource{denied, db}) {
		t.Errorf("got %+v", got)
	}
	if got := AddCulprits([]Resource{web}, nil); !reflect.DeepEqual(got, []Resource{web}) {
		t.Errorf("without culprits: %+v", got)
	}
}

// TestTurnedByChange says whether a health comes of a change of the Application's own.
func TestTurnedByChange(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	synced := &Operation{Phase: "Succeeded", FinishedAt: at}
	for name, c := range map[string]struct {
		app  App
		want string
	}{
		"nobody says since when": {App{Operation: synced}, "unknown"},
		"just synced":            {App{Operation: synced, HealthSince: at.Add(30 * time.Second)}, "true"},
		"long after":             {App{Operation: synced, HealthSince: at.Add(time.Hour)}, "false"},
		"to be synced":           {App{Operation: synced, Pending: true, HealthSince: at.Add(time.Hour)}, "true"},
		"being synced":           {App{Operation: &Operation{Phase: "Running"}, HealthSince: at}, "true"},
		"just made":              {App{CreatedAt: at, HealthSince: at}, "true"},
	} {
		got := "unknown"
		if by := c.app.TurnedByChange(); by != nil {
			got = strconv.FormatBool(*by)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
