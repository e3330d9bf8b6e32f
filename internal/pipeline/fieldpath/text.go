package fieldpath

import (
	"fmt"
	"strings"
	"unicode"
)

// String is the path in its canonical form; Parse reads it back.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p.segs {
		b.WriteString(p.segmentText(i, s))
	}
	return b.String()
}

// String is the pattern in its canonical form; ParsePattern reads it back.
func (p Pattern) String() string { return p.path.String() }

// UpTo is the path's first n segments, for messages.
func (p Path) UpTo(n int) string {
	if n == 0 {
		return "the document"
	}
	return Path{segs: p.segs[:n], pointer: p.pointer}.String()
}

func (p Path) segmentText(i int, s Segment) string {
	switch s.Kind {
	case Token:
		return "/" + strings.ReplaceAll(strings.ReplaceAll(s.Key, "~", "~0"), "/", "~1")
	case Index:
		return fmt.Sprintf("[%d]", s.Index)
	case Match:
		return "[" + keysText(s.KeyPath) + "=" + valueText(s.Value) + andText(s.And) + "]"
	case Any:
		return "[*]"
	case Each:
		return "[" + keysText(s.KeyPath) + "=*" + andText(s.And) + "]"
	}
	readsAsRoot := i == 0 && (strings.HasPrefix(s.Key, "/") || s.Key == "$")
	if s.Key == "" || readsAsRoot || strings.ContainsAny(s.Key, `.[]*\'"=`) {
		return "[" + quoteText(s.Key) + "]"
	}
	if i == 0 {
		return s.Key
	}
	return "." + s.Key
}

// keysText is what stands before the equals sign of a bracket.
func keysText(keys []string) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k
		if k == "" || strings.ContainsFunc(k, isSpecialRune) {
			texts[i] = quoteText(k)
		}
	}
	return strings.Join(texts, ".")
}

// andText is a selection's further conditions.
func andText(and []Condition) string {
	var b strings.Builder
	for _, c := range and {
		b.WriteString("," + keysText(c.KeyPath) + "=" + valueText(c.Value))
	}
	return b.String()
}

// isSpecialRune says that a rune in a bracket's key may mean something there.
func isSpecialRune(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-/:", r)
}

// valueText is what stands behind the equals sign of a bracket.
func valueText(v string) string {
	readsAsSign := v == "*" || strings.HasPrefix(v, "=")
	if v == "" || readsAsSign || strings.TrimSpace(v) != v || strings.ContainsAny(v, `'"],\`) {
		return quoteText(v)
	}
	return v
}

func quoteText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
