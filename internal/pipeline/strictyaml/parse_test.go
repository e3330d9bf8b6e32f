package strictyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// bomb is the billion laughs: ten levels that each hold the one before nine times.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return b.String()
}

func TestParseRefuses(t *testing.T) {
	// Thirty levels by nesting, and then twice more by aliases.
	deepByAlias := "a: &a " + strings.Repeat("[", 30) + strings.Repeat("]", 30) + "\n" +
		"b: &b " + strings.Repeat("[", 30) + "*a" + strings.Repeat("]", 30) + "\n" +
		"c: " + strings.Repeat("[", 30) + "*b" + strings.Repeat("]", 30) + "\n"
	tests := map[string]struct{ yaml, want string }{
		"too many bytes":           {strings.Repeat("#", MaxBytes+1), "x: 1048577 bytes are too many; at most 1048576 are read"},
		"invalid UTF-8":            {"a: 1\nb: \xff\n", "x:2: not UTF-8 (byte 8); save the file as UTF-8"},
		"UTF-16":                   {"\xff\xfea\x00", "x:1: not UTF-8 (byte 0); save the file as UTF-8"},
		"a syntax error":           {"a: 1\nb: [\n", "x:2: not valid YAML: did not find expected node content"},
		"a tab":                    {"a:\n\tb: 1\n", "x:2: not valid YAML: the line begins with a tab; YAML is indented with spaces"},
		"an unknown alias":         {"a: 1\ntoken: *private\n", "x:1: not valid YAML: an alias (*name) of an anchor that isn't there; put text that begins with * in quotes"},
		"too deep":                 {strings.Repeat("[", 70) + strings.Repeat("]", 70), "x:1: nested more than 64 levels deep"},
		"too deep for the scanner": {strings.Repeat("[", 20000), "x:1: not valid YAML: exceeded max depth of 10000"},
		"too deep by aliases":      {deepByAlias, "x:3: nested more than 64 levels deep by aliases"},
		"an alias bomb":            {bomb(), "x:6: more than 100000 values once aliases are expanded"},
		"an alias of itself":       {"a: &a [1, *a]\n", "x:1: the alias *a contains itself"},
		"a merge of itself":        {"a: &a\n  <<: *a\n", "x:2: the alias *a contains itself"},
		"too many documents":       {strings.Repeat("---\na: 1\n", MaxDocuments+1), "x:202: more than 100 documents in one file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x", []byte(test.yaml))
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("the error is %v", err)
			}
			if err.Error() != test.want {
				t.Errorf("the error is\n%s, want\n%s", err, test.want)
			}
		})
	}
}

func TestParseDocuments(t *testing.T) {
	docs, err := Parse("x", []byte("# head\n---\na: 1\n---\n# void\n---\nb: 2\n...\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 2 || docs[0].Line() != 3 || docs[1].Line() != 7 || docs[0].File() != "x" {
		t.Fatalf("%d documents", len(docs))
	}
	if !docs[0].Has("a") || docs[0].Has("b") || !docs[1].Has("b") {
		t.Error("a document holds another's keys")
	}
}

func TestPositions(t *testing.T) {
	docs, err := Parse("x", []byte("spec:\n  list:\n    - name: a\n    - &b {name: b, deep: {er: 1}}\n    - *b\n    - <<: *b\n      name: c\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := docs[0]
	for path, want := range map[string]struct {
		has  bool
		text string
	}{
		"":                      {true, "x:1: no"},
		"spec":                  {true, "x:1: spec: no"},
		"spec.list[0].name":     {true, "x:3: spec.list[0].name: no"},
		"spec.list[0].nothing":  {false, "x:3: spec.list[0].nothing: no"},
		"spec.list[1].deep.er":  {true, "x:4: spec.list[1].deep.er: no"},
		"spec.list[2].deep.er":  {true, "x:4: spec.list[2].deep.er: no"},
		"spec.list[2].deep.no":  {false, "x:4: spec.list[2].deep.no: no"},
		"spec.list[3].name":     {true, "x:7: spec.list[3].name: no"},
		"spec.list[3].deep":     {true, "x:4: spec.list[3].deep: no"},
		"spec.list[9].name":     {false, "x:2: spec.list[9].name: no"},
		"spec.list[x]":          {false, "x:2: spec.list[x]: no"},
		"spec.list.name":        {false, "x:2: spec.list.name: no"},
		"spec[0]":               {false, "x:1: spec[0]: no"},
		"spec.list[0].name.too": {false, "x:3: spec.list[0].name.too: no"},
	} {
		if d.Has(path) != want.has {
			t.Errorf("Has(%q) is %t", path, d.Has(path))
		}
		if got := d.Errorf(path, "%s", "no").Error(); got != want.text {
			t.Errorf("the error at %q is %q, want %q", path, got, want.text)
		}
	}
}

func TestErrorsErr(t *testing.T) {
	if err := (Errors{}).Err(); err != nil {
		t.Errorf("no errors are the error %v", err)
	}
	var many Errors
	for i := range 150 {
		many = append(many, Error{File: "x", Line: 150 - i, Message: "no"})
	}
	err := many.Err()
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 101 || lines[0] != "x:1: no" || lines[100] != "x: and 50 more errors" {
		t.Errorf("%d lines, from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	twice := Errors{{File: "x", Line: 1, Message: "no"}, {File: "x", Line: 1, Message: "no"}}
	if got := twice.Err().Error(); got != "x:1: no" {
		t.Errorf("the same error twice is %q", got)
	}
	left := DropSameLineErrors(Errors{{File: "x", Line: 1}, {File: "x", Line: 2}, {File: "y", Line: 1}}, Errors{{File: "x", Line: 1}})
	if len(left) != 2 || left[0].Line != 2 || left[1].File != "y" {
		t.Errorf("elsewhere are %v", left)
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"approvals", "environments", "name", "mergesPerHour", "open", "qa", "dev"}
	for word, want := range map[string]string{
		"aproval": "approvals", "approval": "approvals", "env": "environments", "enviroments": "environments",
		"Name": "name", "nam": "name", "mergeperhour": "mergesPerHour", "opne": "open", "q": "qa", "qa2": "qa",
		"xylophone": "", "zz": "", "": "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("the nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		const limit = 20
		ab, ba := editDistance(a, b, limit), editDistance(b, a, limit)
		if ab != ba || (ab == 0) != (a == b) {
			t.Fatalf("distance %q %q is %d and %d", a, b, ab, ba)
		}
		if ac, cb := editDistance(a, c, limit), editDistance(c, b, limit); ab > ac+cb {
			t.Fatalf("from %q to %q is %d, but by %q %d", a, b, ab, c, ac+cb)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"name: Rosa\nlength: 1\ncrew: [{name: ada}]\n", "owner: &a {name: x}\ncrew: [*a, {<<: *a}]\n", bomb(),
		"a: &a [*a]\n", "? [a]\n: b\n", "<<: 1\n", "<<: [{a: b}]\n", "name: ${X} $${Y} ${\n", "\ufeffname: |+\r\n  x\r\n",
		"--- !!map\n{}\n---\n[]\n", "cargo: {1: 2, ~: 3, [a]: 4}\n", "trip: 1h\nshape: []\ncolour: red\n", "#\n- - {\n", "%YAML 1.1\n---\na: !!binary x\n",
	} {
		f.Add([]byte(seed))
	}
	lookup := func(name string) (string, bool) { return "1", name == "X" }
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := Parse("f", data)
		var errs Errors
		if err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Fatalf("the error is %#v", err)
		}
		for _, d := range docs {
			var into boat
			err := d.Decode(&into, Expand(lookup), UnsupportedKeys(map[string]string{"sails": "row"}))
			if err != nil && !errors.As(err, &errs) {
				t.Fatalf("the error is %#v", err)
			}
			for _, e := range errs {
				if e.File != "f" || e.Message == "" {
					t.Fatalf("an error says nothing: %#v", e)
				}
			}
			d.Has("crew[0].name")
		}
	})
}
