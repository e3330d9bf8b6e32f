package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestClip keeps of changes what people see first, and counts the rest.
func TestClip(t *testing.T) {
	text := func(line string) string { return strings.Repeat("same\n", 10_000) + line + "\n" }
	large := map[string]any{}
	for i := range 5_000 {
		large[fmt.Sprintf("key-%04d", i)] = []any{strings.Repeat("x", 50), json.Number("1")}
	}
	c := &Changes{Objects: []Change{
		{Op: Changed, Kind: "ConfigMap", Name: "a", Fields: []Field{{Path: "data.conf", Op: Changed, Old: text("one"), New: text("two")}}},
		{Op: Added, Kind: "X", Name: "b", Fields: []Field{{Path: "spec", Op: Added, New: large}, {Path: "status", Op: Added, New: "y"}, {Path: "z", Op: Added, New: "z"}}},
		{Op: Added, Kind: "X", Name: "c"},
		{Op: Removed, Kind: "X", Name: "d"},
	}}
	if whole := c.Clip(1 << 30); whole.Summary() != c.Summary() || len(whole.Objects) != 4 || whole.Objects[1].MoreFields != 0 {
		t.Errorf("with room it is %+v", whole)
	}
	clipped := c.Clip(4_000)
	raw, err := json.Marshal(clipped)
	if err != nil || len(raw) > 10_000 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	got := clipped.Text(TextLimit{})
	for _, want := range []string{"- data.conf: one\n", "+ data.conf: two\n", "key-0000[0]: xxx", "… and 2 more fields", "… and 2 more objects\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if clipped.Summary() != "2 added, 1 changed, 1 removed" {
		t.Errorf("it counts %s", clipped.Summary())
	}
}
