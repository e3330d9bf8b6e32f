package pipeline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
	"github.com/liftlock/liftlock/internal/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

// Bounds on what one pipeline may hold; far above any real one.
const (
	maxNameLength     = 63
	maxEnvironments   = 100
	maxListed         = 1000 // entries of any other list
	maxTemplateLength = 4096
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// ValidName says why a name of a pipeline, environment or component can't be
// used, nil when it can: it becomes part of branch names and labels.
func ValidName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a name is missing")
	case len(name) > maxNameLength:
		return fmt.Errorf("the name is %d characters long; at most %d", len(name), maxNameLength)
	case !namePattern.MatchString(name):
		return fmt.Errorf("%q is not a name; use lower-case letters, digits and hyphens, and no hyphen first", name)
	}
	return nil
}

// checker collects what is wrong with one pipeline.
type checker struct {
	doc  *strictyaml.Document
	errs strictyaml.Errors
}

func (c *checker) errorf(path, format string, args ...any) {
	c.errs = append(c.errs, c.doc.Errorf(path, format, args...))
}

func validatePipeline(doc *strictyaml.Document, p *Pipeline) strictyaml.Errors {
	c := &checker{doc: doc}
	if c.checkListLengths(&p.Spec); len(c.errs) > 0 {
		return c.errs // the rules between keys take time that grows with the square
	}
	if p.APIVersion != APIVersion {
		c.errorf("apiVersion", "must be %s", APIVersion)
	}
	if p.Kind != Kind {
		c.errorf("kind", "must be %s", Kind)
	}
	if err := ValidName(p.Metadata.Name); err != nil {
		c.errorf("metadata.name", "%s", err)
	}
	s := &p.Spec
	c.checkOneOf("spec.mode", string(s.Mode), string(ModeAct), string(ModeDryRun))
	c.checkSupported("spec.adopt", s.Adopt, AdoptBaseline, "converge")
	c.checkOneOf("spec.layout", s.Layout, LayoutDirectories, LayoutBranches)
	c.checkOneOf("spec.batch", s.Batch, BatchComponent, BatchEnvironment)
	c.checkOneOf("spec.merge.method", s.Merge.Method, MethodMerge, MethodSquash, MethodRebase)
	if s.Commands != "" || c.doc.Has("spec.commands") {
		c.checkOneOf("spec.commands", s.Commands, CommandsBare)
	}
	c.checkAtLeastOne("spec.limits.openPerEnvironment", s.Limits.OpenPerEnvironment)
	c.checkAtLeastOne("spec.limits.mergesPerHour", s.Limits.MergesPerHour)
	c.checkAtLeastOne("spec.limits.revertsPer10Minutes", s.Limits.RevertsPer10Minutes)
	c.checkTemplate("spec.component", s.Component)
	c.checkTemplate("spec.environment", s.Environment)
	c.checkApplicationSets(s)
	c.checkCarry(s.Carry)
	c.checkEnvironments(s)
	return c.errs
}

// checkOneOf checks a choice.
func (c *checker) checkOneOf(path, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		c.errorf(path, "%q is not one of %s%s", value, strings.Join(choices, ", "), strictyaml.DidYouMean(value, choices))
	}
}

// checkSupported checks a choice of which only one value is supported yet.
func (c *checker) checkSupported(path, value, supported string, later ...string) {
	if slices.Contains(later, value) {
		c.errorf(path, "%s is not supported yet; only %s", value, supported)
		return
	}
	c.checkOneOf(path, value, supported)
}

func (c *checker) checkAtLeastOne(path string, value int) {
	if value < 1 {
		c.errorf(path, "must be at least 1; it is %d", value)
	}
}

// checkNotEmpty checks that a list isn't empty.
func (c *checker) checkNotEmpty(path string, n int, what string) {
	if n == 0 {
		c.errorf(path, "at least one %s is needed", what)
	}
}

// checkAtMost checks a list's length.
func (c *checker) checkAtMost(path string, n, most int) {
	if n > most {
		c.errorf(path, "%d are too many; at most %d", n, most)
	}
}

// checkListLengths checks the lengths of all lists.
func (c *checker) checkListLengths(s *Spec) {
	c.checkAtMost("spec.environments", len(s.Environments), maxEnvironments)
	for i, e := range s.Environments {
		at := fmt.Sprintf("spec.environments[%d]", i)
		c.checkAtMost(at+".after", len(e.After), maxEnvironments)
		c.checkAtMost(at+".gates", len(e.Gates), maxListed)
	}
	c.checkAtMost("spec.applicationSets", len(s.ApplicationSets), maxListed)
	c.checkAtMost("spec.applications", len(s.Applications), maxListed)
	c.checkAtMost("spec.carry", len(s.Carry), maxListed)
	for i, e := range s.Carry {
		at := fmt.Sprintf("spec.carry[%d]", i)
		c.checkAtMost(at+".kustomizeImages", len(e.KustomizeImages), maxListed)
		if e.Files != nil {
			c.checkAtMost(at+".files.include", len(e.Files.Include), maxListed)
			c.checkAtMost(at+".files.exclude", len(e.Files.Exclude), maxListed)
		}
		for kind, pick := range map[string]*FieldPick{"yaml": e.YAML, "json": e.JSON} {
			if pick != nil {
				c.checkAtMost(at+"."+kind+".files", len(pick.Files), maxListed)
				c.checkAtMost(at+"."+kind+".paths", len(pick.Paths), maxListed)
			}
		}
	}
}

// checkTemplate checks that a template can be parsed; the empty one is none.
func (c *checker) checkTemplate(path, text string) {
	if len(text) > maxTemplateLength {
		c.errorf(path, "the template is longer than %d characters", maxTemplateLength)
		return
	}
	if _, err := ParseTemplate(path, text); err != nil {
		c.errorf(path, "%s", err)
	}
}

// checkGlob checks a glob on slash-separated paths below some root.
func (c *checker) checkGlob(at, glob string) {
	switch {
	case glob == "":
		c.errorf(at, "a glob is missing")
	case strings.HasPrefix(glob, "/") || slices.Contains(strings.Split(glob, "/"), ".."):
		c.errorf(at, "%q leaves the repository; write it from the root, without a leading / and without ..", glob)
	case path.Clean(glob) != glob:
		c.errorf(at, "%q is not in its shortest form; write %q", glob, path.Clean(glob))
	case !doublestar.ValidatePattern(glob):
		c.errorf(at, "%q is not a valid glob", glob)
	}
}

// checkCarriedGlob checks a glob of carried files, which may have placeholders.
func (c *checker) checkCarriedGlob(at, glob string) {
	if err := placeholder.CheckGlob(glob); err != nil {
		c.errorf(at, "%v", err)
		return
	}
	c.checkGlob(at, glob)
}

// checkConstantEnvironment checks an environment that is given as plain text.
func (c *checker) checkConstantEnvironment(at, text string, s *Spec) {
	if text != "" && isConstantTemplate(text) && s.EnvironmentByName(text) == nil {
		c.errorf(at, "there is no environment %q%s", text, strictyaml.DidYouMean(text, s.environmentNames()))
	}
}

func (s *Spec) environmentNames() []string {
	var names []string
	for _, e := range s.Environments {
		names = append(names, e.Name)
	}
	return names
}

func (c *checker) checkCarry(entries []Carry) {
	c.checkNotEmpty("spec.carry", len(entries), "entry that says what is promoted")
	for i, e := range entries {
		at := fmt.Sprintf("spec.carry[%d]", i)
		kinds := 0
		for _, kind := range []string{"kustomizeImages", "yaml", "json", "files"} {
			if c.doc.Has(at + "." + kind) {
				kinds++
			}
		}
		if kinds != 1 {
			c.errorf(at, "exactly one of kustomizeImages, yaml, json and files is needed; this entry has %d", kinds)
		}
		if e.WhenAbsent == WhenAbsentSkip {
			// A skipped field makes the two environments' releases differ in
			// identity, by which everything downstream is judged: a revert would
			// put another release in quarantine than the one that is promoted.
			c.errorf(at+".whenAbsent", "skip is not supported, because an environment that lacks a field would carry another release than the one it was given; carry the field where all environments have it, or use add or refuse")
		} else {
			c.checkOneOf(at+".whenAbsent", e.WhenAbsent, WhenAbsentAdd, WhenAbsentRefuse)
		}
		if c.doc.Has(at + ".kustomizeImages") {
			c.checkNotEmpty(at+".kustomizeImages", len(e.KustomizeImages), "glob on image names")
		}
		for j, glob := range e.KustomizeImages {
			if placeholder.IsIn(glob) {
				c.errorf(fmt.Sprintf("%s.kustomizeImages[%d]", at, j), "%q: placeholders are for yaml, json and files; carry yaml with a path like images[name=registry.example/{{component}}].newTag", glob)
			} else if glob == "" || strings.ContainsAny(glob, " \t\r\n") || !doublestar.ValidatePattern(glob) {
				c.errorf(fmt.Sprintf("%s.kustomizeImages[%d]", at, j), "%q is not a valid glob on image names", glob)
			}
		}
		c.checkFieldPick(at+".yaml", e.YAML)
		c.checkFieldPick(at+".json", e.JSON)
		c.checkFilePick(at+".files", e.Files)
	}
}

func (c *checker) checkFilePick(at string, f *FilePick) {
	if f == nil {
		return
	}
	c.checkNotEmpty(at+".include", len(f.Include), "glob of files")
	for i, glob := range f.Include {
		c.checkCarriedGlob(fmt.Sprintf("%s.include[%d]", at, i), glob)
	}
	for i, glob := range f.Exclude {
		c.checkCarriedGlob(fmt.Sprintf("%s.exclude[%d]", at, i), glob)
	}
}

func (c *checker) checkFieldPick(at string, f *FieldPick) {
	if f == nil {
		return
	}
	c.checkNotEmpty(at+".files", len(f.Files), "glob of files")
	for i, glob := range f.Files {
		c.checkCarriedGlob(fmt.Sprintf("%s.files[%d]", at, i), glob)
	}
	c.checkNotEmpty(at+".paths", len(f.Paths), "path of a field")
	for i, p := range f.Paths {
		path := fmt.Sprintf("%s.paths[%d]", at, i)
		if p == "" || strings.TrimSpace(p) != p {
			c.errorf(path, "%q is not the path of a field; write it like image.tag", p)
		} else if _, err := placeholder.ParsePattern(p); err != nil {
			c.errorf(path, "%v", err)
		}
	}
}

func (c *checker) checkEnvironments(s *Spec) {
	c.checkNotEmpty("spec.environments", len(s.Environments), "environment")
	first := map[string]int{}
	for i := range s.Environments {
		e := &s.Environments[i]
		at := fmt.Sprintf("spec.environments[%d]", i)
		if err := ValidName(e.Name); err != nil {
			c.errorf(at+".name", "%s", err)
		} else if j, repeated := first[e.Name]; repeated {
			c.errorf(at+".name", "the environment %q is already spec.environments[%d]", e.Name, j)
		} else {
			first[e.Name] = i
		}
		c.checkAfter(at, e, s)
		c.checkBranch(at, i, s)
		c.checkOneOf(at+".open", e.Open, Auto, Manual)
		c.checkOneOf(at+".merge", e.Merge, Auto, Manual)
		c.checkOneOf(at+".onDegraded", e.OnDegraded, OnDegradedRevert, OnDegradedRevertAndMerge, OnDegradedHold)
		c.checkSourceKeys(at, e)
		c.checkGates(at, e.Gates)
		c.checkVerify(at+".verify", e.Verify)
	}
	if cycle := s.findCycle(); cycle != nil {
		i := slices.Index(s.environmentNames(), cycle[0])
		c.errorf(fmt.Sprintf("spec.environments[%d].after", i), "goes round in a circle: %s", strings.Join(cycle, " after "))
	}
}

func (c *checker) checkAfter(at string, e *Environment, s *Spec) {
	for j, a := range e.After {
		path := fmt.Sprintf("%s.after[%d]", at, j)
		if s.EnvironmentByName(a) == nil {
			c.errorf(path, "there is no environment %q%s", a, strictyaml.DidYouMean(a, s.environmentNames()))
		}
		if slices.Index(e.After, a) < j {
			c.errorf(path, "%q is given twice", a)
		}
	}
}

// checkSourceKeys refuses keys that could do nothing in a source environment, where
// there is no pull request to open, to gate or to merge.
func (c *checker) checkSourceKeys(at string, e *Environment) {
	if !e.IsSource() {
		return
	}
	for _, key := range []string{"open", "merge", "gates"} {
		if c.doc.Has(at + "." + key) {
			c.errorf(at+"."+key, "does nothing in a source environment, which has no pull requests; remove it or give `after`")
		}
	}
	if c.doc.Has(at+".onDegraded") && e.OnDegraded != OnDegradedHold {
		c.errorf(at+".onDegraded", "is always hold in a source environment, where releases arrive from outside; remove it or give `after`")
	}
}

func (c *checker) checkGates(at string, gates []policies.Gate) {
	for i := range gates {
		for _, p := range policies.Problems(gates[i].Validate()) {
			path := fmt.Sprintf("%s.gates[%d]", at, i)
			if p.Path != "" {
				path += "." + p.Path
			}
			c.errorf(path, "%s", p.Message)
		}
	}
}

func (c *checker) checkVerify(at string, v Verify) {
	for _, d := range []struct {
		key   string
		value Duration
	}{
		{"arriveWithin", v.ArriveWithin},
		{"timeout", v.Timeout},
		{"healthyFor", v.HealthyFor},
		{"watch", v.Watch},
		{"debounce", v.Debounce},
	} {
		if d.value <= 0 {
			c.errorf(at+"."+d.key, "must be longer than 0; it is %s", d.value)
		}
	}
	c.checkOneOf(at+".sync", v.Sync, SyncWait, SyncTrigger)
}
