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

// TestLaterVerdictWins holds that of two verdicts on an arrival the one that was said last
// counts, also where a clock says that both were at once, or the other way round.
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
