package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// gatedFacts is qa waiting for its open promotion's gates; all else is well.
func gatedFacts(gates ...policies.Gate) *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").pull("qa", "r2")
	e := f.env("qa")
	e.Open.DeclaredRelease, e.Gates = Sure(id("r2")), gates
	return f
}

// TestGates holds that the pipeline's gates stop the merge of a promotion, and when it
// is looked at again because of them.
func TestGates(t *testing.T) {
	window := func(cron string) policies.Gate {
		return policies.Gate{Window: &policies.Window{Cron: cron, Duration: time.Hour, Timezone: "UTC"}}
	}
	merge := []string{"merge #7 into qa at head"}
	for name, c := range map[string]decisionCase{
		"no gate":                    {facts: gatedFacts(), want: merge},
		"a window that is open":      {facts: gatedFacts(window("30 11 * * *")), want: merge, next: 30 * time.Minute},
		"a window that opens now":    {facts: gatedFacts(window("0 12 * * *")), want: merge, next: time.Hour},
		"a window that closes now":   {facts: gatedFacts(window("0 11 * * *")), next: 23 * time.Hour, why: "closed until Tue 2026-03-03 11:00 UTC"},
		"a window that opens later":  {facts: gatedFacts(window("15 12 * * *")), next: 15 * time.Minute, why: "closed until Mon 2026-03-02 12:15 UTC"},
		"the earlier of two windows": {facts: gatedFacts(window("15 12 * * *"), window("10 12 * * *")), next: 10 * time.Minute, why: "closed until"},
		"a gate that isn't valid":    {facts: gatedFacts(window("@daily")), why: "the gate is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env, c.promo = "qa", Opened
			c.check(t)
		})
	}
}
