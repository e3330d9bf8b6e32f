package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// whyValuesMissing looks for a release's values in hydrated manifests, whose source can't be
// rendered here; empty when all are there.
func whyValuesMissing(written *render.Manifests, release fieldedit.Release, cannot string) string {
	var objects []any
	for i := range written.Objects {
		var object any
		d := json.NewDecoder(bytes.NewReader(written.Objects[i].JSON))
		d.UseNumber()
		if d.Decode(&object) == nil {
			objects = append(objects, object)
		}
	}
	found := 0
	for _, f := range release.Fields {
		if f.Kind == fieldedit.KindFile || f.Value == "" {
			continue
		}
		if !hasValue(objects, f.Value) {
			return fmt.Sprintf("its source can't be rendered here (%s), and the hydrated manifests don't have %s of %s", cannot,
				f.Value, f.Path)
		}
		found++
	}
	if found == 0 {
		return fmt.Sprintf("its source can't be rendered here (%s), so it can't be told whether the hydrated manifests have the release",
			cannot)
	}
	return ""
}

// hasValue says whether a value is anywhere in what was decoded from JSON, as a whole or as
// a word of a text, as a tag is of an image.
func hasValue(in any, value string) bool {
	switch v := in.(type) {
	case map[string]any:
		for _, child := range v {
			if hasValue(child, value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(child any) bool { return hasValue(child, value) })
	case string:
		return hasWord(v, value)
	case json.Number:
		return v.String() == value
	case bool:
		return fmt.Sprint(v) == value
	}
	return false
}

// hasWord says whether a text has a value that is no part of a longer one: 1.4.1 is in web:1.4.1,
// web-1.4.1 and v1.4.1, and not in 1.4.10, 1.4.1-rc.2 or 21.4.1. A text that can't tell counts as
// another one.
func hasWord(text, value string) bool {
	for rest := 0; ; {
		at := strings.Index(text[rest:], value)
		if at < 0 {
			return false
		}
		at += rest
		if startsWord(text[:at]) && endsWord(text[at+len(value):]) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		rest = at + max(size, 1)
	}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// startsWord says whether a value may begin after a text.
func startsWord(before string) bool {
	r, size := utf8.DecodeLastRuneInString(before)
	if r == 'v' { // v1.4.1
		r, _ = utf8.DecodeLastRuneInString(before[:len(before)-size])
	}
	return !isWordRune(r) && r != '.'
}

// endsWord says whether a value may end before a text.
func endsWord(after string) bool {
	r, size := utf8.DecodeRuneInString(after)
	if strings.ContainsRune("._-+~", r) {
		r, _ = utf8.DecodeRuneInString(after[size:])
	}
	return !isWordRune(r)
}
