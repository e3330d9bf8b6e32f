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

// Pipeline is one pipeline: one YAML document of a pipeline file.
type Pipeline struct {
	// Always liftlock.dev/v1alpha1.
	APIVersion string `yaml:"apiVersion" json:"apiVersion" jsonschema:"required,enum=liftlock.dev/v1alpha1"`
	// Always Pipeline.
	Kind string `yaml:"kind" json:"kind" jsonschema:"required,enum=Pipeline"`
	// What the pipeline is called.
	Metadata Metadata `yaml:"metadata" json:"metadata" jsonschema:"required"`
	// The pipeline itself.
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
	// act, or observe: says what it would do, opens and merges nothing.
	Mode Mode `yaml:"mode" json:"mode" jsonschema:"enum=act,enum=observe,default=act"`
	// What is promoted when the pipeline is new. baseline: only releases introduced after this pipeline (or component, or carry entry) came in. converge: also what a source environment carries since before that and the environments after it don't.
	Adopt string `yaml:"adopt" json:"adopt" jsonschema:"enum=baseline,enum=converge,default=baseline"`
	// Where the targets come from; at least one entry here or in applications.
	ApplicationSets []ApplicationSetSource `yaml:"applicationSets" json:"applicationSets,omitempty"`
	// Plain Applications that are targets, such as the children of an app of apps.
	Applications []ApplicationSource `yaml:"applications" json:"applications,omitempty"`
	// A file of Argo CD's cluster Secrets, from the repository's root, as kubectl get secret -o yaml prints them and liftlock init --clusters-example gives an example of: validate, resolve, plan and impact take the clusters from it where --clusters names no other file. The server doesn't read it: it goes by the clusters of its Argo CDs.
	Clusters string `yaml:"clusters" json:"clusters,omitempty" jsonschema:"minLength=1"`
	// A Go template over the generator's parameters, plus .application and .applicationSet, that gives each target's component. A plain Application has no parameters, only .application; where it is in a file, .application.file is that file (of a kustomization or a chart its own). Empty: the target is not managed. Needed here or in every entry of applicationSets and applications.
	Component string `yaml:"component" json:"component"`
	// Likewise, each target's environment.
	Environment string `yaml:"environment" json:"environment"`
	// How environments are told apart in Git: each has its own directories, all on the tracked branch; or each has its own branch, which its targets follow.
	Layout string `yaml:"layout" json:"layout" jsonschema:"enum=directories,enum=branches,default=directories"`
	// What a promotion moves; at least one entry.
	Carry []Carry `yaml:"carry" json:"carry" jsonschema:"required,minItems=1"`
	// Where the application's own code is, so that its commits are shown in the pull request: owner/repository@revision on the same forge, of the owner of this repository, like acme/{{component}}@v{{value}}. {{value}} stands for a carried value, an image's tag for example, before and after; without @ the value is the revision.
	Source string `yaml:"source" json:"source,omitempty"`
	// What one pull request holds. component: one component; environment: all components that are ready for the environment, all or nothing.
	Batch string `yaml:"batch" json:"batch" jsonschema:"enum=component,enum=environment,default=component"`
	// How pull requests are merged.
	Merge Merge `yaml:"merge" json:"merge"`
	// What Liftlock does at once, at most.
	Limits Limits `yaml:"limits" json:"limits"`
	// bare: commands in pull requests may also be written without /liftlock, as /promote. Not set: other bots keep those.
	Commands string `yaml:"commands" json:"commands" jsonschema:"enum=bare"`
	// Who may let a promotion past one of its gates by /liftlock skip. Not set: nobody, but holders of an API token with the role breakglass.
	BreakGlass *BreakGlass `yaml:"breakGlass" json:"breakGlass,omitempty"`
	// Keeps the forge's own page of environments up to date, where the forge has deployments (GitHub): each merge into an environment is one there, in progress until the environment is verified.
	Deployments bool `yaml:"deployments" json:"deployments"`
	// The check of people's own pull requests.
	Impact Impact `yaml:"impact" json:"impact,omitzero"`
	// Who is told of what, outside of the pull requests.
	Notify []Notification `yaml:"notify" json:"notify,omitempty"`
	// The steps of the pipeline; at least one.
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

// ApplicationSetSource says where ApplicationSets are read from, with the
// overrides for those: exactly one of path, kustomize, helm and live is set.
type ApplicationSetSource struct {
	// A glob of manifests, from the repository's root.
	Path string `yaml:"path" json:"path,omitempty" jsonschema:"minLength=1"`
	// A folder, from the repository's root, with a kustomization: the ApplicationSets are those of what kustomize build makes of it.
	Kustomize string `yaml:"kustomize" json:"kustomize,omitempty" jsonschema:"minLength=1"`
	// A chart in this repository: the ApplicationSets are those of what helm template makes of it.
	Helm *HelmSource `yaml:"helm" json:"helm,omitempty"`
	// The object as it runs, for a set that is templated or generated elsewhere.
	Live *LiveApplicationSet `yaml:"live" json:"live,omitempty"`
	// Overrides spec.component for the sets of this entry.
	Component string `yaml:"component" json:"component"`
	// Overrides spec.environment for the sets of this entry.
	Environment string `yaml:"environment" json:"environment"`
	// The Argo CD that runs them, by its name in the server's file. Not set: the first one there. Not with live, which has its own.
	ArgoCD string `yaml:"argocd" json:"argocd"`
}

// ArgoCDName is the name of the Argo CD that runs the entry's sets; empty means the
// first one in the server's file.
func (s *ApplicationSetSource) ArgoCDName() string {
	if s.Live != nil {
		return s.Live.ArgoCD
	}
	return s.ArgoCD
}

// Manifests is where the entry's sets are in this repository; zero for a live one.
func (s *ApplicationSetSource) Manifests() ManifestSource {
	return ManifestSource{Path: s.Path, Kustomize: s.Kustomize, Helm: s.Helm}
}

// ManifestSource is where manifests are in this repository: at most one of its fields is set.
type ManifestSource struct {
	Path      string // a glob of files, which have them as they are
	Kustomize string // a folder with a kustomization
	Helm      *HelmSource
}

// IsBuilt says that the manifests are built of files, which don't have them as they are.
func (s ManifestSource) IsBuilt() bool { return s.Kustomize != "" || s.Helm != nil }

// HelmSource is a chart that makes ApplicationSets or Applications, and what it is given.
type HelmSource struct {
	// The chart's folder, from the repository's root.
	Path string `yaml:"path" json:"path" jsonschema:"required,minLength=1"`
	// Values files, from the chart's folder; with a leading / from the repository's root. The later wins.
	ValueFiles []string `yaml:"valueFiles" json:"valueFiles,omitempty"`
	// Values over those of the files.
	Values HelmValues `yaml:"values" json:"values,omitempty"`
	// The release's name, for templates that ask for it. Not set: the chart's folder's.
	ReleaseName string `yaml:"releaseName" json:"releaseName,omitempty"`
	// The release's namespace, likewise.
	Namespace string `yaml:"namespace" json:"namespace,omitempty" jsonschema:"default=argocd"`
}

// SetDefaults fills in the namespace that Argo CD is usually in.
func (s *HelmSource) SetDefaults() { s.Namespace = "argocd" }

// HelmValues are a chart's values, of which the chart alone knows the keys.
type HelmValues map[string]any

// UnmarshalYAML reads any mapping whose keys are texts, and that JSON can say as well.
func (v *HelmValues) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]any
	if err := node.Decode(&values); err != nil {
		return errors.New("values are a mapping")
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return errors.New("a key in it is no text")
	}
	return json.Unmarshal(raw, (*map[string]any)(v))
}

// LiveApplicationSet names one ApplicationSet object of a running Argo CD.
type LiveApplicationSet struct {
	// The Argo CD that runs it, by its name in the server's file. Not set: the first one there.
	ArgoCD string `yaml:"argocd" json:"argocd"`
	// The namespace that the object is in.
	Namespace string `yaml:"namespace" json:"namespace" jsonschema:"default=argocd"`
	// The object's name.
	Name string `yaml:"name" json:"name" jsonschema:"required,minLength=1"`
}

// ApplicationSource says which plain Applications are targets, with the
// overrides for those.
type ApplicationSource struct {
	// A glob of manifests, from the repository's root.
	Path string `yaml:"path" json:"path,omitempty" jsonschema:"minLength=1"`
	// A folder, from the repository's root, with a kustomization: the Applications are those of what kustomize build makes of it.
	Kustomize string `yaml:"kustomize" json:"kustomize,omitempty" jsonschema:"minLength=1"`
	// A chart in this repository: the Applications are those of what helm template makes of it.
	Helm *HelmSource `yaml:"helm" json:"helm,omitempty"`
	// The objects as they run.
	Live *LiveApplications `yaml:"live" json:"live,omitempty"`
	// Overrides spec.component for the Applications of this entry.
	Component string `yaml:"component" json:"component"`
	// Overrides spec.environment for the Applications of this entry.
	Environment string `yaml:"environment" json:"environment"`
	// The Argo CD that runs them, by its name in the server's file. Not set: the first one there. Not with live, which has its own.
	ArgoCD string `yaml:"argocd" json:"argocd"`
}

// ArgoCDName is the name of the Argo CD that runs the entry's Applications; empty means the
// first one in the server's file.
func (s *ApplicationSource) ArgoCDName() string {
	if s.Live != nil {
		return s.Live.ArgoCD
	}
	return s.ArgoCD
}

// Manifests is where the entry's Applications are in this repository; zero for live ones.
func (s *ApplicationSource) Manifests() ManifestSource {
	return ManifestSource{Path: s.Path, Kustomize: s.Kustomize, Helm: s.Helm}
}

// LiveApplications selects Application objects of a running Argo CD.
type LiveApplications struct {
	// The Argo CD that runs them, by its name in the server's file. Not set: the first one there.
	ArgoCD string `yaml:"argocd" json:"argocd"`
	// The namespace that the objects are in.
	Namespace string `yaml:"namespace" json:"namespace" jsonschema:"default=argocd"`
	// A selector over labels, as kubectl takes it: team=shop,tier!=test.
	Selector string `yaml:"selector" json:"selector" jsonschema:"required,minLength=1"`
}

// What happens to a field that the source has and the target hasn't.
const (
	WhenAbsentAdd    = "add"
	WhenAbsentRefuse = "refuse"
	WhenAbsentSkip   = "skip"
)

// Carry is one entry of what a promotion moves: exactly one of kustomizeImages,
// kustomizeRefs, yaml, json and files is set.
type Carry struct {
	// Globs on the names in a kustomization's images list; their newTag, newName and digest are carried.
	KustomizeImages []string `yaml:"kustomizeImages" json:"kustomizeImages,omitempty" jsonschema:"minItems=1"`
	// Globs on the addresses, without their query, of the remote bases in a kustomization's resources, components and bases; the value of their ref= or version= is carried.
	KustomizeRefs []string `yaml:"kustomizeRefs" json:"kustomizeRefs,omitempty" jsonschema:"minItems=1"`
	// Fields of YAML files.
	YAML *FieldPick `yaml:"yaml" json:"yaml,omitempty"`
	// Fields of JSON files.
	JSON *FieldPick `yaml:"json" json:"json,omitempty"`
	// Whole files: their content and whether they are executable.
	Files *FilePick `yaml:"files" json:"files,omitempty"`
	// What to do with a field that the source environment has and the target environment hasn't. For files, add also deletes those that the source environment hasn't.
	WhenAbsent string `yaml:"whenAbsent" json:"whenAbsent" jsonschema:"enum=add,enum=refuse,default=refuse"`
}

// FieldPick picks fields by address in files by glob.
type FieldPick struct {
	// Globs, relative to a root: a target's source paths, its values files' folders, its generator file's folder. A part between slashes may have the placeholders {{environment}} and {{component}}: values-{{environment}}.yaml.
	Files []string `yaml:"files" json:"files" jsonschema:"required,minItems=1"`
	// Addresses in those files: image.tag, hosts[0].name, containers[name=web].image, JSON Pointers and simple JSONPath. A * stands for every key of a mapping or item of a list: dependencies[*].version. A key or the value of a selection may have placeholders: elements[env={{environment}}].revision, {{environment}}.image.tag. Fields with a placeholder are looked for also in source paths that several environments share, and in the values files, generator files and ApplicationSets that they share.
	Paths []string `yaml:"paths" json:"paths" jsonschema:"required,minItems=1"`
}

// FilePick picks files by glob.
type FilePick struct {
	// Globs, relative to a root, of the files that are carried. A part between slashes may have the placeholders {{environment}} and {{component}}.
	Include []string `yaml:"include" json:"include" jsonschema:"required,minItems=1"`
	// Globs of those among them that aren't.
	Exclude []string `yaml:"exclude" json:"exclude,omitempty"`
}

// Notification sends what happens to a channel of the server's file.
type Notification struct {
	// The channel's name in the server's file.
	To string `yaml:"to" json:"to" jsonschema:"required"`
	// What is told: opened and merged (a promotion), waiting (for people, at its gates), verified, degraded, reverted (a revert was opened), failed (a release never arrived, or can't be verified, or it can't be told for long how a target is), held, diverged, skipped (a gate), unjudged (merged past the gates), drifted (a target from what was synced), limit (so many reverts that everything holds).
	On []string `yaml:"on" json:"on" jsonschema:"required,minItems=1,enum=opened,enum=waiting,enum=merged,enum=verified,enum=degraded,enum=reverted,enum=failed,enum=held,enum=diverged,enum=skipped,enum=unjudged,enum=drifted,enum=limit"`
}

// NotificationEvents are the words of Notification.On.
var NotificationEvents = []string{"opened", "waiting", "merged", "verified", "degraded", "reverted", "failed", "held", "diverged", "skipped", "unjudged", "drifted", "limit"}

// BreakGlass says who may skip gates; one of users or teams at least.
type BreakGlass struct {
	// Teams on the forge, as organisation/team; where the forge nests teams, with those below.
	Teams []string `yaml:"teams" json:"teams,omitempty"`
	// Logins on the forge.
	Users []string `yaml:"users" json:"users,omitempty"`
	// An author of the release may skip a gate too. Not set: it takes a second person.
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

// Impact says how strict the check of people's own pull requests is.
type Impact struct {
	// several: a change that reaches more than one of the environments fails the commit status liftlock. nothing: it gets a warning.
	FailOn string `yaml:"failOn" json:"failOn" jsonschema:"enum=nothing,enum=several,default=nothing"`
}

// Limits bound what Liftlock does at once.
type Limits struct {
	// Promotions that are open at the same time in one environment.
	OpenPerEnvironment int `yaml:"openPerEnvironment" json:"openPerEnvironment" jsonschema:"minimum=1,default=10"`
	// Merges by Liftlock itself in any hour.
	MergesPerHour int `yaml:"mergesPerHour" json:"mergesPerHour" jsonschema:"minimum=1,default=20"`
	// Reverts in any ten minutes, in one environment or on one cluster. Past it, everything holds and says so once.
	RevertsPer10Minutes int `yaml:"revertsPer10Minutes" json:"revertsPer10Minutes" jsonschema:"minimum=1,default=3"`
}

// Who acts.
const (
	Auto   = "auto"
	Manual = "manual"
)

// Environment is one step of the pipeline.
type Environment struct {
	// What the environment template yields for its targets.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[a-z0-9][a-z0-9-]*$,maxLength=63"`
	// The environments that must have verified a release before it moves here. Not set: a source environment, where releases arrive from outside Liftlock.
	After []string `yaml:"after" json:"after"`
	// The branch that the environment lives on: its targets' targetRevision, and what its pull requests are merged into. Needed with layout: branches, and only there; it may be the tracked branch.
	Branch string `yaml:"branch" json:"branch,omitempty"`
	// auto: the pull request opens when every environment of after verified the release; manual: /liftlock promote opens it. Not in a source environment.
	Open string `yaml:"open" json:"open" jsonschema:"enum=auto,enum=manual,default=auto"`
	// manual: people merge; auto: Liftlock merges when all gates pass. Not in a source environment.
	Merge string `yaml:"merge" json:"merge" jsonschema:"enum=manual,enum=auto,default=manual"`
	// What happens when a promotion's targets degrade: open a revert, open and merge it, or hold and ask; and from how many degraded targets on. In a source environment it is always hold.
	OnDegraded OnDegraded `yaml:"onDegraded" json:"onDegraded"`
	// What must pass before the merge. Not in a source environment.
	Gates []policies.Gate `yaml:"gates" json:"gates"`
	// required: a promotion isn't merged by Liftlock while an image, a chart's version or a part of a pod template that it carries doesn't show in the rendered manifests of a target that could be rendered; optional: it is. Not in a source environment.
	Effect string `yaml:"effect" json:"effect,omitempty" jsonschema:"enum=required,enum=optional,default=required"`
	// The times of the verification.
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

// Verify holds the times of a verification.
type Verify struct {
	// How long a target may take to notice the commit and begin to sync it.
	ArriveWithin Duration `yaml:"arriveWithin" json:"arriveWithin" jsonschema:"default=15m"`
	// How long it may take, once synced, to become healthy.
	Timeout Duration `yaml:"timeout" json:"timeout" jsonschema:"default=10m"`
	// How long it must be healthy without a break to be verified.
	HealthyFor Duration `yaml:"healthyFor" json:"healthyFor" jsonschema:"default=1m"`
	// How long after that a degradation is still answered.
	Watch Duration `yaml:"watch" json:"watch" jsonschema:"default=30m"`
	// How long bad health must last to count as degraded.
	Debounce Duration `yaml:"debounce" json:"debounce" jsonschema:"default=30s"`
	// wait: Argo CD syncs by itself; trigger: Liftlock asks for the sync of targets without an automated policy.
	Sync string `yaml:"sync" json:"sync" jsonschema:"enum=wait,enum=trigger,default=wait"`
	// Whether such a sync removes what Git no longer has. auto: where the Application's automated policy says so (one that is switched off has a say too); always; never.
	Prune string `yaml:"prune" json:"prune" jsonschema:"enum=auto,enum=always,enum=never,default=auto"`
	// How long a target may wait for its turn (its step of a RollingSync, a sync window) until a person is asked. Its other clocks stand still meanwhile. 0s: for ever.
	QueueFor Duration `yaml:"queueFor" json:"queueFor" jsonschema:"default=24h"`
	// wait: a suspended target (a paused rollout) may go on, within suspendedFor; fail: a person is asked at once.
	Suspended string `yaml:"suspended" json:"suspended" jsonschema:"enum=wait,enum=fail,default=wait"`
	// How long a target may be suspended until a person is asked.
	SuspendedFor Duration `yaml:"suspendedFor" json:"suspendedFor" jsonschema:"default=24h"`
	// Whether resources that Argo CD has no health check for count as healthy as soon as they are applied. false: a target that has such resources, or of which that isn't known, isn't verified, and a person is asked.
	IgnoreMissingHealth bool `yaml:"ignoreMissingHealth" json:"ignoreMissingHealth" jsonschema:"default=true"`
	// Whether what runs is compared with what was rendered.
	Runs Runs `yaml:"runs" json:"runs,omitzero"`
}

// Runs says what of the pods of a target must be what was rendered for it.
type Runs struct {
	// required: a target isn't verified while Argo CD lists another image of a workload than the one that came with the commit; reported: that is only said; off: it isn't looked at.
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
