package event

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestKinds holds that each kind is declared once and has a tone that the console's colours know.
// Each word has a kind that is told by it and a row in the docs.
func TestKinds(t *testing.T) {
	page, err := os.ReadFile("../../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	var seen []Kind
	var notified []string
	for _, d := range Kinds() {
		if slices.Contains(seen, d.Kind) {
			t.Errorf("%s is declared twice", d.Kind)
		}
		if !slices.Contains([]string{"ok", "busy", "bad", "undo", "hand", "quiet"}, d.Tone) {
			t.Errorf("%s has the tone %q, for which there is no colour", d.Kind, d.Tone)
		}
		if d.Word != "" && !slices.Contains(WordNames(), d.Word) {
			t.Errorf("%s is told as %q, which is no word", d.Kind, d.Word)
		}
		seen, notified = append(seen, d.Kind), append(notified, d.Word)
	}
	for _, w := range WordNames() {
		if !slices.Contains(notified, w) {
			t.Errorf("no kind is told as %q", w)
		}
		if !strings.Contains(string(page), "\n- `"+w+"`: ") {
			t.Errorf("docs/notifications.md has no row for %q", w)
		}
	}
}

// TestUnknownKind has what becomes of events that a version wrote which had more kinds.
func TestUnknownKind(t *testing.T) {
	if k := Kind("exploded"); k.Word() != "" || k.Tone() != "quiet" {
		t.Errorf("an unknown kind is told as %q in the tone %q, want nobody told, quietly", k.Word(), k.Tone())
	}
}
