package appset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPathspecEqualsGit compares with git itself.
func TestPathspecEqualsGit(t *testing.T) {
	names := []string{"a", "b.json", "a-b/c.json", "apps/web/dev/config.json", "apps/web/config.json", "apps/config.json", "apps/we[b/x", "apps/*/y", `back\slash`, "dir/.hidden/z", "A/B", "x/]", "x/^", "x/-", "apps2/config.json", "ünï/çode.json"}
	tree := map[string]string{}
	for _, n := range names {
		if n == "a" {
			continue // a file and a folder can't share a name
		}
		tree[n] = ""
	}
	dir := checkout(t, tree)
	all, err := lsFiles(dir, ".")
	must(t, err)
	check := func(t rapid.TB, pattern string) {
		spec, err := cleanPathspec(pattern)
		want, gitErr := lsFiles(dir, pattern)
		if err != nil {
			if gitErr == nil && !strings.HasPrefix(pattern, ":") && len(want) > 0 {
				t.Errorf("%q: we refuse it (%v), git gives %q", pattern, err, want)
			}
			return
		}
		var got []string
		for _, n := range all {
			if matchPathspec(spec, n) {
				got = append(got, n)
			}
		}
		if gitErr != nil {
			t.Errorf("%q: git refuses it, we give %q", pattern, got)
		}
		if d := cmp.Diff(want, got); d != "" && len(want)+len(got) > 0 {
			t.Errorf("%q (-git +ours):\n%s", pattern, d)
		}
	}
	for _, pattern := range []string{
		".", "apps", "apps/", "apps/*", "*.json", "**/config.json", "apps/**/config.json", "apps/*/config.json", "apps/we[b", `apps/\*/y`, "apps/*/y", "*/", "./apps", "apps/../b.json", "apps//web", "../x",
		"?.json", "[[:upper:]]/*", "[[:alpha:]b]", "x/[]]", "x/[!a]", "x/[^a]", "x/[a-^]", "x/[--^]", "x/[", "[[:nope:]]", "[[:alpha]", `back\\slash`, `x/\`, "dir/*", "apps/web/dev/config.json/", "b.json/", "b.json/.", "*/.", "apps/.", "apps/web/..", "apps/web/../..", "*/web/..", "ünï/*", "**", "a*", "A/[A-Z]",
	} {
		t.Run(pattern, func(t *testing.T) { check(t, pattern) })
	}
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"apps", "/", "*", "**", "?", "web", "config.json", "[a-w]", "[!x]", "[", "]", "-", `\`, ".", "x", "^", "[[:alpha:]]"}), 1, 6).Draw(rt, "pattern")
			pattern := strings.Join(parts, "")
			if strings.HasPrefix(pattern, "/") {
				rt.Skip("absolute paths depend on where the checkout is")
			}
			check(rt, pattern)
		})
	})
}

// FuzzPathspec holds that any pattern is answered, in time that grows no
// faster than pattern times name.
func FuzzPathspec(f *testing.F) {
	f.Add("a*b*c*[!x]", "aaaaabbbbccc")
	f.Add(strings.Repeat("*a", 50), strings.Repeat("a", 200)+"b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		spec, err := cleanPathspec(pattern)
		if err != nil {
			return
		}
		if matchPathspec(spec, name); spec == name && !matchPathspec(spec, name) {
			t.Fatalf("%q doesn't match itself", name)
		}
	})
}
