package appset

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// ClusterUse is what ApplicationSets ask of Argo CD's clusters: which they select, and what of them
// their templates read.
type ClusterUse struct {
	Sets      []string // that generate from clusters, sorted
	Selectors []ClusterSelector
	Reads     []ClusterRead
	// Names and Servers are destinations that those sets write out.
	Names, Servers []string
}

// ClusterSelector is a selector of a clusters generator.
type ClusterSelector struct {
	Set          string // "" where it comes of another generator's parameters
	Requirements []ClusterRequirement
}

// Equal says that two selectors are of one set and the same.
func (c ClusterSelector) Equal(other ClusterSelector) bool {
	return c.Set == other.Set && slices.EqualFunc(c.Requirements, other.Requirements, func(a, b ClusterRequirement) bool {
		return a.Word == b.Word && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
}

// ClusterRequirement is one condition on a parameter, named as templates name it without Go's
// first dot: metadata.labels.environment, name.
type ClusterRequirement struct {
	Word     string
	Operator ClusterOperator
	Values   []string // sorted
}

// ClusterOperator is how a condition compares.
type ClusterOperator string

// The operators of selectors.
const (
	ClusterIn     ClusterOperator = "In"
	ClusterNotIn  ClusterOperator = "NotIn"
	ClusterHas    ClusterOperator = "Exists"
	ClusterHasNot ClusterOperator = "DoesNotExist"
)

// ClusterRead is a text of an ApplicationSet whose template reads a cluster's fields.
type ClusterRead struct {
	Set   string
	Field string // the key that it stands under, such as repoURL
	Parts []TextPart
	Words []string // the parameters that it reads, as those of ClusterRequirement
}

// TextPart is a part of a template's text: a literal, a parameter's value as it is (Word), or, with
// neither, what can't be told.
type TextPart struct{ Literal, Word string }

// maxClusterReads bounds the texts that are looked into.
const maxClusterReads = 20_000

// FindClusterUse finds out what the input's ApplicationSets ask of clusters. [Resolver.Resolve]
// reports what is wrong with a set. The error is for a context that ended.
func (r *Resolver) FindClusterUse(ctx context.Context, in Input) (*ClusterUse, error) {
	sets, _, _ := findSets(ctx, &in)
	out := &ClusterUse{}
	for i := range sets {
		s := &sets[i]
		selectors, uses := s.clusterSelectors()
		if !uses {
			continue
		}
		out.Sets = append(out.Sets, s.spec.Name)
		out.Selectors = append(out.Selectors, selectors...)
		out.Reads = append(out.Reads, s.clusterReads()...)
		switch to := s.spec.Spec.Template.Spec.Destination; {
		case strings.Contains(to.Name+to.Server, "{{"):
		case to.Name != "":
			out.Names = append(out.Names, to.Name)
		case to.Server != "":
			out.Servers = append(out.Servers, to.Server)
		}
	}
	out.Sets = SortedUnique(out.Sets)
	out.Reads = out.Reads[:min(len(out.Reads), maxClusterReads)]
	if in.Clusters == nil { // then it can't be resolved
		in.Clusters = []Cluster{}
	}
	resolved, err := r.Resolve(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, item := range NewScope(in.Main, resolved).Items {
		if item.Kind != scopeClusters {
			continue
		}
		if s, ok := parsedSelector(item.Name, "metadata.labels."); ok {
			out.Selectors = append(out.Selectors, s)
		}
	}
	return out, nil
}

// clusterSelectors are the selectors of a set's clusters generators, as they are written; uses says that
// there is such a generator.
func (as *appSet) clusterSelectors() (out []ClusterSelector, uses bool) {
	add := func(prefix string, selector *metav1.LabelSelector) {
		if selector == nil {
			return
		}
		if raw, err := json.Marshal(selector); err != nil || strings.Contains(string(raw), "{{") {
			return // asked for by what it comes to
		}
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return
		}
		if found, ok := parsedSelector(parsed.String(), prefix); ok {
			found.Set = as.spec.Name
			out = append(out, found)
		}
	}
	walkGenerators(&as.spec, func(g *argov1alpha1.ApplicationSetGenerator, _ bool) {
		if g.Clusters != nil {
			uses = true
			add("metadata.labels.", &g.Clusters.Selector)
		}
		uses = uses || g.ClusterDecisionResource != nil
		if g.Clusters != nil || g.Matrix != nil || g.Merge != nil {
			add("", g.Selector)
		}
	})
	return out, uses
}

// parsedSelector reads a selector's text, whose keys stand under a prefix. Conditions that are about
// no cluster are left out.
func parsedSelector(text, prefix string) (ClusterSelector, bool) {
	selector, err := labels.Parse(text)
	if err != nil {
		return ClusterSelector{}, false
	}
	var out ClusterSelector
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		c := ClusterRequirement{Word: prefix + r.Key(), Values: r.ValuesUnsorted()}
		slices.Sort(c.Values)
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			c.Operator = ClusterIn
		case selection.NotIn, selection.NotEquals:
			c.Operator = ClusterNotIn
		case selection.Exists:
			c.Operator = ClusterHas
		case selection.DoesNotExist:
			c.Operator = ClusterHasNot
		default:
			continue
		}
		if isClusterWord(c.Word) {
			out.Requirements = append(out.Requirements, c)
		}
	}
	return out, len(out.Requirements) > 0
}

// clusterReads are the texts of a set that read something of a cluster.
func (as *appSet) clusterReads() []ClusterRead {
	raw, err := json.Marshal(as.spec.Spec)
	var spec any
	if err != nil || json.Unmarshal(raw, &spec) != nil {
		return nil // it was decoded from JSON
	}
	w := &readWalker{set: as.spec.Name, goTemplate: as.spec.Spec.GoTemplate, values: map[string][]TextPart{}}
	w.walk(spec, "", "")
	for i := range w.reads {
		w.reads[i].Parts = w.insertValues(w.reads[i].Parts)
		for _, p := range w.reads[i].Parts {
			if p.Word != "" {
				w.reads[i].Words = append(w.reads[i].Words, p.Word)
			}
		}
		w.reads[i].Words = slices.DeleteFunc(SortedUnique(w.reads[i].Words), func(word string) bool { return !isClusterField(word) })
	}
	return slices.DeleteFunc(w.reads, func(r ClusterRead) bool { return len(r.Words) == 0 })
}

// isClusterField says that a word is one field of a cluster.
func isClusterField(word string) bool {
	if word == "name" || word == "nameNormalized" || word == "server" {
		return true
	}
	key, isLabel := strings.CutPrefix(word, "metadata.labels.")
	if !isLabel {
		key, isLabel = strings.CutPrefix(word, "metadata.annotations.")
	}
	return isLabel && key != ""
}

// readWalker collects the texts of one set.
type readWalker struct {
	set        string
	goTemplate bool
	values     map[string][]TextPart // of generators' values blocks, by their words
	reads      []ClusterRead
}

func (r *readWalker) walk(value any, key, above string) {
	switch value := value.(type) {
	case string:
		if !strings.Contains(value, "{{") {
			return
		}
		read := ClusterRead{Set: r.set, Field: key, Parts: r.splitText(value), Words: r.wordsOf(value)}
		if above == "values" && len(read.Words) > 0 && isClusterField(read.Words[0]) {
			r.values["values."+key] = read.Parts
		}
		r.reads = append(r.reads, read)
	case []any:
		for _, v := range value {
			r.walk(v, key, above)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(value)) {
			r.walk(value[k], k, key)
		}
	}
}

// wordsOf are the words of a text, those of a list of clusters as of each.
func (r *readWalker) wordsOf(text string) []string {
	words := plainWords(text)
	if r.goTemplate {
		words = fieldWords(text)
	}
	for i, word := range words {
		word = strings.TrimPrefix(word, "clusters"+elements+".")
		words[i] = strings.TrimPrefix(word, "clusters.")
	}
	return words
}

var (
	templateAction = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	// plainAction gives a parameter as it is, but for what stands in where it is missing.
	plainAction = regexp.MustCompile(`^[^|]*(\|\s*(default\s+"[^"]*"|toString|required\s+"[^"]*")\s*)*$`)
	blockAction = regexp.MustCompile(`^(range|with|if|else|end|define|template|block)\b`)
)

// splitText splits a text at its actions.
func (r *readWalker) splitText(text string) []TextPart {
	var out []TextPart
	rest := text
	for {
		at := templateAction.FindStringSubmatchIndex(rest)
		if at == nil {
			return append(out, literalPart(rest)...)
		}
		out = append(out, literalPart(rest[:at[0]])...)
		action := rest[at[2]:at[3]]
		words := r.wordsOf("{{" + action + "}}")
		switch {
		case blockAction.MatchString(action):
			return []TextPart{{}}
		case len(words) == 1 && plainAction.MatchString(action):
			out = append(out, TextPart{Word: words[0]})
		default:
			out = append(out, TextPart{})
		}
		rest = rest[at[1]:]
	}
}

func literalPart(text string) []TextPart {
	if text == "" {
		return nil
	}
	return []TextPart{{Literal: text}}
}

// insertValues puts what values blocks say into the place of the words for them.
func (r *readWalker) insertValues(parts []TextPart) []TextPart {
	var out []TextPart
	for _, p := range parts {
		if made, ok := r.values[p.Word]; ok {
			out = append(out, made...)
			continue
		}
		out = append(out, p)
	}
	return out
}
