package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestMeasureDelivery(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	const release, older = "r2", "r1"
	landed := Arrival{Release: release, Commit: "c2", By: ByPromotion, At: ago(10)}
	verified, degraded, reverified := landed, landed, landed
	verified.VerifiedAt = ago(5)
	degraded.DegradedAt = ago(4)
	reverified.DegradedAt, reverified.VerifiedAt = ago(4), ago(3)
	back := Arrival{Release: older, Commit: "c3", By: ByRevert, At: ago(2)}
	good := Arrival{Release: older, Commit: "c1", By: ByPromotion, At: ago(99), VerifiedAt: ago(98)}
	byHand := landed
	byHand.By = ByPerson
	source := []Arrival{{Release: release, Commit: "s2", By: ByPerson, At: ago(30)}, {Release: release, Commit: "s1", By: ByPerson, At: ago(400)}}
	later := []Arrival{{Release: release, Commit: "s3", By: ByPerson, At: ago(1)}}

	for name, x := range map[string]struct {
		source, history []Arrival
		record          Record
		want            Delivery
	}{
		"verified for the first time":            {source, []Arrival{landed, good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true, Lead: 30 * time.Minute}},
		"the source has it only since":           {later, []Arrival{landed}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true}},
		"the source forgot it":                   {nil, []Arrival{landed}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true}},
		"verified again":                         {source, []Arrival{verified}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{}},
		"degraded at once":                       {source, []Arrival{landed, good}, Record{Release: release, Commit: "c2", Degraded: true}, Delivery{Change: true, Failure: true}},
		"degraded after it was verified":         {source, []Arrival{verified, good}, Record{Release: release, Commit: "c2", Degraded: true}, Delivery{Failure: true}},
		"degraded once more":                     {source, []Arrival{reverified, good}, Record{Release: release, Commit: "c2", Degraded: true}, Delivery{}},
		"by hand, it is nobody's change":         {source, []Arrival{byHand, good}, Record{Release: release, Commit: "c2", Degraded: true}, Delivery{}},
		"by hand, it has no lead time":           {source, []Arrival{byHand, good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{}},
		"well again by itself":                   {source, []Arrival{degraded, good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Lead: 30 * time.Minute, Restore: 4 * time.Minute}},
		"well again by a revert":                 {source, []Arrival{back, degraded, good}, Record{Release: older, Commit: "c3", Verified: true}, Delivery{Restore: 4 * time.Minute}},
		"by the next release, after one between": {source, []Arrival{{Release: "r4", Commit: "c4", By: ByPromotion, At: ago(1)}, {Release: "r3", Commit: "c3", By: ByPromotion, At: ago(2)}, degraded, good}, Record{Release: "r4", Commit: "c4", Verified: true}, Delivery{Change: true, Restore: 4 * time.Minute}},
		"it had been well in between":            {source, []Arrival{back, reverified, degraded}, Record{Release: older, Commit: "c3", Verified: true}, Delivery{}},
		"it came again since":                    {source, []Arrival{{Release: release, Commit: "c4", By: ByPromotion, At: ago(1), DegradedAt: ago(1)}, landed, good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true, Lead: 30 * time.Minute}},
		"its commit brought something else too":  {source, []Arrival{{Release: "r5", Commit: "c2", By: ByPerson, At: ago(10)}, landed, good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true, Lead: 30 * time.Minute}},
		"the source has it since that very time": {[]Arrival{{Release: release, Commit: "s2", By: ByPerson, At: ago(10)}}, []Arrival{landed}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{Change: true, Lead: 10 * time.Minute}},
		"degraded as far as is known":            {source, []Arrival{{Release: "r4", Commit: "c4", By: ByPromotion, At: ago(1)}, degraded}, Record{Release: "r4", Commit: "c4", Verified: true}, Delivery{Change: true, Restore: 4 * time.Minute}},
		"an arrival that is gone":                {source, []Arrival{good}, Record{Release: release, Commit: "c2", Verified: true}, Delivery{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &ComponentFacts{Now: now, Envs: []Env{
				{Name: "dev", Spec: pipeline.Environment{}, History: x.source},
				{Name: "prod", Spec: pipeline.Environment{After: []string{"dev"}}, History: x.history}}}
			x.record.Environment = "prod"
			if got := f.MeasureDelivery(x.record); got != x.want {
				t.Errorf("got %+v, want %+v", got, x.want)
			}
		})
	}
}

// TestLaterVerdictWins holds that of two verdicts on an arrival the later one counts. That holds
// too where a clock says that both came at once, or the other way round.
func TestLaterVerdictWins(t *testing.T) {
	for name, since := range map[string]time.Duration{"later": time.Minute, "at once": 0, "by a clock that is behind": -time.Minute} {
		a := Arrival{DegradedAt: noon}
		if a.MarkVerified(noon.Add(since)); !a.IsVerified() || a.IsDegraded() {
			t.Errorf("verified %s: %+v", name, a)
		}
		a = Arrival{VerifiedAt: noon}
		if a.MarkDegraded(noon.Add(since)); a.IsVerified() || !a.IsDegraded() {
			t.Errorf("degraded %s: %+v", name, a)
		}
		if a.DegradedAt.Equal(a.VerifiedAt) {
			t.Errorf("%s, both are at %s", name, a.VerifiedAt)
		}
	}
}

// TestLeadFromTheFirstSource begins where a release came in first.
func TestLeadFromTheFirstSource(t *testing.T) {
	came := func(minutes int) []Arrival {
		return []Arrival{{Release: "r2", Commit: "s2", At: noon.Add(-time.Duration(minutes) * time.Minute)}}
	}
	for name, sources := range map[string][2]int{"in the first": {30, 20}, "in the second": {20, 30}} {
		f := &ComponentFacts{Now: noon, Envs: []Env{{Name: "dev", History: came(sources[0])}, {Name: "lab", History: came(sources[1])},
			{Name: "prod", Spec: pipeline.Environment{After: []string{"dev", "lab"}}, History: []Arrival{{Release: "r2", Commit: "c2", By: ByPromotion, At: noon}}}}}
		if got := f.MeasureDelivery(Record{Environment: "prod", Release: "r2", Commit: "c2", Verified: true}); got.Lead != 30*time.Minute {
			t.Errorf("%s: %s", name, got.Lead)
		}
	}
}

// TestIsReverted tells what was found out before a revert from what was since.
func TestIsReverted(t *testing.T) {
	for name, c := range map[string]struct {
		history []Arrival // newest first
		want    string    // of each whether it is
	}{
		"never":                    {[]Arrival{{Release: "b"}, {Release: "a"}}, "--"},
		"taken back":               {[]Arrival{{Release: "a", By: ByRevert}, {Release: "b"}, {Release: "a"}}, "-r-"},
		"taken back, and back now": {[]Arrival{{Release: "b"}, {Release: "a", By: ByRevert}, {Release: "b"}, {Release: "a"}}, "--r-"},
		"another was taken back":   {[]Arrival{{Release: "c"}, {Release: "a", By: ByRevert}, {Release: "b"}, {Release: "c"}}, "--r-"},
	} {
		got := ""
		for i := range c.history {
			got += map[bool]string{true: "r", false: "-"}[(&Env{History: c.history}).isReverted(i)]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestMarkModified keeps the first reason.
func TestMarkModified(t *testing.T) {
	var p Pull
	if p.MarkModified(""); p.HeadState != HeadComposed {
		t.Errorf("without a reason: %+v", p)
	}
	p.MarkModified("it changes base/x")
	if p.MarkModified("it is old"); p.HeadState != HeadModified || p.HeadReason != "it changes base/x" {
		t.Errorf("it is %q: %q", p.HeadState, p.HeadReason)
	}
}
