package appset

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasttemplate"
	"pgregory.net/rapid"
)

// renderFast renders as the controller does, with the library.
func renderFast(raw string, params map[string]any) (string, error) {
	t, err := fasttemplate.NewTemplate(raw, "{{", "}}")
	if err != nil {
		return "", err
	}
	return t.ExecuteFuncString(func(w io.Writer, tag string) (int, error) {
		name := strings.TrimSpace(tag)
		value, ok := params[name].(string)
		if name == "" || !ok {
			return io.WriteString(w, "{{"+tag+"}}")
		}
		return io.WriteString(w, value)
	}), nil
}

// TestFastTemplates holds rendering without Go templates against the library.
func TestFastTemplates(t *testing.T) {
	params := map[string]any{"app": "web", "env": "{{app}}", "empty": "", "n": 7, "a b": "spaced"}
	check := func(t interface{ Fatalf(string, ...any) }, raw string) {
		parsed := newParsedString(raw, false, nil, &templateLimits{ctx: context.Background()})
		got, err := parsed.render(params)
		want, wantErr := raw, error(nil)
		if fastForm.MatchString(raw) {
			want, wantErr = renderFast(raw, params)
		}
		if got != want && err == nil || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q becomes %q (%v), the library says %q (%v)", raw, got, err, want, wantErr)
		}
	}
	for _, raw := range []string{"", "{{app}}", "a-{{ app }}-{{env}}", "{{}}", "{{ }}", "{{n}}", "{{nope}}x", "{{empty}}", "{{app}}{{app}}{{app}}{{app}}{{app}}{{app}}{{app}}{{app}}{{app}}", "}}{{app}}{{", "{{{{app}}}}", "{{a b}}", "{{a\n}}", "{{app"} {
		check(t, raw)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"{{", "}}", "app", " ", "env", "n", "x", "{", "}", "\n", "empty"})).Draw(t, "raw"), ""))
	})
}
