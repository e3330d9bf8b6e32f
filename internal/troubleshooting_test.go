package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting holds that the messages of docs/troubleshooting.md are those that the
// code has: each of their parts that is as long as a phrase is in some file.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, root := range []string{".", "../policies", "../webhooks"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			code.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A message may go on in the next line of the source.
	said := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(code.String(), "")
	const phrase = 10
	checked := 0
	for _, row := range regexp.MustCompile("(?m)^- `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		for part := range strings.SplitSeq(row[1], "…") {
			if part = strings.TrimSpace(part); len(part) < phrase || strings.HasPrefix(part, "FILE:LINE") {
				continue
			}
			if checked++; !strings.Contains(said, part) {
				t.Errorf("nothing says %q, which is a part of %q", part, row[1])
			}
		}
	}
	if checked < 25 {
		t.Fatalf("only %d parts of messages were looked for", checked)
	}
}
