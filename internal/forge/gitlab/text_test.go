package gitlab

import (
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

func TestEscapeActions(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "a *body*\nof lines", "a *body*\nof lines"},
		{"an action", "/close", `\/close`},
		{"one of our commands", "Say:\n/liftlock approve\nor don't.", "Say:\n\\/liftlock approve\nor don't."},
		{"after spaces", " \t/close", " \t\\/close"},
		{"within a line", "say /close", "say /close"},
		{"a path", "/ is the root, //host too", "/ is the root, //host too"},
		{"escaped by hand", `\/close`, `\\/close`},
		{"in a block of code", "```\n/close\n```\n/merge", "```\n/close\n```\n\\/merge"},
		{"in a block of code that isn't closed", "```\n/close", "```\n\\/close"},
		{"between blocks", "```sh\nls\n```\n/close\n```\n/tmp\n```", "```sh\nls\n```\n\\/close\n```\n/tmp\n```"},
		{"with Windows' line ends", "```\r\n/close\r\n```\r\n/merge\r\n", "```\r\n/close\r\n```\r\n\\/merge\r\n"},
		{"in a block of code by more backticks", "````diff\n```\n/tmp\n````\n/close", "````diff\n```\n/tmp\n````\n\\/close"},
		{"after a mark of ours and HTML", "<!-- liftlock:answer -->\n<details>\n\n```\n/tmp\n```\n</details>", "<!-- liftlock:answer -->\n<details>\n\n```\n/tmp\n```\n</details>"},
		{"behind a carriage return", "a\n\r/close\n/\rclose", "a\n\r\\/close\n\\/\rclose"},
		{"in a block within HTML", "<details>\n```\n\n/close\n```", "<details>\n```\n\n\\/close\n```"},
		{"in a block within another", "~~~\n```\n~~~\n/close\n```", "~~~\n```\n~~~\n\\/close\n```"},
		{"in a block within a quotation", ">>>\n```\n>>>\n/close\n```", ">>>\n```\n>>>\n\\/close\n```"},
		{"in a block within a comment", "<!-- x\n\n```\n-->\n/close\n```", "<!-- x\n\n```\n-->\n\\/close\n```"},
		{"in a block by fewer backticks", "````\n```\n````\n/close\n```", "````\n```\n````\n\\/close\n```"},
		{"in a block that ends sooner to some versions", "```\nx\n  ```\n/close\n```", "```\nx\n  ```\n\\/close\n```"},
		{"after a line of code that isn't a fence", "```a`b\n/close\n```", "```a`b\n\\/close\n```"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := escapeActions(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzEscapeActions holds that every text comes back as it was written, and that no line that
// isn't inside of a block of code begins an action.
func FuzzEscapeActions(f *testing.F) {
	for _, s := range []string{"", "/close", "```\n/close\n```", "```\n/a\n```\n```\n/b", "\\/a\n\\\\/b", "```x\n\n```\r\n/a", "\r/\ra", "~~~\n```\n~~~\n/a\n```", "<a>\n```\n\n/b\n```"} {
		f.Add(s)
	}
	action := regexp.MustCompile("(?m)^/[A-Za-z]")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := escapeActions(s)
		if got := unescapeActions(escaped); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
		// As GitLab up to 16 looks for actions: what is in code by its search is passed over.
		read := strings.ReplaceAll(escaped, "\r", "")
		if rest := codeToOldVersions.ReplaceAllString(read, "x"); action.MatchString(rest) {
			t.Errorf("%q is written as %q", s, escaped)
		}
		// As later ones do: in paragraphs of its Markdown.
		for _, p := range readParagraphs(read) {
			if action.MatchString(p) {
				t.Errorf("%q is written as %q, which has the paragraph %q", s, escaped, p)
			}
		}
	})
}

// codeToOldVersions is where GitLab up to 16 finds no actions: in code, in HTML and in quotations
// (lib/gitlab/quick_actions/extractor.rb).
var codeToOldVersions = regexp.MustCompile("(?ims)^```.+?\n```$|^.*`\n*.+?\n*`$|^<[^>]+?>\n.+?\n</[^>]+?>$|^>>>.+?\n>>>$")

// readParagraphs are the paragraphs of a text that aren't within something else.
func readParagraphs(s string) (found []string) {
	source := []byte(s)
	doc := goldmark.DefaultParser().Parse(text.NewReader(source))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindParagraph {
			found = append(found, string(n.Lines().Value(source)))
		}
	}
	return found
}
