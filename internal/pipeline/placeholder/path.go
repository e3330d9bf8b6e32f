package placeholder

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// ParsePattern reads the path of a carried field, which may have placeholders as a
// key, within a key, and in the value of a condition; they are in canonical
// form then. The error is that of the path, or says what between double braces
// is no placeholder.
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
				return fieldpath.Pattern{}, fmt.Errorf("path %q: a placeholder stands for a key or a value, not for the key of a condition", text)
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
