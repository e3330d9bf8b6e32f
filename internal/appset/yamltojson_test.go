package appset

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzYAMLToJSON holds what YAML is as JSON against sigs.k8s.io/yaml, to the byte.
func FuzzYAMLToJSON(f *testing.F) {
	for _, text := range []string{
		"", "null", "~", "a", "1", "-0", "1.5", "1e3", ".inf", ".nan", "0x1F", "0o17", "017", "18446744073709551615", "9223372036854775807", "99999999999999999999", "yes", "on", "2026-01-02", "!!binary aGk=", "!!str 1",
		"a: 1\nb: [x, y, {c: null}]", "a: 1\na: 2", "{1: a, true: b, 1.5: c, .inf: d, -.inf: e, .nan: f, x: g}", "? [a]\n: b", "~: a", "a: &x {b: 1}\nc: *x", "a: &x {b: 1}\nc: {<<: *x, d: 2}", "18446744073709551615: a",
		"a: \"<b> & \\u2028 \\\" \\\\ \\n\"", "a: ä€😀", "\"\\xff\": 1", "[", "- a\n-", "a: |\n  x\n  y\n", "%YAML 1.1\n---\na: b", "a: .inf", "[.nan]", "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\n",
	} {
		f.Add([]byte(text))
	}
	sets, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range sets {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	if got, err := yamlToJSON([]byte("1: a\n\"1\": a")); err != nil || string(got) != `{"1":"a"}` {
		f.Errorf("two keys of one text: %s, %v", got, err)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		want, wrong := yaml.YAMLToJSONStrict(doc)
		got, err := yamlToJSON(doc)
		for range 50 { // of two keys that are one in JSON either may stay, there as here
			if wrong != nil || string(got) == string(want) {
				break
			}
			want, wrong = yaml.YAMLToJSONStrict(doc)
		}
		if (err == nil) != (wrong == nil) || err == nil && string(got) != string(want) {
			t.Errorf("%q is %s, %v; sigs.k8s.io/yaml says %s, %v", doc, got, err, want, wrong)
		}
	})
}
