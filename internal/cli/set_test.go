package cli

import (
	"os"
	"testing"
)

// TestSetSuggestsNearKeys warns of a key that was added beside one of nearly that name, and refuses
// it where all paths must be there.
func TestSetSuggestsNearKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	const before = "image:\n  repository: web\n  tag: v1\n"
	for _, c := range []struct {
		name                  string
		args                  []string
		stdout, stderr, after string
		code                  int
	}{
		{"there", []string{"image.tag=v2", "--existing"}, "values.yaml:3: image.tag v1 → v2\n", "", "image:\n  repository: web\n  tag: v2\n", 0},
		{"new", []string{"image.pullPolicy=Always"}, "values.yaml:4: image.pullPolicy Always (added)\n", "", before + "  pullPolicy: Always\n", 0},
		{"misspelt", []string{"image.tg=v2"}, "values.yaml:4: image.tg v2 (added)\n",
			"warning: image.tg was added to values.yaml; did you mean \"tag\", which is there? --existing refuses what isn't\n", before + "  tg: v2\n", 0},
		{"misspelt and refused", []string{"image.repository=api", "image.tg=v2", "--existing"}, "",
			"values.yaml:2: image.tg: it isn't there: image has no \"tg\", but repository, tag; did you mean \"tag\"?\n", before, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile("values.yaml", []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, code := runLiftlock(t, append([]string{"set", "values.yaml"}, c.args...)...)
			after, err := os.ReadFile("values.yaml")
			if err != nil || stdout != c.stdout || stderr != c.stderr || code != c.code || string(after) != c.after {
				t.Errorf("exit code %d, %v\n%s%s%s", code, err, stdout, stderr, after)
			}
		})
	}
}
