package isolation

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// TestFindIgnored holds which fields that differ Argo CD ignores.
func TestFindIgnored(t *testing.T) {
	deployment := func(image, side string, replicas int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d,"template":{"spec":{"containers":[{"image":"%s","name":"web"},{"image":"%s","name":"side"}]}}}}`, replicas, image, side)
	}
	manifests := func(texts ...string) *render.Manifests {
		m, err := render.FromArgoCD(texts)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const (
		config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"1"}}`
		web    = `[{"group":"apps","kind":"Deployment","jqPathExpressions":[".spec.template.spec.containers[] | select(.name == \"web\") | .image"]}]`
		first  = `[{"group":"apps","kind":"Deployment","jsonPointers":["/spec/template/spec/containers/0"]}]`
		all    = `[{"group":"*","kind":"*","jsonPointers":["/spec/template","/spec/replicas"]}]`
		by     = `[{"group":"apps","kind":"Deployment","managedFieldsManagers":["image-updater"]}]`
	)
	const webImage, sideImage = "Deployment web spec.template.spec.containers[name=web].image", "Deployment web spec.template.spec.containers[name=side].image"
	for name, c := range map[string]struct {
		rules         string
		before, after []string
		want          []string
		left          bool
	}{
		"the image":                  {web, []string{deployment("web:1", "side:1", 1)}, []string{deployment("web:2", "side:1", 1)}, []string{webImage}, false},
		"another container's":        {web, []string{deployment("web:1", "side:1", 1)}, []string{deployment("web:1", "side:2", 1)}, nil, true},
		"one of two with one value":  {web, []string{deployment("x:1", "x:1", 1)}, []string{deployment("x:2", "x:2", 1)}, []string{webImage}, true},
		"an item of a list":          {first, []string{deployment("web:1", "side:1", 1)}, []string{deployment("web:2", "side:2", 1)}, []string{webImage}, true},
		"everything":                 {all, []string{deployment("web:1", "side:1", 1)}, []string{deployment("web:2", "side:2", 2)}, []string{"Deployment web spec.replicas", webImage, sideImage}, false},
		"an object that comes":       {all, []string{config}, []string{config, deployment("web:2", "side:2", 2)}, nil, true},
		"what a manager has":         {by, []string{deployment("web:1", "side:1", 1)}, []string{deployment("web:2", "side:1", 1)}, []string{"Deployment web  [image-updater]"}, true},
		"an object that differs not": {by, []string{config, deployment("web:1", "side:1", 1)}, []string{deployment("web:1", "side:1", 1)}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := appset.NewIgnoreRules(appset.Ignores{Differences: json.RawMessage(c.rules)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := findIgnored(rules, "qa", manifests(c.before...), manifests(c.after...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found.Fields {
				text := f.Object + " " + f.Path
				if len(f.Managers) > 0 {
					text += fmt.Sprint(" ", f.Managers)
				}
				got = append(got, text)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) || found.Left.Empty() == c.left {
				t.Errorf("ignored are %q, want %q; left is %+v", got, c.want, found.Left)
			}
		})
	}
}
