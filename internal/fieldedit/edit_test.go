package fieldedit

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

func mustPath(t testing.TB, s string) fieldpath.Path {
	t.Helper()
	p, err := fieldpath.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSetYAML(t *testing.T) {
	tests := []struct {
		name, in, path, value, want string
	}{
		{"plain string", "image:\n  tag: v1 # the tag\n", "image.tag", "v2", "image:\n  tag: v2 # the tag\n"},
		{"double quotes are kept", "tag: \"v1\"\n", "tag", `a"b\c`, "tag: \"a\\\"b\\\\c\"\n"},
		{"single quotes are kept", "tag: 'v1'\n", "tag", "it's", "tag: 'it''s'\n"},
		{"single quotes can't hold a line break", "tag: 'v1'\n", "tag", "a\nb", "tag: \"a\\nb\"\n"},
		{"a float would lose its zero", "tag: v1\n", "tag", "1.20", "tag: \"1.20\"\n"},
		{"a float after a float would too", "tag: 1.19\n", "tag", "1.20", "tag: \"1.20\"\n"},
		{"a float stays a float", "ratio: 1.5\n", "ratio", "2.25", "ratio: 2.25\n"},
		{"an integer stays an integer", "replicas: 3\n", "replicas", "5", "replicas: 5\n"},
		{"a string of digits stays a string", "tag: v1\n", "tag", "5", "tag: \"5\"\n"},
		{"an octal mode stays one", "mode: 0644\n", "mode", "0600", "mode: 0600\n"},
		{"a commit in digits isn't octal", "tag: 1234567\n", "tag", "0123456", "tag: \"0123456\"\n"},
		{"a commit that looks like a float", "tag: abcdef0\n", "tag", "12e4567", "tag: \"12e4567\"\n"},
		{"YAML 1.1 boolean", "tag: v1\n", "tag", "on", "tag: \"on\"\n"},
		{"a boolean stays one", "enabled: on\n", "enabled", "off", "enabled: off\n"},
		{"hexadecimal", "tag: v1\n", "tag", "0x1", "tag: \"0x1\"\n"},
		{"exponent", "tag: v1\n", "tag", "1e3", "tag: \"1e3\"\n"},
		{"underscores", "tag: v1\n", "tag", "1_000", "tag: \"1_000\"\n"},
		{"null", "tag: v1\n", "tag", "~", "tag: \"~\"\n"},
		{"empty", "tag: v1\n", "tag", "", "tag: \"\"\n"},
		{"sexagesimal", "tag: v1\n", "tag", "1:20", "tag: \"1:20\"\n"},
		{"date", "tag: v1\n", "tag", "2026-01-02", "tag: \"2026-01-02\"\n"},
		{"three numbers are no number", "tag: v1\n", "tag", "1.4.2", "tag: 1.4.2\n"},
		{"merge key as a value", "tag: v1\n", "tag", "<<", "tag: \"<<\"\n"},
		{"comment in a value", "tag: v1\n", "tag", "a #b", "tag: \"a #b\"\n"},
		{"colon in a value", "tag: v1\n", "tag", "a: b", "tag: \"a: b\"\n"},
		{"an image reference needs no quotes", "image: r.example:5000/web:v1\n", "image", "r.example:5000/web:v2", "image: r.example:5000/web:v2\n"},
		{"an empty value", "tag:\nx: 1\n", "tag", "v2", "tag: v2\nx: 1\n"},
		{"an empty value before a comment", "tag:   # which\n", "tag", "v2", "tag: v2   # which\n"},
		{"null becomes a string", "tag: null\n", "tag", "5", "tag: \"5\"\n"},
		{"CRLF", "a: 1\r\nimage:\r\n  tag: v1\r\nb: 2\r\n", "image.tag", "v2", "a: 1\r\nimage:\r\n  tag: v2\r\nb: 2\r\n"},
		{"lone CR", "a: 1\rtag: v1\rb: 2\r", "tag", "v2", "a: 1\rtag: v2\rb: 2\r"},
		{"BOM", "\ufefftag: v1\n", "tag", "v2", "\ufefftag: v2\n"},
		{"BOM and a later line", "\ufeffa: 1\ntag: v1\n", "tag", "v2", "\ufeffa: 1\ntag: v2\n"},
		{"no trailing newline", "tag: v1", "tag", "v2", "tag: v2"},
		{"tab before a comment", "tag: v1\t# x\n", "tag", "v2", "tag: v2\t# x\n"},
		{"flow", "image: {repo: x, tag: v1}\n", "image.tag", "v2", "image: {repo: x, tag: v2}\n"},
		{"a comma in flow", "image: {repo: x, tag: v1}\n", "image.tag", "a,b", "image: {repo: x, tag: \"a,b\"}\n"},
		{"an empty value in flow", "image: {tag: , repo: x}\n", "image.tag", "v2", "image: {tag: v2 , repo: x}\n"},
		{"an empty value ends flow", "image: {tag: }\n", "image.tag", "v2", "image: {tag: v2 }\n"},
		{"non-ASCII before", "ключ: {名前: \"é𝄞\", tag: v1}\n", "ключ.tag", "v2", "ключ: {名前: \"é𝄞\", tag: v2}\n"},
		{"non-ASCII value", "tag: v1\n", "tag", "versión-é", "tag: versión-é\n"},
		{"emoji", "tag: \"v1\"\n", "tag", "v2🚀", "tag: \"v2🚀\"\n"},
		{"index", "hosts:\n- name: a\n- name: b\n", "hosts[1].name", "c", "hosts:\n- name: a\n- name: c\n"},
		{"match", "cs:\n- name: web\n  image: x:1\n- name: db\n  image: y:1\n", "cs[name=db].image", "y:2", "cs:\n- name: web\n  image: x:1\n- name: db\n  image: y:2\n"},
		{"item of a list", "args:\n  - --a\n  - v1\n", "args[1]", "v2", "args:\n  - --a\n  - v2\n"},
		{"pointer", "a/b:\n- tag: v1\n", "/a~1b/0/tag", "v2", "a/b:\n- tag: v2\n"},
		{"quoted key", "annotations:\n  a.b/c: v1\n", `annotations["a.b/c"]`, "v2", "annotations:\n  a.b/c: v2\n"},
		{"second document", "a: 1\n---\ntag: v1\n...\n---\nb: 2\n", "tag", "v2", "a: 1\n---\ntag: v2\n...\n---\nb: 2\n"},
		{"a key with a question mark", "? tag\n: v1\n", "tag", "v2", "? tag\n: v2\n"},
		{"a document's end", "tag: v1\n...\n", "tag", "v2", "tag: v2\n...\n"},
		{"a document on the marker's line", "--- {tag: v1}\n", "tag", "v2", "--- {tag: v2}\n"},
		{"a version of YAML", "%YAML 1.1\n---\ntag: v1\n", "tag", "v2", "%YAML 1.1\n---\ntag: v2\n"},
		{"trailing spaces", "tag: v1  \t \nb: 1  \n", "tag", "v2", "tag: v2  \t \nb: 1  \n"},
		{"a question mark in flow", "{tag: v1}\n", "tag", "a?b", "{tag: \"a?b\"}\n"},
		{"a question mark in block", "tag: v1\n", "tag", "a?b", "tag: a?b\n"},
		{"a document by its name", "metadata: {name: a}\nv: 1\n---\nmetadata: {name: b}\nv: 1\n", "[metadata.name=b].v", "2", "metadata: {name: a}\nv: 1\n---\nmetadata: {name: b}\nv: 2\n"},
		{"a document by its place", "v: x\n---\n# none\n---\nv: x\n", "[1].v", "w", "v: x\n---\n# none\n---\nv: w\n"},
		{"the only document by its name", "metadata: {name: a}\nv: x\n", "[metadata.name=a].v", "w", "metadata: {name: a}\nv: w\n"},
		{"JSONPath", "a:\n- {x: y, c: v1}\n", "$.a[?(@.x=='y')].c", "v2", "a:\n- {x: y, c: v2}\n"},
		{"quoted template elsewhere", "host: '{{ .Values.x }}'\ntag: v1\n", "tag", "v2", "host: '{{ .Values.x }}'\ntag: v2\n"},
		{"alias elsewhere", "a: &a {x: 1}\nb: *a\ntag: v1\n", "tag", "v2", "a: &a {x: 1}\nb: *a\ntag: v2\n"},

		{"a key is added behind its siblings", "image:\n  repo: x # r\n\nother: 1\n", "image.tag", "v2", "image:\n  repo: x # r\n  tag: v2\n\nother: 1\n"},
		{"a key is added as a string", "image:\n  repo: x\n", "image.tag", "1.20", "image:\n  repo: x\n  tag: \"1.20\"\n"},
		{"a key is added without a trailing newline", "image:\n    repo: x", "image.tag", "v2", "image:\n    repo: x\n    tag: v2"},
		{"a key is added with CRLF", "image:\r\n  repo: x\r\n", "image.tag", "v2", "image:\r\n  repo: x\r\n  tag: v2\r\n"},
		{"a key is added behind a block scalar", "a:\n  text: |\n    one\n\n    # two\n\n  # about b\nb: 1\n", "a.tag", "v2", "a:\n  text: |\n    one\n\n    # two\n  tag: v2\n\n  # about b\nb: 1\n"},
		{"a key is added behind a list", "a:\n  l:\n  - x\n  - {y: [1, 2]} # z\nb: 1\n", "a.tag", "v2", "a:\n  l:\n  - x\n  - {y: [1, 2]} # z\n  tag: v2\nb: 1\n"},
		{"a key is added in flow", "image: {repo: x}\n", "image.tag", "v2", "image: {repo: x, tag: v2}\n"},
		{"a key is added in empty flow", "image: {}\n", "image.tag", "v2", "image: {tag: v2}\n"},
		{"a key is added in flow over lines", "image: {\n  repo: x, # r\n}\n", "image.tag", "v2", "image: {\n  repo: x,\n  tag: v2, # r\n}\n"},
		{"mappings are added", "a:\n    b: 1\n", "image.tag", "v2", "a:\n    b: 1\nimage:\n    tag: v2\n"},
		{"a key that needs quotes is added", "a: 1\n", "on", "v2", "a: 1\n\"on\": v2\n"},
		{"a key keeps its siblings' order", "image:\n  digest: x\n  pullPolicy: Always # p\n  repository: r\n\n  user: 5\n", "image.tag", "v2", "image:\n  digest: x\n  pullPolicy: Always # p\n  repository: r\n  tag: v2\n\n  user: 5\n"},
		{"a key keeps the order in flow", "{a: 1, c: 2, d: 3}\n", "b", "x", "{a: 1, b: x, c: 2, d: 3}\n"},
		{"a key that sorts first goes last", "b: 1\nc: 2\nd: 3\n", "a", "x", "b: 1\nc: 2\nd: 3\na: x\n"},
		{"two keys tell no order", "a: 1\nc: 2\n", "b", "x", "a: 1\nc: 2\nb: x\n"},
		{"a key is added below a comment at the end", "image:\n  repo: x\n  # tag is set elsewhere\nother: 1\n", "image.tag", "v2", "image:\n  repo: x\n  tag: v2\n  # tag is set elsewhere\nother: 1\n"},
		{"a key is added to a document of several", "a: {x: 1}\n---\nmetadata:\n  name: b\nspec:\n    y: 1\n", "[metadata.name=b].spec.tag", "v2", "a: {x: 1}\n---\nmetadata:\n  name: b\nspec:\n    y: 1\n    tag: v2\n"},
		{"a key is added beside one with a question mark", "a:\n  ? b\n  : 1\n  c: 2\nx: 1\n", "a.tag", "v2", "a:\n  ? b\n  : 1\n  c: 2\n  tag: v2\nx: 1\n"},
		{"a key is added in a list's item", "l:\n  - name: a\n    x: 1\n  - name: b\n", "l[name=a].tag", "v2", "l:\n  - name: a\n    x: 1\n    tag: v2\n  - name: b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPath(t, tt.path)
			got, c, err := SetYAML([]byte(tt.in), p, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Fatalf("got\n%q\nwant\n%q", got, tt.want)
			}
			if v, ok, err := GetYAML(got, p); err != nil || !ok || v != tt.value {
				t.Errorf("reads back as %q, %v, %v", v, ok, err)
			}
			if c.New != tt.value || c.Line < 1 || c.Path != p.String() {
				t.Errorf("change %+v", c)
			}
			again, _, err := SetYAML(got, p, tt.value)
			if err != nil || string(again) != tt.want {
				t.Errorf("again: %q, %v", again, err)
			}
		})
	}
}

func TestSetYAMLRefuses(t *testing.T) {
	tests := []struct {
		name, in, path string
		line           int
		reason         string
	}{
		{"alias", "v: &v x\ntag: *v\n", "tag", 2, "alias *v"},
		{"anchored scalar", "tag: &v x\nb: *v\n", "tag", 1, "anchor &v"},
		{"anchored mapping", "a: &m\n  tag: x\nb: *m\n", "a.tag", 1, "anchor &m"},
		{"through an alias", "a: &m\n  tag: x\nb: *m\n", "b.tag", 3, "alias *m"},
		{"tag", "tag: !!str 1\n", "tag", 1, "tag !!str"},
		{"own tag", "tag: !x 1\n", "tag", 1, "tag !x"},
		{"non-specific tag", "tag: ! v1\n", "tag", 1, "spans"},
		{"literal", "a: 1\ntag: |\n  x\n", "tag", 2, "block scalar"},
		{"folded", "tag: >-\n  x\n", "tag", 1, "block scalar"},
		{"merge key", "b: &b {tag: x}\na:\n  <<: *b\n  tag: y\n", "a.tag", 3, "merge key"},
		{"duplicate key", "a:\n  tag: x\n  tag: y\n", "a.tag", 3, "twice"},
		{"the same key to some readers", "on: x\ntag: y\nyes: z\n", "on", 3, "the same to some readers"},
		{"the same number", "1: x\n0x1: z\n", "1", 2, "the same to some readers"},
		{"zero", "0: x\n-0.0: z\n", "0", 2, "the same to some readers"},
		{"duplicate item", "l:\n- n: a\n- n: a\n", "l[n=a].x", 3, "two items"},
		{"template", "a: 1\n{{ if .x }}\ntag: v1\n{{ end }}\n", "tag", 0, "template"},
		{"template value", "tag: {{ .x }}\n", "tag", 1, "template"},
		{"quoted template value", "tag: \"{{ .x }}\"\n", "tag", 1, "template"},
		{"several documents", "tag: a\n---\ntag: b\n", "tag", 3, "several documents"},
		{"several documents without it", "a: a\n---\nb: b\n", "tag", 0, "2 documents"},
		{"a document that isn't there", "metadata: {name: a}\n---\nmetadata: {name: b}\n", "[metadata.name=c].v", 0, "there are a, b"},
		{"too high a document", "a: 1\n---\nb: 1\n", "[2].v", 0, "only 2 documents"},
		{"two documents of a name", "n: a\nv: 1\n---\nn: a\nv: 1\n", "[n=a].v", 4, "two items have n=a"},
		{"empty file", "# nothing\n", "tag", 0, "empty"},
		{"multi-line plain", "tag: a\n  b\n", "tag", 1, "several lines"},
		{"multi-line quoted", "tag: \"a\n  b\"\n", "tag", 1, "several lines"},
		{"mapping", "tag: {a: 1}\n", "tag", 1, "a mapping"},
		{"list", "tag: [a]\n", "tag", 1, "a list"},
		{"scalar on the way", "a: x\n", "a.tag", 1, "a is a scalar"},
		{"list on the way", "a: [x]\n", "a.tag", 1, "pick an item"},
		{"index too high", "a: [x]\n", "a[1]", 1, "only 1 items"},
		{"no such item", "a: [{n: x}]\n", "a[n=y].z", 1, "there are x"},
		{"a mapping has no items", "a: {b: 1}\n", "a[0]", 1, "not a list"},
		{"a list that isn't there", "a: 1\n", "l[0]", 1, "add the list"},
		{"not YAML", "a: [\n", "a", 0, "not YAML"},
		{"not UTF-8", "a: 1\nb: \xff\n", "a", 2, "UTF-8"},
		{"UTF-16", "\xff\xfea\x00:\x00", "a", 1, "UTF-8"},
		{"LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a", 0, "LFS"},
		{"colon at the end of flow", "a: {tag:}\n", "a.tag", 1, "readers disagree"},
		{"set member without a value", "a: {tag, b}\n", "a.tag", 1, "no value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := SetYAML([]byte(tt.in), mustPath(t, tt.path), "new")
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("got %q, %v", got, err)
			}
			if tt.line != 0 && r.Line != tt.line || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("refused with %q", err)
			}
			if r.Field == "" {
				t.Errorf("%q names no field", err)
			}
		})
	}
}

func TestGetYAML(t *testing.T) {
	tests := []struct {
		name, in, path, want string
		ok                   bool
		err                  string
	}{
		{"plain", "a: {b: 1.20}\n", "a.b", "1.20", true, ""},
		{"null", "a: ~\n", "a", "", true, ""},
		{"alias", "v: &v x\na: *v\n", "a", "x", true, ""},
		{"through an alias", "v: &v {b: x}\na: *v\n", "a.b", "x", true, ""},
		{"literal", "a: |\n  x\n", "a", "x\n", true, ""},
		{"absent", "a: 1\n", "b.c", "", false, ""},
		{"scalar on the way", "a: 1\n", "a.c", "", false, ""},
		{"mapping", "a: {b: 1}\n", "a", "", false, "not a single value"},
		{"merge key hides whether it is there", "b: &b {t: 1}\na: {<<: *b}\n", "a.t", "", false, "merge key"},
		{"an anchor that contains itself", "a: &a [*a]\n", "a[0][0][0]", "", false, "a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, ok, err := GetYAML([]byte(tt.in), mustPath(t, tt.path))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %q, %v, %v", v, ok, err)
				}
				return
			}
			if v != tt.want || ok != tt.ok || err != nil {
				t.Errorf("got %q, %v, %v", v, ok, err)
			}
		})
	}
}

// TestBounds holds that what is too large is refused before it costs memory.
func TestBounds(t *testing.T) {
	for name, data := range map[string]string{
		"size":  strings.Repeat("#", MaxFileSize+1),
		"nodes": strings.Repeat("- ", maxStructuralChars+1),
		"depth": strings.Repeat("[", 100_000),
	} {
		for as, set := range map[string]func([]byte, fieldpath.Path, string) ([]byte, Change, error){"YAML": SetYAML, "JSON": SetJSON} {
			_, _, err := set([]byte(data), mustPath(t, "a"), "b")
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Errorf("%s of %s: got %v", name, as, err)
			}
		}
	}
}
