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

// newMarkdown makes the renderer of a repository's texts: GitHub's Markdown with tables, task
// lists and links, such HTML as forges let through, and pull requests by their signs ("#7"),
// of which pullPage gives the addresses.
func newMarkdown(sign string, pullPage func(number string) string) markdown {
	policy := bluemonday.UGCPolicy() // what people write may have no script, style, form or frame
	policy.AllowAttrs("class").Matching(regexp.MustCompile(`^(language-[a-z0-9-]+|add|del|hunk|file)$`)).OnElements("code", "span")
	policy.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	policy.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	return markdown{policy: policy, converter: goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(pullLinks{sign, pullPage}, 500))),
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

// pullLinks makes links of pull requests' names.
type pullLinks struct {
	sign string
	page func(number string) string
}

// Trigger is the byte with which such a name begins.
func (p pullLinks) Trigger() []byte { return []byte(p.sign) }

// Parse reads a name that isn't a part of a longer word; nil: here is none.
func (p pullLinks) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	digits := 0
	for digits+1 < len(line) && '0' <= line[digits+1] && line[digits+1] <= '9' {
		digits++
	}
	end := 1 + digits
	// After & it is a character's number.
	if digits == 0 || digits > 9 || before == '&' || isWordCharacter(before) || end < len(line) && isWordCharacter(rune(line[end])) {
		return nil
	}
	link := ast.NewLink()
	link.Destination = []byte(p.page(string(line[1:end])))
	link.AppendChild(link, ast.NewTextSegment(segment.WithStop(segment.Start+end)))
	block.Advance(end)
	return link
}

func isWordCharacter(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
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
		case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "index "):
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
