package internal_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestReasonsOfLibraries holds that go.mod says beside each library that the code imports what it is for.
func TestReasonsOfLibraries(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for _, r := range file.Require {
		if r.Indirect {
			continue
		}
		direct++
		reason := ""
		for _, c := range r.Syntax.Suffix {
			reason += strings.TrimSpace(strings.TrimPrefix(c.Token, "//"))
		}
		if reason == "" {
			t.Errorf("go.mod:%d: %s has no reason beside it", r.Syntax.Start.Line, r.Mod.Path)
		}
	}
	if direct < 50 {
		t.Errorf("only %d libraries were looked at", direct)
	}
}
