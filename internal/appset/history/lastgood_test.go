package history

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/git"
)

// TestSameRules walks a history of which some commits change pipeline files.
func TestSameRules(t *testing.T) {
	dir := t.TempDir()
	bare := filepath.Join(dir, "fleet.git")
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("", "init", "-q", "--bare", "-b", "main", bare)
	commit := func(file, text string, parents ...string) string {
		t.Helper()
		s := "commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 0\n"
		for i, p := range parents {
			s += []string{"from ", "merge "}[i] + p + "\n"
		}
		run(s+"M 100644 inline "+file+"\ndata 1\n"+text+"\n", "--git-dir="+bare, "fast-import", "--quiet", "--force")
		return run("", "--git-dir="+bare, "rev-parse", "main")
	}
	first := commit(".liftlock.yaml", "1")
	other := commit("x", "1", first)
	edited := commit(".liftlock/more.yaml", "2", other)
	after := commit("x", "2", edited)
	back := commit(".liftlock/more.yaml", "3", after)
	same := commit(".liftlock/more.yaml", "2", back)
	merged := commit("x", "3", same, other)
	side := commit("x", "4", other, same)
	far := merged
	for range maxHistorySteps {
		far = commit("x", "5", far)
	}
	m, err := git.Open(t.Context(), git.Options{Dir: filepath.Join(dir, "mirror.git"), URL: "file://" + bare, Author: git.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	run("", "--git-dir="+bare, "branch", "side", side)
	if _, err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before, at string
		want       bool
	}{
		"the same commit":                      {other, other, true},
		"another file":                         {first, other, true},
		"a pipeline file":                      {other, edited, false},
		"another file since":                   {edited, after, true},
		"there and back":                       {after, same, false},
		"a merge of what was there":            {same, merged, true},
		"only by another parent":               {same, side, false},
		"back in time":                         {after, edited, false},
		"too far":                              {merged, far, false},
		"a commit that nobody has any more":    {strings.Repeat("1", 40), after, false},
		"of a commit that nobody has any more": {after, strings.Repeat("1", 40), false},
	} {
		if got := SameRules(t.Context(), m, c.before, c.at); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
