package gitlabshape

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordedPayloads holds the payloads that the webhooks' parser is tested with against GitLab's
// description, and that there is one of each event that it describes.
func TestRecordedPayloads(t *testing.T) {
	all, err := Hooks()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../../testdata/webhooks/gitlab/*.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var payload map[string]any
		if err := json.Unmarshal(raw, &payload); err != nil {
			t.Fatal(err)
		}
		name, _ := payload["object_kind"].(string)
		if about, _ := payload["object_attributes"].(map[string]any); name == "note" && about["noteable_type"] == "MergeRequest" {
			name = "note_merge_request"
		}
		described, ok := all[name]
		if !ok {
			continue
		}
		seen[name] = true
		for _, wrong := range described.Check(payload) {
			t.Errorf("%s: %s", filepath.Base(file), wrong)
		}
	}
	for name := range all {
		if !seen[name] {
			t.Errorf("there is no payload of %s", name)
		}
	}
}
