package promotion

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestReasonsCount holds that what speaks against something needs a reason: an empty one
// changes nothing.
func TestReasonsCount(t *testing.T) {
	for name, mark := range map[string]func(why string) (was, is, reason string){
		"an edit": func(why string) (string, string, string) {
			c := Composition{State: EditEmpty}
			c.Refuse(why)
			return string(EditEmpty), string(c.State), c.Reason
		},
		"a head": func(why string) (string, string, string) {
			var p Pull
			p.MarkModified(why)
			return "", string(p.HeadState), p.HeadReason
		},
		"a branch": func(why string) (string, string, string) {
			var e Env
			e.MarkUnmanaged(why)
			return "", string(e.BranchState), e.BranchReason
		},
		"a revert's branch": func(why string) (string, string, string) {
			var e Env
			e.MarkRevertUnmanaged(why)
			return "", string(e.RevertBranchState), e.RevertBranchReason
		},
		"what merging reaches": func(why string) (string, string, string) {
			var p Pull
			p.MarkReach(ReachUnknown, why)
			return string(ReachEnvironment), string(p.Reach), p.ReachReason
		},
	} {
		if was, is, reason := mark(""); is != was || reason != "" {
			t.Errorf("%s was %q, and is %q because of nothing (%q)", name, was, is, reason)
		}
		if was, is, reason := mark("because"); is == was || reason != "because" {
			t.Errorf("%s was %q, and is %q because %q", name, was, is, reason)
		}
	}
}

// TestCurrentArrival holds that of what can't be read nothing is current, whatever was read before.
func TestCurrentArrival(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Env)
		want   bool
	}{
		"all is known":                       {func(*Env) {}, true},
		"its release can't be read any more": {func(e *Env) { e.Release.OK = false }, false},
		"where it landed can't be told":      {func(e *Env) { e.Landed.OK = false }, false},
	} {
		e := arrivedFacts().env("dev")
		c.change(e)
		if got := e.currentArrival(); (got != nil) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestQuarantineBegins holds since when a release that is on its way out is barred: by what this
// decision does, from now on.
func TestQuarantineBegins(t *testing.T) {
	f := arrivedFacts().openRevert("qa", "r2")
	j := &evaluator{facts: f, reverting: map[string]string{"prod": id("r2")}}
	for env, want := range map[string]time.Time{"qa": f.env("qa").Revert.CreatedAt, "prod": noon} {
		if why, since := j.quarantineReason(f.env(env), id("r2")); why == "" || !since.Equal(want) {
			t.Errorf("in %s it is barred since %s (%s), want %s", env, since, why, want)
		}
	}
}

// TestUnwritableDecision holds that a decision which JSON can't hold is an error and no half of one.
func TestUnwritableDecision(t *testing.T) {
	never := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, d := range map[string]json.Marshaler{
		"a decision":  Decision{Next: never},
		"a component": ComponentDecision{Next: never},
		"an action":   Decision{Actions: []Action{RequestReviewers{}, Merge{Until: never}}},
	} {
		if raw, err := d.MarshalJSON(); err == nil || !strings.Contains(err.Error(), "year") {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}
