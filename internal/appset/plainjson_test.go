package appset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// libraryFileParams are the parameters that the library makes of one file.
func libraryFileParams(name string, data []byte, prefix string, goTemplate bool) ([]map[string]any, error) {
	set := &argov1alpha1.ApplicationSet{}
	set.Spec.GoTemplate, set.Spec.Template.Spec.Project = goTemplate, "{{ no project }}"
	spec := &argov1alpha1.GitGenerator{PathParamPrefix: prefix, Files: []argov1alpha1.GitFileGeneratorItem{{Path: name}}}
	return generators.NewGitGenerator(&singleFileRepos{name: name, data: data}, "argocd").GenerateParams(&argov1alpha1.ApplicationSetGenerator{Git: spec}, set, nil)
}

// TestPlainParams says which files are read as JSON, and that they give the same parameters as the
// library's parser.
func TestPlainParams(t *testing.T) {
	for text, isPlain := range map[string]bool{
		`{"app": "web", "n": 12, "ratio": 1.20, "on": true, "off": null, "release": {"tag": "v1", "hosts": ["a", {"b": []}]}}`: true,
		"\n [ {\"a\": \"x\"},\n{\"a\" : -7, \"\": {\"\": 1}, \"b\": {}} ]\n":                                                   true,
		`{"path": {"path": "mine"}, "prefix": "mine", "path.basename": "mine", "1": "one"}`:                                    true,
		`{}`: true, `[{}]`: true, `[null, {"a": "b"}]`: true, `{"a": "it's #1: - & * ! | > % @ ` + "`" + `"}`: true,
		`{"a": "\u0041"}`: false, `{"a": "é"}`: false, "{\"a\":\t1}": false, `{"a": 1e5}`: false, `{"a": -0}`: false, `{"a": 12345678901234567890}`: false,
		"{\"a\"\n: 1}": false, `{"` + strings.Repeat("k", 1100) + `": 1}`: false, `{"<<": {"a": 1}}`: false, "{\"a\": 1}\r\n": false,
		`[]`: false, ``: false, `"a"`: false, `[1]`: false, `{"a": 1,}`: false, "a: 1": false, "{a: 1}": false,
	} {
		for _, goTemplate := range []bool{false, true} {
			for _, prefix := range []string{"", "prefix"} {
				got := plainParams("apps/Web_App/config.json", []byte(text), prefix, goTemplate)
				if (got != nil) != isPlain {
					t.Errorf("%q: it is read as JSON: %t", text, got != nil)
					continue
				}
				want, err := libraryFileParams("apps/Web_App/config.json", []byte(text), prefix, goTemplate)
				if diff := cmp.Diff(want, got); isPlain && (err != nil || diff != "") {
					t.Errorf("%q, Go templates %t, prefix %q: %v (-library +liftlock)\n%s", text, goTemplate, prefix, err, diff)
				}
			}
		}
	}
}

// checkPlainParams holds what is read as JSON against the library. Where flattened keys differ only
// by the place of their dots, the last one wins, in random order.
func checkPlainParams(t interface{ Fatalf(string, ...any) }, name string, data []byte, prefix string, goTemplate bool) {
	got := plainParams(name, data, prefix, goTemplate)
	if got == nil {
		return
	}
	for range 20 {
		want, err := libraryFileParams(name, data, prefix, goTemplate)
		if err != nil {
			t.Fatalf("%s: %q is read as JSON, and an error of the library: %v", name, data, err)
		}
		if reflect.DeepEqual(got, want) {
			return
		}
		if got = plainParams(name, data, prefix, goTemplate); reflect.DeepEqual(got, want) {
			return
		}
	}
	want, _ := libraryFileParams(name, data, prefix, goTemplate)
	t.Fatalf("%s: %q, Go templates %t, prefix %q (-library +liftlock)\n%s", name, data, goTemplate, prefix, cmp.Diff(want, got))
}

// TestPlainParamsOfRandomFiles draws JSON as people write it.
func TestPlainParamsOfRandomFiles(t *testing.T) {
	name := rapid.StringMatching(`[ -~]{0,8}|[a-z.]{1,5}|0|<<|path(\.path)?`)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		scalars := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-100, 100_000).AsAny(), rapid.Int64().AsAny(),
			rapid.Float64().AsAny(), rapid.Float64Range(-10, 10).AsAny(), name.AsAny(), rapid.String().AsAny()}
		if depth > 0 {
			scalars = append(scalars, rapid.MapOfN(name, value(depth-1), 0, 4).AsAny(), rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(scalars...)
	}
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		document := any(rapid.MapOfN(name, value(3), 0, 5).Draw(t, "object"))
		if rapid.Bool().Draw(t, "list") {
			document = rapid.SliceOfN(rapid.MapOfN(name, value(2), 0, 4), 0, 3).Draw(t, "objects")
		}
		data, err := json.Marshal(document)
		if err == nil && rapid.Bool().Draw(t, "indented") {
			data, err = json.MarshalIndent(document, "", " ")
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		if isPlainJSON(data) {
			plain++
		}
		checkPlainParams(t, "apps/"+rapid.StringMatching(`[a-zA-Z_.-]{0,5}`).Draw(t, "folder")+"/config.json", data, rapid.SampledFrom([]string{"", "git"}).Draw(t, "prefix"), rapid.Bool().Draw(t, "goTemplate"))
	})
	if plain == 0 {
		t.Error("nothing was read as JSON")
	}
}

func FuzzPlainParams(f *testing.F) {
	f.Add("apps/web/config.json", []byte(`{"app": "web", "n": [1, -2.5, null, {"a b": {}}]}`), "", true)
	f.Add("config.json", []byte("[{\"a\":\n\"x\"}, null]"), "git", false)
	f.Fuzz(func(t *testing.T, name string, data []byte, prefix string, goTemplate bool) {
		if name != "" {
			checkPlainParams(t, name, data, prefix, goTemplate)
		}
	})
}

// checkListElements holds the list generator against the library's.
func checkListElements(t interface{ Fatalf(string, ...any) }, elements [][]byte, goTemplate bool) {
	set := &argov1alpha1.ApplicationSet{}
	set.Spec.GoTemplate = goTemplate
	spec := &argov1alpha1.ApplicationSetGenerator{List: &argov1alpha1.ListGenerator{}}
	for _, raw := range elements {
		spec.List.Elements = append(spec.List.Elements, apiextensionsv1.JSON{Raw: raw})
	}
	library := generators.NewListGenerator()
	want, wrong := library.GenerateParams(spec, set, nil)
	got, err := (&listGenerator{library}).GenerateParams(spec, set, nil)
	if (err != nil) != (wrong != nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q, Go templates %t: the library says %v, and we %v (-library +liftlock)\n%s", elements, goTemplate, wrong, err, cmp.Diff(want, got))
	}
}

func TestListElements(t *testing.T) {
	for name, texts := range map[string][]string{
		"strings":      {`{"app": "web", "env": "dev"}`, `{"app":"web","app":"api"}`},
		"escapes":      {`{"app": "w\u00e9b"}`, `{"app": "é"}`, "{\"app\":\t\"web\"}"},
		"other values": {`{"n": 1, "ratio": -1.50, "on": [true, null, {"a": {}}], "big": 12345678901234567890, "e": 1e3}`},
		"values":       {`{"app": "web", "values": {"a": "b"}}`}, "values of others": {`{"values": {"a": 1}}`}, "values as text": {`{"values": "x"}`},
		"empty": {`{"a": "b"}`, `{}`}, "null": {`null`}, "no object": {`[{"a": "b"}]`}, "two": {`{"a": "b"} {"c": "d"}`},
		"a text": {`"a"`}, "no JSON": {`{"a": "b",}`}, "nothing": {``}, "leading zero": {`{"a": 01}`}, "a dot": {`{"a": 1.}`}, "a word": {`{"a": nul}`},
		"spaces": {" {\"a\" :\n\"b\" }\n"}, "deep": {`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			raw := make([][]byte, len(texts))
			for i, text := range texts {
				raw[i] = []byte(text)
			}
			checkListElements(t, raw, true)
			checkListElements(t, raw, false)
		})
	}
}

func FuzzListElements(f *testing.F) {
	f.Add([]byte(`{"app": "web"}`), []byte(`{"n": [1, -2.5, null, {"a b": {}}]}`), true)
	f.Add([]byte("{\"a\":\n\"x\"}"), []byte(`{"values": {"a": "b"}}`), false)
	f.Fuzz(func(t *testing.T, a, b []byte, goTemplate bool) { checkListElements(t, [][]byte{a, b}, goTemplate) })
}

// FuzzMergeKey holds what merges go by against encoding/json.
func FuzzMergeKey(f *testing.F) {
	f.Add("app", "web", "env", "<dev> & \"qa\"")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		params := map[string]any{k1: v1, k2: v2, "other": 1}
		want, err := json.Marshal(map[string]any{k1: params[k1], k2: params[k2], "none": params["none"]})
		must(t, err)
		got, err := appendMergeKey(nil, SortedUnique([]string{k1, k2, "none", k1}), params)
		must(t, err)
		if got != string(want) {
			t.Errorf("%s, and encoding/json writes %s", got, want)
		}
	})
}

func TestSanitizeName(t *testing.T) {
	for _, name := range []string{"", "web", "Web_App.v2", "-.-a-.-", "É", "K", strings.Repeat("a", 300), "a/b c\x00", "..."} {
		if got, want := sanitizeName(name), utils.SanitizeName(name); got != want {
			t.Errorf("%q becomes %q, the library says %q", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,300}`)).Draw(t, "name")
		if got, want := sanitizeName(name), utils.SanitizeName(name); got != want {
			t.Fatalf("%s", fmt.Sprintf("%q becomes %q, the library says %q", name, got, want))
		}
	})
}
