package fieldedit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
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
		fuzzSet(t, data, path, value, SetYAML, GetYAML, leavesYAML11, leavesYAML12)
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
		fuzzSet(t, data, path, value, SetJSON, GetJSON, leavesJSON)
	})
}

// FuzzSetRef holds of any kustomization that the ref of a remote base is refused, or that its bytes alone change.
func FuzzSetRef(f *testing.F) {
	for _, doc := range []string{
		"resources:\n- https://git.example/x?ref=v1\n", "bases: ['https://git.example/x?timeout=9&version=v1#y']\r\n", "components:\n  - \"https://git.example/x?ref=v1\" # c\n",
		"resources: [a, \"https://git.example/x?re\\x66=v1\"]\n", "resources: &r\n- *r\n", "resources:\n- >\n  https://git.example/x?ref=v1\n", "resources:\n- https://git.example/x?ref=v1\n  more\n", "resources: {}\n---\nbases: [x]\n",
	} {
		for _, value := range []string{"v2", "", "a b", "é", "x: y", "&ref=z", "release%2F1"} {
			f.Add([]byte(doc), value)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, value string) {
		const longest = 4 << 10 // every place is tried
		d, err := parseDocument(data, formatYAML)
		if err != nil || len(data) > longest {
			return
		}
		all, err := d.remoteAddresses([]string{"**"})
		if err != nil {
			return
		}
		for _, a := range all {
			next, c, err := d.setField(a, value, TypeString)
			if err != nil {
				var r *RefusedError
				if !errors.As(err, &r) {
					t.Fatalf("refused without being a refusal: %v", err)
				}
				continue
			}
			at := bytes.Index(data, []byte(c.Old))
			for at >= 0 && !bytes.Equal(next.data, spliceBytes(data, at, at+len(c.Old), value)) {
				if at == len(data) {
					at = -1
				} else if i := bytes.Index(data[at+1:], []byte(c.Old)); i < 0 {
					at = -1
				} else {
					at += 1 + i
				}
			}
			if at < 0 {
				t.Fatalf("%q in place of %q makes %q of %q", value, c.Old, next.data, data)
			}
			if found, err := next.readField(a); err != nil || !found.ok || found.value != value {
				t.Fatalf("it reads back as %+v, %v", found, err)
			}
		}
	})
}

// fuzzSet holds what is true for any bytes. An edit is refused by a *RefusedError, or it reads
// back, changes one place and is its own repetition. Then parse(edit(doc)) is set(parse(doc)) to
// every reader that can read doc.
func fuzzSet(t *testing.T, data []byte, path, value string,
	set func([]byte, fieldpath.Path, string) ([]byte, Change, error), get func([]byte, fieldpath.Path) (string, bool, error), readers ...func([]byte) ([]any, error)) {
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
	for _, read := range readers {
		if _, err := read(data); err != nil || c.Old == c.New && !c.Added {
			continue
		}
		if c.Added {
			err = addedLeaves(read, data, after, value)
		} else {
			err = oneLeaf(read, data, after, value)
		}
		if err != nil {
			t.Fatalf("%q became %q: %v", data, after, err)
		}
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

// addedLeaves holds that a reader sees scalars come in one place, value the
// last of them, and no other change.
func addedLeaves(read func([]byte) ([]any, error), before, after []byte, value string) error {
	old, err := read(before)
	if err != nil {
		return err
	}
	now, err := read(after)
	if err != nil {
		return fmt.Errorf("the edited file can't be read: %w", err)
	}
	n := len(now) - len(old)
	for i := 0; i <= len(old) && n > 0; i++ {
		if slices.EqualFunc(old[i:], now[i+n:], equalScalars) && now[i+n-1] == any(value) {
			return nil
		}
		if i < len(old) && !equalScalars(old[i], now[i]) {
			break
		}
	}
	return fmt.Errorf("%d scalars became %d, not by adding %q alone", len(old), len(now), value)
}
