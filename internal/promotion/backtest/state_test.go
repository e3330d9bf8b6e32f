package backtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func sampleFacts(now time.Time) *promotion.ComponentFacts {
	return &promotion.ComponentFacts{Now: now, Unit: promotion.Unit{Repo: "hub:acme/shop", Pipeline: "shop", Component: "web"},
		Tip: now.String(), Holds: promotion.Sure([]promotion.Hold(nil)),
		Envs: []promotion.Env{{Name: "prod", Tip: now.String(), Release: promotion.Sure(promotion.Release{ID: "r1", Name: "1.0"}),
			Landed:    promotion.Sure(promotion.Landed{Commit: "c1", At: noon, By: promotion.ByPromotion, Pull: 3}),
			PastPulls: []promotion.PastPull{{Number: 3, Release: "r1", Merged: true, At: noon}},
			History:   []promotion.Arrival{{Seq: 7, Release: "r1", Commit: "c1", At: noon, Soak: promotion.Soak{Seen: now}}},
			Open: &promotion.Pull{Number: 4, Release: "r2", Head: now.String(), CreatedAt: noon,
				Review: policies.Facts{Now: now, Approvals: []policies.Approval{{User: "ada"}}}},
			Targets: []promotion.Target{{Name: "web-prod", Verdict: verification.Verdict{State: verification.Verified, Next: now, Reason: now.String()}}}}}}
}

// TestNextChange holds that a look at which nothing changed but the time makes no change, that what
// changed is there and nothing else, and that the changes lead to the state.
func TestNextChange(t *testing.T) {
	var d promotion.ComponentDecision
	first, all, err := NextChange(nil, sampleFacts(noon), &d, "x")
	if err != nil || all == nil {
		t.Fatalf("the first look gave %v, %v", all, err)
	}
	second, none, err := NextChange(first, sampleFacts(noon.Add(time.Hour)), &d, "x")
	if err != nil || none != nil {
		t.Fatalf("only the time went by, and it is a change: %s %v", none.Patch, err)
	}
	later := sampleFacts(noon.Add(2 * time.Hour))
	later.Envs[0].Open = nil
	later.Envs[0].PastPulls = append(later.Envs[0].PastPulls, promotion.PastPull{Number: 4, Release: "r2", At: later.Now})
	later.Envs[0].Targets[0].Verdict.State = verification.Degraded
	third, change, err := NextChange(second, later, &d, "x")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"e":{"prod":{"t":{"web-prod":{"verdict":{"State":"degraded","Reason":"2026-03-02 14:00:00 +0000 UTC"}}},"o":null,` +
		`"pp":{"4":{"number":4,"release":"r2","at":"2026-03-02T14:00:00Z"}}}}}`
	if string(change.Patch) != want {
		t.Errorf("got  %s\nwant %s", change.Patch, want)
	}
	trace := Trace{Changes: []Change{*all, *change}}
	var last *State
	for _, s := range trace.States() {
		if s.err != nil {
			t.Fatal(s.err)
		}
		last = s.state
	}
	if patch, err := diffValues(last, third); err != nil || patch != nil {
		t.Errorf("the changes lead to something else: %s %v", patch, err)
	}
	if open := first.Envs["prod"].Open; open == nil || open.Review.Approvals[0].User != "ada" {
		t.Error("the state before was changed")
	}
}

// TestStateJSON holds that a state that was written is read as it was.
func TestStateJSON(t *testing.T) {
	s, _, err := NextChange(nil, sampleFacts(noon), &promotion.ComponentDecision{}, "x")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again State
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if patch, err := diffValues(s, &again); err != nil || patch != nil {
		t.Errorf("read again it differs: %s %v", patch, err)
	}
	if err := again.UnmarshalJSON([]byte(`{"zz":1}`)); err == nil {
		t.Error("a field that there is none of was read")
	}
}

// FuzzTrace holds that whatever is read as a trace is refused or can be written and read again.
func FuzzTrace(f *testing.F) {
	_, c, _ := NextChange(nil, sampleFacts(noon), &promotion.ComponentDecision{}, "x")
	f.Add([]byte(c.Patch))
	f.Add([]byte(`{"e":{"prod":{"o":{},"t":{"a":{}}}}}`))
	f.Add([]byte(`{"e":{"prod":null},"c":{"1":{}},"h":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s State
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		written, err := json.Marshal(&s)
		if err != nil {
			return // a time past the year 9999
		}
		var again State
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if patch, err := diffValues(&s, &again); err != nil || patch != nil {
			t.Fatalf("read again it differs: %s %v", patch, err)
		}
	})
}

// BenchmarkNextChange is what a look at which nothing changed costs.
func BenchmarkNextChange(b *testing.B) {
	c := sampleFacts(noon)
	var d promotion.ComponentDecision
	s, _, _ := NextChange(nil, c, &d, "x")
	b.ReportAllocs()
	for b.Loop() {
		if _, change, err := NextChange(s, c, &d, "x"); change != nil || err != nil {
			b.Fatal(change, err)
		}
	}
}
