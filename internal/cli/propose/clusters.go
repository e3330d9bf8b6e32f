package propose

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/wording"
)

// ClusterFacts are what an example of Argo CD's clusters is made from.
type ClusterFacts struct {
	Use  *appset.ClusterUse
	Tree fs.FS
	// RepoURL and Branch are the repository's own, for fields that are read as those of a source.
	RepoURL, Branch string
	// Names and Servers are what Applications that don't come of clusters have as destinations.
	Names, Servers []string
}

// ExampleCluster is a cluster as it may be.
type ExampleCluster struct {
	Name, Server        string
	Labels, Annotations []ExampleField // sorted by key
}

// ExampleField is a label or an annotation. Why says who asks for it, and what speaks for the value.
type ExampleField struct{ Key, Value, Why string }

// Placeholder is the value of a field of which nothing tells what it is.
const Placeholder = "CHANGE-ME"

const (
	labelWord      = "metadata.labels."
	annotationWord = "metadata.annotations."
	nameWord       = "name"
	// maxExampleClusters bounds an example that folders' names make large.
	maxExampleClusters = 50
	inClusterServer    = "https://kubernetes.default.svc"
)

// ExampleClusters are clusters that ApplicationSets generate from: one for each value of the label
// that tells environments apart. They have the fields that selectors and templates ask for, so that
// each selector finds one.
func ExampleClusters(f *ClusterFacts) []ExampleCluster {
	x := newClusterExample(f)
	x.addBase()
	x.spreadValues()
	selectors := slices.Clone(f.Use.Selectors)
	slices.SortStableFunc(selectors, func(a, b appset.ClusterSelector) int { return cmp.Compare(exclusions(b), exclusions(a)) })
	for i := range selectors { // what excludes clusters first: whom the others choose is then another one
		x.satisfy(&selectors[i])
	}
	out := make([]ExampleCluster, 0, len(x.clusters))
	for i, c := range x.clusters {
		x.fillReads(i, c)
		out = append(out, x.describe(c))
	}
	for _, server := range f.Servers {
		if !slices.ContainsFunc(out, func(c ExampleCluster) bool { return c.Server == server }) {
			_, host, _ := strings.Cut(server, "://")
			host, _, _ = strings.Cut(host, "/")
			out = append(out, ExampleCluster{Name: host, Server: server})
		}
	}
	return out
}

// exclusions counts the conditions of a selector that exclude clusters.
func exclusions(s appset.ClusterSelector) int {
	n := 0
	for _, r := range s.Requirements {
		if r.Operator == appset.ClusterNotIn || r.Operator == appset.ClusterHasNot {
			n++
		}
	}
	return n
}

// clusterExample is an example while it is made.
type clusterExample struct {
	facts    *ClusterFacts
	values   map[string][]string // what fields may be, by their words
	guesses  map[string]string   // what speaks for values that no selector has
	main     string              // the field that tells environments apart; "" where none does
	clusters []*exampleCluster
}

// exampleCluster is one cluster while its fields are found.
type exampleCluster struct {
	name   string
	fields map[string]string
	barred map[string][]string // what a field mustn't be
	absent map[string]bool     // what must not be there
}

func newClusterExample(f *ClusterFacts) *clusterExample {
	x := &clusterExample{facts: f, values: map[string][]string{}, guesses: map[string]string{}}
	for _, s := range f.Use.Selectors {
		for _, r := range s.Requirements {
			if r.Operator == appset.ClusterIn {
				x.values[r.Word] = appendNew(x.values[r.Word], r.Values...)
			}
		}
	}
	selected := maps.Clone(x.values)
	x.guess()
	x.main = x.findMain(selected)
	if x.main != "" {
		slices.SortStableFunc(x.values[x.main], func(a, b string) int {
			ra, _ := rankOf(a)
			rb, _ := rankOf(b)
			return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(a, b))
		})
	}
	return x
}

func appendNew(list []string, values ...string) []string {
	list = slices.Clone(list)
	for _, v := range values {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// environmentKeys are words by which labels for environments are called.
var environmentKeys = []string{"environment", "env", "stage", "tier", "landscape"}

// findMain finds the field that tells environments apart: by its name, by what its values are called,
// or else the one of most values that selectors choose by.
func (ce *clusterExample) findMain(selected map[string][]string) string {
	best, bestScore := "", 0
	for _, word := range slices.Sorted(maps.Keys(ce.values)) {
		key, isLabel := strings.CutPrefix(word, labelWord)
		if !isLabel {
			if key, isLabel = strings.CutPrefix(word, annotationWord); !isLabel {
				continue
			}
		}
		values := ce.values[word]
		named := slices.ContainsFunc(splitWords(key), func(w string) bool { return slices.Contains(environmentKeys, w) })
		ranked := !slices.ContainsFunc(values, func(v string) bool { _, ok := rankOf(v); return !ok })
		score := 0
		switch {
		case named && len(values) > 1:
			score = 1000
		case ranked && len(values) > 1:
			score = 900
		case len(selected[word]) > 1:
			score = min(len(selected[word]), 800)
		case named:
			score = 1
		}
		if score > bestScore {
			best, bestScore = word, score
		}
	}
	return best
}

// addBase adds a cluster for each that is known by name, and for each value that none of those has.
func (ce *clusterExample) addBase() {
	mains := ce.values[ce.main]
	names := appendNew(ce.values[nameWord], ce.facts.Names...)
	names = names[:min(len(names), maxExampleClusters)]
	for i, name := range names {
		c := ce.add(name)
		if len(mains) > 0 {
			c.fields[ce.main] = cmp.Or(valueInName(mains, name), mains[i%len(mains)])
		}
	}
	for _, v := range mains {
		if !slices.ContainsFunc(ce.clusters, func(c *exampleCluster) bool { return c.fields[ce.main] == v }) {
			ce.add(v).fields[ce.main] = v
		}
	}
	if len(ce.clusters) == 0 {
		ce.add("cluster-1")
	}
}

func (ce *clusterExample) add(name string) *exampleCluster {
	unique := name
	for n := 2; slices.ContainsFunc(ce.clusters, func(c *exampleCluster) bool { return c.name == unique }); n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	c := &exampleCluster{name: unique, fields: map[string]string{}, barred: map[string][]string{}, absent: map[string]bool{}}
	ce.clusters = append(ce.clusters, c)
	return c
}

// valueInName is the longest value whose words a name has; "" where it has none's.
func valueInName(values []string, name string) string {
	words := " " + strings.Join(splitWords(name), " ") + " "
	best := ""
	for _, v := range values {
		own := strings.Join(splitWords(v), " ")
		if own != "" && len(v) > len(best) && strings.Contains(words, " "+own+" ") {
			best = v
		}
	}
	return best
}

// spreadValues gives each value of the other fields that selectors choose by to a cluster, so that most
// selectors find one of those that are there.
func (ce *clusterExample) spreadValues() {
	for _, word := range slices.Sorted(maps.Keys(ce.values)) {
		values := ce.values[word]
		if word == ce.main || word == nameWord || len(values) < 2 || ce.guesses[word] != "" {
			continue
		}
		for i, c := range ce.clusters {
			c.fields[word] = cmp.Or(valueInName(values, c.name), values[i%len(values)])
		}
	}
}

// satisfy has the clusters that may be of a selector be so, or adds one that is.
func (ce *clusterExample) satisfy(s *appset.ClusterSelector) {
	found := false
	for _, c := range ce.clusters {
		found = ce.unify(s, c, false) || found
	}
	if found || len(ce.clusters) >= maxExampleClusters {
		return
	}
	var words []string
	for _, r := range s.Requirements {
		if r.Operator == appset.ClusterIn && r.Word != nameWord && r.Values[0] != "true" {
			words = append(words, r.Values[0])
		}
	}
	// Where its environment is read, it is in one that is known, unless the selector says which or wants none.
	var environments []string
	if slices.ContainsFunc(ce.facts.Use.Reads, func(r appset.ClusterRead) bool { return slices.Contains(r.Words, ce.main) }) {
		environments = ce.values[ce.main]
	}
	for _, environment := range append(slices.Clone(environments), "") {
		c := ce.add(cmp.Or(strings.Join(words, "-"), environment, "cluster"))
		if environment != "" {
			c.fields[ce.main] = environment
		}
		if ce.unify(s, c, true) {
			return
		}
		ce.clusters = ce.clusters[:len(ce.clusters)-1]
	}
}

// unify gives a cluster what a selector wants, unless it is another one already. Only a new one gets
// an environment by that.
func (ce *clusterExample) unify(s *appset.ClusterSelector, c *exampleCluster, isNew bool) bool {
	fields, barred, absent := maps.Clone(c.fields), maps.Clone(c.barred), maps.Clone(c.absent)
	fields[nameWord] = c.name
	for _, r := range s.Requirements {
		has, known := fields[r.Word]
		switch r.Operator {
		case appset.ClusterIn:
			isOther := known && !slices.Contains(r.Values, has)
			if isOther || !known && !isNew && r.Word == ce.main {
				return false
			}
			if !known {
				has = r.Values[0]
			}
		case appset.ClusterHas:
			if !known {
				has = ce.anyValue(r.Word)
			}
		case appset.ClusterNotIn:
			if known && slices.Contains(r.Values, has) {
				return false
			}
			barred[r.Word] = appendNew(barred[r.Word], r.Values...)
			continue
		case appset.ClusterHasNot:
			if known {
				return false
			}
			absent[r.Word] = true
			continue
		}
		if absent[r.Word] || slices.Contains(barred[r.Word], has) {
			return false
		}
		fields[r.Word] = has
	}
	delete(fields, nameWord)
	c.fields, c.barred, c.absent = fields, barred, absent
	return true
}

// anyValue is a value of a field that is only known to be there.
func (ce *clusterExample) anyValue(word string) string {
	if values := ce.values[word]; len(values) > 0 {
		return values[0]
	}
	return Placeholder
}

// fillReads gives the n-th cluster the fields that templates read.
func (ce *clusterExample) fillReads(n int, c *exampleCluster) {
	for _, read := range ce.facts.Use.Reads {
		for _, word := range read.Words {
			_, known := c.fields[word]
			isField := strings.HasPrefix(word, labelWord) || strings.HasPrefix(word, annotationWord)
			if known || c.absent[word] || !isField {
				continue
			}
			value := ce.anyValue(word)
			if values := ce.values[word]; len(values) > 1 {
				value = cmp.Or(valueInName(values, c.name), valueInName(values, c.fields[ce.main]), values[n%len(values)])
			}
			if word == ce.main { // it is of no environment that is known
				value = c.name
			}
			if slices.Contains(c.barred[word], value) {
				value = Placeholder
			}
			c.fields[word] = value
		}
	}
}

// describe writes a cluster with who asks for its fields.
func (ce *clusterExample) describe(c *exampleCluster) ExampleCluster {
	out := ExampleCluster{Name: c.name, Server: "https://" + objectName(c.name) + ".example"}
	if c.name == "in-cluster" {
		out.Server = inClusterServer
	}
	for _, word := range slices.Sorted(maps.Keys(c.fields)) {
		f := ExampleField{Value: c.fields[word], Why: ce.explain(word, c.fields[word])}
		var isLabel, isAnnotation bool
		if f.Key, isLabel = strings.CutPrefix(word, labelWord); isLabel {
			out.Labels = append(out.Labels, f)
		} else if f.Key, isAnnotation = strings.CutPrefix(word, annotationWord); isAnnotation {
			out.Annotations = append(out.Annotations, f)
		}
	}
	return out
}

// explain says who asks for a field, and what speaks for its value.
func (ce *clusterExample) explain(word, value string) string {
	var selecting, reading, as []string
	for _, s := range ce.facts.Use.Selectors {
		wants := slices.ContainsFunc(s.Requirements, func(r appset.ClusterRequirement) bool { return r.Word == word })
		if wants && s.Set != "" {
			selecting = appendNew(selecting, s.Set)
		}
	}
	for _, r := range ce.facts.Use.Reads {
		if slices.Contains(r.Words, word) {
			reading, as = appendNew(reading, r.Set), appendNew(as, r.Field)
		}
	}
	slices.Sort(selecting)
	slices.Sort(reading)
	var parts []string
	switch {
	case value == Placeholder:
		parts = append(parts, "not known here")
	case ce.guesses[word] != "":
		parts = append(parts, "a guess, "+ce.guesses[word])
	}
	if len(selecting) > 0 {
		parts = append(parts, "selected by "+wording.JoinFew(selecting, 2))
	}
	if len(reading) > 0 {
		parts = append(parts, fmt.Sprintf("read by %s in %s", wording.JoinFew(reading, 2), wording.JoinFew(as, 2)))
	}
	return strings.Join(parts, "; ")
}
