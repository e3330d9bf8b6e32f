package appset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ViewFromBranch is a target as one branch of its repository sees it. Only the sources that are
// read at that branch are Here; the others say where they are read. Its generator files are those
// of that branch. tracked is the branch that the target was resolved at. A target of a pipeline
// whose environments have branches reads exactly what its sources' targetRevision says. In any
// other pipeline the tracked branch sees everything: a revision there is usually a pin, to a tag or
// a commit, that moves on.
func ViewFromBranch(t Target, branch, tracked string) Target {
	strict := t.Branch != "" || branch != tracked
	if strict && slices.ContainsFunc(t.Sources, func(s Source) bool { return s.Here && !s.readAt(branch, tracked) }) {
		t.Sources = slices.Clone(t.Sources)
		for i := range t.Sources {
			if s := &t.Sources[i]; s.Here && !s.readAt(branch, tracked) {
				s.Here, s.At = false, cmp.Or(BranchName(s.TargetRevision), tracked)
			}
		}
	}
	if branch == tracked {
		return t
	}
	t.ApplicationSetFile, t.SetFiles, t.GeneratorFile, t.GeneratorFiles = "", nil, "", nil
	for _, f := range t.BranchFiles {
		if f.Branch == branch {
			t.GeneratorFiles = append(t.GeneratorFiles, f.File)
		}
	}
	if len(t.GeneratorFiles) > 0 {
		t.GeneratorFile = t.GeneratorFiles[0]
	}
	return t
}

// TargetBranches are the branches of its repository that a target has something of,
// sorted: what [ViewFromBranch] sees something at. A tag or a commit is among them by its name.
func TargetBranches(t Target, tracked string) []string {
	var out []string
	for _, s := range t.Sources {
		if at := BranchName(s.TargetRevision); s.Here && at != "" {
			out = append(out, at)
		} else if s.Here {
			out = append(out, tracked)
		}
	}
	for _, f := range t.BranchFiles {
		out = append(out, f.Branch)
	}
	if t.Branch == "" || len(t.GeneratorFiles) > 0 {
		out = append(out, tracked)
	}
	return SortedUnique(out)
}

// readAt says that a source of this repository is read at the head of a branch.
func (s *Source) readAt(branch, tracked string) bool {
	at := BranchName(s.TargetRevision)
	return at == branch || at == "" && branch == tracked
}

// branchMismatch says what is wrong with a target of a pipeline whose environments have
// branches: it has nothing of the branch that its environment lives on. "" when
// it has.
func branchMismatch(t *Target, tracked string) string {
	if t.Branch == "" || !t.Managed() {
		return ""
	}
	on := ViewFromBranch(*t, t.Branch, tracked)
	if len(on.GeneratorFiles) > 0 || slices.ContainsFunc(on.Sources, func(s Source) bool { return s.Here }) {
		return ""
	}
	var at []string
	for _, s := range t.Sources {
		if s.Here {
			at = append(at, fmt.Sprintf("%q", s.TargetRevision))
		}
	}
	if len(at) == 0 {
		return fmt.Sprintf("nothing of it is on the branch %s, where environment %s lives: it has no source in this repository, and no "+
			"generator file of that branch; read its generator's files at revision: %s", t.Branch, t.Environment, t.Branch)
	}
	slices.Sort(at)
	return fmt.Sprintf("it follows targetRevision %s, and environment %s lives on the branch %s: let the ApplicationSet's template give "+
		"targetRevision: %s, or correct the environment's branch in the pipeline",
		strings.Join(slices.Compact(at), ", "), t.Environment, t.Branch, t.Branch)
}
