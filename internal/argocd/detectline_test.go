package argocd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// describe makes a description of kinds whose ApplicationSets have some fields, as an API
// server gives it: lists have items, and everything else lies in properties.
func describe(t *testing.T, fields ...string) []byte {
	t.Helper()
	set := map[string]any{}
	for _, field := range fields {
		at := set
		for _, name := range strings.Split(field, ".") {
			properties, ok := at["properties"].(map[string]any)
			if !ok {
				properties = map[string]any{}
				at["properties"] = properties
			}
			next, ok := properties[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				properties[name] = next
			}
			if name == "generators" || name == "files" {
				items, ok := next["items"].(map[string]any)
				if !ok {
					items = map[string]any{}
					next["items"], next["type"] = items, "array"
				}
				next = items
			}
			at = next
		}
	}
	out, err := json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": map[string]any{
		"io.argoproj.v1alpha1.Application":    map[string]any{"type": "object"},
		"io.argoproj.v1alpha1.ApplicationSet": set,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLineOf(t *testing.T) {
	// Each line has the fields of those before it.
	var fields []string
	for i := len(lineFields) - 1; i >= 0; i-- {
		fields = append(fields, lineFields[i].field)
		if got, err := lineOf(describe(t, fields...)); err != nil || got != lineFields[i].line {
			t.Errorf("with %s: %q, %v; wanted %s", lineFields[i].field, got, err, lineFields[i].line)
		}
	}
	if got, err := lineOf(describe(t, "spec.generators.list")); got != "" || err != nil {
		t.Errorf("an older one is %q, %v", got, err)
	}
	for _, data := range []string{"", "[]", "{}", `{"components": {"schemas": {"io.argoproj.v1alpha1.Application": {}}}}`} {
		if got, err := lineOf([]byte(data)); got != "" || err == nil {
			t.Errorf("%s is %q", data, got)
		}
	}
}

// The line of a running Argo CD is found by itself, and counts as a change.
func TestWatcherFindsTheLine(t *testing.T) {
	s := newAPIServer(t)
	s.schema = describe(t, "spec.strategy.deletionOrder", "spec.generators.git.files.exclude")
	found := make(chan string, 100)
	var w *testWatcher
	ready := make(chan struct{})
	w = startWatcher(t, s, func(o *Options) {
		o.OnVersionChange = func() {
			<-ready
			found <- w.Version().Line
		}
	})
	close(ready)
	for timeout := time.After(patience); ; {
		select {
		case line := <-found:
			if line != "3.2" {
				continue
			}
		case <-timeout:
			t.Fatal("the line is not found")
		}
		break
	}
	listed, err := w.ListSetsAndProjects(t.Context())
	if err != nil || listed.Line != "3.2" {
		t.Errorf("%q, %v", listed.Line, err)
	}
}
