package propose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/wording"
)

// Templates are the two templates of a pipeline; an empty one is not chosen yet.
type Templates struct{ Component, Environment string }

// Assignment is how a pipeline's two templates tell targets apart.
type Assignment struct {
	Templates
	Environments, Components []string // sorted
	Targets                  int      // that they give both
	Alternatives             []string // other environment templates with as good a claim, with what they give
	// Others are the next best templates, with environments as surely called so: they count where these give nothing to
	// carry, or leave something out.
	Others []Other
}

// Other is a next best pair of templates.
type Other struct {
	Templates
	// IsAsFine is that it tells apart as much: it has the same components and no fewer environments, or several components
	// that have no fewer environments in all.
	IsAsFine bool
	// IsPartial is that it is for fewer targets, as those of one set among others that have no environments: it counts
	// where nothing else gives something to carry.
	IsPartial bool
}

// ErrNothingUsable says that no templates give a pipeline.
var ErrNothingUsable = errors.New("no component and environment can be made out")

// ChoiceError is what the files don't settle, and how a person does.
type ChoiceError struct {
	Question string
	Options  []Option
	Seen     []string // what was seen that no flag chooses, with its places
	Other    string   // what to do where none of them is it
	// Draft is the pipeline file with what is known, and a TODO at each key that is open; Known is what
	// it was written from.
	Draft []byte
	Known *Proposal
	cause error // nil: there are answers to choose from
}

// Unwrap is [ErrNothingUsable] where there is no answer to choose.
func (c *ChoiceError) Unwrap() error { return c.cause }

// nothingToChoose asks for both templates where none was found.
func nothingToChoose(why string, seen []string) *ChoiceError {
	const other = "write both templates as --component and --environment (liftlock resolve -o json has each target's parameters)"
	return &ChoiceError{Question: fmt.Sprintf("%v: %s", ErrNothingUsable, why), Seen: seen, Other: other, cause: ErrNothingUsable}
}

// NoTargets is that ApplicationSets generate nothing yet, for a reason that wraps [ErrNothingUsable]; other is what
// to do about it.
func NoTargets(why error, seen []string, other string) *ChoiceError {
	return &ChoiceError{Question: why.Error(), Seen: seen, Other: other, cause: why}
}

// Option is one answer, as the flags that give it.
type Option struct {
	Flags   []string `json:"flags"` // each --name=value, unquoted
	Meaning string   `json:"meaning"`
	Example string   `json:"example,omitempty"` // an Application, with the file of its ApplicationSet and what the answer makes of it
}

func (c *ChoiceError) Error() string { return c.Question }

// maxEnvironments bounds what is taken for environments: past it they are something else.
const maxEnvironments = 24

// Assign finds the templates that tell the targets' components and environments apart, within
// those that are chosen already. ErrNothingUsable where there are none, a *ChoiceError where
// two are as good.
func Assign(ctx context.Context, targets []appset.Target, chosen Templates) (*Assignment, error) {
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: there is no target", ErrNothingUsable)
	}
	data, err := make([]map[string]any, len(targets)), error(nil)
	for i := range targets {
		if data[i], err = targets[i].TemplateData(); err != nil {
			return nil, err
		}
	}
	var all []candidate
	if chosen.Component == "" || chosen.Environment == "" {
		if all, err = findCandidates(ctx, data); err != nil {
			return nil, err
		}
	}
	components, err := chosenOr(ctx, "component", chosen.Component, data, all)
	if err != nil {
		return nil, err
	}
	environments, err := chosenOr(ctx, "environment", chosen.Environment, data, all)
	if err != nil {
		return nil, err
	}
	folders := sourceFolders(targets)
	var pairs, coarser []pair // coarser ones have fewer components: what one environment's clusters share may be theirs
	for e := range environments {
		if n := len(environments[e].distinct()); n < 2 || n > maxEnvironments || chosen.Environment == "" &&
			environments[e].isOfTargets(targets) {
			continue
		}
		best, tried := pair{}, []pair(nil)
		for c := range components {
			p := pair{component: &components[c], environment: &environments[e]}
			if p.component.text == p.environment.text || chosen.Component == "" && components[c].isCluster(targets) {
				continue
			}
			p.weigh(targets, folders)
			if !p.promotes && (chosen.Component == "" || chosen.Environment == "") {
				p.score = -1
			}
			if tried = append(tried, p); best.environment == nil || p.compare(best) < 0 {
				best = p
			}
		}
		if best.environment == nil {
			continue
		}
		if chosen.Component == "" {
			best = best.composeComponents(components, targets, folders)
		}
		pairs = append(pairs, best)
		for _, p := range tried {
			if len(p.component.distinct()) < len(best.component.distinct()) {
				coarser = append(coarser, p)
			}
		}
	}
	if len(pairs) == 0 {
		if one := oneEnvironment(environments); one != "" {
			return nil, fmt.Errorf("%w: %s", ErrNothingUsable, one)
		}
		return nil, nothingToChoose("no parameter has a value for each of several environments", listParameters(all))
	}
	slices.SortFunc(pairs, pair.compare)
	slices.SortFunc(coarser, pair.compare)
	if pairs[0].score < 0 {
		return nil, nothingToChoose("no two parameters give targets of one component in several environments", listParameters(all))
	}
	out, err := pairs[0].settle(pairs[1:], chosen, targets)
	if err == nil {
		pairs[0].addOthers(out, coarser)
	}
	return out, err
}

// addOthers adds those of some pairs to an assignment's others that count beside its own.
func (p pair) addOthers(to *Assignment, others []pair) {
	added := map[bool]int{}
	for _, o := range others {
		isAsKnown := o.known > 0 && o.known > p.known-2*(1-longerName)
		isPartial := o.targets < p.targets
		if o.score >= 0 && o.targets <= p.targets && isAsKnown && added[isPartial] < maxAlternatives {
			added[isPartial]++
			isOfSame := slices.Equal(o.component.values, p.component.values) &&
				len(o.environment.distinct()) >= len(p.environment.distinct())
			isOfSeveral := o.places >= p.places && len(o.component.distinct()) >= min(len(p.component.distinct()), 2)
			to.Others = append(to.Others, Other{Templates{o.component.text, o.environment.text}, isOfSame || isOfSeveral, isPartial})
		}
	}
}

// fewTargets are as many targets of a set as one component's environments may be.
const fewTargets = 3

// isOfTargets says that a candidate's values tell single targets apart, or say what each of them
// is, instead of naming environments. It is false where half of the distinct values are usual names
// of environments. Values that differ for nearly every Application of a set, or of all, are names.
// Values that are always the target's project, namespace, chart or moving branch say what it is.
func (c *candidate) isOfTargets(targets []appset.Target) bool {
	if known := c.knownNames(); known > 0 && 2*known >= len(c.distinct()) {
		return false
	}
	ofSet, distinct := map[string]int{}, map[string]map[string]bool{}
	const all = ""
	isProject, isNamespace, isChart, isBranch := true, true, true, true
	for i, v := range c.values {
		if v == "" {
			continue
		}
		t := &targets[i]
		for _, set := range []string{all, t.ApplicationSetFile + "|" + t.ApplicationSet} {
			if distinct[set] == nil {
				distinct[set] = map[string]bool{}
			}
			ofSet[set]++
			distinct[set][v] = true
		}
		isProject, isNamespace = isProject && v == t.Project, isNamespace && v == t.DestNS
		isBranch = isBranch && slices.ContainsFunc(movingRevisions, func(r string) bool { return strings.EqualFold(r, v) })
		isChart = isChart && slices.ContainsFunc(t.Sources, func(s appset.Source) bool { return v == s.Chart })
	}
	for set, n := range ofSet {
		if n > fewTargets && 10*len(distinct[set]) >= 9*n {
			return true
		}
	}
	return isProject || isNamespace || isChart || isBranch
}

// isCluster says that what a candidate gives is the cluster that each target goes to.
func (c *candidate) isCluster(targets []appset.Target) bool {
	for i, v := range c.values {
		if v != "" && v != targets[i].Cluster {
			return false
		}
	}
	return true
}

// knownNames is how many of a candidate's values are called as people call environments. A longer name
// that has such a word, as load-balancer does, counts where most values have one.
func (c *candidate) knownNames() int {
	n := 0
	for _, v := range c.distinct() {
		if c.isKnown(v) {
			n++
		}
	}
	return n
}

// isKnown says that knownNames counts a value.
func (c *candidate) isKnown(value string) bool {
	_, ok := rankOf(value)
	if words := splitWords(value); len(words) > 1 {
		return ok && c.mostKnown && !isLongName(words)
	}
	return ok
}

// isLongName says that a name has more words than one of an environment, regions and numbers aside: it is an
// Application's then, such as network-debug-app-on-staging.
func isLongName(words []string) bool {
	const short, most = 2, 3
	n := 0
	for _, w := range words {
		if len(w) > short {
			n++
		}
	}
	return n > most
}

// longerName is how much a longer name counts that has a usual word for environments. prod-eu is
// nearly as surely one as prod, and load-balancer is none beside qa.
const longerName = 0.95

// knownPart is how surely a value is an environment's name, from 0 to 1.
func (c *candidate) knownPart(value string) float64 {
	switch {
	case !c.isKnown(value):
		return 0
	case len(splitWords(value)) > 1:
		return longerName
	}
	return 1
}

// oneEnvironment says which environment all targets are in; "" where they aren't in one.
func oneEnvironment(candidates []candidate) string {
	for i := range candidates {
		if all := candidates[i].distinct(); len(all) == 1 && candidates[i].knownNames() == 1 {
			return fmt.Sprintf("%s gives one environment, %s, and a promotion goes from one to another", candidates[i].text, all[0])
		}
	}
	return ""
}

// chosenOr is the one candidate that a person chose, or all.
func chosenOr(ctx context.Context, what, chosen string, data []map[string]any, all []candidate) ([]candidate, error) {
	if chosen == "" {
		return all, nil
	}
	e, err := appset.ParseExpression(ctx, what, chosen)
	if err != nil {
		return nil, err
	}
	c := candidate{text: chosen, values: make([]string, len(data))}
	var why error
	for i, d := range data {
		v, err := e.Evaluate(d)
		if err != nil {
			why = cmp.Or(why, err)
			continue
		}
		c.values[i] = v
	}
	c.findKnown()
	if c.coverage() == 0 {
		if why == nil {
			why = fmt.Errorf("the template %q gives nothing for any target", chosen)
		}
		return nil, fmt.Errorf("%w: %w", ErrNothingUsable, why)
	}
	return []candidate{c}, nil
}

// madeFrom is what a target is made from, and where it goes, as numbers that are the same for the same.
type madeFrom struct{ folder, deployment int }

// sourceFolders is what each target is made from: targets of which that is the same have one release. A source's options
// count, by which targets of one chart may have versions of their own. A deployment is that with its set and its cluster.
func sourceFolders(targets []appset.Target) []madeFrom {
	out, numbers := make([]madeFrom, len(targets)), map[string]int{}
	number := func(parts ...string) int {
		text := strings.Join(parts, "|")
		if _, known := numbers[text]; !known {
			numbers[text] = len(numbers) + 1
		}
		return numbers[text]
	}
	for i := range targets {
		t := &targets[i]
		var parts []string
		for _, s := range t.Sources {
			parts = append(parts, s.RepoURL, s.Path, s.Chart, s.TargetRevision, strings.Join(s.ValueFiles, ","), string(s.Options))
		}
		folder := number(append(parts, "", t.GeneratorFile)...)
		out[i] = madeFrom{folder, number(strconv.Itoa(folder), t.ApplicationSetFile, t.ApplicationSet, t.Cluster, t.Server)}
	}
	return out
}

// pair is a component template and an environment template.
type pair struct {
	component, environment *candidate
	score                  float64
	known                  float64 // how much of it is known environments' names
	targets                int
	places                 int  // the environments of all components
	promotes               bool // some component is in several environments
	ofSeveralSets          bool
}

// The weights of the reasons for a pair. That it leaves no target out comes first, then that the
// environments have usual names. That each target has a place of its own follows, then that
// components are in all environments, and that each folder makes one component.
const (
	weightCoverage = 1000
	weightKnown    = 400
	weightOwn      = 200
	weightFull     = 200
	weightFolder   = 150
	weightName     = 60  // that Applications have their component in their names
	weightPath     = 60  // that a folder or a chart that they are made from is called like it
	weightAffix    = 60  // against environments that all begin or end alike: that is something else's name
	weightNumber   = 60  // against components that are numbers
	weightRepeated = 100 // against a component that one set deploys several times from one folder to one cluster
	weightEach     = 4   // against each environment
	weightCost     = 0.1 // against what is hard to read
)

func (p *pair) weigh(targets []appset.Target, folders []madeFrom) {
	type place struct{ component, environment string }
	places, components, environments := map[place]bool{}, map[string]bool{}, map[string]bool{}
	type deployment struct {
		place
		number int
	}
	ofFolder, deployed := map[int]place{}, map[deployment]bool{}
	known, split, named, inName, inPath := 0.0, 0, 0, 0, 0
	for i, c := range p.component.values {
		e := p.environment.values[i]
		if c == "" || e == "" {
			continue
		}
		p.targets++
		p.ofSeveralSets = p.ofSeveralSets || targets[i].ApplicationSet != targets[0].ApplicationSet
		at := place{c, e}
		places[at], components[c], environments[e] = true, true, true
		deployed[deployment{at, folders[i].deployment}] = true
		known += p.environment.knownPart(e)
		if saysEnvironment(c, e) {
			named++
		}
		if strings.Contains(targets[i].Name, c) {
			inName++
		}
		if slices.ContainsFunc(targets[i].Sources, func(s appset.Source) bool {
			return s.Chart == c ||
				slices.Contains(strings.Split(s.Path, "/"), c)
		}) {
			inPath++
		}
		if first, ok := ofFolder[folders[i].folder]; ok && first != at {
			split++
		} else {
			ofFolder[folders[i].folder] = at
		}
	}
	if p.targets == 0 || len(environments) < 2 {
		p.score = -1
		return
	}
	p.promotes, p.places = len(places) > len(components), len(places)
	n := float64(p.targets)
	p.known = known / n
	if 2*named <= p.targets {
		named = 0 // by chance, as of a component that is called after one environment
	}
	own := len(ofFolder)
	if own <= len(components) { // a folder each has the versions of all environments, or none
		own = p.targets
	}
	p.score = weightCoverage*n/float64(len(p.environment.values)) +
		weightKnown*p.known - weightKnown/2*float64(named)/n +
		weightName*float64(inName)/n +
		weightPath*float64(inPath)/n +
		weightOwn*float64(min(len(places), own))/float64(own) +
		weightFull*float64(len(places))/float64(len(components)*len(environments)) -
		weightFolder*float64(split)/n -
		weightRepeated*float64(p.targets-len(deployed))/n -
		weightEach*float64(len(environments)) -
		weightCost*float64(p.component.cost+p.environment.cost)
	if !slices.ContainsFunc(slices.Collect(maps.Keys(components)), hasLetter) {
		p.score -= weightNumber
	}
	if names := slices.Sorted(maps.Keys(environments)); commonPrefix(names)+commonSuffix(names) != "" {
		p.score -= weightAffix
	}
}

func hasLetter(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

// saysEnvironment says that a component's name is one of an environment, or has the word by which its environment is
// called. That a longer one has another environment's, as test-runner has in prod, speaks against nothing.
func saysEnvironment(component, environment string) bool {
	of, ok := rankOf(component)
	rank, known := rankOf(environment)
	return ok && (len(splitWords(component)) == 1 || known && of == rank)
}

// compare has the better one first. It is a total order, so that the answer never depends on what was tried first.
func (p pair) compare(o pair) int {
	return cmp.Or(cmp.Compare(o.score, p.score), cmp.Compare(p.environment.text, o.environment.text),
		cmp.Compare(p.component.text, o.component.text))
}

// example says what a pair makes of one Application.
func (p *pair) example(targets []appset.Target) string {
	for i := range targets {
		if c, e := p.component.values[i], p.environment.values[i]; c != "" && e != "" {
			return fmt.Sprintf("%s of %s is %s in %s", targets[i].Name, targets[i].ApplicationSetFile, c, e)
		}
	}
	return ""
}

// closeScore is how near another pair is that has as good a claim.
const closeScore = 60

// maxAlternatives bounds what a person is offered.
const maxAlternatives = 4

// settle makes the assignment of the best pair, or a choice where others are as good and no
// known word speaks for it.
func (p pair) settle(others []pair, chosen Templates, targets []appset.Target) (*Assignment, error) {
	out := &Assignment{Templates: Templates{p.component.text, p.environment.text}, Targets: p.targets}
	components, environments := map[string]bool{}, map[string]bool{}
	for i, c := range p.component.values {
		if e := p.environment.values[i]; c != "" && e != "" {
			components[c], environments[e] = true, true
		}
	}
	out.Components, out.Environments = slices.Sorted(maps.Keys(components)), slices.Sorted(maps.Keys(environments))
	near := []pair{p}
	p.addOthers(out, others)
	for _, o := range others {
		// With fewer components it tells components apart by their environments.
		if o.score > p.score-closeScore && o.targets == p.targets && len(o.component.distinct()) >= min(len(components), 2) &&
			len(near) <= maxAlternatives {
			near = append(near, o)
		}
	}
	isUnsure := len(near) > 1 || p.ofSeveralSets && len(components) == 1 && chosen.Component == ""
	if p.known == 0 && chosen.Environment == "" && isUnsure {
		choice := &ChoiceError{Question: "Which parameter is the environment? No value is a name that environments usually have.",
			Other: "none of these: write both templates as --component and --environment; liftlock resolve -o json lists each target's " +
				"parameters"}
		for _, o := range near {
			choice.Options = append(choice.Options, Option{
				Flags: []string{"--component=" + o.component.text, "--environment=" + o.environment.text},
				Meaning: fmt.Sprintf("environments %s; components %s", wording.JoinFew(o.environment.distinct(), 5),
					wording.JoinFew(o.component.distinct(), 5)),
				Example: o.example(targets),
			})
		}
		return nil, choice
	}
	for _, o := range near[1:] {
		if o.known > 0 && chosen.Environment == "" {
			out.Alternatives = append(out.Alternatives, fmt.Sprintf("'%s', which gives %s", o.environment.text,
				wording.JoinFew(o.environment.distinct(), 5)))
		}
	}
	return out, nil
}
