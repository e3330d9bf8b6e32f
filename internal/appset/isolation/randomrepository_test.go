package isolation_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

const repoURL = "https://git.example/fleet.git"

// randomRepository is a random repository.
type randomRepository struct {
	environments, components []string
	files                    fstest.MapFS
	whole, known             *appset.TargetSet // with Applications and without
	pipeline                 *pipeline.Pipeline
	lists                    map[string]*strings.Builder // elements, by set
	channel                  map[string]bool             // components that follow their environment's channel
}

// tagged is a source whose tag is a parameter.
const tagged = "          path: 'charts/{{.component}}'\n          helm:\n            parameters: [{name: image.tag, value: '{{.tag}}'}]\n"

// kinds are the ways in which a component's environments have their releases.
var kinds = []string{"kustomize", "values", "config", "elements", "keys", "side by side", "pins", "channel", "flat", "globs", "refs"}

func (rr *randomRepository) putFile(name, text string) {
	rr.files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
}

// drawRepository draws a fleet. Components are kustomize overlays, charts with chains of values
// files, or charts whose parameters come from generator files or from elements of a list. Others
// have their fields in files that all environments share. Some build on each other's files, as
// teams do on purpose and by accident. Values files are also found by globs and by another source's
// name, parameters of some Applications override them, and differences are ignored.
func drawRepository(t *rapid.T) *randomRepository {
	w := &randomRepository{files: fstest.MapFS{}, lists: map[string]*strings.Builder{}, channel: map[string]bool{}}
	for i := range rapid.SampledFrom([]int{2, 2, 3, 3, 4, 5, 6}).Draw(t, "environments") {
		w.environments = append(w.environments, fmt.Sprintf("e%d", i))
	}
	// Large fleets cost much and show little more than small ones.
	sizes := []int{5, 5, 5, 6, 6, 7, 9}
	if *long {
		sizes = append(sizes, 5, 5, 5, 5, 5, 6, 6, 7, 8, 10, 12, 20, 50)
	}
	for i := range rapid.SampledFrom(sizes).Draw(t, "components") {
		w.components = append(w.components, fmt.Sprintf("c%d", i))
	}
	maybe := func(label string) bool { return rapid.Bool().Draw(t, label) }
	w.putFile("common/labels/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels:\n  - pairs: {team: shop}\n")
	shop := map[string]bool{}
	for _, c := range w.components {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		shop[kind] = true
		for at, env := range w.environments {
			clusters := rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, "clusters")
			if len(w.components) > 12 {
				clusters = 1
			}
			before := ""
			if at > 0 {
				before = w.environments[at-1]
			}
			switch kind {
			case "kustomize":
				w.kustomized(c, env, before, maybe("builds on the one before"), maybe("own image"), maybe("with the component"))
				w.elements("elements", c, env, clusters, "path: apps/"+c+"/overlays/"+env)
			case "values":
				w.charted(c)
				own := "extra: true\n"
				if at == 0 || maybe("own tag") {
					own = "image:\n  tag: v1\n"
				}
				w.putFile("envs/"+env+"/"+c+"/values.yaml", own)
				chain := []string{"../../shared/values.yaml"}
				if before != "" && maybe("values of the one before") {
					chain = append(chain, "../../envs/"+before+"/"+c+"/values.yaml")
				}
				chain = append(chain, "../../envs/"+env+"/"+c+"/values.yaml")
				w.putFile("envs/"+env+"/"+c+"/chain.json", fmt.Sprintf(`{"component": %q, "env": %q, "chain": ["%s"]}`, c, env, strings.Join(chain, `", "`)))
			case "config":
				w.charted(c)
				w.putFile("envs/"+env+"/"+c+"/config.json", fmt.Sprintf("{\"component\": %q, \"env\": %q,\n \"tag\": \"v1\"}\n", c, env))
			default:
				w.shares(kind, c, env, before, clusters, maybe)
			}
		}
	}
	w.putFile("shared/values.yaml", "image:\n  tag: v0\n")
	w.listSets()
	git := func(files string) string {
		return "    - git:\n        repoURL: " + repoURL + "\n        revision: HEAD\n        files: [{path: " + files + "}]\n"
	}
	if shop["values"] {
		w.putFile("argocd/chains.yaml", set("chains", git("envs/*/*/chain.json"), "{{.component}}-{{.env}}",
			"          path: 'charts/{{.component}}'\n", "{{.component}}", "{{.env}}", "  templatePatch: |\n    spec:\n      source:\n        helm:\n          valueFiles: {{ .chain | toJson }}\n"))
	}
	if shop["flat"] {
		w.putFile("argocd/flat.yaml", set("flat", git("flat/*.json"), "{{.component}}-{{.env}}", tagged, "{{.component}}", "{{.env}}", ""))
	}
	if shop["config"] {
		from := git("envs/*/*/config.json")
		if maybe("merged") {
			from = "    - merge:\n        mergeKeys: [component, env]\n        generators:\n" + indent(from+git("envs/*/*/config.json"), "      ")
		}
		w.putFile("argocd/configs.yaml", set("configs", from, "{{.component}}-{{.env}}", tagged, "{{.component}}", "{{.env}}", ""))
		if maybe("a dashboard shows tags") {
			w.putFile("argocd/dashboards.yaml", set("dashboards", git("envs/*/*/config.json"), "board-{{.component}}-{{.env}}",
				"          path: shared/board\n          helm: {parameters: [{name: shown, value: '{{.tag}}'}]}\n", "", "", ""))
			w.chart("shared/board", "board", "{{ .Values.shown }}")
		}
	}
	p := &pipeline.Pipeline{APIVersion: "liftlock.dev/v1alpha1", Kind: "Pipeline", Metadata: pipeline.Metadata{Name: "shop"}, File: ".liftlock.yaml"}
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Path: "argocd/*.yaml"}}
	p.Spec.Component, p.Spec.Environment = `{{ or .component "" }}`, `{{ or .env "" }}`
	p.Spec.Carry = []pipeline.Carry{
		{KustomizeImages: []string{"registry.example/*"}},
		{YAML: &pipeline.FieldPick{Files: []string{"values.yaml"}, Paths: []string{"image.tag"}}},
		{JSON: &pipeline.FieldPick{Files: []string{"config.json"}, Paths: []string{"tag"}}},
	}
	p.Spec.Carry = append(p.Spec.Carry, sharedCarry...)
	for _, env := range w.environments {
		p.Spec.Environments = append(p.Spec.Environments, pipeline.Environment{Name: env})
	}
	w.pipeline = p
	return w
}

func (rr *randomRepository) kustomized(c, env, before string, builds, own, component bool) {
	rr.putFile("apps/"+c+"/base/kustomization.yaml", "resources: [deployment.yaml]\n")
	rr.putFile("apps/"+c+"/base/deployment.yaml", deployment(c, "registry.example/"+c))
	text := "resources:\n  - ../../base\n"
	if before != "" && builds {
		text = "resources:\n  - ../" + before + "\n"
	}
	if component {
		text += "components:\n  - ../../../../common/labels\n"
	}
	if own || !builds || before == "" {
		text += "images:\n  - name: registry.example/" + c + "\n    newTag: v1\n"
	}
	rr.putFile("apps/"+c+"/overlays/"+env+"/kustomization.yaml", text)
}

func (rr *randomRepository) charted(c string) {
	rr.chart("charts/"+c, c, "registry.example/"+c+":{{ .Values.image.tag }}")
}

func (rr *randomRepository) chart(dir, name, image string) {
	rr.putFile(dir+"/Chart.yaml", "apiVersion: v2\nname: "+name+"\nversion: 1.0.0\n")
	rr.putFile(dir+"/values.yaml", "image:\n  tag: none\nshown: ''\n")
	rr.putFile(dir+"/templates/deployment.yaml", deployment(name, "'"+image+"'"))
}

func deployment(name, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\nspec:\n  template:\n    spec:\n      containers:\n        - name: main\n          image: " + image + "\n"
}

// set is an ApplicationSet; one without a component isn't managed.
func set(name, generators, app, source, component, env, more string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: ` + name + `, namespace: argocd}
spec:
  goTemplate: true
  generators:
` + generators + `  template:
    metadata:
      name: '` + app + `'
      labels: {component: '` + component + `', env: '` + env + `'}
    spec:
      project: default
      ignoreDifferences: [{group: apps, kind: Deployment, jqPathExpressions: ['.spec.template.spec.containers[].image']}]
      source:
          repoURL: ` + repoURL + `
          targetRevision: HEAD
` + source + `      destination: {server: 'https://kubernetes.default.svc', namespace: '` + app + `'}
` + more
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

// resolve resolves a tree of the world.
func (rr *randomRepository) resolve(t *rapid.T, r *appset.Resolver, tree fs.FS, manifests bool) *appset.TargetSet {
	f, err := r.Resolve(context.Background(), appset.Input{Pipeline: rr.pipeline, Tree: tree, Branch: "main", RepoURLs: []string{repoURL}, Manifests: manifests,
		Main: "hub", ArgoCDs: map[string]appset.ArgoCD{"hub": {Namespace: "argocd", Version: appset.Version{Major: 3, Minor: 5}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Problems {
		t.Fatalf("%s", p)
	}
	return f
}

// carry draws another release for an environment of a component, and what that
// edits; nothing where the environment has nothing of its own.
func (rr *randomRepository) carry(t *rapid.T, f *appset.TargetSet, component, env string) []fieldedit.Edit {
	bases, err := history.ReadBases(context.Background(), rr.files, history.BaseFolders(f, "main")["main"], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := history.Components(f, "main", map[string]*history.Bases{"main": bases})[component][env]
	if at == nil {
		return nil
	}
	release, err := fieldedit.Read(rr.files, at.Overlay(rr.pipeline))
	if err != nil {
		t.Fatalf("read %s in %s: %v", component, env, err)
	}
	for i := range release.Fields {
		release.Fields[i].Value = rapid.SampledFrom([]string{"v2", "v3"}).Draw(t, "value")
	}
	edits, err := fieldedit.Compose(rr.files, at.Overlay(rr.pipeline), release, nil)
	if err != nil {
		t.Fatalf("compose %s in %s: %v", component, env, err)
	}
	return edits
}
