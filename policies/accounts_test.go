package policies

import (
	"strings"
	"testing"
)

func TestCheckLogin(t *testing.T) {
	for _, text := range []string{"ada", "github-actions[bot]", strings.Repeat("a", maxName)} {
		if err := CheckLogin(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", "@ada", "a b", "acme/ada", "ada,grace", strings.Repeat("a", maxName+1)} {
		if err := CheckLogin(text); err == nil {
			t.Errorf("%q is taken for a login", text)
		}
	}
}

func TestParseTeam(t *testing.T) {
	for text, want := range map[string][2]string{"acme/sre": {"acme", "sre"}, "Acme/Site_Reliability-2": {"Acme", "Site_Reliability-2"}} {
		if organisation, name, err := ParseTeam(text); err != nil || organisation != want[0] || name != want[1] {
			t.Errorf("%q: %q, %q, %v", text, organisation, name, err)
		}
	}
	longest := "acme/" + strings.Repeat("s", maxName-len("acme/"))
	if _, _, err := ParseTeam(longest); err != nil {
		t.Error(err)
	}
	for _, text := range []string{longest + "s", "", "sre", "/sre", "acme/", "@acme/sre", "acme/a/b", "acme/..", "../sre", "acme/s re", "acme/sre?x=1", "acme/%2e%2e", "acme/a#b"} {
		if organisation, name, err := ParseTeam(text); err == nil {
			t.Errorf("%q is taken for %q of %q", text, name, organisation)
		}
	}
}
