package appset

import (
	"strings"
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
	for name, urls := range map[string][]string{
		"github.com/acme/fleet": {"ssh://git@ssh.github.com:443/acme/fleet.git", "ssh://git@SSH.GitHub.com:443/acme/fleet", "https://www.github.com/acme/fleet", "https://github.com/acme/fleet ",
			"https://x-access-token@github.com/Acme/Fleet/", "https://github.com/acme/fleet\n", "git@github.com:acme/fleet"},
		"gitlab.com/acme/fleet":    {"ssh://git@altssh.gitlab.com:443/acme/fleet.git", "git@gitlab.com:acme/fleet.git", "https://oauth2:token@gitlab.com/acme/fleet.git"},
		"bitbucket.org/acme/fleet": {"ssh://git@altssh.bitbucket.org:443/acme/fleet.git", "git@bitbucket.org:acme/fleet.git"},
	} {
		for _, url := range urls {
			if !SameRepository("https://"+name, url) {
				t.Errorf("%q is not taken for %s", url, name)
			}
		}
		for _, url := range []string{"https://" + name + "-infra", "https://gist." + name, "ssh://git@ssh." + name, "https://ssh." + name, "ssh://git@altssh.github.com:443/acme/fleet", "ssh://git@ssh.gitlab.com:443/acme/fleet",
			"ssh://git@ssh.github.com:8443/acme/fleet", "https://" + name + "\u200b"} {
			if SameRepository("https://"+name, url) {
				t.Errorf("%q is taken for %s", url, name)
			}
		}
	}
	if SameRepository("", "") {
		t.Error("no URL is no repository")
	}
	if got := withoutCredentials("https://ada:secret@h/x"); got != "https://h/x" {
		t.Error(got)
	}
}

// TestInvisibleCharacters shows an invisible character of an address, whether a generator or an
// Application has it.
func TestInvisibleCharacters(t *testing.T) {
	const list = `
  goTemplate: true
  generators: [{list: {elements: [{env: dev}]}}]
  template:
    metadata: {name: 'app-{{ .env }}'}
    spec: {project: default, source: {repoURL: "ADDRESS", targetRevision: main, path: a}, destination: {name: in-cluster, namespace: x}}`
	const directories = `
  goTemplate: true
  generators: [{git: {repoURL: "ADDRESS", revision: HEAD, directories: [{path: "*"}]}}]
  template:
    metadata: {name: 'app-{{ .path.basename }}'}
    SPEC`
	const own = "https://git.example.com/acme/fleet.git"
	for name, c := range map[string]struct{ spec, url, want string }{
		"a zero-width space in a source":       {list, own + "\u200b", `fleet.git\u200b" has the invisible character U+200B`},
		"a zero-width space in a generator":    {directories, own + "\u200b", `fleet.git\u200b" has the invisible character U+200B`},
		"a mark of order in front":             {list, "\ufeff" + own, "U+FEFF"},
		"a soft hyphen within":                 {directories, "https://git.example.com/acme/fl\u00adeet.git", "U+00AD"},
		"a space that doesn't break":           {list, own + "/x\u00a0y", "U+00A0"},
		"blanks around, which Argo CD trims":   {list, " " + own + " ", ""},
		"a blank within, as Azure's addresses": {list, "https://dev.azure.com/acme/the project/_git/fleet", ""},
		"letters of any language":              {list, "https://git.example.com/acmé/flotte", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := resolvedFor(t, strings.ReplaceAll(c.spec, "ADDRESS", c.url), Version{3, 5, 0})
			all := strings.Join(got, "\n")
			if c.want == "" && all != "app-dev" || !strings.Contains(all, c.want) {
				t.Errorf("it comes to %q, want %q", all, c.want)
			}
		})
	}
}
