package fieldedit

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

const editsPage = "../../docs/edits.md"

var (
	example = regexp.MustCompile("(?s)<!-- (set|refused|file|picks|carry):? ?([^>]*?) -->\n(.*?)\n\n")
	fence   = regexp.MustCompile("(?s)```[a-z]+\n(.*?)```")
	word    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// TestEditsPage runs the examples of docs/edits.md.
func TestEditsPage(t *testing.T) {
	page, err := os.ReadFile(editsPage)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	sample := ""
	for _, m := range example.FindAllStringSubmatch(string(page)+"\n\n", -1) {
		kind, arg, body := m[1], m[2], m[3]
		ran[kind]++
		var blocks []string
		for _, f := range fence.FindAllStringSubmatch(body, -1) {
			blocks = append(blocks, f[1])
		}
		switch kind {
		case "set":
			before, after := splitDiff(blocks[0])
			got, _, err := setAsOnCommandLine(t, arg, before)
			if err != nil {
				t.Errorf("%s: %v", arg, err)
			} else if diff := cmp.Diff(after, got); diff != "" {
				t.Errorf("%s (-page +got)\n%s", arg, diff)
			}
		case "refused":
			_, _, err := setAsOnCommandLine(t, arg, blocks[0])
			var r *RefusedError
			if !errors.As(err, &r) || err.Error() != strings.TrimSpace(blocks[1]) {
				t.Errorf("%s: %v", arg, err)
			}
		case "file":
			sample = blocks[0]
		case "picks":
			checkPicks(t, sample, body)
		case "carry":
			var carry []pipeline.Carry
			if err := yaml.Unmarshal([]byte(blocks[0]), &carry); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(newTree(nil), Overlay{Roots: []string{"."}, Carry: carry}); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"set": 3, "refused": 5, "file": 1, "picks": 1, "carry": 1}, ran); diff != "" {
		t.Errorf("examples (-want +ran)\n%s", diff)
	}
	for _, m := range regexp.MustCompile("(?m)^- `(.*?)`:").FindAllStringSubmatch(pathsSection(string(page)), -1) {
		for _, p := range strings.Split(m[1], "`, `") {
			if _, err := fieldpath.ParsePattern(p); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
}

func pathsSection(page string) string {
	_, page, _ = strings.Cut(page, "\n## Paths\n")
	page, _, _ = strings.Cut(page, "\n## ")
	return page
}

// splitDiff are the two files of a diff block.
func splitDiff(diff string) (before, after string) {
	for _, line := range strings.SplitAfter(diff, "\n") {
		if line == "" {
			continue
		}
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	return before, after
}

func setAsOnCommandLine(t *testing.T, args, before string) (string, []Change, error) {
	t.Helper()
	words := word.FindAllString(args, -1)
	var paths []string
	for _, w := range words[1:] {
		paths = append(paths, regexp.MustCompile(`'([^']*)'|"([^"]*)"`).ReplaceAllString(w, "$1$2"))
	}
	after, changes, err := Set([]byte(before), words[0], parseOps(t, paths, nil))
	return string(after), changes, err
}

// checkPicks holds that the table says what its paths pick in the sample.
func checkPicks(t *testing.T, sample, table string) {
	t.Helper()
	d, err := parseDocument([]byte(sample), formatYAML)
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string][]string{}, map[string][]string{}
	path := ""
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.ReplaceAll(row, "`", ""), "|")
		if p := strings.TrimSpace(cells[1]); p != "" {
			path = p
		}
		want[path] = append(want[path], strings.TrimSpace(cells[2])+" = "+strings.TrimSpace(cells[3]))
	}
	for path := range want {
		p, err := newPathTemplate(path, placeholder.Values{})
		if err != nil {
			t.Fatal(err)
		}
		places, err := d.expandTemplate(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range places {
			v, err := d.readField(fieldAddress{kind: KindYAML, path: one.path})
			if err != nil {
				t.Fatal(err)
			}
			got[path] = append(got[path], one.path.String()+" = "+v.value)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-page +got)\n%s", diff)
	}
}
