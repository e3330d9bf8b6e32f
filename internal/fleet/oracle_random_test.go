package fleet

import (
	"encoding/json"
	"fmt"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const fleetURL = "https://git.example.com/acme/fleet.git"

// object is a piece of a manifest.
type object = map[string]any

// randomTree is the repository that random sets generate from.
func randomTree() map[string]string {
	tree := map[string]string{".hidden/dev/x": "", "apps/.secret/x": ""}
	for _, app := range []string{"web", "api", "Big_App"} {
		for _, env := range []string{"dev", "qa", "prod"} {
			tree["apps/"+app+"/"+env+"/kustomization.yaml"] = ""
			tree["apps/"+app+"/"+env+"/config.json"] = fmt.Sprintf(`{"team": %q, "env": %q, "deep": {"n": 1, "list": ["a", "b"]}, "on": true}`, app, env)
		}
	}
	tree["apps/web/list.yaml"] = "- team: web\n  env: dev\n- team: web\n  env: qa\n"
	tree["apps/web/empty.yaml"] = "[]"
	return tree
}

// drawTerminal draws a list, clusters or git generator.
func drawTerminal(t *rapid.T, goTemplate bool, prefixed string) object {
	g := object{}
	values := object{}
	if rapid.Bool().Draw(t, "values") {
		values["tier"] = rapid.SampledFrom([]string{"gold", "{{ .team }}", "{{team}}", "{{ .name }}-x", "{{name}}"}).Draw(t, "value")
	}
	switch rapid.IntRange(0, 3).Draw(t, "generator") {
	case 0:
		elements := []any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "elements") {
			e := object{"team": rapid.SampledFrom([]string{"web", "api"}).Draw(t, "team"), "env": fmt.Sprintf("e%d", i), "name": rapid.SampledFrom([]string{"engineering-dev", "in-cluster"}).Draw(t, "name")}
			if goTemplate && rapid.Bool().Draw(t, "nested") {
				e["deep"] = object{"n": i, "list": []any{"x"}}
			}
			elements = append(elements, e)
		}
		g["list"] = object{"elements": elements}
	case 1:
		c := object{"values": values}
		if rapid.Bool().Draw(t, "selector") {
			c["selector"] = object{"matchLabels": object{"environment": rapid.SampledFrom([]string{"prod", "staging", "none"}).Draw(t, "label")}}
		}
		if goTemplate && rapid.IntRange(0, 9).Draw(t, "flat") == 0 {
			c["flatList"] = true
		}
		g["clusters"] = c
	case 2:
		dirs := []any{object{"path": rapid.SampledFrom([]string{"apps/*/*", "apps/web/*", "*", "*/*", "apps/[a-w]*/dev", "{{ .team }}/*", "apps/{{ .team }}/*", "apps/{{team}}/*"}).Draw(t, "path")}}
		if rapid.Bool().Draw(t, "exclude") {
			dirs = append(dirs, object{"path": "apps/api/*", "exclude": true})
		}
		g["git"] = object{"repoURL": fleetURL, "revision": "HEAD", "directories": dirs, "values": values, "pathParamPrefix": prefixed}
	default:
		paths := []any{object{"path": rapid.SampledFrom([]string{"apps/*/config.json", "apps/**/config.json", "apps/web/*.yaml", "apps/web", "apps/{{ .team }}/*/config.json", "apps/api/d?v/config.json", "apps/*/kustomization.yaml"}).Draw(t, "files")}}
		g["git"] = object{"repoURL": fleetURL, "revision": "HEAD", "files": paths, "values": values, "pathParamPrefix": prefixed}
	}
	if rapid.IntRange(0, 3).Draw(t, "filtered") == 0 {
		g["selector"] = object{"matchExpressions": []any{object{
			"key":      rapid.SampledFrom([]string{"team", "env", "name", "path.basename", "deep.n"}).Draw(t, "key"),
			"operator": rapid.SampledFrom([]string{"In", "NotIn"}).Draw(t, "operator"),
			"values":   []any{"web", "dev", "in-cluster", "1"},
		}}}
	}
	return g
}

// drawGenerator draws a generator that combines at most depth levels.
func drawGenerator(t *rapid.T, goTemplate bool, depth int, prefixed string) object {
	kind := 0
	if depth > 0 {
		kind = rapid.SampledFrom([]int{0, 0, 0, 2, 2, 3}).Draw(t, "kind")
	}
	children := func(n int) []any {
		var out []any
		for i := range n {
			p := prefixed
			if rapid.Bool().Draw(t, "prefix") {
				p = fmt.Sprintf("p%d", i)
			}
			out = append(out, drawGenerator(t, goTemplate, depth-1, p))
		}
		return out
	}
	switch kind {
	case 2:
		return object{"matrix": object{"generators": children(2)}}
	case 3:
		return object{"merge": object{
			"mergeKeys":  rapid.SampledFrom([][]any{{"name"}, {"team", "env"}, {"path"}, {"path.basename"}, {"name", "team", "env", "path", "p0", "p1"}, {}}).Draw(t, "mergeKeys"),
			"generators": children(rapid.IntRange(2, 3).Draw(t, "children")),
		}}
	}
	return drawTerminal(t, goTemplate, prefixed)
}

// drawSet draws a whole ApplicationSet.
func drawSet(t *rapid.T) object {
	goTemplate := rapid.Bool().Draw(t, "goTemplate")
	gens := []any{}
	for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "generators") {
		gens = append(gens, drawGenerator(t, goTemplate, 2, ""))
	}
	name := rapid.SampledFrom([]string{"{{team}}-{{env}}-{{name}}-{{path.basename}}-{{p0.path.basename}}-{{p1.path.basename}}", "{{team}}-{{env}}", "{{path.basenameNormalized}}{{nameNormalized}}", "fixed"})
	if goTemplate {
		name = rapid.SampledFrom([]string{
			`{{ .team }}-{{ .env }}-{{ .name }}{{ with .path }}-{{ join "-" .segments | normalize }}{{ end }}{{ with .p1 }}-{{ .path.basename }}{{ end }}`,
			`{{ get . "team" }}-{{ get . "env" }}-{{ get . "name" }}{{ with get . "path" }}-{{ .path | replace "/" "-" | normalize }}{{ end }}`,
			`{{ dig "team" "none" . }}-{{ dig "env" "none" . }}-{{ dig "name" "none" . }}-{{ dig "path" "path" "none" . | slugify }}-{{ dig "p0" "path" "path" "none" . | slugify }}`,
			"{{ .team }}-{{ .env }}", `{{ .path.basenameNormalized }}{{ .nameNormalized }}`,
			rapid.SampledFrom([]string{`{{ fail "no" }}`, "{{ .x", "plain"}).Draw(t, "odd"),
		})
	}
	template := object{
		"metadata": object{"name": name.Draw(t, "name"), "labels": object{"env": "{{env}}", "{{team}}": "x"}},
		"spec": object{
			"project":     rapid.SampledFrom([]string{"default", "default", "default", "{{team}}", "web", "gone"}).Draw(t, "project"),
			"source":      object{"repoURL": fleetURL, "path": "{{path}}", "targetRevision": "main", "helm": object{"values": "a: {{team}}", "valuesObject": object{"x": "{{ .team }}", "n": 1}}},
			"destination": object{"server": rapid.SampledFrom([]string{"https://kubernetes.default.svc", "https://kubernetes.default.svc", "{{server}}"}).Draw(t, "server"), "namespace": "{{env}}"},
			"syncPolicy":  object{},
		},
	}
	if goTemplate {
		spec := template["spec"].(object)
		template["metadata"].(object)["labels"] = object{"env": "{{ .env }}", "{{ .team }}": "x"}
		spec["source"] = object{"repoURL": fleetURL, "path": `{{ with .path }}{{ .path }}{{ end }}`, "kustomize": object{"images": []any{"web={{ .team }}"}}}
		spec["destination"] = object{"name": rapid.SampledFrom([]string{"in-cluster", "in-cluster", "{{ .name }}"}).Draw(t, "dest"), "namespace": "{{ .env }}"}
	}
	spec := object{"goTemplate": goTemplate, "generators": gens, "template": template}
	if rapid.Bool().Draw(t, "nestedSelectors") {
		spec["applyNestedSelectors"] = true
	}
	if rapid.IntRange(0, 3).Draw(t, "missingkey") == 0 {
		spec["goTemplateOptions"] = []any{"missingkey=error"}
	}
	if goTemplate && rapid.IntRange(0, 3).Draw(t, "patched") == 0 {
		spec["templatePatch"] = rapid.SampledFrom([]string{
			"metadata:\n  annotations:\n    team: \"{{ .team }}\"\nspec:\n  project: stolen\n  syncPolicy:\n    automated: {prune: {{ eq .env \"dev\" }}}\n",
			"{{ if .path }}spec: {source: {path: other}}{{ else }}{}{{ end }}", "not: [valid",
		}).Draw(t, "patch")
	}
	return object{"apiVersion": apiVersion, "kind": kindSet, "metadata": object{"name": "random"}, "spec": spec}
}

// TestRandomSets composes generators, selectors, templates and values at
// random; -rapid.checks=10000 is the long mode.
func TestRandomSets(t *testing.T) {
	o := &oracle{dir: checkout(t, randomTree()), clusters: oracleClusters, projects: []string{"default", "web"}}
	cases, resolved, failed := 0, 0, 0
	quietLibrary(zap.NewNop())
	rapid.Check(t, func(rt *rapid.T) {
		raw, err := json.Marshal(drawSet(rt))
		if err != nil {
			rt.Fatal(err)
		}
		manifest, err := yaml.JSONToYAML(raw)
		if err != nil {
			rt.Fatal(err)
		}
		n, wrong := o.compare(rt, manifest, fleetURL)
		cases++
		if n > 0 {
			resolved++
		}
		if wrong {
			failed++
		}
	})
	t.Logf("%d sets, %d with Applications, %d with errors", cases, resolved, failed)
	if cases >= 1000 && (resolved < cases/10 || failed == 0) {
		t.Errorf("of %d sets %d gave Applications and %d errors: too few to mean much", cases, resolved, failed)
	}
}
