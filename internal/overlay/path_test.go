package overlay

import (
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	tests := []struct{ in, canonical, err string }{
		{"image.tag", "image.tag", ""},
		{"hosts[0].name", "hosts[0].name", ""},
		{"containers[name=web].image", "containers[name=web].image", ""},
		{"containers[?name=web].image", "containers[name=web].image", ""},
		{`containers[name="a]b"].image`, `containers[name="a]b"].image`, ""},
		{`a\.b.c`, `["a.b"].c`, ""},
		{`["a.b/c"]`, `["a.b/c"]`, ""},
		{`a['b c'].d`, "a.b c.d", ""},
		{"[0][1]", "[0][1]", ""},
		{"/a~1b/0/~0", "/a~1b/0/~0", ""},
		{"/", "/", ""},
		{"", "", "empty"},
		{"a..b", "", "segment 2: it is empty"},
		{".a", "", "segment 1: it is empty"},
		{"a.", "", "segment 2: it is empty"},
		{"a.[0]", "", "it is empty"},
		{"a[0]b", "", "write a dot"},
		{"a[", "", "closing ]"},
		{"a[]", "", "segment 2: [] is empty"},
		{"a[-1]", "", "neither an index"},
		{"a[01]", "", "neither an index"},
		{"a[b]", "", "neither an index"},
		{"a[=b]", "", "no key before ="},
		{"a[b=c", "", "closing ]"},
		{`a["b]`, "", "closing quote"},
		{`a["b"x]`, "", "followed by ]"},
		{"a]", "", "without a ["},
		{`a\`, "", "backslash ends"},
		{"a.*.b", "", "segment 2: \"*\": wildcards are not supported yet"},
		{"a[*]", "", "wildcards are not supported yet"},
		{"/a/-", "", "segment 2: -"},
		{"/a~2", "", "segment 1"},
		{strings.Repeat("a.", 70) + "a", "", "more than 64 segments"},
		{strings.Repeat("a", 2000), "", "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := ParsePath(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v", p, err)
				}
				return
			}
			if err != nil || p.String() != tt.canonical {
				t.Errorf("got %q, %v", p, err)
			}
		})
	}
}
