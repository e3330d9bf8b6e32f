package placeholder

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"image.tag":                     "image.tag",
		"{{environment}}.tag":           "{{environment}}.tag",
		"a-{{ component }}-b":           "a-{{component}}-b",
		"{{environment}}{{ component}}": "{{environment}}{{component}}",
		"{one brace}":                   "{one brace}",
		"}}":                            "}}",
	} {
		if got, err := Canonical(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"{{env}}.tag":           "{{env}}",
		"{{ .environment }}":    "{{ .environment }}",
		"{{}}":                  "{{}}",
		"a{{environment":        "without }}",
		"{{{environment}}}":     "only {{environment}} and {{component}}",
		"{{environment}}.{{x}}": "{{x}}",
	} {
		if got, err := Canonical(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}

func TestCheckGlob(t *testing.T) {
	for _, glob := range []string{
		"values.yaml", "**/{a,b}/*.yaml", "{{environment}}.yaml", "values-{{ environment }}.yaml", "{{component}}/{{environment}}.yaml",
		"*/{{component}}/**/*.yaml", "apps-?/{{component}}.json", "{{component}}/[ab].yaml",
	} {
		if err := CheckGlob(glob); err != nil {
			t.Errorf("%s: %v", glob, err)
		}
	}
	for glob, want := range map[string]string{
		"{{env}}.yaml":                     "only {{environment}}",
		"{{a,b},c}.yaml":                   "only {{environment}}",
		"*-{{environment}}.yaml":           "wildcard",
		"{{component}}.{yaml,yml}":         "wildcard",
		"**/{{environment}}.yaml":          "only * and ?",
		"{a,b}/{{environment}}.yaml":       "only * and ?",
		"{{component}}/**/{{environment}}": "only * and ?",
	} {
		if err := CheckGlob(glob); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", glob, err)
		}
	}
}

func TestFill(t *testing.T) {
	v := Values{Environment: "qa", Component: "a.b[*]{x}"}
	if got := v.Fill("x {{component}}-{{environment}}-{{component}}"); got != "x a.b[*]{x}-qa-a.b[*]{x}" {
		t.Error(got)
	}
	if got := (Values{Component: "{{environment}}", Environment: "qa"}).Fill("{{component}}"); got != "{{environment}}" {
		t.Errorf("a value was filled again: %s", got)
	}
	for _, name := range []string{"", "a/b", ".", "..", "a\x00"} {
		v := Values{Environment: "qa", Component: name}
		if got, err := v.FillGlob("{{component}}/x"); err == nil {
			t.Errorf("%q became the glob %q", name, got)
		}
		if got, err := v.FillName("{{component}}/x"); err == nil {
			t.Errorf("%q became the name %q", name, got)
		}
		if _, err := v.FillGlob("{{environment}}/x"); err != nil {
			t.Errorf("%q is in the way, though it isn't asked for: %v", name, err)
		}
	}
}

// TestPropertyName holds that a filled glob matches just the names that have
// the values themselves, and that such a name is the same for all values.
func TestPropertyName(t *testing.T) {
	text := rapid.StringMatching(`[a-z.*?{}\[\]\\-]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		v := Values{Environment: text.Draw(t, "environment"), Component: text.Draw(t, "component")}
		other := Values{Environment: text.Draw(t, "other environment"), Component: text.Draw(t, "other component")}
		glob := rapid.SampledFrom([]string{"{{component}}.yaml", "*/{{component}}/{{environment}}/**", "v-{{environment}}-{{component}}", "a?/x-{{component}}/*.yaml"}).Draw(t, "glob")
		tail := map[string][]string{"*/{{component}}/{{environment}}/**": {"q/", "/deep/er.yaml"}, "a?/x-{{component}}/*.yaml": {"a1/x-", "/y.yaml"}}
		named := func(v Values) string {
			switch glob {
			case "{{component}}.yaml":
				return v.Component + ".yaml"
			case "v-{{environment}}-{{component}}":
				return "v-" + v.Environment + "-" + v.Component
			case "a?/x-{{component}}/*.yaml":
				return tail[glob][0] + v.Component + tail[glob][1]
			}
			return tail[glob][0] + v.Component + "/" + v.Environment + tail[glob][1]
		}
		filled, err := v.FillGlob(glob)
		if err != nil {
			return // "." and ".."
		}
		name := named(v)
		if ok, err := doublestar.Match(filled, name); err != nil || !ok {
			t.Fatalf("%q, filled %q, doesn't match %q: %v", glob, filled, name, err)
		}
		if o := named(other); o != name {
			if ok, err := doublestar.Match(filled, o); err != nil || ok {
				t.Fatalf("%q, filled %q, matches %q too: %v", glob, filled, o, err)
			}
		}
		place := NameWithPlaceholders(glob, name)
		if place != NameWithPlaceholders(glob, named(other)) {
			t.Fatalf("%q and %q have the places %q and %q", name, named(other), place, NameWithPlaceholders(glob, named(other)))
		}
		if back, err := v.FillName(place); err != nil || back != name {
			t.Fatalf("%q goes back to %q, not %q: %v", place, back, name, err)
		}
	})
}
