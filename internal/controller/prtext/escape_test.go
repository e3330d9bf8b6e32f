package prtext

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/liftlock/liftlock/internal/wording"
)

// markdown reads what we write as the forges do: GitHub's dialect, raw HTML let
// through.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))

// reading is a text as its readers get it.
type reading struct {
	tags     []string // elements in order, with their destination if they have one
	comments []string
	text     string // outside code
	code     string // inside code
}

func read(t testing.TB, source string) reading {
	t.Helper()
	var out bytes.Buffer
	if err := markdown.Convert([]byte(source), &out); err != nil {
		t.Fatal(err)
	}
	var r reading
	var text, code strings.Builder
	depth := 0
	for z := xhtml.NewTokenizer(&out); ; {
		if z.Next() == xhtml.ErrorToken {
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			r.text, r.code = text.String(), code.String()
			return r
		}
		switch tok := z.Token(); tok.Type {
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			tag := tok.Data
			for _, a := range tok.Attr {
				if a.Key == "href" || a.Key == "src" {
					tag += " " + a.Val
				}
			}
			r.tags = append(r.tags, tag)
			if tok.Data == "code" {
				depth++
			}
		case xhtml.EndTagToken:
			r.tags = append(r.tags, "/"+tok.Data)
			if tok.Data == "code" {
				depth--
			}
		case xhtml.CommentToken:
			r.comments = append(r.comments, strings.TrimSpace(tok.Data))
		case xhtml.TextToken:
			if depth > 0 {
				code.WriteString(tok.Data)
			} else {
				text.WriteString(tok.Data)
			}
		}
	}
}

// live is what forges act on in the rendered text, outside code.
var live = regexp.MustCompile(`@[\pL\pN_]|[#!$&^~%][0-9]|[~%]["\pL]|(?i:\bg[hl]-[0-9])|\[[a-z_]+:[0-9"]|\*iteration:|://|(?i:www\.)`)

// closes is what has a forge close something when the text's pull request is merged, and what names something of
// another repository.
var closes = regexp.MustCompile(`(?i)\b(?:clos(?:e|es|ed|ing)|fix(?:es|ed|ing)?|resolv(?:e|es|ed|ing)|implement(?:s|ed|ing)?|reopen(?:s|ed)?)\b:?\s+[#!][0-9]|[\pL\pN_/.-][#!][0-9]`)

// acted is what forges act on in titles and commit messages.
var acted = regexp.MustCompile(`@[\pL\pN_]|#[0-9]|(?i:\bg[hl]-[0-9])|://`)

func ungap(s string) string { return strings.ReplaceAll(s, "\u200b", "") }

// hostile are the texts that have broken bots before.
var hostile = []string{
	"1.5.0", "", " ", "a|b", `a\|b`, `\`, "`", "``` \n# x", "a`b`c", "<!-- liftlock:status -->", "--><script>alert(1)</script>",
	"<!-- liftlock:promotion release=" + newRelease + " -->", "<code>", "</code></td></tr>", "<details>", "</details>",
	"@ada", "@acme/sre", "x @ada.", "fixes #12", "closes acme/fleet#3", "GH-12", "GL-12", "Fixes: #14", "closes (#15)", "resolved\n#14", "acme/other#14", "x#15", "closing #14, #15 and #12", "implements #14", "reopens #15",
	`~"two words"`, `%"version 1"`, "%15", "&14", "$14", "^alert#14", "[vulnerability:14]", "[issue:acme/fleet/14]", "*iteration:14", "!14", "/close", "/approve #14", "/merge", "this fixes", "it closes:", "!34", "https://evil.example/x", "www.evil.example", "ftp://x.example", "ada@evil.example",
	"[text](https://evil.example)", "![i](//evil.example/i.png)", "[ref]: http://evil.example", "<https://evil.example>", "&#64;ada", "&lt;b&gt;", "&",
	"*b*", "_i_", "__init__", "~~gone~~", "# heading", "- item", "+ item", "1. one", "12) two", "> quote", "---", "===", "***", "[ ] task", "[x] done", "| a | b |\n|---|---|",
	"line\nline", "line\r\nline", "tab\tbed", "\u202eevil", "zero\u200bwidth", "bad\xffbytes", "\x00", "$x$", "$$x$$", ":tada:", "{{ .x }}", "a\u0301", "日本語", "🚀",
	strings.Repeat("x", 3000), strings.Repeat("`", 500), strings.Repeat("|", 500), "\\`", "`\\", "a\\", "^1", "%2", "~label", "x=\\|y", "HTTP://EVIL.EXAMPLE", "mailto:ada@evil.example",
}

// checkText checks that outside text came out as its readers should see it, in every
// place where one can stand.
func checkText(t *testing.T, s string) {
	t.Helper()
	want := cleanLine(s, maxReason)
	for place, frame := range map[string][2]string{
		"paragraph": {"", ""}, "sentence": {"before ", " after"}, "item": {"- ", ""}, "cell": {"| a | b |\n|---|---|\n| x | ", " |"},
		"emphasis": {"**", "**."},
	} {
		got := read(t, frame[0]+escapeText(s, maxReason)+frame[1])
		shape := read(t, frame[0]+"x"+frame[1])
		if want != "" && place != "emphasis" {
			if diff := cmp.Diff(shape.tags, got.tags); diff != "" {
				t.Fatalf("%s: %q is markup (-want +got):\n%s", place, s, diff)
			}
			if plainText := strings.Replace(shape.text, "x", "", 1); place != "cell" && place != "sentence" && strings.TrimSpace(ungap(got.text)) != strings.TrimSpace(want) {
				t.Fatalf("%s: %q reads %q, want %q (%q)", place, s, got.text, want, plainText)
			}
		}
		if len(got.comments) > 0 || live.MatchString(got.text) {
			t.Fatalf("%s: %q is live: %q %q", place, s, got.text, got.comments)
		}
	}
	value := exactValue(s, maxValue)
	for place, frame := range map[string][2]string{"paragraph": {"", ""}, "sentence": {"before ", " after"}, "item": {"- ", ""}, "cell": {"| a | b |\n|---|---|\n| ", " | x |"}} {
		got := read(t, frame[0]+codeSpan(s, maxValue)+frame[1])
		if s == "" {
			continue
		}
		shape := read(t, frame[0]+"`x`"+frame[1])
		if diff := cmp.Diff(shape.tags, got.tags); diff != "" {
			t.Fatalf("code in %s: %q is markup (-want +got):\n%s", place, s, diff)
		}
		if got.code != value || len(got.comments) > 0 {
			t.Fatalf("code in %s: %q reads %q, want %q", place, s, got.code, value)
		}
	}
	if p := plainLine(s, maxReason); acted.MatchString(p) || strings.ContainsAny(p, "\r\n") || strings.Contains(strings.ToLower(p), "[skip ci]") {
		t.Fatalf("%q is live in a commit message: %q", s, p)
	}
	checkProse(t, s)
}

// checkProse checks that prose makes nothing but paragraphs, items, code and differences.
func checkProse(t *testing.T, s string) {
	t.Helper()
	got := read(t, renderProse(s))
	for _, tag := range got.tags {
		if !slices.Contains([]string{"p", "/p", "ul", "/ul", "li", "/li", "code", "/code", "pre", "/pre", "br"}, tag) {
			t.Fatalf("%q makes <%s> in an answer:\n%s", s, tag, renderProse(s))
		}
	}
	if len(got.comments) > 0 || live.MatchString(got.text) {
		t.Fatalf("%q is live in an answer: %q %q", s, got.text, got.comments)
	}
}

func TestEscape(t *testing.T) {
	for _, s := range hostile {
		checkText(t, s)
		checkText(t, "x"+s)
		checkText(t, s+" "+s)
	}
}

// TestProseDifference holds that a difference in an answer is one block, whatever is in it.
func TestProseDifference(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a difference":            {"a:\n```diff\n@@ x @@\n- `b` @ada #1\n+   <b> ```\n```\nand on", "a:\n````diff\n@@ x @@\n- `b` @ada #1\n+ <b> ```\n````\nand on"},
		"indented":                {"```diff\n  a\n```", "```diff\n  a\n```"},
		"that doesn't end":        {"a\n```diff\n+ b", "a\n```diff\n+ b\n```"},
		"without a line":          {"a\n```diff\n```\nb", "a\nb"},
		"with an end in it":       {"```diff\n ```\n+ b\n```", "````diff\n ```\n+ b\n````"},
		"what can't be seen":      {"```diff\n+ a\u202eb\n```", "```diff\n+ a[U+202E]b\n```"},
		"another kind is no such": {"```go\n+ b\n```", "\\`\\`\\`go\n\\+ b\n\\`\\`\\`"},
	} {
		if got := renderProse(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		checkProse(t, c.in)
	}
	long := renderProse("```diff\n" + strings.Repeat("+ a\n", 1000) + "```\nand on")
	if n := strings.Count(long, "\n"); n > maxLines+4 || !strings.HasSuffix(long, "+ a\n```\n\n"+ellipsis) {
		t.Errorf("%d lines, which end with %q", n, long[len(long)-20:])
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
		f.Add("```diff\n+ " + s + "\n```\n" + s)
	}
	f.Fuzz(checkText)
}

func TestCleanLine(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		clean    string
		exact    string
	}{
		{"plain", "1.5.0", 10, "1.5.0", "1.5.0"},
		{"lines", " a\r\n\tb ", 10, "a b", "␣a[U+000D][U+000A][U+0009]b␣"},
		{"overrides", "a\u202eb", 10, "a[U+202E]b", "a[U+202E]b"},
		{"bytes", "a\xffb", 10, "a�b", "a�b"},
		{"cut", "abcdefghij", 8, "abcdefgh…", "abcdef…ij"},
		{"fits", "abcdefgh", 8, "abcdefgh", "abcdefgh"},
		{"spaces", "a  b", 8, "a b", "a ␣b"},
	} {
		if got := cleanLine(c.in, c.limit); got != c.clean {
			t.Errorf("%s: clean is %q, want %q", c.name, got, c.clean)
		}
		if got := exactValue(c.in, c.limit); got != c.exact {
			t.Errorf("%s: exact is %q, want %q", c.name, got, c.exact)
		}
	}
}

func TestTruncateBody(t *testing.T) {
	long := "<details>\n" + strings.Repeat("- ünder\n", maxBody)
	got := truncateBody(long)
	if len(got) > maxBody || !utf8.ValidString(got) || !strings.HasSuffix(got, cutNote) || strings.Count(got, "</details>") != 1 {
		t.Errorf("cut to %d bytes, ends %q", len(got), got[len(got)-120:])
	}
	if truncateBody("short") != "short" {
		t.Errorf("what fits is changed")
	}
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 4, "äöüß"}, {"ab d", 4, "ab d"}, {"ab cd", 4, "ab…"}} {
		if got := wording.ClipRunes(c.in, c.limit); got != c.want {
			t.Errorf("short(%q, %d) is %q, want %q", c.in, c.limit, got, c.want)
		}
	}
	if got := wording.Clip("ääää", 7); got != "ää…" {
		t.Errorf("shortBytes is %q", got)
	}
}
