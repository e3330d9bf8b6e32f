package cause

import "testing"

// TestIsStuck has what a person should look at, and what goes away by itself.
func TestIsStuck(t *testing.T) {
	for code, want := range map[Code]bool{Failing: true, Unmanaged: true, Quarantined: true, Limit: false, Hold: false, "exploded": false} {
		if got := code.IsStuck(); got != want {
			t.Errorf("%s is stuck: %t, want %t", code, got, want)
		}
	}
}
