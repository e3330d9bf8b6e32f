package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestActionsArePinned holds that workflows run the reviewed code: another owner's tag can be
// moved, a commit can't.
func TestActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses:\s*(.*)$`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	files, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	seen := 0
	for _, file := range files {
		for _, m := range uses.FindAllStringSubmatch(readFile(t, file), -1) {
			seen++
			if !strings.HasPrefix(m[1], "./") && !pinned.MatchString(m[1]) {
				t.Errorf("%s: uses: %s: write it like owner/action@COMMIT # v1.2.3", file, m[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d uses: were found; what does this test read?", seen)
	}
}

// TestImageIsBuiltFromDigests holds that the image names no base that could be another one
// tomorrow, and is compiled by the toolchain that go.mod names.
func TestImageIsBuiltFromDigests(t *testing.T) {
	text := readFile(t, "image/Dockerfile")
	for _, m := range regexp.MustCompile(`(?m)^FROM\s+(?:--\S+\s+)*(\S+)`).FindAllStringSubmatch(text, -1) {
		name := strings.Trim(m[1], "${}")
		if name == m[1] {
			t.Errorf("FROM %s: give it as an ARG that has a digest", m[1])
		} else if !regexp.MustCompile(`(?m)^ARG ` + name + `=\S+@sha256:`).MatchString(text) {
			t.Errorf("FROM %s: there is no ARG %s that says that a digest is needed", m[1], name)
		}
		if want := name + "=${{ vars." + name + " }}"; !strings.Contains(readFile(t, "../.github/workflows/release.yaml"), want) {
			t.Errorf("the release doesn't give the build %s", want)
		}
	}
	if !strings.Contains(text, "ENV GOTOOLCHAIN=auto") {
		t.Error("Go's own images say GOTOOLCHAIN=local, and nothing here says otherwise")
	}
}

// TestToolchain holds that a patch of Go is named: with the line go alone, whatever is installed
// counts, with the holes that it has.
func TestToolchain(t *testing.T) {
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^toolchain go1\.\d+\.\d+$`).Match(raw) {
		t.Error("go.mod names no toolchain")
	}
	for file, want := range map[string]string{"../Makefile": "export GOTOOLCHAIN := auto\n", "../.ci/run": "export GOTOOLCHAIN=auto\n"} {
		if !strings.Contains(readFile(t, file), want) {
			t.Errorf("%s lacks %s", file, want)
		}
	}
}
