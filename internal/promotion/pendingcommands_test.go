package promotion

import (
	"slices"
	"testing"
)

// TestRequesters names who promotes a release into an environment, each once: they don't count
// as its approvers.
func TestRequesters(t *testing.T) {
	f := ComponentFacts{PendingCommands: []PendingCommand{
		{Verb: "promote", Environment: "qa", By: "linus"},
		{Verb: "promote", Environment: "qa", By: "ken"},
		{Verb: "promote", Environment: "qa", By: "ada", Release: "r2"},
		{Verb: "promote", Environment: "qa", By: "linus", Release: "r2"},
		{Verb: "promote", Environment: "qa", By: "grace", Release: "r3"},
		{Verb: "promote", Environment: "prod", By: "grace", Release: "r2"},
		{Verb: "retry", Environment: "qa", By: "grace"},
	}}
	if got := f.Requesters("qa", "r2"); !slices.Equal(got, []string{"ada", "ken", "linus"}) {
		t.Errorf("it is %q that requested r2 in qa", got)
	}
	if got := f.Requesters("dev", "r2"); len(got) > 0 {
		t.Errorf("it is %q that requested r2 in dev", got)
	}
	for _, want := range [][]string{nil, {"ada"}, {"ada", "linus"}} {
		if got := ParseRequesters(RequestersTrailer(want)); !slices.Equal(got, want) {
			t.Errorf("of %q a commit says %q", want, got)
		}
	}
}
