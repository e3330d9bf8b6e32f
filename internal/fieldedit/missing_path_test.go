package fieldedit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindMissing(t *testing.T) {
	const flat = "image.repository: web\nimage.tag: v1\nweb:\n  image.tag: v1\nannotations:\n  app.kubernetes.io/version: v1\nlist:\n  - name: a\n    image.tag: v1\n"
	const values = "image:\n  repository: web\n  tag: v1\nempty: {}\nlist: [1]\n"
	tests := []struct {
		name, file, in, path string
		near                 string
		refusal              string // empty: it is there, or Set refuses it
	}{
		{"is there", "values.yaml", values, "image.tag=2", "", ""},
		{"misspelt", "values.yaml", values, "image.tg=2", "tag", `values.yaml:2: image.tg: it isn't there: image has no "tg", but repository, tag; did you mean "tag"?`},
		{"misspelt on the way", "values.yaml", values, "imge.tag=2", "image", `values.yaml:1: imge.tag: it isn't there: the file has no "imge", but image, empty, list; did you mean "image"?`},
		{"unlike all", "values.yaml", values, "image.pullPolicy=Always", "", `values.yaml:2: image.pullPolicy: it isn't there: image has no "pullPolicy", but repository, tag`},
		{"nothing there", "values.yaml", values, "empty.tag=2", "", "values.yaml:4: empty.tag: it isn't there: empty is empty"},
		{"not a mapping", "values.yaml", values, "list.tag=2", "", ""},
		{"a key that a terminal would obey", "values.yaml", "\"\\e[31mtag\": 1\n", "x=2", "", `values.yaml:1: x: it isn't there: the file has no "x", but "\x1b[31mtag"`},
		{"one key with a dot", "values.yaml", flat, "image.tag=2", "image.repository", `values.yaml:1: image.tag: it isn't there: the file has no "image", but image.repository, image.tag, web, annotations, list; did you mean ["image.tag"], which is there?`},
		{"one key deeper", "values.yaml", flat, "web.image.tag=2", "image.tag", `values.yaml:4: web.image.tag: it isn't there: web has no "image", but image.tag; did you mean web["image.tag"], which is there?`},
		{"a key of several dots", "values.yaml", flat, "annotations.app.kubernetes.io/version=2", "app.kubernetes.io/version", `values.yaml:6: annotations.app.kubernetes.io/version: it isn't there: annotations has no "app", but app.kubernetes.io/version; did you mean annotations["app.kubernetes.io/version"], which is there?`},
		{"one key in a list's item", "values.yaml", flat, "list[name=a].image.tag=2", "image.tag", `values.yaml:8: list[name=a].image.tag: it isn't there: list[name=a] has no "image", but name, image.tag; did you mean list[name=a]["image.tag"], which is there?`},
		{"two keys, written as one", "values.yaml", values, `image\.tag=2`, "image", `values.yaml:1: ["image.tag"]: it isn't there: the file has no "image.tag", but image, empty, list; did you mean image.tag, which is there?`},
		{"one key of which only the beginning is there", "values.yaml", flat, "image.pullPolicy=Always", "image.repository", `values.yaml:1: image.pullPolicy: it isn't there: the file has no "image", but image.repository, image.tag, web, annotations, list; did you mean "image.repository"?`},
		{"one key in JSON", "config.json", `{"image.tag": "1"}`, "/image/tag=2", "image.tag", `config.json:1: /image/tag: it isn't there: the file has no "image", but image.tag; did you mean /image.tag, which is there?`},
		{"JSON", "config.json", `{"image": {"tag": "1"}}`, "/image/tga=2", "tag", `config.json:1: /image/tga: it isn't there: /image has no "tga", but tag; did you mean "tag"?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			missing, err := FindMissing([]byte(tt.in), tt.file, parseOps(t, []string{tt.path}, nil))
			if err != nil {
				t.Fatal(err)
			}
			var near, refusal string
			for _, m := range missing {
				near, refusal = m.Near(), m.Refuse(tt.file).Error()
			}
			if diff := cmp.Diff([]string{tt.near, tt.refusal}, []string{near, refusal}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestOtherSpellings names what stays beside a value that is set.
func TestOtherSpellings(t *testing.T) {
	for name, c := range map[string]struct{ in, path, want string }{
		"both":                     {"image.tag: v1\nimage:\n  tag: v1\n", "image.tag=2", `["image.tag"]`},
		"both, the other is set":   {"image.tag: v1\nimage:\n  tag: v1\n", `image\.tag=2`, "image.tag"},
		"one":                      {"image:\n  tag: v1\n", "image.tag=2", ""},
		"one that has keys itself": {"image.tag: {a: b}\nimage:\n  tag: v1\n", "image.tag=2", ""},
		"none of them":             {"image.tag: v1\n", "image.tag=2", ""},
		"an alias":                 {"image.tag: &tag v1\nimage:\n  tag: v1\nother: *tag\n", "image.tag=2", `["image.tag"]`},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := FindOtherSpellings([]byte(c.in), "values.yaml", parseOps(t, []string{c.path}, nil))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range found {
				got += o.Spelled
			}
			if got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

// TestSpellingIsBounded holds that a file whose every key fits is searched no longer than it may
// be.
func TestSpellingIsBounded(t *testing.T) {
	in := strings.Builder{}
	in.WriteString("k0: &k0 {a: {}}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&in, "k%d: &k%d {a: *k%d, a.a: *k%d}\n", i, i, i-1, i-1)
	}
	path := "k29" + strings.Repeat(".a", 60)
	d, err := parseDocument([]byte(in.String()), formatYAML)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.otherSpelling(parseOps(t, []string{path + "=1"}, nil)[0].Path.Segments()); got != "" {
		t.Errorf("it is %q", got)
	}
}
