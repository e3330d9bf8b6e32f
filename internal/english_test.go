package internal_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Limits of a sentence, in words. A page may have one in twenty above the soft one.
const (
	maxSentence  = 40
	longSentence = 30
	longOneIn    = 20
)

// TestEnglish holds that sentences in the documentation are short: tables, headings and code don't count.
func TestEnglish(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../README.md", "../CHANGELOG.md")
	if len(pages) < 30 {
		t.Fatalf("only %d pages are there", len(pages))
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			checkSentences(t, sentencesOf(string(text)))
		})
	}
}

// TestEnglishOfComments holds that sentences in comments are short, by package, those of tests too.
func TestEnglishOfComments(t *testing.T) {
	packages := map[string][]string{}
	walkSources(t, true, func(path string, _ []byte, _ *token.FileSet, f *ast.File) {
		for _, comment := range f.Comments {
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], sentencesOf(proseOf(comment))...)
		}
	})
	if len(packages) < 60 {
		t.Fatalf("only %d packages are there", len(packages))
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		t.Run(dir, func(t *testing.T) { checkSentences(t, packages[dir]) })
	}
}

// proseOf is a comment without its code, whose lines begin with a tab.
func proseOf(comment *ast.CommentGroup) string {
	var prose strings.Builder
	for line := range strings.Lines(comment.Text()) {
		if strings.HasPrefix(line, "\t") {
			line = "\n"
		}
		prose.WriteString(line)
	}
	return prose.String()
}

func checkSentences(t *testing.T, sentences []string) {
	t.Helper()
	var long []string
	for _, sentence := range sentences {
		switch n := len(strings.Fields(sentence)); {
		case n > maxSentence:
			t.Errorf("%d words, more than %d: %s", n, maxSentence, sentence)
		case n > longSentence:
			long = append(long, sentence)
		}
	}
	if len(long)*longOneIn > len(sentences) {
		t.Errorf("%d of %d sentences have more than %d words, more than one in %d:\n%s",
			len(long), len(sentences), longSentence, longOneIn, strings.Join(long, "\n"))
	}
}

// riddles are words that stand in no test's name: a name says what the test is about, its comment
// and its cases hold the sentence.
var riddles = []string{"what", "whatever", "who", "whoever", "whom", "whose", "nobody", "nobodys"}

// TestTestNames holds that tests are named by their subject.
func TestTestNames(t *testing.T) {
	seen := 0
	walkSources(t, true, func(path string, _ []byte, fset *token.FileSet, f *ast.File) {
		for _, decl := range f.Decls {
			fn, isFunc := decl.(*ast.FuncDecl)
			if !isFunc || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || !strings.HasSuffix(path, "_test.go") {
				continue
			}
			seen++
			for _, word := range camelWords(fn.Name.Name) {
				if slices.Contains(riddles, word) {
					t.Errorf("%s: %s has the word %s: name its subject", fset.Position(fn.Pos()), fn.Name.Name, word)
				}
			}
		}
	})
	if seen < 2000 {
		t.Fatalf("only %d tests are there", seen)
	}
}

var (
	codeSpan     = regexp.MustCompile("(`+)[^`]+(`+)")
	markdownLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	htmlComment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	listItem     = regexp.MustCompile(`^([-*+]|[0-9]+\.) `)
	sentenceEnd  = regexp.MustCompile(`[.!?][)"'*_]*\s+`)
)

// sentencesOf splits a page's prose. A paragraph and an item of a list end a sentence; code
// within one is a single word.
func sentencesOf(page string) []string {
	var sentences []string
	var paragraph []string
	finish := func() {
		text := strings.Join(paragraph, " ")
		text = codeSpan.ReplaceAllString(text, "code")
		text = markdownLink.ReplaceAllString(text, "$1")
		start := 0
		for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
			sentences = append(sentences, strings.TrimSpace(text[start:end[1]]))
			start = end[1]
		}
		if rest := strings.TrimSpace(text[start:]); rest != "" {
			sentences = append(sentences, rest)
		}
		paragraph = nil
	}
	inCode := false
	for line := range strings.Lines(htmlComment.ReplaceAllString(page, "")) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), ">"))
		switch {
		case strings.HasPrefix(line, "```"):
			finish()
			inCode = !inCode
		case inCode:
		case line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#"):
			finish()
		case listItem.MatchString(line):
			finish()
			paragraph = append(paragraph, listItem.ReplaceAllString(line, ""))
		default:
			paragraph = append(paragraph, line)
		}
	}
	finish()
	return sentences
}

// TestSentences holds what a sentence of a page is.
func TestSentences(t *testing.T) {
	page := strings.Join([]string{
		"<!-- Not this. -->", "# Nor this", "One goes on", "here. [Two](x.md#y) is `a b. c`! Three (see 1.2.0).", "",
		"| no | table |", "- Four:", "  still four.", "1. Five", "```", "No code.", "```", "> Six.",
	}, "\n")
	got := sentencesOf(page)
	want := []string{"One goes on here.", "Two is code!", "Three (see 1.2.0).", "Four: still four.", "Five", "Six."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

// TestProse holds which part of a comment is prose.
func TestProse(t *testing.T) {
	comment := &ast.CommentGroup{List: []*ast.Comment{
		{Text: "// One goes on"}, {Text: "// here. Two:"}, {Text: "//"}, {Text: "//\tno code"}, {Text: "//"}, {Text: "//   - three"},
		{Text: "//     goes on"}, {Text: "//go:generate no directive"}, {Text: "// Four."},
	}}
	got := sentencesOf(proseOf(comment))
	if want := []string{"One goes on here.", "Two:", "three goes on Four."}; !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}
