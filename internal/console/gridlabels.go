package console

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxLabelHints bounds the labels that the filter's field offers.
	maxLabelHints = 100
	// maxHintedValues is up to how many values a label may have to be offered: one with more
	// names components rather than teams.
	maxHintedValues = 30
	// maxSelector bounds a selector, in bytes.
	maxSelector = 300
)

// labelSelector chooses targets by their Applications' labels, as `kubectl get -l` does. The
// zero value chooses all.
type labelSelector struct {
	parsed labels.Selector // nil: there is none, or it can't be read
	// Problem is why the text can't be read; empty: it can.
	Problem string
}

func parseLabelSelector(text string) (s labelSelector) {
	switch {
	case text == "":
		return s
	case len(text) > maxSelector:
		s.Problem = "it is too long"
		return s
	}
	parsed, err := labels.Parse(text)
	if err != nil {
		s.Problem = wording.ClipRunes(err.Error(), 200)
		return s
	}
	s.parsed = parsed
	return s
}

// chooses says whether one of some targets is chosen.
func (l *labelSelector) chooses(targets []api.Target) bool {
	return l.parsed == nil || slices.ContainsFunc(targets, func(t api.Target) bool { return l.parsed.Matches(labels.Set(t.Labels)) })
}

// joinLabels are labels as a selector of each would be written, sorted.
func joinLabels(all map[string]string) []string {
	out := make([]string, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, key+"="+all[key])
	}
	return out
}

// listLabelHints lists the labels that group components, those of most of them first. Labels
// that nearly every component has another value of group nothing.
func listLabelHints(pipelines []pipelineUnits) []string {
	counts := map[string]int{} // components, by key and value
	for i := range pipelines {
		for _, u := range pipelines[i].units {
			for _, pair := range u.labels {
				counts[pair]++
			}
		}
	}
	values := map[string]int{} // by key
	for pair := range counts {
		key, _, _ := strings.Cut(pair, "=")
		values[key]++
	}
	type hint struct {
		pair  string
		count int
	}
	var all []hint
	for pair, n := range counts {
		if key, _, _ := strings.Cut(pair, "="); values[key] <= maxHintedValues {
			all = append(all, hint{pair, n})
		}
	}
	slices.SortFunc(all, func(a, b hint) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.pair, b.pair)) })
	var out []string
	for _, h := range all[:min(len(all), maxLabelHints)] {
		out = append(out, h.pair)
	}
	return out
}

// labelsOf are the labels of a component's targets, each once, sorted.
func labelsOf(c *api.Component) []string {
	var out []string
	for i := range c.Environments {
		for _, t := range c.Environments[i].Targets {
			out = append(out, joinLabels(t.Labels)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sharedLabel is a label that all targets of a component have, and where the others that have
// it are shown.
type sharedLabel struct{ Text, Link string }

// maxSharedLabels bounds the labels that a component's page shows.
const maxSharedLabels = 12

// listSharedLabels lists the labels that every target of a component has.
func (p *pages) listSharedLabels(c *api.Component) []sharedLabel {
	var shared map[string]string
	first := true // shared is nil also after a target without labels
	for i := range c.Environments {
		for _, t := range c.Environments[i].Targets {
			if first {
				shared, first = maps.Clone(t.Labels), false
			}
			maps.DeleteFunc(shared, func(key, value string) bool { return t.Labels[key] != value })
		}
	}
	var out []sharedLabel
	for _, text := range joinLabels(shared) {
		link := p.pipelineURL(c.Repository, c.Pipeline)
		separator := "?"
		if strings.Contains(link, "?") {
			separator = "&"
		}
		out = append(out, sharedLabel{text, link + separator + url.Values{"label": {text}}.Encode()})
	}
	return out[:min(len(out), maxSharedLabels)]
}
