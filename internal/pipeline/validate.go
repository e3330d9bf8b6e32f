package pipeline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// Bounds on what one pipeline may hold; far above any real one.
const (
	maxNameLength     = 63
	maxEnvironments   = 100
	maxGates          = 50   // of an environment
	maxExpressions    = 100  // of a pipeline: each is compiled
	maxListed         = 1000 // entries of any other list
	maxNamed          = 100  // teams, or users, that are named in one place: each may be a call of the forge
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
type checker struct{ strictyaml.Checker }

func validatePipeline(doc *strictyaml.Document, p *Pipeline) strictyaml.Errors {
	c := &checker{strictyaml.Checker{Doc: doc}}
	if c.checkListLengths(&p.Spec); len(c.Errs) > 0 {
		return c.Errs // the rules between keys take time that grows with the square
	}
	if p.APIVersion != APIVersion {
		c.Errorf("apiVersion", "must be %s", APIVersion)
	}
	if p.Kind != Kind {
		c.Errorf("kind", "must be %s", Kind)
	}
	if err := ValidName(p.Metadata.Name); err != nil {
		c.Errorf("metadata.name", "%s", err)
	}
	s := &p.Spec
	c.OneOf("spec.mode", string(s.Mode), string(ModeAct), string(ModeDryRun))
	c.OneOf("spec.adopt", s.Adopt, AdoptBaseline, AdoptConverge)
	c.OneOf("spec.layout", s.Layout, LayoutDirectories, LayoutBranches)
	c.OneOf("spec.batch", s.Batch, BatchComponent, BatchEnvironment)
	c.OneOf("spec.merge.method", s.Merge.Method, MethodMerge, MethodSquash, MethodRebase)
	c.OneOf("spec.impact.failOn", s.Impact.FailOn, FailOnNothing, FailOnSeveral)
	if s.Commands != "" || c.Doc.Has("spec.commands") {
		c.OneOf("spec.commands", s.Commands, CommandsBare)
	}
	c.AtLeastOne("spec.limits.openPerEnvironment", s.Limits.OpenPerEnvironment)
	c.AtLeastOne("spec.limits.mergesPerHour", s.Limits.MergesPerHour)
	c.AtLeastOne("spec.limits.revertsPer10Minutes", s.Limits.RevertsPer10Minutes)
	c.checkTemplate("spec.component", s.Component)
	c.checkTemplate("spec.environment", s.Environment)
	c.checkApplicationSets(s)
	c.checkCarry(s.Carry)
	if s.Source != "" || c.Doc.Has("spec.source") {
		if _, err := ParseSource(s.Source); err != nil {
			c.Errorf("spec.source", "%v", err)
		}
	}
	c.checkBreakGlass(s.BreakGlass)
	c.checkNotifications(s.Notify)
	c.checkEnvironments(s)
	return c.Errs
}

// checkAtMost checks a list's length.
func (c *checker) checkAtMost(path string, n, most int) {
	if n > most {
		c.Errorf(path, "%d are too many; at most %d", n, most)
	}
}

// checkListLengths checks the lengths of all lists.
func (c *checker) checkListLengths(s *Spec) {
	c.checkAtMost("spec.environments", len(s.Environments), maxEnvironments)
	expressions := 0
	for i, e := range s.Environments {
		for _, g := range e.Gates {
			if g.Expression != nil || g.Metric != nil {
				expressions++
			}
		}
		at := fmt.Sprintf("spec.environments[%d]", i)
		c.checkAtMost(at+".after", len(e.After), maxEnvironments)
		c.checkAtMost(at+".gates", len(e.Gates), maxGates)
		c.checkAtMost(at+".discover", len(e.Discover), maxNamed)
	}
	if expressions > maxExpressions {
		c.Errorf("spec.environments", "%d gates with an expression or a metric's condition are too many; at most %d", expressions,
			maxExpressions)
	}
	c.checkAtMost("spec.applicationSets", len(s.ApplicationSets), maxListed)
	c.checkAtMost("spec.applications", len(s.Applications), maxListed)
	c.checkAtMost("spec.carry", len(s.Carry), maxListed)
	c.checkAtMost("spec.notify", len(s.Notify), maxNamed)
	if b := s.BreakGlass; b != nil {
		c.checkAtMost("spec.breakGlass.teams", len(b.Teams), maxNamed)
		c.checkAtMost("spec.breakGlass.users", len(b.Users), maxNamed)
	}
	for i, e := range s.Carry {
		at := fmt.Sprintf("spec.carry[%d]", i)
		c.checkAtMost(at+".kustomizeImages", len(e.KustomizeImages), maxListed)
		c.checkAtMost(at+".kustomizeRefs", len(e.KustomizeRefs), maxListed)
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
		c.Errorf(path, "the template is longer than %d characters", maxTemplateLength)
		return
	}
	if _, err := ParseTemplate(path, text); err != nil {
		c.Errorf(path, "%s", err)
	}
}

// checkGlob checks a glob on slash-separated paths below some root.
func (c *checker) checkGlob(at, glob string) {
	switch {
	case glob == "":
		c.Errorf(at, "a glob is missing")
	case strings.HasPrefix(glob, "/") || slices.Contains(strings.Split(glob, "/"), ".."):
		c.Errorf(at, "%q leaves the repository; write it from the root, without a leading / and without ..", glob)
	case path.Clean(glob) != glob:
		c.Errorf(at, "%q is not in its shortest form; write %q", glob, path.Clean(glob))
	case !doublestar.ValidatePattern(glob):
		c.Errorf(at, "%q is not a valid glob", glob)
	default:
		if err := wording.CheckGlob(glob); err != nil {
			c.Errorf(at, "%v", err)
		}
	}
}

// checkCarriedGlob checks a glob of carried files, which may have placeholders.
func (c *checker) checkCarriedGlob(at, glob string) {
	if err := placeholder.CheckGlob(glob); err != nil {
		c.Errorf(at, "%v", err)
		return
	}
	c.checkGlob(at, glob)
}

// checkConstantEnvironment checks an environment that is given as plain text.
func (c *checker) checkConstantEnvironment(at, text string, s *Spec) {
	if text != "" && isConstantTemplate(text) && s.EnvironmentByName(text) == nil {
		c.Errorf(at, "there is no environment %q%s", text, strictyaml.DidYouMean(text, s.environmentNames()))
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
	c.NotEmpty("spec.carry", len(entries), "entry that says what is promoted")
	for i, e := range entries {
		at := fmt.Sprintf("spec.carry[%d]", i)
		kinds := 0
		for _, kind := range []string{"kustomizeImages", "kustomizeRefs", "yaml", "json", "files"} {
			if c.Doc.Has(at + "." + kind) {
				kinds++
			}
		}
		if kinds != 1 {
			c.Errorf(at, "exactly one of kustomizeImages, kustomizeRefs, yaml, json and files is needed; this entry has %d", kinds)
		}
		if e.WhenAbsent == WhenAbsentSkip {
			// A skipped field makes the two environments' releases differ in identity, by which
			// everything downstream is judged. A revert would put another release in quarantine
			// than the promoted one.
			c.Errorf(at+".whenAbsent", "skip is not supported, because an environment that lacks a field would carry another release "+
				"than the one it was given; carry the field where all environments have it, or use add or refuse")
		} else {
			c.OneOf(at+".whenAbsent", e.WhenAbsent, WhenAbsentAdd, WhenAbsentRefuse)
		}
		c.checkNameGlobs(at+".kustomizeImages", "image names", e.KustomizeImages,
			"placeholders are for yaml, json and files; carry yaml with a path like images[name=registry.example/{{component}}].newTag")
		c.checkNameGlobs(at+".kustomizeRefs", "addresses", e.KustomizeRefs,
			"placeholders are for yaml, json and files; write a * for what differs")
		if len(e.KustomizeRefs) > 0 && e.WhenAbsent == WhenAbsentAdd {
			c.Errorf(at+".whenAbsent", "add is not for kustomizeRefs: a remote base that an environment lacks is added by hand, with its "+
				"ref")
		}
		c.checkFieldPick(at+".yaml", e.YAML)
		c.checkFieldPick(at+".json", e.JSON)
		c.checkFilePick(at+".files", e.Files)
	}
}

// checkNameGlobs checks globs on names that kustomizations have, where the key is there.
func (c *checker) checkNameGlobs(at, of string, globs []string, instead string) {
	if c.Doc.Has(at) {
		c.NotEmpty(at, len(globs), "glob on "+of)
	}
	for i, glob := range globs {
		path := fmt.Sprintf("%s[%d]", at, i)
		if placeholder.IsIn(glob) {
			c.Errorf(path, "%q: %s", glob, instead)
		} else if glob == "" || strings.ContainsAny(glob, " \t\r\n") || !doublestar.ValidatePattern(glob) {
			c.Errorf(path, "%q is not a valid glob on %s", glob, of)
		} else if err := wording.CheckGlob(glob); err != nil {
			c.Errorf(path, "%v", err)
		}
	}
}

func (c *checker) checkFilePick(at string, f *FilePick) {
	if f == nil {
		return
	}
	c.NotEmpty(at+".include", len(f.Include), "glob of files")
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
	c.NotEmpty(at+".files", len(f.Files), "glob of files")
	for i, glob := range f.Files {
		c.checkCarriedGlob(fmt.Sprintf("%s.files[%d]", at, i), glob)
	}
	c.NotEmpty(at+".paths", len(f.Paths), "path of a field")
	for i, p := range f.Paths {
		path := fmt.Sprintf("%s.paths[%d]", at, i)
		if p == "" || strings.TrimSpace(p) != p {
			c.Errorf(path, "%q is not the path of a field; write it like image.tag", p)
		} else if _, err := placeholder.ParsePattern(p); err != nil {
			c.Errorf(path, "%v", err)
		}
	}
}

func (c *checker) checkEnvironments(s *Spec) {
	c.NotEmpty("spec.environments", len(s.Environments), "environment")
	first := map[string]int{}
	for i := range s.Environments {
		e := &s.Environments[i]
		at := fmt.Sprintf("spec.environments[%d]", i)
		if err := ValidName(e.Name); err != nil {
			c.Errorf(at+".name", "%s", err)
		} else if j, repeated := first[e.Name]; repeated {
			c.Errorf(at+".name", "the environment %q is already spec.environments[%d]", e.Name, j)
		} else {
			first[e.Name] = i
		}
		c.checkAfter(at, e, s)
		c.checkBranch(at, i, s)
		c.OneOf(at+".open", e.Open, Auto, Manual)
		c.OneOf(at+".merge", e.Merge, Auto, Manual)
		c.checkOnDegraded(at+".onDegraded", e.OnDegraded)
		c.OneOf(at+".effect", e.Effect, EffectRequired, EffectOptional)
		c.checkSourceKeys(at, e)
		c.checkDiscovery(at, e)
		c.checkGates(at, e.Gates)
		c.checkSoaks(at, e, s)
		c.checkVerify(at+".verify", e.Verify)
	}
	if cycle := s.FindCycle(); cycle != nil {
		i := slices.Index(s.environmentNames(), cycle[0])
		c.Errorf(fmt.Sprintf("spec.environments[%d].after", i), "goes round in a circle: %s", strings.Join(cycle, " after "))
	}
}

func (c *checker) checkAfter(at string, e *Environment, s *Spec) {
	for j, a := range e.After {
		path := fmt.Sprintf("%s.after[%d]", at, j)
		if s.EnvironmentByName(a) == nil {
			c.Errorf(path, "there is no environment %q%s", a, strictyaml.DidYouMean(a, s.environmentNames()))
		}
		if slices.Index(e.After, a) < j {
			c.Errorf(path, "%q is given twice", a)
		}
	}
}

// checkSourceKeys refuses keys that could do nothing in a source environment, where
// there is no pull request to open, to gate or to merge.
func (c *checker) checkSourceKeys(at string, e *Environment) {
	if !e.IsSource() {
		return
	}
	for _, key := range []string{"open", "merge", "effect", "gates"} {
		if c.Doc.Has(at + "." + key) {
			c.Errorf(at+"."+key, "does nothing in a source environment, which has no pull requests; remove it or give `after`")
		}
	}
	if c.Doc.Has(at+".onDegraded") && e.OnDegraded.Action != OnDegradedHold {
		c.Errorf(at+".onDegraded", "is always hold in a source environment, where releases arrive from outside; remove it or give `after`")
	}
}

func (c *checker) checkOnDegraded(at string, o OnDegraded) {
	action := at
	if key := at + ".action"; c.Doc.Has(key) {
		action = key
	}
	c.OneOf(action, o.Action, OnDegradedRevert, OnDegradedRevertAndMerge, OnDegradedHold)
	if c.Doc.Has(at+".quorum") && o.Action == OnDegradedHold {
		c.Errorf(at+".quorum", "does nothing with action: hold, where no revert opens by itself; remove it, or write action: revert")
	}
}

func (c *checker) checkGates(at string, gates []policies.Gate) {
	for i := range gates {
		for _, p := range policies.Problems(gates[i].Validate()) {
			path := fmt.Sprintf("%s.gates[%d]", at, i)
			if p.Path != "" {
				path += "." + p.Path
			}
			c.Errorf(path, "%s", p.Message)
		}
	}
}

func (c *checker) checkNotifications(all []Notification) {
	for i, n := range all {
		at := fmt.Sprintf("spec.notify[%d]", i)
		if err := ValidName(n.To); err != nil {
			c.Errorf(at+".to", "a channel of the server's file by its name: %s", err)
		}
		if len(n.On) == 0 {
			c.Errorf(at, "on is missing: what is told, like [degraded, reverted]")
		}
		c.checkAtMost(at+".on", len(n.On), len(event.Words()))
		for k, word := range n.On {
			c.OneOf(fmt.Sprintf("%s.on[%d]", at, k), word, event.WordNames()...)
		}
	}
}

func (c *checker) checkBreakGlass(b *BreakGlass) {
	const at = "spec.breakGlass"
	if b == nil {
		return
	}
	if len(b.Teams)+len(b.Users) == 0 {
		c.Errorf(at, "who may is missing: give teams or users")
	}
	for i, team := range b.Teams {
		if _, _, err := policies.ParseTeam(team); err != nil {
			c.Errorf(fmt.Sprintf("%s.teams[%d]", at, i), "%v", err)
		}
	}
	for i, login := range b.Users {
		if err := policies.CheckLogin(login); err != nil {
			c.Errorf(fmt.Sprintf("%s.users[%d]", at, i), "%v", err)
		}
	}
}

// checkSoaks checks that the environments of soaks come before this one.
func (c *checker) checkSoaks(at string, e *Environment, s *Spec) {
	for i, g := range e.Gates {
		if g.Soak == nil || g.Soak.Environment == "" {
			continue
		}
		name, path := g.Soak.Environment, fmt.Sprintf("%s.gates[%d].soak.environment", at, i)
		switch {
		case s.EnvironmentByName(name) == nil:
			c.Errorf(path, "there is no environment %q%s", name, strictyaml.DidYouMean(name, s.environmentNames()))
		case !s.isUpstream(name, e.Name):
			c.Errorf(path, "%s doesn't come before %s, so no release was there first", name, e.Name)
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
		{"suspendedFor", v.SuspendedFor},
	} {
		if d.value <= 0 {
			c.Errorf(at+"."+d.key, "must be longer than 0; it is %s", d.value)
		}
	}
	if v.QueueFor < 0 {
		c.Errorf(at+".queueFor", "must not be shorter than 0; it is %s", v.QueueFor)
	}
	c.OneOf(at+".sync", v.Sync, SyncWait, SyncTrigger)
	c.OneOf(at+".prune", v.Prune, PruneAuto, PruneAlways, PruneNever)
	c.OneOf(at+".suspended", v.Suspended, SuspendedWait, SuspendedFail)
	c.OneOf(at+".runs.images", v.Runs.Images, RunsRequired, RunsReported, RunsOff)
}
