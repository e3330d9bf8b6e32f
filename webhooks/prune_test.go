package webhooks

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPruneObject(t *testing.T) {
	keep := fieldsOf(reflect.TypeFor[struct {
		A string          `json:"a"`
		R json.RawMessage `json:"r"`
		P struct {
			N int `json:"n"`
		} `json:"p"`
		L []struct {
			Name string `json:"name"`
		} `json:"l"`
	}]())
	for _, c := range []struct{ name, in, want string }{
		{"nothing", ` { } `, `{}`},
		{"nothing that is read", `{"b":{"a":"x"},"A":1,"":[[],{}]}`, `{}`},
		{"some", `{"x":[1,{"a":2}],"a":"y","z":null}`, `{"a":"y"}`},
		{"white space", "{\n\t\"a\" : \"y\" ,\r\n \"p\" : { \"m\" : 1 , \"n\" : 2 } }", `{"a":"y","p":{"n":2}}`},
		{"a part", `{"p":{"m":{"n":7},"n":3,"o":[{"n":8}]},"r":{"any":[true,false]}}`, `{"p":{"n":3},"r":{"any":[true,false]}}`},
		{"an array's parts", `{"l":[{"name":"x","y":1},{},3,{"z":{"name":"n"},"name":"w"}]}`, `{"l":[{"name":"x"},{},3,{"name":"w"}]}`},
		{"an empty array", `{"l":[ ]}`, `{"l":[]}`},
		{"a part of another type", `{"p":"text","l":null}`, `{"p":"text","l":null}`},
		{"an escaped name", `{"\u0061":"y"}`, `{"\u0061":"y"}`},
		{"numbers", `{"x":[0,-0,1.5,-12e+3,1E-2,10]}`, `{}`},
		{"strings", `{"x":["\"\\\/\b\f\n\r\t\u00e9é"]}`, `{}`},
		{"what isn't read may be there twice", `{"x":1,"x":2}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := pruneObject([]byte(c.in), keep)
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// broken are documents that are no JSON, in parts that nobody reads.
var broken = []string{
	``, ` `, `{`, `}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a":1}}`, `{} {}`, `{"a":[1,]}`, `{"a":[}`, `{"a":[1 2]}`,
	`{"x":01}`, `{"x":1.}`, `{"x":.5}`, `{"x":1e}`, `{"x":+1}`, `{"x":-}`, `{"x":tru}`, `{"x":nulL}`, `{"x":"\x"}`, `{"x":"\u12g4"}`, `{"x":"\u12`, `{"x":"a`,
	"{\"x\":\"a\nb\"}", "{\"x\":\"\x00\"}", `{x:1}`, `{'x':1}`, `{"x":NaN}`, `{"x":1}` + "\x00",
}

func TestPruneRefusesInvalidJSON(t *testing.T) {
	for _, in := range broken {
		if got, err := pruneObject([]byte(in), githubFields); err == nil || json.Valid([]byte(in)) {
			t.Errorf("%q gives %s, %v", in, got, err)
		}
	}
}

// FuzzPrune holds that a document is taken exactly where encoding/json takes it (but for depth and
// fields that are there twice). The pruned document reads as the whole does.
func FuzzPrune(f *testing.F) {
	for _, in := range broken {
		f.Add([]byte(in))
	}
	for _, name := range []string{"pull_request.opened.json", "check_run.completed_two_pulls.json", "status.success.json"} {
		if files, err := filepath.Glob(filepath.Join(fixtures, GitHub, name)); err == nil && len(files) == 1 {
			f.Add(readFixture(f, files[0]))
		}
	}
	f.Add([]byte(`{"l":[{"name":"x","y":1},{},3,{"z":{"name":"n"},"name":"w"}],"\u0061":"\ud800"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := pruneObject(in, githubFields)
		if err != nil {
			reason := err.Error()
			if strings.Contains(reason, "twice") || strings.Contains(reason, "deep") || strings.Contains(reason, "not a JSON object") {
				return
			}
			if json.Valid(in) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !json.Valid(in) || !json.Valid(out) {
			t.Fatalf("taken although encoding/json doesn't, or %q isn't JSON", out)
		}
		var whole, kept githubPayload
		if json.Unmarshal(out, &kept) != nil {
			return
		}
		// encoding/json also takes names in another case, which no forge sends.
		if json.Unmarshal(lowered(t, in), &whole) == nil && !reflect.DeepEqual(whole.PullRequest, kept.PullRequest) {
			t.Fatalf("%+v of the whole, %+v of %s", whole.PullRequest, kept.PullRequest, out)
		}
	})
}

// lowered is a document without the names that differ from the ones that are read in case alone.
func lowered(t *testing.T, in []byte) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(in, &doc); err != nil {
		t.Fatal(err)
	}
	var drop func(v any)
	drop = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, m := range v {
				if _, exact := githubFieldNames()[k]; !exact {
					delete(v, k)
					continue
				}
				drop(m)
			}
		case []any:
			for _, m := range v {
				drop(m)
			}
		}
	}
	drop(doc)
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// githubFieldNames are the names of all fields that are read of GitHub's payloads.
func githubFieldNames() map[string]bool {
	names := map[string]bool{}
	var add func(s *fieldSet)
	add = func(s *fieldSet) {
		if s == nil {
			return
		}
		for name, f := range s.fields {
			names[name] = true
			add(f.part)
		}
	}
	add(githubFields)
	return names
}

// TestFieldsHaveNames holds what fieldsOf expects of a type.
func TestFieldsHaveNames(t *testing.T) {
	var check func(s *fieldSet)
	check = func(s *fieldSet) {
		if s == nil {
			return
		}
		if _, unnamed := s.fields[""]; unnamed || len(s.fields) > 64 {
			t.Errorf("%d fields, one without a name: %t", len(s.fields), unnamed)
		}
		for _, f := range s.fields {
			check(f.part)
		}
	}
	for _, s := range []*fieldSet{githubFields, giteaFields, envelopeFields} {
		check(s)
	}
}
