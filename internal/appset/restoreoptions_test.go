package appset

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestRestoreOptions holds that a target which was written down comes back with the options
// of its sources.
func TestRestoreOptions(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		sources int
		want    []string
		err     string
	}{
		"one source":             {`{"source": {"repoURL": "x", "path": "a", "kustomize": {"images": ["web=web:2"]}}}`, 1, []string{`{"kustomize":{"images":["web=web:2"]}}`}, ""},
		"several":                {`{"sources": [{"chart": "c", "helm": {"values": "a: 1"}}, {"ref": "values"}]}`, 2, []string{`{"helm":{"values":"a: 1"}}`, ""}, ""},
		"several go before":      {`{"source": {"plugin": {}}, "sources": [{"directory": {"recurse": true}}]}`, 1, []string{`{"directory":{"recurse":true}}`}, ""},
		"none":                   {`{}`, 0, nil, ""},
		"what the hydrator gets": {`{"sourceHydrator": {"drySource": {"path": "a"}}}`, 1, []string{""}, ""},
		"another number":         {`{"source": {}}`, 2, nil, "has 1 sources, and 2 are known"},
		"nonsense":               {`[]`, 1, nil, "reading the Application web"},
	} {
		t.Run(name, func(t *testing.T) {
			target := Target{Name: "web", Sources: make([]Source, c.sources), Application: json.RawMessage(`{"spec": ` + c.spec + `}`)}
			err := RestoreOptions(&target)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range target.Sources {
				if string(s.Options) != c.want[i] {
					t.Errorf("source %d has %s, want %s", i, s.Options, c.want[i])
				}
			}
		})
	}
	if err := RestoreOptions(&Target{Name: "web"}); err == nil || !strings.Contains(err.Error(), "came without its manifest") {
		t.Errorf("without a manifest: %v", err)
	}
}

// FuzzRestoreOptions holds that what is restored are the options as they were.
func FuzzRestoreOptions(f *testing.F) {
	f.Add([]byte(`{"spec": {"source": {"helm": {"values": "a"}}}}`), 1)
	f.Add([]byte(`{"spec": {"sources": [{"kustomize": null}, {"plugin": {"name": "x"}}]}}`), 2)
	f.Fuzz(func(t *testing.T, app []byte, sources int) {
		if sources < 0 || sources > 100 {
			return
		}
		target := Target{Sources: make([]Source, sources), Application: app}
		if RestoreOptions(&target) != nil {
			return
		}
		for _, s := range target.Sources {
			if len(s.Options) > 0 && (!json.Valid(s.Options) || !bytes.HasPrefix(s.Options, []byte("{"))) {
				t.Errorf("%q gives %q", app, s.Options)
			}
		}
	})
}
