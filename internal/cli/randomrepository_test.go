package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The layouts of random fleets: where an environment of a component has its version.
const (
	layoutComponentFirst   = "apps/COMPONENT/ENVIRONMENT"
	layoutOverlays         = "apps/COMPONENT/overlays/ENVIRONMENT"
	layoutEnvironmentFirst = "environments/ENVIRONMENT/COMPONENT"
	layoutSideBySide       = "charts/COMPONENT/values-ENVIRONMENT.yaml"
	layoutElement          = "a list generator's element"
	layoutConfig           = "a git file generator's config.json"
	layoutLabel            = "a generator of the clusters with a label"
	layoutBranches         = "apps/COMPONENT on ENVIRONMENT's branch"
	layoutManifests        = "argocd/ENVIRONMENT/COMPONENT.yaml, which is the set"
	layoutByComponent      = "values/ENVIRONMENT/COMPONENT.yaml"
	layoutVersions         = "values/ENVIRONMENT/versions.yaml, with a key for each component"
	layoutPlain            = "argocd/ENVIRONMENT/, which has plain Applications of charts"
)

// The carriers of random fleets: what the version is in the files of an environment's folder.
const (
	carrierTag        = "newTag of a kustomization's image"
	carrierDigest     = "digest of a kustomization's image"
	carrierRef        = "the ref of a remote base, with its image's newTag"
	carrierValues     = "image.tag of Helm's values"
	carrierChart      = "the version of a chart's dependency"
	carrierDeployment = "the image of a Deployment"
)

// The builders of random fleets: what the ApplicationSets are built by.
const (
	builtByNothing   = "plain files"
	builtByHelm      = "a chart that an Application installs"
	builtByKustomize = "overlays of Kustomize's"
)

// The facts by which the sets of random fleets know the environments.
const (
	factsFolders  = "folders"
	factsList     = "a list"
	factsClusters = "labels of Argo CD's clusters"
)

// How the plain Applications of random fleets are put into files.
const (
	manifestsEach    = "one for each, called after its component"
	manifestsByPlace = "one for each, called by a number"
	manifestsInOne   = "one for each environment"
	manifestsAll     = "one for all"
)

// randomRepository is a drawn repository. Its files are a function of the versions, so that what a promotion
// must make of them is known without Liftlock: the files with the version moved.
type randomRepository struct {
	layout, carrier, builder, facts string
	isPlain                         bool   // plain Applications and no sets
	manifests                       string // how plain Applications are put into files
	goTemplate                      bool
	perComponent                    bool // a set for each component
	perEnvironment                  bool // an Argo CD for each environment, with Applications of the same names
	steps                           [][]string
	components                      []string
	oneChart                        bool   // of the sets of all environments' Argo CDs
	twoClusters                     bool   // the last environment has two
	branchPrefix                    string // of the environments' branches
	firstOnMain                     bool   // the first environment lives on the tracked branch
	quote                           string
	hasSidecar, hasResources        bool
	hasBait                         bool // what looks like a version, and none may move
	repoURL, revision               string
	commits                         int                          // so far
	versions                        map[string]map[string]string // by component and environment
}

// The words by which people call environments, in their order; those of one step are side by side.
var repositorySteps = [][][]string{
	{{"dev"}, {"development"}, {"sandbox"}},
	{{"test"}, {"int"}},
	{{"qa"}, {"uat"}},
	{{"staging"}, {"stage"}, {"preprod"}},
	{{"prod"}, {"production"}, {"live"}, {"prod-eu", "prod-us"}},
}

// Names that are easily taken for something else are among them.
var repositoryComponents = []string{"web", "api", "load-balancer", "test-runner", "mail", "staging-area", "billing"}

func drawOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// drawRepository draws a fleet; the same for the same seed.
func drawRepository(seed uint64) *randomRepository {
	r := rand.New(rand.NewPCG(seed, 39))
	f := &randomRepository{
		layout:  drawOne(r, layoutComponentFirst, layoutOverlays, layoutEnvironmentFirst, layoutSideBySide, layoutElement, layoutConfig, layoutLabel),
		builder: drawOne(r, builtByNothing, builtByNothing, builtByHelm, builtByKustomize), facts: drawOne(r, factsFolders, factsList, factsClusters),
		goTemplate: r.IntN(3) > 0, perComponent: r.IntN(3) == 0, perEnvironment: r.IntN(4) == 0, oneChart: r.IntN(2) == 0, twoClusters: r.IntN(2) == 0,
		quote: drawOne(r, "", `"`, "'"), hasSidecar: r.IntN(2) == 0, hasResources: r.IntN(2) == 0,
		repoURL: drawOne(r, "https://git.example/acme/fleet.git", "git@git.example:acme/fleet.git"), revision: drawOne(r, "HEAD", "main"),
		versions: map[string]map[string]string{},
	}
	f.carrier = drawOne(r, carrierTag, carrierTag, carrierDigest, carrierRef, carrierValues, carrierChart, carrierDeployment)
	f.steps = drawSteps(r)
	f.components = slices.Clone(repositoryComponents)
	r.Shuffle(len(f.components), func(i, j int) { f.components[i], f.components[j] = f.components[j], f.components[i] })
	f.components = f.components[:1+r.IntN(4)]
	slices.Sort(f.components)
	if r.IntN(6) == 0 {
		f.layout, f.branchPrefix, f.firstOnMain = layoutBranches, drawOne(r, "env/", "deploy-", ""), r.IntN(3) == 0
	}
	f.hasBait = r.IntN(2) == 0
	if r.IntN(6) == 0 && f.layout != layoutBranches {
		f.layout = drawOne(r, layoutManifests, layoutByComponent, layoutVersions)
	}
	if more := rand.New(rand.NewPCG(seed, 41)); more.IntN(4) == 0 {
		f.drawPlain(more)
	}
	f.makeConsistent()
	for i, c := range f.components {
		f.versions[c] = map[string]string{}
		for _, e := range f.environments() {
			f.versions[c][e] = f.version(i, 0)
		}
	}
	return f
}

// drawPlain has the fleet be one of plain Applications, where its layout is one that they may have.
func (rr *randomRepository) drawPlain(r *rand.Rand) {
	switch rr.layout {
	case layoutElement, layoutConfig, layoutLabel, layoutManifests:
		rr.layout = layoutPlain
	}
	rr.isPlain, rr.facts, rr.perComponent, rr.perEnvironment = true, factsFolders, false, false
	rr.manifests = drawOne(r, manifestsEach, manifestsByPlace, manifestsInOne, manifestsAll)
	if rr.layout == layoutBranches {
		rr.firstOnMain = false
	}
}

// drawSteps draws two to four steps, in their order.
func drawSteps(r *rand.Rand) [][]string {
	at := []int{0, 1, 2, 3, 4}
	r.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
	at = at[:2+r.IntN(3)]
	slices.Sort(at)
	var out [][]string
	for i, n := range at {
		step := drawOne(r, repositorySteps[n]...)
		if i == 0 {
			step = step[:1]
		}
		out = append(out, step)
	}
	return out
}

// makeConsistent takes back what doesn't go with what else was drawn.
func (rr *randomRepository) makeConsistent() {
	switch rr.layout {
	case layoutSideBySide:
		rr.carrier = carrierValues
	case layoutElement:
		rr.carrier, rr.facts, rr.perComponent, rr.perEnvironment, rr.builder = carrierValues, factsList, true, false, builtByNothing
	case layoutConfig:
		rr.carrier, rr.facts, rr.perComponent = carrierChart, factsFolders, false
	case layoutLabel:
		rr.carrier, rr.facts, rr.perComponent, rr.perEnvironment, rr.builder = carrierChart, factsClusters, true, false, builtByNothing
	case layoutManifests:
		rr.carrier, rr.facts, rr.perComponent, rr.perEnvironment, rr.builder = carrierChart, factsList, false, false, builtByNothing
	case layoutByComponent, layoutVersions:
		rr.carrier = carrierValues
	case layoutPlain:
		rr.carrier, rr.builder = carrierChart, builtByNothing
	}
	if rr.isPlain {
		rr.twoClusters = false
		return
	}
	if rr.perEnvironment {
		rr.perComponent, rr.twoClusters = false, false
		if rr.facts == factsClusters {
			rr.facts = factsFolders
		}
	}
	if rr.facts == factsFolders && slices.Contains([]string{layoutSideBySide, layoutByComponent, layoutVersions}, rr.layout) {
		rr.facts = factsList
	}
	rr.twoClusters = rr.twoClusters && rr.facts == factsClusters && rr.layout != layoutLabel
	isOneTemplate := rr.facts == factsClusters || rr.perEnvironment && rr.builder == builtByHelm && rr.oneChart
	rr.firstOnMain = rr.firstOnMain && !isOneTemplate
}

func (rr *randomRepository) environments() []string { return slices.Concat(rr.steps...) }

// trackedBranch is the one that the sets are on, and the pipeline file.
const trackedBranch = "main"

// branch is the one that an environment lives on.
func (rr *randomRepository) branch(environment string) string {
	if rr.layout != layoutBranches || rr.firstOnMain && environment == rr.environments()[0] {
		return trackedBranch
	}
	return rr.branchPrefix + environment
}

// revisionOf is what Applications of an environment follow.
func (rr *randomRepository) revisionOf(environment string) string {
	if branch := rr.branch(environment); branch != trackedBranch {
		return branch
	}
	return rr.revision
}

// version is the nth version of a component.
func (rr *randomRepository) version(component, n int) string {
	if rr.carrier == carrierDigest {
		return "sha256:" + strings.Repeat(fmt.Sprintf("%d%da%d", component+1, n%10, n/10), 16)
	}
	return fmt.Sprintf("%d.%d.%d", component+1, 4+n, n)
}

// describe says what was drawn.
func (rr *randomRepository) describe() string {
	return fmt.Sprintf("%s; %s; sets of %s by %s; environments %v; components %v; a set per component %t, an Argo CD per environment %t, two clusters %t, Go templates %t, "+
		"branches %q, first on main %t, bait %t, plain %t (%s)", rr.layout, rr.carrier, rr.builder, rr.facts, rr.steps, rr.components, rr.perComponent, rr.perEnvironment, rr.twoClusters, rr.goTemplate,
		rr.branchPrefix, rr.firstOnMain, rr.hasBait, rr.isPlain, rr.manifests)
}

// folder is an environment's of a component.
func (rr *randomRepository) folder(component, environment string) string {
	switch rr.layout {
	case layoutOverlays:
		return path.Join("apps", component, "overlays", environment)
	case layoutEnvironmentFirst:
		return path.Join("environments", environment, component)
	case layoutConfig:
		return path.Join("services", component, environment)
	case layoutBranches:
		return path.Join("apps", component)
	}
	return path.Join("apps", component, environment)
}

// branches are those of the repository, the tracked one first.
func (rr *randomRepository) branches() []string {
	out := []string{trackedBranch}
	for _, e := range rr.environments() {
		if b := rr.branch(e); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// files are those of one of the repository's branches.
func (rr *randomRepository) files(t *testing.T, branch string) map[string]string {
	out := map[string]string{"README.md": "The fleet.\n"}
	for _, c := range rr.components {
		if rr.usesChart() {
			out["charts/"+c+"/Chart.yaml"] = "apiVersion: v2\nname: " + c + "\nversion: 0.1.0\n"
			values := "image:\n  repository: registry.example/" + c + "\nreplicas: 1\n"
			image := "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
			if rr.layout == layoutVersions { // others' keys are none of its values
				image = "registry.example/" + c + `:{{ (index .Values "` + c + `").image.tag }}`
			}
			out["charts/"+c+"/values.yaml"] = values
			out["charts/"+c+"/templates/pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: " + c + "}\nspec:\n  containers:\n" +
				"    - {name: main, image: '" + image + "'}\n"
		}
		for n, e := range rr.environments() {
			if rr.branch(e) == branch {
				rr.addEnvironment(out, c, e, n)
			}
		}
	}
	if branch != trackedBranch {
		return out
	}
	rr.addSets(t, out)
	if rr.facts == factsClusters {
		out["clusters.yaml"] = rr.clusters()
	}
	return out
}

func (rr *randomRepository) usesChart() bool {
	return rr.layout == layoutSideBySide || rr.layout == layoutElement || rr.layout == layoutVersions
}

// usesFolders says that the version of an environment of a component is in the files of a folder.
func (rr *randomRepository) usesFolders() bool {
	return !slices.Contains([]string{layoutSideBySide, layoutElement, layoutConfig, layoutLabel, layoutManifests, layoutByComponent, layoutVersions, layoutPlain}, rr.layout)
}

// addEnvironment adds the files of an environment of a component. Among them are fields that differ
// between environments and are no versions: replicas, hosts, a list of names in another order.
func (rr *randomRepository) addEnvironment(out map[string]string, c, e string, n int) {
	version := rr.quote + rr.versions[c][e] + rr.quote
	at := rr.folder(c, e)
	regions := []string{"eu", "us"}
	if n%2 == 1 {
		slices.Reverse(regions)
	}
	common := fmt.Sprintf("replicas: %d\ningress:\n  host: %s.%s.example\nregions: [%s]\nlogLevel: %s\n", n+1, c, e, strings.Join(regions, ", "), []string{"debug", "info"}[n%2])
	if rr.hasBait {
		common += rr.bait(c, e, n)
	}
	switch {
	case rr.layout == layoutSideBySide:
		out["charts/"+c+"/values-"+e+".yaml"] = common + "image:\n  # of the build\n  tag: " + version + "\n"
	case rr.layout == layoutByComponent:
		out["values/"+e+"/"+c+".yaml"] = common + "image:\n  tag: " + version + "\n"
	case rr.layout == layoutVersions:
		out["values/"+e+"/versions.yaml"] += c + ":\n  replicas: " + fmt.Sprint(n+1) + "\n  image:\n    tag: " + version + "\n"
	case rr.layout == layoutElement, rr.layout == layoutLabel, rr.layout == layoutManifests, rr.layout == layoutPlain:
	case rr.layout == layoutConfig:
		out[at+"/config.json"] = fmt.Sprintf("{\n  \"service\": %q, \"stage\": %q,\n  \"replicas\": %d,\n  \"chartVersion\": %q,\n  \"revision\": \"HEAD\",\n  \"repository\": \"https://charts.example/stable\", \"project\": \"default\", \"namespace\": \"%s-v1\"\n}\n",
			c, e, n+1, rr.versions[c][e], c)
	case rr.carrier == carrierValues:
		out[at+"/values.yaml"] = common + "image:\n  tag: " + version + " # of the build\n"
	case rr.carrier == carrierChart:
		out[at+"/Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 0.0.%d\ndependencies:\n- name: %s\n  version: %s\n  repository: https://charts.example/stable\n", c, n, c, version)
		out[at+"/values.yaml"] = common
	case rr.carrier == carrierDeployment:
		sidecar := ""
		if rr.hasSidecar {
			sidecar = "      - name: proxy\n        image: registry.example/proxy:0.3.1\n"
		}
		if rr.hasBait {
			sidecar += "      - name: agent\n        image: registry.example/agent:" + e + "\n"
		}
		out[at+"/deployment.yaml"] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  replicas: %d\n  template:\n    spec:\n      containers:\n%s"+
			"      - name: %s\n        image: %sregistry.example/%s:%s%s\n        env: [{name: HOST, value: %s.example}]\n", c, n+1, sidecar, c, rr.quote, c, rr.versions[c][e], rr.quote, e)
	default:
		rr.addKustomization(out, at, c, e, n)
	}
}

// bait is a field in an environment's values that looks like a version and isn't to be carried. It
// is a template, a branch, a word that is the same everywhere, or an item of a list that only its
// place tells. Or it is the environment's name, or a version that one environment alone has.
func (rr *randomRepository) bait(c, e string, n int) string {
	out := "proxy:\n  tag: 'v{{ .Values.release }}'\nsourceRevision: main\nupstream:\n  revision: HEAD\nchannelVersion: stable\n" +
		fmt.Sprintf("jobs:\n- tag: 1.0.%d\n- tag: 1.0.3\nagent:\n  tag: %s\nworker:\n  replicas: %d\n", n, e, 3-n%2)
	if n == 0 {
		out += "debugger:\n  tag: 0.1.0 # of " + c + "\n"
	}
	return out
}

func (rr *randomRepository) addKustomization(out map[string]string, at, c, e string, n int) {
	version := rr.quote + rr.versions[c][e] + rr.quote
	base := path.Join("bases", c)
	resource := strings.Repeat("../", strings.Count(at, "/")+1) + base
	if rr.carrier == carrierRef {
		resource = "https://git.example/acme/" + c + "//config?ref=" + rr.versions[c][e]
	} else {
		out[base+"/kustomization.yaml"] = "resources: [config.yaml]\n"
		out[base+"/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + c + "}\n"
	}
	key := "newTag"
	if rr.carrier == carrierDigest {
		key = "digest"
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: " + c + "-" + e + "\nresources:\n- " + resource + "\n"
	if rr.hasResources {
		text += "- ingress.yaml\n"
		out[at+"/ingress.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s-%s}\nspec: {ports: [{port: %d}]}\n", c, e, 8000+n)
	}
	text += "images:\n"
	if rr.hasSidecar {
		text += "- name: registry.example/proxy\n  newTag: 0.3.1\n"
	}
	if rr.hasBait {
		text += "- name: registry.example/agent\n  newTag: " + e + "\n"
		if n == 0 {
			text += "- name: registry.example/debugger\n  newTag: 0.1.0\n"
		}
	}
	text += "- name: registry.example/" + c + "\n  " + key + ": " + version + "\n" +
		fmt.Sprintf("replicas:\n- {name: %s, count: %d}\n", c, n+1)
	out[at+"/kustomization.yaml"] = text
}

type object = map[string]any

// addSets adds the ApplicationSets, and what builds them.
func (rr *randomRepository) addSets(t *testing.T, out map[string]string) {
	if rr.isPlain {
		rr.addApplications(t, out)
		return
	}
	sets := map[string]object{} // by the name of their file
	switch {
	case rr.perEnvironment && rr.builder == builtByHelm && rr.oneChart:
		rr.addSharedChart(t, out)
	case rr.perEnvironment:
		for _, e := range rr.environments() {
			sets[e] = rr.set("apps", rr.components, []string{e})
		}
	case rr.layout == layoutManifests:
		for _, c := range rr.components {
			for _, e := range rr.environments() {
				sets[e+"/"+c] = rr.set(c+"-"+e, []string{c}, []string{e})
			}
		}
	case rr.perComponent:
		for _, c := range rr.components {
			sets[c] = rr.set(c, []string{c}, rr.environments())
		}
	default:
		sets["apps"] = rr.set("apps", rr.components, rr.environments())
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		text := marshal(t, sets[name])
		switch rr.builder {
		case builtByNothing:
			out["argocd/"+name+".yaml"] = text
		case builtByHelm:
			rr.addChart(out, name, text)
		case builtByKustomize:
			rr.addOverlay(t, out, name, sets[name])
		}
	}
}

// addApplications adds the plain Applications, and what builds them.
func (rr *randomRepository) addApplications(t *testing.T, out map[string]string) {
	texts := map[string]string{}
	for _, e := range rr.environments() {
		for i, c := range rr.components {
			name := map[string]string{
				manifestsEach: e + "/" + c, manifestsByPlace: e + "/" + fmt.Sprint(i+1), manifestsInOne: e + "/apps", manifestsAll: "apps",
			}[rr.manifests]
			if texts[name] != "" {
				texts[name] += "---\n"
			}
			texts[name] += marshal(t, rr.application(c, e))
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		switch rr.builder {
		case builtByHelm:
			out["argocd/apps/templates/"+name+".yaml"] = strings.NewReplacer("project: default", "project: {{ .Values.project }}").Replace(texts[name])
		default:
			out["argocd/"+name+".yaml"] = texts[name]
			names = append(names, name+".yaml")
		}
	}
	switch rr.builder {
	case builtByHelm:
		rr.addInstallation(out, "apps", "argocd/apps")
	case builtByKustomize:
		out["argocd/kustomization.yaml"] = "namespace: argocd\nresources: [" + strings.Join(names, ", ") + "]\npatches:\n- target: {kind: Application}\n" +
			"  patch: |\n    - {op: add, path: /spec/revisionHistoryLimit, value: 3}\n"
	}
}

// application is a plain Application of a component in an environment.
func (rr *randomRepository) application(c, e string) object {
	w := words{component: c, environment: e, path: rr.folder(c, e), cluster: e, destination: e + "-1", revision: rr.revisionOf(e)}
	metadata := object{"name": c + "-" + e, "namespace": "argocd"}
	return object{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": rr.spec(w, []string{c}, []string{e})}
}

// addSharedChart adds one chart of the sets of all environments, which an Application of each installs with its name.
func (rr *randomRepository) addSharedChart(t *testing.T, out map[string]string) {
	const named = "NAMED"
	rr.addChart(out, "all", marshal(t, rr.set("apps", rr.components, []string{named})))
	set := "argocd/all-sets/templates/set.yaml"
	out[set] = strings.ReplaceAll(out[set], named, "{{ .Values.environment }}")
	for _, e := range rr.environments() {
		out["bootstrap/"+e+".yaml"] = strings.NewReplacer("root-all", "root-"+e, "{project: default}", "{project: default, environment: "+e+"}").Replace(out["bootstrap/all.yaml"])
	}
	delete(out, "bootstrap/all.yaml")
}

// addChart adds a chart of a set, and the Application that installs it.
func (rr *randomRepository) addChart(out map[string]string, name, text string) {
	at := "argocd/" + name + "-sets"
	text = strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(text)
	out[at+"/templates/set.yaml"] = strings.Replace(text, "project: default", "project: {{ .Values.project }}", 1)
	rr.addInstallation(out, name, at)
}

// addInstallation adds a chart's own files, and the Application that installs it.
func (rr *randomRepository) addInstallation(out map[string]string, name, at string) {
	out[at+"/Chart.yaml"] = "apiVersion: v2\nname: sets\nversion: 0.1.0\n"
	out[at+"/values.yaml"] = "project: nobody\n"
	out["bootstrap/"+name+".yaml"] = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root-" + name + ", namespace: argocd}\nspec:\n  project: default\n" +
		"  source:\n    repoURL: " + rr.repoURL + "\n    targetRevision: " + rr.revision + "\n    path: " + at + "\n    helm: {valuesObject: {project: default}}\n" +
		"  destination: {name: in-cluster, namespace: argocd}\n"
}

// addOverlay adds a base with a set, and the overlay that changes its project.
func (rr *randomRepository) addOverlay(t *testing.T, out map[string]string, name string, set object) {
	out["argocd/base/"+name+"/kustomization.yaml"] = "resources: [set.yaml]\n"
	out["argocd/base/"+name+"/set.yaml"] = strings.Replace(marshal(t, set), "project: default", "project: nobody", 1)
	out["argocd/overlays/"+name+"/kustomization.yaml"] = "namespace: argocd\nresources: [../../base/" + name + "]\npatches:\n- target: {kind: ApplicationSet}\n" +
		"  patch: |\n    - {op: replace, path: /spec/template/spec/project, value: default}\n"
}

func marshal(t *testing.T, o object) string {
	t.Helper()
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// set is an ApplicationSet of components in environments.
func (rr *randomRepository) set(name string, components, environments []string) object {
	generators, words := rr.generators(components, environments)
	appName := words.component + "-" + words.cluster
	if rr.perEnvironment {
		appName = words.component
	}
	out := object{"generators": generators, "template": object{"metadata": object{"name": appName}, "spec": rr.spec(words, components, environments)}}
	if rr.goTemplate {
		out["goTemplate"], out["goTemplateOptions"] = true, []any{"missingkey=error"}
	}
	return object{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": object{"name": name, "namespace": "argocd"}, "spec": out}
}

// spec is what an Application of components in environments has, in the words of a set's template or its own.
func (rr *randomRepository) spec(words words, components, environments []string) object {
	spec := object{
		"project": "default", "destination": object{"name": words.destination, "namespace": words.component},
		"syncPolicy": object{"automated": object{}},
	}
	revision := cmp.Or(words.revision, rr.revision)
	source := object{"repoURL": rr.repoURL, "targetRevision": revision, "path": words.path}
	switch {
	case rr.layout == layoutSideBySide:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"valueFiles": []any{"values.yaml", "values-" + words.environment + ".yaml"}}
	case rr.layout == layoutVersions:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"valueFiles": []any{"../../values/" + words.environment + "/versions.yaml"}}
	case rr.layout == layoutElement:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"parameters": []any{object{"name": "image.tag", "value": rr.parameter("version")}}}
	case rr.layout == layoutConfig:
		source = object{"repoURL": rr.parameter("repository"), "chart": words.component, "targetRevision": rr.parameter("chartVersion")}
		spec["project"], spec["destination"] = rr.parameter("project"), object{"name": words.destination, "namespace": rr.parameter("namespace")}
	case rr.layout == layoutLabel:
		source = object{"repoURL": "https://charts.example/stable", "chart": words.component, "targetRevision": rr.parameter("values.version")}
	case rr.layout == layoutManifests, rr.layout == layoutPlain:
		source = object{"repoURL": "https://charts.example/stable", "chart": words.component, "targetRevision": rr.versions[components[0]][environments[0]]}
	case rr.carrier == carrierValues:
		values := words.path + "/values.yaml"
		if rr.layout == layoutByComponent {
			values = "values/" + words.environment + "/" + words.component + ".yaml"
		}
		spec["sources"] = []any{
			object{"repoURL": "https://charts.example/stable", "chart": "service", "targetRevision": "3.1.0", "helm": object{"valueFiles": []any{"$values/" + values}}},
			object{"repoURL": rr.repoURL, "targetRevision": revision, "ref": "values"},
		}
	}
	if spec["sources"] == nil {
		spec["source"] = source
	}
	return spec
}

// words are how a set's template says what a target is of.
type words struct {
	component, environment, path string
	cluster                      string // what tells targets of a component apart
	destination                  string // the cluster's name
	revision                     string // "" is the tracked branch
}

// parameter is a parameter in a template.
func (rr *randomRepository) parameter(name string) string {
	if rr.goTemplate {
		return "{{ ." + name + " }}"
	}
	return "{{" + name + "}}"
}

// segment is a part of a folder that a git generator gave.
func (rr *randomRepository) segment(n int) string {
	if rr.goTemplate {
		return fmt.Sprintf("{{ index .path.segments %d }}", n)
	}
	return fmt.Sprintf("{{path[%d]}}", n)
}

// wholePath is the folder that a git generator gave.
func (rr *randomRepository) wholePath() string {
	if rr.goTemplate {
		return "{{ .path.path }}"
	}
	return "{{path}}"
}

// generators are a set's, and how its template says what they give.
func (rr *randomRepository) generators(components, environments []string) ([]any, words) {
	git := func(what string, value any) object {
		return object{"git": object{"repoURL": rr.repoURL, "revision": rr.revision, what: value}}
	}
	of := func(component, environment string) string { return rr.folder(component, environment) }
	any1 := func(all []string) string {
		if len(all) == 1 {
			return all[0]
		}
		return "*"
	}
	switch {
	case rr.layout == layoutElement:
		var elements []any
		for _, e := range environments {
			elements = append(elements, object{"env": e, "cluster": e + "-1", "replicas": fmt.Sprint(len(elements) + 1), "version": rr.versions[components[0]][e]})
		}
		return []any{object{"list": object{"elements": elements}}}, words{component: components[0], environment: rr.parameter("env"), cluster: rr.parameter("env"), destination: rr.parameter("cluster")}
	case rr.layout == layoutConfig:
		return []any{git("files", []any{object{"path": "services/*/" + any1(environments) + "/config.json"}})},
			words{component: rr.parameter("service"), environment: rr.parameter("stage"), cluster: rr.parameter("stage"), destination: rr.parameter("stage") + "-1"}
	case rr.layout == layoutLabel:
		first := rr.versions[components[0]][environments[0]]
		inner := []any{object{"clusters": object{"selector": object{"matchExpressions": []any{object{"key": "environment", "operator": "Exists"}}}, "values": object{"addon": components[0], "version": first}}}}
		for _, e := range environments {
			inner = append(inner, object{"clusters": object{"selector": object{"matchLabels": object{"environment": e}}, "values": object{"version": rr.versions[components[0]][e]}}})
		}
		return []any{object{"merge": object{"mergeKeys": []any{"server"}, "generators": inner}}},
			words{component: components[0], environment: rr.parameter("metadata.labels.environment"), cluster: rr.parameter("name"), destination: rr.parameter("name")}
	case rr.layout == layoutBranches && rr.facts == factsFolders:
		return rr.branchGenerators(any1(components), environments)
	case rr.facts == factsFolders:
		at := of("COMPONENT", "ENVIRONMENT")
		parts := strings.Split(at, "/")
		w := words{path: rr.wholePath(), component: rr.segment(slices.Index(parts, "COMPONENT")), environment: rr.segment(slices.Index(parts, "ENVIRONMENT"))}
		w.cluster, w.destination = w.environment, w.environment+"-1"
		return []any{git("directories", []any{object{"path": of(any1(components), any1(environments))}})}, w
	}
	var second object
	w := words{component: components[0]}
	if rr.facts == factsList {
		var elements []any
		for _, e := range environments {
			element := object{"env": e, "cluster": e + "-1"}
			if rr.layout == layoutBranches {
				element["branch"], w.revision = rr.revisionOf(e), rr.parameter("branch")
			}
			elements = append(elements, element)
		}
		second = object{"list": object{"elements": elements}}
		w.environment, w.cluster, w.destination = rr.parameter("env"), rr.parameter("env"), rr.parameter("cluster")
	} else {
		if rr.layout == layoutBranches {
			w.revision = rr.branchPrefix + rr.parameter("metadata.labels.environment")
		}
		second = object{"clusters": object{"selector": object{"matchExpressions": []any{object{"key": "environment", "operator": "In", "values": toAny(environments)}}}}}
		w.environment, w.cluster, w.destination = rr.parameter("metadata.labels.environment"), rr.parameter("name"), rr.parameter("name")
	}
	generators := []any{second}
	if len(components) > 1 {
		var elements []any
		for _, c := range components {
			elements = append(elements, object{"app": c})
		}
		w.component = rr.parameter("app")
		generators = []any{object{"matrix": object{"generators": []any{object{"list": object{"elements": elements}}, second}}}}
	}
	w.path = of(w.component, w.environment)
	return generators, w
}

// branchGenerators are those that list the folders of components on the environments' branches.
func (rr *randomRepository) branchGenerators(component string, environments []string) ([]any, words) {
	folders := func(revision string) object {
		return object{"git": object{"repoURL": rr.repoURL, "revision": revision, "directories": []any{object{"path": rr.folder(component, "")}}}}
	}
	w := words{path: rr.wholePath(), component: rr.segment(1)}
	if len(environments) == 1 {
		e := environments[0]
		w.cluster, w.destination, w.revision = e, e+"-1", rr.revisionOf(e)
		return []any{folders(w.revision)}, w
	}
	var elements []any
	for _, e := range environments {
		elements = append(elements, object{"env": e, "branch": rr.revisionOf(e)})
	}
	w.environment, w.cluster, w.destination, w.revision = rr.parameter("env"), rr.parameter("env"), rr.parameter("env")+"-1", rr.parameter("branch")
	return []any{object{"matrix": object{"generators": []any{object{"list": object{"elements": elements}}, folders(w.revision)}}}}, w
}

func toAny(all []string) []any {
	var out []any
	for _, s := range all {
		out = append(out, s)
	}
	return out
}

// clusters are the Secrets of Argo CD's clusters.
func (rr *randomRepository) clusters() string {
	var out strings.Builder
	environments := rr.environments()
	for i, e := range environments {
		count := 1
		if rr.twoClusters && i == len(environments)-1 {
			count = 2
		}
		for n := range count {
			name := fmt.Sprintf("%s-%d", e, n+1)
			fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: cluster-%s\n  namespace: argocd\n  labels: {argocd.argoproj.io/secret-type: cluster, environment: %s}\n"+
				"stringData: {name: %s, server: 'https://%s.example'}\n", name, e, name, name)
		}
	}
	return out.String()
}
