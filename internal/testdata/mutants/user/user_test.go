// Package user stands for whoever uses the code that is mutated: its tests are another judge.
package user

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/testdata/mutants"
)

func TestUser(t *testing.T) {
	if said, err := mutants.Choose(time.Time{}, time.Time{}, false); err == nil {
		t.Errorf("%q, and no error", said)
	}
}
