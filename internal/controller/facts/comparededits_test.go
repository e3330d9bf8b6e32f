package facts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/fieldedit"
)

// TestEditsBetween lists what turns one commit into another, with which files are there on one side alone,
// and not more files than can be compared.
func TestEditsBetween(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	base := w.commit("ada", "Before", map[string]string{"a": "1", "b": "1", "c": "1"})
	head := w.commit("ada", "After", map[string]string{"a": "2", "b": "", "d": "1"})
	got, err := w.o.Effects.EditsBetween(w.ctx(), w.repo, base, head)
	w.must(err)
	slices.SortFunc(got, func(a, b fieldedit.Edit) int { return strings.Compare(a.File, b.File) })
	want := []fieldedit.Edit{{File: "a", Mode: 0o100644, After: []byte("2")}, {File: "b", Deleted: true}, {File: "d", Mode: 0o100644, After: []byte("1"), Created: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, err := w.o.Effects.EditsBetween(w.ctx(), w.repo, head, head); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	if _, err := w.o.Effects.EditsBetween(w.ctx(), w.repo, landedHash, head); err == nil {
		t.Error("of a commit that isn't there something is known")
	}
}
