package command

import (
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// commentMarkdown reads comments as GitHub does, whose Markdown the others have with additions. Links
// that nobody marked as such are text: none begins like a command.
var commentMarkdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()

// plainLines are the offsets of those lines of a paragraph, or a list, that a reader sees begin
// with what the source begins with, as plain text. The other lines are code that began lines
// before, a link's text or hidden title, struck out, a heading or a table's cell.
func plainLines(paragraph string) map[int]bool {
	source := []byte(paragraph)
	plain := map[int]bool{}
	// The walker gives no error, and neither does the walk.
	_ = ast.Walk(commentMarkdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Document, *ast.List, *ast.ListItem, *ast.Paragraph, *ast.TextBlock:
			return ast.WalkContinue, nil
		case *ast.Text:
			if start := n.Segment.Start; entering && (start == 0 || source[start-1] == '\n') {
				plain[start] = true
			}
		}
		return ast.WalkSkipChildren, nil
	})
	return plain
}
