//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// repoFixture is what a story's repository describes.
type repoFixture struct {
	components   map[string][]string // name → images, without registry
	environments string              // of the pipeline file, as YAML
	spec         string              // lines of the pipeline's spec besides those of all stories
	sets         map[string]string   // file in argocd/ → ApplicationSet with placeholders

	plain    map[string]string            // instead of what is made of components and environments: all files but the sets
	branches map[string]map[string]string // further branches with their files
}

// verify are a story's times: short, but with room for a busy machine where
// running out of it would mean something (arriveWithin, timeout).
const verify = "{arriveWithin: 4m, timeout: 90s, healthyFor: 3s, watch: 5m, debounce: 3s}"

// threeSteps is the pipeline of most stories.
const threeSteps = `    - name: dev
      verify: ` + verify + `
    - name: qa
      after: [dev]
      merge: auto
      onDegraded: revert-and-merge
      verify: ` + verify + `
    - name: prod
      after: [qa]
      merge: auto
      gates:
        - approvals: {count: 2, from: {users: [ada, grace]}}
      verify: ` + verify + `
`

// singleComponent is the fleet of most stories: one component with one image, prod in one place.
func singleComponent() repoFixture {
	return repoFixture{components: map[string][]string{"web": {"web"}}, environments: threeSteps, sets: map[string]string{"shop.yaml": byDirectory}}
}

// filesWithImage are the files of singleComponent, whose overlays carry a further image that
// its Deployment doesn't use.
func filesWithImage(image string) map[string]string {
	f := singleComponent()
	f.sets = nil
	files := f.renderFiles("", "")
	for _, env := range environmentNames(f.environments) {
		file := overlayFile("web", env)
		files[file] = strings.Replace(files[file], "images:\n", "images:\n  - name: registry.example/"+image+"\n    newTag: "+firstTag+"\n", 1)
	}
	return files
}

// The firstTag release of everything.
const firstTag = "1.0.0"

// byDirectory makes an Application for every overlay.
const byDirectory = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: PREFIX, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - git:
        repoURL: REPO
        revision: main
        requeueAfterSeconds: 5
        directories:
          - path: apps/*/overlays/*
  template:
    metadata:
      name: 'PREFIX-{{ index .path.segments 1 }}-{{ .path.basename }}'
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: 'PREFIX-{{ .path.basename }}'}
      syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true]}
`

// The same with prod in two regions: an environment with two targets, from a
// second set that combines directories with a list.
var (
	allButProd = strings.Replace(byDirectory, "          - path: apps/*/overlays/*\n", "          - path: apps/*/overlays/*\n          - path: apps/*/overlays/prod\n            exclude: true\n", 1)
	regions    = strings.NewReplacer(
		"metadata: {name: PREFIX,", "metadata: {name: PREFIX-prod,",
		"    - git:", "    - matrix:\n        generators:\n          - git:",
		"        repoURL: REPO\n        revision: main\n        requeueAfterSeconds: 5\n        directories:\n          - path: apps/*/overlays/*\n",
		"              repoURL: REPO\n              revision: main\n              requeueAfterSeconds: 5\n              directories:\n                - path: apps/*/overlays/prod\n          - list:\n              elements:\n                - region: eu\n                - region: us\n",
		"-{{ .path.basename }}'\n    spec", "-{{ .path.basename }}-{{ .region }}'\n    spec",
		"namespace: 'PREFIX-{{ .path.basename }}'", "namespace: 'PREFIX-{{ .path.basename }}-{{ .region }}'",
	).Replace(byDirectory)
)

// renderFiles are the repository's files.
func (f repoFixture) renderFiles(prefix, repo string) map[string]string {
	out := map[string]string{".liftlock.yaml": pipelineFile + f.spec + "  environments:\n" + f.environments}
	if f.plain != nil {
		out = maps.Clone(f.plain)
	}
	for name, set := range f.sets {
		out["argocd/"+name] = fillPlaceholders(set, prefix, repo)
	}
	for component, images := range f.components {
		out["apps/"+component+"/base/kustomization.yaml"] = "resources:\n  - deployment.yaml\n"
		out["apps/"+component+"/base/deployment.yaml"] = deploymentYAML(component, images)
		for _, env := range environmentNames(f.environments) {
			out[overlayFile(component, env)] = kustomizationYAML(component, env, images)
		}
	}
	return out
}

func fillPlaceholders(set, prefix, repo string) string {
	return strings.NewReplacer("PREFIX", prefix, "REPO", repo).Replace(set)
}

// environmentNames are the environments that the pipeline names.
func environmentNames(environments string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^    - name: (\S+)$`).FindAllStringSubmatch(environments, -1) {
		out = append(out, m[1])
	}
	return out
}

const pipelineFile = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata:
  name: shop
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry:
    - kustomizeImages: ["registry.example/*"]
`

// overlayFile is the file that a promotion edits.
func overlayFile(component, env string) string {
	return "apps/" + component + "/overlays/" + env + "/kustomization.yaml"
}

// kustomizationYAML has comments and lines that are the environment's own, and one
// image that isn't carried: a promotion must leave all that alone.
func kustomizationYAML(component, env string, images []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s in %s\nresources:\n  - ../../base\n\nimages:\n  - {name: docker.example/sidecar, newTag: %s}   # not Liftlock's\n", component, env, env)
	for _, image := range images {
		fmt.Fprintf(&b, "  - name: registry.example/%s\n    newTag: %s   # the release\n", image, firstTag)
	}
	fmt.Fprintf(&b, "\ncommonAnnotations:\n  example.com/owner: %s\n", env)
	return b.String()
}

// deploymentYAML gives up on a rollout after 12 s: then Argo CD says Degraded. An image that
// fails late has 45 s until then, so that a busy machine verifies it before.
func deploymentYAML(component string, images []string) string {
	s := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 1
  progressDeadlineSeconds: 12
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {lab/late-after: 45s}
    spec:
      containers:
`, component)
	for _, image := range images {
		s += fmt.Sprintf("        - name: %s\n          image: registry.example/%[1]s\n", image)
	}
	return s
}

// setTag is an edit: one image's tag in a kustomization.
func setTag(image, tag string) func(string) string {
	re := regexp.MustCompile(`(?m)(^  - name: registry\.example/` + regexp.QuoteMeta(image) + `\n    newTag: )\S+`)
	return func(file string) string { return re.ReplaceAllString(file, "${1}"+tag) }
}

// tagIn reads one image's tag out of a kustomization.
func tagIn(file, image string) string {
	m := regexp.MustCompile(`(?m)^  - name: registry\.example/` + regexp.QuoteMeta(image) + `\n    newTag: (\S+)`).FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	return m[1]
}
