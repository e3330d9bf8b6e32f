package evaluate

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// A worker may read these of its parent: trees whose names are lists of words, the first of them
// one of these. Answers that are not trees are trees of one file.
const (
	servedCommit       = "commit"       // repository, revision → a commit
	servedTree         = "tree"         // repository, revision → that commit's tree
	servedEdited       = "edited"       // branch, commit → the tree of the branch that the change is made on
	servedApplications = "applications" // argocd, namespace, ApplicationSet → a list of Applications
	servedSelected     = "selected"     // argocd, namespace, selector → likewise
)

// fileClient is the worker's side.
type fileClient struct{ trees sandbox.Trees }

func (f fileClient) fetchTree(ctx context.Context, words ...string) (fs.FS, error) {
	name, err := json.Marshal(words)
	if err != nil {
		return nil, fmt.Errorf("asking for %q: %w", words, err)
	}
	return f.trees.Named(ctx, string(name))
}

func (f fileClient) fetchFile(ctx context.Context, words ...string) ([]byte, error) {
	tree, err := f.fetchTree(ctx, words...)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(tree, words[0])
}

func (f fileClient) openExternal(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
	commit, err := f.fetchFile(ctx, servedCommit, repoURL, revision)
	if err != nil {
		return nil, err
	}
	tree, err := f.fetchTree(ctx, servedTree, repoURL, revision)
	if err != nil {
		return nil, err
	}
	return &appset.ExternalRef{Tree: tree, Commit: string(commit)}, nil
}

// listFunc lists live Applications, as [appset.Live] has it.
type listFunc = func(ctx context.Context, argocd, namespace, which string) ([]json.RawMessage, error)

// lister asks the parent for one kind of lists, where it serves them.
func (f fileClient) lister(what string, served bool) listFunc {
	if !served {
		return nil
	}
	return func(ctx context.Context, argocd, namespace, which string) ([]json.RawMessage, error) {
		data, err := f.fetchFile(ctx, what, argocd, namespace, which)
		if err != nil {
			return nil, err
		}
		var out []json.RawMessage
		if err := json.Unmarshal(data, &out); err != nil {
			return nil, fmt.Errorf("reading the live Applications: %w", err)
		}
		return out, nil
	}
}

// fileServer is the parent's side. It serves the caller's functions within the caller's scope. It
// serves only the live Applications that the caller's own pipelines and sets name: not every author
// may know which Applications there are.
type fileServer struct {
	in        *Input                         // its Live is limited already
	externals map[string]*appset.ExternalRef // by the words after the first
}

// errNotServed is the answer to what no worker of ours would request.
var errNotServed = errors.New("it is not lent to a process that evaluates")

// serveTree opens what a name says. A run requests one tree at a time.
func (f *fileServer) serveTree(ctx context.Context, name string) (fs.FS, error) {
	var words []string
	if err := json.Unmarshal([]byte(name), &words); err != nil || len(words) < 3 {
		return nil, errNotServed
	}
	what, words := words[0], words[1:]
	isLive := len(words) == 3 && f.in.Live != nil
	switch {
	case len(words) == 2 && (what == servedCommit || what == servedTree) && f.in.mayOpen(words[0], words[1]):
		e, err := f.openExternal(ctx, words[0], words[1])
		if err != nil {
			return nil, err
		}
		if what == servedTree {
			return e.Tree, nil
		}
		return singleFile(what, []byte(e.Commit)), nil
	case what == servedEdited && len(words) == 2 && f.isEdited(words[0], words[1]):
		return f.in.Edited.Tree, nil
	case what == servedApplications && isLive && f.in.Live.Applications != nil && f.isKnownSet(words):
		return serveList(ctx, what, words, f.in.Live.Applications)
	case what == servedSelected && isLive && f.in.Live.Selected != nil && f.isKnownSelector(words):
		return serveList(ctx, what, words, f.in.Live.Selected)
	}
	return nil, errNotServed
}

func (f *fileServer) openExternal(ctx context.Context, repoURL, revision string) (*appset.ExternalRef, error) {
	key := repoURL + "\x00" + revision
	if e := f.externals[key]; e != nil {
		return e, nil
	}
	e, err := f.in.OpenExternal(ctx, repoURL, revision)
	if err == nil {
		f.externals[key] = e
	}
	return e, err
}

// isEdited says whether a branch's commit is what the change is made on.
func (f *fileServer) isEdited(branch, commit string) bool {
	return f.in.On != "" && branch == f.in.On && commit == f.in.Edited.Commit
}

// isKnownSet says whether the words are those of a live ApplicationSet.
func (f *fileServer) isKnownSet(words []string) bool {
	return slices.ContainsFunc(f.in.Live.Sets, func(s appset.LiveSet) bool {
		return s.ArgoCD == words[0] && s.Namespace == words[1] && s.Name == words[2]
	})
}

// isKnownSelector says whether the words are those of a pipeline's applications.
func (f *fileServer) isKnownSelector(words []string) bool {
	for _, p := range f.in.Pipelines {
		for i := range p.Spec.Applications {
			a := p.Spec.Applications[i].Live
			if a != nil && cmp.Or(a.ArgoCD, f.in.Main) == words[0] && a.Namespace == words[1] && a.Selector == words[2] {
				return true
			}
		}
	}
	return false
}

func serveList(ctx context.Context, what string, words []string, list listFunc) (fs.FS, error) {
	found, err := list(ctx, words[0], words[1], words[2])
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []json.RawMessage{}
	}
	data, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("writing the live Applications of %q: %w", words, err)
	}
	return singleFile(what, data), nil
}

// singleFile is a tree of one file.
func singleFile(name string, data []byte) fs.FS {
	return fieldedit.Apply(embed.FS{}, []fieldedit.Edit{{File: name, After: data, Mode: fieldedit.ModeRegular, Created: true}})
}
