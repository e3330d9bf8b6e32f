package verification

import (
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
