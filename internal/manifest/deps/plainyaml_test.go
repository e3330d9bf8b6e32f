package deps

import (
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// String is a node without the parts that aren't compared.
func (cn *comparableNode) String() string {
	at := resolveAlias((*yaml.Node)(cn))
	switch at.Kind {
	case yaml.ScalarNode:
		if isNull(at) {
			return "null"
		}
		return fmt.Sprintf("%q@%d", at.Value, at.Line)
	case yaml.MappingNode, yaml.SequenceNode:
		var parts []string
		for _, c := range at.Content {
			if at.Kind == yaml.MappingNode && len(parts)%2 == 0 {
				parts = append(parts, fmt.Sprintf("%q", resolveAlias(c).Value))
				continue
			}
			parts = append(parts, (*comparableNode)(c).String())
		}
		return fmt.Sprintf("%d(%s)", at.Kind, strings.Join(parts, " "))
	}
	return fmt.Sprint(at.Kind)
}

type comparableNode yaml.Node

// checkPlainYAML holds that where the plain parser takes a text, the general one
// reads the same.
func checkPlainYAML(t interface{ Fatalf(string, ...any) }, data []byte) bool {
	doc, ok := new(plainParser).parse(data)
	if !ok {
		return false
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		t.Fatalf("%q is taken as %s, but: %v", data, (*comparableNode)(doc), err)
	}
	if got, want := (*comparableNode)(doc).String(), (*comparableNode)(n.Content[0]).String(); got != want {
		t.Fatalf("%q is\n%s, not\n%s", data, want, got)
	}
	return true
}

var plainPieces = []string{
	"resources:", "patches:", "a: b", "a:  b ", "- path: x.yaml", "- a", "-  b", "-", "- - a", "- a: b", "  target:", "kind: X", "- name: y", "files: [a, b]", "files: []", "- 'q'", `- "q"`, `- "a\nb"`,
	"x: |", "text", "# note", "a: b # note", "a: b#c", "- https://x/y", "- a:b", "- a: ", "- a:", "---", "...", "? a", "a: *b", "a: &b c", "<<: *b", "a: null", "a: ~", "a: {b: c}", "a: [b, [c]]", "a: [b: c]", "[a]", "\ta: b",
	"a: 'it''s'", "a: [a,]", "a: [null]", "a: \"", "a: 'b' c", "key with: x", "a: -b", "a: b: c", "- [a]", "ä: b", "a: !x b", "a: >", "\"a\": b", "a:b", "1: 2", "a: % x", "a: @x", "a: .x", "a: b\r",
}

// TestPlainYAML holds the plain parser against the general one, on texts put
// together from pieces, and that it takes what is plain.
func TestPlainYAML(t *testing.T) {
	accepted, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 7).Draw(rt, "lines") {
			b.WriteString(strings.Repeat(" ", rapid.SampledFrom([]int{0, 0, 0, 2, 2, 4, 1}).Draw(rt, "indent")))
			pieces := plainPieces
			if rapid.IntRange(0, 14).Draw(rt, "odd") > 0 {
				pieces = pieces[:18] // mostly plain ones
			}
			b.WriteString(rapid.SampledFrom(pieces).Draw(rt, "piece"))
			b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\n\n", "", " \n"}).Draw(rt, "end"))
		}
		all++
		if checkPlainYAML(rt, []byte(b.String())) {
			accepted++
		}
	})
	t.Logf("%d of %d texts are plain", accepted, all)
	for _, text := range []string{
		`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: dev
resources:
- ../../base
- x.yaml # a note
patches:
  - path: patch.yaml
    target:
      kind: Deployment
configMapGenerator:
- name: settings
  envs: [settings.env, other.env]
images:
- name: registry.example/web
  newTag: "1.20"
`,
		"---\n# First\nresources:\n- a\n\n  # indented\n- b\nlabels:\n- pairs:\n    app.kubernetes.io/name: web\n  includeSelectors: true\n",
		"a:\nb:\n- c\n",
		"a:\n  b:\n  - c\n  d: e",
	} {
		if !checkPlainYAML(t, []byte(text)) {
			t.Errorf("%q isn't taken for plain", text)
		}
	}
}
