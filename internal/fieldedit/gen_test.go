package fieldedit

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// generated is a random document and the paths of the scalars in it.
type generated struct {
	text  string
	paths []string // as fieldpath.Parse reads them
	segs  [][]any  // the same: string keys and int indexes
	eol   string
	hard  map[string]bool // paths of scalars that may be refused
}

// generator writes random YAML (or JSON) in random styles.
type generator struct {
	t    *rapid.T
	b    strings.Builder
	json bool
	eol  string
	step int
	out  *generated
	// anchors are the scalars' and mappings' that were written so far.
	anchors, maps []string
	fixed         []string // paths under which nothing can be edited
}

var genKeys = []string{"image", "tag", "name", "repo", "a.b/c", "on", "ключ", "naïve", "x-y", "host", "1", "true", "with space"}

// genScalars are scalars as they may be written in block style.
var genScalars = []string{
	"v1", "1.4.2", "latest", `"v1"`, "'v1'", `'it''s'`, `"a\"b # c: {d}"`, "1.20", "3", "-7", "true", "off", "0644", "0x1F", "1e3",
	"~", "null", `""`, "''", "é𝄞", `"日本\u00e9\U0001F600"`, "x#y", "a-b", "2024-01-01", "1:20", "---x", "r.example:5000/web:v1", "a, b", "y]",
}

var genJSONScalars = []string{`"v1"`, `"a\"b\\"`, `"é𝄞\ud83d\ude00"`, `""`, "1", "-2.50", "1e3", "true", "false", "null", `"{"`, `"\u2028x"`}

// genValues are values that readers may take for something else.
var genValues = []string{
	"v2", "1.4.3", "1.20", "5", "on", "no", "true", "null", "~", "", "0x1", "0b1", "0o17", "017", "1e3", "1E-5", "1_000", "1:20", "190:20:30.15",
	"2026-01-02", "2026-1-2T10:00:00Z", ".5", "5.", "+1", ".inf", ".NaN", "<<", "=", "y", "N", "-", "--", "?x", ": x", "a: b", "a:", "a #b", "#a",
	"[a]", "{a}", "a,b", "&a", "*a", "!a", "|", ">", "'", `"`, `\`, "%a", "@a", "`a", " a", "a ", "a\tb", "a\nb", "a\r\n", "\u0085", "\u2028", "\ufeff",
	"\x00", "é", "🚀", "\u200b", "sha256:0123456789abcdef", "r.example:5000/web:v2@sha256:00", "---", "...", "--- a", "{{ .x }}", "12345678901234567890", "0123456", "12e4567",
}

func genValue(t *rapid.T) string {
	return rapid.OneOf(rapid.SampledFrom(genValues), rapid.StringN(0, 12, -1)).Draw(t, "value")
}

func generate(t *rapid.T, asJSON bool) *generated {
	g := &generator{t: t, json: asJSON, eol: rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "eol"),
		step: rapid.SampledFrom([]int{2, 2, 4, 3}).Draw(t, "step"), out: &generated{hard: map[string]bool{}}}
	g.out.eol = g.eol
	if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
		g.b.WriteString("\ufeff")
	}
	if asJSON {
		g.flow("", nil, 0, true)
		g.b.WriteString(rapid.SampledFrom([]string{"", g.eol}).Draw(t, "end"))
	} else {
		if g.maybe(4) {
			g.b.WriteString("# über allem" + g.eol)
		}
		if g.maybe(20) {
			g.b.WriteString("%YAML 1.1" + g.eol + "---" + g.eol)
		} else if g.maybe(6) {
			g.b.WriteString(rapid.SampledFrom([]string{"---", "--- # eins", "---  "}).Draw(g.t, "start") + g.eol)
		}
		g.mapping("", nil, 0, 0)
		if g.maybe(6) {
			g.b.WriteString(rapid.SampledFrom([]string{"", "..." + g.eol}).Draw(g.t, "stop") + "---" + g.eol + "zweites: dokument" + g.eol)
		}
	}
	for _, p := range g.out.paths {
		for _, under := range g.fixed {
			if strings.HasPrefix(p, under) {
				g.out.hard[p] = true
			}
		}
	}
	g.out.text = g.b.String()
	if g.maybe(8) {
		g.out.text = strings.TrimSuffix(g.out.text, g.eol)
	}
	return g.out
}

// maybe is true about once in so many times; small numbers are drawn more often.
func (g *generator) maybe(oneIn int) bool {
	return rapid.IntRange(1, oneIn).Draw(g.t, "maybe") == oneIn/2+1
}

func (g *generator) keys() []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(genKeys), 1, 4, rapid.ID[string]).Draw(g.t, "keys")
}

func (g *generator) key(k string, flow bool) string {
	if g.json || g.maybe(6) {
		b, _ := json.Marshal(k)
		return string(b)
	}
	if plainString(k, flow) {
		return k
	}
	return singleQuoted(k)
}

func keyPath(path, k string) string {
	p := fieldpath.New(fieldpath.Segment{Key: "x"}, fieldpath.Segment{Key: k}).String()[1:]
	if path == "" {
		return strings.TrimPrefix(p, ".")
	}
	return path + p
}

func appendToPath(segs []any, s any) []any { return append(append([]any(nil), segs...), s) }

// mapping writes a block mapping; the cursor is where its first key goes.
func (g *generator) mapping(path string, segs []any, indent, depth int) {
	for i, k := range g.keys() {
		if i > 0 {
			if g.maybe(6) {
				g.b.WriteString(rapid.SampledFrom([]string{"", "", "   "}).Draw(g.t, "blank") + g.eol)
			}
			if g.maybe(8) {
				g.b.WriteString(strings.Repeat(" ", indent) + "# Größe: {{ no }}" + g.eol)
			}
			g.b.WriteString(strings.Repeat(" ", indent))
		}
		if g.maybe(30) {
			g.b.WriteString("? " + g.key(k, false) + g.eol + strings.Repeat(" ", indent))
		} else {
			g.b.WriteString(g.key(k, false) + rapid.SampledFrom([]string{"", "", "", "", " "}).Draw(g.t, "before colon"))
		}
		g.b.WriteString(":")
		g.value(keyPath(path, k), appendToPath(segs, k), indent, depth)
	}
	if len(g.maps) > 0 && depth > 0 && g.maybe(6) {
		g.b.WriteString(strings.Repeat(" ", indent) + "<<: *" + rapid.SampledFrom(g.maps).Draw(g.t, "merged") + g.eol)
		g.fixed = append(g.fixed, path)
	}
}

// value writes what follows a colon, through the end of the line.
func (g *generator) value(path string, segs []any, indent, depth int) {
	switch choice := rapid.IntRange(0, 9).Draw(g.t, "kind"); {
	case choice < 2 && depth < 3:
		anchor := ""
		if g.maybe(40) {
			anchor = fmt.Sprintf("m%d", len(g.b.String()))
			g.b.WriteString(" &" + anchor)
			g.fixed = append(g.fixed, path)
		}
		g.b.WriteString(g.eol + strings.Repeat(" ", indent+g.step))
		g.mapping(path, segs, indent+g.step, depth+1)
		if anchor != "" {
			g.maps = append(g.maps, anchor)
		}
	case choice < 4 && depth < 3:
		g.b.WriteString(g.eol)
		g.list(path, segs, indent+rapid.SampledFrom([]int{0, g.step}).Draw(g.t, "dash"), depth+1)
	case choice == 4 && depth < 3:
		g.b.WriteString(" ")
		g.flow(path, segs, depth+1, rapid.Bool().Draw(g.t, "map"))
		g.lineEnd()
	default:
		g.scalar(path, segs, indent)
	}
}

func (g *generator) list(path string, segs []any, indent, depth int) {
	for i := range rapid.IntRange(1, 3).Draw(g.t, "items") {
		g.b.WriteString(strings.Repeat(" ", indent) + "-")
		p, s := fmt.Sprintf("%s[%d]", path, i), appendToPath(segs, i)
		if rapid.Bool().Draw(g.t, "scalar") {
			g.scalar(p, s, indent)
			continue
		}
		gap := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(g.t, "behind the dash")
		g.b.WriteString(strings.Repeat(" ", gap))
		g.mapping(p, s, indent+1+gap, depth+1)
	}
}

func (g *generator) scalar(path string, segs []any, indent int) {
	g.recordScalar(path, segs)
	switch rapid.IntRange(0, 60).Draw(g.t, "odd") { // small numbers are drawn more often
	case 31:
		g.out.hard[path] = true
		in := strings.Repeat(" ", indent+g.step)
		g.b.WriteString(" |" + g.eol + in + "ein" + g.eol + g.eol + in + "# block" + g.eol)
		return
	case 32:
		g.out.hard[path] = true
		name := "a" + fmt.Sprint(len(g.out.paths))
		g.b.WriteString(" &" + name + " v1")
		g.anchors = append(g.anchors, name)
	case 33:
		g.out.hard[path] = true
		g.b.WriteString(" !!str v1")
	case 34:
		g.out.hard[path] = true
		in := strings.Repeat(" ", indent+g.step)
		g.b.WriteString(rapid.SampledFrom([]string{" ein" + g.eol + in + "wort", ` "ein` + g.eol + in + `wort"`, " 'ein" + g.eol + g.eol + in + "wort'", " >-" + g.eol + in + "ein" + g.eol + in + "wort"}).Draw(g.t, "over lines"))
		if strings.Contains(g.b.String()[max(0, g.b.Len()-20):], ">-") {
			g.b.WriteString(g.eol)
			return
		}
	case 35:
		if len(g.anchors) > 0 {
			g.out.hard[path] = true
			g.b.WriteString(" *" + rapid.SampledFrom(g.anchors).Draw(g.t, "alias"))
		}
	default:
		g.b.WriteString(rapid.SampledFrom([]string{" ", " ", "  "}).Draw(g.t, "gap"))
		g.b.WriteString(rapid.SampledFrom(genScalars).Draw(g.t, "scalar"))
	}
	g.lineEnd()
}

func (g *generator) lineEnd() {
	ends := []string{"", "", "", " ", " # bemerkt: 'x'", "\t# tab"}
	if strings.HasSuffix(g.b.String(), ":") || strings.HasSuffix(g.b.String(), "-") {
		ends = ends[:5] // readers don't take a tab for a space here
	}
	g.b.WriteString(rapid.SampledFrom(ends).Draw(g.t, "end") + g.eol)
}

func (g *generator) recordScalar(path string, segs []any) {
	g.out.paths = append(g.out.paths, path)
	g.out.segs = append(g.out.segs, segs)
}

// flow writes a flow mapping or list; JSON consists of these.
func (g *generator) flow(path string, segs []any, depth int, mapping bool) {
	space := func() {
		g.b.WriteString(rapid.SampledFrom([]string{"", " ", "", g.lineBreak()}).Draw(g.t, "space"))
	}
	if mapping {
		g.b.WriteString("{")
		for i, k := range g.keys() {
			if i > 0 {
				g.b.WriteString(",")
			}
			space()
			g.b.WriteString(g.key(k, true) + ":")
			if g.json {
				g.b.WriteString(rapid.SampledFrom([]string{"", " "}).Draw(g.t, "gap"))
			} else {
				g.b.WriteString(" ")
			}
			g.flowValue(keyPath(path, k), appendToPath(segs, k), depth)
		}
		space()
		g.b.WriteString("}")
		return
	}
	g.b.WriteString("[")
	for i := range rapid.IntRange(1, 3).Draw(g.t, "items") {
		if i > 0 {
			g.b.WriteString(",")
		}
		space()
		g.flowValue(fmt.Sprintf("%s[%d]", path, i), appendToPath(segs, i), depth)
	}
	space()
	g.b.WriteString("]")
}

// lineBreak may stand between flow items.
func (g *generator) lineBreak() string {
	if g.json {
		return g.eol + "\t"
	}
	return g.eol + strings.Repeat(" ", 16)
}

func (g *generator) flowValue(path string, segs []any, depth int) {
	if depth < 3 && g.maybe(4) {
		g.flow(path, segs, depth+1, rapid.Bool().Draw(g.t, "map"))
		return
	}
	g.recordScalar(path, segs)
	from := genJSONScalars
	if !g.json {
		from = []string{"v1", "'a b'", "1.20", "é𝄞", `"v1"`, `"a\"b\\"`, `""`, "3", "true"}
	}
	g.b.WriteString(rapid.SampledFrom(from).Draw(g.t, "scalar"))
}
