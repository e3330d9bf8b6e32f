package wording

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// TestPatternSize holds that what is counted is about what a pattern compiles to.
func TestPatternSize(t *testing.T) {
	for _, pattern := range []string{"a", "^v[0-9]+$", "a{100}", "(?:a?){50}", "(a|bc|d*)+", "[^a]{30}", strings.Repeat("abc", 50), "((a{5}){5}){5}"} {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := PatternSize(pattern); err != nil || got > 4*len(program.Inst) || 4*got < len(program.Inst) {
			t.Errorf("%s: counted %d (%v), it compiles to %d", pattern, got, err, len(program.Inst))
		}
	}
	if _, err := PatternSize("["); err == nil {
		t.Error("a broken one has a size")
	}
	if got, err := PatternSize(strings.Repeat("(?:a{1000})", 2000)); err != nil || got != maxPatternSize {
		t.Errorf("a large one counts %d, %v", got, err)
	}
}
