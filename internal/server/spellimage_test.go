package server

import (
	"strings"
	"testing"
)

// TestSpellImage holds by which names an image counts that a registry tells of.
func TestSpellImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, path, want string }{
		{"registry.example:5000", "acme/web", "registry.example:5000/acme/web"},
		{"", "ghcr.io/acme/web", "ghcr.io/acme/web"},
		{"docker.io", "acme/web", "docker.io/acme/web index.docker.io/acme/web acme/web"},
		{"Index.Docker.io", "library/nginx", "docker.io/library/nginx index.docker.io/library/nginx library/nginx docker.io/nginx nginx"},
	} {
		if got := strings.Join(spellImage(c.host, c.path), " "); got != c.want {
			t.Errorf("%s of %s: %s", c.path, c.host, got)
		}
	}
}
