package history

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion"
)

func TestHolds(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const text = "by: ada\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []promotion.Hold
	}{
		"none":        {map[string]string{"README.md": "x"}, nil},
		"a pipeline":  {map[string]string{"holds/shop/pipeline.yaml": text}, []promotion.Hold{{Scope: "pipeline", By: "ada", Reason: "load test", At: at}}},
		"a component": {map[string]string{"holds/shop/component/web.yaml": text}, []promotion.Hold{{Scope: "component", By: "ada", Reason: "load test", At: at}}},
		"environments": {map[string]string{"holds/shop/environment/qa.yaml": text, "holds/shop/environment/.yaml": text, "holds/shop/environment/notes.txt": "x"},
			[]promotion.Hold{{Scope: "environment", Environment: "qa", By: "ada", Reason: "load test", At: at}}},
		"somebody else's": {map[string]string{"holds/shop/component/api.yaml": text, "holds/other/pipeline.yaml": text}, nil},
		"one that stops reverts": {map[string]string{"holds/shop/pipeline.yaml": text + "reverts: true\nvia: api\n"},
			[]promotion.Hold{{Scope: "pipeline", By: "ada", Reason: "load test", Reverts: true, At: at}}},
		"two people's": {map[string]string{"holds/shop/pipeline.yaml": text + "also:\n    - by: grace\n      reason: lunch\n      at: \"2026-01-02T03:04:05Z\"\n      until: \"2026-01-02T03:04:05Z\"\n"},
			[]promotion.Hold{{Scope: "pipeline", By: "ada", Reason: "load test", At: at}, {Scope: "pipeline", By: "grace", Reason: "lunch", At: at, Until: at}}},
		"one without a time": {map[string]string{"holds/shop/pipeline.yaml": "by: ada\nreason: load test\nat: soon\n"},
			[]promotion.Hold{{Scope: "pipeline", By: "ada", Reason: "load test"}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for file, text := range c.files {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := Holds(tree, "shop", "web")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("one that can't be read still holds", func(t *testing.T) {
		got, err := Holds(fstest.MapFS{"holds/shop/pipeline.yaml": &fstest.MapFile{Data: []byte("{")}}, "shop", "web")
		if err != nil || len(got) != 1 || got[0].By != "" || got[0].Reason == "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestHoldsAreOfAccounts writes and reads which account set a hold; nothing is written where that isn't
// known, as in files from before it was.
func TestHoldsAreOfAccounts(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const known = "by: ada\nbyID: 7\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\nalso:\n    - by: grace\n      reason: lunch\n      at: \"2026-01-02T03:04:05Z\"\n    - by: ken\n      byID: 9\n      reason: tea\n      at: \"2026-01-02T03:04:05Z\"\n"
	want := []promotion.Holding{{Hold: promotion.Hold{By: "ada", Reason: "load test", At: at}, ByID: 7}, {Hold: promotion.Hold{By: "grace", Reason: "lunch", At: at}}, {Hold: promotion.Hold{By: "ken", Reason: "tea", At: at}, ByID: 9}}
	text, err := EncodeHolds(want)
	if err != nil || string(text) != known {
		t.Errorf("%v, it is written as:\n%s", err, text)
	}
	if diff := cmp.Diff(want, decodeHolds("x", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzHolds holds that whatever a hold's file has it holds, and that what is written of it is
// read as the same, to the second.
func FuzzHolds(f *testing.F) {
	f.Add([]byte("by: ada\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\nbyID: 7\nreverts: true\nvia: api\nalso:\n  - {by: grace, byID: -8, reason: lunch, at: soon, until: \"2026-01-02T03:04:05+01:00\"}\n"))
	f.Add([]byte("also: [{}]"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := decodeHolds("x", raw)
		if len(got) == 0 {
			t.Fatal("it holds nothing")
		}
		text, err := EncodeHolds(got)
		if err != nil {
			return // words that no file has
		}
		again := decodeHolds("x", text)
		if len(again) != len(got) {
			t.Fatalf("%d holds are read as %d:\n%s", len(got), len(again), text)
		}
		for i := range got {
			if y := got[i].Until.UTC().Year(); y < 1 || y > 9999 {
				continue // by its offset: written down it has no end
			}
			if a, b := again[i], got[i]; a.By != b.By || a.ByID != b.ByID || a.Via != b.Via || a.Reverts != b.Reverts || !a.Until.Equal(b.Until.Truncate(time.Second)) {
				t.Errorf("%+v is read as %+v:\n%s", b, a, text)
			}
		}
	})
}
