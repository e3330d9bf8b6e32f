package fieldedit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindMissing(t *testing.T) {
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
