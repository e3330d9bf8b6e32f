package webhooks

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

const fixtures = "../testdata/webhooks"

// listPayloads are the fixtures of a forge: files named EVENT.WHAT.json.
func listPayloads(t testing.TB, forgeType string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fixtures, forgeType, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no payloads of %s: %v", forgeType, err)
	}
	return files
}

// eventName is the forge's event name that a fixture's file name begins with; GitLab's have
// spaces.
func eventName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	if filepath.Base(filepath.Dir(file)) == GitLab {
		return strings.ReplaceAll(name, "_", " ")
	}
	return name
}

func readFixture(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPayloads compares the event of every recorded payload with its golden
// file (go test ./webhooks -update writes them anew).
func TestPayloads(t *testing.T) {
	for _, forgeType := range []string{GitHub, Gitea, GitLab, Registry} {
		for _, file := range listPayloads(t, forgeType) {
			t.Run(forgeType+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				compareGolden(t, forgeType, eventName(file), readFixture(t, file), file+".golden")
			})
		}
	}
}

// compareGolden compares the event of a payload with a golden file.
func compareGolden(t *testing.T, forgeType, name string, payload []byte, golden string) {
	t.Helper()
	e, err := Parse(forgeType, "00000000-0000-0000-0000-000000000001", name, payload)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(readFixture(t, golden)), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestIncompletePayloads removes every field of every payload in turn, and puts
// null in its place: an incomplete payload gives an event or an error, never a
// panic (argo-cd#23024).
func TestIncompletePayloads(t *testing.T) {
	for _, forgeType := range []string{GitHub, Gitea, GitLab, Registry} {
		for _, file := range listPayloads(t, forgeType) {
			var doc map[string]any
			if err := json.Unmarshal(readFixture(t, file), &doc); err != nil {
				t.Fatal(err)
			}
			eachPath(doc, func(path string) {
				body, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Parse(forgeType, "d", eventName(file), body); err != nil {
					t.Errorf("%s without %s: %v", filepath.Base(file), path, err)
				}
			})
		}
	}
}

// eachPath calls f once with every field of the object removed and once with it null.
func eachPath(doc map[string]any, f func(path string)) {
	for key, value := range doc {
		delete(doc, key)
		f(key)
		doc[key] = nil
		f(key)
		doc[key] = value
		if sub, ok := value.(map[string]any); ok {
			eachPath(sub, func(path string) { f(key + "." + path) })
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, forge, event, body, want string }{
		{"another forge", "bitbucket", "push", `{}`, "not supported yet"},
		{"not JSON", GitHub, "push", `{"ref":`, "not JSON"},
		{"not JSON of an unknown event", GitHub, "star", `nope`, "not JSON"},
		{"an array", GitHub, "push", `[]`, "not a JSON object"},
		{"null", GitHub, "push", " null", "not a JSON object"},
		{"a number as text", GitHub, "pull_request", `{"number":"12"}`, `"number" has the wrong type`},
		{"a negative number", GitHub, "pull_request", `{"number":-1}`, "negative"},
		{"a commit that isn't one", GitHub, "push", `{"ref":"refs/heads/main","after":"--upload-pack=x"}`, "commit after is not a commit id"},
		{"a NUL in a branch", Gitea, "push", `{"ref":"refs/heads/a\u0000b"}`, "control characters"},
		{"an endless branch", Gitea, "push", `{"ref":"refs/heads/` + strings.Repeat("a", 2000) + `"}`, "longer than"},
		{"a newline in the event name", GitHub, "a\nb", `{}`, "control characters"},
		{"too deep", GitHub, "star", strings.Repeat(`{"a":`, 20000), "nested more than 200 deep"},
		{"a field twice", GitHub, "push", `{"ref":"refs/heads/main","ref":"refs/heads/qa"}`, "has a field twice (byte 25)"},
		{"a field twice, once escaped", GitHub, "push", `{"ref":"refs/heads/main","\u0072ef":"refs/heads/qa"}`, "has a field twice"},
		{"a merge request's number as text", GitLab, "Merge Request Hook", `{"object_kind":"merge_request","object_attributes":{"iid":"12"}}`, `"object_attributes.iid" has the wrong type`},
		{"two kinds", GitLab, "Push Hook", `{"object_kind":"push","object_kind":"note"}`, "has a field twice"},
		{"a field's field twice", Gitea, "push", `{"repository":{"full_name":"a/b","full_name":"a/c"}}`, "has a field twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Parse(c.forge, "d", c.event, []byte(c.body))
			if err == nil {
				t.Fatalf("got %+v", e)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want it to contain %q", err, c.want)
			}
			if strings.Contains(err.Error(), "upload-pack") {
				t.Errorf("the error echoes the payload: %q", err)
			}
		})
	}
}

func TestUnknownEventKeepsFittingFields(t *testing.T) {
	e, err := Parse(GitHub, "d", "future", []byte(`{"action":{"not":"a word"},"repository":{"full_name":"acme/fleet"},"sender":7}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Event{Forge: GitHub, Delivery: "d", Name: "future", Kind: Other, Repo: "acme/fleet"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzGitHub, FuzzGitea and FuzzGitLab hold: whatever the bytes, an event that comes out
// passes its own check, and no other outcome than an error is possible.
func FuzzGitHub(f *testing.F) { fuzzParse(f, GitHub) }
func FuzzGitea(f *testing.F)  { fuzzParse(f, Gitea) }
func FuzzGitLab(f *testing.F) { fuzzParse(f, GitLab) }

func FuzzRegistry(f *testing.F) { fuzzParse(f, Registry) }

func fuzzParse(f *testing.F, forgeType string) {
	for _, file := range listPayloads(f, forgeType) {
		f.Add(eventName(file), readFixture(f, file))
	}
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		e, err := Parse(forgeType, "d", name, body)
		if (e == nil) == (err == nil) {
			t.Fatalf("event %v, error %v", e, err)
		}
		if e == nil {
			return
		}
		if err := e.checkFields(); err != nil {
			t.Error(err)
		}
		if e.Kind == "" || e.Forge != forgeType || e.Name != name {
			t.Errorf("incomplete event %+v", e)
		}
	})
}
