package fieldpath

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct{ in, canonical, err string }{
		{"image.tag", "image.tag", ""},
		{"hosts[0].name", "hosts[0].name", ""},
		{"containers[name=web].image", "containers[name=web].image", ""},
		{"containers[?name=web].image", "containers[name=web].image", ""},
		{"containers[ name = web ].image", "containers[name=web].image", ""},
		{"containers[name=a b].image", "containers[name=a b].image", ""},
		{`containers[name="a]b"].image`, `containers[name="a]b"].image`, ""},
		{`containers[name="*"].image`, `containers[name="*"].image`, ""},
		{`containers[name==web].image`, `containers[name=web].image`, ""},
		{`containers[name="=web"].image`, `containers[name="=web"].image`, ""},
		{`parameters[name=image.tag].value`, `parameters[name=image.tag].value`, ""},
		{`[metadata.name=web].spec.source.targetRevision`, `[metadata.name=web].spec.source.targetRevision`, ""},
		{`l["metadata.name"=web].x`, `l["metadata.name"=web].x`, ""},
		{`l[a\.b=web].x`, `l["a.b"=web].x`, ""},
		{"l[name=web,env=qa].tag", "l[name=web,env=qa].tag", ""},
		{"l[ name = web , env = qa ].tag", "l[name=web,env=qa].tag", ""},
		{`l[name="web",metadata.env='qa'].tag`, "l[name=web,metadata.env=qa].tag", ""},
		{"l[name=a,b].tag", `l[name="a,b"].tag`, ""},
		{"l[name=a,b,env=qa].tag", `l[name="a,b",env=qa].tag`, ""},
		{`l[name="a,env=qa"].tag`, `l[name="a,env=qa"].tag`, ""},
		{"l[name=a,name=b].tag", "", "two conditions are about name"},
		{"l[name=a,env=qa", "", "closing ]"},
		{"{{environment}}.tag", "{{environment}}.tag", ""},
		{"l[env={{environment}},name={{component}}].tag", "l[env={{environment}},name={{component}}].tag", ""},
		{`a\.b.c`, `["a.b"].c`, ""},
		{`a\*`, `["a*"]`, ""},
		{`["a.b/c"]`, `["a.b/c"]`, ""},
		{`a['b c'].d`, "a.b c.d", ""},
		{"[0][1]", "[0][1]", ""},
		{"/a~1b/0/~0", "/a~1b/0/~0", ""},
		{"/", "/", ""},
		{"/*", "/*", ""},
		{"$schema", "$schema", ""},
		{`["$"].a`, `["$"].a`, ""},
		{"", "", "empty"},
		{"a..b", "", "segment 2: it is empty"},
		{".a", "", "segment 1: it is empty"},
		{"a.", "", "segment 2: it is empty"},
		{"a.[0]", "", "it is empty"},
		{"a[0]b", "", "write a dot"},
		{"a[", "", "closing ]"},
		{"a[]", "", "segment 2: [] is empty"},
		{"a[-1]", "", "neither an index"},
		{"a[+1]", "", "neither an index"},
		{"a[01]", "", "neither an index"},
		{"a[b]", "", "neither an index"},
		{"a[0:2]", "", "neither an index"},
		{"a[0,2]", "", "neither an index"},
		{"a[=b]", "", "no key before ="},
		{"a[b.=c]", "", "no key before ="},
		{"a[b=c", "", "closing ]"},
		{`a["b]`, "", "closing quote"},
		{`a["b"x]`, "", "followed by ]"},
		{`a[b="c"d]`, "", "closing ]"},
		{"a]", "", "without a ["},
		{`a\`, "", "backslash ends"},
		{"a.*.b", "", "a wildcard picks several values"},
		{"a[*]", "", "a wildcard picks several values"},
		{"a[name=*]", "", "a wildcard picks several values"},
		{"a*.b", "", `a * stands for a whole key; write a\* for the character`},
		{"**.tag", "", "a * stands for a whole key"},
		{"/a/-", "", "segment 2: -"},
		{"/a~2", "", "segment 1"},
		{strings.Repeat("a.", 70) + "a", "", "more than 64 segments"},
		{strings.Repeat("a", 2000), "", "longer than"},
		{"/" + strings.Repeat("a", 2000), "", "longer than"},

		// JSONPath, as Codefresh and kubectl write it.
		{"$.image.tag", "image.tag", ""},
		{"$['image']['tag']", "image.tag", ""},
		{"$[0].a", "[0].a", ""},
		{"$.spec.template.spec.containers[?(@.name=='web')].image", "spec.template.spec.containers[name=web].image", ""},
		{`$.a.b[?(@.x == "y")].c`, "a.b[x=y].c", ""},
		{"$.a[?@.x=='y'].c", "a[x=y].c", ""},
		{"$.a[?(@.metadata.name=='y')].c", "a[metadata.name=y].c", ""},
		{"$.a[?(@.n==5)].c", "a[n=5].c", ""},
		{"$.a[?(@.'b.c'=='d')]", `a["b.c"=d]`, ""},
		{"$", "", "the whole document"},
		{"$.", "", "it is empty"},
		{"$..tag", "", "write a * for each level"},
		{"$.a[?(@.x)].c", "", "only conditions like"},
		{"$.a[?(@.x!='y')].c", "", "only conditions like"},
		{"$.a[?(@.x=='y' && @.z=='w')].c", "a[x=y,z=w].c", ""},
		{"$.a[?(@.x == y && @.n.m==5)].c", "a[x=y,n.m=5].c", ""},
		{"$.a[?@.x=='y' && @.z=='w'].c", "a[x=y,z=w].c", ""},
		{"$.a[?(@.x=='y' || @.z=='w')].c", "", "only conditions like"},
		{"$.a[?(@.x=='y' && )].c", "", "no key before ="},
		{"$.a[?(@['x']=='y')].c", "", `write the key as @."key"`},
		{"$.a[?(@.x=='y'].c", "", "only conditions like"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := Parse(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v", p, err)
				}
				return
			}
			if err != nil || p.String() != tt.canonical {
				t.Errorf("got %q, %v", p, err)
			}
			if again, err := Parse(p.String()); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("read back as %#v, %v", again, err)
			}
		})
	}
}

func TestPattern(t *testing.T) {
	tests := []struct {
		in, canonical string
		takes, leaves []string
	}{
		{"image.tag", "image.tag", []string{"image.tag", "$.image['tag']"}, []string{"image", "image.tag.x", "image[0]", "/image/tag"}},
		{"/image/tag", "/image/tag", []string{"/image/tag"}, []string{"image.tag"}},
		{"images.*.tag", "images[*].tag", []string{"images.web.tag", `images["a.b"].tag`, "images[0].tag", "images[name=x].tag"}, []string{"images.tag", "images.a.b.tag"}},
		{"dependencies[*].version", "dependencies[*].version", []string{"dependencies[name=redis].version", "dependencies[3].version"}, []string{"dependencies[name=redis].name"}},
		{"elements[cluster=*].rev", "elements[cluster=*].rev", []string{"elements[cluster=eu].rev"}, []string{"elements[env=eu].rev", "elements[0].rev", "elements.eu.rev"}},
		{"elements[env=qa,cluster=*].rev", "elements[cluster=*,env=qa].rev", []string{"elements[cluster=eu,env=qa].rev"},
			[]string{"elements[cluster=eu].rev", "elements[cluster=eu,env=dev].rev", "elements[env=qa,cluster=eu].rev"}},
		{"l[a=x,b=y]", "l[a=x,b=y]", []string{"l[a=x,b=y]"}, []string{"l[a=x]", "l[a=x,b=z]"}},
		{"$.items[*].metadata[?(@.a.b=='*')].c", `items[*].metadata[a.b="*"].c`, []string{`items[0].metadata[a.b="*"].c`}, []string{"items[0].metadata[a.b=x].c"}},
		{"*", "[*]", []string{"a", "[0]"}, []string{"/a", "a.b"}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := ParsePattern(tt.in)
			if err != nil || p.String() != tt.canonical {
				t.Fatalf("got %q, %v", p, err)
			}
			for want, paths := range map[bool][]string{true: tt.takes, false: tt.leaves} {
				for _, s := range paths {
					q, err := Parse(s)
					if err != nil {
						t.Fatal(err)
					}
					if p.Matches(q) != want {
						t.Errorf("matches %s: %v", s, !want)
					}
				}
			}
		})
	}
}

func TestParseAssignment(t *testing.T) {
	for in, want := range map[string][2]string{
		"image.tag=1.4.2":                     {"image.tag", "1.4.2"},
		"l[name=web].image=a=b":               {"l[name=web].image", "a=b"},
		"l[name=it's].image=a":                {`l[name="it's"].image`, "a"},
		`l["]="].x=y`:                         {`l["]="].x`, "y"},
		`l["a\"]="].x=y`:                      {`l["a\"]="].x`, "y"},
		"/a[/b=c]":                            {"/a[/b", "c]"},
		"a=":                                  {"a", ""},
		"a==b":                                {"a", "=b"},
		`l[name="web"].env[0].value=x`:        {"l[name=web].env[0].value", "x"},
		"$.a[?(@.name=='web')].b=[x].y":       {"a[name=web].b", "[x].y"},
		"a=" + strings.Repeat("x", maxLength): {"a", strings.Repeat("x", maxLength)},
	} {
		p, value, err := ParseAssignment(in)
		if err != nil || p.String() != want[0] || value != want[1] {
			t.Errorf("%s: got %q = %q, %v", in, p, value, err)
		}
	}
	for in, want := range map[string]string{
		"": "empty", "a": "isn't PATH=VALUE", "=b": "it is empty", "a[b=c": "closing ]", "a..b=c": "it is empty", "/a": "isn't PATH=VALUE",
		"a.*=b": "a wildcard", "a[n=*].c=b": "a wildcard", "a[0]b=c": "write a dot",
	} {
		if p, value, err := ParseAssignment(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q = %q, %v", in, p, value, err)
		}
	}
}

// TestPropertyText holds that every path and pattern reads back from its text.
func TestPropertyText(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"a", "a.b", "[x]", "0", "=", "?", "'", `"`, `\`, "/x", "", "*", "$", "@", " a", "(", ")"}), rapid.StringN(0, 8, -1))
	rapid.Check(t, func(t *rapid.T) {
		var p Pattern
		if p.path.pointer = rapid.Bool().Draw(t, "pointer"); p.path.pointer {
			for _, k := range rapid.SliceOfN(rapid.StringN(0, 8, -1), 1, 5).Draw(t, "tokens") {
				if k != "-" {
					p.path.segs = append(p.path.segs, Segment{Kind: Token, Key: k})
				}
			}
		} else {
			for range rapid.IntRange(1, 5).Draw(t, "segments") {
				seg := Segment{Kind: rapid.SampledFrom([]Kind{Key, Index, Match, Any, Each}).Draw(t, "kind")}
				switch seg.Kind {
				case Index:
					seg.Index = rapid.IntRange(0, 99).Draw(t, "index")
				case Match, Each:
					seg.KeyPath = rapid.SliceOfN(text, 1, 3).Draw(t, "in")
					if seg.Kind == Match {
						seg.Value = text.Draw(t, "value")
					}
					for i := range rapid.IntRange(0, 2).Draw(t, "conditions") {
						seg.And = append(seg.And, Condition{KeyPath: []string{fmt.Sprintf("%d%s", i, text.Draw(t, "key")), "and", "more"}, Value: text.Draw(t, "value")})
					}
				case Key:
					seg.Key = text.Draw(t, "key")
				}
				p.path.segs = append(p.path.segs, seg)
			}
		}
		if len(p.path.segs) == 0 {
			return
		}
		back, err := ParsePattern(p.String())
		if err != nil || !reflect.DeepEqual(p, back) {
			t.Fatalf("%#v is written %q and read %#v, %v", p, p.String(), back, err)
		}
		one, ok := p.Path()
		if !ok {
			return
		}
		if !p.Matches(one) {
			t.Fatalf("%q doesn't match itself", p)
		}
		if q, value, err := ParseAssignment(one.String() + "=x=y"); !p.path.pointer && (err != nil || value != "x=y" || q.String() != one.String()) {
			t.Fatalf("%q=x=y is read %q = %q, %v", one, q, value, err)
		}
	})
}

// TestFill holds that what fills a pattern is never read as grammar.
func TestFill(t *testing.T) {
	p, err := ParsePattern(`{{c}}.x-{{c}}[name={{c}},env="{{c}}"][k=*,n={{c}}]`)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(s string) string { return strings.ReplaceAll(s, "{{c}}", `a.b[*]="`) }
	want := `["a.b[*]=\""]["x-a.b[*]=\""][name="a.b[*]=\"",env="a.b[*]=\""][k=*,n="a.b[*]=\""]`
	if got := p.Fill(fill); got.String() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := p.String(); strings.Contains(got, "a.b") {
		t.Errorf("the pattern itself became %s", got)
	}
	if _, err := ParsePattern("l[a=*,b=*].x"); err == nil || !strings.Contains(err.Error(), "two conditions are *") {
		t.Errorf("two wildcards in a selection: %v", err)
	}
}

// TestParsedPathsParseAgain refuses paths that are too long as they are written.
func TestParsedPathsParseAgain(t *testing.T) {
	for _, s := range []string{`0"` + strings.Repeat("0", 1022), "0" + strings.Repeat(`"`, 600)} {
		if _, err := ParsePattern(s); err == nil || !strings.Contains(err.Error(), "when it is written") {
			t.Errorf("%.20q…: %v", s, err)
		}
		if _, _, err := ParseAssignment(s + "=1"); err == nil || !strings.Contains(err.Error(), "longer than 1024 bytes") {
			t.Errorf("%.20q… with a value: %v", s, err)
		}
	}
	for _, s := range []string{strings.Repeat("a", 1024), "/" + strings.Repeat("\x01", 1000), strings.Repeat("a.", 30) + "b"} {
		p, err := ParsePattern(s)
		if err != nil {
			t.Errorf("%.20q…: %v", s, err)
			continue
		}
		if again, err := ParsePattern(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%.20q… isn't read again: %v", s, err)
		}
	}
}

func FuzzParsePattern(f *testing.F) {
	for _, p := range []string{"image.tag", "hosts[0].name", `c[name="a]"].x`, "/a~1b/0", `["a.b"]`, `a\.b`, "$.a[?(@.x=='y')].c", "a.*[n.m=*].b", "a[ b == c ]", "a[b=c,d=e].f", "$.a[?(@.x=='y' && @.z==w)]", "a[b=*,c={{d}}]"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePattern(s)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q is written %q and read %q, %v", s, p, again, err)
		}
	})
}
