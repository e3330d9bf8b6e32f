package fieldedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
	yaml11 "sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

var long = flag.Bool("long", false, "run the property tests with 20,000 cases")

func TestMain(m *testing.M) {
	flag.Parse()
	if *long {
		if err := flag.Set("rapid.checks", "20000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// limitCases sets the number of cases for one test.
func limitCases(t *testing.T, cases int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value.String()
	t.Cleanup(func() {
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Error(err)
		}
	})
	if err := flag.Set("rapid.checks", strconv.Itoa(cases)); err != nil {
		t.Fatal(err)
	}
}

// leafReader decodes a document as one of the readers of the real world does.
type leafReader func(data []byte) ([]any, error)

// readYAML12 is go-yaml 3, every document.
func readYAML12(data []byte) ([]any, error) {
	var out []any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var v any
		if err := dec.Decode(&v); err != nil {
			if len(out) > 0 {
				return out, nil
			}
			return nil, err
		}
		out = append(out, v)
	}
}

// readYAML11 is the reader of Kubernetes and Argo CD, the first document.
func readYAML11(data []byte) ([]any, error) {
	if i := bytes.Index(data, []byte("---\nzweites")); i > 0 {
		data = data[:i]
	} else if i := bytes.Index(data, []byte("---\r\nzweites")); i > 0 {
		data = data[:i]
	}
	j, err := yaml11.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	return []any{v}, errors.Join(dec.Decode(&v), nil)
}

func readJSON(data []byte) ([]any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, bom)))
	dec.UseNumber()
	err := dec.Decode(&v)
	return []any{v}, err
}

// nodeAt follows segs; the setter replaces what is there.
func nodeAt(root any, segs []any) (any, func(any)) {
	var set func(any)
	for _, s := range segs {
		switch s := s.(type) {
		case int:
			l, ok := root.([]any)
			if !ok {
				return nil, nil
			}
			root, set = l[s], func(v any) { l[s] = v }
		case string:
			m, ok := root.(map[string]any)
			if !ok {
				return nil, nil
			}
			root, set = m[s], func(v any) { m[s] = v }
		}
	}
	return root, set
}

// checkEdit holds that parse(edit(doc)) equals set(parse(doc)) for a reader, where value is set. It
// is the same text, or, where no string was, the same type with that text.
func checkEdit(t *rapid.T, read leafReader, before, after []byte, segs []any, value string) {
	old, err := read(before)
	if err != nil {
		t.Fatalf("the document can't be read: %v", err)
	}
	now, err := read(after)
	if err != nil {
		t.Fatalf("the edited document can't be read: %v\n%s", err, after)
	}
	was, set := nodeAt(old[0], segs)
	is, _ := nodeAt(now[0], segs)
	if is != any(value) {
		if _, wasString := was.(string); wasString {
			t.Fatalf("%q was a string and reads as %v (%T), not %q", was, is, is, value)
		}
		plain, err := read([]byte(value))
		if err != nil || !reflect.DeepEqual(is, plain[0]) || reflect.TypeOf(is) == nil {
			t.Fatalf("reads as %v (%T), not %q (%v)", is, is, value, err)
		}
	}
	set(is)
	if !reflect.DeepEqual(old, now) {
		t.Fatalf("more changed than one value:\n%v\n%v", old, now)
	}
}

// checkBytes holds that one place on one line changed.
func checkBytes(t *rapid.T, before, after []byte, eol string) {
	a, b := strings.Split(string(before), eol), strings.Split(string(after), eol)
	if len(a) != len(b) {
		t.Fatalf("%d lines became %d", len(a), len(b))
	}
	differ := 0
	for i := range a {
		if a[i] != b[i] {
			differ++
		}
	}
	if differ > 1 {
		t.Fatalf("%d lines changed", differ)
	}
}

func TestPropertySetYAML(t *testing.T) {
	cases, refused, ordinary := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := generate(t, false)
		i := rapid.IntRange(0, len(g.paths)-1).Draw(t, "target")
		value := genValue(t)
		before := []byte(g.text)
		p, err := fieldpath.Parse(g.paths[i])
		if err != nil {
			t.Fatal(err)
		}
		cases++
		after, c, err := SetYAML(before, p, value)
		if err != nil {
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("refused without being a refusal: %v", err)
			}
			if refused++; !g.hard[g.paths[i]] {
				t.Logf("refused: %v in\n%s", err, g.text)
				ordinary++
			}
			return
		}
		if got, ok, err := GetYAML(after, p); err != nil || !ok || got != value {
			t.Fatalf("reads back as %q, %v, %v", got, ok, err)
		}
		if c.New != value {
			t.Fatalf("change %+v", c)
		}
		checkBytes(t, before, after, g.eol)
		if c.Old == c.New {
			if !bytes.Equal(before, after) {
				t.Fatal("no change changed bytes")
			}
			return
		}
		checkEdit(t, readYAML12, before, after, g.segs[i], value)
		if _, err := readYAML11(before); err == nil { // it doesn't know tabs in some places
			checkEdit(t, readYAML11, before, after, g.segs[i], value)
		}
	})
	if refused*10 > cases || ordinary*50 > cases {
		t.Errorf("of %d edits %d were refused, of which %d could be made", cases, refused, ordinary)
	}
	t.Logf("of %d edits %d were refused, of which %d could be made", cases, refused, ordinary)
}

func TestPropertySetJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generate(t, true)
		i := rapid.IntRange(0, len(g.paths)-1).Draw(t, "target")
		value := genValue(t)
		before := []byte(g.text)
		p, err := fieldpath.Parse(g.paths[i])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := readJSON(before)
		if err != nil {
			t.Fatalf("the generator made %q: %v", before, err)
		}
		old, _ := nodeAt(doc[0], g.segs[i])
		after, c, err := SetJSON(before, p, value)
		if err != nil {
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("refused without being a refusal: %v", err)
			}
			if _, isString := old.(string); isString || old == nil {
				t.Fatalf("a string was refused: %v", err)
			}
			return
		}
		checkBytes(t, before, after, g.eol)
		if c.Old == c.New {
			return
		}
		checkEdit(t, readJSON, before, after, g.segs[i], value)
		doc, _ = readJSON(after)
		if now, _ := nodeAt(doc[0], g.segs[i]); old != nil && reflect.TypeOf(now) != reflect.TypeOf(old) {
			t.Fatalf("%T became %T", old, now)
		}
	})
}

// TestPropertyAddKey adds keys to random mappings: nothing else changes.
func TestPropertyAddKey(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			g := generate(t, asJSON)
			i := rapid.IntRange(0, len(g.paths)-1).Draw(t, "beside")
			segs := g.segs[i]
			if _, ok := segs[len(segs)-1].(string); !ok {
				return
			}
			value := genValue(t)
			p, err := fieldpath.Parse(g.paths[i])
			if err != nil {
				t.Fatal(err)
			}
			p.Segments()[len(p.Segments())-1].Key = "neu"
			set, read := SetYAML, readYAML12
			if asJSON {
				set, read = SetJSON, readJSON
			}
			after, c, err := set([]byte(g.text), p, value)
			if err != nil {
				var r *RefusedError
				if !errors.As(err, &r) {
					t.Fatalf("refused without being a refusal: %v", err)
				}
				if asJSON {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if !c.Added {
				t.Fatalf("change %+v", c)
			}
			old, err := read([]byte(g.text))
			if err != nil {
				t.Fatal(err)
			}
			now, err := read(after)
			if err != nil {
				t.Fatal(err)
			}
			parent, _ := nodeAt(now[0], segs[:len(segs)-1])
			m := parent.(map[string]any)
			if m["neu"] != value {
				t.Fatalf("added as %v (%T)", m["neu"], m["neu"])
			}
			delete(m, "neu")
			if !reflect.DeepEqual(old, now) {
				t.Fatalf("more changed than one key:\n%s\n%s", g.text, after)
			}
		})
	}
}
