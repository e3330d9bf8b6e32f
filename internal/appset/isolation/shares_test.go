package isolation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// sharedCarry are the entries for what lies in files that several environments
// share, and for kustomize components.
var sharedCarry = []pipeline.Carry{
	{YAML: &pipeline.FieldPick{Files: []string{"tags.yaml"}, Paths: []string{"spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"}}},
	{YAML: &pipeline.FieldPick{Files: []string{"channels.yaml"}, Paths: []string{"spec.generators[0].matrix.generators[0].list.elements[env={{environment}}].tag"}}},
	{YAML: &pipeline.FieldPick{Files: []string{"common.yaml"}, Paths: []string{"{{component}}.{{environment}}.tag"}}},
	{YAML: &pipeline.FieldPick{Files: []string{"values-{{environment}}.yaml"}, Paths: []string{"image.tag"}}},
	{JSON: &pipeline.FieldPick{Files: []string{"{{component}}-{{environment}}.json"}, Paths: []string{"$.tag"}}},
	{YAML: &pipeline.FieldPick{Files: []string{"pin/kustomization.yaml"}, Paths: []string{"images[*].newTag"}}},
}

// elements adds a component's elements to the list of a set, one a cluster.
func (rr *randomRepository) elements(set, c, env string, clusters int, more string) {
	if rr.lists[set] == nil {
		rr.lists[set] = &strings.Builder{}
	}
	for i := range clusters {
		fmt.Fprintf(rr.lists[set], "          - {component: %s, env: %s, cluster: k%d, %s}\n", c, env, i, more)
	}
}

// shares adds an environment of a component of one of the kinds that have
// their releases beside those of others.
func (rr *randomRepository) shares(kind, c, env, before string, clusters int, maybe func(string) bool) {
	switch kind {
	case "elements": // a parameter is the element's
		rr.charted(c)
		rr.elements("tags", c, env, clusters, "tag: v1")
	case "keys": // a key of a common values file, and who goes by another's
		rr.chart("charts/"+c, c, "registry.example/"+c+":{{ (index .Values \""+c+"\" .Values.from).tag }}")
		from := env
		if before != "" && maybe("goes by the key of the one before") {
			from = before
		}
		rr.elements("keys", c, env, clusters, "from: "+from)
		common := "shared/common.yaml"
		if rr.files[common] == nil {
			rr.putFile(common, "")
		}
		text := string(rr.files[common].Data)
		if !strings.Contains(text, c+":\n") {
			text += c + ":\n"
		}
		rr.putFile(common, strings.Replace(text, c+":\n", c+":\n  "+env+": {tag: v1}\n", 1))
	case "side by side": // one values file each in the chart's folder, and who reads another's, too
		rr.charted(c)
		own := "image:\n  tag: v1\n"
		chain := "[values-" + env + ".yaml]"
		if before != "" && maybe("on top of the one before") {
			chain = "[values-" + before + ".yaml, values-" + env + ".yaml]"
			if !maybe("own tag") {
				own = "extra: true\n"
			}
		}
		rr.putFile("charts/"+c+"/values-"+env+".yaml", own)
		rr.elements("chart-values", c, env, clusters, "chain: "+chain)
	case "globs", "refs": // values files by a glob, or by the name of another source; who reads others', too; and who overrides them
		rr.charted(c)
		dir := kind + "/" + c + "/" + env
		own := "image:\n  tag: v1\n"
		rr.putFile(dir+"/values.yaml", own)
		root, file := "../../", "/values.yaml"
		if kind == "refs" {
			root = "$values/"
		} else if file = "/*.yaml"; maybe("a later file overrides it") {
			rr.putFile(dir+"/zz.yaml", own)
		}
		chain := "'" + root + dir + file + "'"
		switch {
		case before == "":
		case maybe("on top of the one before"):
			chain = "'" + root + kind + "/" + c + "/" + before + file + "', " + chain
		case kind == "globs" && maybe("on top of all"):
			chain = "'" + root + kind + "/" + c + "/**/values.yaml', " + chain
		}
		over := "[]"
		if maybe("a parameter overrides it") {
			over = "[{name: image.tag, value: v1}]"
		}
		rr.elements(kind, c, env, clusters, "chain: ["+chain+"], over: "+over)
	case "pins": // a kustomize component pins the images, and who takes another's
		rr.kustomized(c, env, "", false, false, false)
		pin := "pin"
		if before != "" && maybe("pinned by the one before") {
			pin = "../" + before + "/pin"
		}
		rr.putFile("apps/"+c+"/overlays/"+env+"/kustomization.yaml", "resources:\n  - ../../base\ncomponents:\n  - "+pin+"\n")
		rr.putFile("apps/"+c+"/overlays/"+env+"/pin/kustomization.yaml",
			"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n  - name: registry.example/"+c+"\n    newTag: v1\n")
		rr.elements("elements", c, env, clusters, "path: apps/"+c+"/overlays/"+env)
	case "flat": // a generator file for each, in one folder
		rr.charted(c)
		rr.putFile("flat/"+c+"-"+env+".json", fmt.Sprintf("{\"component\": %q, \"env\": %q, \"tag\": \"v1\"}\n", c, env))
	case "channel": // all components of an environment follow one element
		rr.charted(c)
		rr.channel[c] = true
	}
}

// listSets writes the sets whose list generators were collected.
func (rr *randomRepository) listSets() {
	sources := map[string][2]string{ // a source, and a patch of the template
		"elements":     {"          path: '{{.path}}'\n", ""},
		"tags":         {tagged, ""},
		"keys":         {"          path: 'charts/{{.component}}'\n          helm:\n            valueFiles: [../../shared/common.yaml]\n            parameters: [{name: from, value: '{{.from}}'}]\n", ""},
		"chart-values": {"          path: 'charts/{{.component}}'\n", "  templatePatch: |\n    spec:\n      source:\n        helm:\n          valueFiles: {{ .chain | toJson }}\n"},
	}
	const patch = "  templatePatch: |\n    spec:\n      source:\n        helm:\n          valueFiles: {{ .chain | toJson }}\n          parameters: {{ .over | toJson }}\n"
	sources["globs"] = [2]string{"          path: 'charts/{{.component}}'\n", patch}
	here := "        - repoURL: " + repoURL + "\n          targetRevision: HEAD\n          "
	sources["refs"] = [2]string{"          path: 'charts/{{.component}}'\n", "  templatePatch: |\n    spec:\n      sources:\n" + indent(here+"ref: values\n"+here+
		"path: 'charts/{{.component}}'\n          helm: {valueFiles: {{ .chain | toJson }}, parameters: {{ .over | toJson }}}\n", "  ")}
	for _, name := range slices.Sorted(maps.Keys(rr.lists)) {
		if source, ok := sources[name]; ok {
			rr.putFile("argocd/"+name+".yaml", set(name, "    - list:\n        elements:\n"+rr.lists[name].String(), "{{.component}}-{{.env}}-{{.cluster}}", source[0], "{{.component}}", "{{.env}}", source[1]))
		}
	}
	if len(rr.channel) == 0 {
		return
	}
	generators := "    - matrix:\n        generators:\n          - list:\n              elements:\n"
	for _, env := range rr.environments {
		generators += "                - {env: " + env + ", tag: v1}\n"
	}
	generators += "          - list:\n              elements:\n"
	for _, c := range rr.components {
		if rr.channel[c] {
			generators += "                - {component: " + c + "}\n"
		}
	}
	rr.putFile("argocd/channels.yaml", set("channels", generators, "{{.component}}-{{.env}}", sources["tags"][0], "{{.component}}", "{{.env}}", ""))
}
