package render

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// External is what a target is made of that isn't in the tree that is rendered: a revision of
// another repository, or a version of a chart.
type External struct {
	RepoURL string `json:"repoURL"`         // of a Git, Helm or OCI repository
	Chart   string `json:"chart,omitempty"` // its name; empty: the repository is Git's
	// Revision is a branch, tag or commit, or a chart's version or a range of them; empty is
	// the default branch, or the newest version.
	Revision string `json:"revision,omitempty"`
}

// OpenExternal gives the files of an external, or says for people why it doesn't. A chart is a tree
// whose only file is [PackedChart], or its folder. It may be called concurrently.
type OpenExternal func(ctx context.Context, e External) (Tree, error)

// PackedChart is the name of the one file of a tree that has a chart as repositories have it.
const PackedChart = "chart.tgz"

const (
	// maxExternals bounds what one target may be made of beside its tree.
	maxExternals = 50
	// maxExternalRounds bounds how often a target is rendered to find out what it is made of: a
	// remote base has bases of its own.
	maxExternalRounds = 8
	// externalMark begins the names of externals in Input.Branches and ReadSet.Branches. No
	// branch's name has a colon.
	externalMark = "external:"
)

// key is the name in Input.Branches.
func (e External) key() string {
	text, err := json.Marshal(e)
	if err != nil {
		return "" // three strings are always JSON
	}
	return externalMark + string(text)
}

// parseExternal is the external that a name stands for.
func parseExternal(key string) (e External, ok bool) {
	text, ok := strings.CutPrefix(key, externalMark)
	return e, ok && json.Unmarshal([]byte(text), &e) == nil
}

// external is what a source that isn't in the tree is read of.
func (s *Source) external() External {
	return External{RepoURL: s.RepoURL, Chart: s.Chart, Revision: s.TargetRevision}
}

// Externals are those that the sources name themselves.
func (in *Input) Externals() []External { return listExternals(in) }

// AddExternal gives an input an external's files.
func (in *Input) AddExternal(e External, tree Tree) {
	trees := make(map[string]Tree, len(in.Branches)+1)
	for name, t := range in.Branches {
		trees[name] = t
	}
	trees[e.key()] = tree
	in.Branches = trees
}

func listExternals(in *Input) []External {
	var out []External
	for i := range in.Sources {
		if s := &in.Sources[i]; !s.InTree && s.RepoURL != "" {
			out = append(out, s.external())
		}
	}
	return out
}

// newMissing is an Unrenderable that an external would help.
func newMissing(e External, reason string, remote ...string) *Unrenderable {
	u := newUnrenderable(reason, remote...)
	u.Externals = []External{e}
	return u
}

// externalOpener opens externals for the jobs of one call, each once.
type externalOpener struct {
	open   OpenExternal
	opened map[External]openedExternal
}

type openedExternal struct {
	tree Tree
	err  error
}

func (eo *externalOpener) get(ctx context.Context, e External) (Tree, error) {
	found, known := eo.opened[e]
	if !known {
		found.tree, found.err = eo.open(ctx, e)
		eo.opened[e] = found
	}
	return found.tree, found.err
}

// addTo opens an external for an input, whose map of trees is replaced. That it can't be had is
// said where it is missed.
func (eo *externalOpener) addTo(ctx context.Context, in *Input, wanted []External) (added bool) {
	for _, e := range wanted {
		key := e.key()
		if _, there := in.Branches[key]; there || len(in.Branches) >= maxExternals {
			continue
		}
		tree, err := eo.get(ctx, e)
		if err != nil {
			continue
		}
		in.AddExternal(e, tree)
		added = true
	}
	return added
}

// explain adds to an outcome that misses externals why they can't be had.
func (eo *externalOpener) explain(out *Outcome) {
	var u *Unrenderable
	if !errors.As(out.Err, &u) {
		return
	}
	for _, e := range u.Externals {
		if found, known := eo.opened[e]; known && found.err != nil {
			out.Err = &Unrenderable{Source: u.Source, Reason: u.Reason + ": " + clipError(found.err).Error(), Remote: u.Remote,
				Externals: u.Externals}
			return
		}
	}
}

// missedExternals are those that an outcome lacks.
func missedExternals(out *Outcome) []External {
	var u *Unrenderable
	if out.Err == nil || !errors.As(out.Err, &u) {
		return nil
	}
	return u.Externals
}

// listExternals are those that a rendering was made of, in a fixed order.
func (r *ReadSet) listExternals() []External {
	var out []External
	for name := range r.Branches {
		if e, ok := parseExternal(name); ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b External) int { return strings.Compare(a.key(), b.key()) })
	return out
}
