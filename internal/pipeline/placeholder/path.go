package placeholder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// ParsePattern reads the path of a carried field, which may have placeholders as a key, within a
// key, and in the value of a condition. They are in canonical form then. The error is that of the
// path, or names the text between double braces that is no placeholder.
func ParsePattern(text string) (fieldpath.Pattern, error) {
	p, err := fieldpath.ParsePattern(text)
	if err != nil || !IsIn(text) {
		return p, err
	}
	if _, err := Canonical(text); err != nil {
		return fieldpath.Pattern{}, fmt.Errorf("path %w", err)
	}
	for _, s := range p.Segments() {
		for _, c := range append(s.Conditions(), fieldpath.Condition{KeyPath: s.KeyPath}) {
			if strings.Contains(strings.Join(c.KeyPath, "."), begin) {
				return fieldpath.Pattern{}, fmt.Errorf("path %q: a placeholder stands for a key or a value, not for the key of a condition",
					text)
			}
		}
	}
	return p.Fill(func(s string) string {
		c, err := Canonical(s)
		if err != nil {
			return s // not reached: the whole text is well
		}
		return c
	}), nil
}

// EndsIn says that the last key of a carried field's path is one of some, as far as the path tells.
// A path that can't be read, or that ends in a wildcard or a placeholder, may end in one.
func EndsIn(path string, keys []string) bool {
	pattern, err := ParsePattern(path)
	if err != nil || len(pattern.Segments()) == 0 {
		return true
	}
	all := pattern.Segments()
	last := all[len(all)-1]
	if last.Kind != fieldpath.Key && last.Kind != fieldpath.Token {
		return true
	}
	return IsIn(last.Key) || slices.Contains(keys, last.Key)
}
