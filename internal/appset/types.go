package appset

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Target is one Argo CD Application as its ApplicationSet generates it.
// Targets are shared between callers: read them, don't change them.
type Target struct {
	Name        string `json:"name"`      // the Application's
	Namespace   string `json:"namespace"` // where the Application object lives; empty: the ApplicationSet's
	Project     string `json:"project"`
	Component   string `json:"component"`   // what the pipeline's template gave; empty: not managed
	Environment string `json:"environment"` // likewise
	ArgoCD      string `json:"argocd"`      // the server's file's name of the Argo CD that runs it

	ApplicationSet     string `json:"applicationSet"`     // its name; empty for a plain Application
	ApplicationSetFile string `json:"applicationSetFile"` // where the set, or the plain Application, was read, from the repository's root
	// SetFiles are the files that the set or the plain Application is built of, where
	// ApplicationSetFile doesn't have it as it is; sorted.
	SetFiles []string `json:"setFiles,omitempty"`

	// Live says that the target is a live Application as it runs, not one that
	// was resolved: it is plain, or its ApplicationSet can't be understood here.
	Live   bool   `json:"live,omitempty"`
	Policy Policy `json:"policy,omitzero"` // its ApplicationSet's; zero for a plain Application

	Params map[string]any `json:"params,omitempty"` // as the generators gave them
	// GeneratorFile is the git file generator's own file, from the repository's
	// root; empty for other generators. Where several were combined it is the
	// one that the parameters call path, or else the first of GeneratorFiles.
	GeneratorFile string `json:"generatorFile,omitempty"`
	// GeneratorFiles are all generator files of this repository that the
	// parameters came of, sorted.
	GeneratorFiles []string `json:"generatorFiles,omitempty"`
	// Branch is where the target's environment lives, in a pipeline whose
	// environments have branches; the resolved one's where it has no environment.
	// Empty in other pipelines.
	Branch string `json:"branch,omitempty"`
	// BranchFiles are the generator files of other branches of this repository
	// than the one that was resolved, sorted by branch and file.
	BranchFiles []BranchFile `json:"branchFiles,omitempty"`

	Server   string   `json:"server,omitempty"`  // destination.server
	Cluster  string   `json:"cluster,omitempty"` // destination.name
	DestNS   string   `json:"destinationNamespace,omitempty"`
	Sources  []Source `json:"sources"`
	AutoSync bool     `json:"autoSync"`
	// Hydration is there where Argo CD's source hydrator stands between: Sources
	// has what the hydrator reads, and this says where its output goes.
	Hydration *Hydration `json:"hydration,omitempty"`

	// ValueFiles says what entries of the sources' ValueFiles mean where that depends on Argo
	// CD's version: where one may be a glob, or is there twice. Empty: it isn't known, or they
	// mean the same in all.
	ValueFiles ValueFilesAs `json:"valueFilesAs,omitempty"`

	// Ignores is what of differences in what it deploys doesn't count.
	Ignores Ignores `json:"-"`

	// Application is the generated manifest; only there when Input.Manifests asked for it.
	Application json.RawMessage `json:"application,omitempty"`
}

// ValueFilesAs says how an Argo CD takes entries of helm.valueFiles.
type ValueFilesAs string

// Until 3.3 an entry is one file's name. Since 3.4 it may be a glob, and a file counts once.
const (
	ValueFilesAsNames ValueFilesAs = "names"
	ValueFilesAsGlobs ValueFilesAs = "globs"
)

// BranchFile is a file at another branch, or another revision, of this repository.
type BranchFile struct {
	Branch string `json:"branch"` // without refs/heads/
	File   string `json:"file"`   // from the repository's root
}

// Managed says that the pipeline's templates gave the target a component and
// an environment.
func (t Target) Managed() bool { return t.Component != "" && t.Environment != "" }

// IsGeneratedFrom says that a file has the target's ApplicationSet or plain Application, or a part
// of it, or is one of its generators'.
func (t *Target) IsGeneratedFrom(file string) bool {
	return file == t.ApplicationSetFile || slices.Contains(t.SetFiles, file) || slices.Contains(t.GeneratorFiles, file)
}

// ID identifies the target among all targets of a repository: two Argo CDs,
// and two namespaces of one, may have Applications of the same name.
func (t Target) ID() string { return t.ArgoCD + "/" + t.Namespace + "/" + t.Name }

// Hydration is where the source hydrator writes a target's manifests. The
// Application syncs from Branch, so its synced revisions are commits of that
// branch and not of the one that Sources name.
type Hydration struct {
	RepoURL string `json:"repoURL,omitempty"` // syncSource.repoURL; empty: that of Sources
	Branch  string `json:"branch"`            // syncSource.targetBranch
	Path    string `json:"path"`              // syncSource.path
	Staging string `json:"staging,omitempty"` // hydrateTo.targetBranch: written there first, and moved to Branch by somebody else
}

// SourceType says how Argo CD turns a source into manifests.
type SourceType string

// The source types that an Application can ask for. Detected is the usual
// one: what lies at the path decides.
const (
	Detected  SourceType = ""
	Kustomize SourceType = "Kustomize"
	Helm      SourceType = "Helm"
	Directory SourceType = "Directory"
	Plugin    SourceType = "Plugin"
)

// Source is one source of a target.
type Source struct {
	RepoURL        string     `json:"repoURL"`
	Path           string     `json:"path,omitempty"`
	Chart          string     `json:"chart,omitempty"`
	TargetRevision string     `json:"targetRevision,omitempty"`
	Ref            string     `json:"ref,omitempty"`
	Type           SourceType `json:"type,omitempty"`
	ValueFiles     []string   `json:"valueFiles,omitempty"`     // as written: relative to Path, or $ref/…
	FileParameters []string   `json:"fileParameters,omitempty"` // likewise
	Files          []string   `json:"files,omitempty"`          // what else the source's options name, as written: components, patches
	Libs           []string   `json:"libs,omitempty"`           // Jsonnet's libraries, from the root
	Here           bool       `json:"here"`                     // RepoURL is the repository that was resolved
	// the branch, tag or commit of that repository that it is read at, where [ViewFromBranch] took it out of
	// Here
	At      string `json:"-"`
	Recurse bool   `json:"recurse,omitempty"` // directory.recurse
	Include string `json:"include,omitempty"` // directory.include
	Exclude string `json:"exclude,omitempty"` // directory.exclude
	// Options are the source's kustomize, helm, directory and plugin blocks as
	// the Application has them, in a JSON object with these keys; nil when it has none.
	Options json.RawMessage `json:"-"`
}

// Problem is something that kept a target, or a whole ApplicationSet, from
// being resolved. While one stands, nothing of the pipeline that it concerns is merged.
type Problem struct {
	File           string `json:"file"` // from the repository's root; "" for a live object
	ApplicationSet string `json:"applicationSet,omitempty"`
	Application    string `json:"application,omitempty"`
	Message        string `json:"message"`
}

// String is the problem as one line for people.
func (p Problem) String() string { return p.join("ApplicationSet ", "Application ") }

// Text is String without saying what is which.
func (p Problem) Text() string { return p.join("", "") }

func (p Problem) join(set, application string) string {
	var parts []string
	for _, part := range []struct{ what, name string }{{"", p.File}, {set, p.ApplicationSet}, {application, p.Application}} {
		if part.name != "" {
			parts = append(parts, part.what+part.name)
		}
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// TargetSet is what one pipeline's ApplicationSets resolve to at one commit.
// Targets are sorted by name.
type TargetSet struct {
	// Targets are shared as far as they are the same. A target that a resolver made for an earlier
	// commit keeps its Params, Sources and Application, address and all. Where no ApplicationSet
	// depends on the changes, the whole list is the one of before. So the same address means the
	// same content; different addresses mean nothing.
	Targets  []Target  `json:"targets"`
	Problems []Problem `json:"problems,omitempty"`
	// Notes say what should be known but stops nothing, such as targets that
	// are live Applications because their set can't be understood here.
	Notes []Problem `json:"notes,omitempty"`
	// RefreshAfter is when the same inputs may give another answer, because
	// something was requested that is not in Git: a forge, a plugin, a cluster. It
	// counts from the call that gave this; 0 means never.
	RefreshAfter time.Duration `json:"-"`

	externals []refCommit // what other repositories were at
	sets      []knownSet  // what the targets are of
	scopes    []*setScope // what their sets read elsewhere
}
