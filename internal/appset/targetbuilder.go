package appset

import (
	"encoding/json"
	"slices"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	argoutil "github.com/argoproj/argo-cd/v2/util/argo"
)

// builtTarget is one target with what it was made of, before it is known which of
// the set's others there are.
type builtTarget struct {
	params   map[string]any
	hash     uint64   // of params
	files    []string // that they came of
	over     string   // the generator's own template
	target   Target
	problems []string
	project  string // as the template gave it
}

// targetBuilder describes a generation's Applications as targets, and lets them go.
type targetBuilder struct {
	in    *Input
	set   *appSet
	entry *pipelineEntry
	here  func(url string) bool
	cache *resultCache

	all     []*builtTarget
	pending []int             // places in all whose Applications are being rendered
	over    string            // the template of the generator at hand
	strings map[string]string // each once, since most targets have most in common
}

func newTargetBuilder(in *Input, s *appSet, e *pipelineEntry, c *commit, cache *resultCache) *targetBuilder {
	known := map[string]bool{}
	return &targetBuilder{in: in, set: s, entry: e, cache: cache, strings: map[string]string{}, here: func(url string) bool {
		is, checked := known[url]
		if !checked {
			is = c.isThisRepository(url)
			known[url] = is
		}
		return is
	}}
}

func (tb *targetBuilder) beginGenerator(over *argov1alpha1.ApplicationSetTemplate, n int) {
	raw, err := json.Marshal(over)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	tb.over = string(raw)
	tb.cache.expectTargets(n)
	tb.all = slices.Grow(tb.all, n)
}

func (tb *targetBuilder) isKnown(params map[string]any, files []string) bool {
	old := tb.cache.findTarget(tb.over, params, files)
	if old == nil {
		tb.pending = append(tb.pending, len(tb.all))
	}
	tb.all = append(tb.all, old)
	return old != nil
}

func (tb *targetBuilder) addApplication(g *generatedApp) {
	at := tb.pending[0]
	tb.pending = tb.pending[1:]
	out := &builtTarget{params: g.params, hash: hashMap(g.params), files: g.files, over: tb.over,
		project: tb.internString(g.app.Spec.Project)}
	// As the controller does before it writes the Application.
	normalizeSpec(&g.app.Spec, tb.set.version)
	var o setOutcome
	out.target = tb.entry.buildTarget(tb.in, tb.set, g, tb.here, &o)
	for _, p := range o.problems {
		out.problems = append(out.problems, p.Message)
	}
	t := &out.target
	for _, s := range []*string{&t.Namespace, &t.Project, &t.Component, &t.Environment, &t.Server, &t.Cluster, &t.DestNS} {
		*s = tb.internString(*s)
	}
	for i := range t.Sources {
		t.Sources[i].RepoURL, t.Sources[i].TargetRevision = tb.internString(t.Sources[i].RepoURL),
			tb.internString(t.Sources[i].TargetRevision)
	}
	tb.all[at] = out
	tb.cache.storeTarget(out)
}

// readsMetadata says that the manifest is wanted, or that one of the pipeline's templates
// may look at it.
func (tb *targetBuilder) readsMetadata() bool {
	reads := func(a *assigner) bool { return a != nil && a.usesApplication }
	return tb.in.Manifests || reads(tb.entry.component) || reads(tb.entry.environment)
}

// normalizeSpec normalizes as the controller does, whose own way copies all there is. All below the
// specification's top level is shared with others, so it is replaced and not written to.
func normalizeSpec(spec *argov1alpha1.ApplicationSpec, v Version) {
	if spec.Project == "" {
		spec.Project = argov1alpha1.DefaultAppProjectName
	}
	if spec.SyncPolicy.IsZero() {
		spec.SyncPolicy = nil
	}
	switch {
	case len(spec.Sources) > 0 && v.normalizesSources():
		spec.Sources = slices.Clone(spec.Sources)
		for i := range spec.Sources {
			argoutil.NormalizeSource(&spec.Sources[i])
		}
	case len(spec.Sources) == 0 && spec.Source != nil:
		own := *spec.Source
		spec.Source = argoutil.NormalizeSource(&own)
	}
}

// internString gives equal strings the same bytes.
func (tb *targetBuilder) internString(s string) string {
	if have, there := tb.strings[s]; there {
		return have
	}
	tb.strings[s] = s
	return s
}
