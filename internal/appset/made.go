package appset

import (
	"encoding/json"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	argoutil "github.com/argoproj/argo-cd/v2/util/argo"
)

// made is one target with what it was made of, before it is known which of
// the set's others there are.
type made struct {
	params   map[string]any
	hash     uint64   // of params
	files    []string // that they came of
	over     string   // the generator's own template
	target   Target
	problems []string
	project  string // as the template gave it
}

// maker describes a generation's Applications as targets, and lets them go.
type maker struct {
	in     *Input
	set    *set
	entry  *entry
	here   func(url string) bool
	recall *recall

	all     []*made
	open    []int             // places in all whose Applications are being rendered
	over    string            // the template of the generator at hand
	strings map[string]string // each once, since most targets have most in common
}

func newMaker(in *Input, s *set, e *entry, c *commit, recall *recall) *maker {
	known := map[string]bool{}
	return &maker{in: in, set: s, entry: e, recall: recall, strings: map[string]string{}, here: func(url string) bool {
		is, asked := known[url]
		if !asked {
			is = c.here(url)
			known[url] = is
		}
		return is
	}}
}

func (m *maker) begin(over *argov1alpha1.ApplicationSetTemplate) {
	raw, err := json.Marshal(over)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	m.over = string(raw)
}

func (m *maker) known(params map[string]any, files []string) bool {
	old := m.recall.target(m.over, params, files)
	if old == nil {
		m.open = append(m.open, len(m.all))
	}
	m.all = append(m.all, old)
	return old != nil
}

func (m *maker) take(g *generated) {
	at := m.open[0]
	m.open = m.open[1:]
	out := &made{params: g.params, hash: hashMap(g.params), files: g.files, over: m.over, project: m.once(g.app.Spec.Project)}
	// As the controller does before it writes the Application.
	g.app.Spec = *argoutil.NormalizeApplicationSpec(&g.app.Spec)
	var o outcome
	out.target = m.entry.target(m.in, m.set, g, m.here, &o)
	for _, p := range o.problems {
		out.problems = append(out.problems, p.Message)
	}
	t := &out.target
	for _, s := range []*string{&t.Namespace, &t.Project, &t.Component, &t.Environment, &t.Server, &t.Cluster, &t.DestNS} {
		*s = m.once(*s)
	}
	for i := range t.Sources {
		t.Sources[i].RepoURL, t.Sources[i].TargetRevision = m.once(t.Sources[i].RepoURL), m.once(t.Sources[i].TargetRevision)
	}
	m.all[at] = out
	m.recall.keepTarget(out)
}

// once gives equal strings the same bytes.
func (m *maker) once(s string) string {
	if have, there := m.strings[s]; there {
		return have
	}
	m.strings[s] = s
	return s
}
