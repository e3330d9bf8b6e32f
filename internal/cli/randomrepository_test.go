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
func (f *randomRepository) drawPlain(r *rand.Rand) {
	switch f.layout {
	case layoutElement, layoutConfig, layoutLabel, layoutManifests:
		f.layout = layoutPlain
	}
	f.isPlain, f.facts, f.perComponent, f.perEnvironment = true, factsFolders, false, false
	f.manifests = drawOne(r, manifestsEach, manifestsByPlace, manifestsInOne, manifestsAll)
	if f.layout == layoutBranches {
		f.firstOnMain = false
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
func (f *randomRepository) makeConsistent() {
	switch f.layout {
	case layoutSideBySide:
		f.carrier = carrierValues
	case layoutElement:
		f.carrier, f.facts, f.perComponent, f.perEnvironment, f.builder = carrierValues, factsList, true, false, builtByNothing
	case layoutConfig:
		f.carrier, f.facts, f.perComponent = carrierChart, factsFolders, false
	case layoutLabel:
		f.carrier, f.facts, f.perComponent, f.perEnvironment, f.builder = carrierChart, factsClusters, true, false, builtByNothing
	case layoutManifests:
		f.carrier, f.facts, f.perComponent, f.perEnvironment, f.builder = carrierChart, factsList, false, false, builtByNothing
	case layoutByComponent, layoutVersions:
		f.carrier = carrierValues
	case layoutPlain:
		f.carrier, f.builder = carrierChart, builtByNothing
	}
	if f.isPlain {
		f.twoClusters = false
		return
	}
	if f.perEnvironment {
		f.perComponent, f.twoClusters = false, false
		if f.facts == factsClusters {
			f.facts = factsFolders
		}
	}
	if f.facts == factsFolders && slices.Contains([]string{layoutSideBySide, layoutByComponent, layoutVersions}, f.layout) {
		f.facts = factsList
	}
	f.twoClusters = f.twoClusters && f.facts == factsClusters && f.layout != layoutLabel
	isOneTemplate := f.facts == factsClusters || f.perEnvironment && f.builder == builtByHelm && f.oneChart
	f.firstOnMain = f.firstOnMain && !isOneTemplate
}

func (f *randomRepository) environments() []string { return slices.Concat(f.steps...) }

// trackedBranch is the one that the sets are on, and the pipeline file.
const trackedBranch = "main"

// branch is the one that an environment lives on.
func (f *randomRepository) branch(environment string) string {
	if f.layout != layoutBranches || f.firstOnMain && environment == f.environments()[0] {
		return trackedBranch
	}
	return f.branchPrefix + environment
}

// revisionOf is what Applications of an environment follow.
func (f *randomRepository) revisionOf(environment string) string {
	if branch := f.branch(environment); branch != trackedBranch {
		return branch
	}
	return f.revision
}

// version is the nth version of a component.
func (f *randomRepository) version(component, n int) string {
	if f.carrier == carrierDigest {
		return "sha256:" + strings.Repeat(fmt.Sprintf("%d%da%d", component+1, n%10, n/10), 16)
	}
	return fmt.Sprintf("%d.%d.%d", component+1, 4+n, n)
}

// describe says what was drawn.
func (f *randomRepository) describe() string {
	return fmt.Sprintf("%s; %s; sets of %s by %s; environments %v; components %v; a set per component %t, an Argo CD per environment %t, two clusters %t, Go templates %t, "+
		"branches %q, first on main %t, bait %t, plain %t (%s)", f.layout, f.carrier, f.builder, f.facts, f.steps, f.components, f.perComponent, f.perEnvironment, f.twoClusters, f.goTemplate,
		f.branchPrefix, f.firstOnMain, f.hasBait, f.isPlain, f.manifests)
}

// folder is an environment's of a component.
func (f *randomRepository) folder(component, environment string) string {
	switch f.layout {
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
func (f *randomRepository) branches() []string {
	out := []string{trackedBranch}
	for _, e := range f.environments() {
		if b := f.branch(e); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// files are those of one of the repository's branches.
func (f *randomRepository) files(t *testing.T, branch string) map[string]string {
	out := map[string]string{"README.md": "The fleet.\n"}
	for _, c := range f.components {
		if f.usesChart() {
			out["charts/"+c+"/Chart.yaml"] = "apiVersion: v2\nname: " + c + "\nversion: 0.1.0\n"
			values := "image:\n  repository: registry.example/" + c + "\nreplicas: 1\n"
			image := "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
			if f.layout == layoutVersions { // others' keys are none of its values
				image = "registry.example/" + c + `:{{ (index .Values "` + c + `").image.tag }}`
			}
			out["charts/"+c+"/values.yaml"] = values
			out["charts/"+c+"/templates/pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: " + c + "}\nspec:\n  containers:\n" +
				"    - {name: main, image: '" + image + "'}\n"
		}
		for n, e := range f.environments() {
			if f.branch(e) == branch {
				f.addEnvironment(out, c, e, n)
			}
		}
	}
	if branch != trackedBranch {
		return out
	}
	f.addSets(t, out)
	if f.facts == factsClusters {
		out["clusters.yaml"] = f.clusters()
	}
	return out
}

func (f *randomRepository) usesChart() bool {
	return f.layout == layoutSideBySide || f.layout == layoutElement || f.layout == layoutVersions
}

// usesFolders says that the version of an environment of a component is in the files of a folder.
func (f *randomRepository) usesFolders() bool {
	return !slices.Contains([]string{layoutSideBySide, layoutElement, layoutConfig, layoutLabel, layoutManifests, layoutByComponent, layoutVersions, layoutPlain}, f.layout)
}

// addEnvironment adds the files of an environment of a component, among them what differs between
// environments and is no version: replicas, hosts, a list of names in another order.
func (f *randomRepository) addEnvironment(out map[string]string, c, e string, n int) {
	version := f.quote + f.versions[c][e] + f.quote
	at := f.folder(c, e)
	regions := []string{"eu", "us"}
	if n%2 == 1 {
		slices.Reverse(regions)
	}
	common := fmt.Sprintf("replicas: %d\ningress:\n  host: %s.%s.example\nregions: [%s]\nlogLevel: %s\n", n+1, c, e, strings.Join(regions, ", "), []string{"debug", "info"}[n%2])
	if f.hasBait {
		common += f.bait(c, e, n)
	}
	switch {
	case f.layout == layoutSideBySide:
		out["charts/"+c+"/values-"+e+".yaml"] = common + "image:\n  # of the build\n  tag: " + version + "\n"
	case f.layout == layoutByComponent:
		out["values/"+e+"/"+c+".yaml"] = common + "image:\n  tag: " + version + "\n"
	case f.layout == layoutVersions:
		out["values/"+e+"/versions.yaml"] += c + ":\n  replicas: " + fmt.Sprint(n+1) + "\n  image:\n    tag: " + version + "\n"
	case f.layout == layoutElement, f.layout == layoutLabel, f.layout == layoutManifests, f.layout == layoutPlain:
	case f.layout == layoutConfig:
		out[at+"/config.json"] = fmt.Sprintf("{\n  \"service\": %q, \"stage\": %q,\n  \"replicas\": %d,\n  \"chartVersion\": %q,\n  \"revision\": \"HEAD\",\n  \"repository\": \"https://charts.example/stable\", \"project\": \"default\", \"namespace\": \"%s-v1\"\n}\n",
			c, e, n+1, f.versions[c][e], c)
	case f.carrier == carrierValues:
		out[at+"/values.yaml"] = common + "image:\n  tag: " + version + " # of the build\n"
	case f.carrier == carrierChart:
		out[at+"/Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 0.0.%d\ndependencies:\n- name: %s\n  version: %s\n  repository: https://charts.example/stable\n", c, n, c, version)
		out[at+"/values.yaml"] = common
	case f.carrier == carrierDeployment:
		sidecar := ""
		if f.hasSidecar {
			sidecar = "      - name: proxy\n        image: registry.example/proxy:0.3.1\n"
		}
		if f.hasBait {
			sidecar += "      - name: agent\n        image: registry.example/agent:" + e + "\n"
		}
		out[at+"/deployment.yaml"] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  replicas: %d\n  template:\n    spec:\n      containers:\n%s"+
			"      - name: %s\n        image: %sregistry.example/%s:%s%s\n        env: [{name: HOST, value: %s.example}]\n", c, n+1, sidecar, c, f.quote, c, f.versions[c][e], f.quote, e)
	default:
		f.addKustomization(out, at, c, e, n)
	}
}

// bait is what looks like a version in an environment's values, and is a template, a branch, a word that is the same everywhere,
// an item of a list that only its place tells, the environment's name, or a version that one environment alone has.
func (f *randomRepository) bait(c, e string, n int) string {
	out := "proxy:\n  tag: 'v{{ .Values.release }}'\nsourceRevision: main\nupstream:\n  revision: HEAD\nchannelVersion: stable\n" +
		fmt.Sprintf("jobs:\n- tag: 1.0.%d\n- tag: 1.0.3\nagent:\n  tag: %s\nworker:\n  replicas: %d\n", n, e, 3-n%2)
	if n == 0 {
		out += "debugger:\n  tag: 0.1.0 # of " + c + "\n"
	}
	return out
}

func (f *randomRepository) addKustomization(out map[string]string, at, c, e string, n int) {
	version := f.quote + f.versions[c][e] + f.quote
	base := path.Join("bases", c)
	resource := strings.Repeat("../", strings.Count(at, "/")+1) + base
	if f.carrier == carrierRef {
		resource = "https://git.example/acme/" + c + "//config?ref=" + f.versions[c][e]
	} else {
		out[base+"/kustomization.yaml"] = "resources: [config.yaml]\n"
		out[base+"/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + c + "}\n"
	}
	key := "newTag"
	if f.carrier == carrierDigest {
		key = "digest"
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: " + c + "-" + e + "\nresources:\n- " + resource + "\n"
	if f.hasResources {
		text += "- ingress.yaml\n"
		out[at+"/ingress.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s-%s}\nspec: {ports: [{port: %d}]}\n", c, e, 8000+n)
	}
	text += "images:\n"
	if f.hasSidecar {
		text += "- name: registry.example/proxy\n  newTag: 0.3.1\n"
	}
	if f.hasBait {
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
func (f *randomRepository) addSets(t *testing.T, out map[string]string) {
	if f.isPlain {
		f.addApplications(t, out)
		return
	}
	sets := map[string]object{} // by the name of their file
	switch {
	case f.perEnvironment && f.builder == builtByHelm && f.oneChart:
		f.addSharedChart(t, out)
	case f.perEnvironment:
		for _, e := range f.environments() {
			sets[e] = f.set("apps", f.components, []string{e})
		}
	case f.layout == layoutManifests:
		for _, c := range f.components {
			for _, e := range f.environments() {
				sets[e+"/"+c] = f.set(c+"-"+e, []string{c}, []string{e})
			}
		}
	case f.perComponent:
		for _, c := range f.components {
			sets[c] = f.set(c, []string{c}, f.environments())
		}
	default:
		sets["apps"] = f.set("apps", f.components, f.environments())
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		text := marshal(t, sets[name])
		switch f.builder {
		case builtByNothing:
			out["argocd/"+name+".yaml"] = text
		case builtByHelm:
			f.addChart(out, name, text)
		case builtByKustomize:
			f.addOverlay(t, out, name, sets[name])
		}
	}
}

// addApplications adds the plain Applications, and what builds them.
func (f *randomRepository) addApplications(t *testing.T, out map[string]string) {
	texts := map[string]string{}
	for _, e := range f.environments() {
		for i, c := range f.components {
			name := map[string]string{
				manifestsEach: e + "/" + c, manifestsByPlace: e + "/" + fmt.Sprint(i+1), manifestsInOne: e + "/apps", manifestsAll: "apps",
			}[f.manifests]
			if texts[name] != "" {
				texts[name] += "---\n"
			}
			texts[name] += marshal(t, f.application(c, e))
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		switch f.builder {
		case builtByHelm:
			out["argocd/apps/templates/"+name+".yaml"] = strings.NewReplacer("project: default", "project: {{ .Values.project }}").Replace(texts[name])
		default:
			out["argocd/"+name+".yaml"] = texts[name]
			names = append(names, name+".yaml")
		}
	}
	switch f.builder {
	case builtByHelm:
		f.addInstallation(out, "apps", "argocd/apps")
	case builtByKustomize:
		out["argocd/kustomization.yaml"] = "namespace: argocd\nresources: [" + strings.Join(names, ", ") + "]\npatches:\n- target: {kind: Application}\n" +
			"  patch: |\n    - {op: add, path: /spec/revisionHistoryLimit, value: 3}\n"
	}
}

// application is a plain Application of a component in an environment.
func (f *randomRepository) application(c, e string) object {
	w := words{component: c, environment: e, path: f.folder(c, e), cluster: e, destination: e + "-1", revision: f.revisionOf(e)}
	metadata := object{"name": c + "-" + e, "namespace": "argocd"}
	return object{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": f.spec(w, []string{c}, []string{e})}
}

// addSharedChart adds one chart of the sets of all environments, which an Application of each installs with its name.
func (f *randomRepository) addSharedChart(t *testing.T, out map[string]string) {
	const named = "NAMED"
	f.addChart(out, "all", marshal(t, f.set("apps", f.components, []string{named})))
	set := "argocd/all-sets/templates/set.yaml"
	out[set] = strings.ReplaceAll(out[set], named, "{{ .Values.environment }}")
	for _, e := range f.environments() {
		out["bootstrap/"+e+".yaml"] = strings.NewReplacer("root-all", "root-"+e, "{project: default}", "{project: default, environment: "+e+"}").Replace(out["bootstrap/all.yaml"])
	}
	delete(out, "bootstrap/all.yaml")
}

// addChart adds a chart of a set, and the Application that installs it.
func (f *randomRepository) addChart(out map[string]string, name, text string) {
	at := "argocd/" + name + "-sets"
	text = strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(text)
	out[at+"/templates/set.yaml"] = strings.Replace(text, "project: default", "project: {{ .Values.project }}", 1)
	f.addInstallation(out, name, at)
}

// addInstallation adds a chart's own files, and the Application that installs it.
func (f *randomRepository) addInstallation(out map[string]string, name, at string) {
	out[at+"/Chart.yaml"] = "apiVersion: v2\nname: sets\nversion: 0.1.0\n"
	out[at+"/values.yaml"] = "project: nobody\n"
	out["bootstrap/"+name+".yaml"] = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root-" + name + ", namespace: argocd}\nspec:\n  project: default\n" +
		"  source:\n    repoURL: " + f.repoURL + "\n    targetRevision: " + f.revision + "\n    path: " + at + "\n    helm: {valuesObject: {project: default}}\n" +
		"  destination: {name: in-cluster, namespace: argocd}\n"
}

// addOverlay adds a base with a set, and the overlay that changes its project.
func (f *randomRepository) addOverlay(t *testing.T, out map[string]string, name string, set object) {
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
func (f *randomRepository) set(name string, components, environments []string) object {
	generators, words := f.generators(components, environments)
	appName := words.component + "-" + words.cluster
	if f.perEnvironment {
		appName = words.component
	}
	out := object{"generators": generators, "template": object{"metadata": object{"name": appName}, "spec": f.spec(words, components, environments)}}
	if f.goTemplate {
		out["goTemplate"], out["goTemplateOptions"] = true, []any{"missingkey=error"}
	}
	return object{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": object{"name": name, "namespace": "argocd"}, "spec": out}
}

// spec is what an Application of components in environments has, in the words of a set's template or its own.
func (f *randomRepository) spec(words words, components, environments []string) object {
	spec := object{
		"project": "default", "destination": object{"name": words.destination, "namespace": words.component},
		"syncPolicy": object{"automated": object{}},
	}
	revision := cmp.Or(words.revision, f.revision)
	source := object{"repoURL": f.repoURL, "targetRevision": revision, "path": words.path}
	switch {
	case f.layout == layoutSideBySide:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"valueFiles": []any{"values.yaml", "values-" + words.environment + ".yaml"}}
	case f.layout == layoutVersions:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"valueFiles": []any{"../../values/" + words.environment + "/versions.yaml"}}
	case f.layout == layoutElement:
		source["path"] = "charts/" + words.component
		source["helm"] = object{"parameters": []any{object{"name": "image.tag", "value": f.parameter("version")}}}
	case f.layout == layoutConfig:
		source = object{"repoURL": f.parameter("repository"), "chart": words.component, "targetRevision": f.parameter("chartVersion")}
		spec["project"], spec["destination"] = f.parameter("project"), object{"name": words.destination, "namespace": f.parameter("namespace")}
	case f.layout == layoutLabel:
		source = object{"repoURL": "https://charts.example/stable", "chart": words.component, "targetRevision": f.parameter("values.version")}
	case f.layout == layoutManifests, f.layout == layoutPlain:
		source = object{"repoURL": "https://charts.example/stable", "chart": words.component, "targetRevision": f.versions[components[0]][environments[0]]}
	case f.carrier == carrierValues:
		values := words.path + "/values.yaml"
		if f.layout == layoutByComponent {
			values = "values/" + words.environment + "/" + words.component + ".yaml"
		}
		spec["sources"] = []any{
			object{"repoURL": "https://charts.example/stable", "chart": "service", "targetRevision": "3.1.0", "helm": object{"valueFiles": []any{"$values/" + values}}},
			object{"repoURL": f.repoURL, "targetRevision": revision, "ref": "values"},
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
func (f *randomRepository) parameter(name string) string {
	if f.goTemplate {
		return "{{ ." + name + " }}"
	}
	return "{{" + name + "}}"
}

// segment is a part of a folder that a git generator gave.
func (f *randomRepository) segment(n int) string {
	if f.goTemplate {
		return fmt.Sprintf("{{ index .path.segments %d }}", n)
	}
	return fmt.Sprintf("{{path[%d]}}", n)
}

// wholePath is the folder that a git generator gave.
func (f *randomRepository) wholePath() string {
	if f.goTemplate {
		return "{{ .path.path }}"
	}
	return "{{path}}"
}

// generators are a set's, and how its template says what they give.
func (f *randomRepository) generators(components, environments []string) ([]any, words) {
	git := func(what string, value any) object {
		return object{"git": object{"repoURL": f.repoURL, "revision": f.revision, what: value}}
	}
	of := func(component, environment string) string { return f.folder(component, environment) }
	any1 := func(all []string) string {
		if len(all) == 1 {
			return all[0]
		}
		return "*"
	}
	switch {
	case f.layout == layoutElement:
		var elements []any
		for _, e := range environments {
			elements = append(elements, object{"env": e, "cluster": e + "-1", "replicas": fmt.Sprint(len(elements) + 1), "version": f.versions[components[0]][e]})
		}
		return []any{object{"list": object{"elements": elements}}}, words{component: components[0], environment: f.parameter("env"), cluster: f.parameter("env"), destination: f.parameter("cluster")}
	case f.layout == layoutConfig:
		return []any{git("files", []any{object{"path": "services/*/" + any1(environments) + "/config.json"}})},
			words{component: f.parameter("service"), environment: f.parameter("stage"), cluster: f.parameter("stage"), destination: f.parameter("stage") + "-1"}
	case f.layout == layoutLabel:
		first := f.versions[components[0]][environments[0]]
		inner := []any{object{"clusters": object{"selector": object{"matchExpressions": []any{object{"key": "environment", "operator": "Exists"}}}, "values": object{"addon": components[0], "version": first}}}}
		for _, e := range environments {
			inner = append(inner, object{"clusters": object{"selector": object{"matchLabels": object{"environment": e}}, "values": object{"version": f.versions[components[0]][e]}}})
		}
		return []any{object{"merge": object{"mergeKeys": []any{"server"}, "generators": inner}}},
			words{component: components[0], environment: f.parameter("metadata.labels.environment"), cluster: f.parameter("name"), destination: f.parameter("name")}
	case f.layout == layoutBranches && f.facts == factsFolders:
		return f.branchGenerators(any1(components), environments)
	case f.facts == factsFolders:
		at := of("COMPONENT", "ENVIRONMENT")
		parts := strings.Split(at, "/")
		w := words{path: f.wholePath(), component: f.segment(slices.Index(parts, "COMPONENT")), environment: f.segment(slices.Index(parts, "ENVIRONMENT"))}
		w.cluster, w.destination = w.environment, w.environment+"-1"
		return []any{git("directories", []any{object{"path": of(any1(components), any1(environments))}})}, w
	}
	var second object
	w := words{component: components[0]}
	if f.facts == factsList {
		var elements []any
		for _, e := range environments {
			element := object{"env": e, "cluster": e + "-1"}
			if f.layout == layoutBranches {
				element["branch"], w.revision = f.revisionOf(e), f.parameter("branch")
			}
			elements = append(elements, element)
		}
		second = object{"list": object{"elements": elements}}
		w.environment, w.cluster, w.destination = f.parameter("env"), f.parameter("env"), f.parameter("cluster")
	} else {
		if f.layout == layoutBranches {
			w.revision = f.branchPrefix + f.parameter("metadata.labels.environment")
		}
		second = object{"clusters": object{"selector": object{"matchExpressions": []any{object{"key": "environment", "operator": "In", "values": toAny(environments)}}}}}
		w.environment, w.cluster, w.destination = f.parameter("metadata.labels.environment"), f.parameter("name"), f.parameter("name")
	}
	generators := []any{second}
	if len(components) > 1 {
		var elements []any
		for _, c := range components {
			elements = append(elements, object{"app": c})
		}
		w.component = f.parameter("app")
		generators = []any{object{"matrix": object{"generators": []any{object{"list": object{"elements": elements}}, second}}}}
	}
	w.path = of(w.component, w.environment)
	return generators, w
}

// branchGenerators are those that list the folders of components on the environments' branches.
func (f *randomRepository) branchGenerators(component string, environments []string) ([]any, words) {
	folders := func(revision string) object {
		return object{"git": object{"repoURL": f.repoURL, "revision": revision, "directories": []any{object{"path": f.folder(component, "")}}}}
	}
	w := words{path: f.wholePath(), component: f.segment(1)}
	if len(environments) == 1 {
		e := environments[0]
		w.cluster, w.destination, w.revision = e, e+"-1", f.revisionOf(e)
		return []any{folders(w.revision)}, w
	}
	var elements []any
	for _, e := range environments {
		elements = append(elements, object{"env": e, "branch": f.revisionOf(e)})
	}
	w.environment, w.cluster, w.destination, w.revision = f.parameter("env"), f.parameter("env"), f.parameter("env")+"-1", f.parameter("branch")
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
func (f *randomRepository) clusters() string {
	var out strings.Builder
	environments := f.environments()
	for i, e := range environments {
		count := 1
		if f.twoClusters && i == len(environments)-1 {
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
