package promotion

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/policies"
)

// TestRequesters names who promotes a release into an environment, each once: they don't count
// as its approvers.
func TestRequesters(t *testing.T) {
	f := ComponentFacts{PendingCommands: []PendingCommand{
		{Verb: "promote", Environment: "qa", By: "linus"},
		{Verb: "promote", Environment: "qa", By: "ken", ByID: 7},
		{Verb: "promote", Environment: "qa", By: "ada", ByID: 9, Release: "r2"},
		{Verb: "promote", Environment: "qa", By: "linus", Release: "r2"},
		{Verb: "promote", Environment: "qa", By: "grace", ByID: 8, Release: "r3"},
		{Verb: "promote", Environment: "prod", By: "grace", Release: "r2"},
		{Verb: "retry", Environment: "qa", By: "grace"},
	}}
	if got := f.Requesters("qa", "r2"); !slices.Equal(got, []policies.Account{{ID: 9, Login: "ada"}, {ID: 7, Login: "ken"}, {Login: "linus"}}) {
		t.Errorf("it is %+v that requested r2 in qa", got)
	}
	if got := f.Requesters("dev", "r2"); len(got) > 0 {
		t.Errorf("it is %+v that requested r2 in dev", got)
	}
	for text, want := range map[string][]policies.Account{
		"":                        nil,
		"ada":                     {{Login: "ada"}},
		"ada (id 9), ken":         {{ID: 9, Login: "ada"}, {Login: "ken"}},
		"ci (id 9) (id 7)":        {{ID: 7, Login: "ci (id 9)"}},
		"a (id ), b (id x), (id)": {{Login: "a (id )"}, {Login: "b (id x)"}, {Login: "(id)"}},
	} {
		if got := ParseRequesters(text); !slices.Equal(got, want) || RequestersTrailer(got) != text {
			t.Errorf("of %q a commit says %+v, and of those %q", text, got, RequestersTrailer(got))
		}
	}
}
