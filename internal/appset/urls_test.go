package appset

import (
	"testing"
)

func TestSameRepository(t *testing.T) {
	const base = "https://git.example.com/acme/fleet"
	for _, same := range []string{
		base, base + ".git", base + "/", base + ".git/", "https://GIT.example.com/Acme/fleet", "https://ada:secret@git.example.com/acme/fleet.git",
		"http://git.example.com/acme/fleet", "https://git.example.com:443/acme/fleet", "git@git.example.com:acme/fleet.git", "git.example.com:acme/fleet",
		"ssh://git@git.example.com/acme/fleet", "ssh://git@git.example.com:22/acme/fleet.git", " " + base,
	} {
		if !SameRepository(base, same) {
			t.Errorf("%q is not taken for %q", same, base)
		}
	}
	for _, other := range []string{"", base + "2", "https://example.com/acme/fleet", "https://git.example.com:8443/acme/fleet", "git@git.example.com:other/fleet", "https://git.example.com/", "://", "acme/fleet"} {
		if SameRepository(base, other) {
			t.Errorf("%q is taken for %q", other, base)
		}
	}
	if SameRepository("", "") {
		t.Error("no URL is no repository")
	}
	if got := withoutCredentials("https://ada:secret@h/x"); got != "https://h/x" {
		t.Error(got)
	}
}
