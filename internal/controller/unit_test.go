package controller

import (
	"errors"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/act"
)

// TestRealFailureIsReported holds that what only moved meanwhile, which is looked at
// again at once, doesn't hide what failed for another component.
func TestRealFailureIsReported(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, order := range map[string][]error{"first": {refused, act.ErrStale}, "last": {act.ErrStale, refused}} {
		f := failures{}
		for _, err := range order {
			f.record("qa", err)
		}
		if err := (stepFailures{f}).joined(); isStale(err) || !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := failures{}
	f.record("qa", act.ErrStale)
	if err := (stepFailures{f}).joined(); !isStale(err) || f["qa"] == nil || f["prod"] != nil {
		t.Errorf("moved: %v", err)
	}
}
