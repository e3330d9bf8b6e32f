package render

import "testing"

// TestDescribeDisagreement holds where two renderings of one change part, and where that isn't said.
func TestDescribeDisagreement(t *testing.T) {
	image := func(value string) []Field {
		return []Field{{Path: "spec.image", Op: Changed, Old: "web:1", New: value}}
	}
	web := func(fields []Field) Change {
		return Change{Op: Changed, Kind: "Deployment", Name: "web", Fields: fields}
	}
	changes := func(objects ...Change) *Changes { return &Changes{Objects: objects} }
	config := Change{Op: Added, Kind: "ConfigMap", Name: "web"}
	hidden := web([]Field{{Path: "spec.image", Op: Changed, Hidden: true}})
	clipped := web(nil)
	clipped.MoreFields = 3
	namespaced := web(image("web:2"))
	namespaced.Namespace = "qa"
	for name, c := range map[string]struct {
		here, other *Changes
		namesOnly   bool
		want        string
	}{
		"the same":                  {changes(web(image("web:2"))), changes(web(image("web:2"))), false, ""},
		"another value":             {changes(web(image("web:2"))), changes(web(image("web:3"))), false, "other fields differ of Deployment web"},
		"another value, by names":   {changes(web(image("web:2"))), changes(web(image("web:3"))), true, ""},
		"another field, by names":   {changes(web(image("web:2"))), changes(web([]Field{{Path: "spec.replicas", Op: Changed}})), true, "other fields differ of Deployment web"},
		"a value is hidden":         {changes(web(image("web:2"))), changes(hidden), false, ""},
		"fields are cut":            {changes(web(image("web:2"))), changes(clipped), false, ""},
		"objects are cut":           {changes(web(image("web:2"))), &Changes{LeftOut: map[Op]int{Changed: 1}}, false, ""},
		"one says its namespace":    {changes(web(image("web:2"))), changes(namespaced), false, ""},
		"one has an object more":    {changes(web(image("web:2"))), changes(config, web(image("web:2"))), false, "only Argo CD's has ConfigMap web added"},
		"each has one more":         {changes(config), changes(web(image("web:2"))), false, "only Liftlock's rendering has ConfigMap web added; only Argo CD's has Deployment web changed"},
		"nothing was rendered here": {nil, changes(config), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DescribeDisagreement(c.here, c.other, c.namesOnly); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
