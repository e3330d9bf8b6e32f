package appset

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

var long = flag.Bool("long", false, "run the random tests with 10,000 cases")

const appsetsURL = "https://git.example.com/acme/fleet.git"

// object is a piece of a manifest.
type object = map[string]any

var randomEnvironments = []string{"dev", "qa", "prod", "eu", "us"}

// randomTree is a repository that random sets generate from.
func randomTree(apps, environments int) map[string]string {
	tree := map[string]string{".hidden/dev/x": "", "apps/.secret/x": ""}
	for i := range apps {
		app := fmt.Sprintf("app-%d", i)
		if i < 3 {
			app = []string{"web", "api", "Big_App"}[i]
		}
		for _, env := range randomEnvironments[:environments] {
			tree["apps/"+app+"/"+env+"/kustomization.yaml"] = ""
			tree["apps/"+app+"/"+env+"/config.json"] = fmt.Sprintf(`{"team": %q, "env": %q, "deep": {"n": %d, "list": ["a", "b"]}, "on": true}`, app, env, i)
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
	large      bool // the fleet has 200 targets: nothing multiplies them
}

// wildly is true once in n draws of a wild set.
func (d drawer) wildly(n int, what string) bool { return d.wild && sometimes(d.T, n, what) }

// text is a string of the set's kind of templates, or sometimes of the other.
func (d drawer) text(goTemplate, fast string) string {
	if d.goTemplate != d.wildly(8, "of the other kind") {
		return goTemplate
	}
	return fast
}

// terminal draws a generator that combines no others.
func (d drawer) terminal(prefixed string) object {
	g := object{}
	d.kind(g, rapid.IntRange(0, 3).Draw(d.T, "generator"), prefixed)
	if d.wildly(15, "two kinds") {
		d.kind(g, rapid.IntRange(0, 3).Draw(d.T, "second generator"), prefixed)
	}
	if sometimes(d.T, 5, "filtered") {
		g["selector"] = d.selector([]any{"web", "dev", "in-cluster", "1", "prod", "https://1.2.3.4"}, "team", "env", "name", "path.basename", "deep.n", "metadata.labels.environment", "values.tier")
	}
	return g
}

func (d drawer) selector(values []any, keys ...string) object {
	expression := object{"key": oneOf(d.T, "key", keys...), "operator": oneOf(d.T, "operator", "In", "NotIn", "Exists", "DoesNotExist", "NotIn")}
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

// values draws a values block over the generator's own parameters.
func (d drawer) values(own ...string) object {
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

// kind draws one kind of terminal generator into g.
func (d drawer) kind(g object, kind int, prefixed string) {
	var inner object
	switch kind {
	case 0:
		inner = d.list()
		g["list"] = inner
	case 1:
		inner = object{"values": d.values(d.text("{{ .name }}-x", "{{name}}-x"), d.text("{{ .server }}", "{{server}}{{metadata.labels.environment}}"))}
		if rapid.Bool().Draw(d.T, "selector") {
			inner["selector"] = object{"matchLabels": object{"environment": oneOf(d.T, "label", "prod", "staging", "none")}}
		}
		if sometimes(d.T, 6, "expressions") {
			inner["selector"] = d.selector([]any{"prod", "true", "staging"}, "environment", "use-kafka", "staging")
		}
		if d.wildly(8, "templated selector") {
			inner["selector"] = object{"matchLabels": object{"environment": oneOf(d.T, "templated label", "{{ .env }}", "{{env}}")}}
		}
		if sometimes(d.T, 10, "flat") {
			inner["flatList"] = true
		}
		g["clusters"] = inner
	case 2:
		path := oneOf(d.T, "path", "apps/*/*", "apps/web/*", "*/*", "apps/[a-w]*/dev", "apps/*/dev", "apps/*/*", d.text("apps/{{ .team }}/*", "apps/{{team}}/*"))
		if d.wildly(8, "odd path") {
			path = oneOf(d.T, "odd path", "*", "{{ .team }}/*", "apps/[", "apps/**")
		}
		dirs := []any{object{"path": path}}
		if sometimes(d.T, 3, "exclude") {
			dirs = append(dirs, object{"path": oneOf(d.T, "excluded", "apps/api/*", "apps/*/qa", "apps/Big_App/dev"), "exclude": true})
		}
		inner = object{"repoURL": appsetsURL, "revision": "HEAD", "directories": dirs, "values": d.values(d.text("x{{ .path }}", "{{path.basename}}-{{path[0]}}")), "pathParamPrefix": prefixed}
		g["git"] = inner
	default:
		var paths []any
		for range rapid.IntRange(1, 2).Draw(d.T, "paths") {
			path := oneOf(d.T, "files", "apps/*/config.json", "apps/**/config.json", "apps/*/*/config.json", "apps/web/list.yaml", "apps/web/*/config.json",
				"apps/api/d?v/config.json", "apps/{web,api}/dev/config.json", d.text("apps/{{ .team }}/*/config.json", "apps/{{team}}/*/config.json"))
			if d.wildly(4, "odd files") {
				path = oneOf(d.T, "odd files", "apps/web/*.yaml", "apps/api/nested.yaml", "apps/web", "apps/*/kustomization.yaml", "apps/w*/e[a-m]pty.yaml", "apps/web/blank.yaml", "apps/web/odd.yaml", "apps/[")
			}
			paths = append(paths, object{"path": path})
		}
		inner = object{"repoURL": appsetsURL, "revision": oneOf(d.T, "revision", "HEAD", "main", ""), "files": paths, "values": d.values(d.text("{{ .team }}", "{{team}}-{{path.filename}}")), "pathParamPrefix": prefixed}
		g["git"] = inner
	}
	if sometimes(d.T, 8, "override") {
		inner["template"] = d.override()
	}
}

func (d drawer) list() object {
	elements := []any{}
	for i := range rapid.IntRange(1, 4).Draw(d.T, "elements") {
		e := object{"team": oneOf(d.T, "team", "web", "api"), "env": fmt.Sprintf("e%d", i), "name": oneOf(d.T, "name", "engineering-dev", "in-cluster")}
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

// override draws a generator's own part of the template.
func (d drawer) override() object {
	spec := object{"project": oneOf(d.T, "project override", "", "", "web"), "destination": object{}}
	if d.wildly(4, "no project") {
		spec["project"] = "gone"
	}
	if rapid.Bool().Draw(d.T, "source override") {
		spec["source"] = object{"repoURL": appsetsURL, "path": "over/" + d.text("{{ .team }}", "{{path}}"), "targetRevision": "over"}
	}
	metadata := object{"labels": object{"generator": "own", "env": "over"}}
	if d.wildly(3, "name override") {
		metadata["name"] = d.text("over-{{ .name }}", "over-{{name}}")
	}
	return object{"metadata": metadata, "spec": spec}
}

// generator draws one that combines at most depth levels.
func (d drawer) generator(depth int, prefixed string) object {
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
			out = append(out, d.generator(depth-1, p))
		}
		return out
	}
	var name string
	var inner object
	switch kind {
	case 2:
		if d.large {
			name, inner = "matrix", object{"generators": []any{d.terminal(prefixed), object{"list": object{"elements": []any{object{"team": "web", "zone": "z"}}}}}}
			break
		}
		n := 2
		if d.wildly(10, "too many or few") {
			n = oneOf(d.T, "matrix children", 0, 1, 3)
		}
		name, inner = "matrix", object{"generators": children(n)}
	case 3:
		n, keys := rapid.IntRange(2, 3).Draw(d.T, "children"), oneOf(d.T, "mergeKeys", []any{"name"}, []any{"team", "env"}, []any{"name", "team", "env", "path", "p0", "p1"}, []any{"values.tier"})
		if d.wildly(4, "odd merge") {
			n, keys = rapid.IntRange(1, 3).Draw(d.T, "odd children"), oneOf(d.T, "odd mergeKeys", []any{"path"}, []any{"path.basename"}, []any{})
		}
		name, inner = "merge", object{"mergeKeys": keys, "generators": children(n)}
	default:
		return d.terminal(prefixed)
	}
	g := object{name: inner}
	if depth == 2 && sometimes(d.T, 6, "override of the whole") {
		inner["template"] = d.override()
	}
	if sometimes(d.T, 6, "filtered as a whole") {
		g["selector"] = d.selector([]any{"web", "dev", "in-cluster"}, "team", "env", "name", "path.basename")
	}
	return g
}

// template draws the Application that a set makes of its parameters.
func (d drawer) template() object {
	name := d.text(
		oneOf(d.T, "go name",
			`{{ .team }}-{{ .env }}-{{ .name }}{{ with .path }}-{{ join "-" .segments | normalize }}{{ end }}{{ with .p1 }}-{{ .path.basename }}{{ end }}`,
			`{{ get . "team" }}-{{ get . "env" }}-{{ get . "name" }}{{ with get . "path" }}-{{ .path | replace "/" "-" | normalize }}{{ end }}`,
			`{{ dig "team" "none" . }}-{{ dig "env" "none" . }}-{{ dig "name" "none" . }}-{{ dig "path" "path" "none" . | slugify }}-{{ dig "p0" "path" "path" "none" . | slugify 23 }}-{{ dig "p1" "path" "path" "none" . | slugify }}`),
		oneOf(d.T, "name", "{{team}}-{{env}}-{{name}}-{{path}}-{{p0.path}}-{{p1.path}}", "{{team}}-{{env}}-{{name}}-{{path[1]}}-{{path[2]}}-{{p1.path[1]}}{{p1.path[2]}}-{{p0.path[1]}}{{p0.path[2]}}"))
	if d.wildly(3, "odd name") {
		name = oneOf(d.T, "odd name", "{{team}}-{{env}}", "{{path.basenameNormalized}}{{nameNormalized}}", "fixed", `{{ fail "no" }}`, "{{ .x", `{{ template "nothing" }}`, `{{ index .path.segments 7 }}`,
			"{{ .team }}-{{ .env }}", `{{ .path.basenameNormalized }}{{ .nameNormalized }}`)
	}
	env, team := d.text("{{ .env }}", "{{env}}"), d.text("{{ .team }}", "{{team}}")
	spec := object{
		"project":     "default",
		"source":      object{"repoURL": appsetsURL, "path": d.text("{{ with .path }}{{ .path }}{{ end }}", "{{path}}"), "targetRevision": "main", "helm": object{"values": "a: " + team, "valuesObject": object{"x": team, "n": 1}}},
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
		spec["destination"] = object{oneOf(d.T, "destination's key", "name", "server"): d.text("{{ .name }}", "{{name}}"), "namespace": env}
	}
	if sometimes(d.T, 5, "kustomize") {
		spec["source"] = object{"repoURL": appsetsURL, "path": "a/" + team, "kustomize": object{"images": []any{"web=" + team}}}
	}
	if sometimes(d.T, 5, "sources") {
		delete(spec, "source")
		spec["sources"] = []any{
			object{"repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1.2.3", "helm": object{"valueFiles": []any{"$values/" + env + "/values.yaml"}, "parameters": []any{object{"name": "a", "value": env}}}},
			object{"repoURL": appsetsURL, "ref": "values", "targetRevision": team},
		}
	}
	if sometimes(d.T, 5, "more") {
		metadata["annotations"] = object{"note": d.text(`{{ with .values }}{{ .tier }}{{ end }}`, "{{values.tier}}"), "a/b": d.text("{{ .metadata }}", "{{metadata.annotations.a/b}}")}
		metadata["finalizers"] = []any{"own"}
		spec["syncPolicy"] = object{"automated": object{"prune": true}, "syncOptions": []any{"A=" + team}, "retry": object{"limit": 3}}
		spec["info"] = []any{object{"name": env, "value": env}}
		spec["ignoreDifferences"] = []any{object{"kind": "Deployment", "jsonPointers": []any{"/spec/replicas"}}}
		spec["revisionHistoryLimit"] = 3
	}
	return object{"metadata": metadata, "spec": spec}
}

// drawSet draws a whole ApplicationSet.
func drawSet(t *rapid.T, large bool) object {
	d := drawer{t, rapid.Bool().Draw(t, "goTemplate"), sometimes(t, 6, "wild"), large}
	gens := []any{}
	for range oneOf(t, "generators", 1, 1, 1, 2) {
		gens = append(gens, d.generator(2, ""))
	}
	spec := object{"goTemplate": d.goTemplate, "generators": gens, "template": d.template()}
	if rapid.Bool().Draw(t, "nestedSelectors") {
		spec["applyNestedSelectors"] = true
	}
	if sometimes(t, 5, "options") {
		spec["goTemplateOptions"] = oneOf(t, "goTemplateOptions", []any{"missingkey=error"}, []any{"missingkey=zero"}, []any{"missingkey=invalid"})
	}
	if d.wildly(12, "odd option") {
		spec["goTemplateOptions"] = []any{"missingkey=nonsense"}
	}
	if sometimes(t, 6, "policy") {
		spec["syncPolicy"] = object{"preserveResourcesOnDeletion": true}
	}
	switch {
	case sometimes(t, 5, "patched"):
		spec["templatePatch"] = d.text(oneOf(t, "go patch",
			"metadata:\n  annotations:\n    team: \"{{ .team }}\"\nspec:\n  project: stolen\n  syncPolicy:\n    automated: {prune: {{ eq (default \"\" (get . \"env\")) \"dev\" }}}\n",
			"{{ if .path }}spec: {source: {path: other}}{{ else }}{}{{ end }}"),
			"metadata: {annotations: {team: '{{team}}'}, finalizers: [patched]}\n")
	case d.wildly(4, "odd patch"):
		spec["templatePatch"] = oneOf(t, "patch", "not: [valid", "spec: {source: {helm: {parameters: [{name: {{ .env }}, value: x}]}}}", "spec: {destination: {namespace: 3}}", "{}", "", "spec: null", "metadata: {name: other}")
	}
	return object{"apiVersion": apiVersion, "kind": kindSet, "metadata": object{"name": "random"}, "spec": spec}
}

// draws sets how many cases a random test has, unless the command line does.
func draws(t *testing.T, usually, inTheLongMode string) {
	t.Helper()
	checks, given := flag.Lookup("rapid.checks"), false
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	before := checks.Value.String()
	t.Cleanup(func() { must(t, checks.Value.Set(before)) })
	if *long {
		usually = inTheLongMode
	}
	must(t, checks.Value.Set(usually))
}

// TestRandomSets composes generators, selectors, templates and values at
// random, over fleets of up to 200 targets a generator.
func TestRandomSets(t *testing.T) {
	draws(t, "250", "10000")
	redirectLibraryLogs(zap.NewNop())
	var oracles []*oracle
	for _, size := range [][2]int{{2, 2}, {3, 2}, {2, 3}, {3, 3}, {2, 5}, {40, 5}} {
		for _, globbing := range []string{GlobbingGit, GlobbingDoublestar} {
			oracles = append(oracles, &oracle{
				dir: checkout(t, randomTree(size[0], size[1])), clusters: oracleClusters, projects: []string{"default", "web"}, globbing: globbing, large: size[0] > 9,
			})
		}
	}
	cases, resolved, failed, most := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		o := oneOf(rt, "fleet", oracles...)
		raw, err := json.Marshal(drawSet(rt, o.large))
		must(rt, err)
		manifest, err := yaml.JSONToYAML(raw)
		must(rt, err)
		n, wrong := o.compare(rt, manifest, appsetsURL)
		cases, most = cases+1, max(most, n)
		if n > 0 {
			resolved++
		}
		if wrong {
			failed++
		}
	})
	t.Logf("%d sets, %d with Applications, %d with errors, at most %d Applications", cases, resolved, failed, most)
	if cases >= 1000 && (resolved < cases/10 || failed == 0 || most < 100) {
		t.Errorf("of %d sets %d gave Applications and %d errors, at most %d: too few to mean much", cases, resolved, failed, most)
	}
}
