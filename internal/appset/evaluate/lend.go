package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/sandbox"
)

// What a child may borrow: trees whose names are lists of words, the first of
// them one of these. Answers that are not trees are trees of one file.
const (
	lentCommit       = "commit"       // repository, revision → a commit
	lentTree         = "tree"         // repository, revision → that commit's tree
	lentEdited       = "edited"       // branch, commit → the tree of the branch that the change is made on
	lentApplications = "applications" // argocd, namespace, ApplicationSet → a list of Applications
	lentSelected     = "selected"     // argocd, namespace, selector → likewise
)

// borrower is the child's side.
type borrower struct{ trees sandbox.Trees }

func (b borrower) tree(ctx context.Context, words ...string) (fs.FS, error) {
	name, err := json.Marshal(words)
	if err != nil {
		return nil, fmt.Errorf("asking for %q: %w", words, err)
	}
	return b.trees.Named(ctx, string(name))
}

func (b borrower) answer(ctx context.Context, words ...string) ([]byte, error) {
	tree, err := b.tree(ctx, words...)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(tree, words[0])
}

func (b borrower) other(ctx context.Context, repoURL, revision string) (*appset.Elsewhere, error) {
	commit, err := b.answer(ctx, lentCommit, repoURL, revision)
	if err != nil {
		return nil, err
	}
	tree, err := b.tree(ctx, lentTree, repoURL, revision)
	if err != nil {
		return nil, err
	}
	return &appset.Elsewhere{Tree: tree, Commit: string(commit)}, nil
}

func (b borrower) applications(ctx context.Context, argocd, namespace, set string) ([]json.RawMessage, error) {
	return b.list(ctx, lentApplications, argocd, namespace, set)
}

func (b borrower) selected(ctx context.Context, argocd, namespace, selector string) ([]json.RawMessage, error) {
	return b.list(ctx, lentSelected, argocd, namespace, selector)
}

func (b borrower) list(ctx context.Context, words ...string) ([]json.RawMessage, error) {
	data, err := b.answer(ctx, words...)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("reading the live Applications: %w", err)
	}
	return out, nil
}

// lender is the parent's side. It lends what the caller's functions give, and
// of live Applications only those that the caller's own pipelines and sets
// name: which Applications there are is nothing for every author to ask.
type lender struct {
	in      *Input
	answers map[string]*appset.Elsewhere // by the words after the first
}

// errNotLent is the answer to what no child of ours would ask.
var errNotLent = errors.New("it is not lent to a process that evaluates")

// lend opens what a name says. A run asks one question at a time.
func (l *lender) lend(ctx context.Context, name string) (fs.FS, error) {
	var words []string
	if err := json.Unmarshal([]byte(name), &words); err != nil || len(words) < 3 {
		return nil, errNotLent
	}
	switch what, words := words[0], words[1:]; {
	case len(words) == 2 && (what == lentCommit || what == lentTree) && l.in.Other != nil:
		e, err := l.other(ctx, words[0], words[1])
		if err != nil {
			return nil, err
		}
		if what == lentTree {
			return e.Tree, nil
		}
		return oneFile{what, []byte(e.Commit)}, nil
	case what == lentEdited && len(words) == 2 && l.in.On != "" && words[0] == l.in.On && words[1] == l.in.Edited.Commit:
		return l.in.Edited.Tree, nil
	case len(words) == 3 && what == lentApplications && l.in.Live != nil && l.in.Live.Applications != nil && l.names(words):
		return l.list(what, words, func() ([]json.RawMessage, error) {
			return l.in.Live.Applications(ctx, words[0], words[1], words[2])
		})
	case len(words) == 3 && what == lentSelected && l.in.Live != nil && l.in.Live.Selected != nil && l.selects(words):
		return l.list(what, words, func() ([]json.RawMessage, error) {
			return l.in.Live.Selected(ctx, words[0], words[1], words[2])
		})
	}
	return nil, errNotLent
}

func (l *lender) other(ctx context.Context, repoURL, revision string) (*appset.Elsewhere, error) {
	key := repoURL + "\x00" + revision
	if e := l.answers[key]; e != nil {
		return e, nil
	}
	e, err := l.in.Other(ctx, repoURL, revision)
	if err == nil {
		l.answers[key] = e
	}
	return e, err
}

// names says whether the words are those of a live ApplicationSet.
func (l *lender) names(words []string) bool {
	return slices.ContainsFunc(l.in.Live.Sets, func(s appset.LiveSet) bool {
		return s.ArgoCD == words[0] && s.Namespace == words[1] && s.Name == words[2]
	})
}

// selects says whether the words are those of a pipeline's applications.
func (l *lender) selects(words []string) bool {
	for _, p := range l.in.Pipelines {
		for i := range p.Spec.Applications {
			a := p.Spec.Applications[i].Live
			if a != nil && cmp.Or(a.ArgoCD, l.in.Main) == words[0] && a.Namespace == words[1] && a.Selector == words[2] {
				return true
			}
		}
	}
	return false
}

func (l *lender) list(what string, words []string, ask func() ([]json.RawMessage, error)) (fs.FS, error) {
	found, err := ask()
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
	return oneFile{what, data}, nil
}

// oneFile is a tree of one file.
type oneFile struct {
	name string
	data []byte
}

// Open opens the file, or the root.
func (f oneFile) Open(name string) (fs.File, error) {
	switch name {
	case ".", f.name:
		return &openOne{Reader: bytes.NewReader(f.data), tree: f, root: name == "."}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// openOne is the file, or the root; and what describes it.
type openOne struct {
	*bytes.Reader
	tree oneFile
	root bool
	read bool // the root's one entry was
}

func (o *openOne) Stat() (fs.FileInfo, error) { return o, nil }
func (o *openOne) Close() error               { return nil }
func (o *openOne) Size() int64                { return int64(len(o.tree.data)) }
func (o *openOne) ModTime() time.Time         { return time.Time{} }
func (o *openOne) IsDir() bool                { return o.root }
func (o *openOne) Sys() any                   { return nil }

func (o *openOne) Name() string {
	if o.root {
		return "."
	}
	return o.tree.name
}

func (o *openOne) Mode() fs.FileMode {
	if o.root {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ReadDir lists the root.
func (o *openOne) ReadDir(n int) ([]fs.DirEntry, error) {
	if o.read {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	o.read = true
	return []fs.DirEntry{fs.FileInfoToDirEntry(&openOne{tree: o.tree})}, nil
}
