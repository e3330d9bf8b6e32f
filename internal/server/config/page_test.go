package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// keyPages have the keys of the server's file. docs/server.md has all but those that it leaves to
// a page of their own.
var keyPages = []string{"server", "github-app", "gitlab", "login", "notifications"}

// TestServerPage holds docs/server.md to the server's file: its examples are read without an error,
// and each key is in one of the pages.
func TestServerPage(t *testing.T) {
	var all strings.Builder
	for _, page := range keyPages {
		text, err := os.ReadFile("../../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if err := readExample(m[1]); err != nil {
				t.Errorf("docs/%s.md: %v in\n%s", page, err, m[1])
			}
		}
	}
	keys := map[string]bool{}
	listKeys(reflect.TypeFor[Config](), keys)
	if len(keys) < 90 {
		t.Errorf("%d keys are found", len(keys))
	}
	for key := range keys {
		shown := regexp.MustCompile(`\b` + key + ":|\\bor " + key + "\\b|`[^`\n]*\\b" + key + "\\b[^`\n]*`")
		if !shown.MatchString(all.String()) {
			t.Errorf("none of the pages %v has the key %s", keyPages, key)
		}
	}
}

// readExample reads an example as the part of the server's file that it shows.
func readExample(text string) error {
	var into any = &Config{}
	switch {
	case strings.HasPrefix(text, "apiVersion:"), strings.HasPrefix(text, "# the pipeline file"):
		return nil // of something else
	case strings.HasPrefix(text, "api:\n  url:"):
		into = &struct {
			API ArgoCDAPI `yaml:"api"`
		}{}
	}
	return strictyaml.Decode("example", []byte(text), into, strictyaml.Expand(func(string) (string, bool) { return "a value", true }))
}

// listKeys adds the keys of a part of the server's file, without those of the approvals gate.
func listKeys(t reflect.Type, keys map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Config]().PkgPath() {
		return
	}
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			keys[key] = true
		}
		listKeys(f.Type, keys)
	}
}
