package appset

import (
	"testing"
	"testing/fstest"
)

// FuzzReadSets holds that no manifest makes decoding panic, and that what
// decodes has a name.
func FuzzReadSets(f *testing.F) {
	f.Add([]byte(directoriesSet))
	f.Add([]byte(filesSet + "---\n" + directoriesSet))
	f.Add([]byte(`{"kind":"List","items":[{"kind":"ApplicationSet"},{"kind":"List","items":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sets, _, passing := readSets(fstest.MapFS{"a.yaml": {Data: data}}, "a.yaml")
		if passing {
			t.Fatal("a file's content is not a passing problem")
		}
		for _, s := range sets {
			if s.spec.Name == "" {
				t.Fatal("a set without a name")
			}
		}
	})
}
