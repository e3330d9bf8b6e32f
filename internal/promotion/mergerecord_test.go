package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// TestMergeRecord holds the record of a merge: the answers of the environment's gates, and a hash.
// The same facts have the same hash, and others have another.
func TestMergeRecord(t *testing.T) {
	f := gatedFacts(policies.Gate{Approvals: &policies.Approvals{Count: 1}})
	d := decideAlone(t, *f)
	m := Merge{Environment: "qa", Pull: 7, Head: "h", Tip: "t"}
	record := func(m Merge) MergeRecord {
		r, err := NewMergeRecord(f, &d, m, "r2")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := record(m)
	if first.Kind != KindPromotion || first.Head != "h" || first.Tip != "t" || first.Release != "r2" || !first.JudgedAt.Equal(f.Now) || len(first.Gates) != len(d.Env("qa").Gates) || len(first.Gates) == 0 {
		t.Errorf("it is %+v", first)
	}
	if again := record(m); again.Inputs != first.Inputs || len(first.Inputs) != 64 {
		t.Errorf("the same facts are %q, then %q", first.Inputs, again.Inputs)
	}
	f.env("qa").Open.Review.Approvals = append(f.env("qa").Open.Review.Approvals, policies.Approval{User: "eve"})
	if other := record(m); other.Inputs == first.Inputs {
		t.Error("another review is the same inputs")
	}
	m.Revert = true
	if r := record(m); r.Kind != KindRevert || len(r.Gates) != 0 {
		t.Errorf("a revert is %+v", r)
	}
}

func TestMergeRecordDescribe(t *testing.T) {
	for want, r := range map[string]MergeRecord{
		"a revert, which has no gates":                     {Kind: KindRevert},
		"nobody had looked at its gates":                   {Kind: KindPromotion},
		"it has no gates":                                  {Kind: KindPromotion, JudgedAt: noon},
		"window pass, soak skipped by ada, approvals wait": {Kind: KindPromotion, JudgedAt: noon, Gates: []policies.Result{{Gate: "window", Outcome: policies.Pass}, {Gate: "soak", Outcome: policies.Pass, SkippedBy: "ada"}, {Gate: "approvals", Outcome: policies.Wait}}},
		"hold wait": {Kind: KindRevert, JudgedAt: noon.Add(time.Second), Gates: []policies.Result{{Gate: "hold", Outcome: policies.Wait}}},
	} {
		if got := r.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&MergeRecord{Commit: "0123456789abcdef"}).Outcome(); got != "merged as 0123456789ab" {
		t.Error(got)
	}
}
