package placeholder

import (
	"fmt"
	"strings"
)

// The known names.
const (
	Environment = "environment"
	Component   = "component"
)

const begin, end = "{{", "}}"

// Values are what placeholders stand for in one environment of one component.
type Values struct{ Environment, Component string }

func (v Values) valueOf(name string) (string, bool) {
	switch name {
	case Environment:
		return v.Environment, true
	case Component:
		return v.Component, true
	}
	return "", false
}

// IsIn says that a text has a placeholder, or something that looks like one.
func IsIn(text string) bool { return strings.Contains(text, begin) }

// Canonical is a text with the blanks in its placeholders removed. The error
// says what in it is between double braces and is none.
func Canonical(text string) (string, error) {
	return replacePlaceholders(text, func(name string) string { return begin + name + end })
}

// Fill puts the values into a text that Canonical takes, as they are.
func (v Values) Fill(text string) string {
	out, err := replacePlaceholders(text, func(name string) string {
		value, _ := v.valueOf(name)
		return value
	})
	if err != nil {
		return text
	}
	return out
}

func replacePlaceholders(text string, with func(name string) string) (string, error) {
	var b strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, begin)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inner, behind, closed := strings.Cut(after, end)
		if !closed {
			return "", fmt.Errorf("%q has {{ without }}: only {{environment}} and {{component}} are known", text)
		}
		name := strings.TrimSpace(inner)
		if _, known := (Values{}).valueOf(name); !known {
			return "", fmt.Errorf("%q has {{%s}}: only {{environment}} and {{component}} are known", text, inner)
		}
		b.WriteString(with(name))
		rest = behind
	}
}

// globMeta are the characters that mean something in a glob.
const globMeta = `*?[]{}\`

// CheckGlob says why placeholders can't stand in a glob as they do. A part (between slashes) with
// one has no wildcards, and before it each wildcard stays within a part. So it is certain which
// part of a file's name it is.
func CheckGlob(glob string) error {
	if !IsIn(glob) {
		return nil
	}
	if _, err := Canonical(glob); err != nil {
		return err
	}
	last := strings.LastIndex(glob, begin)
	for part := range strings.SplitSeq(glob, "/") {
		bare, _ := replacePlaceholders(part, func(string) string { return "" })
		switch {
		case IsIn(part) && strings.ContainsAny(bare, globMeta):
			return fmt.Errorf("%q: the part %q has a placeholder and a wildcard: keep wildcards to parts of their own", glob, part)
		case !IsIn(part) && last > 0 && (part == "**" || strings.ContainsAny(part, `[]{}\`)):
			return fmt.Errorf("%q: only * and ? may stand before a placeholder, not %q", glob, part)
		}
		last -= len(part) + 1
	}
	return nil
}

// FillGlob is a glob that CheckGlob takes, with the values in it, matching just
// themselves. The error is that of a value which can't be in a file's name.
func (v Values) FillGlob(glob string) (string, error) {
	if err := v.checkFileNames(glob); err != nil {
		return "", err
	}
	escape := func(value string) string {
		var b strings.Builder
		for _, r := range value {
			if strings.ContainsRune(globMeta, r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		return b.String()
	}
	return Values{escape(v.Environment), escape(v.Component)}.Fill(glob), nil
}

// FillName is a name that Name gave, with the values in it.
func (v Values) FillName(name string) (string, error) {
	if err := v.checkFileNames(name); err != nil {
		return "", err
	}
	return v.Fill(name), nil
}

// checkFileNames holds that the values fill each part of a path with one part.
func (v Values) checkFileNames(text string) error {
	for part := range strings.SplitSeq(text, "/") {
		if !IsIn(part) {
			continue
		}
		var wrong error
		filled, err := replacePlaceholders(part, func(name string) string {
			value, _ := v.valueOf(name)
			if value == "" || strings.ContainsAny(value, "/\x00") {
				wrong = fmt.Errorf("the %s %q can't be a part of a file's name, as %q asks", name, value, text)
			}
			return value
		})
		switch {
		case err != nil:
			return err
		case wrong != nil:
			return wrong
		case filled == "." || filled == "..":
			return fmt.Errorf("%q can't be a part of a file's name, as %q asks", filled, text)
		}
	}
	return nil
}

// NameWithPlaceholders is a file's name with the placeholders of the glob that picked it in
// their parts again: the same for every environment and component.
func NameWithPlaceholders(glob, name string) string {
	if !IsIn(glob) {
		return name
	}
	parts := strings.Split(name, "/")
	for i, part := range strings.Split(glob, "/") {
		if IsIn(part) && i < len(parts) {
			parts[i], _ = Canonical(part)
		}
	}
	return strings.Join(parts, "/")
}
