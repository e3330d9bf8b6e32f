package appset

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// FuzzLiveObjects holds that no object that an API server could send makes
// reading it panic, and that what is read has a name.
func FuzzLiveObjects(f *testing.F) {
	f.Add([]byte(raw(f, directoriesSet)))
	f.Add([]byte(raw(f, liveApplication)))
	f.Add([]byte(`{"metadata":{"name":"x","ownerReferences":[{"controller":true,"kind":"ApplicationSet"}]},"spec":{"sources":[null],"syncPolicy":{"automated":null}}}`))
	f.Add([]byte(`{"kind":"ApplicationSet","metadata":null,"spec":{"generators":[{"matrix":null}]}}`))
	p := shop()
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Live: &pipeline.LiveApplicationSet{Namespace: "argocd", Name: "shop"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := Input{Pipeline: p, Live: &Live{Sets: []LiveSet{{Namespace: "argocd", Name: "shop", Object: data}}}}
		if s, problem, _ := in.decodeLiveSet(p.Spec.ApplicationSets[0].Live); problem == nil && s.spec.Name == "" {
			t.Fatal("a set without a name")
		}
		if g, _, err := decodeApplication(data); err == nil && g.app.Name == "" {
			t.Fatal("an Application without a name")
		}
		c, err := NewComparison(in, &TargetSet{
			sets:    []knownSet{{namespace: "argocd", name: "shop", resolved: true}},
			Targets: []Target{{Name: "x", Application: json.RawMessage(`{"metadata":{"name":"x"},"spec":{"source":{"repoURL":"r"}}}`)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CompareLive("", data); err == nil {
			c.Differences()
		}
	})
}

// FuzzFields holds that a comparison of two values is empty exactly when they
// are equal, and is bounded.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":[{"name":"x","v":1},{"name":"y"}]}`), []byte(`{"a":[{"name":"y"},{"name":"x","v":2}]}`))
	f.Add([]byte(`{"a":{}}`), []byte(`{}`))
	f.Add([]byte(`[1,null]`), []byte(`[1]`))
	f.Add([]byte(`"a\nb"`), []byte(`"a\n"`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var live, resolved any
		if json.Unmarshal(a, &live) != nil || json.Unmarshal(b, &resolved) != nil {
			return
		}
		found := fieldDiff{}
		found.compareValues("", live, resolved)
		if equal := reflect.DeepEqual(bare(live), bare(resolved)); (len(found.list) == 0) != equal || len(found.list) > maxFields {
			t.Fatalf("%d fields between %s and %s", len(found.list), a, b)
		}
	})
}

// bare is a value without what is null.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if member != nil {
				out[key] = bare(member)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, element := range v {
			out = append(out, bare(element))
		}
		for len(out) > 0 && out[len(out)-1] == nil {
			out = out[:len(out)-1]
		}
		return out
	}
	return v
}
