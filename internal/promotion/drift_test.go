package promotion

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestDriftIsOnlyShown decides with a drifted target what it decides without, and says so.
func TestDriftIsOnlyShown(t *testing.T) {
	arrived := func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		return f.verified("dev")
	}
	drifted := arrived().with(func(f *ComponentFacts) {
		f.env("dev").Targets[0].Verdict.Drift = &verification.Drift{Total: 2}
	})
	want, got := decideAlone(t, *arrived()), decideAlone(t, *drifted)
	if diff := cmp.Diff(want.Actions, got.Actions); diff != "" {
		t.Errorf("it acts on drift (-without +with):\n%s", diff)
	}
	if got.Envs[0].Targets["web-dev"].Drift == nil {
		t.Error("the target doesn't show its drift")
	}
	if why := "verified and healthy on 1 target; 1 was changed in the cluster since"; got.Envs[0].Reason != why {
		t.Errorf("dev is %q, want %q", got.Envs[0].Reason, why)
	}
}
