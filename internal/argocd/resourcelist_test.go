package argocd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestDecodeResources holds what is kept of the resources against decoding all of them, whatever
// they are and however they are written.
func TestDecodeResources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"", "web", `"status":"Synced"`, `"health":{"status":"Healthy"}`, `a\"b`, "[{", "é,}]", "Application", "argoproj.io", "Synced", "Healthy", "Degraded", "OutOfSync", "Missing", "Job"}
		var list []any
		for range rapid.IntRange(0, 5).Draw(t, "resources") {
			r := map[string]any{}
			for _, field := range []string{"group", "kind", "namespace", "name", "status", "version"} {
				if rapid.Bool().Draw(t, "has "+field) {
					r[field] = rapid.SampledFrom(texts).Draw(t, field)
				}
			}
			for _, flag := range []string{"hook", "requiresPruning"} {
				if rapid.Bool().Draw(t, flag) {
					r[flag] = true
				}
			}
			if rapid.Bool().Draw(t, "has health") {
				r["health"] = map[string]any{"status": rapid.SampledFrom(texts).Draw(t, "health")}
			}
			list = append(list, r)
		}
		raw, err := json.Marshal(list)
		if rapid.Bool().Draw(t, "with spaces") {
			raw, err = json.MarshalIndent(list, "", "  ")
		}
		if err != nil {
			t.Fatal(err)
		}
		var all, some wireApplication
		if err := json.Unmarshal(raw, &all.Status.Resources); err != nil {
			t.Fatal(err)
		}
		inTree := rapid.Bool().Draw(t, "health in the tree")
		if some.Status.Resources, err = decodeResources(raw, inTree); err != nil {
			t.Fatal(err)
		}
		kept := func(w *wireApplication) []any {
			differences, n := w.outOfSyncResources()
			out := []any{differences, n, w.childApplications()}
			if !inTree {
				out = append(out, w.unhealthyResources(), w.uncheckedResources())
			}
			return out
		}
		if diff := cmp.Diff(kept(&all), kept(&some)); diff != "" {
			t.Errorf("of %s (-all +some):\n%s", raw, diff)
		}
	})
}

// TestResourcesOfAnotherType has an Application unreadable whose resources are something else.
func TestResourcesOfAnotherType(t *testing.T) {
	for resources, wrong := range map[string]bool{"null": false, "[]": false, "{}": true, `"web"`: true, "[1]": true, `[{"kind":1}]`: true, `[{"kind":"Job"},[]]`: true} {
		app, _, err := decodeApplication("hub", []byte(fmt.Sprintf(`{"metadata":{"name":"web"},"status":{"resources":%s}}`, resources)))
		if (err != nil) != wrong || wrong && (len(app.Conditions) != 1 || !strings.Contains(err.Error(), "decode an Application")) {
			t.Errorf("%s: %+v, %v", resources, app.Conditions, err)
		}
	}
}

// TestCutResources cuts out the list of resources and nothing else, and nothing where it isn't
// where it should be once: then all is decoded as it is.
func TestCutResources(t *testing.T) {
	for _, c := range []struct{ raw, rest, resources string }{
		{`{"spec":{"resources":[1]},"status":{"resources":[{"a":"]"}],"sync":{}}}`, `{"spec":{"resources":[1]},"status":{"resources":null,"sync":{}}}`, `[{"a":"]"}]`},
		{" {\n \"status\" : {\t\"x\": [[]], \"resources\" : [ 1 ] } }\n", " {\n \"status\" : {\t\"x\": [[]], \"resources\" : null } }\n", "[ 1 ]"},
		{`{"a":"\\\"","status":{"resources":[]}}`, `{"a":"\\\"","status":{"resources":null}}`, `[]`},
		{`{"status":{"resourcesX":[1],"resources":[2]}}`, `{"status":{"resourcesX":[1],"resources":null}}`, `[2]`},
		{`{"status":{"sync":{"resources":[1]}}}`, "", ""},
		{`{"status":{"resources":[1]},"status":{"resources":[2]}}`, "", ""},
		{`{"status":{"resources":[1],"resources":[2]}}`, "", ""},
		{`{"status":{"resources":{}}}`, "", ""},
		{`{"status":[{"resources":[1]}]}`, "", ""},
		{`{"status":null}`, "", ""},
		{`{"status"`, "", ""},
		{`[{"status":{"resources":[1]}}]`, "", ""},
		{``, "", ""},
	} {
		rest, resources := cutResources([]byte(c.raw))
		if c.resources == "" {
			c.rest = c.raw
		}
		if string(rest) != c.rest || string(resources) != c.resources {
			t.Errorf("%s: %s and %s", c.raw, rest, resources)
		}
	}
}
