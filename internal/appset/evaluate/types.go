package evaluate

import (
	"context"
	"io/fs"
	"maps"

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

	// On is the branch that the change is made on, where it isn't Branch but one
	// that an environment lives on: then the tree, which has the ApplicationSets,
	// is not what changes, and Edited is that branch before or after the change.
	On     string
	Edited appset.ExternalRef `json:"-"`

	// The others are as in [appset.Input]. There are no Generators: those that ask
	// the network would do it with our tokens at addresses that a stranger
	// wrote. Sets with such generators are problems, in this process as in a worker,
	// so that base and head can be compared; an ArgoCD's Kube is not used either.
	Clusters     []appset.Cluster // nil: not known
	Projects     []string         // nil: not known
	Globbing     string
	Version      appset.Version
	ArgoCDs      map[string]appset.ArgoCD
	Main         string
	Live         *appset.Live                                                                     `json:"-"`
	OpenExternal func(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) `json:"-"`

	// Manifests asks for every target's Application.
	Manifests bool
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
		out[name] = a
	}
	return out
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
	ChangedFiles map[string][]string `json:"touched"`
	// Doubts are what could not be followed in the targets' files, so that
	// they count as reading more than they may; Reader is the target's ID.
	Doubts []deps.Problem `json:"doubts"`
}
