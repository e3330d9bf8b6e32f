package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// Application is an Application of the repository, and which environment it is in; empty: none.
type Application struct {
	Namespace, Name     string
	Environment         string
	Labels, Annotations map[string]string
}

// Rule is an entry of discover, and of what it was made.
type Rule struct {
	Discovery pipeline.Discovery
	From      string // for people: Application web-dev
}

// Migration is what a pipeline file says in another tool's place.
type Migration struct {
	// Rules are the entries of discover by environment, sorted by the names of their images and charts.
	Rules map[string][]Rule
	// Notes say what has no counterpart, a sentence each.
	Notes []string
}

// Manifests are the other tools' objects. The zero value has none.
type Manifests struct {
	updaters   []imageUpdater
	warehouses []warehouse
	stages     []stage
	policies   []promotionPolicy
}

// maxObjects bounds the objects that are looked at, far above any real installation's.
const maxObjects = 10_000

// object is what is read of every object.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// Mentions says that a manifest may have objects of these tools: it needn't be parsed else.
func Mentions(manifest []byte) bool {
	return bytes.Contains(manifest, []byte(imageUpdaterGroup)) || bytes.Contains(manifest, []byte(kargoGroup))
}

func (o *object) String() string {
	if o.Metadata.Namespace == "" {
		return o.Kind + " " + o.Metadata.Name
	}
	return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// Add takes in an object, given as JSON. Those of other kinds, and what is no object, are left alone. The error says what of an
// object of these tools can't be read.
func (m *Manifests) Add(data []byte) error {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil // it is no object
	}
	group, _, _ := strings.Cut(o.APIVersion, "/")
	if m.Len() >= maxObjects {
		return fmt.Errorf("there are more than %d objects of Image Updater's and Kargo's: name fewer files", maxObjects)
	}
	var err error
	switch {
	case group == imageUpdaterGroup && o.Kind == "ImageUpdater":
		m.updaters, err = appendObject(m.updaters, data)
	case group == kargoGroup && o.Kind == "Warehouse":
		m.warehouses, err = appendObject(m.warehouses, data)
	case group == kargoGroup && o.Kind == "Stage":
		m.stages, err = appendObject(m.stages, data)
	case group == kargoGroup && (o.Kind == "Project" || o.Kind == "ProjectConfig"):
		err = m.addPolicies(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", &o, err)
	}
	return nil
}

func appendObject[T any](list []T, data []byte) ([]T, error) {
	var o T
	if err := json.Unmarshal(data, &o); err != nil {
		return list, err
	}
	return append(list, o), nil
}

// Len is how many objects there are of which something is read.
func (m *Manifests) Len() int {
	return len(m.updaters) + len(m.warehouses) + len(m.stages) + len(m.policies)
}

// Migrate says what the tools do for the environments into which releases come from outside; the other environments get theirs
// from those.
func (m *Manifests) Migrate(applications []Application, environments, sources []string) Migration {
	c := &collector{sources: sources, rules: map[string]map[string][]Rule{}, notes: map[string][]string{}}
	m.addImageUpdater(c, applications)
	m.addKargo(c, environments)
	return c.finish()
}

// collector gathers rules and notes, each once.
type collector struct {
	sources []string
	rules   map[string]map[string][]Rule // by environment, and by what they are about
	notes   map[string][]string          // the places of each
	order   []string                     // of the notes
}

// addNote says something of a place. What is said of several is said once.
func (c *collector) addNote(from, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.notes[text] == nil {
		c.order = append(c.order, text)
	}
	if !slices.Contains(c.notes[text], from) {
		c.notes[text] = append(c.notes[text], from)
	}
}

// addRule takes in a rule of an environment, unless it can't be said.
func (c *collector) addRule(environment string, r Rule) {
	about := r.Discovery.Name()
	switch {
	case environment == "":
		c.addNote(r.From, "is in no environment of this pipeline; what it says of %s is left out", about)
		return
	case !slices.Contains(c.sources, environment):
		c.addNote(r.From, "brings %s into %s past the environments before it; here releases come to %s from those", about, environment,
			environment)
		return
	}
	for _, p := range r.Discovery.Choose.Problems() {
		c.addNote(r.From, "what it says of %s can't be said as it is: %s", about, strings.TrimPrefix(p.Key+": "+p.Message, ": "))
		return
	}
	if c.rules[environment] == nil {
		c.rules[environment] = map[string][]Rule{}
	}
	c.rules[environment][about] = append(c.rules[environment][about], r)
}

// finish gives what was gathered. Of rules that differ about the same thing in one environment none is chosen.
func (c *collector) finish() Migration {
	out := Migration{Rules: map[string][]Rule{}}
	for _, environment := range slices.Sorted(maps.Keys(c.rules)) {
		byName := c.rules[environment]
		for _, about := range slices.Sorted(maps.Keys(byName)) {
			all := byName[about]
			slices.SortStableFunc(all, func(a, b Rule) int { return cmp.Compare(a.From, b.From) })
			if i := slices.IndexFunc(all, func(r Rule) bool { return !reflect.DeepEqual(r.Discovery, all[0].Discovery) }); i >= 0 {
				c.addNote(all[0].From+" and "+all[i].From, "want different versions of %s in %s, where one rule holds for all: write it "+
					"under discover", about, environment)
				continue
			}
			from := make([]string, 0, len(all))
			for _, r := range all {
				if !slices.Contains(from, r.From) {
					from = append(from, r.From)
				}
			}
			out.Rules[environment] = append(out.Rules[environment], Rule{all[0].Discovery, wording.JoinFew(from, maxNamed)})
		}
	}
	for _, text := range c.order {
		out.Notes = append(out.Notes, wording.JoinFew(c.notes[text], maxNamed)+": "+text+".")
	}
	return out
}

// maxNamed bounds the places that a note names.
const maxNamed = 4
