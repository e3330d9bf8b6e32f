// Package randomset draws ApplicationSets at random, for the tests that compare what
// Liftlock makes of them with what Argo CD does.
package randomset

import (
	"fmt"

	"pgregory.net/rapid"
)

// object is a piece of a manifest.
type object = map[string]any

var environmentNames = []string{"dev", "qa", "prod", "eu", "us"}

// Tree is a repository that random sets generate from: its files by path.
func Tree(apps, environments int) map[string]string {
	tree := map[string]string{".hidden/dev/x": "", "apps/.secret/x": ""}
	for i := range apps {
		app := fmt.Sprintf("app-%d", i)
		if i < 3 {
			app = []string{"web", "api", "Big_App"}[i]
		}
		for _, env := range environmentNames[:environments] {
			tree["apps/"+app+"/"+env+"/kustomization.yaml"] = ""
			tree["apps/"+app+"/"+env+"/config.json"] = fmt.Sprintf(
				`{"team": %q, "env": %q, "deep": {"n": %d, "list": ["a", "b"]}, "on": true}`, app, env, i)
		}
	}
	tree["apps/web/list.yaml"] = "- team: web\n  env: dev\n- team: web\n  env: qa\n"
	tree["apps/web/empty.yaml"] = "[]"
	tree["apps/web/blank.yaml"] = ""
	tree["apps/web/scalar.yaml"] = "3"
	tree["apps/web/odd.yaml"] = "team: [x\n"
	tree["apps/api/nested.yaml"] = "team: api\nenv: dev\nname: in-cluster\nlist: [{a: 1}, {a: 2}]\nvalues: {tier: file}\nempty: null\n"
	return tree
}

// sometimes is true about once in n draws. Small numbers are drawn more often,
// and are what failures shrink to.
func sometimes(t *rapid.T, n int, what string) bool {
	return rapid.IntRange(0, n-1).Draw(t, what) == n-1
}

func oneOf[T any](t *rapid.T, what string, of ...T) T {
	return rapid.SampledFrom(of).Draw(t, what)
}

// drawer draws one ApplicationSet.
type drawer struct {
	*rapid.T
	goTemplate bool
	wild       bool // also draws what is likely an error
	large      bool // the tree has many folders: nothing multiplies them
	repoURL    string
}

// wildly is true once in n draws of a wild set.
func (d drawer) wildly(n int, what string) bool { return d.wild && sometimes(d.T, n, what) }

// drawText is a string of the set's kind of templates, or sometimes of the other.
func (d drawer) drawText(goTemplate, fast string) string {
	if d.goTemplate != d.wildly(8, "of the other kind") {
		return goTemplate
	}
	return fast
}

// drawTerminal draws a generator that combines no others.
func (d drawer) drawTerminal(prefixed string) object {
	g := object{}
	d.fillKind(g, rapid.IntRange(0, 3).Draw(d.T, "generator"), prefixed)
	if d.wildly(15, "two kinds") {
		d.fillKind(g, rapid.IntRange(0, 3).Draw(d.T, "second generator"), prefixed)
	}
	if sometimes(d.T, 5, "filtered") {
		g["selector"] = d.drawSelector([]any{"web", "dev", "in-cluster", "1", "prod", "https://1.2.3.4"}, "team", "env", "name",
			"path.basename", "deep.n", "metadata.labels.environment", "values.tier")
	}
	return g
}

func (d drawer) drawSelector(values []any, keys ...string) object {
	expression := object{"key": oneOf(d.T, "key", keys...), "operator": oneOf(d.T, "operator", "In", "NotIn", "Exists",
		"DoesNotExist", "NotIn")}
	if op := expression["operator"]; op == "In" || op == "NotIn" {
		expression["values"] = values
	}
	if d.wildly(10, "no operator") {
		expression["operator"] = "Odd"
	}
	s := object{"matchExpressions": []any{expression}}
	if sometimes(d.T, 6, "matchLabels") {
		s["matchLabels"] = object{oneOf(d.T, "label", keys...): oneOf(d.T, "value", "web", "dev", "prod", "engineering-dev")}
	}
	return s
}

// drawValues draws a values block over the generator's own parameters.
func (d drawer) drawValues(own ...string) object {
	out := object{}
	for range rapid.IntRange(0, 2).Draw(d.T, "values") {
		value := oneOf(d.T, "value", append(own, "gold")...)
		if d.wildly(6, "odd value") {
			value = oneOf(d.T, "odd value", "{{values.tier}}", "{{ .nothing }}", "{{ .values.tier }}", "{{")
		}
		out[oneOf(d.T, "value's name", "tier", "zone", "a.b")] = value
	}
	return out
}

// fillKind draws one kind of terminal generator into g.
func (d drawer) fillKind(g object, kind int, prefixed string) {
	var inner object
	switch kind {
	case 0:
		inner = d.drawList()
		g["list"] = inner
	case 1:
		inner = object{"values": d.drawValues(d.drawText("{{ .name }}-x", "{{name}}-x"),
			d.drawText("{{ .server }}", "{{server}}{{metadata.labels.environment}}"))}
		if rapid.Bool().Draw(d.T, "selector") {
			inner["selector"] = object{"matchLabels": object{"environment": oneOf(d.T, "label", "prod", "staging", "none")}}
		}
		if sometimes(d.T, 6, "expressions") {
			inner["selector"] = d.drawSelector([]any{"prod", "true", "staging"}, "environment", "use-kafka", "staging")
		}
		if d.wildly(8, "templated selector") {
			inner["selector"] = object{"matchLabels": object{"environment": oneOf(d.T, "templated label", "{{ .env }}", "{{env}}")}}
		}
		if sometimes(d.T, 10, "flat") {
			inner["flatList"] = true
		}
		g["clusters"] = inner
	case 2:
		path := oneOf(d.T, "path", "apps/*/*", "apps/web/*", "*/*", "apps/[a-w]*/dev", "apps/*/dev", "apps/*/*",
			d.drawText("apps/{{ .team }}/*", "apps/{{team}}/*"))
		if d.wildly(8, "odd path") {
			path = oneOf(d.T, "odd path", "*", "{{ .team }}/*", "apps/[", "apps/**")
		}
		dirs := []any{object{"path": path}}
		if sometimes(d.T, 3, "exclude") {
			dirs = append(dirs, object{"path": oneOf(d.T, "excluded", "apps/api/*", "apps/*/qa", "apps/Big_App/dev"), "exclude": true})
		}
		inner = object{"repoURL": d.repoURL, "revision": "HEAD", "directories": dirs,
			"values": d.drawValues(d.drawText("x{{ .path }}", "{{path.basename}}-{{path[0]}}")), "pathParamPrefix": prefixed}
		g["git"] = inner
	default:
		var paths []any
		for range rapid.IntRange(1, 2).Draw(d.T, "paths") {
			path := oneOf(d.T, "files", "apps/*/config.json", "apps/**/config.json", "apps/*/*/config.json", "apps/web/list.yaml",
				"apps/web/*/config.json",
				"apps/api/d?v/config.json", "apps/{web,api}/dev/config.json", d.drawText("apps/{{ .team }}/*/config.json",
					"apps/{{team}}/*/config.json"))
			if d.wildly(4, "odd files") {
				path = oneOf(d.T, "odd files", "apps/web/*.yaml", "apps/api/nested.yaml", "apps/web", "apps/*/kustomization.yaml",
					"apps/w*/e[a-m]pty.yaml", "apps/web/blank.yaml", "apps/web/odd.yaml", "apps/[")
			}
			paths = append(paths, object{"path": path})
		}
		inner = object{"repoURL": d.repoURL, "revision": oneOf(d.T, "revision", "HEAD", "main", ""), "files": paths,
			"values": d.drawValues(d.drawText("{{ .team }}", "{{team}}-{{path.filename}}")), "pathParamPrefix": prefixed}
		g["git"] = inner
	}
	if sometimes(d.T, 8, "override") {
		inner["template"] = d.drawOverride()
	}
}

func (d drawer) drawList() object {
	elements := []any{}
	for i := range rapid.IntRange(1, 4).Draw(d.T, "elements") {
		e := object{"team": oneOf(d.T, "team", "web", "api"), "env": fmt.Sprintf("e%d", i), "name": oneOf(d.T, "name", "engineering-dev",
			"in-cluster")}
		switch {
		case d.goTemplate && rapid.Bool().Draw(d.T, "nested"):
			e["deep"] = object{"n": i, "list": []any{"x"}}
		case sometimes(d.T, 6, "element's values"):
			e["values"] = object{"tier": "list", "more": "m"}
		case d.wildly(8, "not a string"):
			e["count"] = 1.5
		case d.wildly(10, "named like a path"):
			e["path"] = object{"path": "apps/web/dev", "filename": "config.json"}
		}
		elements = append(elements, e)
	}
	out := object{"elements": elements}
	if d.wildly(12, "no elements") {
		out["elements"] = []any{}
	}
	if sometimes(d.T, 10, "elementsYaml") {
		out["elementsYaml"] = "- {team: yaml, env: y, name: in-cluster}\n- {team: web, env: e9, name: in-cluster}\n"
	}
	if d.wildly(6, "odd elementsYaml") {
		out["elementsYaml"] = oneOf(d.T, "yaml", "{{ .list | toJson }}", "[", "- {{ .team }}: x\n", "- {n: 3}\n")
	}
	return out
}

// drawOverride draws a generator's own part of the template.
func (d drawer) drawOverride() object {
	spec := object{"project": oneOf(d.T, "project override", "", "", "web"), "destination": object{}}
	if d.wildly(4, "no project") {
		spec["project"] = "gone"
	}
	if rapid.Bool().Draw(d.T, "source override") {
		spec["source"] = object{"repoURL": d.repoURL, "path": "over/" + d.drawText("{{ .team }}", "{{path}}"), "targetRevision": "over"}
	}
	metadata := object{"labels": object{"generator": "own", "env": "over"}}
	if d.wildly(3, "name override") {
		metadata["name"] = d.drawText("over-{{ .name }}", "over-{{name}}")
	}
	return object{"metadata": metadata, "spec": spec}
}

// drawGenerator draws one that combines at most depth levels.
func (d drawer) drawGenerator(depth int, prefixed string) object {
	kind := 0
	if depth > 0 {
		kind = oneOf(d.T, "kind", 0, 0, 0, 2, 2, 3)
	}
	children := func(n int) []any {
		var out []any
		for i := range n {
			p := prefixed
			if rapid.Bool().Draw(d.T, "prefix") {
				p = fmt.Sprintf("p%d", i)
			}
			out = append(out, d.drawGenerator(depth-1, p))
		}
		return out
	}
	var name string
	var inner object
	switch kind {
	case 2:
		if d.large {
			name, inner = "matrix", object{"generators": []any{d.drawTerminal(prefixed),
				object{"list": object{"elements": []any{object{"team": "web", "zone": "z"}}}}}}
			break
		}
		n := 2
		if d.wildly(10, "too many or few") {
			n = oneOf(d.T, "matrix children", 0, 1, 3)
		}
		name, inner = "matrix", object{"generators": children(n)}
	case 3:
		n, keys := rapid.IntRange(2, 3).Draw(d.T, "children"), oneOf(d.T, "mergeKeys", []any{"name"}, []any{"team", "env"},
			[]any{"name", "team", "env", "path", "p0", "p1"}, []any{"values.tier"})
		if d.wildly(4, "odd merge") {
			n, keys = rapid.IntRange(1, 3).Draw(d.T, "odd children"), oneOf(d.T, "odd mergeKeys", []any{"path"},
				[]any{"path.basename"}, []any{})
		}
		name, inner = "merge", object{"mergeKeys": keys, "generators": children(n)}
	default:
		return d.drawTerminal(prefixed)
	}
	g := object{name: inner}
	if depth == 2 && sometimes(d.T, 6, "override of the whole") {
		inner["template"] = d.drawOverride()
	}
	if sometimes(d.T, 6, "filtered as a whole") {
		g["selector"] = d.drawSelector([]any{"web", "dev", "in-cluster"}, "team", "env", "name", "path.basename")
	}
	return g
}

// drawTemplate draws the Application that a set makes of its parameters.
func (d drawer) drawTemplate() object {
	name := d.drawText(
		oneOf(d.T, "go name",
			`{{ .team }}-{{ .env }}-{{ .name }}{{ with .path }}-{{ join "-" .segments | normalize }}{{ end }}{{ with .p1 }}-{{ .path.basename }}{{ end }}`,
			`{{ get . "team" }}-{{ get . "env" }}-{{ get . "name" }}{{ with get . "path" }}-{{ .path | replace "/" "-" | normalize }}{{ end }}`,
			`{{ dig "team" "none" . }}-{{ dig "env" "none" . }}-{{ dig "name" "none" . }}-{{ dig "path" "path" "none" . | slugify }}-{{ dig "p0" "path" "path" "none" . | slugify 23 }}-{{ dig "p1" "path" "path" "none" . | slugify }}`),
		oneOf(d.T, "name", "{{team}}-{{env}}-{{name}}-{{path}}-{{p0.path}}-{{p1.path}}",
			"{{team}}-{{env}}-{{name}}-{{path[1]}}-{{path[2]}}-{{p1.path[1]}}{{p1.path[2]}}-{{p0.path[1]}}{{p0.path[2]}}"))
	if d.wildly(3, "odd name") {
		name = oneOf(d.T, "odd name", "{{team}}-{{env}}", "{{path.basenameNormalized}}{{nameNormalized}}", "fixed", `{{ fail "no" }}`,
			"{{ .x", `{{ template "nothing" }}`, `{{ index .path.segments 7 }}`,
			"{{ .team }}-{{ .env }}", `{{ .path.basenameNormalized }}{{ .nameNormalized }}`)
	}
	env, team := d.drawText("{{ .env }}", "{{env}}"), d.drawText("{{ .team }}", "{{team}}")
	spec := object{
		"project": "default",
		"source": object{"repoURL": d.repoURL, "path": d.drawText("{{ with .path }}{{ .path }}{{ end }}", "{{path}}"),
			"targetRevision": "main", "helm": object{"values": "a: " + team, "valuesObject": object{"x": team, "n": 1}}},
		"destination": object{"server": "https://kubernetes.default.svc", "namespace": env},
		"syncPolicy":  object{},
	}
	metadata := object{"name": name, "labels": object{"env": env, team: "x"}}
	if d.wildly(2, "odd project") {
		spec["project"] = oneOf(d.T, "project", "web", team, "gone", "")
	}
	switch oneOf(d.T, "destination", 0, 0, 0, 1, 2) {
	case 1:
		spec["destination"] = object{"name": "in-cluster", "namespace": env}
	case 2:
		spec["destination"] = object{oneOf(d.T, "destination's key", "name", "server"): d.drawText("{{ .name }}", "{{name}}"),
			"namespace": env}
	}
	if sometimes(d.T, 5, "kustomize") {
		spec["source"] = object{"repoURL": d.repoURL, "path": "a/" + team, "kustomize": object{"images": []any{"web=" + team}}}
	}
	if sometimes(d.T, 5, "sources") {
		delete(spec, "source")
		spec["sources"] = []any{
			object{"repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1.2.3",
				"helm": object{"valueFiles": []any{"$values/" + env + "/values.yaml"},
					"parameters": []any{object{"name": "a", "value": env}}}},
			object{"repoURL": d.repoURL, "ref": "values", "targetRevision": team},
		}
	}
	if sometimes(d.T, 5, "more") {
		metadata["annotations"] = object{"note": d.drawText(`{{ with .values }}{{ .tier }}{{ end }}`, "{{values.tier}}"),
			"a/b": d.drawText("{{ .metadata }}", "{{metadata.annotations.a/b}}")}
		metadata["finalizers"] = []any{"own"}
		spec["syncPolicy"] = object{"automated": object{"prune": true}, "syncOptions": []any{"A=" + team}, "retry": object{"limit": 3}}
		spec["info"] = []any{object{"name": env, "value": env}}
		spec["ignoreDifferences"] = []any{object{"kind": "Deployment", "jsonPointers": []any{"/spec/replicas"}}}
		spec["revisionHistoryLimit"] = 3
	}
	return object{"metadata": metadata, "spec": spec}
}

// Draw draws a whole ApplicationSet over a Tree that is in the repository. With large,
// whose Tree has many folders, nothing multiplies them.
func Draw(t *rapid.T, repoURL string, large bool) map[string]any {
	d := drawer{t, rapid.Bool().Draw(t, "goTemplate"), sometimes(t, 6, "wild"), large, repoURL}
	gens := []any{}
	for range oneOf(t, "generators", 1, 1, 1, 2) {
		gens = append(gens, d.drawGenerator(2, ""))
	}
	spec := object{"goTemplate": d.goTemplate, "generators": gens, "template": d.drawTemplate()}
	if rapid.Bool().Draw(t, "nestedSelectors") {
		spec["applyNestedSelectors"] = true
	}
	if sometimes(t, 5, "options") {
		spec["goTemplateOptions"] = oneOf(t, "goTemplateOptions", []any{"missingkey=error"}, []any{"missingkey=zero"},
			[]any{"missingkey=invalid"})
	}
	if d.wildly(12, "odd option") {
		spec["goTemplateOptions"] = []any{"missingkey=nonsense"}
	}
	if sometimes(t, 6, "policy") {
		spec["syncPolicy"] = object{"preserveResourcesOnDeletion": true}
	}
	switch {
	case sometimes(t, 5, "patched"):
		spec["templatePatch"] = d.drawText(oneOf(t, "go patch",
			"metadata:\n  annotations:\n    team: \"{{ .team }}\"\nspec:\n  project: stolen\n  syncPolicy:\n    automated: {prune: {{ eq "+
				"(default \"\" (get . \"env\")) \"dev\" }}}\n",
			"{{ if .path }}spec: {source: {path: other}}{{ else }}{}{{ end }}"),
			"metadata: {annotations: {team: '{{team}}'}, finalizers: [patched]}\n")
	case d.wildly(4, "odd patch"):
		spec["templatePatch"] = oneOf(t, "patch", "not: [valid", "spec: {source: {helm: {parameters: [{name: {{ .env }}, value: x}]}}}",
			"spec: {destination: {namespace: 3}}", "{}", "", "spec: null", "metadata: {name: other}")
	}
	return object{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": object{"name": "random"}, "spec": spec}
}
