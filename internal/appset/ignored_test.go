package appset

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestIgnoreRules holds what is taken out of an object by an Application's ignoreDifferences and by Argo CD's settings.
func TestIgnoreRules(t *testing.T) {
	const object = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"web","image":"web:1"},{"name":"side","image":"side:1"}]}}}}`
	many := `[{"group":"apps","kind":"Deployment","jsonPointers":[` + strings.Repeat(`"/spec/x",`, maxIgnoreRules) + `"/spec/y"]}]`
	for name, c := range map[string]struct {
		own      string
		settings map[string]string
		gone     []string // of replicas, web:1 and side:1
		managers []string
		err      string
		none     bool
	}{
		"nothing":                   {none: true},
		"a pointer":                 {own: `[{"group":"apps","kind":"Deployment","jsonPointers":["/spec/replicas"]}]`, gone: []string{"replicas"}},
		"of another kind":           {own: `[{"group":"apps","kind":"StatefulSet","jsonPointers":["/spec/replicas"]}]`},
		"of any kind":               {own: `[{"group":"*","kind":"*","jsonPointers":["/spec/replicas"]}]`, gone: []string{"replicas"}},
		"of another name":           {own: `[{"group":"apps","kind":"Deployment","name":"api","jsonPointers":["/spec/replicas"]}]`},
		"of its namespace":          {own: `[{"group":"apps","kind":"Deployment","namespace":"qa","jsonPointers":["/spec/replicas"]}]`, gone: []string{"replicas"}},
		"an expression":             {own: `[{"group":"apps","kind":"Deployment","jqPathExpressions":[".spec.template.spec.containers[] | select(.name == \"web\") | .image"]}]`, gone: []string{"web:1"}},
		"an endless expression":     {own: `[{"group":"apps","kind":"Deployment","jqPathExpressions":[".spec.replicas | select(last(repeat(1)) == 2)"]}]`},
		"an expression that isn't":  {own: `[{"group":"apps","kind":"Deployment","jqPathExpressions":["("]}]`, err: "read ignoreDifferences"},
		"managers":                  {own: `[{"group":"apps","kind":"Deployment","managedFieldsManagers":["image-updater","hpa"]}]`, managers: []string{"hpa", "image-updater"}},
		"settings of the kind":      {settings: map[string]string{"apps_Deployment": "jsonPointers: [/spec/replicas]"}, gone: []string{"replicas"}},
		"settings of all":           {settings: map[string]string{"all": "managedFieldsManagers: [hpa]\njsonPointers: [/spec/replicas]"}, gone: []string{"replicas"}, managers: []string{"hpa"}},
		"settings of another group": {settings: map[string]string{"Deployment": "jsonPointers: [/spec/replicas]"}},
		"settings that can't be":    {settings: map[string]string{"all": "jsonPointers: {a: b}"}, err: "ignoreDifferences.all of Argo CD's settings"},
		"too many":                  {own: many, err: "more than the 200"},
		"not a list":                {own: `{"a":1}`, err: "read the Application's ignoreDifferences"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := NewIgnoreRules(Ignores{Differences: json.RawMessage(c.own)}, c.settings)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || (rules == nil) != c.none {
				t.Fatalf("the rules are %v: %v", rules, err)
			}
			if c.none {
				return
			}
			raw, err := rules.Strip(json.RawMessage(object), "qa")
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"replicas", "web:1", "side:1"} {
				if strings.Contains(string(raw), part) == slices.Contains(c.gone, part) {
					t.Errorf("of %s is left: %s", part, raw)
				}
			}
			if strings.Contains(string(raw), `"qa"`) {
				t.Errorf("it has got a namespace: %s", raw)
			}
			if m := rules.Managers("apps/v1", "Deployment", "qa", "web"); !slices.Equal(m, c.managers) {
				t.Errorf("the managers are %q, want %q", m, c.managers)
			}
		})
	}
}
