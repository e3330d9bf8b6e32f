package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	trunk      = "main"
	cloneURL   = "https://hub.example/acme/fleet.git"
	clusterURL = "https://kubernetes.default.svc"
	pipelineAt = ".liftlock.yaml"
	pipeline   = "shop"
)

// target is where one component runs in one environment.
type target struct{ component, env string }

func (t target) String() string  { return t.component + " in " + t.env }
func (t target) folder() string  { return "apps/" + t.component + "/" + t.env }
func (t target) appName() string { return t.component + "-" + t.env }

// environment is one step of a world's pipeline.
type environment struct {
	name       string
	after      []string
	auto       bool // merge: auto
	byHand     bool // open: manual
	approvals  int
	onDegraded string
}

// scenario is what a world promotes, and by which rules.
type scenario struct {
	components   []string
	environments []environment
	batch        bool
	method       string
	queues       bool // the forge merges by a merge queue
	noRefresh    bool // Argo CD isn't sent to compare again (refresh: off)
	soaks        bool // what comes further on has to have been verified for a while before
	insiders     bool // people who may write go past the service
	freezes      bool // processes are stopped for a while, and go on then
	limited      bool // few may be open, merged and reverted at once
	shared       bool // an approver makes some of the releases
	plain        bool // overlays are plain manifests, of which a field is carried, and no kustomizations
	discovers    bool // new tags come into the source environment by themselves
	signs        bool // and only signed ones
}

const (
	healthyFor = 30 * time.Second
	watchFor   = 20 * time.Minute
	soaksFor   = 3 * time.Minute
)

// provesFor is how long a release must be well somewhere before it comes further on.
func (s *scenario) provesFor() time.Duration {
	if s.soaks {
		return healthyFor + soaksFor
	}
	return healthyFor
}

// drawScenario draws a small scenario.
func drawScenario(r *rand.Rand) scenario {
	f := scenario{components: []string{"api", "web", "worker"}[:1+r.IntN(3)], method: []string{"merge", "squash", "rebase"}[r.IntN(3)]}
	f.batch = len(f.components) > 1 && r.IntN(2) == 0
	f.environments = []environment{{name: "dev"}}
	add := func(name string, after ...string) {
		f.environments = append(f.environments, environment{name: name, after: after, auto: r.IntN(5) > 0,
			byHand: r.IntN(10) == 0 && name != "qa", approvals: []int{0, 0, 0, 1, 2, 2}[r.IntN(6)],
			onDegraded: []string{"revert", "revert-and-merge", "revert-and-merge", "hold"}[r.IntN(4)]})
	}
	add("qa", "dev")
	switch r.IntN(5) {
	case 0:
		add("prod", "qa")
	case 3, 4:
		add("stage", "qa")
		add("prod", "stage")
	case 1:
		add("prod-eu", "qa")
		add("prod-us", "qa")
	default:
		add("load", "dev")
		add("prod", "qa", "load")
	}
	return f
}

// describeOnDegraded is how the pipeline file says what happens when it degrades. A component
// has one target in an environment, which reaches any quorum.
func (e *environment) describeOnDegraded() string {
	if e.onDegraded == "hold" || e.approvals > 0 {
		return e.onDegraded
	}
	return fmt.Sprintf("{action: %s, quorum: 50%%}", e.onDegraded)
}

func (s *scenario) environment(name string) *environment {
	for i := range s.environments {
		if s.environments[i].name == name {
			return &s.environments[i]
		}
	}
	return nil
}

// isSource says whether releases come into an environment from outside.
func (s *scenario) isSource(env string) bool { return env == s.environments[0].name }

// upstream are the environments before one, those before them, and so on.
func (s *scenario) upstream(env string) []string {
	var all []string
	for _, up := range s.environment(env).after {
		for _, name := range append([]string{up}, s.upstream(up)...) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// needsCommand says whether releases come into an environment, or into one before it, only
// when somebody asks for them.
func (s *scenario) needsCommand(env string) bool {
	e := s.environment(env)
	return e.byHand || slices.ContainsFunc(e.after, s.needsCommand)
}

func (s *scenario) targets() []target {
	var out []target
	for _, c := range s.components {
		for _, e := range s.environments {
			out = append(out, target{c, e.name})
		}
	}
	return out
}

// files are the repository's first.
func (s *scenario) files() map[string]string {
	files := map[string]string{pipelineAt: s.pipelineFile(), "README.md": "Overlays.\n",
		"argocd/shop.yaml": strings.ReplaceAll(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: CLONE, revision: main, directories: [{path: apps/*/*}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: CLONE, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: 'CLUSTER', namespace: shop}
      syncPolicy: {automated: {}}
`, "CLONE", cloneURL)}
	files["argocd/shop.yaml"] = strings.ReplaceAll(files["argocd/shop.yaml"], "CLUSTER", clusterURL)
	for _, p := range s.targets() {
		files[s.file(p)] = s.overlayWith(p.component, firstTag)
		var b strings.Builder
		for i := range workloads {
			fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: registry.example/%[1]s}]}
`, workload(p.component, i))
		}
		files[p.folder()+"/deployment.yaml"] = b.String()
	}
	return files
}

// firstTag is what runs everywhere at first.
const firstTag = "1"

// file is where a target's tag is.
func (s *scenario) file(p target) string {
	if s.plain {
		return p.folder() + "/release.yaml"
	}
	return p.folder() + "/kustomization.yaml"
}

// overlayWith is a file with a tag.
func (s *scenario) overlayWith(component, tag string) string {
	if s.plain {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-release}\ndata:\n  newTag: %q\n", component, tag)
	}
	var b strings.Builder
	b.WriteString("resources: [deployment.yaml]\nimages:\n")
	for i := range workloads {
		fmt.Fprintf(&b, "  - name: registry.example/%s\n    newTag: %q\n", workload(component, i), tag)
	}
	return b.String()
}

// workloads are how many a component has in each of its targets, all of one release.
const workloads = 2

// workload is a component's workload.
func workload(component string, i int) string {
	if i == 0 {
		return component
	}
	return fmt.Sprintf("%s-worker-%d", component, i)
}

// imageOf is the image of a workload's pods with a tag; a plain file's tag names none.
func (s *scenario) imageOf(component string, i int, tag string) string {
	image := "registry.example/" + workload(component, i)
	if !s.plain {
		image += ":" + tag
	}
	return image
}

// tagOf reads the tag of an overlay; empty where there is none.
func tagOf(file string) string {
	_, rest, ok := strings.Cut(file, "newTag: ")
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, `" `)
}

func (s *scenario) pipelineFile() string {
	var b strings.Builder
	batch := "component"
	if s.batch {
		batch = "environment"
	}
	carry := `kustomizeImages: ["registry.example/*"]`
	if s.plain {
		carry = `yaml: {files: [release.yaml], paths: [data.newTag]}`
	}
	fmt.Fprintf(&b, `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: %s}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{%s}]
  deployments: true
  batch: %s
  merge: {method: %s}
  limits: {openPerEnvironment: %d, mergesPerHour: %d, revertsPer10Minutes: %d}
  environments:
`, pipeline, carry, batch, s.method, s.limits().open, s.limits().merges, s.limits().reverts)
	for i, e := range s.environments {
		fmt.Fprintf(&b, "    - name: %s\n      verify: {arriveWithin: 10m, timeout: 3m, healthyFor: %v, watch: %v, debounce: 20s}\n",
			e.name, healthyFor, watchFor)
		if i == 0 && s.discovers {
			fmt.Fprintf(&b, "      discover: [{image: 'registry.example/*', choose: {newest: {tags: '^\\d+$', by: number}}%s}]\n", s.verify())
		}
		if i == 0 {
			continue
		}
		fmt.Fprintf(&b, "      after: [%s]\n      onDegraded: %s\n", strings.Join(e.after, ", "), e.describeOnDegraded())
		if e.auto {
			b.WriteString("      merge: auto\n")
		}
		if e.byHand {
			b.WriteString("      open: manual\n")
		}
		var gates []string
		if e.approvals > 0 {
			gates = append(gates, fmt.Sprintf("{approvals: {count: %d, from: {users: [%s, %s, %s, %s, %s, nobody]}}}", e.approvals,
				reviewer, second, third, fourth, author))
		} else if e.auto {
			gates = append(gates, "{settled: {drift: block}}")
		}
		if s.soaks {
			gates = append(gates, fmt.Sprintf("{soak: {for: %v}}", soaksFor))
		}
		if len(gates) > 0 {
			fmt.Fprintf(&b, "      gates: [%s]\n", strings.Join(gates, ", "))
		}
	}
	return b.String()
}

// quality is what becomes of a release in a target.
type quality int

const (
	well quality = iota
	neverHealthy
	degradesLater
)
