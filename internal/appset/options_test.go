package appset

import (
	"fmt"
	"testing"
)

// TestUnknownTemplateOption holds that an option that doesn't exist is an
// error where something is rendered, plain text included, and only there.
func TestUnknownTemplateOption(t *testing.T) {
	o := &oracle{dir: t.TempDir(), clusters: oracleClusters, projects: []string{"default"}}
	for name, c := range map[string]struct {
		generator, app string
		goTemplate     bool
		fails          bool
	}{
		"rendered":            {"{list: {elements: [{name: a}]}}", "{{ .name }}", true, true},
		"plain text":          {"{list: {elements: [{name: a}]}}", "a", true, true},
		"nothing to render":   {"{list: {elements: []}}", "{{ .name }}", true, false},
		"no parameters":       {"{list: {elements: [{}]}}", "a", true, false},
		"fasttemplate":        {"{list: {elements: [{name: a}]}}", "{{name}}", false, false},
		"in values":           {"{clusters: {values: {a: b}}}", "{{ .name }}", true, true},
		"in an empty matrix":  {"{matrix: {generators: [{list: {elements: []}}, {list: {elements: [{a: b}]}}]}}", "{{ .name }}", true, false},
		"in a matrix's child": {"{matrix: {generators: [{list: {elements: [{name: a}]}}, {list: {elements: []}}]}}", "{{ .name }}", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Appendf(nil, "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  goTemplate: %t\n  goTemplateOptions: [missingkey=nonsense]\n  generators: [%s]\n"+
				"  template:\n    metadata: {name: '%s'}\n    spec: {project: default, source: {repoURL: x, path: p}, destination: {name: in-cluster}}\n", c.goTemplate, c.generator, c.app)
			if _, failed := o.compare(t, manifest); failed != c.fails {
				t.Errorf("failed: %t, want %t", failed, c.fails)
			}
		})
	}
}
