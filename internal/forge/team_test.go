package forge

import "testing"

func TestParseTeam(t *testing.T) {
	for text, want := range map[string]Team{"acme/sre": {"acme", "sre"}, "Acme/Site_Reliability-2": {"Acme", "Site_Reliability-2"}} {
		if got, err := ParseTeam(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "sre", "/sre", "acme/", "@acme/sre", "acme/a/b", "acme/..", "../sre", "acme/s re", "acme/sre?x=1", "acme/%2e%2e", "acme/a#b"} {
		if got, err := ParseTeam(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}
