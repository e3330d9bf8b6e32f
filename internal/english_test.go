package internal_test

import (
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
			sentences := sentencesOf(string(text))
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
		})
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
