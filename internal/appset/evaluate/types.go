package evaluate

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Input is what a tree is evaluated with. The pipelines are those of the base,
// also when the tree is a pull request's head: a change is not judged by rules
// that it brings along.
type Input struct {
	Pipelines []*pipeline.Pipeline

	// Changed are the paths, from the root, that the change in question
	// created, changed or deleted, by their names before and after.
	// Resolution says who reads them.
	Changed []string

	Revision string   // the tree's commit, in full; empty: not a commit
	Branch   string   // the branch that the tree stands for, or is to be merged into
	RepoURLs []string // how manifests may name this repository

	// On is the branch of the change where it isn't Branch but an environment's own branch. Then
	// the tree, which has the ApplicationSets, doesn't change. Edited is the environment's branch
	// before or after the change.
	On     string
	Edited appset.ExternalRef `json:"-"`

	// The others are as in [appset.Input], of which a Scope leaves what it has. There are no Generators: those that ask
	// the network would do it with our tokens at addresses that a stranger
	// wrote. Sets with such generators are problems, in this process as in a worker,
	// so that base and head can be compared; an ArgoCD's Kube is not used either.
	Clusters     []appset.Cluster   // nil: not known
	Placements   *appset.Placements `json:"-"` // nil: not known; no worker is given any
	Projects     []string           // nil: not known
	Globbing     string
	Version      appset.Version
	ArgoCDs      map[string]appset.ArgoCD
	Main         string
	Live         *appset.Live                                                                     `json:"-"`
	OpenExternal func(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) `json:"-"`

	// Scope is what may be read besides this repository, by whatever tree; nil:
	// everything that the above gives.
	Scope *appset.Scope

	// Manifests asks for every target's Application.
	Manifests bool

	// Build makes what entries have built, in this process; a worker builds by itself.
	Build appset.ManifestBuilder `json:"-"`
}

// editedBranch is the branch that the change is made on, and what it is at.
func (in *Input) editedBranch(tree fs.FS) (string, fs.FS) {
	if in.On == "" {
		return in.Branch, tree
	}
	return in.On, in.Edited.Tree
}

// otherBranches are what is known of other branches than Branch.
func (in *Input) otherBranches() map[string]appset.ExternalRef {
	if in.On == "" {
		return nil
	}
	return map[string]appset.ExternalRef{in.On: in.Edited}
}

// offlineArgoCDs is what may be known of the Argo CDs without asking them.
func (in *Input) offlineArgoCDs() map[string]appset.ArgoCD {
	out := maps.Clone(in.ArgoCDs)
	for name, a := range out {
		a.Kube = nil
		out[name] = in.Scope.LimitArgoCD(name, a)
	}
	return out
}

// limitedLive is what may be known of the live objects: those that the pipelines name, and
// those of the scope.
func (in *Input) limitedLive() *appset.Live {
	return in.Scope.LimitLive(in.Live, func(s appset.LiveSet) bool {
		return slices.ContainsFunc(in.Pipelines, func(p *pipeline.Pipeline) bool {
			return slices.ContainsFunc(p.Spec.ApplicationSets, func(e pipeline.ApplicationSetSource) bool {
				return e.Live != nil && cmp.Or(e.Live.ArgoCD, in.Main) == s.ArgoCD && e.Live.Namespace == s.Namespace &&
					e.Live.Name == s.Name
			})
		})
	})
}

// mayOpen says that a tree may read a repository at a revision: this one, whose readers may read
// its other branches too, and those of the scope.
func (in *Input) mayOpen(repoURL, revision string) bool {
	here := slices.ContainsFunc(in.RepoURLs, func(u string) bool { return appset.SameRepository(u, repoURL) })
	return in.OpenExternal != nil && (here || in.Scope.ReadsRepository(repoURL, revision))
}

// Resolution is what a tree stands for. Maps and lists are never nil.
type Resolution struct {
	Pipelines map[string]*Pipeline `json:"pipelines"` // by the pipeline's name, all that were asked for
}

// Pipeline is one pipeline's part of a resolution.
type Pipeline struct {
	// TargetSet is what its ApplicationSets generate. Its targets come without
	// their Params: what those decide is decided.
	TargetSet *appset.TargetSet `json:"fleet"`
	// ChangedFiles holds, by [appset.Target.ID], every target that reads one of
	// Input.Changed, or would if it were there, with those paths, sorted.
	ChangedFiles map[string][]string `json:"changedFiles"`
	// Doubts are what could not be followed in the targets' files, so that
	// they count as reading more than they may; Reader is the target's ID.
	Doubts []deps.Problem `json:"doubts"`
}
