package argoemulator

import (
	"encoding/json"
	"reflect"
	"testing"
)

func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":2}}`, `{"a":null,"b":{"c":null,"d":[1]}}`)
	f.Add(`{}`, `{"a":{"b":null}}`)
	f.Add(`[1]`, `{"a":"b"}`)
	f.Fuzz(func(t *testing.T, target, change string) {
		var x, c any
		if json.Unmarshal([]byte(target), &x) != nil || json.Unmarshal([]byte(change), &c) != nil {
			return
		}
		once := mergePatch(x, c)
		before, err := json.Marshal(once)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		if err := json.Unmarshal(before, &again); err != nil {
			t.Fatal(err)
		}
		if again = mergePatch(again, c); !reflect.DeepEqual(jsonOf(t, again), string(before)) {
			t.Errorf("%s applied twice to %s: %s, then %s", change, target, before, jsonOf(t, again))
		}
	})
}

func jsonOf(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzParseQuery(f *testing.F) {
	for _, path := range []string{"/apis/argoproj.io/v1alpha1/applications", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web", "/api/v1/secrets", "/api/v1/namespaces//x"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if q, ok := parseQuery(path); ok && (kindByResource[q.resource] == "" || q.name != "" && q.namespace == "") {
			t.Errorf("%q asks for %+v", path, q)
		}
	})
}
