package appset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// OtherRevision is what a target follows instead of the branch that files are edited on, such
// as a tag: a merge doesn't reach it. Empty where one of its sources does follow that branch,
// where none is in this repository, and where the edit is in what its revision is made from.
func (t *Target) OtherRevision(branch string, files []string) string {
	if slices.ContainsFunc(files, t.IsGeneratedFrom) {
		return ""
	}
	out := ""
	for i := range t.Sources {
		s := &t.Sources[i]
		if !s.Here {
			continue
		}
		if s.readAt(branch, branch) {
			return ""
		}
		out = s.TargetRevision
	}
	return out
}

// IsCreatedOnly says that edits of these files change the definition of a target's Application, but
// that the ApplicationSet's controller leaves Applications as it created them. A merge doesn't
// reach such a target.
func (t *Target) IsCreatedOnly(files []string) bool {
	return t.Policy.NoUpdate && slices.ContainsFunc(files, t.IsGeneratedFrom)
}

// floatingRevision is a range of versions, or a name that moves, instead of one version of a chart
// or of an artifact in a registry. It is empty where it is one version. It looks only at a target
// that has nothing in this repository: nothing but this revision says what that target deploys.
func (t *Target) floatingRevision() string {
	for i := range t.Sources {
		if t.Sources[i].Here {
			return ""
		}
	}
	for i := range t.Sources {
		s := &t.Sources[i]
		if s.Chart == "" && !strings.HasPrefix(s.RepoURL, "oci://") {
			continue
		}
		v := s.TargetRevision
		isRange := strings.ContainsAny(v, "*^~<>=|, ") || strings.HasSuffix(v, ".x")
		if isRange || slices.Contains([]string{"", "latest", "HEAD"}, v) {
			return cmp.Or(v, "the newest version")
		}
	}
	return ""
}

// maxUnreachedNames bounds the targets that one problem names.
const maxUnreachedNames = 8

// UnreachedTargets say which of a pipeline's targets no merge into the tracked branch reaches: they
// follow something else that has no carried field, or are never updated. It also names the targets
// whose deployed content can't be proven. All targets of an ApplicationSet in an environment with
// the same reason are one problem. It returns none where the environments have branches of their
// own: there the resolver reports such a target. It also returns none where the tracked branch
// isn't known (branch is empty).
func UnreachedTargets(p *pipeline.Pipeline, targets []Target, branch string) []Problem {
	if branch == "" {
		return nil
	}
	type group struct{ file, set, environment, what, why string }
	names := map[group][]string{}
	var order []group
	add := func(t *Target, what, why string) {
		g := group{t.ApplicationSetFile, t.ApplicationSet, t.Environment, what, why}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], t.Name)
	}
	for i := range targets {
		t := &targets[i]
		if !t.Managed() || t.Branch != "" {
			continue
		}
		if v := t.OtherRevision(branch, carriedGenerators(p, t, t.revisionKeys()...)); v != "" {
			add(t, "targetRevision is "+v, fmt.Sprintf("a merge into %s doesn't reach it; let it follow %[1]s, or carry the field that "+
				"its targetRevision is made from", branch))
		} else if t.IsCreatedOnly(carriedGenerators(p, t)) {
			add(t, "its ApplicationSet only creates Applications and never updates them (applicationsSync, or the controller's policy)",
				fmt.Sprintf("what a merge into %s changes in what they are generated from doesn't reach them; let the policy update, or "+
					"carry fields in files that they deploy", branch))
		} else if v := t.floatingRevision(); v != "" {
			add(t, "targetRevision is "+v, "which version that is at a time isn't in Git, so it can't be proven that it deploys what was "+
				"verified before; name one version")
		}
	}
	var out []Problem
	for _, g := range order {
		out = append(out, Problem{File: g.file, ApplicationSet: g.set,
			Message: fmt.Sprintf("%s in %s: %s: %s", wording.JoinFew(names[g], maxUnreachedNames), g.environment, g.what, g.why)})
	}
	return out
}

// carriedGenerators are those of the files that a target is generated from in which fields of
// the pipeline's carry may be; with keys, fields under one of these.
func carriedGenerators(p *pipeline.Pipeline, t *Target, keys ...string) []string {
	return slices.DeleteFunc(append(slices.Concat(t.GeneratorFiles, t.SetFiles), t.ApplicationSetFile), func(file string) bool {
		return !p.MayCarryFrom(file, t.Environment, t.Component, keys...)
	})
}

// revisionKeys are the keys of the parameters that a target's revisions may be made from, as their
// values tell, and the revision's own in an ApplicationSet.
func (t *Target) revisionKeys() []string {
	keys := []string{"targetRevision"}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, below := range v {
				walk(name, below)
			}
		case []any:
			for _, below := range v {
				walk(key, below)
			}
		default:
			text := fmt.Sprint(v)
			if text != "" && slices.ContainsFunc(t.Sources, func(s Source) bool { return strings.Contains(s.TargetRevision, text) }) {
				keys = append(keys, key[strings.LastIndex(key, ".")+1:])
			}
		}
	}
	walk("", t.Params)
	return SortedUnique(keys)
}
