package policies

import (
	"testing"
	"time"
)

func TestSoak(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	all, qa := Soak{For: 2 * time.Hour}, Soak{Environment: "qa", For: 2 * time.Hour}
	goes := func(d time.Duration) Soaked {
		return Soaked{Environment: "qa", Direct: true, Running: d, Goes: true}
	}
	still := Soaked{Environment: "qa", Direct: true, Running: 90*time.Minute + 20*time.Second, Err: "the cluster doesn't answer"}
	staging := Soaked{Environment: "staging", Direct: true, Longest: 2 * time.Hour}
	for name, c := range map[string]struct {
		gate   Soak
		soaked []Soaked
		want   Outcome
		reason string
		until  time.Duration
	}{
		"full":                              {qa, []Soaked{goes(2 * time.Hour)}, Pass, "verified in qa for 2h without a break", 0},
		"a nanosecond is missing":           {qa, []Soaked{goes(2*time.Hour - 1)}, Wait, "2h in qa without a break is full at Mon 2026-03-02 12:00 UTC", 1},
		"it goes on":                        {qa, []Soaked{goes(time.Hour)}, Wait, "2h in qa without a break is full at Mon 2026-03-02 13:00 UTC", time.Hour},
		"it begins":                         {qa, []Soaked{goes(0)}, Wait, "2h in qa without a break is full at Mon 2026-03-02 14:00 UTC", 2 * time.Hour},
		"it stands still":                   {qa, []Soaked{still}, Wait, "1h30m of 2h in qa; it stands still: the cluster doesn't answer", 0},
		"it was full and has left":          {qa, []Soaked{{Environment: "qa", Direct: true, Longest: 2 * time.Hour}}, Pass, "verified in qa for 2h without a break", 0},
		"two halves are no whole":           {qa, []Soaked{{Environment: "qa", Direct: true, Running: time.Hour, Longest: time.Hour, Goes: true}}, Wait, "2h in qa without a break is full at Mon 2026-03-02 13:00 UTC", time.Hour},
		"it has left too early":             {qa, []Soaked{{Environment: "qa", Direct: true, Longest: time.Hour}}, Wait, "it was verified in qa for 1h without a break, 2h needed", 0},
		"hardly at all":                     {qa, []Soaked{{Environment: "qa", Direct: true, Longest: time.Second}}, Wait, "it was verified in qa for less than a minute without a break, 2h needed", 0},
		"a minute":                          {qa, []Soaked{{Environment: "qa", Direct: true, Longest: time.Minute}}, Wait, "it was verified in qa for 1m without a break, 2h needed", 0},
		"never verified":                    {qa, []Soaked{{Environment: "qa", Direct: true}}, Wait, "it has to be verified in qa for 2h without a break, and isn't yet", 0},
		"in quarantine":                     {qa, []Soaked{{Environment: "qa", Direct: true, Err: "it was reverted from qa by #7"}}, Wait, "2h in qa: it was reverted from qa by #7", 0},
		"nothing is known":                  {qa, nil, Wait, "for how long the release was verified before isn't known", 0},
		"another environment":               {qa, []Soaked{staging}, Wait, "for how long the release was verified before isn't known", 0},
		"every one before":                  {all, []Soaked{goes(3 * time.Hour), staging}, Pass, "verified in qa, staging for 2h without a break", 0},
		"one of them isn't full":            {all, []Soaked{goes(time.Hour), staging}, Wait, "2h in qa without a break is full at Mon 2026-03-02 13:00 UTC", time.Hour},
		"one farther up isn't asked":        {all, []Soaked{goes(2 * time.Hour), {Environment: "dev"}}, Pass, "verified in qa for 2h without a break", 0},
		"one farther up that is named":      {Soak{Environment: "dev", For: time.Hour}, []Soaked{goes(2 * time.Hour), {Environment: "dev"}}, Wait, "it has to be verified in dev for 1h without a break, and isn't yet", 0},
		"the last one says when":            {all, []Soaked{goes(time.Hour), {Environment: "staging", Direct: true, Running: 30 * time.Minute, Goes: true}}, Wait, "2h in qa without a break is full at Mon 2026-03-02 13:00 UTC; 2h in staging without a break is full at Mon 2026-03-02 13:30 UTC", 90 * time.Minute},
		"nobody knows when one of them may": {all, []Soaked{goes(time.Hour), {Environment: "staging", Direct: true}}, Wait, "2h in qa without a break is full at Mon 2026-03-02 13:00 UTC; it has to be verified in staging for 2h without a break, and isn't yet", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Gate{Soak: &c.gate}).Evaluate(Facts{Now: now, Soaked: c.soaked})
			if got.Gate != "soak" || got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %+v, want %s: %s", got, c.want, c.reason)
			}
			var until time.Time
			if c.until != 0 {
				until = now.Add(c.until)
			}
			if !got.Until.Equal(until) {
				t.Errorf("it may change at %s, want %s", got.Until, until)
			}
			if got := (&Gate{Soak: &c.gate}).Evaluate(Facts{Soaked: c.soaked}); got.Outcome != Wait {
				t.Errorf("without a time it says %+v", got)
			}
		})
	}
	if got := (&Gate{Soak: &all}).Describe(); got != "verified in each environment before for 2h without a break" {
		t.Errorf("it describes itself as %q", got)
	}
	if got := (&Gate{Soak: &qa}).Describe(); got != "verified in qa for 2h without a break" {
		t.Errorf("it describes itself as %q", got)
	}
	for d, want := range map[time.Duration]string{0: "soak.for: must be longer than 0; it is 0s", 2161 * time.Hour: "soak.for: must be at most 90 days (2160h); it is 2161h", 2160 * time.Hour: ""} {
		err := (&Gate{Soak: &Soak{For: d}}).Validate()
		if got := Problems(err); len(got) == 0 && want != "" || len(got) > 0 && got[0].Error() != want {
			t.Errorf("for %s: %v, want %q", d, err, want)
		}
	}
}
