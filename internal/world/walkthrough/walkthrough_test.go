package walkthrough

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for name, page := range map[string]string{
		"output of no command":             "```text\nok\n```\n",
		"two outputs of one command":       "```sh\ntrue\n```\n```text\nok\n```\n```text\nok\n```\n",
		"a block without an end":           "```sh\ntrue\n",
		"a block in a language of its own": "```console\n$ true\n```\n",
		"a file without a name":            "```yaml\na: b\n```\n",
		"output of a file":                 "<!-- file a.yaml -->\n```yaml\na: b\n```\n```text\nok\n```\n",
		"commands as a file":               "<!-- file a.sh -->\n```sh\ntrue\n```\n",
	} {
		if blocks, err := Parse(page); err == nil {
			t.Errorf("%s is read as %+v", name, blocks)
		}
	}
	page := "<!-- file a.yaml -->\n```yaml\na: b\n```\n\n<!-- with chart -->\n\n```sh\ncat a.yaml\n```\nIt prints:\n```text\na: b\n```\n"
	want := []Block{{Line: 3, Text: "a: b\n", File: "a.yaml"}, {Line: 9, Text: "cat a.yaml\n", Prints: "a: b\n", Directive: "with chart"}}
	if blocks, err := Parse(page); err != nil || !slices.Equal(blocks, want) {
		t.Errorf("the page is read as %+v, %v", blocks, err)
	}
}

func TestPrintsPattern(t *testing.T) {
	pattern := PrintsPattern("at 127.0.0.1:…\n…\nend\n")
	for printed, want := range map[string]bool{
		"at 127.0.0.1:1234\nend\n": true, "at 127.0.0.1:1\none\ntwo\nend\n": true,
		"at 127.0.0.1:1\nend": false, "at 127.0.0.2:1\nend\n": false, "at 127.0.0.1:1\nend\nmore\n": false,
	} {
		if got := pattern.MatchString(printed); got != want {
			t.Errorf("%q matches: %t", printed, got)
		}
	}
}
