package controller

import "testing"

// TestMergeDelay has a merge that comes too early again and again tried less and less often, up
// to a bound, and anew once it came in time.
func TestMergeDelay(t *testing.T) {
	e := &Controller{staleMerges: map[string]int{}}
	last := mergeRetryDelay
	for range 40 {
		d := e.mergeDelay("web", true)
		if d < last || d > maxRetryDelay {
			t.Fatalf("%s after %s", d, last)
		}
		last = d
	}
	if want := staleDelay(40); last != want {
		t.Errorf("at last it rests %s, want %s", last, want)
	}
	if d := e.mergeDelay("api", true); d != mergeRetryDelay {
		t.Errorf("another unit rests %s", d)
	}
	if d := e.mergeDelay("web", false); d != 0 {
		t.Errorf("in time it rests %s", d)
	}
	if d := e.mergeDelay("web", true); d != mergeRetryDelay {
		t.Errorf("the next time it rests %s", d)
	}
}
