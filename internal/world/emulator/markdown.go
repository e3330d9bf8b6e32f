package emulator

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders texts as forges show them.
type markdown struct {
	converter goldmark.Markdown
	policy    *bluemonday.Policy
}

// newMarkdown makes the renderer of a repository's texts: GitHub's Markdown with tables, task lists
// and links, and the HTML that forges let through. It links pull requests by their signs ("#7") to
// the addresses that pullPage gives.
func newMarkdown(sign string, pullPage func(number string) string) markdown {
	policy := bluemonday.UGCPolicy() // what people write may have no script, style, form or frame
	policy.AllowAttrs("class").Matching(regexp.MustCompile(`^(language-[a-z0-9-]+|add|del|hunk|file)$`)).OnElements("code", "span")
	policy.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	policy.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	return markdown{policy: policy, converter: goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(pullLinks{sign, pullPage}, 500))),
		goldmark.WithRendererOptions(html.WithUnsafe(), // the policy looks at what comes out
			renderer.WithNodeRenderers(util.Prioritized(diffBlocks{}, 100))),
	)}
}

// render gives a text as HTML that may be shown to anybody.
func (m markdown) render(source string) (template.HTML, error) {
	var out bytes.Buffer
	if err := m.converter.Convert([]byte(source), &out); err != nil {
		return "", fmt.Errorf("render Markdown: %w", err)
	}
	return template.HTML(m.policy.SanitizeBytes(out.Bytes())), nil
}

// pullLinks makes links of pull requests' names, once the rest is parsed: a parser of its own
// would cut characters' numbers (&#8203;) in two.
type pullLinks struct {
	sign string
	page func(number string) string
}

// Transform makes them in all texts but those of links and code.
func (p pullLinks) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	var texts []*ast.Text
	// The walker gives no error, and neither does the walk.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link, *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				texts = append(texts, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, t := range texts {
		p.linkNames(t, reader.Source())
	}
}

// linkNames puts the links in a text before it, with what is before each, and leaves the rest.
func (p pullLinks) linkNames(t *ast.Text, source []byte) {
	for at := t.Segment.Start; at < t.Segment.Stop; at++ {
		end := p.endOfName(source, at, t.Segment.Stop)
		if end == 0 {
			continue
		}
		link := ast.NewLink()
		link.Destination = []byte(p.page(string(source[at+1 : end])))
		link.AppendChild(link, ast.NewTextSegment(text.NewSegment(at, end)))
		parent := t.Parent()
		parent.InsertBefore(parent, t, ast.NewTextSegment(text.NewSegment(t.Segment.Start, at)))
		parent.InsertBefore(parent, t, link)
		t.Segment = t.Segment.WithStart(end)
		at = end - 1
	}
}

// endOfName is where a name ends that begins at a place and is no part of a longer word; 0:
// none begins there.
func (p pullLinks) endOfName(source []byte, at, stop int) int {
	end := at + 1
	for end < stop && '0' <= source[end] && source[end] <= '9' {
		end++
	}
	digits := end - at - 1
	if string(source[at]) != p.sign || digits == 0 || digits > 9 {
		return 0
	}
	if at > 0 && (source[at-1] == '&' || isWordCharacter(source[at-1])) {
		return 0
	}
	if end < len(source) && isWordCharacter(source[end]) {
		return 0
	}
	return end
}

func isWordCharacter(c byte) bool {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return true
	}
	return c == '_'
}

// diffBlocks colours code blocks in the language diff.
type diffBlocks struct{}

// RegisterFuncs takes fenced code blocks over.
func (diffBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.FencedCodeBlock)
		code := string(n.Lines().Value(source))
		language := string(block.Language(source))
		content := template.HTML(template.HTMLEscapeString(code))
		if language == "diff" {
			content = colourDiff(code)
		}
		_, err := fmt.Fprintf(w, "<pre><code class=\"language-%s\">%s</code></pre>\n", template.HTMLEscapeString(language), content)
		return ast.WalkContinue, err
	})
}

// colourDiff gives each line of a difference the class that says what it is.
func colourDiff(diff string) template.HTML {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		class := ""
		switch {
		case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "),
			strings.HasPrefix(line, "index "):
			class = "file"
		case strings.HasPrefix(line, "@@"):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		}
		if class == "" {
			out.WriteString(template.HTMLEscapeString(line))
			continue
		}
		// Each is a block, which ends the line.
		fmt.Fprintf(&out, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(strings.TrimSuffix(line, "\n")))
	}
	return template.HTML(out.String())
}
