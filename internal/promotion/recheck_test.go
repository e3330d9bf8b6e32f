package promotion

import (
	"testing"
	"time"
)

// TestRecheckIsLater holds that after a time that has come and changed nothing the next decision
// isn't made at once.
func TestRecheckIsLater(t *testing.T) {
	for _, c := range []struct {
		name string
		next time.Time
		want time.Duration
	}{
		{"none", time.Time{}, -1},
		{"later", noon.Add(time.Hour), time.Hour},
		{"very soon", noon.Add(time.Millisecond), minRecheckDelay},
		{"now", noon, pastDueRecheckDelay},
		{"past", noon.Add(-time.Hour), pastDueRecheckDelay},
	} {
		f := linearFacts()
		f.env("qa").Targets[0].Verdict.Next = c.next
		want := time.Time{}
		if c.want >= 0 {
			want = noon.Add(c.want)
		}
		if got := decideAlone(t, *f).Next; !got.Equal(want) {
			t.Errorf("%s: look again at %s, want %s", c.name, got, want)
		}
	}
}
