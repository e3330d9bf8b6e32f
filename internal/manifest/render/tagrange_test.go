package render

import "testing"

// TestTagRanges chooses among tags as Argo CD does (util/git, resolveSemverRevision).
func TestTagRanges(t *testing.T) {
	tags := []string{"v1.0.0", "v1.2.0", "1.3.0-rc.1", "v1.10.1", "v2.0.0", "web-1.9.0", "latest", "main"}
	for revision, want := range map[string]string{
		"v1.*": "v1.10.1", "1.x": "v1.10.1", "~1.2": "v1.2.0", "^1.0.0": "v1.10.1", ">=1.2 <1.10": "v1.2.0", "*": "v2.0.0", ">=1.3.0-0 <1.4": "1.3.0-rc.1", "v3.*": "",
		"v1.2.0": "no range", "1.2": "no range", "v1": "no range", "main": "no range", "": "no range", "HEAD": "no range", "refs/tags/v1.0.0": "no range", "web-1.*": "no range",
		"0123456789abcdef0123456789abcdef01234567": "no range",
	} {
		got := "no range"
		if allowed, is := ParseTagRange(revision); is {
			got = NewestVersion(allowed, tags)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", revision, got, want)
		}
	}
}
