package textdiff

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
		old, recent := letters.Draw(t, "old"), letters.Draw(t, "new")
		var got []string
		at := 0
		for _, h := range Hunks(old, recent) {
			got = append(append(got, old[at:h.OldFrom]...), recent[h.NewFrom:h.NewTo]...)
			at = h.OldTo
		}
		if got = append(got, old[at:]...); strings.Join(got, "") != strings.Join(recent, "") {
			t.Fatalf("%v", Hunks(old, recent))
		}
	})
}
