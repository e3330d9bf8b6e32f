package onboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var proposed = &Proposal{File: ".liftlock.yaml", Text: "kind: Pipeline\n"}

func TestDecide(t *testing.T) {
	open, closed := Pull{Number: 7, Open: true, Ours: true, Base: "main"}, Pull{Number: 7, Ours: true, Base: "main"}
	merged, retired := closed, closed
	merged.Merged, retired.Retired = true, true
	stranger := Pull{Number: 9, Open: true, Author: "mallory", Base: "main"}
	for name, c := range map[string]struct {
		facts Facts
		want  Decision
	}{
		"nothing is known yet":     {Facts{}, Decision{Action: Make}},
		"a proposal is there":      {Facts{Proposal: proposed}, Decision{Action: Open, State: Proposed}},
		"there is nothing":         {Facts{Proposal: &Proposal{Nothing: "no sets"}}, Decision{Action: Leave, State: Nothing, Why: "no sets"}},
		"there is a pipeline file": {Facts{HasPipeline: true, Proposal: proposed}, Decision{Action: Leave, State: Settled}},
		"pushed, and not opened":   {Facts{Head: "a", HeadIsOurs: true, Proposal: proposed}, Decision{Action: Open, State: Proposed}},
		"open and as it was shown": {Facts{Branch: "main", Pulls: []Pull{open}, Head: "a", HeadIsOurs: true, Key: "k", ShownKey: "k"}, Decision{Action: Leave, Pull: 7, State: Proposed}},
		"the branch moved":         {Facts{Branch: "main", Pulls: []Pull{open}, Head: "a", HeadIsOurs: true, Key: "l", ShownKey: "k"}, Decision{Action: Make, Pull: 7}},
		"the base is another":      {Facts{Branch: "trunk", Pulls: []Pull{open}, Head: "a", HeadIsOurs: true, Key: "k", ShownKey: "k"}, Decision{Action: Make, Pull: 7}},
		"a proposal for it":        {Facts{Branch: "main", Pulls: []Pull{open}, Head: "a", HeadIsOurs: true, Key: "l", ShownKey: "k", Proposal: proposed}, Decision{Action: Update, Pull: 7, State: Proposed}},
		"nothing any more": {Facts{Branch: "main", Pulls: []Pull{open}, Head: "a", HeadIsOurs: true, Proposal: &Proposal{Nothing: "no sets"}},
			Decision{Action: Leave, Pull: 7, State: Proposed, Why: "there is nothing to propose any more: no sets"}},
		"somebody pushed":                      {Facts{Branch: "main", Pulls: []Pull{open}, Head: "b", Proposal: proposed}, Decision{Action: Mention, Pull: 7, State: Modified}},
		"open, and a pipeline file came":       {Facts{HasPipeline: true, Pulls: []Pull{open}, Head: "a", HeadIsOurs: true}, Decision{Action: Close, Pull: 7, State: Settled}},
		"somebody pushed, and the file came":   {Facts{HasPipeline: true, Pulls: []Pull{open}, Head: "b"}, Decision{Action: Close, Pull: 7, State: Settled}},
		"closed":                               {Facts{Pulls: []Pull{closed}, Head: "a", HeadIsOurs: true, Proposal: proposed}, Decision{Action: Leave, Pull: 7, State: Declined}},
		"closed by Liftlock":                   {Facts{Pulls: []Pull{retired}, Proposal: proposed}, Decision{Action: Open, State: Proposed}},
		"closed, and before that by Liftlock":  {Facts{Pulls: []Pull{closed, retired}, Proposal: proposed}, Decision{Action: Leave, Pull: 7, State: Declined}},
		"closed by Liftlock after a person":    {Facts{Pulls: []Pull{retired, {Number: 5, Ours: true}}, Proposal: proposed}, Decision{Action: Leave, Pull: 5, State: Declined}},
		"merged":                               {Facts{HasPipeline: true, Pulls: []Pull{merged}}, Decision{Action: Leave, Pull: 7, State: Settled}},
		"merged, and the file is gone":         {Facts{Pulls: []Pull{merged}, Proposal: proposed}, Decision{Action: Leave, Pull: 7, State: Merged}},
		"opened again":                         {Facts{Branch: "main", Pulls: []Pull{stranger, open}, Head: "a", HeadIsOurs: true, Proposal: proposed}, Decision{Action: Update, Pull: 7, State: Proposed}},
		"a stranger's from the branch":         {Facts{Pulls: []Pull{stranger}, Head: "b", Proposal: proposed}, Decision{Action: Leave, State: Occupied, Why: "#9 by mallory is open from the branch that Liftlock would propose from"}},
		"a stranger's, which is closed":        {Facts{Pulls: []Pull{{Number: 9}}, Proposal: proposed}, Decision{Action: Open, State: Proposed}},
		"somebody's commits and no pull":       {Facts{Head: "b", Proposal: proposed}, Decision{Action: Leave, State: Occupied, Why: "the branch that Liftlock would propose from has somebody else's commits: delete it, or open a pull request from it"}},
		"the branch was deleted, and it stays": {Facts{Branch: "main", Pulls: []Pull{open}, Key: "k", ShownKey: "k"}, Decision{Action: Make, Pull: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Decide(&c.facts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecideNeverInsists holds the invariants over whatever is known: nothing is opened beside an open one or after a
// person's word, and no head that isn't proven to be Liftlock's is pushed over.
func TestDecideNeverInsists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Branch: "main", HasPipeline: rapid.Bool().Draw(t, "file"), Head: rapid.SampledFrom([]string{"", "a"}).Draw(t, "head"), HeadIsOurs: rapid.Bool().Draw(t, "proven"),
			Key: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), ShownKey: "k", Proposal: rapid.SampledFrom([]*Proposal{nil, proposed, {Nothing: "no sets"}}).Draw(t, "proposal")}
		answered, isOpen := false, false
		for n := rapid.IntRange(0, 4).Draw(t, "pulls"); n > 0; n-- {
			p := Pull{Number: n, Open: rapid.Bool().Draw(t, "open"), Ours: rapid.Bool().Draw(t, "ours"), Base: rapid.SampledFrom([]string{"main", "x"}).Draw(t, "base")}
			p.Merged = !p.Open && rapid.Bool().Draw(t, "merged")
			p.Retired = !p.Open && !p.Merged && rapid.Bool().Draw(t, "retired")
			answered, isOpen = answered || p.Ours && !p.Open && !p.Retired, isOpen || p.Open
			f.Pulls = append(f.Pulls, p)
		}
		d := Decide(&f)
		if d.Action == Open && (answered || isOpen || f.HasPipeline) {
			t.Fatalf("%+v leads to %+v", f, d)
		}
		if (d.Action == Open || d.Action == Update) && (f.Head != "" && !f.HeadIsOurs || f.Proposal == nil || f.Proposal.Nothing != "") {
			t.Fatalf("%+v leads to %+v", f, d)
		}
		if d.Action == Make && f.Proposal != nil {
			t.Fatalf("%+v leads to %+v, for ever", f, d)
		}
	})
}

func TestKeyOfRequest(t *testing.T) {
	key := func(r Request) string {
		k, err := r.Key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	of := Request{Repository: "hub:acme/fleet", Branch: "main", Commit: "a"}
	other := of
	other.GitDir, other.Heads = "/data", map[string]string{"topic": "b"}
	if key(of) != key(other) {
		t.Error("another branch makes another proposal")
	}
	if other.Commit = "c"; key(of) == key(other) {
		t.Error("another commit makes the same proposal")
	}
}
