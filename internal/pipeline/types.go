package pipeline

import (
	"encoding/json"
	"errors"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/policies"
)

// The file's apiVersion and kind.
const (
	APIVersion = "liftlock.dev/v1alpha1"
	Kind       = "Pipeline"
)

// SchemaURL is where editors find the format's JSON schema.
const SchemaURL = "https://raw.githubusercontent.com/liftlock/liftlock/main/docs/pipeline.schema.json"

// Pipeline is one pipeline: one YAML document of a pipeline file.
type Pipeline struct {
	// The format's version.
	APIVersion string `yaml:"apiVersion" json:"apiVersion" jsonschema:"required,enum=liftlock.dev/v1alpha1"`
	// The format's kind.
	Kind string `yaml:"kind" json:"kind" jsonschema:"required,enum=Pipeline"`
	// Its name.
	Metadata Metadata `yaml:"metadata" json:"metadata" jsonschema:"required"`
	// Its rules.
	Spec Spec `yaml:"spec" json:"spec" jsonschema:"required"`

	File string `yaml:"-" json:"-"` // where it was read, from the repository's root
}

// BranchOf is the branch that an environment lives on; empty where the layout
// isn't branches, or there is no such environment.
func (p *Pipeline) BranchOf(environment string) string {
	if e := p.Spec.EnvironmentByName(environment); e != nil && p.Spec.Layout == LayoutBranches {
		return e.Branch
	}
	return ""
}

// EnvironmentBranches are the branches that the environments live on, in their
// order; none where the layout isn't branches.
func (p *Pipeline) EnvironmentBranches() []string {
	var out []string
	for i := range p.Spec.Environments {
		if p.Spec.Layout == LayoutBranches {
			out = append(out, p.Spec.Environments[i].Branch)
		}
	}
	return out
}

// Name is metadata.name.
func (p *Pipeline) Name() string { return p.Metadata.Name }

// Metadata names the pipeline.
type Metadata struct {
	// Unique in the repository; part of branch names.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[a-z0-9][a-z0-9-]*$,maxLength=63"`
}

// Mode says whether Liftlock acts or only says what it would do.
type Mode string

// The modes.
const (
	ModeAct    Mode = "act"
	ModeDryRun Mode = "observe"
)

// What is promoted when a pipeline, a component or a carry entry is new.
const (
	AdoptBaseline = "baseline"
	AdoptConverge = "converge"
)

// BatchComponent has a pull request for each component.
const BatchComponent = "component"

// How environments are told apart in Git.
const (
	LayoutDirectories = "directories"
	LayoutBranches    = "branches"
)

// BatchEnvironment has one pull request for all ready components of an environment.
const BatchEnvironment = "environment"

// CommandsBare lets people write /promote for /liftlock promote.
const CommandsBare = "bare"

// Spec is the pipeline itself.
type Spec struct {
	// observe: says what it would do, opens and merges nothing.
	Mode Mode `yaml:"mode" json:"mode" jsonschema:"enum=act,enum=observe,default=act"`
	// What is promoted when the pipeline, a component or a carry entry is new. baseline: only later
	// releases. converge: also what a source environment already has and the ones after it lack.
	Adopt string `yaml:"adopt" json:"adopt" jsonschema:"enum=baseline,enum=converge,default=baseline"`
	// Where the targets come from. At least one entry here or in applications.
	ApplicationSets []ApplicationSetSource `yaml:"applicationSets" json:"applicationSets,omitempty"`
	// Plain Applications, such as the children of an app of apps.
	Applications []ApplicationSource `yaml:"applications" json:"applications,omitempty"`
	// A file of Argo CD's cluster Secrets, from the repository's root, as kubectl get secret -o
	// yaml or liftlock init --clusters-example prints them. validate, resolve, plan and impact read
	// it unless --clusters names another. The server doesn't.
	Clusters string `yaml:"clusters" json:"clusters,omitempty" jsonschema:"minLength=1"`
	// A Go template that gives each target's component, over the generator's parameters,
	// .application and .applicationSet. A plain Application has only .application, with
	// .application.file. An empty result: the target isn't managed. Required here or in every
	// entry.
	Component string `yaml:"component" json:"component"`
	// Likewise for each target's environment.
	Environment string `yaml:"environment" json:"environment"`
	// Each environment has directories of its own on the tracked branch, or a branch of its own
	// that its targets follow.
	Layout string `yaml:"layout" json:"layout" jsonschema:"enum=directories,enum=branches,default=directories"`
	// What a promotion moves.
	Carry []Carry `yaml:"carry" json:"carry" jsonschema:"required,minItems=1"`
	// The application's repository, whose commits the pull request shows:
	// acme/{{component}}@v{{value}}, on the same forge and of the same owner. {{value}} is a
	// carried value, such as a tag. Without @ the value is the revision.
	Source string `yaml:"source" json:"source,omitempty"`
	// What one pull request moves. component: one component. environment: all components that are
	// ready, all or nothing.
	Batch string `yaml:"batch" json:"batch" jsonschema:"enum=component,enum=environment,default=component"`
	// How pull requests are merged.
	Merge Merge `yaml:"merge" json:"merge"`
	// How much Liftlock does at once.
	Limits Limits `yaml:"limits" json:"limits"`
	// bare: /promote also works for /liftlock promote. Not set: bare words are for other bots.
	Commands string `yaml:"commands" json:"commands" jsonschema:"enum=bare"`
	// Who may write /liftlock skip. Not set: only the role breakglass, in the API and the console.
	BreakGlass *BreakGlass `yaml:"breakGlass" json:"breakGlass,omitempty"`
	// GitHub only: each merge into an environment is a deployment, in progress until it is verified.
	Deployments bool `yaml:"deployments" json:"deployments"`
	// The check of other people's pull requests.
	Impact Impact `yaml:"impact" json:"impact,omitzero"`
	// Notifications outside the pull requests.
	Notify []Notification `yaml:"notify" json:"notify,omitempty"`
	// The steps of the pipeline.
	Environments []Environment `yaml:"environments" json:"environments" jsonschema:"required,minItems=1"`
}

// BatchesByEnvironment says that the components are promoted as one batch: one pull request for all
// that are ready for an environment.
func (s *Spec) BatchesByEnvironment() bool { return s.Batch == BatchEnvironment }

// EnvironmentByName finds an environment by name; nil when there is none.
func (s *Spec) EnvironmentByName(name string) *Environment {
	for i := range s.Environments {
		if s.Environments[i].Name == name {
			return &s.Environments[i]
		}
	}
	return nil
}

// ApplicationSetSource says where ApplicationSets are. Exactly one of path, kustomize, helm and
// live is set.
type ApplicationSetSource struct {
	// A glob of manifests, from the repository's root.
	Path string `yaml:"path" json:"path,omitempty" jsonschema:"minLength=1"`
	// A folder, from the repository's root, that kustomize builds.
	Kustomize string `yaml:"kustomize" json:"kustomize,omitempty" jsonschema:"minLength=1"`
	// A chart in this repository.
	Helm *HelmSource `yaml:"helm" json:"helm,omitempty"`
	// The object as it runs, for a set that is made elsewhere.
	Live *LiveApplicationSet `yaml:"live" json:"live,omitempty"`
	// Overrides spec.component.
	Component string `yaml:"component" json:"component"`
	// Overrides spec.environment.
	Environment string `yaml:"environment" json:"environment"`
	// The name of their Argo CD in the server's file. Not set: the first one. Not with live.
	ArgoCD string `yaml:"argocd" json:"argocd"`
}

// ArgoCDName is the name of the Argo CD that runs the entry's sets; empty means the
// first one in the server's file.
func (a *ApplicationSetSource) ArgoCDName() string {
	if a.Live != nil {
		return a.Live.ArgoCD
	}
	return a.ArgoCD
}

// Manifests is where the entry's sets are in this repository; zero for a live one.
func (a *ApplicationSetSource) Manifests() ManifestSource {
	return ManifestSource{Path: a.Path, Kustomize: a.Kustomize, Helm: a.Helm}
}

// ManifestSource is where manifests are in this repository: at most one of its fields is set.
type ManifestSource struct {
	Path      string // a glob of files, which have them as they are
	Kustomize string // a folder with a kustomization
	Helm      *HelmSource
}

// IsBuilt says that the manifests are built of files, which don't have them as they are.
func (m ManifestSource) IsBuilt() bool { return m.Kustomize != "" || m.Helm != nil }

// HelmSource is a chart that makes ApplicationSets or Applications.
type HelmSource struct {
	// The chart's folder, from the repository's root.
	Path string `yaml:"path" json:"path" jsonschema:"required,minLength=1"`
	// Values files, from the chart's folder or, with a leading /, from the repository's root. The
	// last one wins.
	ValueFiles []string `yaml:"valueFiles" json:"valueFiles,omitempty"`
	// Values that override the files.
	Values HelmValues `yaml:"values" json:"values,omitempty"`
	// The Helm release's name. Not set: the name of the chart's folder.
	ReleaseName string `yaml:"releaseName" json:"releaseName,omitempty"`
	// The Helm release's namespace.
	Namespace string `yaml:"namespace" json:"namespace,omitempty" jsonschema:"default=argocd"`
}

// SetDefaults fills in the namespace that Argo CD is usually in.
func (h *HelmSource) SetDefaults() { h.Namespace = "argocd" }

// HelmValues are a chart's values, with any keys.
type HelmValues map[string]any

// UnmarshalYAML reads any mapping whose keys are texts, and that JSON can say as well.
func (h *HelmValues) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]any
	if err := node.Decode(&values); err != nil {
		return errors.New("values are a mapping")
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return errors.New("a key in it is no text")
	}
	return json.Unmarshal(raw, (*map[string]any)(h))
}

// LiveApplicationSet names one running ApplicationSet.
type LiveApplicationSet struct {
	// The name of its Argo CD in the server's file. Not set: the first one.
	ArgoCD string `yaml:"argocd" json:"argocd"`
	// The object's namespace.
	Namespace string `yaml:"namespace" json:"namespace" jsonschema:"default=argocd"`
	// The object's name.
	Name string `yaml:"name" json:"name" jsonschema:"required,minLength=1"`
}

// ApplicationSource says which plain Applications are targets. Exactly one of path, kustomize,
// helm and live is set.
type ApplicationSource struct {
	// A glob of manifests, from the repository's root.
	Path string `yaml:"path" json:"path,omitempty" jsonschema:"minLength=1"`
	// A folder, from the repository's root, that kustomize builds.
	Kustomize string `yaml:"kustomize" json:"kustomize,omitempty" jsonschema:"minLength=1"`
	// A chart in this repository.
	Helm *HelmSource `yaml:"helm" json:"helm,omitempty"`
	// The objects as they run.
	Live *LiveApplications `yaml:"live" json:"live,omitempty"`
	// Overrides spec.component.
	Component string `yaml:"component" json:"component"`
	// Overrides spec.environment.
	Environment string `yaml:"environment" json:"environment"`
	// The name of their Argo CD in the server's file. Not set: the first one. Not with live.
	ArgoCD string `yaml:"argocd" json:"argocd"`
}

// ArgoCDName is the name of the Argo CD that runs the entry's Applications; empty means the
// first one in the server's file.
func (a *ApplicationSource) ArgoCDName() string {
	if a.Live != nil {
		return a.Live.ArgoCD
	}
	return a.ArgoCD
}

// Manifests is where the entry's Applications are in this repository; zero for live ones.
func (a *ApplicationSource) Manifests() ManifestSource {
	return ManifestSource{Path: a.Path, Kustomize: a.Kustomize, Helm: a.Helm}
}

// LiveApplications selects running Applications.
type LiveApplications struct {
	// The name of their Argo CD in the server's file. Not set: the first one.
	ArgoCD string `yaml:"argocd" json:"argocd"`
	// The objects' namespace.
	Namespace string `yaml:"namespace" json:"namespace" jsonschema:"default=argocd"`
	// A label selector, as in kubectl: team=shop,tier!=test.
	Selector string `yaml:"selector" json:"selector" jsonschema:"required,minLength=1"`
}

// What happens to a field that the source has and the target hasn't.
const (
	WhenAbsentAdd    = "add"
	WhenAbsentRefuse = "refuse"
	WhenAbsentSkip   = "skip"
)

// Carry is one entry of what a promotion moves. Exactly one of kustomizeImages, kustomizeRefs,
// yaml, json and files is set.
type Carry struct {
	// Globs on names in a kustomization's images: carries newTag, newName and digest.
	KustomizeImages []string `yaml:"kustomizeImages" json:"kustomizeImages,omitempty" jsonschema:"minItems=1"`
	// Globs on addresses, without query, of a kustomization's remote bases: carries the value of
	// ref= or version=.
	KustomizeRefs []string `yaml:"kustomizeRefs" json:"kustomizeRefs,omitempty" jsonschema:"minItems=1"`
	// Fields of YAML files.
	YAML *FieldPick `yaml:"yaml" json:"yaml,omitempty"`
	// Fields of JSON files.
	JSON *FieldPick `yaml:"json" json:"json,omitempty"`
	// Whole files: content and executable bit.
	Files *FilePick `yaml:"files" json:"files,omitempty"`
	// For a field that the source environment has and the target environment lacks. For files, add
	// also deletes those that the source environment lacks.
	WhenAbsent string `yaml:"whenAbsent" json:"whenAbsent" jsonschema:"enum=add,enum=refuse,default=refuse"`
}

// FieldPick picks fields of files.
type FieldPick struct {
	// Globs below a target's source paths, values files' folders and generator file's folder. May
	// have placeholders: values-{{environment}}.yaml, {{component}}.yaml.
	Files []string `yaml:"files" json:"files" jsonschema:"required,minItems=1"`
	// Paths in those files: image.tag, hosts[0].name, containers[name=web].image,
	// dependencies[*].version, a JSON Pointer, simple JSONPath. With a placeholder, such as
	// elements[env={{environment}}].revision, also in files that environments share.
	Paths []string `yaml:"paths" json:"paths" jsonschema:"required,minItems=1"`
}

// FilePick picks whole files.
type FilePick struct {
	// Globs, as in the files of yaml.
	Include []string `yaml:"include" json:"include" jsonschema:"required,minItems=1"`
	// Globs of files among them to leave out.
	Exclude []string `yaml:"exclude" json:"exclude,omitempty"`
}

// Notification sends events to a channel of the server's file.
type Notification struct {
	// The channel's name in the server's file.
	To string `yaml:"to" json:"to" jsonschema:"required"`
	// The events, by their words in package event.
	On []string `yaml:"on" json:"on" jsonschema:"required,minItems=1"`
}

// BreakGlass says who may skip gates. At least one of users and teams is set.
type BreakGlass struct {
	// Teams on the forge, as organisation/team, with nested teams.
	Teams []string `yaml:"teams" json:"teams,omitempty"`
	// Logins on the forge.
	Users []string `yaml:"users" json:"users,omitempty"`
	// An author of the release may skip too. Not set: only a second person.
	AllowSelf bool `yaml:"allowSelf" json:"allowSelf,omitempty"`
}

// The merge methods.
const (
	MethodMerge  = "merge"
	MethodSquash = "squash"
	MethodRebase = "rebase"
)

// Merge says how pull requests are merged.
type Merge struct {
	// The forge's merge method.
	Method string `yaml:"method" json:"method" jsonschema:"enum=merge,enum=squash,enum=rebase,default=merge"`
}

// What fails the check of people's own pull requests.
const (
	FailOnNothing = "nothing"
	FailOnSeveral = "several"
)

// Impact says how strict the check of other people's pull requests is.
type Impact struct {
	// several: a change that reaches several environments fails the commit status. nothing: it gets
	// a warning.
	FailOn string `yaml:"failOn" json:"failOn" jsonschema:"enum=nothing,enum=several,default=nothing"`
}

// Limits bound what Liftlock does at once.
type Limits struct {
	// Open promotions in one environment.
	OpenPerEnvironment int `yaml:"openPerEnvironment" json:"openPerEnvironment" jsonschema:"minimum=1,default=10"`
	// Liftlock's own merges in any hour.
	MergesPerHour int `yaml:"mergesPerHour" json:"mergesPerHour" jsonschema:"minimum=1,default=20"`
	// Reverts in any ten minutes, in one environment or on one cluster. Past it, everything holds.
	RevertsPer10Minutes int `yaml:"revertsPer10Minutes" json:"revertsPer10Minutes" jsonschema:"minimum=1,default=3"`
}

// Who acts.
const (
	Auto   = "auto"
	Manual = "manual"
)

// Environment is one step of the pipeline. A source environment takes no open, merge, gates or effect, others no
// discover or deliver.
type Environment struct {
	// The result of the environment template for its targets.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[a-z0-9][a-z0-9-]*$,maxLength=63"`
	// The environments that must have verified a release first. Not set: a source environment,
	// where releases arrive from outside Liftlock.
	After []string `yaml:"after" json:"after"`
	// Required with layout: branches, and only there: its targets' targetRevision and its pull
	// requests' base. It may be the tracked branch.
	Branch string `yaml:"branch" json:"branch,omitempty"`
	// auto: the pull request opens when every environment of after has verified the release.
	// manual: /liftlock promote opens it.
	Open string `yaml:"open" json:"open" jsonschema:"enum=auto,enum=manual,default=auto"`
	// manual: people merge. auto: Liftlock merges when all gates pass.
	Merge string `yaml:"merge" json:"merge" jsonschema:"enum=manual,enum=auto,default=manual"`
	// What happens when a promotion's targets degrade. In a source environment always hold.
	OnDegraded OnDegraded `yaml:"onDegraded" json:"onDegraded"`
	// What must pass before the merge.
	Gates []policies.Gate `yaml:"gates" json:"gates"`
	// required: Liftlock doesn't merge while a carried image, chart version or part of a pod
	// template doesn't show in a target's rendered manifests. Targets that can't be rendered don't
	// count.
	Effect string `yaml:"effect" json:"effect,omitempty" jsonschema:"enum=required,enum=optional,default=required"`
	// Source environments only: which new tags and versions come in by themselves.
	Discover []Discovery `yaml:"discover" json:"discover,omitempty" jsonschema:"minItems=1"`
	// By a commit, or a pull request, with all that changed of a component.
	Deliver string `yaml:"deliver" json:"deliver,omitempty" jsonschema:"enum=commit,enum=pull-request,default=commit"`
	// How releases are verified.
	Verify Verify `yaml:"verify" json:"verify"`
}

// Whether what is carried must show in the rendered manifests.
const (
	EffectRequired = "required"
	EffectOptional = "optional"
)

// RequiresEffect says that what is carried must show in the rendered manifests.
func (e *Environment) RequiresEffect() bool { return e.Effect != EffectOptional }

// IsSource says that releases arrive here from outside Liftlock.
func (e *Environment) IsSource() bool { return len(e.After) == 0 }

// How a merged commit gets synced.
const (
	SyncWait    = "wait"
	SyncTrigger = "trigger"
)

// Whether a sync that Liftlock asks for removes what Git no longer has.
const (
	PruneAuto   = "auto"
	PruneAlways = "always"
	PruneNever  = "never"
)

// What becomes of a target that is suspended.
const (
	SuspendedWait = "wait"
	SuspendedFail = "fail"
)

// Verify says how a release is verified.
type Verify struct {
	// Time for a target to notice the commit and begin to sync.
	ArriveWithin Duration `yaml:"arriveWithin" json:"arriveWithin" jsonschema:"default=15m"`
	// Time to become healthy, once synced.
	Timeout Duration `yaml:"timeout" json:"timeout" jsonschema:"default=10m"`
	// How long it must be healthy without a break.
	HealthyFor Duration `yaml:"healthyFor" json:"healthyFor" jsonschema:"default=1m"`
	// How long after that a degradation still counts.
	Watch Duration `yaml:"watch" json:"watch" jsonschema:"default=30m"`
	// How long bad health must last to count.
	Debounce Duration `yaml:"debounce" json:"debounce" jsonschema:"default=30s"`
	// wait: Argo CD syncs by itself. trigger: Liftlock starts the sync of targets without automated sync.
	Sync string `yaml:"sync" json:"sync" jsonschema:"enum=wait,enum=trigger,default=wait"`
	// Whether such a sync prunes. auto: as the Application's automated policy says, even if that is
	// switched off.
	Prune string `yaml:"prune" json:"prune" jsonschema:"enum=auto,enum=always,enum=never,default=auto"`
	// How long a target may wait for its RollingSync step or a sync window before a person is
	// asked. Other times stand still. 0s: for ever.
	QueueFor Duration `yaml:"queueFor" json:"queueFor" jsonschema:"default=24h"`
	// For a suspended target (a paused rollout). wait: for suspendedFor. fail: a person is asked at once.
	Suspended string `yaml:"suspended" json:"suspended" jsonschema:"enum=wait,enum=fail,default=wait"`
	// How long a target may be suspended before a person is asked.
	SuspendedFor Duration `yaml:"suspendedFor" json:"suspendedFor" jsonschema:"default=24h"`
	// Whether resources without a health check count as healthy once applied. false: a target that
	// has or may have such resources isn't verified, and a person is asked.
	IgnoreMissingHealth bool `yaml:"ignoreMissingHealth" json:"ignoreMissingHealth" jsonschema:"default=true"`
	// Compares what runs with what was rendered.
	Runs Runs `yaml:"runs" json:"runs,omitzero"`
}

// Runs says what must run as rendered.
type Runs struct {
	// required: a target isn't verified while Argo CD lists another image of a workload than the
	// commit's. reported: only said. off: not read.
	Images string `yaml:"images" json:"images,omitempty" jsonschema:"enum=required,enum=reported,enum=off,default=required"`
}

// What becomes of images that don't run.
const (
	RunsRequired = "required"
	RunsReported = "reported"
	RunsOff      = "off"
)

// WatchWindow is how long after its merge a promotion may still be taken back by itself,
// also when its clocks had to start again in between.
func (v Verify) WatchWindow() time.Duration {
	return time.Duration(v.ArriveWithin + v.Timeout + v.HealthyFor + v.Watch)
}
