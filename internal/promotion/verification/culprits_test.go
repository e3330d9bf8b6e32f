package verification

import (
	"slices"
	"strings"
	"testing"
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
	if got := AddCulprits([]Resource{db, web}, []Resource{denied}); !slices.Equal(got, []Resource{denied, db}) {
		t.Errorf("got %+v", got)
	}
	if got := AddCulprits([]Resource{web}, nil); !slices.Equal(got, []Resource{web}) {
		t.Errorf("without culprits: %+v", got)
	}
}
