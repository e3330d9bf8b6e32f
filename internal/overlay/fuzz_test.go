package overlay

import (
	"bytes"
	"errors"
	"testing"

	"github.com/liftlock/liftlock/internal/fieldpath"
)

func FuzzSetYAML(f *testing.F) {
	for _, doc := range []string{
		"image:\n  tag: v1 # c\n", "image: {tag: 'v1', x: [1, 2]}\n", "\ufeffimage:\r\n    tag: \"v1\"\r\n", "image:\n  tag:\n---\nb: 1\n",
		"image: &a\n  tag: *a\n", "image:\n  - tag: |\n     x\n", "image: {tag, b}\n", "image:\n  tag: a\n   b\n", "image:\n  x: >+\n    a\n\n\n", "? image\n: tag: x\n",
		"image: !!map {tag: !!str x}\n", "image:\n  <<: {tag: x}\n", "- image\n", "{{ x }}\n", "image:\n\ttag: x\n", "image: {x: 1,\n  # c\n y: 2 # }\n}",
	} {
		for _, value := range []string{"v2", "1.20", "on", "a: b", "é\u2028", ""} {
			f.Add([]byte(doc), "image.tag", value)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path, value string) {
		fuzzSet(t, data, path, value, SetYAML, GetYAML)
	})
}

func FuzzSetJSON(f *testing.F) {
	for _, doc := range []string{
		`{"image": {"tag": "v1"}}`, "{\r\n\t\"image\": {\"tag\": 1}}\n", `{"image":{}}`, `{"image":{"tag":null,"x":[{}]}}`, "\ufeff{}", `{"image":{"tag":"\ud800\u0000"}}`, `[[`, `{"a":1}{"b":2}`,
	} {
		for _, value := range []string{"v2", "1.20", "true", "é\u2028\x00", ""} {
			f.Add([]byte(doc), "image.tag", value)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path, value string) {
		fuzzSet(t, data, path, value, SetJSON, GetJSON)
	})
}

// fuzzSet holds what is so for any bytes: an edit is refused by a
// *RefusedError, or reads back, changes one place, and is its own repetition.
func fuzzSet(t *testing.T, data []byte, path, value string,
	set func([]byte, fieldpath.Path, string) ([]byte, Change, error), get func([]byte, fieldpath.Path) (string, bool, error)) {
	p, err := fieldpath.Parse(path)
	if err != nil {
		return
	}
	after, c, err := set(data, p, value)
	if err != nil {
		var r *RefusedError
		if !errors.As(err, &r) {
			t.Fatalf("refused without being a refusal: %v", err)
		}
		return
	}
	if got, ok, err := get(after, p); err != nil || !ok || got != value {
		t.Fatalf("reads back as %q, %v, %v", got, ok, err)
	}
	again, _, err := set(after, p, value)
	if err != nil || !bytes.Equal(after, again) {
		t.Fatalf("again: %q, %v", again, err)
	}
	if c.Added {
		// Only bytes were added, in one place.
		n := len(after) - len(data)
		i := 0
		for i < len(data) && data[i] == after[i] {
			i++
		}
		if n <= 0 || !bytes.Equal(after[i+n:], data[i:]) {
			t.Fatalf("%q became %q", data, after)
		}
		return
	}
	if bytes.Count(data, []byte("\n")) != bytes.Count(after, []byte("\n")) {
		t.Fatalf("%q became %q", data, after)
	}
}
