package internal_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// How much there is to read, in words: in all, and on a user's path.
const (
	maxWords     = 50_000
	maxUserWords = 15_000
)

// userPath are the pages that a user reads from the first day to the first trouble.
var userPath = []string{"tutorial", "first-promotion", "pipeline-reference", "gates", "pull-requests", "server", "troubleshooting"}

// listPages are README and the pages of docs.
func listPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 30 {
		t.Fatalf("only %d pages are there", len(pages))
	}
	return append(pages, "../README.md")
}

// TestWordsOfPages holds how much there is to read.
func TestWordsOfPages(t *testing.T) {
	count := func(pages []string) (words int) {
		for _, page := range pages {
			words += len(strings.Fields(readPage(t, page)))
		}
		return words
	}
	if words := count(listPages(t)); words > maxWords {
		t.Errorf("README and docs have %d words, more than %d", words, maxWords)
	}
	var path []string
	for _, name := range userPath {
		path = append(path, "../docs/"+name+".md")
	}
	if words := count(path); words > maxUserWords {
		t.Errorf("a user's path has %d words, more than %d: %v", words, maxUserWords, userPath)
	}
}

// TestPagesAreReached holds that links lead from README to each page.
func TestPagesAreReached(t *testing.T) {
	reached, next := map[string]bool{}, []string{"../README.md"}
	for len(next) > 0 {
		page := next[0]
		next = next[1:]
		if reached[page] {
			continue
		}
		reached[page] = true
		for _, link := range linkTarget.FindAllStringSubmatch(withoutCode(readPage(t, page)), -1) {
			path, _, _ := strings.Cut(link[1], "#")
			if strings.HasSuffix(path, ".md") && !outsideLink.MatchString(path) {
				next = append(next, filepath.Join(filepath.Dir(page), path))
			}
		}
	}
	for _, page := range listPages(t) {
		if !reached[page] {
			t.Errorf("no link leads from README to %s", page)
		}
	}
}

// TestCommandsOfReadme holds that README shows the two commands that a newcomer needs, and that what
// must pass calls its test command.
func TestCommandsOfReadme(t *testing.T) {
	readme := readPage(t, "../README.md")
	for _, command := range []string{"make demo", "make test"} {
		if !regexp.MustCompile(`(?m)^` + command + `\b`).MatchString(readme) {
			t.Errorf("README doesn't show %s", command)
		}
	}
	if !regexp.MustCompile(`(?m)^step .* make test\b`).MatchString(readPage(t, "../.ci/run")) {
		t.Error(".ci/run doesn't call README's test command")
	}
}

// valuesIn are the values that a Go file's lines give to names, by a pattern with one group.
func valuesIn(t *testing.T, path, pattern string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		values[found[1]] = true
	}
	return values
}

// TestCommandsInPages holds that the pages' commands of comments are those that there are.
func TestCommandsInPages(t *testing.T) {
	verbs := valuesIn(t, "promotion/command/verbs.go", `Verb = "([a-z]+)"`)
	if len(verbs) < 10 {
		t.Fatalf("only %d verbs are declared", len(verbs))
	}
	shown := regexp.MustCompile("`/liftlock ([a-z]+)")
	for _, page := range listPages(t) {
		for _, command := range shown.FindAllStringSubmatch(readPage(t, page), -1) {
			if !verbs[command[1]] {
				t.Errorf("%s shows /liftlock %s, which is no command", page, command[1])
			}
		}
	}
}

// TestStatesOfPage holds that docs/promotion.md draws the states that decisions have, and no
// others, and says what each means.
func TestStatesOfPage(t *testing.T) {
	states := valuesIn(t, "promotion/decision.go", `(?m)^\t[A-Z][a-z]+ += "([a-z]+)"`)
	page := readPage(t, "../docs/promotion.md")
	drawing := regexp.MustCompile("(?s)```mermaid\n(.*?)```\n\nBeside these stand ([^.]*)\\.").FindStringSubmatch(page)
	if drawing == nil || len(states) < 15 {
		t.Fatalf("%d states, and the drawing %q", len(states), drawing)
	}
	shown := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^  (\S+) --> (\S+): `).FindAllStringSubmatch(drawing[1], -1) {
		shown[arrow[1]], shown[arrow[2]] = true, true
	}
	delete(shown, "[*]")
	for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(drawing[2], -1) {
		if shown[name[1]] {
			t.Errorf("%s is drawn, and beside the drawing", name[1])
		}
		shown[name[1]] = true
	}
	have, want := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(states))
	if !slices.Equal(have, want) {
		t.Errorf("the page shows the states %v, not %v", have, want)
	}
	for _, state := range want {
		if !strings.Contains(page, "- `"+state+"`") {
			t.Errorf("the page doesn't say what %s means", state)
		}
	}
}
