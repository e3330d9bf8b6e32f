package cli

import (
	"slices"
	"testing"
)

// TestKnownVerbs holds that each word of other tools leads to commands that there are, and is none
// itself.
func TestKnownVerbs(t *testing.T) {
	root := Root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	for _, k := range knownVerbs {
		for _, name := range k.commands {
			if !slices.Contains(names, name) {
				t.Errorf("%v lead to %s, which is no command", k.words, name)
			}
		}
		for _, word := range append(k.words, verbApprove) {
			if slices.Contains(names, word) {
				t.Errorf("%s is a command", word)
			}
		}
	}
}
