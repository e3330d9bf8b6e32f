package appset

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/yaml"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// The API's types of the generator library end with 2.14. Fields of newer ones come in two kinds.
// Those that are understood here are moved to where the types keep them until they are needed. The
// others are reported with the version that brought them.

const (
	// excludedPath begins a path of a git generator's files that is an exclusion.
	excludedPath = "\x00exclude:"
	// newerField begins the annotations that keep an Application's newer fields while
	// its templates are rendered; the field's place follows. Like the field itself, a
	// later template's goes over an earlier one's.
	newerField = "\x00newer:"
)

// newerFields are the fields that came after 2.14, by the end of their path, and when.
var newerFields = []struct {
	end   string
	since Version
}{
	{"pullRequest.values", Version{3, 0, 0}},
	{"kustomize.ignoreMissingComponents", Version{3, 0, 0}},
	{"kustomize.labelIncludeTemplates", Version{3, 0, 0}},
	{"git.files[].exclude", Version{3, 1, 0}},
	{"pullRequest.gitea.labels", Version{3, 1, 0}},
	{"syncPolicy.automated.enabled", Version{3, 1, 0}},
	{"pullRequest.continueOnRepoNotFoundError", Version{3, 2, 0}},
	{"pullRequest.filters[].titleMatch", Version{3, 2, 0}},
	{"strategy.deletionOrder", Version{3, 2, 0}},
	{"syncPolicy.retry.refresh", Version{3, 2, 0}},
	{"drySource.directory", Version{3, 3, 0}},
	{"drySource.helm", Version{3, 3, 0}},
	{"drySource.kustomize", Version{3, 3, 0}},
	{"drySource.plugin", Version{3, 3, 0}},
	{"scmProvider.gitea.excludeArchivedRepos", Version{3, 5, 0}},
	{"scmProvider.github.excludeArchivedRepos", Version{3, 5, 0}},
	{"scmProvider.gitlab.includeArchivedRepos", Version{3, 5, 0}},
	{"source.tagPrefix", Version{3, 5, 0}},
	{"sources[].tagPrefix", Version{3, 5, 0}},
	{"syncSource.repoURL", Version{3, 5, 0}},
	{"oci", Version{3, 6, 0}},
	{"directory.disableExtensionFilter", Version{3, 6, 0}},
}

// newestLine is the line of Argo CD up to which newerFields has every field.
var newestLine = Version{3, 6, 0}

var indexForm = regexp.MustCompile(`\[\d+\]`)

// sinceWhen says with which line a field came; not known for one of no line.
func sinceWhen(field string) Version {
	field = indexForm.ReplaceAllString(field, "[]")
	for _, f := range newerFields {
		if field == f.end || strings.HasSuffix(field, "."+f.end) {
			return f.since
		}
	}
	return Version{}
}

// quotedField is the field in the decoder's message.
var quotedField = regexp.MustCompile(`unknown field "([^"]*)"`)

// explainUnknown says of a field that the types don't know where it comes from.
func explainUnknown(err error) error {
	found := quotedField.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	if since := sinceWhen(found[1]); since.IsKnown() {
		return fmt.Errorf("%w, which Argo CD has since %s", err, since)
	}
	return err
}

// templateField is the field that a decoder's error is about, where it is one of an Application's template
// that no Argo CD has up to newestLine.
func templateField(err error) (string, bool) {
	found := quotedField.FindStringSubmatch(err.Error())
	if found == nil || sinceWhen(found[1]).IsKnown() {
		return "", false
	}
	return found[1], strings.HasPrefix(found[1], "spec.template.") || strings.Contains(found[1], ".template.")
}

// checkDropped says that without what is dropped something is missing that the API server asks for.
func (as *appSet) checkDropped() error {
	if len(as.dropped) == 0 {
		return nil
	}
	missing := ""
	switch spec := &as.spec.Spec.Template.Spec; {
	case spec.Project == "":
		missing = "project"
	case spec.Destination == argov1alpha1.ApplicationDestination{}:
		missing = "destination"
	default:
		return nil
	}
	return fmt.Errorf("spec.template.spec.%s is missing, and %s is no field of Argo CD's: Kubernetes refuses the object", missing,
		as.dropped[0])
}

// refuseDropped refuses to drop fields for an Argo CD that may know them. It is newer than all that
// are known here, or an unknown one that runs the set.
func (as *appSet) refuseDropped(of Version, isLive bool) {
	mayKnow := of.Major > newestLine.Major || of.Major == newestLine.Major && of.Minor > newestLine.Minor
	if !of.IsKnown() {
		mayKnow = isLive
	}
	if len(as.dropped) > 0 && mayKnow && as.unknown == nil {
		as.unknown = fmt.Errorf("unknown field %q: this version of the resolver knows those of Argo CD up to %s, so the set is not "+
			"half-understood", as.dropped[0], newestLine)
	}
}

// droppedNotes name the fields that the API server drops.
func (as *appSet) droppedNotes(of Version) []Problem {
	var out []Problem
	for _, field := range as.dropped {
		message := fmt.Sprintf("no Argo CD has its field %s, which Kubernetes drops: the Applications are generated without it", field)
		if !of.IsKnown() {
			message = fmt.Sprintf("no Argo CD up to %s has its field %s, which Kubernetes drops: the Applications are generated without it",
				newestLine, field)
		}
		out = append(out, as.newProblem("", message))
	}
	return out
}

// movedField is a newer field that is understood.
type movedField struct {
	path  string
	since Version
}

// fieldMover moves the newer fields that are understood to where 2.14's types keep them.
type fieldMover struct{ moved []movedField }

func (f *fieldMover) recordMoved(path string) {
	f.moved = append(f.moved, movedField{path, sinceWhen(path)})
}

// moveFields rewrites a set's manifest; without a newer field it is returned as it is.
func (f *fieldMover) moveFields(raw []byte) ([]byte, error) {
	var set map[string]any
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, err
	}
	spec, _ := set["spec"].(map[string]any)
	if strategy, _ := spec["strategy"].(map[string]any); strategy["deletionOrder"] != nil {
		// It orders deletions: which Applications there are doesn't depend on it.
		delete(strategy, "deletionOrder")
		f.recordMoved("spec.strategy.deletionOrder")
	}
	f.moveTemplateFields(spec["template"], "spec.template")
	f.moveGeneratorFields(spec["generators"], "spec.generators")
	if len(f.moved) == 0 {
		return raw, nil
	}
	slices.SortFunc(f.moved, func(a, b movedField) int { return strings.Compare(a.path, b.path) })
	return json.Marshal(set)
}

// moveGeneratorFields goes through generators, and those that they combine.
func (f *fieldMover) moveGeneratorFields(list any, at string) {
	generators, _ := list.([]any)
	for i := range generators {
		generator, _ := generators[i].(map[string]any)
		for kind, value := range generator {
			inner, _ := value.(map[string]any)
			here := fmt.Sprintf("%s[%d].%s", at, i, kind)
			f.moveTemplateFields(inner["template"], here+".template")
			switch kind {
			case "matrix", "merge":
				f.moveGeneratorFields(inner["generators"], here+".generators")
			case "git":
				f.moveExclusions(inner["files"], here+".files")
			}
		}
	}
}

// moveExclusions marks the paths that exclude files.
func (f *fieldMover) moveExclusions(list any, at string) {
	files, _ := list.([]any)
	for i := range files {
		file, _ := files[i].(map[string]any)
		exclude, isBool := file["exclude"].(bool)
		path, isText := file["path"].(string)
		if !isBool || !isText {
			continue
		}
		delete(file, "exclude")
		if exclude {
			file["path"] = excludedPath + path
		}
		f.recordMoved(fmt.Sprintf("%s[%d].exclude", at, i))
	}
}

// understoodFields are an Application's newer fields that change nothing of what it
// reads, below its spec.
var understoodFields = [][]string{{"syncPolicy", "automated", "enabled"}, {"syncPolicy", "retry", "refresh"},
	{"sourceHydrator", "syncSource", "repoURL"}}

// hydratedRepository is where the source hydrator writes to, where that is another repository.
const hydratedRepository = "sourceHydrator.syncSource.repoURL"

// understoodValue is the text of an understood field's value; not of one of another type.
func understoodValue(path []string, value any) (string, bool) {
	if strings.Join(path, ".") == hydratedRepository {
		text, ok := value.(string)
		return text, ok
	}
	flag, ok := value.(bool)
	return fmt.Sprint(flag), ok
}

// moveTemplateFields moves the fields of an Application's template, or of a patch of
// one, to its annotations.
func (f *fieldMover) moveTemplateFields(template any, at string) {
	object, _ := template.(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	for _, path := range understoodFields {
		parent := lookupMap(spec, path[:len(path)-1])
		value, ok := understoodValue(path, parent[path[len(path)-1]])
		if !ok {
			continue
		}
		delete(parent, path[len(path)-1])
		setAnnotation(object, newerField+strings.Join(path, "."), value)
		f.recordMoved(at + ".spec." + strings.Join(path, "."))
	}
}

func lookupMap(at map[string]any, path []string) map[string]any {
	for _, name := range path {
		at, _ = at[name].(map[string]any)
	}
	return at
}

func setAnnotation(object map[string]any, key, value string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// movePatchFields does the same for a rendered templatePatch. One that isn't YAML is
// left to the library, whose error is the controller's.
func movePatchFields(patch string) string {
	if !strings.Contains(patch, "enabled") && !strings.Contains(patch, "refresh") && !strings.Contains(patch, "syncSource") {
		return patch
	}
	var object map[string]any
	if err := kyaml.Unmarshal([]byte(patch), &object); err != nil {
		return patch
	}
	m := fieldMover{}
	m.moveTemplateFields(object, "spec.templatePatch")
	if len(m.moved) == 0 {
		return patch
	}
	moved, err := json.Marshal(object)
	if err != nil {
		return patch
	}
	return string(moved)
}

// takeNewerFields takes an Application's newer fields out of its annotations again.
func takeNewerFields(app *argov1alpha1.Application) map[string]string {
	some := false
	for key := range app.Annotations {
		some = some || strings.HasPrefix(key, newerField)
	}
	if !some {
		return nil
	}
	var out, rest = map[string]string{}, map[string]string{}
	for key, value := range app.Annotations {
		if path, newer := strings.CutPrefix(key, newerField); newer {
			out[path] = value
		} else {
			rest[key] = value
		}
	}
	if app.Annotations = rest; len(rest) == 0 { // the map of before is the template's
		app.Annotations = nil
	}
	return out
}

// splitLiveSpec takes the newer fields out of a live Application's spec; nil where there
// are none.
func splitLiveSpec(raw json.RawMessage) (known []byte, newer map[string]string, err error) {
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, nil, err
	}
	for _, path := range understoodFields {
		last := path[len(path)-1]
		parent := lookupMap(spec, path[:len(path)-1])
		value, ok := understoodValue(path, parent[last])
		if !ok {
			continue
		}
		delete(parent, last)
		if newer == nil {
			newer = map[string]string{}
		}
		newer[strings.Join(path, ".")] = value
	}
	known, err = json.Marshal(spec)
	return known, newer, err
}

// autoSyncs says that Argo CD syncs an Application without being told to.
func (g *generatedApp) autoSyncs() bool {
	enabled, said := g.newer["syncPolicy.automated.enabled"]
	return g.app.Spec.SyncPolicy != nil && g.app.Spec.SyncPolicy.Automated != nil && (enabled == "true" || !said)
}

// asMap is the Application as a file would hold it, newer fields included.
func (g *generatedApp) asMap() (map[string]any, error) {
	object, err := asMap(g.app)
	if err != nil {
		return nil, err
	}
	spec, _ := object["spec"].(map[string]any)
	for path, value := range g.newer {
		words := strings.Split(path, ".")
		if parent := lookupMap(spec, words[:len(words)-1]); parent != nil && path == hydratedRepository {
			parent[words[len(words)-1]] = value
		} else if parent != nil {
			parent[words[len(words)-1]] = value == "true"
		}
	}
	return object, nil
}

// settleVersion says for which version a set is resolved: that of the Argo CD that runs it. Where
// that isn't known, it is the oldest version that knows the set's fields.
func (as *appSet) settleVersion(of Version) {
	as.version = of
	for _, f := range as.moved {
		switch {
		case !of.IsKnown() && !as.version.atLeast(f.since):
			as.version = f.since
		case of.IsKnown() && !of.atLeast(f.since) && as.unknown == nil:
			as.unknown = fmt.Errorf("its field %s came with Argo CD %s, and this one is %s: it doesn't know it", f.path, f.since, of)
		}
	}
}

// versionNotes say what of a set depends on an Argo CD's version that isn't known, and what no version knows.
func (as *appSet) versionNotes(of Version) []Problem {
	out := as.droppedNotes(of)
	if as.unknown != nil {
		out = nil
	}
	if of.IsKnown() {
		return out
	}
	note := func(format string, args ...any) {
		out = append(out, as.newProblem("", fmt.Sprintf(format, args...)+
			"; say which Argo CD it is: --argocd-version, or argocd[].version in the server's file"))
	}
	for _, f := range as.moved {
		note("its field %s came with Argo CD %s, so it is resolved as %s does", f.path, f.since, as.version)
	}
	if !as.version.appliesNestedSelectors() && as.hasDisabledSelectors() {
		note("it has selectors within a nested matrix or merge, which Argo CD applies since 3.0 and older ones don't; they are not " +
			"applied here")
	}
	return out
}

// hasDisabledSelectors says that it depends on the version whether a selector counts.
func (as *appSet) hasDisabledSelectors() bool {
	if as.spec.Spec.ApplyNestedSelectors {
		return false
	}
	all := &argov1alpha1.ApplicationSet{}
	all.Spec.ApplyNestedSelectors = true
	found := false
	inspect := func(list []argov1alpha1.ApplicationSetNestedGenerator) {
		for i := range list {
			if list[i].Matrix == nil && list[i].Merge == nil {
				continue
			}
			g, err := newChildGenerator(&list[i], all)
			if err != nil {
				continue // which is told where it is run
			}
			if g.Matrix != nil {
				found = found || slices.ContainsFunc(g.Matrix.Generators, hasSelector)
			}
			if g.Merge != nil {
				found = found || slices.ContainsFunc(g.Merge.Generators, hasSelector)
			}
		}
	}
	for _, g := range as.spec.Spec.Generators {
		if g.Matrix != nil {
			inspect(g.Matrix.Generators)
		}
		if g.Merge != nil {
			inspect(g.Merge.Generators)
		}
	}
	return found
}

func hasSelector(g argov1alpha1.ApplicationSetNestedGenerator) bool { return g.Selector != nil }
