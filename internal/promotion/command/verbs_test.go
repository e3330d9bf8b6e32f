package command

import (
	"slices"
	"testing"
)

// TestDeclarations holds that each verb is declared once with its words, stands in help, and can be
// given by what the API has it for.
func TestDeclarations(t *testing.T) {
	var seen []Verb
	for _, d := range declarations {
		if slices.Contains(seen, d.verb) {
			t.Errorf("%s is declared twice", d.verb)
		}
		seen = append(seen, d.verb)
		if d.usage == "" || d.help == "" || !slices.Contains(helpOrder, d.verb) {
			t.Errorf("help says nothing of %s", d.verb)
		}
		if (d.userHelp != "") != slices.Contains(userHelpOrder, d.verb) {
			t.Errorf("help on a person's pull request has %s without its words, or its words alone", d.verb)
		}
		given := d.onPromotion || d.onPipeline
		if given != (d.title != "") || given != (d.short != "") || given != (d.need != NeedRead) {
			t.Errorf("%s can be given by the API: %t, but its title is %q and the command line's text %q", d.verb, given, d.title, d.short)
		}
	}
	if len(helpOrder) != len(declarations) {
		t.Errorf("help lists %d verbs of %d", len(helpOrder), len(declarations))
	}
}

// TestUnknownVerb has what nobody may give by accident.
func TestUnknownVerb(t *testing.T) {
	if Needs("explode") != NeedBreakGlass || !Loosens("explode") {
		t.Error("a verb that isn't declared takes less than break-glass, or is taken without knowing whose word it is")
	}
}
