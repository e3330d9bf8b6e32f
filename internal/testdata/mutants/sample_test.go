package mutants

import "testing"

func TestSample(t *testing.T) {
	if n := countToZero(3); n != 3 {
		t.Errorf("%d steps", n)
	}
	if !either(true, true) {
		t.Error("neither")
	}
}
