package deps

import (
	"fmt"

	"github.com/gobwas/glob"

	"github.com/liftlock/liftlock/internal/wording"
)

// maxPatternBytes bounds a pattern; the compiler's work grows with it.
const maxPatternBytes = 4096

// pattern is an include or exclude glob. The library that Argo CD uses matches it, so that odd
// patterns mean the same here and there. That library panics on some of them, when compiling or
// when matching.
type pattern struct {
	text string
	glob glob.Glob
}

// compilePattern reads a pattern; nil for an empty one.
func compilePattern(text string) (p *pattern, err error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPatternBytes)
	}
	if err := wording.CheckGlob(text); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("it can't be compiled: %v", r)
		}
	}()
	g, err := glob.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{text, g}, nil
}

// match reports whether name matches, or doubt where the library fails.
func (p *pattern) match(name string, onPanic bool) (matched bool) {
	defer func() {
		if recover() != nil {
			matched = onPanic
		}
	}()
	return p.glob.Match(name)
}

// String is the pattern as it was written; "" for none.
func (p *pattern) String() string {
	if p == nil {
		return ""
	}
	return p.text
}
