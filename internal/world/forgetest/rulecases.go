package forgetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

// CompareRules compares what a driver read of a branch's rules with what is wanted: an error of a
// kind, or, where that is nil, these rules.
func CompareRules(t *testing.T, got *forge.BranchRules, err error, want *forge.BranchRules, kind error) {
	t.Helper()
	switch {
	case kind != nil && !errors.Is(err, kind):
		t.Errorf("got %+v, %v, want %v", got, err, kind)
	case kind != nil:
	case err != nil:
		t.Error(err)
	default:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	}
}
