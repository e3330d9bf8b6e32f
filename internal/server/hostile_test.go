package server_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
)

// TestHostileFiles carries a folder with entries that aren't plain files, or whose names scripts
// misread. Each is refused by its name, nothing is opened meanwhile, and a Git LFS pointer is
// carried as it is.
func TestHostileFiles(t *testing.T) {
	config := func(env, name string) string { return overlayPath("web", env) + "/config/" + name }
	s := startHarness(t, harnessOptions{
		pipeline: pipelineYAML([]string{"  - files: {include: [\"config/**\"]}", "    whenAbsent: add"}, dev, manualQA),
		files:    map[string]string{config("dev", "a"): "1\n", config("qa", "a"): "1\n"},
	})
	s.awaitJudged()
	work := filepath.Join(t.TempDir(), "work")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=mallory", "-c", "user.email=m@example.com", "-c", "core.quotePath=true"}, args...)...)
		cmd.Dir = s.dir
		if _, err := os.Stat(work); err == nil {
			cmd.Dir = work
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	from, err := url.Parse(s.Forge.URL() + "/" + repoName + ".git")
	s.must("read the forge's address", err)
	from.User = url.UserPassword("linus", "token-of-linus")
	git("clone", "-q", from.String(), work)
	put := func(name, text string) {
		t.Helper()
		s.must("make a folder", os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o755))
		s.must("write a file", os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
	}
	put(config("dev", "a"), "2\n")
	put(config("dev", "a b/ünï code.txt"), "spaces are fine\n")
	put(config("dev", "large.bin"), "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("4d", 32)+"\nsize 123456789\n")
	for _, c := range []struct {
		name, says   string
		make, revert func()
	}{
		{"newline", `new\nline`, func() { put(config("dev", "new\nline"), "x") }, func() { git("rm", "-q", "-f", config("dev", "new\nline")) }},
		{"quotes", "names with quotes", func() { put(config("dev", `a"b`), "x") }, func() { git("rm", "-q", "-f", config("dev", `a"b`)) }},
		{"option", "rename --force", func() { put(config("dev", "--force"), "x") }, func() { git("rm", "-q", "-f", config("dev", "--force")) }},
		{"symlink", config("qa", "escape") + ": it is a symlink",
			func() { s.must("link", os.Symlink("../../prod", filepath.Join(work, config("qa", "escape")))) },
			func() { git("rm", "-q", "-f", config("qa", "escape")) }},
		{"submodule", config("qa", "sub") + ": it is neither a file nor a folder",
			func() {
				git("update-index", "--add", "--cacheinfo", "160000,"+git("rev-parse", "HEAD")+","+config("qa", "sub"))
			},
			func() { git("rm", "-q", "--cached", config("qa", "sub")) }},
	} {
		c.make()
		git("add", "-A", "--", ".", ":(exclude)"+config("qa", "sub"))
		git("commit", "-q", "-m", c.name)
		git("push", "-q", "origin", "HEAD:main")
		s.awaitEnvironment("web", "qa", "refuses the "+c.name, func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Text, c.says) })
		s.awaitIdle()
		if n := len(s.listPulls("web", "qa")); n != 0 {
			t.Fatalf("%d pull requests with a %s", n, c.name)
		}
		c.revert()
	}
	git("add", "-A")
	git("commit", "-q", "-m", "Only files")
	git("push", "-q", "origin", "HEAD:main")
	s.waitFor("the promotion is open", func() (bool, string) {
		_, why := s.readEnvironment("web", "qa")
		return len(s.listPulls("web", "qa")) == 1, why
	})
	p := s.listPulls("web", "qa")[0]
	for _, name := range []string{"a", "large.bin", "a b/ünï code.txt"} {
		want, _, err := s.Forge.File(repoName, "main", config("dev", name))
		s.must("read "+name, err)
		if got, _, err := s.Forge.File(repoName, p.Head, config("qa", name)); err != nil || got != want {
			t.Errorf("%s is %q in qa (%v), want %q", name, got, err, want)
		}
	}
}
