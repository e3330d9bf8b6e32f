package promotion

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

var update = flag.Bool("update", false, "write the golden decisions anew")

// replay is a decision as it can be kept: what it was made from and what it was.
type replay struct {
	Facts    json.RawMessage `json:"facts"`
	Decision json.RawMessage `json:"decision"`
}

// replays are the situations that testdata/decisions starts from. Any other
// file that is put there, with facts from a log, is replayed too.
var replays = map[string]func() *ComponentFacts{
	"first-day": linearFacts,
	"opens": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		return f.verified("dev").composed("qa", "r2")
	},
	"waits-for-approvals": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		f.verified("dev").land("qa", "r2", ByPromotion, 5)
		return f.verified("qa").pull("prod", "r2", "ada")
	},
	"reverts": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
		f.verdict("qa", verification.Degraded, "health is Degraded, and has been for 30s")
		t := &e.Targets[0]
		t.Verdict.Since = noon.Add(-time.Minute)
		t.Unhealthy = Sure([]verification.Resource{{Kind: "Deployment", Name: "web", Health: "Degraded", Message: "ImagePullBackOff"}})
		t.Timeline = []verification.StateChange{{At: noon.Add(-3 * time.Minute), State: verification.Syncing}, {At: noon.Add(-2 * time.Minute), State: verification.Progressing, Note: "Progressing"}}
		e.Restore = Sure(Composition{Tip: tip, Files: []string{"overlays/qa/kustomization.yaml"}})
		return f
	},
	"an-incident": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		f.verified("dev").land("qa", "r2", ByPromotion, 5)
		f.verdict("qa", verification.Degraded, "health is Degraded, and has been for 30s")
		f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "db-qa", Since: noon}}
		t := &f.env("qa").Targets[0]
		t.Unhealthy = Sure([]verification.Resource{{Group: "apps", Kind: "StatefulSet", Namespace: "web", Name: "cache", Health: "Degraded", Message: "node not ready"}})
		t.ChangedObjects = Sure([]Object{{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}})
		return f
	},
	"reverts-in-bad-weather": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
		f.verdict("qa", verification.Degraded, "health is Degraded, and has been for 30s")
		f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "db-qa", Since: noon}}
		e.Targets[0].Unhealthy = Sure([]verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web", Health: "Degraded", Message: "ImagePullBackOff"}})
		e.Targets[0].ChangedObjects = Sure([]Object{{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}})
		e.Restore = Sure(Composition{Tip: tip, Files: []string{"overlays/qa/kustomization.yaml"}})
		return f
	},
	"changed-by-hand": func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		f.verified("dev").land("qa", "r9", ByPerson, 0)
		return f
	},
}

// TestReplay decides over the kept facts again; -update keeps the new answers.
func TestReplay(t *testing.T) {
	for name, facts := range replays {
		file := filepath.Join("testdata", "decisions", name+".json")
		if _, err := os.Stat(file); !*update || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		writeReplay(t, file, mustJSON(t, Facts{Components: []ComponentFacts{*facts()}}))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "decisions", "*.json"))
	if err != nil || len(files) < len(replays) {
		t.Fatalf("only %d decisions are kept: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r replay
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			if *update {
				writeReplay(t, file, r.Facts)
				return
			}
			got, want := decideJSON(t, r.Facts), new(bytes.Buffer)
			if err := json.Indent(want, r.Decision, "", "  "); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("the decision changed (-update keeps the new one):\n%s", diff)
			}
		})
	}
}

// TestReplaysAreLossless holds that facts survive being written down.
func TestReplaysAreLossless(t *testing.T) {
	for name, facts := range replays {
		f := Facts{Components: []ComponentFacts{*facts()}}
		direct := new(bytes.Buffer)
		if err := json.Indent(direct, mustJSON(t, Decide(f)), "", "  "); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(direct.String(), decideJSON(t, mustJSON(t, f))); diff != "" {
			t.Errorf("%s: decided otherwise after being written down:\n%s", name, diff)
		}
	}
}

func decideJSON(t *testing.T, facts json.RawMessage) string {
	t.Helper()
	var f Facts
	dec := json.NewDecoder(bytes.NewReader(facts))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, mustJSON(t, Decide(f)), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func writeReplay(t *testing.T, file string, facts json.RawMessage) {
	t.Helper()
	raw, err := json.MarshalIndent(replay{Facts: facts, Decision: json.RawMessage(decideJSON(t, facts))}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzDecide holds that Decide answers whatever the facts are, without touching
// them, and always the same.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"components":[{},{}]}`))
	f.Add([]byte(`{"components":[{"envs":[{},{"open":{},"revert":{},"past":[{}],"targets":[{}],"spec":{"after":[""]}}],"pendingCommands":[{"verb":"retry"}]}]}`))
	f.Add([]byte(`{"components":[{"envs":[{"name":"a","spec":{"after":["b"]}},{"name":"b","spec":{"after":["a"]}}]}]}`))
	for _, facts := range replays {
		f.Add(mustJSON(f, Facts{Components: []ComponentFacts{*facts()}}))
	}
	both := makeMembers("api r2", "web r2")
	for _, y := range []batchFixture{
		newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").openBatchPull("qa", both, nil),
		newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").landed("qa", 5, both).openBatchRevert("qa", both, nil),
	} {
		facts, _ := y.facts(func(FactRequest) Composition { return Composition{Tip: tip} })
		f.Add(mustJSON(f, facts))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var facts Facts
		if json.Unmarshal(raw, &facts) != nil {
			return
		}
		before, err := json.Marshal(facts)
		if err != nil {
			return // decoded, but can't be written again: no facts of ours
		}
		d := Decide(facts)
		if after := mustJSON(t, facts); !bytes.Equal(before, after) {
			t.Fatalf("Decide changed its facts\nbefore %s\nafter  %s", before, after)
		}
		if d.Next.Year() > 9999 {
			return // such a time can't be written as JSON
		}
		if first, again := mustJSON(t, d), mustJSON(t, Decide(facts)); !bytes.Equal(first, again) {
			t.Fatalf("the same facts gave two decisions\n%s\n%s", first, again)
		}
	})
}
