package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// kargoGroup is Kargo's API group (its api/v1alpha1).
const kargoGroup = "kargo.akuity.io"

// warehouse is where releases come from.
type warehouse struct {
	object
	Spec struct {
		Interval              string `json:"interval"`
		FreightCreationPolicy string `json:"freightCreationPolicy"`
		Criteria              *struct {
			Expression string `json:"expression"`
		} `json:"freightCreationCriteria"`
		Subscriptions []struct {
			Git *struct {
				RepoURL string `json:"repoURL"`
			} `json:"git"`
			Image *imageSubscription `json:"image"`
			Chart *chartSubscription `json:"chart"`
		} `json:"subscriptions"`
	} `json:"spec"`
}

type imageSubscription struct {
	RepoURL           string   `json:"repoURL"`
	Strategy          string   `json:"imageSelectionStrategy"`
	StrictSemvers     *bool    `json:"strictSemvers"` // true where it isn't there
	SemverConstraint  string   `json:"semverConstraint"`
	Constraint        string   `json:"constraint"`
	AllowTags         string   `json:"allowTags"`
	AllowTagsRegexes  []string `json:"allowTagsRegexes"`
	IgnoreTags        []string `json:"ignoreTags"`
	IgnoreTagsRegexes []string `json:"ignoreTagsRegexes"`
	Platform          string   `json:"platform"`
	SkipTLSVerify     bool     `json:"insecureSkipTLSVerify"`
}

type chartSubscription struct {
	RepoURL          string `json:"repoURL"`
	Name             string `json:"name"`
	SemverConstraint string `json:"semverConstraint"`
}

// stage is a place to which releases go.
type stage struct {
	object
	Spec struct {
		RequestedFreight []struct {
			Origin struct {
				Name string `json:"name"`
			} `json:"origin"`
			Sources struct {
				Direct   bool     `json:"direct"`
				Stages   []string `json:"stages"`
				SoakTime string   `json:"requiredSoakTime"`
			} `json:"sources"`
		} `json:"requestedFreight"`
		Verification *struct {
			AnalysisTemplates []struct {
				Name string `json:"name"`
			} `json:"analysisTemplates"`
		} `json:"verification"`
	} `json:"spec"`
}

// promotionPolicy says that releases go to a Stage without a person.
type promotionPolicy struct{ project, stage string }

// addPolicies reads a Project's or a ProjectConfig's policies. The latter is in the Project's namespace.
func (m *Manifests) addPolicies(data []byte) error {
	var p struct {
		object
		Spec struct {
			PromotionPolicies []struct {
				Stage         string `json:"stage"`
				StageSelector *struct {
					Name string `json:"name"`
				} `json:"stageSelector"`
				IsAutomatic bool `json:"autoPromotionEnabled"`
			} `json:"promotionPolicies"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	for _, policy := range p.Spec.PromotionPolicies {
		name := policy.Stage
		if policy.StageSelector != nil {
			name = cmp.Or(name, policy.StageSelector.Name)
		}
		if policy.IsAutomatic && name != "" {
			m.policies = append(m.policies, promotionPolicy{cmp.Or(p.Metadata.Namespace, p.Metadata.Name), name})
		}
	}
	return nil
}

// isAutomatic says that releases go to a Stage without a person. A policy's name may be a glob or an expression, which counts as
// one that isn't known.
func (m *Manifests) isAutomatic(s *stage) bool {
	return slices.ContainsFunc(m.policies, func(p promotionPolicy) bool {
		return p.stage == s.Metadata.Name && (s.Metadata.Namespace == "" || p.project == s.Metadata.Namespace)
	})
}

// environmentOf is the environment that a Stage stands for: the one with its name, else the longest that its name has as a word,
// as web-prod-eu has prod-eu. Empty: none.
func (s *stage) environmentOf(environments []string) string {
	best := ""
	name := "-" + strings.NewReplacer("_", "-", ".", "-").Replace(s.Metadata.Name) + "-"
	for _, e := range environments {
		if e == s.Metadata.Name {
			return e
		}
		if strings.Contains(name, "-"+e+"-") && len(e) > len(best) {
			best = e
		}
	}
	return best
}

// FindUpstream is which environments come directly before each, as the Stages say it. A Stage that is no environment is passed
// over: what comes before it comes before those after it. Nil where there are no Stages; why says what keeps them from being
// followed.
func (m *Manifests) FindUpstream(environments []string) (after map[string][]string, why string) {
	if len(m.stages) == 0 {
		return nil, ""
	}
	byName := map[[2]string]*stage{}
	for i := range m.stages {
		byName[[2]string{m.stages[i].Metadata.Namespace, m.stages[i].Metadata.Name}] = &m.stages[i]
	}
	after = map[string][]string{}
	for i := range m.stages {
		s := &m.stages[i]
		e := s.environmentOf(environments)
		if e == "" {
			continue
		}
		if after[e] == nil {
			after[e] = []string{}
		}
		for _, before := range s.listUpstream(byName, environments, map[*stage]bool{}) {
			if before != e && !slices.Contains(after[e], before) {
				after[e] = append(after[e], before)
			}
		}
	}
	for _, e := range environments {
		if after[e] == nil {
			return nil, fmt.Sprintf("Kargo's Stages don't say where %s comes: no Stage has its name", e)
		}
		slices.Sort(after[e])
	}
	var spec pipeline.Spec
	for _, e := range environments {
		spec.Environments = append(spec.Environments, pipeline.Environment{Name: e, After: after[e]})
	}
	if circle := spec.FindCycle(); circle != nil {
		return nil, fmt.Sprintf("Kargo's Stages have %s before itself", circle[0])
	}
	return after, ""
}

// listUpstream are the environments of the Stages from which a Stage gets its releases.
func (s *stage) listUpstream(byName map[[2]string]*stage, environments []string, seen map[*stage]bool) (out []string) {
	if seen[s] {
		return nil
	}
	seen[s] = true
	for _, request := range s.Spec.RequestedFreight {
		for _, name := range request.Sources.Stages {
			before := byName[[2]string{s.Metadata.Namespace, name}]
			if before == nil {
				continue
			}
			if e := before.environmentOf(environments); e != "" {
				out = append(out, e)
				continue
			}
			out = append(out, before.listUpstream(byName, environments, seen)...)
		}
	}
	return out
}

// addKargo adds what Kargo brings in, and what of its Stages a pipeline file says otherwise.
func (m *Manifests) addKargo(c *collector, environments []string) {
	for i := range m.stages {
		s := &m.stages[i]
		e := s.environmentOf(environments)
		if e == "" {
			continue
		}
		for _, request := range s.Spec.RequestedFreight {
			if request.Sources.Direct {
				m.addWarehouse(c, s, e, request.Origin.Name)
			}
			if soak := request.Sources.SoakTime; soak != "" {
				c.addNote(s.String(), "a release is to be verified for %s before: give %s the gate soak: {for: %s}", soak, e, soak)
			}
		}
		if s.Spec.Verification != nil && len(s.Spec.Verification.AnalysisTemplates) > 0 {
			c.addNote(s.String(), "what its AnalysisTemplates measure isn't carried over: say it as gates metric or http of the "+
				"environment after %s", e)
		}
		isSource := slices.Contains(c.sources, e)
		if automatic := m.isAutomatic(s); automatic && !isSource {
			c.addNote(s.String(), "it takes releases without a person: give %s merge: auto", e)
		} else if !automatic && isSource {
			c.addNote(s.String(), "a person brings releases into %s, unless its Project says otherwise; with discover they come in by "+
				"themselves", e)
		}
	}
	for i := range m.warehouses {
		m.warehouses[i].addUnmatched(c, m.stages)
	}
}

// addUnmatched says that no Stage gets its releases from a Warehouse.
func (w *warehouse) addUnmatched(c *collector, stages []stage) {
	for i := range stages {
		for _, request := range stages[i].Spec.RequestedFreight {
			if request.Origin.Name == w.Metadata.Name && stages[i].Metadata.Namespace == w.Metadata.Namespace {
				return
			}
		}
	}
	c.addNote(w.String(), "no Stage that was given takes its releases: give the Stages as well")
}

func (m *Manifests) addWarehouse(c *collector, s *stage, environment, name string) {
	i := slices.IndexFunc(m.warehouses, func(w warehouse) bool {
		return w.Metadata.Name == name && w.Metadata.Namespace == s.Metadata.Namespace
	})
	if i < 0 {
		c.addNote(s.String(), "the Warehouse %s, from which it takes releases, wasn't given", name)
		return
	}
	m.warehouses[i].add(c, environment)
}

// add adds what a Warehouse brings into an environment.
func (w *warehouse) add(c *collector, environment string) {
	from := w.String()
	if w.Spec.FreightCreationPolicy == "Manual" {
		c.addNote(from, "nothing comes in from it by itself: build jobs and people bring a version in with liftlock release")
		return
	}
	if w.Spec.Criteria != nil && w.Spec.Criteria.Expression != "" {
		c.addNote(from, "the condition on what comes in at the same time (%s) has no counterpart: what is newest of each comes in by "+
			"itself", w.Spec.Criteria.Expression)
	}
	for _, sub := range w.Spec.Subscriptions {
		switch {
		case sub.Git != nil:
			c.addNote(from, "commits of %s are no releases by themselves: a build job runs liftlock release, or they change what is "+
				"carried", sub.Git.RepoURL)
		case sub.Image != nil:
			if d, err := sub.Image.discovery(c, from); err != nil {
				c.addNote(from, "what it says of %s can't be said as it is: %v", sub.Image.RepoURL, err)
			} else {
				c.addRule(environment, Rule{d, from})
			}
		case sub.Chart != nil:
			c.addRule(environment, Rule{sub.Chart.discovery(), from})
		}
	}
	if w.Spec.Interval != "" && w.Spec.Interval != "5m0s" && w.Spec.Interval != "5m" {
		c.addNote(from, "how often is looked (%s) is the server's discoverInterval, for the whole repository", w.Spec.Interval)
	}
}

// strictVersion is what Kargo takes for a version unless strictSemvers is false: one with all three numbers. Without it a tag of
// digits alone, such as a commit's, is a version.
const strictVersion = `^v?\d+\.\d+\.\d+([-+].*)?$`

// globMeta is what has a meaning in globs.
var globMeta = regexp.MustCompile(`[\\*?\[]`)

// discovery is a subscription to an image in a pipeline file's words.
func (i *imageSubscription) discovery(c *collector, from string) (pipeline.Discovery, error) {
	out := pipeline.Discovery{Image: i.RepoURL}
	if i.Platform != "" {
		out.Platforms = []string{i.Platform}
	}
	if len(i.IgnoreTagsRegexes) > 0 {
		return out, fmt.Errorf("tags are ignored by expressions (%s), and here by globs: write them under choose.ignore",
			strings.Join(i.IgnoreTagsRegexes, ", "))
	}
	for _, tag := range i.IgnoreTags {
		out.Choose.Ignore = append(out.Choose.Ignore, globMeta.ReplaceAllString(tag, `\$0`))
	}
	if i.SkipTLSVerify {
		c.addNote(from, "the certificate of %s isn't verified: here give the server's file the registry's authority", i.RepoURL)
	}
	allow, err := i.allowed()
	if err != nil {
		return out, err
	}
	constraint := cmp.Or(i.Constraint, i.SemverConstraint)
	switch i.Strategy {
	case "", "SemVer":
		out.Choose.SemVer, out.Choose.Prerelease = rangeOf(constraint)
		out.Choose.Tags = allow
		isStrict := i.StrictSemvers == nil || *i.StrictSemvers
		switch {
		case isStrict && allow == "":
			out.Choose.Tags = strictVersion
		case isStrict:
			c.addNote(from, "%s: tags with fewer than three numbers count here as versions, too, where they match %s", i.RepoURL, allow)
		}
	case "NewestBuild":
		out.Choose.Newest = &discover.Newest{Tags: cmp.Or(allow, anyTag), By: discover.ByCreated}
	case "Lexical":
		out.Choose.Newest = &discover.Newest{Tags: cmp.Or(allow, anyTag), By: discover.ByAlphabet}
	case "Digest":
		out.Choose.Digest, out.Choose.Ignore = &discover.FollowedTag{Tag: constraint}, nil
	default:
		return out, fmt.Errorf("imageSelectionStrategy: %q is none that is known: SemVer, NewestBuild, Lexical, Digest", i.Strategy)
	}
	return out, nil
}

// allowed is the expression for the tags that count; empty: all do. Of several, one has to match.
func (i *imageSubscription) allowed() (string, error) {
	all := slices.Clone(i.AllowTagsRegexes)
	if i.AllowTags != "" {
		all = append(all, i.AllowTags)
	}
	if len(all) < 2 {
		return strings.Join(all, ""), nil
	}
	for _, text := range all {
		if _, err := regexp.Compile(text); err != nil {
			return "", fmt.Errorf("%q is no regular expression", text)
		}
	}
	return "(?:" + strings.Join(all, ")|(?:") + ")", nil
}

// discovery is a subscription to a chart in a pipeline file's words.
func (cs *chartSubscription) discovery() pipeline.Discovery {
	address := strings.TrimSuffix(cs.RepoURL, "/")
	if cs.Name != "" {
		address = pipeline.ChartAddress(address, cs.Name)
	}
	out := pipeline.Discovery{Chart: address}
	out.Choose.SemVer, out.Choose.Prerelease = rangeOf(cs.SemverConstraint)
	return out
}
