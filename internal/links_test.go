package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	linkTarget    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	outsideLink   = regexp.MustCompile(`^[a-z]+:`)
	headingOfPage = regexp.MustCompile(`^#{1,6} (.*)`)
	notInAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinks holds that each link of the documentation to a file, or to a heading of a page, has it.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../.github/*.md", "../deploy/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		for _, link := range linkTarget.FindAllStringSubmatch(withoutCode(readPage(t, page)), -1) {
			if outsideLink.MatchString(link[1]) {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which isn't there", page, link[1])
				continue
			}
			if anchor != "" && filepath.Ext(target) == ".md" && !anchorsOf(readPage(t, target))[anchor] {
				t.Errorf("%s links to %s, a heading that isn't there", page, link[1])
			}
		}
	}
	if links < 100 {
		t.Fatalf("only %d links were looked at", links)
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutCode is a page without its blocks of code.
func withoutCode(page string) string {
	var rest strings.Builder
	inCode := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		} else if !inCode {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// anchorsOf are the anchors that forges give a page's headings: a second one of a name gets a number.
func anchorsOf(page string) map[string]bool {
	anchors := map[string]bool{}
	count := map[string]int{}
	for line := range strings.Lines(withoutCode(page)) {
		heading := headingOfPage.FindStringSubmatch(strings.TrimSpace(line))
		if heading == nil {
			continue
		}
		text := markdownLink.ReplaceAllString(heading[1], "$1")
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if n := count[anchor]; n > 0 {
			anchors[anchor+"-"+strconv.Itoa(n)] = true
		}
		count[anchor]++
		anchors[anchor] = true
	}
	return anchors
}

// TestAnchors holds how anchors are made of headings.
func TestAnchors(t *testing.T) {
	anchors := anchorsOf("# What it `has`, [here](x.md)\n\n## Twice\n```\n## Not this\n```\n## Twice\n")
	for anchor, want := range map[string]bool{"what-it-has-here": true, "twice": true, "twice-1": true, "twice-2": false, "not-this": false} {
		if anchors[anchor] != want {
			t.Errorf("%s: %v, want %v", anchor, anchors[anchor], want)
		}
	}
}
