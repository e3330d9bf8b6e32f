package controller

import (
	"errors"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/act"
)

// TestARealFailureIsTold holds that what only moved meanwhile, which is looked at
// again at once, doesn't hide what failed for another component.
func TestARealFailureIsTold(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, order := range map[string][]error{"first": {refused, act.ErrMoved}, "last": {act.ErrMoved, refused}} {
		f := failures{}
		for _, err := range order {
			f.note("qa", err)
		}
		if err := f.err(); moved(err) || !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := failures{}
	f.note("qa", act.ErrMoved)
	if err := f.err(); !moved(err) || !f.in("qa") || f.in("prod") {
		t.Errorf("moved: %v", err)
	}
}
