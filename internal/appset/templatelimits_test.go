package appset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"text/template"
	"time"

	"pgregory.net/rapid"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

func boundedRenderer(ctx context.Context, goTemplate bool, options ...string) *renderer {
	set := &argov1alpha1.ApplicationSet{}
	set.Spec.GoTemplate, set.Spec.GoTemplateOptions = goTemplate, options
	return newRenderer(ctx, set)
}

var renderParams = map[string]any{
	"name": "web", "empty": "", "n": 3.0, "yes": true, "none": nil,
	"path":   map[string]any{"path": "apps/web/dev", "basename": "dev", "segments": []string{"apps", "web", "dev"}},
	"values": map[string]string{"tier": "gold"}, "list": []any{"a", "b", map[string]any{"c": 1.0}},
	"metadata": map[string]any{"labels": map[string]string{"a/b": "c"}}, "path.basename": "flat", "path[0]": "apps",
}

// renderTexts are strings of templates, simple and not.
var renderTexts = []string{
	"", "plain", "}}", "{{", "{{}}", "{{ }}", "{{ .name }}", "{{.name}}-{{ .path.basename }}", "{{ .missing }}", "a{{ .path.missing }}b", "{{ .values.tier }}", "{{ .values.missing }}",
	"{{ .n }}", "{{ .yes }}", "{{ .none }}", "{{ .empty }}", "{{ .path }}", "{{ .list }}", "{{ .name.x }}", "{{ .n.x }}", "{{- .name -}} x", "{{/* c */}}{{ .name }}", "{{ . }}",
	"{{ $x := .name }}{{ $x }}", "{{ .name | upper }}", "{{ if .yes }}a{{ else }}b{{ end }}", "{{ with .path }}{{ .path }}{{ else }}{{ .name }}{{ end }}",
	"{{ range $i, $s := .path.segments }}{{ $i }}{{ $s }}{{ break }}{{ end }}", "{{ range .list }}{{ continue }}{{ else }}x{{ end }}", "{{ range .empty }}{{ end }}",
	`{{ define "a" }}<{{ . }}>{{ end }}{{ template "a" .name }}{{ template "a" }}`, `{{ define "down" }}{{ . }}{{ if gt . 0.0 }}{{ template "down" (subf . 1.0) }}{{ end }}{{ end }}{{ template "down" .n }}`,
	`{{ block "b" . }}{{ .name }}{{ end }}`, `{{ template "nowhere" }}`, `{{ index .path.segments 1 }}`, `{{ index .values "tier" }}`, `{{ slice .name 1 2 }}`, `{{ len .list }}`, `{{ not .yes }}`,
	`{{ print .name .n }}`, `{{ printf "%s-%03d-%v-%*d" .name 7 .list 5 3 }}`, `{{ println .list }}`, `{{ html "<a>" }}{{ js "'" }}{{ urlquery "a b" }}`,
	`{{ repeat 3 .name }}`, `{{ repeat -1 "x" }}`, `{{ until 3 }}{{ until -3 }}`, `{{ untilStep 0 9 4 }}{{ untilStep 9 0 -4 }}{{ untilStep 0 9 -1 }}{{ untilStep 5 1 0 }}`, `{{ seq 3 }}/{{ seq 3 1 }}/{{ seq 1 2 7 }}/{{ seq 9 -3 1 }}`,
	`{{ indent 2 "a\nb" }}{{ nindent 4 "x" }}`, `{{ indent -1 "x" }}`, `{{ replace "e" "33" "steel" }}{{ replace "" "-" "abc" }}`, `{{ wrap 3 "a bc def" }}{{ wrapWith 3 "\t" "a bc def" }}`,
	`{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}{{ regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}" }}`, `{{ regexReplaceAll "(" "a" "b" }}`, `{{ mustRegexReplaceAll "(" "a" "b" }}`,
	`{{ join "-" .path.segments }}{{ join "," .list }}{{ join "x" .n }}`, `{{ splitList "/" .path.path }}{{ (split "/" .path.path)._1 }}{{ splitn "/" 2 .path.path }}`, `{{ splitList "" "abc" }}`,
	`{{ toYaml . }}`, `{{ toJson . }}{{ toPrettyJson .path }}`, `{{ fromYaml "a: 1" }}{{ fromYaml "[" }}`, `{{ fromYamlArray "[1, 2]" }}`, `{{ fromJson "{\"a\": [1]}" }}{{ fromJson "x" }}`,
	`{{ $_ := set . "new" 1 }}{{ .new }}`, `{{ merge (dict "a" 1) (dict "b" 2) }}`, `{{ dict "a" (list 1 2 3) | toJson }}`, `{{ append .list "x" }}{{ concat .list .list }}{{ chunk 2 .list }}`,
	`{{ dig "path" "basename" "d" . }}`, `{{ get . "name" }}`, `{{ default "d" .empty }}{{ coalesce .empty .name }}{{ ternary "a" "b" .yes }}`, `{{ .name | quote | squote }}`,
	`{{ normalize "A_b" }}{{ slugify "A b c" }}{{ slugify 5 false "abc def" }}`, `{{ fail "no" }}`, `{{ atoi "x" }}{{ add 1 2 }}{{ div 1 0 }}`, `{{ nope }}`, `{{ env "HOME" }}`, `{{ liftlockTick }}`,
	`{{ semver "1.2.3" }}{{ semverCompare ">1" "2.0.0" }}`, `{{ b64enc "x" }}{{ sha256sum "x" }}`, `{{ trunc 2 .name }}{{ substr 0 2 .name }}{{ abbrev 5 "long text" }}`, `{{ hasKey .values "tier" }}{{ keys .values }}`,
	`{{ (index .list 2).c }}`, `{{ and .yes .name }}{{ or .empty .name }}{{ eq .name "web" }}`, `{{ call .name }}`, "{{\n.name\n}}", "{{name}}", "{{path.basename}}-{{path[0]}}", "{{ name }}-{{n}}-{{missing}}", "{{name", "a}}{{name}}{{", "{{na\nme}}",
}

// TestRenderedAsTheController renders strings as the library does, and fails
// where it fails.
func TestRenderedAsTheController(t *testing.T) {
	for _, goTemplate := range []bool{true, false} {
		for _, options := range [][]string{nil, {"missingkey=error"}, {"missingkey=zero"}} {
			r := boundedRenderer(context.Background(), goTemplate, options...)
			for _, text := range renderTexts {
				params := func() map[string]any { return copyValue(renderParams).(map[string]any) }
				want, wrong := (&utils.Render{}).Replace(text, params(), goTemplate, options)
				for range 2 { // parsed now, and parsed before
					got, err := r.Replace(text, params(), goTemplate, options)
					if (wrong == nil) != (err == nil) || got != want && wrong == nil {
						t.Errorf("goTemplate %v, options %v, %q:\nthe library: %q, %v\nours: %q, %v", goTemplate, options, text, want, wrong, got, err)
					}
				}
			}
		}
	}
}

// TestRandomTexts does the same for texts put together of pieces.
func TestRandomTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append([]string{" ", "x", "\n", "{{ end }}", "{{ else }}", "{{ if .yes }}", "{{ range .list }}"}, renderTexts...)), 1, 4).Draw(t, "text"), "")
		if strings.Contains(text, "keys") { // their order is random
			return
		}
		goTemplate := rapid.Bool().Draw(t, "goTemplate")
		options := rapid.SampledFrom([][]string{nil, {"missingkey=error"}}).Draw(t, "options")
		want, wrong := (&utils.Render{}).Replace(text, copyValue(renderParams).(map[string]any), goTemplate, options)
		got, err := boundedRenderer(context.Background(), goTemplate, options...).Replace(text, copyValue(renderParams).(map[string]any), goTemplate, options)
		if (wrong == nil) != (err == nil) || got != want && wrong == nil {
			t.Fatalf("%q:\nthe library: %q, %v\nours: %q, %v", text, want, wrong, got, err)
		}
	})
}

// TestBombs holds that a template that grows without bound ends in an error
// that says so, without taking what it asks for.
func TestBombs(t *testing.T) {
	doubled := func(step string) string {
		return `{{ $x := "xx" }}{{ range until 60 }}{{ $x = ` + step + ` }}{{ end }}{{ $x }}`
	}
	tooMuch, tooMany, tooDeep := errTooMuch.Error(), errTooMany.Error(), errTooDeep.Error()
	for _, c := range []struct{ name, text, problem string }{
		{"repeat", `{{ repeat 1000000000 "x" }}`, tooMuch},
		{"repeat of a repeat", `{{ repeat 3000 (repeat 3000 "x") }}`, tooMuch},
		{"repeat overflowing", `{{ repeat 9223372036854775807 "xxxxxxxx" }}`, tooMuch},
		{"until", `{{ until 1000000000 }}`, tooMany},
		{"until downwards", `{{ until -1000000000 }}`, tooMany},
		{"untilStep", `{{ untilStep 0 9000000000000000000 2 }}`, tooMany},
		{"untilStep downwards", `{{ untilStep 0 -9000000000000000000 -2 }}`, tooMany},
		{"seq", `{{ seq 1000000000 }}`, tooMany},
		{"seq with a step", `{{ seq 1 2 1000000000 }}`, tooMany},
		{"indent", `{{ indent 1000000000 "x" }}`, tooMuch},
		{"nindent", `{{ nindent 100000 (repeat 100 "x\n") }}`, tooMuch},
		{"replace", `{{ replace "x" (repeat 4000 "y") (repeat 4000 "x") }}`, tooMuch},
		{"replace of nothing", `{{ replace "" (repeat 4000 "y") (repeat 4000 "x") }}`, tooMuch},
		{"regexReplaceAll", `{{ regexReplaceAll "x" (repeat 4000 "x") (repeat 4000 "y") }}`, tooMuch},
		{"regexReplaceAll by references", `{{ regexReplaceAll "x+" (repeat 4000 "x") (repeat 4000 "$0") }}`, tooMuch},
		{"regexReplaceAllLiteral", `{{ regexReplaceAllLiteral "" (repeat 4000 "x") (repeat 4000 "y") }}`, tooMuch},
		{"a large regular expression", `{{ regexMatch (repeat 3000 "a{999}") "b" }}`, errRegex.Error()},
		{"a long regular expression", `{{ regexFind (repeat 30000 "a") "b" }}`, errRegex.Error()},
		{"a regular expression over a long text", `{{ regexFind "(?:a?){900}" (repeat 1000000 "a") }}`, errRegex.Error()},
		{"replacing by a regular expression", `{{ regexReplaceAll "(?:a?){900}" (repeat 1000000 "a") "" }}`, errRegex.Error()},
		{"regexSplit", `{{ regexSplit "" (repeat 1000000 "abcd") -1 }}`, tooMany},
		{"regexFindAll", `{{ mustRegexFindAll "." (repeat 1000000 "abcd") -1 }}`, tooMany},
		{"uniq", `{{ uniq (until 200000) }}`, errTooSlow.Error()},
		{"without", `{{ mustWithout (until 200000)` + strings.Repeat(" 1", 100) + ` }}`, errTooSlow.Error()},
		{"semverCompare", `{{ semverCompare (repeat 100000 "1.x || ") "1.0.0" }}`, tooMuch},
		{"join", `{{ join (repeat 1000 "x") (until 100000) }}`, tooMuch},
		{"wrapWith", `{{ wrapWith 1 (repeat 4000 "y") (repeat 4000 "x ") }}`, tooMuch},
		{"printf widths", `{{ printf "%999999d%999999d%999999d%999999d%999999d%999999d" 1 2 3 4 5 6 }}`, tooMuch},
		{"printf width of an argument", `{{ printf "%*d%*d%*d%*d%*d" 999999 1 999999 1 999999 1 999999 1 999999 1 }}`, tooMuch},
		{"printf of one argument many times", `{{ printf (repeat 5000 "%[1]s") (repeat 5000 "x") }}`, tooMuch},
		{"split", `{{ split "x" (repeat 1000000 "x") }}`, tooMany},
		{"splitList of nothing", `{{ splitList "" (repeat 1000000 "x") }}`, tooMany},
		{"splitn", `{{ splitn "x" -1 (repeat 1000000 "x") }}`, tooMany},
		{"randAlphaNum", `{{ randAlphaNum 1000000000 }}`, tooMuch},
		{"randBytes", `{{ randBytes 1000000000 }}`, tooMuch},
		{"doubling by print", doubled("print $x $x"), tooMuch},
		{"doubling by printf", doubled(`printf "%s%s" $x $x`), tooMuch},
		{"doubling by cat", doubled("cat $x $x"), tooMuch},
		{"doubling by join", doubled(`join $x (list $x $x)`), tooMuch},
		{"doubling by escaping", doubled("html $x | js | urlquery | html | print $x"), tooMuch},
		{"doubling by quote", doubled("quote $x $x"), tooMuch},
		{"doubling a list", `{{ $x := list 1 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}`, tooMany},
		{"a list in itself many times", `{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, tooMuch},
		{"a dict in itself", `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}`, tooDeep},
		{"a dict that grows in a list that is there", `{{ $d := dict "a" (list 1) }}{{ $l := list $d }}{{ range until 12 }}{{ $l = list $l $l }}{{ end }}{{ $_ := set $d "x" (until 1000) }}{{ $l }}`, tooMany},
		{"a dict that grows in a list that is printed", `{{ $d := dict "a" (list 1) }}{{ $l := list $d }}{{ range until 12 }}{{ $l = list $l $l }}{{ end }}{{ $_ := set $d "x" (until 1000) }}{{ print $l }}`, tooMany},
		{"a dict that is merged into itself", `{{ $x := dict }}{{ $y := merge $x (dict "x" $x) }}{{ $y }}`, tooDeep},
		{"a dict in a list in itself", `{{ $x := dict }}{{ $l := list $x }}{{ $_ := set $x "x" $l }}{{ toJson $x }}`, tooDeep},
		{"depth", `{{ $x := list }}{{ range until 1000 }}{{ $x = list $x }}{{ end }}{{ $x }}`, tooDeep},
		{"parsing", `{{ fromYaml (repeat 4194305 "x") }}`, tooMuch},
		{"writing without end", `{{ range until 200000 }}{{ $.path }}{{ end }}`, "it writes more than 4194304 bytes"},
		{"recursion", `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "templates invoke each other more than 1000 deep"},
		{"recursion in turn", `{{ define "a" }}{{ template "b" . }}{{ end }}{{ define "b" }}{{ with . }}{{ template "a" . }}{{ end }}{{ end }}{{ template "a" . }}`, "templates invoke each other more than 1000 deep"},
		{"recursion of the whole", `x{{ template "" }}`, "templates invoke each other more than 1000 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := boundedRenderer(context.Background(), true).Replace(c.text, copyValue(renderParams).(map[string]any), true, nil)
			if err == nil || !strings.Contains(err.Error(), c.problem) || len(err.Error()) > 4<<10 {
				t.Errorf("%v; want %q", err, c.problem)
			}
		})
	}
}

// TestUnboundedTemplates holds that a template that takes for ever ends with
// its time, whether or not it writes or calls anything.
func TestUnboundedTemplates(t *testing.T) {
	for name, text := range map[string]string{
		"nested loops":              `{{ range until 200000 }}{{ range until 200000 }}{{ end }}{{ end }}`,
		"loops over one list":       `{{ $l := until 200000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`,
		"loops that call":           `{{ $l := until 200000 }}{{ range $l }}{{ range $l }}{{ $x := upper "x" }}{{ end }}{{ end }}`,
		"loops in a template":       `{{ define "a" }}{{ range . }}{{ end }}{{ end }}{{ $l := until 200000 }}{{ range $l }}{{ template "a" $l }}{{ end }}`,
		"wide recursion":            `{{ define "a" }}{{ if lt (len .) 200 }}{{ template "a" (append . 1) }}{{ template "a" (append . 1) }}{{ end }}{{ end }}{{ template "a" (list) }}`,
		"loops in an else":          `{{ $l := until 200000 }}{{ range $l }}{{ if false }}{{ else }}{{ range $l }}{{ end }}{{ end }}{{ end }}`,
		"loops in a loop's else":    `{{ $l := until 200000 }}{{ range list }}{{ else }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`,
		"loops of a declared value": `{{ $l := until 200000 }}{{ range $i, $x := $l }}{{ range $j, $y := $l }}{{ $x = $y }}{{ end }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_, err := boundedRenderer(ctx, true).Replace(text, map[string]any{"a": "b"}, true, nil)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestRawValues renders what the API's types don't describe.
func TestRawValues(t *testing.T) {
	manifest := matrixManifest(true, `[{list: {elements: [{a: b}]}}]`)
	for _, values := range []string{
		`{x: null, k: {z: null, "{{ .a }}": "{{ .a }}", l: [null, {n: null}, "{{ .a }}"]}}`, `null`, `{}`, `[]`, `"{{ .a }}"`, `{n: 12345678901234567890, f: 1.50, big: 1e21}`, `{x: null}`, `[null]`,
	} {
		t.Run(values, func(t *testing.T) {
			set := strings.Replace(manifest, "spec: {project: default}", fmt.Sprintf(
				"spec: {project: default, destination: {server: https://kubernetes.default.svc}, source: {repoURL: x, path: p, helm: {valuesObject: %s}}}", values), 1)
			o := &oracle{dir: checkout(t, map[string]string{"x": ""}), projects: []string{"default"}}
			if n, failed := o.compare(t, []byte(set), repoURL); n != 1 && !failed {
				t.Errorf("%d Applications, failed %v", n, failed)
			}
		})
	}
}

// BenchmarkTemplate renders one string of a template again and again: as the library
// does, which parses it each time; parsed once without our limits; and as we do.
func BenchmarkTemplate(b *testing.B) {
	for name, text := range map[string]string{
		"fields":    "{{ .name }}-{{ .path.basename }}",
		"functions": `{{ .name | upper | replace "W" "w" }}{{ range .path.segments }}-{{ . | trunc 3 }}{{ end }}`,
	} {
		b.Run(name+"/library", func(b *testing.B) {
			for b.Loop() {
				_, err := (&utils.Render{}).Replace(text, renderParams, true, nil)
				must(b, err)
			}
		})
		b.Run(name+"/unlimited", func(b *testing.B) {
			t := template.Must(template.New("").Funcs(templateFunctions()).Parse(text))
			for b.Loop() {
				must(b, t.Execute(io.Discard, renderParams))
			}
		})
		b.Run(name+"/ours", func(b *testing.B) {
			r := boundedRenderer(b.Context(), true)
			for b.Loop() {
				_, err := r.Replace(text, renderParams, true, nil)
				must(b, err)
			}
		})
	}
}
